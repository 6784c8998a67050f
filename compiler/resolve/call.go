package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// call resolves a function call.
func (s *scope) call(c *hogql.Call) resolved.Expr {
	if c.Filter != nil {
		return s.filtered(c)
	}
	if c.Name == schema.MatchesAction {
		return s.matchesAction(c, false)
	}
	f, ok := schema.LookupFunction(c.Name)
	if !ok {
		s.unknownFunction(c)
		return &resolved.Const{Pos: c.Pos}
	}
	args := s.spread(c.Args)
	if f.Rule == schema.RuleCount {
		args = withoutStar(args)
	}
	if c.Params == nil && f.MinParams > 0 {
		s.r.mistake(c.Pos, "Aggregation '%s' requires parameters in addition to arguments", f.Name)
		s.rest(c)
		return &resolved.Const{Pos: c.Pos}
	}
	if wrong := f.CheckArity(len(args), len(c.Params)); wrong != "" {
		s.r.mistake(c.Pos, "%s", wrong)
		s.rest(c)
		return &resolved.Const{Pos: c.Pos}
	}
	if !s.placed(c, f) {
		s.rest(c)
		return &resolved.Const{Pos: c.Pos}
	}
	aggregates := f.Aggregate && c.Over == nil && f.Rule != schema.RuleMacro // a macro's text has its own
	if aggregates {
		s.sawAggregate(f.Name, c.Pos)
		outer := s.aggregate
		s.aggregate = f.Name
		defer func() { s.aggregate = outer }()
	}
	s.r.reads.Volatile = s.r.reads.Volatile || f.Volatile
	return s.rewrite(&calling{Call: c, f: f, args: args})
}

// calling is a call while it is rewritten.
type calling struct {
	*hogql.Call
	f    *schema.Function
	args []hogql.Expr // as written, without the star of count(*)
}

// rewrite applies the rule of the function.
func (s *scope) rewrite(c *calling) resolved.Expr {
	switch c.f.Rule {
	case schema.RuleCompare:
		return s.compare(&hogql.Compare{Pos: c.Pos, Op: c.f.Op, Left: c.args[0], Right: c.args[1]}, false)
	case schema.RuleAnd, schema.RuleOr:
		return s.logic(c.Pos, c.f.Rule == schema.RuleOr, c.args, s.expr)
	case schema.RuleNot:
		return s.negation(c.Pos, c.args[0])
	case schema.RuleToFloat:
		return s.toFloat(c)
	case schema.RuleJSON:
		return s.jsonCall(c)
	case schema.RuleConcat:
		return s.concat(c)
	case schema.RulePlainText:
		return s.plainText(c)
	case schema.RuleToDateTime:
		return s.toDateTimeCall(c)
	case schema.RuleToDate:
		return s.toDate(c)
	case schema.RuleNow:
		return s.now(c)
	case schema.RuleStartOfWeek:
		return s.startOfWeek(c)
	case schema.RuleLagLead:
		return s.lagLead(c)
	case schema.RuleArrayReduce:
		return s.arrayReduce(c)
	case schema.RuleIf:
		return s.ifCall(c)
	case schema.RuleCoalesce:
		return s.coalesce(c)
	case schema.RuleInterval, schema.RuleTruncate:
		return s.unitCall(c)
	case schema.RuleIntervals:
		return s.startOfInterval(c)
	case schema.RuleDateAdd:
		return s.dateAdd(c)
	case schema.RuleDatePart:
		return s.datePart(c)
	case schema.RuleLambda:
		return s.lambdaCall(c)
	case schema.RuleTumble:
		return s.tumble(c)
	case schema.RuleMacro:
		return s.expr(c.f.Expand(c.Pos, c.args, forwardClauses(c.Call)))
	case schema.RuleArithmetic:
		left, right := s.expr(c.args[0]), s.expr(c.args[1])
		s.checkOperands(c.f.Name, [2]hogql.Expr(c.args), [2]resolved.Expr{left, right})
		return s.r.arithmetic(c.Pos, c.f.ClickHouse(), left, right)
	case schema.RuleDecimal:
		return s.decimal(c)
	case schema.RuleTag:
		return s.tag(c)
	case schema.RuleLookup:
		return s.dictionaryLookup(c)
	case schema.RuleBot:
		return s.bot(c)
	case schema.RuleAddress:
		return s.inRange(c)
	case schema.RuleExists:
		return s.exists(c)
	case schema.RuleSurvey:
		return s.surveyResponse(c)
	case schema.RuleSurveySent:
		return s.surveySubmissions(c)
	case schema.RuleFuzzy:
		return s.fuzzy(c)
	case schema.RuleDateTime64:
		return s.dateTime64(c)
	case schema.RuleParseTime:
		return s.parseTime(c)
	case schema.RuleRename, schema.RuleCount:
		if len(c.OrderBy) > 0 {
			return s.ordered(c)
		}
		return s.finish(c, s.arguments(c))
	}
	return s.finish(c, s.arguments(c))
}

