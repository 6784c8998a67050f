package resolve

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// filtered resolves agg(x) FILTER (WHERE c), which is aggIf(x, c).
func (s *scope) filtered(c *hogql.Call) resolved.Expr {
	with := *c
	with.Filter = nil
	f, ok := schema.LookupFunction(c.Name)
	if !ok || !f.Aggregate {
		if ok {
			s.r.mistake(functionAt(c), "Only an aggregation can have FILTER, which '%s' is not", c.Name)
		}
		return s.call(&with)
	}
	if f.Rule == schema.RuleMacro {
		if wrong := f.CheckArity(len(c.Args), len(c.Params)); wrong != "" || !s.placed(&with, f) {
			return s.call(&with)
		}
		return s.expr(f.Expand(c.Pos, c.Args, forwardClauses(c)))
	}
	if f.Rule == schema.RuleCount {
		with.Args = withoutStar(c.Args)
	}
	if n := len(c.Args); f.Conditional && n > 0 {
		with.Args = slices.Clone(c.Args)
		with.Args[n-1] = &hogql.Logic{Pos: c.Filter.At(), Args: []hogql.Expr{c.Args[n-1], c.Filter}}
		return s.call(&with)
	}
	with.Args = s.spread(with.Args)
	name, ok := nameOfIf(f)
	if !ok {
		s.r.mistake(functionAt(c), "FILTER is not supported for '%s'", f.Name)
	}
	if !ok || f.CheckArity(len(with.Args), len(c.Params)) != "" {
		return s.call(&with)
	}
	with.Name = name
	with.Args = append(slices.Clip(with.Args), c.Filter)
	return s.call(&with)
}

// nameOfIf returns the name of an aggregate with a condition, which may be hidden.
func nameOfIf(f *schema.Function) (string, bool) {
	for _, name := range []string{f.Name, f.ClickHouse(), "_" + f.Name} {
		if _, ok := schema.LookupFunction(name + "If"); ok {
			return name + "If", true
		}
	}
	return "", false
}

// forwardClauses returns a function that passes the clauses in a call of an aggregating macro, such as FILTER, on to an aggregation in the macro's
// text.
func forwardClauses(c *hogql.Call) func(*hogql.Call) {
	if !c.Distinct && c.OrderBy == nil && c.Filter == nil {
		return nil
	}
	return func(inner *hogql.Call) {
		if f, known := schema.LookupFunction(inner.Name); known && f.Aggregate {
			inner.Distinct, inner.OrderBy, inner.Filter = c.Distinct, c.OrderBy, c.Filter
		}
	}
}

// orderable reports whether the result of an aggregation depends on the order of its rows in a way that ordered can implement.
func orderable(f *schema.Function) bool {
	return f.Gathers != schema.GathersNothing || f.Rule == schema.RuleMacro && f.Aggregate
}

// ordered resolves groupArray(x ORDER BY y) and similar calls, for which ClickHouse has no syntax: the values are collected together with their
// keys, sorted by them, and extracted.
func (s *scope) ordered(c *calling) resolved.Expr {
	desc := c.OrderBy[0].Desc
	args := s.arguments(c)
	value := typeOf(args[0])
	row := &resolved.LambdaParam{Pos: c.Pos, Name: s.made("row"), Type: hogql.Type{Kind: hogql.TupleKind}}
	part := func(n int, t hogql.Type) resolved.Expr {
		return native(t, c.Pos, "tupleElement", row, literal(int64(n)))
	}
	each := func(body resolved.Expr) resolved.Expr {
		return &resolved.Lambda{Pos: c.Pos, Params: []string{row.Name}, Body: body}
	}

	items := []resolved.Expr{args[0]}
	var keys []resolved.Expr
	for _, o := range c.OrderBy {
		if o.Desc != desc {
			s.r.mistake(o.Pos, "ORDER BY inside '%s' must have one direction", c.f.Name)
		}
		if o.Fill != nil {
			s.r.mistake(o.Pos, "ORDER BY inside '%s' cannot have WITH FILL", c.f.Name)
		}
		key := s.expr(o.X)
		items = append(items, key)
		value := part(len(items), typeOf(key))
		if typeOf(key).MayBeNull() { // by default, NULLs are last in either direction
			test := "isNull"
			if desc != (o.Nulls == hogql.NullsFirst) {
				test = "isNotNull"
			}
			keys = append(keys, native(boolType, o.Pos, test, value))
		}
		keys = append(keys, value)
	}
	by, sort := keys[0], "arraySort"
	if len(keys) > 1 {
		by = &resolved.Tuple{Pos: c.Pos, Items: keys}
	}
	if desc {
		sort = "arrayReverseSort"
	}

	collect := "groupArray"
	if len(args) > 1 {
		collect = "groupArrayIf"
	}
	unknown := hogql.Type{Kind: hogql.ArrayKind}
	out := native(unknown, c.Pos, collect, append([]resolved.Expr{&resolved.Tuple{Pos: c.Pos, Items: items}}, args[1:]...)...)
	elem := value
	taken := part(1, value)
	if value.MayBeNull() { // the aggregation would skip NULLs
		out = native(unknown, c.Pos, "arrayFilter", each(native(boolType, c.Pos, "isNotNull", taken)), out)
		elem.Nullable = false
		taken = native(elem, c.Pos, "assumeNotNull", taken)
	}
	typ := hogql.Type{Kind: hogql.ArrayKind, Elem: &elem}
	out = native(typ, c.Pos, "arrayMap", each(taken), native(unknown, c.Pos, sort, each(by), out))
	if c.Distinct || c.f.Gathers == schema.GathersDistinct {
		out = native(typ, c.Pos, "arrayDistinct", out)
	}
	for _, p := range c.Params { // the most values of the result
		out = native(typ, c.Pos, "arraySlice", out, literal(int64(1)), s.parameter(c, p))
	}
	return out
}
