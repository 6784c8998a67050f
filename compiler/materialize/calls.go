package materialize

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// isAggregate reports whether a call computes one value from many rows.
func isAggregate(c *hogql.Call) bool {
	f, ok := schema.LookupFunction(c.Name)
	return ok && c.Over == nil && (f.Aggregate || f.Rule == schema.RuleMacro && macroAggregates(f))
}

// macroAggregates reports whether the text of a macro contains an aggregate.
func macroAggregates(f *schema.Function) bool {
	x, err := hogql.ParseExpr(f.Macro)
	return err != nil || holdsAggregate(x)
}

// isWindow reports whether the value of a call depends on the rows around it.
func isWindow(c *hogql.Call) bool {
	f, ok := schema.LookupFunction(c.Name)
	return c.Over != nil || ok && f.Windowed()
}

// isVolatile reports whether a call may return a different value each time.
func isVolatile(c *hogql.Call) bool {
	f, ok := schema.LookupFunction(c.Name)
	return ok && f.Volatile
}

// is reports whether an expression is of a type.
func is[T hogql.Expr](e hogql.Expr) bool {
	_, ok := e.(T)
	return ok
}

// holds reports whether an expression contains, outside of subqueries, a call that passes a test.
func holds(e hogql.Expr, test func(*hogql.Call) bool) bool {
	found := false
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			c, ok := e.(*hogql.Call)
			found = found || ok && test(c)
			return !found
		},
		Query: func(hogql.Query) bool { return false },
	}
	v.WalkExpr(e)
	return found
}

func holdsAggregate(e hogql.Expr) bool { return holds(e, isAggregate) }

func holdsWindow(e hogql.Expr) bool { return holds(e, isWindow) }

func holdsArrayJoin(e hogql.Expr) bool {
	return holds(e, func(c *hogql.Call) bool { return strings.EqualFold(c.Name, "arrayJoin") })
}

// The functions that merge stored aggregate values.
const (
	sum  = "sum"
	mean = "avg"
)

// merge says how an aggregate's values for parts of the rows are merged into its value for all rows.
type merge struct {
	function string
	// matched is the condition on the rows that count, for aggregates whose value for no rows must be skipped explicitly; nil for all rows.
	matched hogql.Expr
}

// distinctName returns the name of an aggregate for messages.
func distinctName(c *hogql.Call) string {
	if c.Distinct {
		return c.Name + "Distinct"
	}
	return c.Name
}

// mergeOf returns how the values of an aggregate are merged; false if they cannot be.
func mergeOf(c *hogql.Call) (merge, bool) {
	if c.Distinct || c.Over != nil || len(c.OrderBy) > 0 || c.Params != nil {
		return merge{}, false
	}
	f, ok := schema.LookupFunction(c.Name)
	if !ok || !f.Aggregate {
		return merge{}, false
	}
	name := strings.ToLower(f.Name)
	conditional := f.Conditional && strings.HasSuffix(name, "if")
	base := strings.TrimSuffix(name, "if")
	switch base {
	case "count", "sum":
		return merge{function: sum}, true
	case "countarray", "sumarray", "sumornull", "countordefault", "sumordefault":
		return merge{function: sum}, true
	case "minornull", "maxornull": // NULL for no rows, which min and max skip
		return merge{function: base[:len("min")]}, true
	case "min", "max":
		t := merge{function: base, matched: c.Filter}
		if conditional && len(c.Args) > 0 {
			t.matched = and(t.matched, c.Args[len(c.Args)-1])
		}
		return t, true
	}
	return merge{}, false
}

// and joins two conditions of which either may be nil.
func and(a, b hogql.Expr) hogql.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &hogql.Logic{Args: []hogql.Expr{a, b}}
}

// mergeOfSingle returns a function that maps a single value of an aggregate to itself, and no value to the aggregate's own result for no rows. With it, a
// query without GROUP BY still returns its one row if the table has none.
func mergeOfSingle(c *hogql.Call) (string, bool) {
	if t, ok := mergeOf(c); ok {
		return t.function, true
	}
	f, ok := schema.LookupFunction(c.Name)
	if !ok || c.Over != nil || c.Params != nil || len(c.OrderBy) > 0 {
		return "", false
	}
	switch {
	case c.Distinct && strings.EqualFold(f.Name, "count"):
		return sum, true
	case c.Distinct:
		return "", false
	}
	switch strings.TrimSuffix(f.Name, "If") {
	case "uniq", "uniqExact", "countDistinct":
		return sum, true
	case "avg":
		return mean, true
	}
	return "", false
}
