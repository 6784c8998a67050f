package physical

import "regexp"

// endpointTables are the names of the tables that hold the rows of materialized endpoints. No other table has such a name.
var endpointTables = regexp.MustCompile(`^endpoint_[0-9a-z_]{1,100}$`)

// HoldsEndpoint reports whether a table of that name may hold the rows of a materialized endpoint. Such a table is not among Tables: its
// columns are those of a query, beside that of the project.
func HoldsEndpoint(name string) bool { return endpointTables.MatchString(name) }
