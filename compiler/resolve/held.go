package resolve

import (
	"encoding/json"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxHeld is the largest size of the rows of one held table as JSON, in bytes.
const maxHeld = 4 << 20

// held resolves a table whose rows are part of the query: a subquery over a constant, which only contains rows of the project.
func (s *scope) held(t *hogql.TableName, table *schema.HeldTable) resolved.Table {
	at := chainAt(t.Chain, t.Pos)
	rows, ok := s.r.heldRows(table, at)
	if !ok {
		s.addSource(&missingSource{name: tableAlias(t)}, t.Pos)
		return nil
	}
	if t.Sample != nil {
		s.r.mistake(t.Sample.Pos, "SAMPLE needs a table that is stored, which %s is not", table.Name)
	}
	const inner, row = "held", "row"
	list := native(hogql.Type{Kind: hogql.ArrayKind}, at, "JSONExtract", literal(rows), literal("Array("+tupleOf(table)+")"))
	one := &resolved.Select{Pos: at, Columns: []resolved.Expr{named(native(hogql.Type{Kind: hogql.TupleKind}, at, "arrayJoin", list), row)}}
	tree := &resolved.Select{Pos: at, From: &resolved.Derived{Query: one, Alias: inner}}
	rel := &relation{tree: tree}
	taken := new(names)
	s.r.spend.Columns(len(table.Fields))
	for i, f := range table.Fields {
		value := resolved.Expr(native(f.Type, at, "tupleElement",
			&resolved.Column{Pos: at, Table: inner, Name: row, Type: hogql.Type{Kind: hogql.TupleKind}}, literal(int64(i+1))))
		switch f.Type.Kind { //nolint:exhaustive // the others are read as they are
		case hogql.Date:
			value = native(f.Type, at, "toDateOrNull", native(stringType, at, "ifNull", value, literal("")))
		case hogql.DateTime:
			value = native(f.Type, at, "parseDateTime64BestEffortOrNull", value, literal(int64(6)), literal(s.r.zone))
		case hogql.UUID:
			value = native(f.Type, at, "toUUIDOrNull", native(stringType, at, "ifNull", value, literal("")))
		}
		printed := taken.unique(f.Name)
		tree.Columns = append(tree.Columns, named(value, printed))
		rel.columns = append(rel.columns, &column{name: f.Name, printed: printed, typ: f.Type, quiet: f.Name == schema.ProjectColumn})
	}
	src := &querySource{
		r: s.r, name: tableAlias(t), alias: s.uniqueTable(tableAlias(t)), rel: rel, names: s.r.columnNames(rel, t.Columns, t.Pos),
	}
	s.addSource(src, nameAt(t.Alias, t.Pos))
	return &resolved.Derived{Query: tree, Alias: src.alias}
}

// heldRows returns the rows of a held table as JSON; false after a mistake.
func (r *resolver) heldRows(table *schema.HeldTable, at hogql.Span) (string, bool) {
	if r.probe != nil { // only the columns are wanted
		return "[]", true
	}
	rows, known := r.db.Information(table.Name)
	if !known {
		if r.db.Held == nil {
			r.mistake(at, "Table `%s` can only be read by a HogQLQuery of the query route", table.Name)
			return "", false
		}
		var err error
		if rows, err = r.db.Held(table.Name); err != nil {
			r.mistakes.Add(diag.New(diag.TableAccessDenied, at, "%s", err))
			return "", false
		}
	}
	if rows == nil {
		rows = [][]any{}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		panic("BUG: rows of " + table.Name + " are no JSON: " + err.Error())
	}
	if len(text) > maxHeld {
		r.mistake(at, "Table `%s` is too large to be queried: its rows take more than %d bytes", table.Name, maxHeld)
		return "", false
	}
	r.spend.Bytes(len(text))
	return string(text), true
}

// tupleOf returns the type of a row for ClickHouse.
func tupleOf(t *schema.HeldTable) string {
	types := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		typ := "String"
		switch f.Type.Kind { //nolint:exhaustive // the others are texts
		case hogql.Int:
			typ = "Int64"
		case hogql.Float:
			typ = "Float64"
		}
		if f.Type.Nullable {
			typ = "Nullable(" + typ + ")"
		}
		types[i] = typ
	}
	return "Tuple(" + strings.Join(types, ", ") + ")"
}
