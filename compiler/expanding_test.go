package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestNestedFunctions nests each function in each of its arguments. A call must resolve its arguments only once: if it does so twice, the work doubles
// with each level, and the query is refused as too large.
func TestNestedFunctions(t *testing.T) { // not parallel: it measures
	const levels = 20
	for f := range schema.Functions() {
		if f.Hidden() || f.Aggregate && f.Base != "" {
			continue
		}
		args := max(f.MinArgs, 1)
		for at := range min(args, 4) {
			text := "event"
			for range levels {
				text = call(f, args, at, text)
			}
			for _, over := range []string{"", " over ()"} {
				_, err := compiler.Compile(&query.HogQL{Query: "select " + text + over + " from events"}, hostileEnv(t))
				if err != nil && strings.Contains(err.Error(), "asterisks, filters and macros") {
					t.Errorf("%s in argument %d: %.200v", f.Name, at+1, err)
				}
			}
		}
	}
}

// call returns a call with one given argument; the others are names.
func call(f *schema.Function, args, at int, text string) string {
	list := make([]string, args)
	for i := range list {
		list[i] = "event"
		if i == at {
			list[i] = text
		}
	}
	params := ""
	if f.MinParams > 0 {
		params = "(" + strings.TrimSuffix(strings.Repeat("1, ", f.MinParams), ", ") + ")"
	}
	return f.Name + params + "(" + strings.Join(list, ", ") + ")"
}

// growing are templates that put a query or an expression into a bigger one, often more than once.
var (
	growingQueries = []string{
		"select *, * from (%s)", "select a.*, a.* from (%s) a", "select a.*, b.* from (%s) a cross join (select 1 as y) b",
		"select *, columns('.') from (%s)", "select * replace (1 as x) from (%s)", "select x, *, * from (%s)",
		"%[1]s union all %[1]s", "with c as (%s) select a.*, b.* from c a cross join c b", "with c as (%s) select * from c where x in (select x from c)",
		"select x, (select 1), count() over (order by x), * from (%s)", "select x from (%s) group by cube(x)",
		"with 1 + 1 as d, d + d as e, e + e as f, f + f as g select g, * from (%s)", "select columns(*), columns('x') from (%[1]s) a cross join (%[1]s) b",
		"select x, [x] as a, y from (%s) array join a as y, arrayConcat(a, a) as z", "select tuple(*columns('.'), *columns(*)) as x from (%s)",
	}
	growingValues = []string{
		"(%s in x)", "(x not in %s)", "case %s when x then 1 when 2 then 3 end", "(%[1]s + %[1]s)", "(%s between x and 3)", "(%s as v%[2]d)",
		"if(%s, x, 1)", "lag(%s) over ()", "arrayMap(y -> y + %s, [x])", "(%s = x)", "concat(toString(%s), x)", "(%s ?? x)", "(select %s from events)",
		"not %s", "coalesce(%s, x)", "nullIf(%s, x)", "toDateTime(toString(%s))", "(%s ? 1 : x)", "tuple(%s, x).1", "[%s, 1][1]", "dateDiff('day', now(), toDateTime(%s))",
		"coalesce(*columns(* replace (%s as x)), x)",
	}
)

// TestExpanding compiles random nestings of constructs that make queries grow. None costs more than the budget.
func TestExpanding(t *testing.T) { // not parallel: it measures
	env := hostileEnv(t)
	fits, tooLarge := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := "select 1 as x"
		for i := range rapid.IntRange(1, 40).Draw(r, "levels") {
			if rapid.IntRange(0, 9).Draw(r, "value") == 0 {
				value := "x"
				for range rapid.IntRange(1, 12).Draw(r, "depth") {
					form := rapid.SampledFrom(growingValues).Draw(r, "form")
					if strings.Contains(form, "%[2]") {
						value = fmt.Sprintf(form, value, i)
						continue
					}
					value = fmt.Sprintf(form, value)
				}
				if len(text)+len(value) < 1<<16 {
					text = "select " + value + " as x, * exclude (x) from (" + text + ")"
				}
				continue
			}
			if next := fmt.Sprintf(rapid.SampledFrom(growingQueries).Draw(r, "form"), text); len(next) < 1<<16 {
				text = next
			}
		}
		_, err := measured(r, &query.HogQL{Query: text}, env)
		switch {
		case err == nil:
			fits++
		case strings.Contains(err.Error(), "too large"):
			tooLarge++
		}
	})
	t.Logf("%d queries compile, %d are too large", fits, tooLarge)
	if fits == 0 {
		t.Error("no query compiles: the forms say nothing")
	}
	// Few of the random ones are too large, so one that certainly is gets added.
	text := "select 1 as x"
	for range 16 {
		text = "with c as (" + text + ") select a.*, b.* from c a cross join c b"
	}
	if _, err := compiler.Compile(&query.HogQL{Query: text}, env); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a query of 65,536 columns: %v", err)
	}
}

