package materialize

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// usage is a condition on variables: column op value.
type usage struct {
	column hogql.Expr
	shown  hogql.Expr // the column as the author wrote it
	op     hogql.CompareOp
	value  hogql.Expr // with its placeholders
	codes  []string   // of its variables, in text order
	bucket string     // the function that truncates times; empty if values are stored as they are
	zone   string     // in which the column's times are truncated, if it is not the project's
	date   bool       // the column is a date, bounded by days: it is stored as it is
	name   string     // of the column in the table
}

// Reasons, in the words of PostHog (contract: clients.md).
const (
	notInWhere   = "Variable not used in WHERE clause"
	inHaving     = "Variable used in HAVING clause are not supported for materialization."
	inCTEAndTop  = "Variable used in both CTE and top-level query is not yet supported"
	inCTEs       = "Variable used in multiple CTEs is not yet supported"
	withJoins    = "CTE variables with JOINs in the top-level query are not supported for materialization"
	inOr         = "Variables in OR conditions not supported"
	invalidUsage = "Invalid variable usage in WHERE clause."
	inCTE        = "Variable used in a CTE is not supported for materialization"
	noneFound    = "No variables found"
	noMetadata   = "Variable metadata not found"
	badForm      = "Invalid variable placeholder format"
)

// operators maps the comparisons that a variable may be in to the same comparison with its sides swapped.
var operators = map[hogql.CompareOp]hogql.CompareOp{
	hogql.Equals: hogql.Equals, hogql.Less: hogql.Greater, hogql.LessOrEquals: hogql.GreaterOrEquals,
	hogql.Greater: hogql.Less, hogql.GreaterOrEquals: hogql.LessOrEquals,
	hogql.Like: hogql.Like, hogql.NotLike: hogql.NotLike, hogql.ILike: hogql.ILike, hogql.NotILike: hogql.NotILike,
}

// wordsOf maps the other comparisons to PostHog's words.
var wordsOf = map[hogql.CompareOp]string{
	hogql.NotEquals: "!=", hogql.In: "in", hogql.NotIn: "not in", hogql.InCohort: "in cohort", hogql.NotInCohort: "not in cohort",
	hogql.Match: "=~", hogql.NotMatch: "!~", hogql.IMatch: "=~*", hogql.NotIMatch: "!~*",
}

// code returns the variable that a placeholder names; ok is false for a placeholder that uses none, or in another way.
func code(p *hogql.Placeholder) (name string, ok bool) {
	f, isField := p.X.(*hogql.Field)
	if !isField || len(f.Chain) != 2 || f.Chain[0].Text != variablesName {
		return "", false
	}
	return f.Chain[1].Text, true
}

const variablesName = "variables"

// mentions reports whether the expression in braces uses variables.
func mentions(x hogql.Expr) bool {
	found := false
	hogql.WalkExpr(x, func(e hogql.Expr) bool {
		f, ok := e.(*hogql.Field)
		found = found || ok && f.Chain[0].Text == variablesName
		return !found
	})
	return found
}

// variables returns the code names that an expression uses, in text order and with repetitions. ok is false if a placeholder computes something
// from variables.
func variables(e hogql.Expr) (codes []string, ok bool) {
	ok = true
	v := codesVisitor(&codes, &ok)
	v.WalkExpr(e)
	return codes, ok
}

func codesVisitor(codes *[]string, ok *bool) hogql.Visitor {
	computed := func(x hogql.Expr) {
		if mentions(x) {
			*ok = false
		}
	}
	return hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			p, isPlaceholder := e.(*hogql.Placeholder)
			if !isPlaceholder {
				return true
			}
			if name, plain := code(p); plain {
				*codes = append(*codes, name)
			} else {
				computed(p.X)
			}
			return false
		},
		Query: func(q hogql.Query) bool {
			if p, isPlaceholder := q.(*hogql.QueryPlaceholder); isPlaceholder {
				computed(p.X)
				return false
			}
			return true
		},
		Table: func(t hogql.Table) bool {
			if p, isPlaceholder := t.(*hogql.TablePlaceholder); isPlaceholder {
				computed(p.X)
				return false
			}
			return true
		},
	}
}

// checkPlaces refuses queries by the places of their variables alone. The error is a *Refusal.
func checkPlaces(q *query.HogQL, tree hogql.Query) error {
	used, ok := variablesOf(tree)
	switch {
	case !ok:
		return unsupported(badForm)
	case len(used) == 0 && len(q.Variables) > 0:
		return unsupported(noneFound)
	}
	s, isSelect := tree.(*hogql.Select)
	if !isSelect || len(s.With) == 0 {
		return nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(used)))
	if len(names) > maxParts {
		return tooManyParts()
	}
	for _, name := range names {
		if reason := misplaced(s, name); reason == inHaving || reason == inCTEAndTop || reason == inCTEs || reason == withJoins {
			return unsupported("%s", reason)
		}
	}
	return nil
}

// usages splits WHERE into the conditions on variables and the others. The error is a *Refusal.
func usages(q *query.HogQL, tree hogql.Query) (found []*usage, left []hogql.Expr, err error) {
	used, _ := variablesOf(tree)
	s, isSelect := tree.(*hogql.Select)
	if !isSelect {
		if len(used) > 0 {
			return nil, nil, unsupported(notInWhere)
		}
		return nil, nil, nil
	}
	var placed []string
	for _, c := range hogql.Conjuncts(s.Where) {
		u, isUsage := usageOf(c)
		if !isUsage {
			left = append(left, c)
			continue
		}
		found = append(found, u)
		placed = append(placed, u.codes...)
	}
	uses, places := count(used), count(placed)
	for _, name := range used {
		if uses[name] != places[name] {
			return nil, nil, unsupported("%s", misplaced(s, name))
		}
	}
	for _, u := range found {
		if _, supported := operators[u.op]; !supported {
			return nil, nil, unsupported("%s", wrongOperator(u.op))
		}
	}
	known := map[string]bool{}
	for _, v := range q.Variables {
		known[v.CodeName] = true
	}
	for _, name := range used {
		if !known[name] {
			return nil, nil, unsupported(noMetadata)
		}
	}
	return found, left, nil
}

