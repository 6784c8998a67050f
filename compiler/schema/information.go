package schema

import (
	"cmp"
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

// Information returns the rows of a table of system.information_schema, which describe the tables that queries can read; ok is
// false for any other table.
func (db *Database) Information(table string) (rows [][]any, ok bool) {
	switch table {
	case "system.information_schema.tables":
		return db.informationTables(), true
	case "system.information_schema.columns":
		return db.informationColumns(), true
	case "system.information_schema.relationships":
		return db.informationRelationships(), true
	}
	return nil, false
}

// IsInformation reports whether a held table is one of system.information_schema.
func IsInformation(table string) bool { return strings.HasPrefix(table, "system.information_schema.") }

// schemaOf is the schema and the type that a held table is listed under.
func schemaOf(held string) (schema, kind string) {
	switch {
	case IsInformation(held):
		return informationSchema, informationSchema
	case strings.HasPrefix(held, "system."):
		return systemSchema, systemSchema
	}
	return publicSchema, "posthog"
}

func (db *Database) informationTables() [][]any {
	var rows [][]any
	for _, name := range slices.Sorted(db.TableNames()) {
		rows = append(rows, []any{"default", publicSchema, name, "posthog", nil, nil})
	}
	for _, name := range slices.Sorted(HeldNames()) {
		in, kind := schemaOf(name)
		rows = append(rows, []any{"default", in, name, kind, nil, nil})
	}
	return rows
}

func (db *Database) informationColumns() [][]any {
	var rows [][]any
	for _, name := range slices.Sorted(db.TableNames()) {
		t, _ := db.Table(name)
		position := 0
		for i := range t.Fields {
			f, ok := db.Field(t, t.Fields[i].Name)
			if !ok || f.Hidden {
				continue
			}
			position++
			typ, kind := f.Type, "column"
			switch {
			case f.Join != nil || f.Fields != nil:
				typ, kind = hogql.Type{}, "virtual_table"
			case f.Formula != nil || f.Same != "":
				kind = "expression"
			default:
				typ = db.FieldType(t, f)
			}
			rows = append(rows, []any{
				publicSchema, name, f.Name, position, informationType(typ.Kind, kind), number(typ.Nullable), number(typ.Kind == hogql.ArrayKind), kind, nil,
			})
		}
	}
	for _, name := range slices.Sorted(HeldNames()) {
		in, _ := schemaOf(name)
		for i, f := range heldTables[name].Fields {
			rows = append(rows, []any{in, name, f.Name, i + 1, informationType(f.Type.Kind, "column"), number(f.Type.Nullable), 0, "column", nil})
		}
	}
	return rows
}

func (db *Database) informationRelationships() [][]any {
	var rows [][]any
	for _, name := range slices.Sorted(db.TableNames()) {
		t, _ := db.Table(name)
		joins := map[string]*LazyJoin{}
		for i := range t.Fields {
			if f, ok := db.Field(t, t.Fields[i].Name); ok && f.Join != nil && !f.Hidden {
				joins[f.Name] = f.Join
			}
		}
		for _, via := range slices.Sorted(maps.Keys(joins)) {
			j := joins[via]
			kind := "one_to_many"
			if j.Unique {
				kind = "many_to_one"
			}
			rows = append(rows, []any{name, j.Local, j.Table, j.Foreign, kind, via})
		}
	}
	slices.SortStableFunc(rows, func(a, b []any) int { return cmp.Compare(a[0].(string), b[0].(string)) })
	return rows
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// informationType is the name of a type in information_schema.
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
	if field == "expression" {
		return "Expression"
	}
	return "Unknown"
}
