package resolve

import (
	"fmt"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The rules on NULL (contract: hogql.md, section 10). A comparison is only wrapped as far as its sides may be NULL, and not at all where a NULL counts
// as false anyway, as in WHERE: ClickHouse can look up a bare comparison in its index.

// comparison is the function for a comparison, and the results if exactly one side, or if both sides, are NULL.
type comparison struct {
	name string
	not  bool // negate the function
	fold bool // the pattern ignores case
	one  bool
	both bool
}

var comparisons = map[hogql.CompareOp]comparison{
	hogql.Equals:          {name: "equals", both: true},
	hogql.NotEquals:       {name: "notEquals", one: true},
	hogql.Less:            {name: "less"},
	hogql.LessOrEquals:    {name: "lessOrEquals"},
	hogql.Greater:         {name: "greater"},
	hogql.GreaterOrEquals: {name: "greaterOrEquals"},
	hogql.Like:            {name: "like", both: true},
	hogql.NotLike:         {name: "notLike", one: true},
	hogql.ILike:           {name: "ilike", both: true},
	hogql.NotILike:        {name: "notILike", one: true},
	hogql.Match:           {name: "match", both: true},
	hogql.NotMatch:        {name: "match", not: true, one: true},
	hogql.IMatch:          {name: "match", fold: true, both: true},
	hogql.NotIMatch:       {name: "match", fold: true, not: true, one: true},
}

// compare resolves a comparison. With filter, the result may be NULL instead of false.
func (s *scope) compare(n *hogql.Compare, filter bool) resolved.Expr {
	if n.Op == hogql.InCohort || n.Op == hogql.NotInCohort {
		return s.inCohort(n)
	}
	if _, ok := comparisons[n.Op]; !ok {
		return s.membership(n)
	}
	left, right := s.sides(n)
	return s.compared(n, left, right, filter)
}

// compared returns a comparison of resolved sides. It does not handle membership tests.
func (s *scope) compared(n *hogql.Compare, left, right resolved.Expr, filter bool) resolved.Expr {
	c := comparisons[n.Op]
	left, right = s.r.comparands(left, right)
	s.checkText(n.Left, left, right)
	s.checkText(n.Right, right, left)
	switch {
	case isNull(left) && isNull(right):
		return truthOf(c.both, n.Pos)
	case isNull(left):
		return c.withNull(n.Pos, right)
	case isNull(right):
		return c.withNull(n.Pos, left)
	}
	l, r := typeOf(left).MayBeNull(), typeOf(right).MayBeNull()
	bothCount := l && r && (c.one || c.both) // so that two NULLs differ from one
	switch {
	case !l && !r, filter && s.clause == onClause, filter && !c.one && !bothCount:
		return c.call(n.Pos, left, right, l || r)
	case bothCount:
		return s.once(n.Pos, func(first, again []resolved.Expr) resolved.Expr {
			return native(boolType, n.Pos, "ifNull", c.call(n.Pos, first[0], first[1], true), c.ofNulls(n.Pos, again))
		}, left, right)
	}
	return native(boolType, n.Pos, "ifNull", c.call(n.Pos, left, right, true), truthOf(c.one, n.Pos))
}

// ofNulls returns the result of a comparison if at least one of its values is NULL.
func (c comparison) ofNulls(at hogql.Span, sides []resolved.Expr) resolved.Expr {
	test := "isNull"
	if c.one {
		test = "isNotNull"
	}
	return &resolved.Logic{Pos: at, Or: c.one, Args: []resolved.Expr{native(boolType, at, test, sides[0]), native(boolType, at, test, sides[1])}}
}

// withNull returns the comparison of a value with the constant NULL.
func (c comparison) withNull(at hogql.Span, value resolved.Expr) resolved.Expr {
	switch {
	case c.both:
		return native(boolType, at, "isNull", value)
	case c.one:
		return native(boolType, at, "isNotNull", value)
	}
	return truthOf(false, at)
}

func (c comparison) call(at hogql.Span, left, right resolved.Expr, null bool) resolved.Expr {
	typ := hogql.Type{Kind: hogql.Bool, Nullable: null}
	if c.fold {
		if s, ok := text(right); ok {
			right = &resolved.Const{Pos: right.At(), Value: "(?i)" + s}
		} else {
			right = native(typeOf(right), right.At(), "concat", literal("(?i)"), right)
		}
	}
	e := native(typ, at, c.name, left, right)
	if c.not {
		return native(typ, at, "not", e)
	}
	return e
}

// truthOf returns a constant condition.
func truthOf(b bool, at hogql.Span) resolved.Expr { return &resolved.Const{Pos: at, Value: b} }

// sides resolves the two sides of a comparison. A property compared with a word is read only as a string: no other property value has the text of a
// word.
func (s *scope) sides(n *hogql.Compare) (left, right resolved.Expr) {
	if left, right, ok := s.propertyAndWord(n); ok {
		return left, right
	}
	return s.expr(n.Left), s.expr(n.Right)
}

// resolvedSides is sides for resolved sides: neither is resolved again, except for a property compared with a word.
func (s *scope) resolvedSides(n *hogql.Compare, left, right resolved.Expr) (resolved.Expr, resolved.Expr) {
	if l, r, ok := s.propertyAndWord(n); ok {
		return l, r
	}
	return left, right
}

// propertyAndWord returns the sides of an equality test between a property and a word.
func (s *scope) propertyAndWord(n *hogql.Compare) (left, right resolved.Expr, ok bool) {
	if n.Op != hogql.Equals && n.Op != hogql.NotEquals {
		return nil, nil, false
	}
	if isWord(n.Right) {
		if e := s.stringProperty(n.Left); e != nil {
			return e, s.expr(n.Right), true
		}
	}
	if isWord(n.Left) {
		if e := s.stringProperty(n.Right); e != nil {
			return s.expr(n.Left), e, true
		}
	}
	return nil, nil, false
}

// stringProperty reads a property of type String as a string only; nil if e is something else.
func (s *scope) stringProperty(e hogql.Expr) resolved.Expr {
	if !isAccess(e) || !s.anyForm() {
		return nil
	}
	d := s.document(e)
	if d == nil || !d.isText(s.r) {
		return nil
	}
	return s.r.property(d, stringValue, e.At())
}

// isText reports whether a property is read as text.
func (p *property) isText(r *resolver) bool {
	if len(p.keys) == 0 {
		return false
	}
	typ := r.definition(p)
	return typ != schema.NumericProperty && typ != schema.BooleanProperty && typ != schema.DateTimeProperty
}

// isWord reports whether an expression is a text that cannot be the text of a JSON value other than a string, and is neither of the two texts that a
// column for a property may store for a missing value.
func isWord(e hogql.Expr) bool {
	s, ok := writtenText(e)
	if !ok || s == "" {
		return false
	}
	switch s {
	case "true", "false", "null":
		return false
	}
	return !strings.ContainsRune("0123456789-[{+.", rune(s[0])) && !strings.EqualFold(s, "nan") && !strings.EqualFold(s, "inf")
}

// checkText refuses to compare a text with a number: ClickHouse cannot, and it is easy to mend. It reports whether it did.
func (s *scope) checkText(side hogql.Expr, value, other resolved.Expr) bool {
	if c, ok := other.(*resolved.Const); ok && isText(value) {
		switch kind := constType(c.Value).Kind; {
		case kind == hogql.Bool:
			s.wrongText(diag.QueryError, side, "toBool", "Cannot compare text with a boolean")
			return true
		case numeric(kind):
			s.wrongText(diag.QueryError, side, "toFloat", "Cannot compare text with a number")
			return true
		}
	}
	return false
}

// isText reports whether a value is text from a column or a function.
func isText(value resolved.Expr) bool {
	return typeOf(value).Kind == hogql.String && !is[*resolved.Const](value)
}

// wrongText notes that a text is used where another type is needed, and the conversion that mends it.
func (s *scope) wrongText(code diag.Code, side hogql.Expr, conversion, format string, args ...any) {
	if s.r.mistakes.Full() {
		return
	}
	written, whole := hogql.Excerpt(side)
	mended := conversion + "(" + written + ")"
	e := diag.New(code, side.At(), "%s: write %s", fmt.Sprintf(format, args...), mended)
	if whole {
		e.Fix = mended
	}
	s.r.mistakes.Add(e)
}

// checkOperands refuses text as an operand of arithmetic if the other operand is a number or text.
func (s *scope) checkOperands(name string, sides [2]hogql.Expr, values [2]resolved.Expr) {
	for i, value := range values {
		other := typeOf(values[1-i]).Kind
		if isText(value) && (numeric(other) || other == hogql.String) {
			s.wrongText(diag.IllegalType, sides[i], "toFloat", "Cannot use text as a number in '%s'", name)
		}
	}
}

// condition resolves an expression where a NULL counts as false.
func (s *scope) condition(e hogql.Expr) resolved.Expr {
	if !s.r.enter(e.At()) {
		return &resolved.Const{Pos: e.At()}
	}
	defer s.r.leave()
	if n, ok := e.(*hogql.Logic); ok {
		return s.logic(n.Pos, n.Or, n.Args, s.condition)
	}
	if n, ok := e.(*hogql.Compare); ok {
		return s.compare(n, true)
	}
	if n, ok := e.(*hogql.Between); ok {
		return s.between(n, true)
	}
	if n, ok := e.(*hogql.Call); ok {
		switch f, _ := schema.LookupFunction(n.Name); {
		case n.Name == schema.MatchesAction && n.Filter == nil:
			return s.matchesAction(n, true)
		case f == nil:
		case f.Rule == schema.RuleCompare && len(n.Args) == 2:
			return s.compare(&hogql.Compare{Pos: n.Pos, Op: f.Op, Left: n.Args[0], Right: n.Args[1]}, true)
		case (f.Rule == schema.RuleAnd || f.Rule == schema.RuleOr) && len(n.Args) > 1:
			return s.logic(n.Pos, f.Rule == schema.RuleOr, n.Args, s.condition)
		}
	}
	return s.expr(e)
}

// logic resolves AND or OR, and folds constants.
func (s *scope) logic(at hogql.Span, or bool, args []hogql.Expr, each func(hogql.Expr) resolved.Expr) resolved.Expr {
	out := &resolved.Logic{Pos: at, Or: or, Args: make([]resolved.Expr, 0, len(args))}
	decided := false
	for _, arg := range args {
		e := each(arg)
		if value, known := truth(e); known {
			decided = decided || value == or
			continue
		}
		if inner, ok := e.(*resolved.Logic); ok && inner.Or == or {
			out.Args = append(out.Args, inner.Args...)
			continue
		}
		out.Args = append(out.Args, e)
	}
	switch {
	case decided:
		return truthOf(or, at)
	case len(out.Args) == 0:
		return truthOf(!or, at)
	case len(out.Args) == 1:
		return out.Args[0]
	}
	return out
}

// negation resolves NOT. A negated equality test becomes the opposite test, also for NULL.
func (s *scope) negation(at hogql.Span, x hogql.Expr) resolved.Expr {
	if c, ok := x.(*hogql.Compare); ok {
		if op, ok := opposites[c.Op]; ok {
			return s.compare(&hogql.Compare{Pos: at, Op: op, Left: c.Left, Right: c.Right}, false)
		}
	}
	e := s.expr(x)
	if value, known := truth(e); known {
		return truthOf(!value, at)
	}
	return native(hogql.Type{Kind: hogql.Bool, Nullable: typeOf(e).MayBeNull()}, at, "not", e)
}

var opposites = map[hogql.CompareOp]hogql.CompareOp{
	hogql.Equals: hogql.NotEquals, hogql.NotEquals: hogql.Equals,
	hogql.In: hogql.NotIn, hogql.NotIn: hogql.In,
	hogql.InCohort: hogql.NotInCohort, hogql.NotInCohort: hogql.InCohort,
	hogql.Like: hogql.NotLike, hogql.NotLike: hogql.Like,
	hogql.ILike: hogql.NotILike, hogql.NotILike: hogql.ILike,
	hogql.Match: hogql.NotMatch, hogql.NotMatch: hogql.Match,
	hogql.IMatch: hogql.NotIMatch, hogql.NotIMatch: hogql.IMatch,
}

// between resolves BETWEEN, which is false if any operand is NULL, negated or not.
func (s *scope) between(n *hogql.Between, filter bool) resolved.Expr {
	x, low, high := s.expr(n.X), s.expr(n.Low), s.expr(n.High)
	if isNull(x) || isNull(low) || isNull(high) {
		return truthOf(false, n.Pos)
	}
	if !s.checkText(n.X, x, low) {
		s.checkText(n.X, x, high)
	}
	switch {
	case typeOf(low).Kind == hogql.DateTime:
		x = s.r.instant(x, s.r.zoneOf(typeOf(low)))
	case typeOf(high).Kind == hogql.DateTime:
		x = s.r.instant(x, s.r.zoneOf(typeOf(high)))
	case dateAndClock(x, low), dateAndClock(x, high):
		x = s.r.instant(x, s.r.zone)
	}
	fromX, low := s.r.comparands(x, low)
	toX, high := s.r.comparands(x, high)
	if fromX != toX { // only one of the bounds can be compared as a time
		fromX = x
	}
	null := typeOf(x).MayBeNull() || typeOf(low).MayBeNull() || typeOf(high).MayBeNull()
	typ := hogql.Type{Kind: hogql.Bool, Nullable: null}
	var e resolved.Expr
	switch {
	case !n.Not:
		e = s.once(n.Pos, func(first, again []resolved.Expr) resolved.Expr {
			return both(native(typ, n.Pos, "greaterOrEquals", first[0], low), native(typ, n.Pos, "lessOrEquals", again[0], high))
		}, fromX)
	case typeOf(low).MayBeNull() || typeOf(high).MayBeNull():
		e = s.once(n.Pos, func(first, again []resolved.Expr) resolved.Expr {
			return &resolved.Logic{Pos: n.Pos, Args: []resolved.Expr{
				outside(n.Pos, typ, first[0], first[1], again[0], first[2]),
				native(boolType, n.Pos, "isNotNull", again[1]), native(boolType, n.Pos, "isNotNull", again[2]),
			}}
		}, fromX, low, high)
	default:
		e = s.once(n.Pos, func(first, again []resolved.Expr) resolved.Expr {
			return outside(n.Pos, typ, first[0], low, again[0], high)
		}, fromX)
	}
	if null && !filter {
		return native(boolType, n.Pos, "ifNull", e, truthOf(false, n.Pos))
	}
	return e
}

// outside reports whether a value is less than one bound or greater than another.
func outside(at hogql.Span, typ hogql.Type, x, low, again, high resolved.Expr) resolved.Expr {
	return &resolved.Logic{Pos: at, Or: true, Args: []resolved.Expr{
		native(typ, at, "less", x, low), native(typ, at, "greater", again, high),
	}}
}
