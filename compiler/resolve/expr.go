package resolve

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// expr resolves an expression.
func (s *scope) expr(e hogql.Expr) resolved.Expr {
	if !s.r.enter(e.At()) {
		return &resolved.Const{Pos: e.At()}
	}
	defer s.r.leave()
	switch e := e.(type) {
	case *hogql.Const:
		return (*resolved.Const)(e)
	case *hogql.Field:
		return s.field(e)
	case *hogql.Star:
		s.r.mistake(e.Pos, "An asterisk is only allowed in a select list or in count(*)")
	case *hogql.ColumnsMatching:
		s.r.mistake(e.Pos, "COLUMNS is only allowed in a select list, and *COLUMNS among the arguments of a function")
	case *hogql.Call:
		return s.call(e)
	case *hogql.Unary:
		return s.unary(e)
	case *hogql.Binary:
		return s.binary(e)
	case *hogql.Compare:
		return s.compare(e, false)
	case *hogql.Logic:
		return s.logic(e.Pos, e.Or, e.Args, s.expr)
	case *hogql.Between:
		return s.between(e, false)
	case *hogql.Case:
		return s.caseOf(e)
	case *hogql.Cast:
		return s.cast(e)
	case *hogql.Tuple:
		return &resolved.Tuple{Pos: e.Pos, Items: s.list(e.Items)}
	case *hogql.Array:
		return &resolved.Array{Pos: e.Pos, Items: s.list(e.Items)}
	case *hogql.Dict:
		return s.dict(e)
	case *hogql.Lambda:
		s.r.mistake(e.Pos, "A lambda can only be the first argument of a function that takes one, such as arrayMap")
		return &resolved.Const{Pos: e.Pos}
	case *hogql.Index:
		return s.index(e)
	case *hogql.Slice:
		return s.slice(e)
	case *hogql.Element:
		if d := s.document(e); d != nil {
			return s.r.property(d, typedValue, e.Pos)
		}
		return s.member(s.expr(e.X), hogql.Name{Pos: e.Pos, Text: strconv.Itoa(e.N), Index: true}, e.Pos)
	case *hogql.Member:
		if d := s.document(e); d != nil {
			return s.r.property(d, typedValue, e.Pos)
		}
		return s.member(s.expr(e.X), e.Name, e.Pos)
	case *hogql.Interval:
		return s.interval(e)
	case *hogql.Placeholder:
		s.r.mistake(e.Pos, "Unresolved placeholder: %s", hogql.ShortText(e.X))
	case *hogql.Subquery:
		return s.subquery(e)
	case *hogql.Alias:
		return s.aliased(e)
	}
	return &resolved.Const{Pos: e.At()}
}

func (s *scope) list(items []hogql.Expr) []resolved.Expr {
	s.r.spend.Work(len(items))
	out := make([]resolved.Expr, len(items))
	plain := plainConstants(items)
	for i, item := range items {
		if plain {
			out[i] = (*resolved.Const)(item.(*hogql.Const))
		} else {
			out[i] = s.expr(item)
		}
	}
	return out
}

// aliased resolves an alias inside an expression, which is defined where it is written.
func (s *scope) aliased(e *hogql.Alias) resolved.Expr {
	for fr := s.frame; fr != nil; fr = fr.outer {
		a := fr.alias(e.Name.Text)
		if a == nil || a.node != e {
			continue
		}
		if a.state == aliasOpen {
			break
		}
		value := s.define(a)
		if a.grouped {
			s.sawAggregate(a.name, e.Pos)
		}
		return &resolved.Alias{Pos: e.Pos, X: value, Name: a.printed}
	}
	return s.expr(e.X) // refused when the aliases were collected
}

func (s *scope) unary(e *hogql.Unary) resolved.Expr {
	if e.Op == hogql.Not {
		return s.negation(e.Pos, e.X)
	}
	x := s.expr(e.X)
	if c, ok := x.(*resolved.Const); ok {
		switch v := c.Value.(type) {
		case int64:
			return &resolved.Const{Pos: e.Pos, Value: -v}
		case float64:
			return &resolved.Const{Pos: e.Pos, Value: -v}
		}
	}
	return native(typeOf(x), e.Pos, "minus", literal(int64(0)), x)
}

