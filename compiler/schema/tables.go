package schema

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// ProjectColumn is the column with the project of a row. Every physical table has it.
const ProjectColumn = physical.Project

// PhysicalTable reports whether ClickHouse has a table of that name that queries may be compiled to, and whether its rows belong to projects, so that
// each scan needs a guard.
func PhysicalTable(name string) (guarded, known bool) {
	known = physical.Has(name)
	return known, known
}

// Table is a table as queries see it. Tables and their fields are shared: do not modify them.
type Table struct {
	Name     string
	Physical string // the ClickHouse table that stores the rows
	// Merge combines the versions of each row; nil shows all rows as they are stored.
	Merge *Merge
	// Grouping builds each row from a group of another table's rows; nil for tables whose rows are stored.
	Grouping *Grouping
	// Fields are in the order of *.
	Fields []Field

	byName map[string]*Field
}

// Merge says how versions become rows: among rows with the same keys, the one with the highest version counts.
type Merge struct {
	Keys    []string // fields
	Version string   // physical column
	Deleted string   // physical column that marks a deleted row with 1; empty if rows are never deleted
	// NotAhead is a time field that must be before physical.CreatedBefore for a row to count; empty for no such rule.
	NotAhead string
	// Sign is a physical column whose sum is above 0 for a row that exists; empty if every row does. With a Sign, a row only has its keys as
	// fields.
	Sign string
	// Current is the key that is a cohort's id. All rows of a cohort share one version, and rows with other versions do not count: see
	// Cohorts.Members. Empty if each row has its own version.
	Current string
}

// Field is a name below a table: a column, a virtual table, or a lazy join.
type Field struct {
	Name   string
	Column string // of the physical table; empty if it is the field's name
	Type   hogql.Type
	Hidden bool // reachable by name, but not part of *

	// Scope and Group say what the properties in a JSON field belong to.
	Scope PropertyScope
	Group int

	// Fields are the fields of a virtual table: a part of the same row under one name.
	Fields []Field
	// Join leads to the fields of another table.
	Join *LazyJoin
	// Override leads to the row whose field of the same name replaces this one, if there is such a row.
	Override *LazyJoin
	// Same is the field of the table that this one is an alias of, which may be nested: pdi.person_id.
	Same string
	// Formula computes the field.
	Formula *Formula
}

// LazyJoin joins another table once a query uses one of its fields.
type LazyJoin struct {
	Name    string // distinguishes the joins of a table
	Table   string
	Local   string // field of the joining table
	Foreign string // field of the joined table
	Inner   bool   // rows without a partner are dropped; otherwise they get default values
	// Unique reports whether a row has at most one partner.
	Unique bool
	// Group restricts groups to those of one type; -1 for other tables.
	Group int
	// Overrides reports whether the partner only overrides a field of the row.
	Overrides bool
}

// IsColumn reports whether the field is a value rather than a table below a table.
func (f *Field) IsColumn() bool {
	return f.Fields == nil && f.Join == nil && (f.Same == "" || f.Type.Kind != hogql.Unknown)
}

// PhysicalName returns the column of the physical table that the field reads.
func (f *Field) PhysicalName() string {
	if f.Column == "" {
		return f.Name
	}
	return f.Column
}

// Key distinguishes the field from fields of the same name in other parts of its table.
func (f *Field) Key() string {
	if f.PhysicalName() == f.Name {
		return f.Name
	}
	return f.Name + " " + f.PhysicalName()
}

// The types of fields.
var (
	stringType = hogql.Type{Kind: hogql.String}
	uuidType   = hogql.Type{Kind: hogql.UUID}
	dateType   = hogql.Type{Kind: hogql.Date}
	timeType   = hogql.Type{Kind: hogql.DateTime}
	intType    = hogql.Type{Kind: hogql.Int}
	boolType   = hogql.Type{Kind: hogql.Bool}
	jsonType   = hogql.Type{Kind: hogql.JSON}
	floatType  = hogql.Type{Kind: hogql.Float}
	tupleType  = hogql.Type{Kind: hogql.TupleKind}
	stringsOf  = hogql.Type{Kind: hogql.ArrayKind, Elem: &stringType}
)

var project = Field{Name: ProjectColumn, Type: intType, Hidden: true}

// groupTypes is the number of group types that a project can have.
const groupTypes = physical.GroupTypes

