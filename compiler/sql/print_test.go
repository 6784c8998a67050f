package sql_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

var database = &schema.Database{Project: 7, Location: mustZone("Europe/Berlin")}

func mustZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

func c(v any) resolved.Expr { return &resolved.Const{Value: v} }

func col(name string) resolved.Expr { return &resolved.Column{Name: name} }

func of(table, name string) resolved.Expr { return &resolved.Column{Table: table, Name: name} }

func fn(name string, args ...resolved.Expr) *resolved.Native {
	return &resolved.Native{Name: name, Args: args}
}

func as(e resolved.Expr, name string) *resolved.Alias {
	return &resolved.Alias{X: e, Name: name}
}

func guard() resolved.Expr { return fn("equals", col("team_id"), c(int64(7))) }

func events() *resolved.Scan { return &resolved.Scan{Table: "events", Guard: guard()} }

func derived(alias string, q resolved.Query) *resolved.Derived {
	return &resolved.Derived{Query: q, Alias: alias}
}

func from(t resolved.Table, columns ...resolved.Expr) *resolved.Select {
	return &resolved.Select{Columns: columns, From: t}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	one := &resolved.Select{Columns: []resolved.Expr{c(int64(1))}}
	where := func(e resolved.Expr) *resolved.Select {
		s := from(events(), col("event"))
		s.Where = e
		return s
	}
	a := derived("a", from(events(), col("event")))
	tests := []struct {
		name   string
		query  resolved.Query
		want   string
		params []sql.Param
	}{
		{"guard alone", from(events(), col("event")), "SELECT event FROM events WHERE team_id = 7", nil},
		{
			"guard before an OR", where(&resolved.Logic{Or: true, Args: []resolved.Expr{col("a"), col("b")}}),
			"SELECT event FROM events WHERE team_id = 7 AND (a OR b)", nil,
		},
		{
			"strings are bound, equal ones once",
			where(&resolved.Logic{Args: []resolved.Expr{fn("equals", col("a"), c("' OR 1=1 --")), fn("notEquals", col("b"), c("' OR 1=1 --"))}}),
			"SELECT event FROM events WHERE team_id = 7 AND a = {p0:String} AND b != {p0:String}",
			[]sql.Param{{"p0", "String", "' OR 1=1 --"}},
		},
		{
			"a list of strings is one parameter", where(fn("in", col("a"), c([]any{"x", `it's\`, nil}))),
			"SELECT event FROM events WHERE team_id = 7 AND a IN {p0:Array(Nullable(String))}",
			[]sql.Param{{"p0", "Array(Nullable(String))", `['x','it\'s\\',NULL]`}},
		},
		{
			"a short list of numbers is written", where(fn("notIn", col("a"), c([]any{int64(1), 2.5}))),
			"SELECT event FROM events WHERE team_id = 7 AND a NOT IN (1, 2.5)", nil,
		},
		{"an empty list", where(fn("in", col("a"), c([]any{}))), "SELECT event FROM events WHERE team_id = 7 AND a IN ()", nil},
		{
			"one constant in IN", where(fn("in", col("a"), c("x"))),
			"SELECT event FROM events WHERE team_id = 7 AND a IN ({p0:String})",
			[]sql.Param{{"p0", "String", "x"}},
		},
		{
			"numbers, booleans and NULL by type",
			&resolved.Select{Columns: []resolved.Expr{
				c(nil), c(true), c(false), c(int64(math.MinInt64)), c(uint64(math.MaxUint64)), c(5.0), c(-0.1), c(1e21),
				c(math.Inf(1)), c(math.Inf(-1)), c(math.NaN()),
			}},
			"SELECT NULL, 1, 0, -9223372036854775808, 18446744073709551615, 5.0, -0.1, 1e+21, inf, -inf, nan FROM (SELECT 1)", nil,
		},
		{
			"a time by the wall clock of its zone", &resolved.Select{Columns: []resolved.Expr{c(time.Date(2024, 7, 1, 10, 0, 0, 5000, time.UTC))}},
			"SELECT toDateTime64({p0:String}, 6, {p1:String}) FROM (SELECT 1)",
			[]sql.Param{{"p0", "String", "2024-07-01 12:00:00.000005"}, {"p1", "String", "Europe/Berlin"}},
		},
		{
			"a time in the hour that comes twice", &resolved.Select{Columns: []resolved.Expr{c(time.Date(2024, 10, 27, 0, 30, 0, 0, time.UTC))}},
			"SELECT toTimeZone(toDateTime64({p0:String}, 6, {p1:String}), {p2:String}) FROM (SELECT 1)",
			[]sql.Param{{"p0", "String", "2024-10-27 00:30:00.000000"}, {"p1", "String", "UTC"}, {"p2", "String", "Europe/Berlin"}},
		},
		{
			"parentheses keep the tree",
			where(fn("multiply", fn("plus", col("a"), col("b")), fn("minus", col("c"), fn("minus", col("d"), fn("minus", col("e"), c(int64(-1))))))),
			"SELECT event FROM events WHERE team_id = 7 AND (a + b) * (c - (d - (e - -1)))", nil,
		},
		{
			"NOT binds loosely", where(fn("equals", fn("not", fn("equals", col("a"), c(int64(1)))), c(int64(0)))),
			"SELECT event FROM events WHERE team_id = 7 AND (NOT a = 1) = 0", nil,
		},
		{
			"comparisons do not chain", where(fn("equals", fn("equals", col("a"), col("b")), col("c"))),
			"SELECT event FROM events WHERE team_id = 7 AND (a = b) = c", nil,
		},
		{
			"odd names", from(events(), col("$group_0"), as(col("select"), "a`b\\c"), col("group")),
			"SELECT `$group_0`, `select` AS `a\\`b\\\\c`, `group` FROM events WHERE team_id = 7", nil,
		},
		{
			"paths into JSON are quoted",
			from(events(),
				&resolved.Column{Name: "properties", Path: []string{"a", "b`%"}, Kind: resolved.PathString},
				&resolved.Column{Name: "properties", Path: []string{"a"}, Kind: resolved.PathObject},
				&resolved.Column{Name: "properties", Path: []string{"$x"}}),
			"SELECT properties.`a`.`b\\`%`.:String, properties.^`a`, properties.`$x` FROM events WHERE team_id = 7", nil,
		},
		{
			"an alias with a table's name cannot stand for the table",
			from(events(), as(col("properties"), "events"), as(fn("lower", col("event")), "event")),
			"SELECT properties AS events, lower(events_.event) AS event FROM events AS events_ WHERE team_id = 7", nil,
		},
		{
			"an alias with a dot counts by its head",
			from(events(), as(col("properties"), "events.team_id"), as(fn("toString", col("uuid")), "uuid")),
			"SELECT properties AS `events.team_id`, toString(events_.uuid) AS uuid FROM events AS events_ WHERE team_id = 7", nil,
		},
		{
			"a column that keeps its name", from(derived("q", one), as(col("1"), "1"), as(col("x"), "y")),
			"SELECT `1`, x AS y FROM (SELECT 1) AS q", nil,
		},
		{
			"lambdas", from(events(), fn("arrayMap", &resolved.Lambda{
				Params: []string{"x", "event"}, Body: fn("plus", &resolved.LambdaParam{Name: "x"}, col("event")),
			}, &resolved.Array{Items: []resolved.Expr{c(int64(1)), col("a")}}, &resolved.Array{Items: []resolved.Expr{c("s")}})),
			"SELECT arrayMap((x, event) -> x + events.event, [1, a], {p0:Array(String)}) FROM events WHERE team_id = 7",
			[]sql.Param{{"p0", "Array(String)", "['s']"}},
		},
		{
			"joins", &resolved.Select{
				Columns: []resolved.Expr{of("a", "event")},
				From: &resolved.Join{
					Kind: hogql.LeftJoin, Strictness: hogql.JoinAny, Left: a, Right: derived("b", from(events(), col("event"))),
					On: fn("equals", of("a", "event"), of("b", "event")),
				},
			},
			"SELECT a.event FROM (SELECT event FROM events WHERE team_id = 7) AS a ANY LEFT JOIN (SELECT event FROM events WHERE team_id = 7) AS b ON a.event = b.event", nil,
		},
		{
			"an unnamed subquery gets a name when an alias needs one", from(derived("", one), as(fn("lower", col("1")), "1")),
			"SELECT lower(q.`1`) AS `1` FROM (SELECT 1) AS q", nil,
		},
		{
			"a common table expression never has a table's name",
			&resolved.Select{
				With:    []*resolved.CTE{{Name: "events", Query: from(events(), col("event"))}},
				Columns: []resolved.Expr{of("events", "event")},
				From:    &resolved.CTERef{Name: "events"},
			},
			"WITH events_ AS (SELECT event FROM events WHERE team_id = 7) SELECT event FROM events_", nil,
		},
		{
			"set operations", &resolved.SetQuery{
				Members: []resolved.Query{one, &resolved.SetQuery{Members: []resolved.Query{one, one}, Ops: []hogql.SetOp{hogql.Except}}, one},
				Ops:     []hogql.SetOp{hogql.UnionAll, hogql.UnionDistinct},
			},
			"SELECT 1 FROM (SELECT 1) UNION ALL (SELECT 1 FROM (SELECT 1) EXCEPT SELECT 1 FROM (SELECT 1)) UNION DISTINCT SELECT 1 FROM (SELECT 1)", nil,
		},
		{
			"order and limit of a whole set", &resolved.SetQuery{
				Members: []resolved.Query{one, one}, Ops: []hogql.SetOp{hogql.UnionAll},
				OrderBy: []*resolved.Order{{X: &resolved.AliasRef{Name: "x"}, Desc: true, Nulls: hogql.NullsLast}},
				Limit:   &resolved.Limit{N: c(int64(3)), Offset: c(int64(1))},
			},
			"SELECT * FROM (SELECT 1 FROM (SELECT 1) UNION ALL SELECT 1 FROM (SELECT 1)) ORDER BY x DESC NULLS LAST LIMIT 3 OFFSET 1", nil,
		},
		{
			"every clause", &resolved.Select{
				Distinct: true,
				Columns: []resolved.Expr{as(&resolved.Native{
					Name: "quantile", Params: []resolved.Expr{c(0.5)}, Args: []resolved.Expr{col("a")},
					Over: &resolved.Window{Name: "w"},
				}, "m"), &resolved.Native{Name: "count", Distinct: true, Args: []resolved.Expr{col("a")}, Over: &resolved.Window{
					PartitionBy: []resolved.Expr{col("b")},
					Frame: &resolved.Frame{
						Start: resolved.Bound{Kind: hogql.Preceding, N: c(int64(2))}, End: resolved.Bound{Kind: hogql.CurrentRow},
					},
				}}},
				From:      &resolved.Scan{Table: "events", Alias: "e", Guard: guard(), Sample: &resolved.Sample{Ratio: fn("divide", c(int64(1)), c(int64(10))), Offset: c(0.5)}},
				ArrayJoin: &resolved.ArrayJoin{Left: true, Arrays: []*resolved.Alias{as(col("list"), "item")}},
				Where:     col("b"),
				GroupBy:   &resolved.GroupBy{Mode: hogql.GroupSets, Sets: [][]resolved.Expr{{col("a"), col("b")}, {}}, Totals: true},
				Having:    fn("greater", &resolved.AliasRef{Name: "m"}, c(int64(1))),
				Windows: []*resolved.NamedWindow{{Name: "w", Window: &resolved.Window{
					OrderBy: []*resolved.Order{{X: col("b")}},
					Frame:   &resolved.Frame{Range: true, Start: resolved.Bound{Kind: hogql.UnboundedPreceding}},
				}}},
				OrderBy: []*resolved.Order{{X: col("b"), Fill: &resolved.Fill{From: c(int64(0)), To: c(int64(9)), Step: c(int64(1))}}},
				LimitBy: &resolved.LimitBy{N: c(int64(1)), Keys: []resolved.Expr{col("b")}},
				Limit:   &resolved.Limit{N: c(int64(40)), Percent: true, WithTies: true},
			},
			"SELECT DISTINCT quantile(0.5)(a) OVER w AS m, count(DISTINCT a) OVER (PARTITION BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) " +
				"FROM events AS e SAMPLE 1 / 10 OFFSET 0.5 LEFT ARRAY JOIN list AS item WHERE team_id = 7 AND b " +
				"GROUP BY GROUPING SETS ((a, b), ()) WITH TOTALS HAVING m > 1 WINDOW w AS (ORDER BY b ASC RANGE UNBOUNDED PRECEDING) " +
				"ORDER BY b ASC WITH FILL FROM 0 TO 9 STEP 1 LIMIT 1 BY b LIMIT 0.4 WITH TIES", nil,
		},
		{
			"numbers", from(&resolved.Numbers{Args: []resolved.Expr{c(int64(3))}}, of("numbers", "number")),
			"SELECT number FROM numbers(3) AS numbers", nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, params, err := sql.Print(tt.query, database, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Print (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.params, params); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrintRefuses(t *testing.T) {
	t.Parallel()
	pick := func(e resolved.Expr) resolved.Query { return from(events(), e) }
	scan := func(s *resolved.Scan) resolved.Query { return from(s, col("event")) }
	tests := []struct {
		name  string
		query resolved.Query
		want  string
	}{
		{"a function that is not allowed", pick(fn("getSetting", c("x"))), `BUG: printing SQL: function "getSetting" is not allowed`},
		{"a name that is no function", pick(fn("f(1) --")), `BUG: printing SQL: function "f(1) --" is not allowed`},
		{"an unknown table", scan(&resolved.Scan{Table: "system.tables", Guard: guard()}), `BUG: printing SQL: table "system.tables" is not physical`},
		{"no guard", scan(&resolved.Scan{Table: "events"}), `BUG: printing SQL: the scan of "events" is not guarded`},
		{
			"another project's guard", scan(&resolved.Scan{Table: "events", Guard: fn("equals", col("team_id"), c(int64(8)))}),
			`BUG: printing SQL: the scan of "events" is not guarded`,
		},
		{
			"a guard that is an alternative", scan(&resolved.Scan{Table: "events", Guard: &resolved.Logic{Or: true, Args: []resolved.Expr{guard(), c(true)}}}),
			`BUG: printing SQL: the scan of "events" is not guarded`,
		},
		{
			"a bare scan under a join", from(&resolved.Join{Kind: hogql.CrossJoin, Left: events(), Right: derived("b", from(events(), col("event")))}, of("b", "event")),
			`BUG: printing SQL: a bare scan of "events" under a join`,
		},
		{
			"a name that is not a common table expression", from(&resolved.CTERef{Name: "person"}, col("x")),
			`BUG: printing SQL: "person" is not a common table expression in scope`,
		},
		{"a name on the right side of IN", pick(fn("in", c(int64(1)), col("person"))), "BUG: printing SQL: *resolved.Column on the right side of IN"},
		{"a stranger named team_id", pick(as(c(int64(7)), "team_id")), "BUG: printing SQL: something else is named team_id"},
		{
			"a lambda parameter named team_id", pick(&resolved.Lambda{Params: []string{"team_id"}, Body: c(int64(1))}),
			"BUG: printing SQL: a lambda parameter is named team_id",
		},
		{"a column of no table", pick(of("other", "event")), `BUG: printing SQL: column "event" of "other", which is not a table of its SELECT`},
		{"a constant of another type", pick(c(struct{}{})), "BUG: printing SQL: a constant of type struct {}"},
		{"a percent sign in a name", pick(as(c(int64(1)), "a%b")), `The HogQL identifier "a%b" is not permitted as it contains the "%" character`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, _, err := sql.Print(tt.query, database, nil)
			if err == nil {
				t.Fatalf("printed %s", text)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPrintKept: among the tables of endpoints, only the one that the query is about is read, with the project's guard.
func TestPrintKept(t *testing.T) {
	t.Parallel()
	db := *database
	db.Kept = schema.NewKept("sales_v1", "endpoint_7_a", nil)
	scan := func(table string, guard resolved.Expr) resolved.Query {
		return from(&resolved.Scan{Table: table, Guard: guard}, col("c0"))
	}
	tests := []struct {
		name  string
		query resolved.Query
		db    *schema.Database
		want  string // of the error
	}{
		{"its table", scan("endpoint_7_a", guard()), &db, ""},
		{"without guard", scan("endpoint_7_a", nil), &db, `BUG: printing SQL: the scan of "endpoint_7_a" is not guarded`},
		{
			"another project's guard", scan("endpoint_7_a", fn("equals", col("team_id"), c(int64(8)))), &db,
			`BUG: printing SQL: the scan of "endpoint_7_a" is not guarded`,
		},
		{"another table", scan("endpoint_8_a", guard()), &db, `BUG: printing SQL: table "endpoint_8_a" is not physical`},
		{"a table of no endpoint", scan("endpoint_7_a", guard()), database, `BUG: printing SQL: table "endpoint_7_a" is not physical`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := sql.Print(tt.query, tt.db, nil)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrintLongLists(t *testing.T) {
	t.Parallel()
	strs, ints := make([]any, 50_000), make([]any, 50_000)
	for i := range strs {
		strs[i], ints[i] = strings.Repeat("x", 8), int64(i)
	}
	for _, list := range [][]any{strs, ints} {
		text, params, err := sql.Print(from(events(), fn("in", col("event"), c(list))), database, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 200 || len(params) != 1 {
			t.Errorf("a list of %d printed as %d bytes with %d parameters", len(list), len(text), len(params))
		}
	}
}

// TestPrintSize checks that a query whose parts repeat ends with a mistake, instead of using up the memory.
func TestPrintSize(t *testing.T) {
	t.Parallel()
	var e resolved.Expr = fn("plus", col("event"), c(int64(1)))
	for range 19 { // a tree of half a million leaves in few nodes
		e = fn("plus", e, e)
	}
	_, _, err := sql.Print(from(events(), e), database, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "The query is too large") {
		t.Errorf("got %v, want that the query is too large", err)
	}
}