func (s *scope) binary(e *hogql.Binary) resolved.Expr {
	name, left, right := e.Op.Function(), s.expr(e.Left), s.expr(e.Right)
	s.checkOperands(name, [2]hogql.Expr{e.Left, e.Right}, [2]resolved.Expr{left, right})
	return s.r.arithmetic(e.Pos, name, left, right)
}

// arithmetic returns an operation on numbers, times or intervals.
func (r *resolver) arithmetic(at hogql.Span, name string, left, right resolved.Expr) resolved.Expr {
	l, t := typeOf(left), typeOf(right)
	var typ hogql.Type
	switch {
	case name == "divide":
		typ.Kind = hogql.Float
	case l.Kind == hogql.IntervalKind && t.Kind == hogql.IntervalKind:
		typ.Kind = hogql.TupleKind // of intervals in several units
		if l.Kind == hogql.TupleKind {
			typ = l
		}
	case t.Kind == hogql.IntervalKind || t.Kind == hogql.TupleKind && isTime(l.Kind):
		typ = r.afterInterval(l, right)
	case l.Kind == hogql.IntervalKind || l.Kind == hogql.TupleKind && isTime(t.Kind):
		typ = r.afterInterval(t, left)
	case isTime(l.Kind) && isTime(t.Kind):
		typ.Kind = hogql.Int
	case isTime(l.Kind):
		typ = l
	case numeric(l.Kind) && numeric(t.Kind):
		typ.Kind = max(l.Kind, t.Kind, hogql.Int)
	}
	typ.Nullable = l.MayBeNull() || t.MayBeNull()
	return native(typ, at, name, left, right)
}

func isTime(k hogql.Kind) bool { return k == hogql.Date || k == hogql.DateTime }

// afterInterval returns the type of a time after adding an interval: hours turn a date into a time of the server.
func (r *resolver) afterInterval(t hogql.Type, interval resolved.Expr) hogql.Type {
	if n, ok := interval.(*resolved.Native); ok && t.Kind == hogql.Date {
		if f, _ := schema.LookupFunction(n.Name); f == nil || !f.WholeDays {
			t.Kind = hogql.DateTime
			t = r.onServer(t)
		}
	}
	return t
}

func (s *scope) interval(e *hogql.Interval) resolved.Expr {
	n := s.expr(e.N)
	unit, ok := schema.LookupUnit(e.Unit)
	if !ok || unit.Interval == "" {
		s.r.near(e.Unit, schema.UnitNames(func(u schema.Unit) bool { return u.Interval != "" }), e.Pos, "Unknown interval unit: %s", e.Unit)
		return &resolved.Const{Pos: e.Pos}
	}
	return native(hogql.Type{Kind: hogql.IntervalKind, Nullable: typeOf(n).MayBeNull()}, e.Pos, unit.Interval, n)
}

// dict turns a dictionary into a tuple marked as one.
func (s *scope) dict(e *hogql.Dict) resolved.Expr {
	items := []resolved.Expr{literal("__hx_tag"), literal("__hx_obj")}
	for i := range e.Keys {
		items = append(items, s.expr(e.Keys[i]), s.expr(e.Values[i]))
	}
	return &resolved.Tuple{Pos: e.Pos, Items: items}
}

// index resolves x[i]: a key of a JSON document, an array element (from 1), or a map value.
func (s *scope) index(e *hogql.Index) resolved.Expr {
	if d := s.document(e); d != nil {
		return s.r.property(d, typedValue, e.Pos)
	}
	x, i := s.expr(e.X), s.expr(e.Index)
	typ := typeOf(x)
	if c, ok := i.(*resolved.Const); ok && c.Value == int64(0) && typ.Kind != hogql.MapKind {
		s.r.zeroIndex(e.Index.At())
	}
	switch typ.Kind {
	case hogql.TupleKind:
		return native(hogql.Type{}, e.Pos, "tupleElement", x, i)
	case hogql.JSON:
		if !is[*resolved.Const](i) {
			s.r.mistake(e.Index.At(), "The name of a property must be constant: JSONExtractString(properties, name) takes a computed one")
			return &resolved.Const{Pos: e.Pos}
		}
		return fromText(x, []hogql.Name{nameOf(i)}, e.Pos)
	default:
		return native(elementType(typ), e.Pos, "arrayElement", x, i)
	}
}

