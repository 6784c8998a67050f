package hogql_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// sameTree compares trees, ignoring places and unnecessary quotes.
var sameTree = cmp.Options{
	cmpopts.IgnoreTypes(hogql.Span{}),
	cmpopts.IgnoreFields(hogql.Name{}, "Quoted", "Double"),
	cmpopts.EquateNaNs(),
}

func mustParse(tb testing.TB, text string) hogql.Query {
	tb.Helper()
	q, err := hogql.Parse(text)
	if err != nil {
		tb.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

func mustParseExpr(tb testing.TB, text string) hogql.Expr {
	tb.Helper()
	e, err := hogql.ParseExpr(text)
	if err != nil {
		tb.Fatalf("ParseExpr(%q): %v", text, err)
	}
	return e
}

func TestPrint(t *testing.T) {
	for _, tt := range statements {
		t.Run(tt.name, func(t *testing.T) {
			q := mustParse(t, tt.in)
			got := hogql.Print(q)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Print(%q) (-want +got):\n%s", tt.in, diff)
			}
			again := mustParse(t, got)
			if diff := cmp.Diff(q, again, sameTree); diff != "" {
				t.Errorf("Parse(%q) is another tree than Parse(%q) (-first +again):\n%s", got, tt.in, diff)
			}
			if diff := cmp.Diff(got, hogql.Print(again)); diff != "" {
				t.Errorf("Print gives another text the second time (-first +second):\n%s", diff)
			}
		})
	}
}

func TestFunctionForm(t *testing.T) {
	tests := []struct{ in, want string }{
		{"count()", "count()"},
		{"1 + 2", "plus(1, 2)"},
		{"a - b * c / d % e", "minus(a, modulo(divide(multiply(b, c), d), e))"},
		{"-a", "minus(0, a)"},
		{"-1", "-1"},
		{"not a", "not(a)"},
		{"a and b and c or d", "or(and(a, b, c), d)"},
		{"a || b || c", "concat(a, b, c)"},
		{"a ?? b", "ifNull(a, b)"},
		{"a ? b : c", "if(a, b, c)"},
		{"a = b", "equals(a, b)"},
		{"a is not null", "notEquals(a, NULL)"},
		{"a <= b", "lessOrEquals(a, b)"},
		{"a in ('x', null)", "in(a, tuple('x', NULL))"},
		{"a not in (1, 2)", "notIn(a, tuple(1, 2))"},
		{"a in cohort 5", "a IN COHORT 5"},
		{"a =~ 'x'", "match(a, 'x')"},
		{"a !~ 'x'", "not(match(a, 'x'))"},
		{"a =~* 'x'", "match(a, concat('(?i)', 'x'))"},
		{"a !~* 'x'", "not(match(a, concat('(?i)', 'x')))"},
		{"a not ilike 'x'", "notILike(a, 'x')"},
		{"a between 1 + 1 and 2", "a BETWEEN plus(1, 1) AND 2"},
		{"case when a then b end", "if(a, b, NULL)"},
		{"case when a then b when c then d else e end", "multiIf(a, b, c, d, e)"},
		{"case a when 1 then 'x' else 'y' end", "transform(a, [1], ['x'], 'y')"},
		{"a::int", "toInt64(a)"},
		{"a::double precision", "toFloat64(a)"},
		{"a::uuid", "CAST(a AS uuid)"},
		{"(1, 'a')", "tuple(1, 'a')"},
		{"[1 + 1]", "[plus(1, 1)]"},
		{"{'k': 1 + 1}", "tuple('__hx_tag', '__hx_obj', 'k', plus(1, 1))"},
		{"interval 1 week", "toIntervalWeek(1)"},
		{"arrayMap(x -> x * 2, [1])", "arrayMap(x -> multiply(x, 2), [1])"},
		{"sumIf(a, b = 1)", "sumIf(a, equals(b, 1))"},
		{"(select a + 1 from t where b = 2)", "(SELECT plus(a, 1) FROM t WHERE equals(b, 2))"},
		{"properties.a", "properties.a"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, hogql.FunctionForm(mustParseExpr(t, tt.in))); diff != "" {
				t.Errorf("FunctionForm(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// TestPrintMadeConstants prints constants that no text parses to: values of placeholders.
func TestPrintMadeConstants(t *testing.T) {
	at := time.Date(2024, 3, 1, 13, 0, 0, 250_000_000, time.FixedZone("", 3600))
	tests := []struct {
		name string
		in   hogql.Expr
		want string
	}{
		{"time", &hogql.Const{Value: at}, "toDateTime64('2024-03-01 12:00:00.250000', 6, 'UTC')"},
		{"list", &hogql.Const{Value: []any{int64(1), "a", nil, []any{true}}}, "[1, 'a', NULL, [true]]"},
		{"whole float", &hogql.Const{Value: 2.0}, "2.0"},
		{"large float", &hogql.Const{Value: 1e300}, "1e+300"},
		{"infinities", &hogql.Tuple{Items: []hogql.Expr{&hogql.Const{Value: math.Inf(1)}, &hogql.Const{Value: math.Inf(-1)}}}, "(inf, -inf)"},
		{"bytes that are no text", &hogql.Const{Value: "a\xff\x00\x1b'\\"}, `'a\xff\x00\x1b\'\\'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, hogql.PrintExpr(tt.in)); diff != "" {
				t.Errorf("PrintExpr (-want +got):\n%s", diff)
			}
		})
	}
}
