package schema

import (
	"iter"
	"maps"
	"strconv"
)

// Everybody is the id that stands for all people where the id of a cohort is asked for.
const Everybody = 0

// Cohorts are the cohorts of a project: those that have names, and whether there are others. The zero value has none. It is
// immutable and safe for concurrent use.
type Cohorts struct {
	names map[int64]string
	ids   map[string]int64
	open  bool
}

// NewCohorts returns the cohorts of a project from their names by id; no two have the same name. With open there are others
// too, which can be asked for by their ids: the members are in the tables of another product, which alone knows its cohorts.
func NewCohorts(names map[int64]string, open bool) Cohorts {
	c := Cohorts{names: names, ids: make(map[string]int64, len(names)), open: open}
	for id, name := range names {
		c.ids[name] = id
	}
	return c
}

// Has reports whether there may be a cohort of this id.
func (c Cohorts) Has(id int64) bool {
	_, named := c.names[id]
	return id > 0 && (named || c.open)
}

// Name is what a cohort is called: its name, else Cohort and its id.
func (c Cohorts) Name(id int64) string {
	if name, ok := c.names[id]; ok {
		return name
	}
	return "Cohort " + strconv.FormatInt(id, 10)
}

// ByName finds a cohort by its name.
func (c Cohorts) ByName(name string) (id int64, ok bool) {
	id, ok = c.ids[name]
	return id, ok
}

// Names yields the names of the cohorts, in no order.
func (c Cohorts) Names() iter.Seq[string] { return maps.Keys(c.ids) }

// MissingMembers names a table of members that the physical layout lacks, so that nobody's membership can be known; it is
// empty when both are there.
func (db *Database) MissingMembers() string {
	for _, name := range []string{computedMembers, givenMembers} {
		if !db.layout().tables[name] {
			return name
		}
	}
	return ""
}
