package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// The schemas of the tables of system.information_schema.
const (
	publicSchema      = "public"
	systemSchema      = "system"
	informationSchema = "information_schema"
)

// Information returns the rows of a table of system.information_schema, which describe the tables that queries can read; ok is false for any other
// table.
func (db *Database) Information(table string) (rows [][]any, ok bool) {
	switch table {
	case "system.information_schema.tables":
		return db.informationTables(), true
	case "system.information_schema.columns":
		return db.informationColumns(), true
	case "system.information_schema.relationships":
		return db.informationRelationships(), true
	case "system.information_schema.data_types":
		return slices.Clone(informationTypes), true
	case "system.information_schema.metrics":
		return [][]any{}, true // the metrics of PostHog's data catalog, which there is none of here
	}
	return nil, false
}

// IsInformation reports whether a held table belongs to system.information_schema.
func IsInformation(table string) bool { return strings.HasPrefix(table, "system.information_schema.") }

// schemaOf returns the schema and the type that a held table is listed with.
func schemaOf(held string) (schema, kind string) {
	switch {
	case IsInformation(held):
		return informationSchema, informationSchema
	case strings.HasPrefix(held, "system."):
		return systemSchema, systemSchema
	}
	return publicSchema, "posthog"
}

// ReadableHeld returns the held tables that the caller may read, sorted.
func (db *Database) ReadableHeld() []*HeldTable {
	var out []*HeldTable
	for _, name := range slices.Sorted(HeldNames()) {
		if _, held := db.Holds(name); held && (IsInformation(name) || db.Readable != nil && db.Readable(name)) {
			out = append(out, heldTables[name])
		}
	}
	return out
}

func (db *Database) informationTables() [][]any {
	var rows [][]any
	for _, t := range db.listed() {
		rows = append(rows, []any{t.Name, publicSchema, t.Name, "posthog", nil, nil, nil})
	}
	for _, t := range db.ReadableHeld() {
		in, kind := schemaOf(t.Name)
		rows = append(rows, []any{t.Name, in, t.Name, kind, nil, nil, nil})
	}
	return rows
}

// listed returns the tables in ClickHouse, sorted by name.
func (db *Database) listed() []*Table {
	var out []*Table
	for _, name := range slices.Sorted(db.TableNames()) {
		if t, ok := db.Table(name); ok && db.Stored(t) {
			out = append(out, t)
		}
	}
	return out
}

// The kinds of fields in information_schema.
const (
	plainColumn    = "column"
	computedColumn = "expression"
	virtualTable   = "virtual_table"
)

// columnRows collects the rows that describe the columns of one table.
type columnRows struct {
	db    *Database
	table *Table
	rows  [][]any
}

func (db *Database) informationColumns() [][]any {
	var rows [][]any
	for _, t := range db.listed() {
		c := columnRows{db: db, table: t}
		c.add("", t.Fields, db.Field)
		rows = append(rows, c.rows...)
	}
	for _, t := range db.ReadableHeld() {
		in, _ := schemaOf(t.Name)
		for i, f := range t.Fields {
			rows = append(rows, columnRow(in, t.Name, f.Name, i+1, f.Type, plainColumn))
		}
	}
	return rows
}

// add describes the fields below a name, with the fields of virtual tables at the end. A field that leads to another table is a relationship, not a
// column.
func (c *columnRows) add(above string, fields []Field, find func(*Table, string) (*Field, bool)) {
	for i := range fields {
		f, ok := find(c.table, fields[i].Name)
		if !ok || f.Hidden || f.Join != nil || f.Same != "" && f.Type.Kind == hogql.Unknown {
			continue
		}
		name, typ, kind := above+f.Name, f.Type, plainColumn
		switch {
		case f.Fields != nil:
			kind = virtualTable
		case f.Formula != nil || f.Same != "":
			kind = computedColumn
		default:
			typ = c.db.FieldType(c.table, f)
		}
		c.rows = append(c.rows, columnRow(publicSchema, c.table.Name, name, len(c.rows)+1, typ, kind))
		if f.Fields != nil {
			c.add(name+".", f.Fields, func(t *Table, name string) (*Field, bool) { return c.db.Below(t, f, name) })
		}
	}
}

// columnRow describes one column.
func columnRow(in, table, name string, position int, typ hogql.Type, kind string) []any {
	return []any{
		in, table, name, position, informationType(typ.Kind, kind), number(typ.Nullable), number(typ.Kind == hogql.ArrayKind), kind, nil, nil, nil, nil,
	}
}

// informationRelationships lists the joins that field names lead to, and the fields that are aliases of others.
func (db *Database) informationRelationships() [][]any {
	var rows [][]any
	for _, t := range db.listed() {
		for i := range t.Fields {
			f, ok := db.Field(t, t.Fields[i].Name)
			switch {
			case !ok || f.Hidden:
			case f.Join != nil:
				rows = append(rows, []any{t.Name, f.Join.Local, f.Join.Table, f.Join.Foreign, "lazy_join", f.Name, nil, nil})
			case f.Same != "":
				rows = append(rows, []any{t.Name, f.Name, t.Name, f.Same, "field_traverser", nil, nil, nil})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(db.GroupTypes)) {
			if f, ok := db.Field(t, name); ok && t.byName[name] == nil {
				rows = append(rows, []any{t.Name, name, t.Name, f.Name, "field_traverser", nil, nil, nil})
			}
		}
	}
	return rows
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// informationTypes are the rows that describe what informationType returns.
var informationTypes = [][]any{
	{"Array", "A list of values of one type."},
	{"Boolean", "True or false."},
	{"Date", "A day."},
	{"DateTime", "A point in time, shown in the time zone of the project."},
	{"Expression", "A value that is computed when it is read, of a type that depends on the expression."},
	{"Float", "A number with decimals."},
	{"Integer", "A whole number."},
	{"JSON", "A value of any form, such as properties. Its parts are read by name: properties.plan."},
	{"String", "A text."},
	{"UUID", "An identifier of 128 bits."},
	{"Unknown", "A value of any other type."},
	{"VirtualTable", "A group of columns below one name, such as person."},
}

// informationType returns the name of a type in information_schema.
func informationType(k hogql.Kind, field string) string {
	switch k {
	case hogql.String:
		return "String"
	case hogql.Int:
		return "Integer"
	case hogql.Float, hogql.Decimal:
		return "Float"
	case hogql.Bool:
		return "Boolean"
	case hogql.DateTime:
		return "DateTime"
	case hogql.Date:
		return "Date"
	case hogql.UUID:
		return "UUID"
	case hogql.JSON:
		return "JSON"
	case hogql.ArrayKind:
		return "Array"
	case hogql.Unknown, hogql.Null, hogql.IntervalKind, hogql.TupleKind, hogql.MapKind, hogql.State:
	}
	switch field {
	case computedColumn:
		return "Expression"
	case virtualTable:
		return "VirtualTable"
	}
	return "Unknown"
}