func nameOf(e resolved.Expr) hogql.Name {
	switch c := e.(*resolved.Const); v := c.Value.(type) {
	case int64:
		return hogql.Name{Text: strconv.FormatInt(v, 10), Index: true}
	case string:
		return hogql.Name{Text: v}
	}
	return hogql.Name{}
}

func elementType(t hogql.Type) hogql.Type {
	if t.Kind == hogql.ArrayKind && t.Elem != nil {
		return *t.Elem
	}
	return hogql.Type{}
}

// zeroIndex notes an index of 0.
func (r *resolver) zeroIndex(at hogql.Span) {
	r.mistake(at, "SQL indexes start from one, not from zero. E.g: array[1]")
}

// member resolves x.1 and x.name on a value.
func (s *scope) member(x resolved.Expr, n hogql.Name, at hogql.Span) resolved.Expr {
	typ := typeOf(x)
	if n.Index && n.Text == "0" {
		s.r.zeroIndex(n.Pos)
	}
	switch typ.Kind {
	case hogql.JSON:
		return fromText(x, []hogql.Name{n}, at)
	case hogql.TupleKind, hogql.Unknown, hogql.ArrayKind, hogql.MapKind, hogql.State:
	default:
		if !isNull(x) { // the replacement for a mistake
			s.r.mistake(nameAt(n, at), "Unable to resolve field: %s: there is nothing below a value that is not JSON, a tuple or a map", n.Text)
		}
		return &resolved.Const{Pos: at}
	}
	if typ.Kind == hogql.MapKind && !n.Index {
		return native(hogql.Type{}, at, "arrayElement", x, literal(n.Text))
	}
	return native(hogql.Type{}, at, "tupleElement", x, keyConst(n))
}

// slice resolves x[from:to], both ends included.
func (s *scope) slice(e *hogql.Slice) resolved.Expr {
	x := s.expr(e.X)
	from := resolved.Expr(literal(int64(1)))
	if e.From != nil {
		from = s.expr(e.From)
		if c, ok := from.(*resolved.Const); ok && c.Value == int64(0) {
			s.r.zeroIndex(e.From.At())
		}
	}
	typ := typeOf(x)
	if e.To == nil {
		return native(typ, e.Pos, "arraySlice", x, from)
	}
	to := s.expr(e.To)
	if length, ok := fixedLength(from, to); ok {
		return native(typ, e.Pos, "arraySlice", x, from, literal(length))
	}
	return s.once(e.Pos, func(first, again []resolved.Expr) resolved.Expr {
		length := s.r.arithmetic(e.Pos, "plus", s.r.arithmetic(e.Pos, "minus", to, again[0]), literal(int64(1)))
		return native(typ, e.Pos, "arraySlice", x, first[0], length)
	}, from)
}

// fixedLength returns the length of a slice whose ends are constants, both counted from 1.
func fixedLength(from, to resolved.Expr) (int64, bool) {
	a, fixedFrom := from.(*resolved.Const)
	b, fixedTo := to.(*resolved.Const)
	if !fixedFrom || !fixedTo {
		return 0, false
	}
	first, ok1 := a.Value.(int64)
	last, ok2 := b.Value.(int64)
	return last - first + 1, ok1 && ok2 && first > 0 && last >= first-1
}

// subquery resolves a query used as a value. Of the outer query, it only sees the CTEs. The type of a time is known, NULL if there is no row. That of
// others is left to ClickHouse, which compares the text of a subquery with a number too.
func (s *scope) subquery(e *hogql.Subquery) resolved.Expr {
	s.r.reads.Beyond = true
	rel := s.r.query(e.Query, s.env)
	out := &resolved.Subquery{Pos: e.Pos, Query: rel.tree}
	if len(rel.columns) == 1 && isTime(rel.columns[0].typ.Kind) {
		out.Type = nullable(rel.columns[0].typ)
	}
	return out
}

