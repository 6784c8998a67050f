package schema

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// KeptColumn is a column of a table that holds the rows of a query.
type KeptColumn struct {
	// Name is what queries call it.
	Name string
	Type hogql.Type
}

// KeptColumnName is what the column at a place, from 0, is called in ClickHouse.
func KeptColumnName(place int) string { return "c" + strconv.Itoa(place) }

// NewKept describes a table that holds the rows of a query: name is what queries call it, stored what it is called in ClickHouse, where
// physical.HoldsEndpoint must hold for it. Its columns are called KeptColumnName there, beside that of the project.
func NewKept(name, stored string, columns []KeptColumn) *Table {
	t := &Table{Name: name, Physical: stored, Fields: make([]Field, len(columns))}
	for i, c := range columns {
		t.Fields[i] = Field{Name: c.Name, Column: KeptColumnName(i), Type: c.Type}
	}
	t.index()
	return t
}

// Guarded reports whether db knows a physical table of that name, so that queries may be compiled to it. The rows of each belong to
// projects: a scan needs its guard.
func (db *Database) Guarded(stored string) bool {
	if _, known := PhysicalTable(stored); known {
		return true
	}
	return db.Kept != nil && stored == db.Kept.Physical && physical.HoldsEndpoint(stored)
}

// keeps reports whether a table is the kept one, of which no layout knows.
func (db *Database) keeps(t *Table) bool { return db.Kept != nil && t == db.Kept }
