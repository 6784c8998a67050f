package resolve

import (
	"encoding/json"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxHeld is the largest size of the rows of one held table as JSON, in bytes, with the columns that a query reads.
const maxHeld = 4 << 20

// held resolves a table whose rows are part of the query: a subquery over a constant, which only contains rows of the project.
func (s *scope) held(t *hogql.TableName, table *schema.HeldTable) resolved.Table {
	at := chainAt(t.Chain, t.Pos)
	if !s.r.loadHeld(table, at) {
		s.addSource(&missingSource{name: tableAlias(t)}, t.Pos)
		return nil
	}
	if t.Sample != nil {
		s.r.mistake(t.Sample.Pos, "SAMPLE needs a table that is stored, which %s is not", table.Name)
	}
	const inner, row = "held", "row"
	text := literal("[]")
	list := native(hogql.Type{Kind: hogql.ArrayKind}, at, "JSONExtract", text, literal("Array("+tupleOf(table)+")"))
	one := &resolved.Select{Pos: at, Columns: []resolved.Expr{named(native(hogql.Type{Kind: hogql.TupleKind}, at, "arrayJoin", list), row)}}
	tree := &resolved.Select{Pos: at, From: &resolved.Derived{Query: one, Alias: inner}}
	rel := &relation{tree: tree}
	s.r.held.uses = append(s.r.held.uses, heldUse{table: table, at: at, rel: rel, text: text})
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

// heldTables are the held tables of a query.
type heldTables struct {
	rows  map[string][][]any // by the name of the table
	uses  []heldUse
	texts map[string]string // of rows as JSON, by table and columns
}

// heldUse is one held table in FROM. Its rows are written when all of the query is resolved, with the values of those columns alone that are read.
type heldUse struct {
	table *schema.HeldTable
	at    hogql.Span
	rel   *relation
	text  *resolved.Const
}

// loadHeld gets the rows of a held table, once for the query; false after a mistake.
func (r *resolver) loadHeld(table *schema.HeldTable, at hogql.Span) bool {
	if _, known := r.held.rows[table.Name]; known || r.probe != nil { // a probe only wants the columns
		return true
	}
	rows, known := r.db.Information(table.Name)
	if !known {
		if r.db.Held == nil {
			r.mistake(at, "Table `%s` can only be read by a HogQLQuery of the query route", table.Name)
			return false
		}
		var err error
		if rows, err = r.db.Held(table.Name); err != nil {
			r.mistakes.Add(diag.New(diag.TableAccessDenied, at, "%s", err))
			return false
		}
	}
	if r.held.rows == nil {
		r.held.rows, r.held.texts = map[string][][]any{}, map[string]string{}
	}
	r.held.rows[table.Name] = rows
	return true
}

// fillHeld writes the rows of the held tables, unless the query has mistakes.
func (r *resolver) fillHeld() {
	if r.mistakes.Any() {
		return
	}
	for i := range r.held.uses {
		u := &r.held.uses[i]
		read := make([]byte, len(u.rel.columns))
		for j, c := range u.rel.columns {
			read[j] = '-'
			if c.read {
				read[j] = 'r'
			}
		}
		key := u.table.Name + " " + string(read)
		text, known := r.held.texts[key]
		if !known {
			var ok bool
			if text, ok = u.rows(r.held.rows[u.table.Name]); !ok {
				r.mistake(u.at, "Table `%s` is too large to be queried: the columns that are read take more than %d bytes", u.table.Name, maxHeld)
				return
			}
			r.held.texts[key] = text
		}
		u.text.Value = text
		r.spend.Bytes(len(text))
	}
}

// rows returns the rows as JSON; false if they are too large.
func (u *heldUse) rows(rows [][]any) (string, bool) {
	text := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '[')
		for j, v := range row {
			if j > 0 {
				text = append(text, ',')
			}
			if u.rel.columns[j].read {
				text = appendHeld(text, v)
			} else {
				text = append(text, unread(u.table.Fields[j].Type)...)
			}
			if len(text) > maxHeld {
				return "", false
			}
		}
		text = append(text, ']')
	}
	return string(append(text, ']')), true
}

// appendHeld appends a value as JSON.
func appendHeld(dst []byte, v any) []byte {
	if text, ok := v.([]byte); ok {
		v = string(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a value of a held table is no JSON: " + err.Error())
	}
	return append(dst, text...)
}

// unread returns the JSON of a value that stands for those of a column that is not read.
func unread(t hogql.Type) string {
	switch {
	case t.Nullable:
		return "null"
	case t.Kind == hogql.Int, t.Kind == hogql.Float:
		return "0"
	}
	return `""`
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