// caseOf resolves CASE.
func (s *scope) caseOf(e *hogql.Case) resolved.Expr {
	otherwise := resolved.Expr(literal(nil))
	if e.X == nil {
		args := make([]resolved.Expr, 0, 2*len(e.Whens)+1)
		for _, w := range e.Whens {
			args = append(args, s.condition(w.If), s.expr(w.Then))
		}
		if e.Else != nil {
			otherwise = s.expr(e.Else)
		}
		return choice(e.Pos, append(args, otherwise))
	}
	x := s.expr(e.X)
	var ifs, thens []resolved.Expr
	for _, w := range e.Whens {
		ifs, thens = append(ifs, s.expr(w.If)), append(thens, s.expr(w.Then))
	}
	if e.Else != nil {
		otherwise = s.expr(e.Else)
	}
	if matches(x, ifs) && uniform(thens) {
		typ := common(append(slices.Clone(thens), otherwise)...)
		return native(typ, e.Pos, "transform", x, &resolved.Array{Items: ifs}, &resolved.Array{Items: thens}, otherwise)
	}
	return s.cases(e, x, ifs, append(thens, otherwise))
}

// cases compares the subject of a CASE with one value after another. All are resolved; values has one more, for ELSE.
func (s *scope) cases(e *hogql.Case, x resolved.Expr, ifs, values []resolved.Expr) resolved.Expr {
	choose := func(first, again []resolved.Expr) resolved.Expr {
		args := make([]resolved.Expr, 0, 2*len(ifs)+1)
		for i, w := range e.Whens {
			subject := again[0]
			if i == 0 {
				subject = first[0]
			}
			n := &hogql.Compare{Pos: w.If.At(), Op: hogql.Equals, Left: e.X, Right: w.If}
			left, right := s.resolvedSides(n, subject, ifs[i])
			args = append(args, s.compared(n, left, right, true), values[i])
		}
		return choice(e.Pos, append(args, values[len(ifs)]))
	}
	if s.document(e.X) != nil { // a property, which may be read in another form when compared with a word
		return choose([]resolved.Expr{x}, []resolved.Expr{x})
	}
	return s.once(e.Pos, choose, x)
}

// matches reports whether transform can compare x with the values.
func matches(x resolved.Expr, values []resolved.Expr) bool {
	return uniform(values) && typeOf(x).Kind == typeOf(values[0]).Kind
}

// uniform reports whether values are non-NULL constants of one kind.
func uniform(values []resolved.Expr) bool {
	for _, v := range values {
		c, ok := v.(*resolved.Const)
		if !ok || c.Value == nil || constType(c.Value).Kind != typeOf(values[0]).Kind {
			return false
		}
	}
	return len(values) > 0
}

// choice returns if or multiIf with conditions, values and a final value.
func choice(at hogql.Span, args []resolved.Expr) resolved.Expr {
	values := []resolved.Expr{args[len(args)-1]}
	for i := 1; i < len(args)-1; i += 2 {
		values = append(values, args[i])
	}
	name := "multiIf"
	if len(args) == 3 {
		name = "if"
	}
	return native(common(values...), at, name, args...)
}

// cast resolves CAST(x AS type) and x::type.
func (s *scope) cast(e *hogql.Cast) resolved.Expr {
	x := s.expr(e.X)
	to, ok := hogql.CastTypes[e.Type]
	switch {
	case !ok:
		s.r.near(e.Type, maps.Keys(hogql.CastTypes), cmp.Or(e.TypePos, e.Pos), "Unsupported type cast: %s", e.Type)
		return x
	case to.Kind == hogql.DateTime:
		return s.toDateTime(e.Pos, x, literal(s.r.zone))
	}
	return native(hogql.Type{Kind: to.Kind, Nullable: typeOf(x).MayBeNull()}, e.Pos, to.Function, x)
}
