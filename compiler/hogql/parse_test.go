package hogql_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// names returns a chain of plain names.
func names(texts ...string) []hogql.Name {
	var out []hogql.Name
	for _, s := range texts {
		out = append(out, hogql.Name{Text: s})
	}
	return out
}

func field(texts ...string) *hogql.Field { return &hogql.Field{Chain: names(texts...)} }

func constant(v any) *hogql.Const { return &hogql.Const{Value: v} }

// TestParseExprTree checks the nodes that other packages rely on; how the rest of the grammar is parsed shows in the output of TestPrint.
func TestParseExprTree(t *testing.T) {
	tests := []struct {
		name, in string
		want     hogql.Expr
	}{
		{"chain", "a.b.c", field("a", "b", "c")},
		{"index in a chain", "properties.list.1.id", &hogql.Field{Chain: []hogql.Name{{Text: "properties"}, {Text: "list"}, {Text: "1", Index: true}, {Text: "id"}}}},
		{"digits as a key", "properties.`1`", field("properties", "1")},
		{"bracket on a chain", "properties['k']", &hogql.Index{X: field("properties"), Index: constant("k")}},
		{"element", "(a).1", &hogql.Element{X: field("a"), N: 1}},
		{"member", "f().b", &hogql.Member{X: &hogql.Call{Name: "f"}, Name: hogql.Name{Text: "b"}}},
		{"null-safe member", "a?.b", &hogql.Member{X: field("a"), Name: hogql.Name{Text: "b"}, NullSafe: true}},
		{"count star", "count(*)", &hogql.Call{Name: "count", Args: []hogql.Expr{&hogql.Star{}}}},
		{"parameters", "f(1)(a)", &hogql.Call{Name: "f", Params: []hogql.Expr{constant(int64(1))}, Args: []hogql.Expr{field("a")}}},
		{"ternary", "a ? b : c", &hogql.Call{Name: "if", Args: []hogql.Expr{field("a"), field("b"), field("c")}}},
		{"default", "a ?? b", &hogql.Call{Name: "ifNull", Args: []hogql.Expr{field("a"), field("b")}}},
		{"chain of concatenations", "a || b || c", &hogql.Call{Name: "concat", Args: []hogql.Expr{field("a"), field("b"), field("c")}}},
		{"nested concatenations", "a || (b || c)", &hogql.Call{Name: "concat", Args: []hogql.Expr{field("a"), &hogql.Call{Name: "concat", Args: []hogql.Expr{field("b"), field("c")}}}}},
		{"chain of ands", "a and b and c", &hogql.Logic{Args: []hogql.Expr{field("a"), field("b"), field("c")}}},
		{"nested ands", "(a and b) and c", &hogql.Logic{Args: []hogql.Expr{&hogql.Logic{Args: []hogql.Expr{field("a"), field("b")}}, field("c")}}},
		{"is null", "a is null", &hogql.Compare{Op: hogql.Equals, Left: field("a"), Right: constant(nil)}},
		{"is distinct from", "a is distinct from b", &hogql.Compare{Op: hogql.NotEquals, Left: field("a"), Right: field("b")}},
		{"in cohort", "a not in cohort 5", &hogql.Compare{Op: hogql.NotInCohort, Left: field("a"), Right: constant(int64(5))}},
		{"between", "a not between 1 and 2", &hogql.Between{X: field("a"), Low: constant(int64(1)), High: constant(int64(2)), Not: true}},
		{"cast", "a::Double Precision", &hogql.Cast{X: field("a"), Type: "double precision"}},
		{"interval in quotes", "interval '-2 days'", &hogql.Interval{N: constant(int64(-2)), Unit: "day"}},
		{"date", "date '2024-01-02'", &hogql.Call{Name: "toDate", Args: []hogql.Expr{constant("2024-01-02")}}},
		{"placeholder", "{variables.a}", &hogql.Placeholder{X: field("variables", "a")}},
		{"negation", "-a", &hogql.Unary{Op: hogql.Negate, X: field("a")}},
		{"subtraction", "a -1", &hogql.Binary{Op: hogql.Minus, Left: field("a"), Right: constant(int64(1))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mustParseExpr(t, tt.in), sameTree); diff != "" {
				t.Errorf("ParseExpr(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestParseConstants(t *testing.T) {
	tests := []struct {
		in   string
		want any
	}{
		{"0", int64(0)},
		{"12", int64(12)},
		{"-12", int64(-12)},
		{"+12", int64(12)},
		{"- 12", int64(-12)},
		{"9223372036854775807", int64(math.MaxInt64)},
		{"9223372036854775808", uint64(math.MaxInt64) + 1},
		{"-9223372036854775808", int64(math.MinInt64)},
		{"-9223372036854775809", -9223372036854775809.0},
		{"18446744073709551615", uint64(math.MaxUint64)},
		{"18446744073709551616", 18446744073709551616.0},
		{".5", 0.5},
		{"1.", 1.0},
		{"-1.5", -1.5},
		{"1e-18", 1e-18},
		{"1.e5", 1e5},
		{"1E+2", 100.0},
		{"017", int64(17)},
		{"08", int64(8)},
		{"0x1F", int64(31)},
		{"0X1f", int64(31)},
		{"0x1p4", 16.0},
		{"0x1.8", 1.5},
		{"0x1.8p-1", 0.75},
		{"0x10000000000000000", 18446744073709551616.0},
		{"0b101", int64(5)},
		{"inf", math.Inf(1)},
		{"-Infinity", math.Inf(-1)},
		{"NaN", math.NaN()},
		{"TRUE", true},
		{"false", false},
		{"Null", nil},
		{"''", ""},
		{"'it''s'", "it's"},
		{`'it\'s'`, "it's"},
		{`'\b\f\r\n\t\0\a\v\\\x41\xe9'`, "\b\f\r\n\t\a\v\\A\xe9"},
		{"'two\nlines -- no comment'", "two\nlines -- no comment"},
		{"f''", ""},
		{"f'a''b\\{'", "a'b{"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if diff := cmp.Diff(hogql.Expr(constant(tt.want)), mustParseExpr(t, tt.in), sameTree); diff != "" {
				t.Errorf("ParseExpr(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// TestPrecedence shows the nesting of operators in their function form.
func TestPrecedence(t *testing.T) {
	tests := []struct{ in, want string }{
		{"1 + null ?? 2 + 3", "ifNull(plus(1, NULL), plus(2, 3))"},
		{"a = b ?? c", "ifNull(equals(a, b), c)"},
		{"10 ?? true ? 20 : 30", "if(ifNull(10, true), 20, 30)"},
		{"a ?? b ?? c", "ifNull(ifNull(a, b), c)"},
		{"a ? b : c ? d : e", "if(a, b, if(c, d, e))"},
		{"a ? b ? c : d : e", "if(a, if(b, c, d), e)"},
		{"a - b - c", "minus(minus(a, b), c)"},
		{"a + b * c - d", "minus(plus(a, multiply(b, c)), d)"},
		{"a * b / c % d", "modulo(divide(multiply(a, b), c), d)"},
		{"a + b || c", "concat(plus(a, b), c)"},
		{"-a * b", "multiply(minus(0, a), b)"},
		{"-a[1].2", "minus(0, a[1].2)"},
		{"-a::int", "minus(0, toInt64(a))"},
		{"a + b::int", "plus(a, toInt64(b))"},
		{"a + b = c + d", "equals(plus(a, b), plus(c, d))"},
		{"a = b = c", "equals(equals(a, b), c)"},
		{"a < b like c", "like(less(a, b), c)"},
		{"a = b is null", "equals(equals(a, b), NULL)"},
		{"a is distinct from b = c", "notEquals(a, equals(b, c))"},
		{"a is null ?? b", "ifNull(equals(a, NULL), b)"},
		{"not a = b", "not(equals(a, b))"},
		{"not a ?? b", "not(ifNull(a, b))"},
		{"not a is null", "not(equals(a, NULL))"},
		{"not not a and b", "and(not(not(a)), b)"},
		{"a = not b", "equals(a, not(b))"},
		{"a or b and c or d", "or(a, and(b, c), d)"},
		{"a and b or c and not d", "or(and(a, b), and(c, not(d)))"},
		{"a and b ? c or d : e", "if(and(a, b), or(c, d), e)"},
		{"a + 1 between 2 and 3 + 4", "plus(a, 1) BETWEEN 2 AND plus(3, 4)"},
		{"(a or b) between 1 and 2", "or(a, b) BETWEEN 1 AND 2"},
		{"a between 1 and 2 ? b : c", "if(a BETWEEN 1 AND 2, b, c)"},
		{"x = 1 and y between 2 and 3", "and(equals(x, 1), y BETWEEN 2 AND 3)"},
		{"y between 2 and 3 and z", "and(y BETWEEN 2 AND 3, z)"},
		{"x or y not between 2 and 3 and z", "or(x, and(y NOT BETWEEN 2 AND 3, z))"},
		{"not y between 2 and 3 or z", "or(not(y BETWEEN 2 AND 3), z)"},
		{"y between (a and b) and c", "y BETWEEN and(a, b) AND c"},
		{"a ?? 0 between 1 and b ?? 2 and c", "and(ifNull(a, 0) BETWEEN 1 AND ifNull(b, 2), c)"},
		{"a = b between c = d and e ?? f", "equals(a, b) BETWEEN equals(c, d) AND ifNull(e, f)"},
		{"x -> x ? 1 : 2", "x -> if(x, 1, 2)"},
		{"a not in (1) and b", "and(notIn(a, 1), b)"},
		{"a + 1 as b", "plus(a, 1) AS b"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, hogql.FunctionForm(mustParseExpr(t, tt.in))); diff != "" {
				t.Errorf("ParseExpr(%q) in function form (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestSpans(t *testing.T) {
	const text = "select (a.b + 1) * f('é'), \"c\" as d from t left join (select 2) u on 3"
	at := func(n interface{ At() hogql.Span }) string {
		s := n.At()
		return text[s.Start:s.End]
	}
	s, ok := mustParse(t, text).(*hogql.Select)
	if !ok {
		t.Fatal("no Select")
	}
	product := s.Columns[0].(*hogql.Binary)
	sum := product.Left.(*hogql.Binary)
	join := s.From.(*hogql.Join)
	tests := []struct{ got, want string }{
		{at(s), text},
		{at(product), "(a.b + 1) * f('é')"},
		{at(sum), "a.b + 1"},
		{at(sum.Left), "a.b"},
		{at(product.Right), "f('é')"},
		{at(s.Columns[1]), `"c" as d`},
		{at(s.From), "t left join (select 2) u on 3"},
		{at(join.Right), "(select 2) u"},
		{at(join.On), "3"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("a node is at %q, want %q", tt.got, tt.want)
		}
	}
}

// TestBounds parses large or deep texts: each must be answered at once, whatever the answer is.
func TestBounds(t *testing.T) {
	const deep = "The query is nested deeper than 256 levels"
	const chain = deep + ": long chains of operators count too"
	repeat := strings.Repeat
	tests := []struct{ name, in, want string }{
		{"parentheses", "select " + repeat("(", 10_000) + "1" + repeat(")", 10_000), deep},
		{"open parentheses", "select " + repeat("(", 500_000), deep},
		{"some parentheses", "select " + repeat("(", 200) + "1" + repeat(")", 200), ""},
		{"subqueries", repeat("select * from (", 10_000) + "select 1" + repeat(")", 10_000), deep},
		{"brackets", "select " + repeat("[", 10_000), deep},
		{"braces", "select " + repeat("{", 10_000), deep},
		{"calls", "select " + repeat("f(", 10_000), deep},
		{"lambdas", "select " + repeat("x -> ", 10_000) + "1", deep},
		{"nots", "select " + repeat("not ", 10_000) + "a", deep},
		{"minuses", "select " + repeat("- ", 10_000) + "a", deep},
		{"ternaries", "select " + repeat("a ? b : ", 10_000) + "c", deep},
		{"cases", "select " + repeat("case when ", 10_000), deep},
		{"intervals", "select " + repeat("interval (", 10_000), deep},
		{"templates", "select " + repeat("f'{", 10_000), deep},
		{"ctes", repeat("with a as (", 10_000), deep},
		{"unions", repeat("select 1 union all ", 10_000) + "select 1", ""},
		{"union of union", repeat("(", 10_000) + "select 1" + repeat(") union (select 1)", 10_000), deep},
		{"list", "select a in (" + repeat("1, ", 50_000) + "1)", ""},
		{"columns", "select " + repeat("a as b, ", 50_000) + "1", ""},
		{"names", "select " + repeat("a.", 50_000) + "b", ""},
		{"ands", "select a" + repeat(" and b", 50_000), ""},
		{"concatenations", "select a" + repeat(" || b", 50_000), ""},
		{"sums", "select a" + repeat(" + b", 10_000), chain},
		{"some sums", "select a" + repeat(" + b", 200), ""},
		{"comparisons", "select a" + repeat(" = b", 10_000), chain},
		{"defaults", "select a" + repeat(" ?? b", 10_000), chain},
		{"indexes", "select a" + repeat("[1]", 10_000), chain},
		{"casts", "select a" + repeat("::int", 10_000), chain},
		{"aliases", "select a" + repeat(" as b", 10_000), chain},
		{"joins", "select 1 from a" + repeat(" join b on c", 10_000), chain},
		{"joins in parentheses", "select 1 from " + repeat("(a join ", 10_000) + "b" + repeat(" on c)", 10_000), deep},
		{"joins in parentheses first", "select 1 from " + repeat("(", 10_000) + "a" + repeat(" join b on c)", 10_000), deep},
		{"some joins in parentheses", "select 1 from " + repeat("(a join ", 80) + "b" + repeat(" on c)", 80), ""},
		{"sums in sums", "select " + repeat("(", 100) + "a" + repeat(repeat(" + b", 100)+")", 100), chain},
		{"types", "select a::" + repeat("b(", 100_000), "Unexpected end of the query, expected ')' of the type"},
		{"string", "select '" + repeat("a", 1<<20-9) + "'", ""},
		{"text", "select '" + repeat("a", 1<<20) + "'", "The query is longer than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := hogql.Parse(tt.in)
			got := ""
			if mistake, ok := errors.AsType[*diag.Error](err); ok {
				got = mistake.Detail
			}
			if got != tt.want {
				t.Errorf("mistake %q, want %q", got, tt.want)
			}
			if err == nil {
				mustParse(t, hogql.Print(q))
			}
		})
	}
}

// TestParserBug: a panic is an error that is no mistake of the author, whoever parses; the end of a budget stays what it is.
func TestParserBug(t *testing.T) {
	t.Parallel()
	parse := map[string]func(string, *budget.Budget) error{
		"query": func(text string, spend *budget.Budget) error {
			_, err := hogql.ParseWithin("select "+text, spend)
			return err
		},
		"expression": func(text string, spend *budget.Budget) error {
			_, err := hogql.ParseExprWithin(text, spend)
			return err
		},
	}
	long := "1" + strings.Repeat(" + 1", 100_000)
	broken := errors.New("broken")
	for name, do := range parse {
		for want, expired := range map[string]func() error{
			"BUG: parsing: broken": func() error { panic(broken) },
			"BUG: parsing: text":   func() error { panic("text") },
		} {
			err := do(long, budget.New(expired))
			if _, mistake := errors.AsType[*diag.Error](err); err == nil || err.Error() != want || mistake {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		err := func() (err error) {
			defer budget.Catch(&err)
			return do(long, budget.New(func() error { return broken }))
		}()
		if !errors.Is(err, broken) || strings.Contains(err.Error(), "BUG") {
			t.Errorf("%s: the end of the budget is %v", name, err)
		}
	}
}
