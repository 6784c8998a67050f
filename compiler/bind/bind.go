// Package bind completes a parsed query: parse ─▶ [bind] ─▶ resolve. It replaces {placeholders} by values, variables and filters, and sets the
// limits of the outermost SELECT.
package bind

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Values are what placeholders are replaced by (contract: hogql.md, section 13). They are data: no value is ever parsed as HogQL.
type Values struct {
	// Values are the constants for {name}: nil, bool, numbers, json.Number, string, time.Time, or a []any of these. Code inside the compiler may
	// also put a hogql.Expr, a hogql.Table or a hogql.Query there.
	Values map[string]any
	// Variables are the variables given with the query, by code name.
	Variables map[string]Variable
	// Known reports whether the project has a variable with this code name. By default only those in Variables exist.
	Known func(code string) bool
	// Filters is what {filters} is replaced by; nil for no filters.
	Filters *Filters
	// Types are the declared property types, for the filters.
	Types schema.PropertyTypes
	// Cohorts are the cohorts that filters can name.
	Cohorts schema.Cohorts
	// Now, Location and WeekStart are as in Subject.
	Now       time.Time
	Location  *time.Location
	WeekStart int
	// Clean is as in Subject.
	Clean func(path hogql.Expr) hogql.Expr
	// Spend is the budget of the compile; nil bounds nothing.
	Spend *budget.Budget
}

// Variable is the value of an insight variable: the one given with the query, or its default.
type Variable struct {
	Value  any
	IsNull bool // the variable is NULL, whatever Value is
}

// Placeholders returns q with every placeholder replaced. It reports all placeholders that it cannot replace, as a diag.Errors; these remain in
// the returned query. q is not modified.
func Placeholders(q hogql.Query, v Values) (hogql.Query, error) {
	b := binder{values: v}
	b.walk = hogql.Rewriter{Expr: b.expr, Query: b.query, Table: b.table}
	out := b.query(q)
	return out, b.mistakes.Err()
}

type binder struct {
	values   Values
	walk     hogql.Rewriter
	selects  []*hogql.Select // the SELECTs around the current node, outermost first
	mistakes diag.List
	names    []string // of the values, for messages; collected on first use
}

func (b *binder) query(q hogql.Query) hogql.Query {
	b.values.Spend.Nodes(1)
	switch q := q.(type) {
	case *hogql.Select:
		b.selects = append(b.selects, q)
		out := b.walk.QueryChildren(q)
		b.selects = b.selects[:len(b.selects)-1]
		return out
	case *hogql.SetQuery:
		return b.walk.QueryChildren(q)
	case *hogql.QueryPlaceholder:
		v, ok := b.eval(q.X)
		if !ok {
			return q
		}
		if query, isQuery := v.(hogql.Query); isQuery {
			return query
		}
		b.mistake(q.Pos, "The placeholder {%s} does not stand for a query", hogql.ShortText(q.X))
	}
	return q
}

func (b *binder) table(t hogql.Table) hogql.Table {
	p, ok := t.(*hogql.TablePlaceholder)
	if !ok {
		return b.walk.TableChildren(t)
	}
	v, ok := b.eval(p.X)
	if !ok {
		return t
	}
	switch v := v.(type) {
	case hogql.Query:
		return &hogql.Derived{Pos: p.Pos, Query: v, Alias: p.Alias}
	case hogql.Table:
		if p.Alias.Text == "" {
			return v
		}
		if name, named := v.(*hogql.TableName); named {
			return &hogql.TableName{Pos: p.Pos, Chain: name.Chain, Alias: p.Alias, Columns: name.Columns, Sample: name.Sample}
		}
	}
	b.mistake(p.Pos, "The placeholder {%s} does not stand for a table", hogql.ShortText(p.X))
	return t
}

func (b *binder) expr(e hogql.Expr) hogql.Expr {
	b.values.Spend.Work(1)
	if p, ok := e.(*hogql.Placeholder); ok {
		return b.placeholder(p)
	}
	if c, ok := e.(*hogql.Compare); ok && (b.unbounded(c.Left) || b.unbounded(c.Right)) {
		return &hogql.Const{Pos: c.Pos, Value: true}
	}
	return b.walk.ExprChildren(e)
}

// placeholder returns the replacement for a placeholder in an expression.
func (b *binder) placeholder(p *hogql.Placeholder) hogql.Expr {
	chain := names(p.X)
	if len(chain) > 0 && chain[0] == "filters" && !b.given("filters") {
		return b.filters(p, chain)
	}
	v, ok := b.eval(p.X)
	if !ok {
		return p
	}
	switch v := v.(type) {
	case hogql.Expr:
		return v
	case hogql.Query:
		return &hogql.Subquery{Pos: p.Pos, Query: v}
	}
	c, err := b.toConstant(v)
	if err != nil {
		b.mistake(p.Pos, "The value of placeholder {%s} cannot be used: %v", hogql.ShortText(p.X), err)
		return p
	}
	return &hogql.Const{Pos: p.Pos, Value: c}
}