func variablesOf(q hogql.Query) (codes []string, ok bool) {
	ok = true
	v := codesVisitor(&codes, &ok)
	v.WalkQuery(q)
	return codes, ok
}

// count counts how often each name occurs.
func count(names []string) map[string]int {
	out := make(map[string]int, len(names))
	for _, name := range names {
		out[name]++
	}
	return out
}

// usageOf reads a condition on variables: variables on one side, and columns without variables on the other.
func usageOf(e hogql.Expr) (*usage, bool) {
	c, ok := e.(*hogql.Compare)
	if !ok {
		return nil, false
	}
	left, leftPlain := variables(c.Left)
	right, rightPlain := variables(c.Right)
	if !leftPlain || !rightPlain {
		return nil, false
	}
	u := &usage{column: c.Left, op: c.Op, value: c.Right, codes: right}
	if len(left) > 0 {
		u.column, u.value, u.codes = c.Right, c.Left, left
		if turned, known := operators[c.Op]; known {
			if turned == c.Op && c.Op != hogql.Equals { // {variables.x} LIKE column
				return nil, false
			}
			u.op = turned
		}
	}
	return u, (len(left) == 0) != (len(right) == 0) && isColumn(u.column) && isValue(u.value)
}

// isColumn reports whether an expression depends on a single row, so that a column can store it.
func isColumn(e hogql.Expr) bool {
	fields := false
	plain := eachIs(e, func(e hogql.Expr) bool {
		fields = fields || is[*hogql.Field](e)
		return !is[*hogql.Placeholder](e)
	})
	return plain && fields
}

// isValue reports whether an expression is the same for all rows.
func isValue(e hogql.Expr) bool {
	return eachIs(e, func(e hogql.Expr) bool { return !is[*hogql.Field](e) && !is[*hogql.Lambda](e) })
}

// eachIs reports whether all parts of an expression pass a test, and none is volatile or depends on more than one row.
func eachIs(e hogql.Expr, test func(hogql.Expr) bool) bool {
	ok := true
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			c, isCall := e.(*hogql.Call)
			switch {
			case isCall && (isAggregate(c) || isWindow(c) || isVolatile(c) || strings.EqualFold(c.Name, "arrayJoin")),
				is[*hogql.Alias](e), is[*hogql.Star](e), is[*hogql.ColumnsMatching](e), is[*hogql.Subquery](e), !test(e):
				ok = false
			}
			return ok && !is[*hogql.Placeholder](e)
		},
		Query: func(hogql.Query) bool { ok = false; return false },
	}
	v.WalkExpr(e)
	return ok
}

func wrongOperator(op hogql.CompareOp) string {
	return "Unsupported operator " + wordsOf[op] + ", supported: =, >=, >, <, <="
}

// misplaced returns why a variable cannot be materialized that is used outside of its own conditions in WHERE.
func misplaced(s *hogql.Select, name string) string {
	uses := func(e hogql.Expr) bool {
		codes, _ := variables(e)
		return slices.Contains(codes, name)
	}
	having := false
	v := hogql.Visitor{Query: func(q hogql.Query) bool {
		inner, ok := q.(*hogql.Select)
		having = having || ok && inner.Having != nil && uses(inner.Having)
		return !having
	}}
	v.WalkQuery(s)
	if having {
		return inHaving
	}
	var ctes []*hogql.CTE
	for _, c := range s.With {
		codes, _ := variablesOfCTE(c)
		if slices.Contains(codes, name) {
			ctes = append(ctes, c)
		}
	}
	inTop := s.Where != nil && uses(s.Where)
	switch {
	case len(ctes) > 0 && inTop:
		return inCTEAndTop
	case len(ctes) > 1:
		return inCTEs
	case len(ctes) == 1:
		if _, joined := s.From.(*hogql.Join); joined {
			return withJoins
		}
		return inCTE
	case !inTop:
		return notInWhere
	}
	for _, c := range hogql.Conjuncts(s.Where) {
		if !uses(c) {
			continue
		}
		if is[*hogql.Logic](c) {
			return inOr
		}
		if compared, ok := c.(*hogql.Compare); ok && wordsOf[compared.Op] != "" && !isMembership(compared) {
			return wrongOperator(compared.Op)
		}
	}
	if onlyIn(s, uses) {
		return invalidUsage
	}
	return notInWhere
}

// isMembership reports whether the right side of a comparison is a query.
func isMembership(c *hogql.Compare) bool {
	_, ok := c.Right.(*hogql.Subquery)
	return ok
}

// onlyIn reports whether WHERE compares a variable with something.
func onlyIn(s *hogql.Select, uses func(hogql.Expr) bool) bool {
	compared := false
	hogql.WalkExpr(s.Where, func(e hogql.Expr) bool {
		c, ok := e.(*hogql.Compare)
		compared = compared || ok && !isMembership(c) && uses(c)
		return !compared
	})
	return compared
}

func variablesOfCTE(c *hogql.CTE) ([]string, bool) {
	if c.Query != nil {
		return variablesOf(c.Query)
	}
	return variables(c.X)
}
