package schema

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Everybody is the id that means all people where a cohort's id is expected.
const Everybody = 0

// Cohort is what queries know about a cohort.
type Cohort struct {
	ID   int64
	Name string // empty for none; names may repeat
	// Static reports whether the members were added directly instead of computed.
	Static  bool
	Deleted bool
	// Version is the current version of the computed members; 0 before they are computed for the first time.
	Version uint64
}

// Cohorts are the cohorts of a project, including deleted ones, and whether there may be others. The zero value has none. It is immutable and safe for
// concurrent use.
type Cohorts struct {
	byID   map[int64]*Cohort
	byName map[string][]int64 // without the deleted ones
	open   bool
}

// NewCohorts returns the cohorts of a project. With open there may be others, which queries can name by id: their members are in the tables of
// another product, which alone knows its cohorts.
func NewCohorts(list []Cohort, open bool) Cohorts {
	c := Cohorts{byID: make(map[int64]*Cohort, len(list)), byName: make(map[string][]int64, len(list)), open: open}
	for i := range list {
		one := &list[i]
		c.byID[one.ID] = one
		if !one.Deleted && one.Name != "" {
			c.byName[one.Name] = append(c.byName[one.Name], one.ID)
		}
	}
	return c
}

// Missing returns why a cohort cannot be used; empty if it can.
func (c Cohorts) Missing(id int64) string {
	one := c.byID[id]
	switch {
	case one != nil && one.Deleted && one.Name == "":
		return fmt.Sprintf("Cohort %d was deleted.", id)
	case one != nil && one.Deleted:
		return fmt.Sprintf(`Cohort "%s" (ID %d) was deleted.`, one.Name, id)
	case one == nil && !c.open || id <= 0:
		return fmt.Sprintf("Could not find cohort with ID %d", id)
	}
	return ""
}

// Has reports whether there may be a cohort with this id.
func (c Cohorts) Has(id int64) bool { return c.Missing(id) == "" }

// Name returns the name of a cohort for people: its name, or Cohort and its id.
func (c Cohorts) Name(id int64) string {
	if name := c.NameOf(id); name != "" {
		return name
	}
	return "Cohort " + strconv.FormatInt(id, 10)
}

// NameOf returns the name of a cohort; empty if it has none.
func (c Cohorts) NameOf(id int64) string {
	if one := c.byID[id]; one != nil {
		return one.Name
	}
	return ""
}

// ByName returns the cohorts with a name, without deleted ones.
func (c Cohorts) ByName(name string) []int64 { return c.byName[name] }

// Names yields the names of the cohorts, without deleted ones, in no order.
func (c Cohorts) Names() iter.Seq[string] { return maps.Keys(c.byName) }

// Members says where the members of a cohort are stored.
type Members struct {
	// Given reports that they are among the directly added members, Computed that they are among the computed ones.
	Given, Computed bool
	// Version is the version of the computed members. 0 means the newest if Newest is set, otherwise none.
	Version uint64
	Newest  bool
}

// Members returns where the members of a cohort are stored. If another product computes the cohort, or may do so, its newest version counts: only
// that product knows which one it is.
func (c Cohorts) Members(id int64) Members {
	one := c.byID[id]
	switch {
	case one != nil && !one.Static:
		return Members{Computed: true, Version: one.Version}
	case c.open:
		return Members{Given: true, Computed: true, Newest: true}
	}
	return Members{Given: true}
}

// Current lists the computed cohorts that have members, without deleted ones, by id: each is an id and its current version.
func (c Cohorts) Current() [][2]int64 {
	var list [][2]int64
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		if one := c.byID[id]; !one.Static && !one.Deleted && one.Version > 0 {
			list = append(list, [2]int64{id, int64(one.Version)}) //nolint:gosec // versions are counted from 1
		}
	}
	return list
}

// Computed returns the sorted ids of the computed cohorts, including deleted ones.
func (c Cohorts) Computed() []int64 {
	var list []int64
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		if !c.byID[id].Static {
			list = append(list, id)
		}
	}
	return list
}

// Open reports whether there may be cohorts that another product computes.
func (c Cohorts) Open() bool { return c.open }

// MissingMembers names a table of members that the physical layout lacks, so that membership is unknown; empty if it has both.
func (db *Database) MissingMembers() string {
	for _, name := range []string{computedMembers, givenMembers} {
		if !db.layout().tables[name] {
			return name
		}
	}
	return ""
}