var personFields = slices.Concat([]Field{
	{Name: "id", Type: uuidType},
	{Name: "created_at", Type: timeType},
	project,
	{Name: "properties", Type: jsonType, Scope: PersonProperty},
	{Name: "is_identified", Type: boolType},
	{Name: "pdi", Join: &LazyJoin{
		Name: "pdi", Table: "person_distinct_ids", Local: "id", Foreign: "person_id", Inner: true, Group: -1,
	}},
}, initialFields("properties"))

var distinctIDFields = []Field{
	{Name: "distinct_id", Type: stringType},
	{Name: "person_id", Type: uuidType},
	project,
	{Name: "person", Join: &LazyJoin{
		Name: "person", Table: "persons", Local: "person_id", Foreign: "id", Inner: true, Unique: true, Group: -1,
	}},
}

var groupFields = []Field{
	{Name: "index", Column: "group_type_index", Type: intType},
	project,
	{Name: "key", Column: "group_key", Type: stringType},
	{Name: "created_at", Type: timeType},
	{Name: "updated_at", Column: "_timestamp", Type: timeType},
	{Name: "properties", Column: "group_properties", Type: jsonType},
}

// queryLogFields are the fields of the query log (contract: clients-queries.md, section 8), in the order of the held table that replaces it where
// ClickHouse has none.
var queryLogFields = []Field{
	{Name: "event_date", Type: dateType},
	{Name: "event_time", Type: timeType},
	{Name: "query_id", Type: stringType},
	{Name: "endpoint", Type: stringType},
	{Name: "name", Type: stringType},
	{Name: "query", Type: stringType},
	{Name: "kind", Type: stringType},
	{Name: "query_type", Column: "kind", Type: stringType},
	{Name: "query_start_time", Type: timeType},
	{Name: "query_duration_ms", Type: intType},
	{Name: "created_by", Type: intType},
	{Name: "read_rows", Type: intType},
	{Name: "read_bytes", Type: intType},
	{Name: "result_rows", Type: intType},
	{Name: "result_bytes", Type: intType},
	{Name: "memory_usage", Type: intType},
	{Name: "status", Type: stringType},
	{Name: "exception_code", Type: intType},
	{Name: "exception", Type: stringType},
	{Name: "is_personal_api_key_request", Type: intType},
	{Name: "endpoint_version", Type: intType},
	{Name: "key_id", Type: stringType},
	{Name: "customer", Type: stringType},
	project,
}

// versionFields are the fields that raw tables have in addition to the merged ones.
var versionFields = []Field{
	{Name: "is_deleted", Type: boolType},
	{Name: "version", Type: intType},
}

// tables are the virtual tables (contract: hogql.md, section 7).
var tables = makeTables(append(cohortTables, []*Table{
	sessions,
	{
		Name: "persons", Physical: physical.Persons, Fields: personFields,
		Merge: &Merge{Keys: []string{"id"}, Version: "version", Deleted: "is_deleted", NotAhead: "created_at"},
	},
	{Name: "raw_persons", Physical: physical.Persons, Fields: slices.Concat(personFields, versionFields)},
	{
		Name: "person_distinct_ids", Physical: "person_distinct_id2", Fields: distinctIDFields,
		Merge: &Merge{Keys: []string{"distinct_id"}, Version: "version", Deleted: "is_deleted"},
	},
	{Name: "raw_person_distinct_ids", Physical: "person_distinct_id2", Fields: slices.Concat(distinctIDFields, versionFields)},
	{
		Name: "person_distinct_id_overrides", Physical: physical.Overrides, Fields: distinctIDFields,
		Merge: &Merge{Keys: []string{"distinct_id"}, Version: "version", Deleted: "is_deleted"},
	},
	{
		Name: "raw_person_distinct_id_overrides", Physical: physical.Overrides,
		Fields: slices.Concat(distinctIDFields, versionFields),
	},
	{
		Name: "groups", Physical: "groups", Fields: groupFields,
		Merge: &Merge{Keys: []string{"index", "key"}, Version: "_timestamp"},
	},
	{Name: "raw_groups", Physical: "groups", Fields: groupFields},
	{Name: physical.QueryLog, Physical: physical.QueryLog, Fields: queryLogFields},
}...))

func makeTables(list []*Table) map[string]*Table {
	m := make(map[string]*Table, len(list))
	for _, t := range list {
		t.index()
		m[t.Name] = t
	}
	return m
}

func (t *Table) index() {
	t.byName = make(map[string]*Field, len(t.Fields))
	for i := range t.Fields {
		t.byName[t.Fields[i].Name] = &t.Fields[i]
	}
}

// Namespace is PostHog's name for where the tables are whose name has no dot: posthog.events is events.
const Namespace = "posthog"