// arguments resolves the arguments of a call.
func (s *scope) arguments(c *calling) []resolved.Expr {
	out := make([]resolved.Expr, len(c.args))
	for i, arg := range c.args {
		switch {
		case i == 0 && c.f.KeepsText:
			out[i] = s.asText(arg)
		case c.f.Conditional && i == len(c.args)-1:
			out[i] = s.condition(arg)
		default:
			out[i] = s.expr(arg)
		}
	}
	for i, arg := range out[:min(len(out), c.f.Numbers)] {
		if isText(arg) {
			s.wrongText(diag.IllegalType, c.args[i], "toFloat", "Cannot use text as a number in '%s'", c.f.Name)
		}
	}
	return out
}

// asText resolves an expression; a property is read as text.
func (s *scope) asText(e hogql.Expr) resolved.Expr {
	if isAccess(e) {
		if d := s.document(e); d != nil && len(d.keys) > 0 {
			return s.r.property(d, textValue, e.At())
		}
	}
	return s.expr(e)
}

// plainText resolves _plainText(x): a property as text whatever its declared type, anything else as with toString.
func (s *scope) plainText(c *calling) resolved.Expr {
	if x := c.args[0]; isAccess(x) {
		if d := s.document(x); d != nil && len(d.keys) > 0 {
			return s.r.property(d, textValue, c.Pos)
		}
	}
	x := s.expr(c.args[0])
	return native(hogql.Type{Kind: hogql.String, Nullable: typeOf(x).MayBeNull()}, c.Pos, "toString", x)
}

// number resolves the argument of a conversion to a number. A property stored as a number is read as one, which gives the same result as reading its
// text.
func (s *scope) number(e hogql.Expr) resolved.Expr {
	if isAccess(e) && s.anyForm() {
		if d := s.document(e); d != nil && d.isText(s.r) {
			return s.r.property(d, floatValue, e.At())
		}
	}
	return s.expr(e)
}

// toFloat resolves toFloat(x).
func (s *scope) toFloat(c *calling) resolved.Expr {
	x := s.number(c.args[0])
	if typeOf(x).Kind == hogql.Float {
		return x
	}
	return s.finish(c, []resolved.Expr{x})
}

// finish returns the call of the ClickHouse function with resolved arguments, followed by the constants and the zone.
func (s *scope) finish(c *calling, args []resolved.Expr) resolved.Expr {
	f := c.f
	s.constants(c, args)
	typ := s.r.zonedResult(f, args)
	for i, to := range f.Casts {
		if to != "" && i < len(args) {
			args[i] = native(typeOf(args[i]), args[i].At(), to, args[i])
		}
	}
	if f.Zone > 0 && len(args) == f.Zone-1 {
		args = append(args, literal(s.r.zone))
	}
	for _, extra := range f.Extra {
		args = append(args, literal(extraValue(extra)))
	}
	out := &resolved.Native{Pos: c.Pos, Name: f.ClickHouse(), Args: args, Distinct: c.Distinct, Type: typ}
	for _, p := range c.Params {
		out.Params = append(out.Params, s.parameter(c, p))
	}
	if c.Over != nil {
		out.Over = s.over(c.Over)
	}
	return out
}

// parameter resolves an expression in the first list of f(p)(x).
func (s *scope) parameter(c *calling, p hogql.Expr) resolved.Expr {
	e := s.expr(p)
	if !constant(e) {
		s.r.mistake(p.At(), "The parameters of '%s' must be constant", c.f.Name)
	}
	return e
}

func extraValue(v any) any {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v
}

