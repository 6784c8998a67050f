package hogql_test

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

func ExampleParse() {
	q, err := hogql.Parse("select event, count() n from events where properties.plan = {plan} group by event")
	fmt.Println(err)
	fmt.Println(hogql.Print(q))

	_, err = hogql.Parse("select event from where")
	fmt.Println(err)
	// Output:
	// <nil>
	// SELECT event, count() AS n FROM events WHERE properties.plan = {plan} GROUP BY event
	// 18:23: Unexpected 'where', expected a table
}

func ExampleFunctionForm() {
	e, err := hogql.ParseExpr("count() + 1 > 2")
	fmt.Println(err)
	fmt.Println(hogql.FunctionForm(e))
	// Output:
	// <nil>
	// greater(plus(count(), 1), 2)
}

// A function that is called for every expression, children first, fills in placeholders.
func ExampleRewriter_RewriteQuery() {
	q, err := hogql.Parse("select 1 from t where a = {a} and b = {b}")
	if err != nil {
		fmt.Println(err)
		return
	}
	r := hogql.Rewriter{Expr: func(e hogql.Expr) hogql.Expr {
		if hole, ok := e.(*hogql.Placeholder); ok {
			return &hogql.Const{Pos: hole.Pos, Value: hogql.PrintExpr(hole.X)}
		}
		return e
	}}
	fmt.Println(hogql.Print(r.RewriteQuery(q)))
	// Output: SELECT 1 FROM t WHERE a = 'a' AND b = 'b'
}