// Root returns the name of a table in FROM without Namespace.
func Root(name string) string {
	if root, ok := strings.CutPrefix(name, Namespace+"."); ok && !strings.Contains(root, ".") {
		return root
	}
	return name
}

// Table finds a table by its name in queries, without Namespace.
func (db *Database) Table(name string) (*Table, bool) {
	if db.Kept != nil && name == db.Kept.Name {
		return db.Kept, true
	}
	if name == eventsTable {
		return events[db.Modifiers.Persons], true
	}
	t, ok := tables[name]
	return t, ok
}

// Stored reports whether ClickHouse has the physical table with the rows.
func (db *Database) Stored(t *Table) bool { return db.keeps(t) || db.layout().tables[t.Physical] }

// TableNames yields the names of the tables that queries can read, in no order.
func (db *Database) TableNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(eventsTable) {
			return
		}
		for name := range tables {
			if !yield(name) {
				return
			}
		}
	}
}

// Field finds a field of a table by name. In addition to its own fields, events has one for each group type, by the type's name, unless another field
// has that name. Fields whose column the physical table lacks do not exist.
func (db *Database) Field(t *Table, name string) (*Field, bool) {
	f, ok := t.byName[name]
	if !ok {
		index, named := db.GroupTypes[name]
		if !named || t.Name != eventsTable {
			return nil, false
		}
		f, ok = t.byName["group_"+strconv.Itoa(index)]
	}
	return f, ok && db.exists(t, f)
}

// Below finds a field of a virtual table.
func (db *Database) Below(t *Table, virtual *Field, name string) (*Field, bool) {
	for i := range virtual.Fields {
		if f := &virtual.Fields[i]; f.Name == name {
			return f, db.exists(t, f)
		}
	}
	return nil, false
}

// exists reports whether the physical table has the column that the field reads. A table that nothing is known about has all columns.
func (db *Database) exists(t *Table, f *Field) bool {
	switch {
	case f.Join != nil, f.Same != "", db.keeps(t):
		return true
	case f.Formula != nil:
		return (f.Formula.needs == "" || db.layout().Has(t.Physical, f.Formula.needs)) &&
			(t.Grouping == nil || db.layout().Has(t.Physical, t.Grouping.Key))
	case f.Fields != nil:
		for i := range f.Fields {
			if db.exists(t, &f.Fields[i]) {
				return true
			}
		}
		return false
	}
	return db.layout().Has(t.Physical, f.PhysicalName())
}

// Star yields the fields of *, in order.
func (db *Database) Star(t *Table) iter.Seq[*Field] {
	return func(yield func(*Field) bool) {
		for i := range t.Fields {
			if f := &t.Fields[i]; !f.Hidden && f.IsColumn() && db.exists(t, f) && !yield(f) {
				return
			}
		}
	}
}

// FieldNames yields every name that Field finds: fields in the order of *, then the names of group types, sorted.
func (db *Database) FieldNames(t *Table) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range t.Fields {
			if f := &t.Fields[i]; db.exists(t, f) && !yield(f.Name) {
				return
			}
		}
		if t.Name != eventsTable {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(db.GroupTypes)) {
			if _, ok := db.Field(t, name); ok && t.byName[name] == nil && !yield(name) {
				return
			}
		}
	}
}

// FieldType returns the type of a field as stored in the physical table: nullable if its column is.
func (db *Database) FieldType(t *Table, f *Field) hogql.Type {
	typ := f.Type
	typ.Nullable = typ.Nullable || db.layout().nullableColumn(t.Physical, f.PhysicalName())
	return typ
}

// StoredType returns the type of the physical column of a field, in ClickHouse's words; empty if unknown.
func (db *Database) StoredType(t *Table, f *Field) string {
	return db.layout().ColumnType(t.Physical, f.PhysicalName())
}

// FieldZone returns the time zone in which the physical column of a field shows its times; empty if it has none.
func (db *Database) FieldZone(t *Table, f *Field) string {
	return db.layout().ColumnZone(t.Physical, f.PhysicalName())
}

// Storage returns where a property below a JSON field is stored.
func (db *Database) Storage(t *Table, f *Field, property string) Storage {
	return db.layout().Property(t.Physical, f.PhysicalName(), property)
}

// NativeJSON reports whether a field is stored in ClickHouse's JSON type.
func (db *Database) NativeJSON(t *Table, f *Field) bool {
	return db.layout().Native(t.Physical, f.PhysicalName())
}
