package schema

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// KeptColumn is a column of a table that stores the rows of a query.
type KeptColumn struct {
	// Name is the column's name in queries.
	Name string
	Type hogql.Type
}

// KeptColumnName returns the name in ClickHouse of the column with an index, from 0.
func KeptColumnName(place int) string { return "c" + strconv.Itoa(place) }

// NewKept describes a table that stores the rows of a query: name is its name in queries, and stored its name in ClickHouse, for which
// physical.HoldsEndpoint must return true. There its columns are named by KeptColumnName, in addition to the project column.
func NewKept(name, stored string, columns []KeptColumn) *Table {
	t := &Table{Name: name, Physical: stored, Fields: make([]Field, len(columns))}
	for i, c := range columns {
		t.Fields[i] = Field{Name: c.Name, Column: KeptColumnName(i), Type: c.Type}
	}
	t.index()
	return t
}

// Guarded reports whether db has a physical table of that name, so that queries may be compiled to it. The rows of each belong to projects: a scan
// needs a guard.
func (db *Database) Guarded(stored string) bool {
	if _, known := PhysicalTable(stored); known {
		return true
	}
	return db.Kept != nil && stored == db.Kept.Physical && physical.HoldsEndpoint(stored)
}

// keeps reports whether a table is the kept one, which is in no layout.
func (db *Database) keeps(t *Table) bool { return db.Kept != nil && t == db.Kept }
