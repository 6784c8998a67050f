package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bound is the CPU time that an answer may take in the server and its engine together. Wall time would include other activity of the
// machine.
const bound = 5 * time.Second

// list joins n texts made from their index.
func list(n int, separator string, text func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = text(i)
	}
	return strings.Join(parts, separator)
}

func same(text string) func(int) string { return func(int) string { return text } }

func numbered(form string) func(int) string {
	return func(i int) string { return fmt.Sprintf(form, i) }
}

// nested repeats texts n times before and after a text.
func nested(n int, before, text, behind string) string {
	return strings.Repeat(before, n) + text + strings.Repeat(behind, n)
}

// TestBounds sends queries that are too large in one way or another: each gets its rows or a 400 in time, nothing dies, and a small query is answered
// right afterwards.
func TestBounds(t *testing.T) {
	c := newProject(t)
	importLines(t, c, threeLines)
	engine := engines(t)
	for _, tt := range []struct {
		name, query string
		status      int // 0 for either
	}{
		{"a megabyte of blanks", "select " + strings.Repeat(" ", 1<<20-100) + "1", 200},
		{"a megabyte of text", "select length('" + strings.Repeat("a", 1<<20-100) + "')", 200},
		{"a megabyte of a name", "select " + strings.Repeat("a", 1<<20-100), 400},
		{"a megabyte of comment", "select 1 /*" + strings.Repeat("*", 1<<20-100) + "*/", 200},
		{"a megabyte of an open comment", "select 1 /*" + strings.Repeat("*", 1<<20-100), 400},
		{"a megabyte of an open text", "select '" + strings.Repeat("\\'", 1<<19-100), 400},
		{"a megabyte of mistakes", "select " + strings.Repeat("? ", 1<<19-100), 400},
		{"a megabyte of conditions", "select 1 from events where " + list(40_000, " or ", numbered("event = 'a%d'")), 0},
		{"a megabyte of braces", "select " + strings.Repeat("{", 1<<20-100), 400},
		{"parentheses", "select " + nested(10_000, "(", "1", ")"), 0},
		{"open parentheses", "select " + strings.Repeat("(", 10_000), 400},
		{"brackets", "select " + nested(10_000, "[", "1", "]"), 0},
		{"calls", "select " + nested(10_000, "length(", "''", ")"), 0},
		{"lambdas", "select " + nested(5_000, "arrayMap(x -> ", "1", ", [1])"), 0},
		{"minus signs", "select " + strings.Repeat("- ", 10_000) + "1", 0},
		{"NOTs", "select " + strings.Repeat("not ", 10_000) + "1", 0},
		{"CASEs", "select " + nested(5_000, "case when 1 then ", "1", " end"), 0},
		{"ternaries", "select " + strings.Repeat("1 ? 2 : ", 10_000) + "3", 0},
		{"casts", "select 1" + strings.Repeat("::int", 10_000), 0},
		{"indexes", "select properties" + strings.Repeat("['a']", 10_000) + " from events", 0},
		{"a chain of names", "select properties" + strings.Repeat(".a", 10_000) + " from events", 0},
		{"UNIONs", list(10_000, " union all ", same("select 1")), 0},
		{"UNIONs over events", list(10_000, " union all ", same("select event from events")), 0},
		{"EXCEPTs", list(10_000, " except ", same("select 1")), 0},
		{"an IN of numbers", "select count() from events where 1 in (" + list(50_000, ", ", strconv.Itoa) + ")", 200},
		{"an IN of texts", "select count() from events where event in (" + list(50_000, ", ", numbered("'event-%d'")) + ")", 200},
		{"an IN of properties", "select count() from events where event in (" + list(50_000, ", ", numbered("properties.p%d")) + ")", 0},
		{"CTEs", "with " + list(10_000, ", ", numbered("c%d as (select 1)")) + " select * from c9999", 0},
		{"CTEs over CTEs", "with c0 as (select event from events), " + list(9_999, ", ", func(i int) string { return fmt.Sprintf("c%d as (select event from c%d)", i+1, i) }) + " select * from c9999", 0},
		{"CTEs that double", "with c0 as (select 1 as x), " + list(40, ", ", func(i int) string {
			return fmt.Sprintf("c%d as (select a.x from c%d a join c%d b on a.x = b.x)", i+1, i, i)
		}) + " select * from c40", 0},
		{"column CTEs that double", "with 1 as v0, " + list(40, ", ", func(i int) string { return fmt.Sprintf("v%d + v%d as v%d", i, i, i+1) }) + " select v40", 0},
		{"aliases that double", "select 1 as v0, " + list(40, ", ", func(i int) string { return fmt.Sprintf("v%d + v%d as v%d", i, i, i+1) }), 0},
		{"columns", "select " + list(10_000, ", ", strconv.Itoa), 0},
		{"columns of one name", "select " + list(10_000, ", ", same("event")) + " from events", 0},
		{"aliases", "select " + list(10_000, ", ", numbered("%d as a%[1]d")), 0},
		{"properties", "select " + list(10_000, ", ", numbered("properties.p%d")) + " from events", 400},
		{"as many properties as may be", "select " + list(3_000, ", ", numbered("properties.p%d")) + " from events", 200},
		{"properties of many SELECTs", list(100, " union all ", same("select "+list(100, " + ", numbered("length(properties.p%d)"))+" from events")), 400},
		{"one property many times", "select " + list(10_000, ", ", numbered("properties.p as a%d")) + " from events", 200},
		{"person properties", "select " + list(2_000, ", ", numbered("pdi.person.properties.p%d")) + " from events", 400},
		{"as many person properties as may be", "select " + list(450, ", ", numbered("pdi.person.properties.p%d")) + " from events", 200},
		{"subqueries in FROM", nested(1_000, "select * from (", "select event from events", ")"), 0},
		{"subqueries as values", "select " + nested(1_000, "(select ", "1", ")"), 0},
		{"subqueries in IN", nested(1_000, "select event from events where event in (", "select 'a'", ")"), 0},
		{"joins", "select 1 from events e0 " + list(1_000, " ", numbered("join events f%d on 1 = 1")), 0},
		{"tables with commas", "select 1 from " + list(1_000, ", ", numbered("events e%d")), 0},
		{"additions", "select " + list(10_000, " + ", same("1")), 0},
		{"divisions", "select " + list(10_000, " / ", same("2")), 0},
		{"ANDs", "select 1 from events where " + list(10_000, " and ", same("event = 'a'")), 0},
		{"ANDs and ORs", "select 1 from events where " + list(5_000, " and ", same("event = 'a' or distinct_id = 'b'")), 0},
		{"concatenations", "select " + list(10_000, " || ", same("'a'")), 0},
		{"comparisons", "select " + list(10_000, " = ", same("1")), 0},
		{"defaults", "select " + list(10_000, " ?? ", same("properties.a")) + " from events", 0},
		{"unknown functions", "select " + list(10_000, ", ", numbered("unknownFunction%d()")), 400},
		{"unknown fields", "select " + list(10_000, ", ", numbered("unknown_field_%d")) + " from events", 400},
		{"unknown tables", "select 1 from " + list(1_000, ", ", numbered("unknown_table_%d")), 400},
		{"arguments", "select concat(" + list(50_000, ", ", same("'a'")) + ")", 0},
		{"a template", "select f'" + strings.Repeat("{1}", 10_000) + "'", 0},
		{"windows", "select 1 from events window " + list(5_000, ", ", numbered("w%d as (partition by event)")), 0},
		{"GROUP BY keys", "select count() from events group by " + list(5_000, ", ", numbered("concat(event, '%d')")), 0},
		{"grouping sets", "select count() from events group by grouping sets (" + list(5_000, ", ", same("(event, distinct_id)")) + ")", 400},
		{"a cube", "select count() from events group by cube(" + list(30, ", ", numbered("concat(event, '%d')")) + ")", 0},
		{"a regular expression", "select match(repeat('a', 1000), '" + nested(5_000, "(", "a", ")*") + "')", 0},
		{"a big array", "select length(range(1000000000))", 0},
		{"a long text", "select length(repeat('a', 1000000000000))", 0},
		{"columns by a pattern", "select columns('" + nested(2_000, "(", "a", ")*") + "') from events", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := processorTime(t)
			answer := c.HogQL(t, tt.query)
			took := processorTime(t) - before
			t.Logf("%d in %v: %.120s", answer.Status, took.Round(time.Millisecond), answer.Raw)
			if answer.Status != http.StatusOK && answer.Status != http.StatusBadRequest || tt.status != 0 && answer.Status != tt.status {
				t.Errorf("answered %d: %.500s", answer.Status, answer.Raw)
			}
			if took > bound {
				t.Errorf("took %v", took)
			}
			before = processorTime(t)
			if rows := fmt.Sprint(c.Query(t, fmt.Sprintf("select count(), %d from events", time.Now().UnixNano()))); !strings.HasPrefix(rows, "[[3 ") {
				t.Errorf("a small query right after: %s", rows)
			}
			if took := processorTime(t) - before; took > bound {
				t.Errorf("a small query right after took %v", took)
			}
		})
	}
	if now := engines(t); !slices.Equal(engine, now) {
		t.Errorf("the engine's processes were %v and are %v", engine, now)
	}
	for _, sign := range []string{"panic", "goroutine ", "BUG: "} {
		if _, text, found := strings.Cut(server.Log(), sign); found {
			t.Errorf("the log holds %q: %.300s", sign, text)
		}
	}
}

// engines lists the processes of the server's engine.
func engines(t *testing.T) []int {
	t.Helper()
	children, err := server.Children()
	if err != nil || len(children) == 0 {
		t.Fatalf("the server has no engine: %v", err)
	}
	return children
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	took, err := server.ProcessorTime()
	if err != nil {
		t.Fatal(err)
	}
	return took
}
