package physical

import "regexp"

// endpointTables matches the names of the tables that hold the rows of materialized endpoints. No other table has such a name.
var endpointTables = regexp.MustCompile(`^endpoint_[0-9a-z_]{1,100}$`)

// HoldsEndpoint reports whether a table of that name may hold the rows of a materialized endpoint. Such a table is not in Tables: it has the columns
// of a query, and one for the project.
func HoldsEndpoint(name string) bool { return endpointTables.MatchString(name) }