// given reports whether the request's own values include a name.
func (b *binder) given(name string) bool {
	_, ok := b.values.Values[name]
	return ok
}

// lookup finds the value for a chain of names in braces. If there is none, it notes the mistake.
func (b *binder) lookup(f *hogql.Field) (any, bool) {
	chain := names(f)
	if chain[0] == "variables" && !b.given("variables") {
		if len(chain) == 2 {
			return b.variable(f.Chain[1].Pos, chain[1])
		}
		b.mistake(f.Pos, "Unresolved placeholder: {%s}", strings.Join(chain, "."))
		return nil, false
	}
	var v any = b.values.Values
	for i, name := range chain {
		m, _ := v.(map[string]any)
		next, ok := m[name]
		if !ok {
			b.unresolved(f, i, m)
			return nil, false
		}
		v = next
	}
	return v, true
}

// unresolved notes that the name at index i of a chain is not one of the known names there.
func (b *binder) unresolved(f *hogql.Field, i int, known map[string]any) {
	name := strings.Join(names(f), ".")
	if len(b.values.Values) == 0 {
		b.mistake(f.Pos, "Unresolved placeholder: {%s}", name)
		return
	}
	if b.mistakes.Full() {
		return
	}
	among := b.available()
	b.mistakes.Add(&diag.Error{
		Code: diag.QueryError, Span: f.Chain[i].Pos, Hint: b.nearest(f.Chain[i].Text, maps.Keys(known)),
		Detail: fmt.Sprintf("Placeholder {%s} is not available in this context. You can use the following: %s",
			name, strings.Join(among, ", ")),
	})
}

// maxAvailable is the most names of values in a message.
const maxAvailable = 20

// available lists the names of the values, up to maxAvailable.
func (b *binder) available() []string {
	if b.names == nil {
		b.values.Spend.Nodes(len(b.values.Values))
		b.names = slices.Sorted(maps.Keys(b.values.Values))
		if len(b.names) > maxAvailable {
			b.names = append(b.names[:maxAvailable:maxAvailable], "…")
		}
		for i, name := range b.names {
			b.names[i] = diag.Shown(name)
		}
	}
	return b.names
}

// nearest is schema.Nearest, while the budget has hints left.
func (b *binder) nearest(name string, among iter.Seq[string]) string {
	return schema.Nearest(name, b.values.Spend.Hints(among))
}

// maxNear is the most names in a suggestion.
const maxNear = 3

// nearby returns the names of variables similar to a name, nearest first.
func (b *binder) nearby(name string) []string {
	var out []string
	for len(out) < maxNear {
		near := b.nearest(name, func(yield func(string) bool) {
			for code := range b.values.Variables {
				if !slices.Contains(out, code) && !yield(code) {
					return
				}
			}
		})
		if near == "" {
			break
		}
		out = append(out, near)
	}
	return out
}

func (b *binder) variable(at hogql.Span, code string) (any, bool) {
	v, ok := b.values.Variables[code]
	if !ok {
		if b.mistakes.Full() {
			return nil, false
		}
		detail := fmt.Sprintf("Variable %s is missing from query", code)
		near := b.nearby(code)
		hint := ""
		if len(near) > 0 {
			hint = near[0]
			detail += ". Did you mean: " + strings.Join(near, ", ") + "?"
		}
		b.mistakes.Add(&diag.Error{Code: diag.QueryError, Span: at, Detail: detail, Hint: hint})
		return nil, false
	}
	if b.values.Known != nil && !b.values.Known(code) {
		b.mistake(at, "Variable %s does not exist", code)
		return nil, false
	}
	if v.IsNull {
		return nil, true
	}
	return v.Value, true
}

func (b *binder) mistake(at hogql.Span, format string, args ...any) {
	b.mistakes.Addf(diag.QueryError, at, format, args...)
}

// names returns the parts of a plain chain of names, nil for any other expression.
func names(e hogql.Expr) []string {
	f, ok := e.(*hogql.Field)
	if !ok {
		return nil
	}
	out := make([]string, len(f.Chain))
	for i, name := range f.Chain {
		out[i] = name.Text
	}
	return out
}

// Variables returns the sorted code names of the insight variables that a query uses.
func Variables(q hogql.Query) []string {
	var used []string
	note := func(e hogql.Expr) bool {
		if chain := names(e); len(chain) > 1 && chain[0] == "variables" {
			used = append(used, chain[1])
		}
		return true
	}
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			if p, ok := e.(*hogql.Placeholder); ok {
				hogql.WalkExpr(p.X, note)
			}
			return true
		},
		Query: func(q hogql.Query) bool {
			if p, ok := q.(*hogql.QueryPlaceholder); ok {
				hogql.WalkExpr(p.X, note)
			}
			return true
		},
		Table: func(t hogql.Table) bool {
			if p, ok := t.(*hogql.TablePlaceholder); ok {
				hogql.WalkExpr(p.X, note)
			}
			return true
		},
	}
	v.WalkQuery(q)
	slices.Sort(used)
	return slices.Compact(used)
}
