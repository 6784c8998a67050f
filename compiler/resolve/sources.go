package resolve

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// labels are the names of columns, which may repeat.
type labels struct {
	names   []string
	aliased []bool         // which of the names the query gives
	byName  map[string]int // the column that each name means; built when a name is looked up among many
}

// find returns the index of the column that a name means. Of several columns with the name, that is the first whose name is an alias, else the last.
func (l *labels) find(name string) (int, bool) {
	if len(l.names) <= indexAbove {
		last := -1
		for i, n := range l.names {
			if n == name && (last < 0 || !l.aliased[last]) {
				last = i
			}
		}
		return last, last >= 0
	}
	if l.byName == nil {
		l.byName = make(map[string]int, len(l.names))
		for i, n := range l.names {
			if last, known := l.byName[n]; !known || !l.aliased[last] {
				l.byName[n] = i
			}
		}
	}
	i, ok := l.byName[name]
	return i, ok
}

// querySource is a subquery or a CTE in FROM.
type querySource struct {
	r     *resolver
	name  string // in the query; empty for a subquery without a name
	alias string // in the resolved tree
	rel   *relation
	names *labels // of the columns of rel, as named by this use
}

func (q *querySource) called() string { return q.name }

func (q *querySource) find(name string) (place, bool) {
	i, ok := q.names.find(name)
	if !ok {
		return place{}, false
	}
	return place{name: name, query: q, index: i}, true
}

func (q *querySource) columns() []place {
	q.r.spend.Work(len(q.names.names))
	out := make([]place, 0, len(q.names.names))
	for i, name := range q.names.names {
		if !q.rel.columns[i].quiet {
			out = append(out, place{name: name, query: q, index: i})
		}
	}
	return out
}

func (q *querySource) each(yield func(string) bool) {
	for _, name := range q.names.names {
		if !yield(name) {
			return
		}
	}
}

// column reads a column of the subquery.
func (q *querySource) column(i int, at hogql.Span) *resolved.Column {
	c := q.rel.columns[i]
	c.read = true
	return &resolved.Column{Pos: at, Table: q.alias, Name: c.printed, Type: c.typ}
}

// numbersSource is numbers(n) in FROM.
type numbersSource struct{ name, alias string }

const numbersColumn = "number"

func (n *numbersSource) called() string { return n.name }

func (n *numbersSource) find(name string) (place, bool) {
	return place{name: name, numbers: n}, name == numbersColumn
}

func (n *numbersSource) columns() []place { return []place{{name: numbersColumn, numbers: n}} }

func (n *numbersSource) each(yield func(string) bool) { yield(numbersColumn) }

// missingSource replaces a table that does not exist, so that its columns are not reported as well.
type missingSource struct{ name string }

func (m *missingSource) called() string { return m.name }

func (m *missingSource) find(name string) (place, bool) {
	return place{name: name, missing: true}, true
}

func (m *missingSource) columns() []place { return nil }

func (m *missingSource) each(func(string) bool) {}

// value reads the column at the place, without converting it to the project's zone.
func (p place) value(at hogql.Span) resolved.Expr {
	switch {
	case p.query != nil:
		return p.query.column(p.index, at)
	case p.numbers != nil:
		return &resolved.Column{Pos: at, Table: p.numbers.alias, Name: numbersColumn, Type: intType}
	case p.table != nil:
		return p.fieldValue(at)
	}
	return &resolved.Const{Pos: at} // a column of a missing table
}

// zone returns the time zone of a time at the place; empty if unknown.
func (p place) zone(r *resolver) string {
	switch {
	case p.table == nil: // computed by a query, in the project's zone
		return r.zone
	case p.field.Same != "":
		return p.same().zone(r)
	case p.field.Formula != nil: // computed from times in the project's zone
		return r.zone
	}
	return r.db.FieldZone(p.table.table, p.field)
}

// fieldValue reads a table field that is a column.
func (p place) fieldValue(at hogql.Span) resolved.Expr {
	t, f := p.table, p.field
	switch {
	case f.Same != "":
		return p.same().fieldValue(at)
	case f.Formula != nil:
		return t.computed(f)
	case f.Override != nil:
		return t.overridden(f)
	}
	return t.column(f, f.Key(), f.Name, func(scanned string) resolved.Expr {
		return t.typed(f, &resolved.Column{Pos: at, Table: scanned, Name: f.PhysicalName(), Type: t.r.db.FieldType(t.table, f)})
	})
}

// typed converts a column to the type of its field in queries, if functions refuse the stored type: an Int8 is not a condition, and an Enum is not a
// text.
func (t *tableSource) typed(f *schema.Field, c *resolved.Column) resolved.Expr {
	stored := t.r.db.StoredType(t.table, f)
	switch {
	case f.Type.Kind == hogql.Bool && strings.HasPrefix(stored, "Int"):
		return native(c.Type, c.Pos, "notEquals", c, literal(int64(0)))
	case f.Type.Kind == hogql.String && strings.HasPrefix(stored, "Enum"):
		return native(c.Type, c.Pos, "toString", c)
	}
	return c
}

// same returns the place of the field that this one is an alias of.
func (p place) same() place {
	head, rest, deeper := strings.Cut(p.field.Same, ".")
	out, ok := p.table.find(head)
	for ok && deeper {
		head, rest, deeper = strings.Cut(rest, ".")
		out, ok = out.below(head)
	}
	if !ok {
		panic("BUG: there is no " + p.field.Same + " in " + p.table.table.Name)
	}
	return out
}

// below finds a name below a table that is part of another.
func (p place) below(name string) (place, bool) {
	if p.field.Same != "" {
		return p.same().below(name)
	}
	if j := p.field.Join; j != nil {
		return p.table.join(j).find(name)
	}
	f, ok := p.table.r.db.Below(p.table.table, p.field, name)
	return place{name: name, table: p.table, field: f, part: p.field}, ok
}

// fieldNames yields the names that below knows.
func (p place) fieldNames(yield func(string) bool) {
	if p.field.Same != "" {
		p.same().fieldNames(yield)
		return
	}
	if j := p.field.Join; j != nil {
		p.table.join(j).each(yield)
		return
	}
	for i := range p.field.Fields {
		if !yield(p.field.Fields[i].Name) {
			return
		}
	}
}

// example returns the name of one column below a table that is part of another.
func (p place) example() string {
	for name := range p.fieldNames {
		return p.name + "." + name
	}
	return p.name
}

// overridden returns the value of a field that is overridden by another table's row, if there is one. A row without a partner has the default
// value, which is empty.
func (t *tableSource) overridden(f *schema.Field) resolved.Expr {
	t.join(f.Override)
	key := f.Key() + "\x00" + f.Override.Name
	return t.liftColumn(key, t.whole.column(key, f.Name, t.alias, func() resolved.Expr { return t.joinKey(f.Name) }))
}

// joinKey returns the value of a field among the tables joined in whole.
func (t *tableSource) joinKey(field string) resolved.Expr {
	f, _ := t.r.db.Field(t.table, field)
	if f.Override == nil {
		return t.rowField(field)
	}
	own, theirs := t.rowField(field), t.join(f.Override).shownField(field)
	given := native(boolType, hogql.Span{}, "notEmpty", theirs)
	return native(own.Type, hogql.Span{}, "if", given, theirs, own)
}
