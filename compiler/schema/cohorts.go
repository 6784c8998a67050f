package schema

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// Everybody is the id that stands for all people where the id of a cohort is asked for.
const Everybody = 0

// Cohort is what queries know of a cohort.
type Cohort struct {
	ID   int64
	Name string // empty for none; several cohorts may have the same
	// Static says that its members were given, and are not computed.
	Static  bool
	Deleted bool
	// Version is the version of the computed members that counts; 0 before they were computed for the first time.
	Version uint64
}

// Cohorts are the cohorts of a project, deleted ones too, and whether there are others. The zero value has none. It is immutable and
// safe for concurrent use.
type Cohorts struct {
	byID   map[int64]*Cohort
	byName map[string][]int64 // those that are not deleted
	open   bool
}

// NewCohorts returns the cohorts of a project. With open there are others too, which can be asked for by their ids: the members are in
// the tables of another product, which alone knows its cohorts.
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

// Missing says why a cohort can't be asked for; it is empty for one that can.
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

// Has reports whether there may be a cohort of this id.
func (c Cohorts) Has(id int64) bool { return c.Missing(id) == "" }

// Name is what a cohort is called: its name, else Cohort and its id.
func (c Cohorts) Name(id int64) string {
	if name := c.NameOf(id); name != "" {
		return name
	}
	return "Cohort " + strconv.FormatInt(id, 10)
}

// NameOf is the name of a cohort; empty for one without.
func (c Cohorts) NameOf(id int64) string {
	if one := c.byID[id]; one != nil {
		return one.Name
	}
	return ""
}

// ByName finds the cohorts of a name that are not deleted.
func (c Cohorts) ByName(name string) []int64 { return c.byName[name] }

// Names yields the names of the cohorts that are not deleted, in no order.
func (c Cohorts) Names() iter.Seq[string] { return maps.Keys(c.byName) }

// Members says where the members of a cohort are.
type Members struct {
	// Given says that they are among those that were given, and Computed that they are among the computed ones.
	Given, Computed bool
	// Version is the version of the computed ones. 0: the newest, if Newest is set, or else none.
	Version uint64
	Newest  bool
}

// Members says where the members of a cohort are. Of a cohort that another product computes, or may compute, the newest version counts:
// it alone knows which one that is.
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

// Current lists the computed cohorts that are not deleted and have members, by id: in each, the id and the version that counts.
func (c Cohorts) Current() [][2]int64 {
	var list [][2]int64
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		if one := c.byID[id]; !one.Static && !one.Deleted && one.Version > 0 {
			list = append(list, [2]int64{id, int64(one.Version)}) //nolint:gosec // versions are counted from 1
		}
	}
	return list
}

// Computed lists the ids of the computed cohorts, deleted ones too, in order.
func (c Cohorts) Computed() []int64 {
	var list []int64
	for _, id := range slices.Sorted(maps.Keys(c.byID)) {
		if !c.byID[id].Static {
			list = append(list, id)
		}
	}
	return list
}

// Open reports whether there are cohorts that another product computes.
func (c Cohorts) Open() bool { return c.open }

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