// placed refuses clauses and combinations in the call that its function does not support.
func (s *scope) placed(c *hogql.Call, f *schema.Function) bool {
	switch {
	case f.WindowOnly && c.Over == nil:
		s.r.mistake(functionAt(c), "Function '%s' needs OVER", f.Name)
	case c.Over != nil && !f.WindowOnly && !f.Aggregate:
		s.r.mistake(functionAt(c), "Function '%s' cannot have OVER", f.Name)
	case f.Rule == schema.RuleMacro && (c.Over != nil || c.Distinct && !f.Aggregate):
		s.r.mistake(functionAt(c), "Function '%s' cannot have OVER or DISTINCT", f.Name)
	case len(c.OrderBy) > 0 && (c.Over != nil || !orderable(f)):
		s.r.mistake(c.OrderBy[0].Pos, "ORDER BY inside the arguments of '%s' is not supported", f.Name)
	case c.Distinct && !f.Aggregate:
		s.r.mistake(functionAt(c), "Function '%s' cannot have DISTINCT", f.Name)
	case c.Over != nil && c.Over.Name.Text != "" && s.window(c.Over.Name.Text) == nil && !s.windowAhead(c.Over.Name.Text):
		s.r.near(c.Over.Name.Text, s.windowNames, c.Over.Name.Pos, "Unknown window: %s", c.Over.Name.Text)
	case c.Over != nil && s.clause != "":
		s.r.mistake(functionAt(c), "Window function '%s' cannot be used in %s", f.Name, s.clause)
	default:
		return true
	}
	return false
}

// windowNames yields the names of the SELECT's windows.
func (s *scope) windowNames(yield func(string) bool) {
	for _, w := range s.windows {
		if !yield(w.Name.Text) {
			return
		}
	}
}

// windowAhead reports whether the SELECT defines a window of this name further on.
func (s *scope) windowAhead(name string) bool {
	s.r.spend.Work(len(s.windows))
	for _, w := range s.windows {
		if w.Name.Text == name {
			return true
		}
	}
	return false
}

// unknownFunction reports an unknown function, and resolves its arguments.
func (s *scope) unknownFunction(c *hogql.Call) {
	defer s.rest(c)
	if s.r.mistakes.Full() {
		return
	}
	e := diag.New(diag.QueryError, c.NamePos, "Unsupported function call '%s(...)'", c.Name)
	if advice := schema.Refused(c.Name); advice != "" {
		e.Advice = advice
	} else if near := schema.Nearest(c.Name, s.r.spend.Hints(schema.FunctionNames())); near != "" {
		e.Hint = near
		e.Detail += ". Perhaps you meant '" + near + "(...)'?"
	}
	s.r.mistakes.Add(e)
}

// rest resolves the arguments of an invalid call, to find the mistakes in them.
func (s *scope) rest(c *hogql.Call) {
	for _, arg := range c.Args {
		if _, star := arg.(*hogql.Star); !star {
			s.expr(arg)
		}
	}
}

// withoutStar removes the star of count(*).
func withoutStar(args []hogql.Expr) []hogql.Expr {
	if len(args) == 1 {
		if star, ok := args[0].(*hogql.Star); ok && len(star.Table) == 0 {
			return nil
		}
	}
	return args
}

// resultType returns the type of a call, given its arguments.
func resultType(f *schema.Function, args []resolved.Expr) hogql.Type {
	res := f.Result
	at := func(n int) hogql.Type {
		if n > len(args) {
			return hogql.Type{}
		}
		return typeOf(args[n-1])
	}
	var typ hogql.Type
	switch {
	case res.Like > 0:
		typ = at(res.Like)
	case res.ElemOf > 0:
		typ = elementType(at(res.ElemOf))
	case res.ArrayOf > 0:
		elem := at(res.ArrayOf)
		typ = hogql.Type{Kind: hogql.ArrayKind, Elem: &elem}
	default:
		typ = hogql.Type{Kind: res.Kind}
		if res.Elem != hogql.Unknown {
			typ.Elem = &hogql.Type{Kind: res.Elem}
		}
	}
	switch res.Nulls {
	case schema.NullsPropagate:
		for _, arg := range args {
			typ.Nullable = typ.Nullable || typeOf(arg).MayBeNull()
		}
	case schema.NullsNever:
		typ.Nullable = false
	case schema.NullsAlways:
		typ.Nullable = true
	case schema.NullsButLast:
		for _, arg := range args[:max(len(args)-1, 0)] {
			typ.Nullable = typ.Nullable || typeOf(arg).MayBeNull()
		}
	}
	return typ
}