// TestLongTexts compiles texts of a megabyte whose parts are looked up among each other.
func TestLongTexts(t *testing.T) { // not parallel: it measures
	many := func(form, between string, size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			if i > 0 {
				b.WriteString(between)
			}
			b.WriteString(strings.ReplaceAll(form, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	const half, most = 510_000, 1<<20 - 100
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("select properties.a as p0")
		for i := range n {
			fmt.Fprintf(&b, ", p%d.a as p%d", i, i+1)
		}
		return b.String() + " from events"
	}
	for name, text := range map[string]string{
		"values of CTEs":       "with " + many("1 as a#", ", ", half) + " select " + many("a#", ", ", half),
		"unused CTEs":          "with " + many("c# as (select 1)", ", ", most) + " select 1",
		"names of a subquery":  "select " + many("a#", ", ", half) + " from (select " + many("1 as a#", ", ", half) + ")",
		"excluded names":       "select * exclude (" + many("a#", ", ", half) + ") from (select " + many("1 as a#", ", ", half) + ")",
		"replaced names":       "select * replace (" + many("1 as a#", ", ", half) + ") from (select " + many("1 as a#", ", ", half) + ")",
		"parameters":           "select arrayMap((" + many("a#", ", ", half-1000) + ") -> tuple(" + many("a#", ", ", half-1000) + "), [1])",
		"windows":              "select " + many("count() over w#", ", ", half) + " from events window " + many("w# as ()", ", ", half),
		"aliases of aliases":   chain(15_000),
		"documents":            "select properties as p0, " + many("p# as q#", ", ", most),
		"columns of names":     "select " + many("columns('(a|b|c){1,500}#')", ", ", most) + " from events",
		"one big pattern":      "select columns('" + strings.Repeat("(?:\\\\pL{1000})", 60_000) + "') from events",
		"windows of aliases":   "select " + many("count() over (partition by b#) as b#", ", ", most) + " from events",
		"unknown names":        "select " + many("evnt#", ", ", most) + " from events",
		"unknown functions":    "select " + many("conut#(1)", ", ", most) + " from events",
		"unknown placeholders": "select " + many("{a#}", ", ", most) + " from events",
		"joins":                "select 1 from numbers(1) n" + many(" cross join numbers(1) n#", "", most),
		"tables":               "select 1 from " + many("numbers(1) n#", ", ", most),
		"unions by name":       many("select 1 as a#", " union all by name ", most),
		"lists":                "select 1 from events where event in (" + many("'a#'", ", ", most) + ")",
		"times":                "select 1 from events where timestamp in (" + many("'2020-01-01 00:00:00.#'", ", ", most) + ")",
		"brackets":             "select event" + strings.Repeat("[1]", 200) + " from events",
		"long logic":           "select 1 from events where " + many("event = 'a#'", " or ", most),
		"wide and deep":        "select " + strings.Repeat("(", 200) + many("1", "+1)", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := measured(t, &query.HogQL{Query: text}, hostileEnv(t))
			if err != nil {
				t.Logf("%.120s", err)
			}
			describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: text})
		})
	}
}

// TestManyPlaceholders puts large values in the place of many placeholders.
func TestManyPlaceholders(t *testing.T) { // not parallel: it measures
	long := strings.Repeat("x", 1<<20)
	list := make([]any, 100_000)
	names := map[string]any{"text": long, "list": list}
	for i := range list {
		list[i] = int64(i)
	}
	for i := range 50_000 {
		names[fmt.Sprintf("name%d", i)] = int64(i)
	}
	properties := make([]query.Property, 400)
	for i := range properties {
		properties[i] = query.Property{Type: "event", Key: fmt.Sprintf("p%d", i), Operator: "exact", Value: []any{"a", "b", "c"}}
	}
	for name, text := range map[string]string{
		"texts":       "select " + strings.TrimSuffix(strings.Repeat("{text}, ", 1_000), ", "),
		"joined":      "select {concat(" + strings.TrimSuffix(strings.Repeat("text, ", 1_000), ", ") + ")}",
		"lower":       "select " + strings.TrimSuffix(strings.Repeat("{lower(text)}, ", 1_000), ", "),
		"lists":       "select 1 from events where " + strings.TrimSuffix(strings.Repeat("event in {list} or ", 1_000), " or "),
		"memberships": "select " + strings.TrimSuffix(strings.Repeat("{1 in list}, ", 10_000), ", "),
		"unknown":     "select " + strings.TrimSuffix(strings.Repeat("{unknown}, ", 10_000), ", "),
		"filters":     "select 1 from events where " + strings.TrimSuffix(strings.Repeat("{filters} and ", 10_000), " and "),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := measured(t, &query.HogQL{Query: text, Values: names, Filters: &query.Filters{Properties: properties}}, hostileEnv(t))
			if err == nil {
				t.Error("it compiles")
			}
			t.Logf("%.120s", err)
		})
	}
}
