package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// odd are values of every type, where a function may want another.
var odd = []string{
	"0", "1", "-1", "2.5", "1e308", "-0.0", "255", "65536", "9223372036854775807", "18446744073709551615", "nan", "inf", "null", "true", "false",
	"''", "'a'", "'1'", "'-1'", "'a{1,30000}'", "'('", "'[a-'", "'%'", "'\\0\\xff'", "'{\"a\": [1, null]}'", "'$.a[*]'", "'2024-01-31'",
	"'2024-01-31 12:00:00.5'", "'UTC'", "'Mars/Olympus'", "'day'", "'Array('", "'Nullable(Int8)'", "'ünï'", "'https://a.example/b?c=d#e'", "'utf-8'",
	"'127.0.0.1'", "'::1'", "'00000000-0000-4000-8000-000000000001'", "'quantile(0.5)'", "'sumIf'", "'aes-256-gcm'", "repeat('ab', 5000)",
	"[]", "[1, 2, 3]", "['a', null]", "[[1], []]", "[1.5, -1]", "range(1000)", "[(1, 'a'), (2, 'b')]", "arrayMap(x -> null, range(3))",
	"(1, 'a')", "tuple()", "tuple(1)", "((1, 2), [3])", "map('a', 1)", "map()", "map(1, [2])",
	"now()", "today()", "toDate('2024-01-31')", "toDateTime('2024-01-31 12:00:00')", "toDateTime64('2024-01-31 12:00:00.123', 3)", "interval 1 day", "interval -5 month",
	"toUUID('00000000-0000-4000-8000-000000000001')", "toDecimal('1.5', 3)", "toDecimal('99999999999999', 20)", "toIPv4('127.0.0.1')", "toString(null)",
	"number", "toString(number)", "materialize('a')", "materialize(null)", "[number]", "(number, 'a')", "if(number > 1, null, number)",
	"x -> x", "x -> null", "(x, y) -> x + y", "(a, b, c) -> a", "x -> arrayJoin([x])", "x -> count()",
	"count()", "sum(number)", "uniqState(number)", "sumMap([1], [number])", "groupArray(number)", "count() over ()", "row_number() over (order by number)",
	"(select 1)", "(select 1, 2)", "(select number from numbers(2))", "*", "columns('.*')", "star",
}

// fields stand in the place of numbers where a query reads events.
var fields = []string{
	"event", "properties", "properties.n", "properties.word", "properties.nested", "properties.list", "timestamp", "uuid", "person_id", "person",
	"person.properties", "person.properties.at", "elements_chain_texts", "elements_chain", "distinct_id", "$group_0", "created_at", "team_id",
}

// shapes are places for an expression.
var shapes = []string{
	"select %s from %s", "select %s from %s", "select %s from %s", "select %s from %s",
	"select count() from %[2]s where %[1]s", "select count() from %[2]s prewhere %[1]s", "select %s as a, count() from %s group by a", "select count() from %[2]s group by %[1]s",
	"select count() from %[2]s group by all having %[1]s", "select 1 from %[2]s order by %[1]s", "select 1 from %[2]s limit 1 by %[1]s", "select distinct %s from %s",
	"select arrayMap(q -> %s, [1, 2]) from %s", "select arrayMap(q -> arrayMap(w -> (%s, q, w), [1]), [2]) from %s", "select sum(%s) from %s", "select any(%s) over (partition by 1) from %s",
	"select count() over (partition by %[1]s order by %[1]s) from %[2]s", "select sum(count() over ()) over (order by %s) from %s", "select %[1]s, %[1]s in (select %[1]s from %[2]s) from %[2]s",
	"select 1 from %[2]s a join %[2]s b on %[1]s", "select 1 from %[2]s a left join %[2]s b on %[1]s = %[1]s", "select 1 from %[2]s a asof join %[2]s b on 1 = 1 and %[1]s >= %[1]s",
	"select j from %[2]s array join %[1]s as j", "select arrayJoin(%s) from %s", "with %s as v select v, v from %s", "with recursive r as (select %[1]s as k union all select k from r) select k from r, %[2]s limit 3",
	"select %s from %s with totals", "select %[1]s from %[2]s group by rollup(%[1]s)", "select %s from %s union all select 1", "select %s from %s intersect select 'a'",
	"select quantile(%s)(1) from %s", "select case %[1]s when %[1]s then %[1]s else 1 end from %[2]s", "select (%[1]s)::int, %[1]s is null, %[1]s between %[1]s and 1 from %[2]s",
	"select %s limit 5 offset 1 -- %s", "select (select %s from %s)", "select 1 from (select %s as z from %s) where z", "select %s over w from %s window w as (order by 1 rows between 1 preceding and current row)",
}

// found are queries that failed on the engine as no query may, and others of their kind.
var found = []string{
	"select sum(count() over ()) over () from events", "select count() over (order by count() over ()) from numbers(3)", "select max(rank() over (order by number)) from numbers(3)",
	"select multiMatchAny('x', ['a{1,30000}'])", "select multiMatchAllIndices(event, ['(']) from events", "select multiFuzzyMatchAny('x', 200, ['abc'])",
	"select " + strings.Repeat("arrayMap(x -> ", 100) + "1" + strings.Repeat(", [1])", 100),
	"select JSONExtract('{}', 'a', 'Array(')", "select convertCharset('a', 'utf-8', 'klingon')", "select event from events group by 7", "select 1 from events order by 3",
	"select toDateTime('x')::int", "select fromUnixTimestamp(-1e30)", "select arrayReduce('nope', [1])", "select arrayReduce('quantile(7)', [1])", "select base64Decode('*')",
	"select a.event from events a asof join events b on a.event = b.event", "select * from events a join events b using (nothing)", "select number from numbers(-1)",
	"select range(1e12)", "select repeat('a', 1e12)", "select arrayWithConstant(1e12, 'a')", "select 1 limit -1", "select 1 limit 1e30", "select 'a' + [1]", "select -'a'", "select not [1]",
	"select match('a', 'a{1,30000}')", "select extractAll('a', '(')", "select replaceRegexpAll('a', '(?<x>a)(', 'b')", "select 'a' like '\\\\'",
	"select [1, 'a', [2]]", "select map('a', 1, 2)", "select (1, 2) = (1, 2, 3)", "select (1, 2) in (1, 2)", "select 1 in (select 1, 2)", "select [1] in (1)",
	"select quantiles(0.5, 2)(1)", "select topK(1e9)(event) from events", "select groupArray(-1)(1)", "select windowFunnel(0)(now(), true)", "select sequenceMatch('(')(now(), true)",
	"select histogram(0)(1)", "select toIntervalDay('a')", "select now() + 'a'", "select dateDiff('nope', now(), now())", "select toStartOfInterval(now(), 1)", "select formatDateTime(now(), '%')",
	"select sum(sum(1))", "select count() from events where count() > 1", "select event, count() from events", "select 1 group by 1 having max(max(1))",
}

// leaks is what no message for a query's author may hold.
var leaks = regexp.MustCompile(`(?i)team_id\b.*\d|__table\d|/src/|/build/|/tmp/|/var/|additional_table_filters|stack trace|\bDB::`)

// hostile writes queries that are mostly wrong.
type hostile struct {
	*generator
	functions []*schema.Function
	right     []string // calls that are right, to put odd values into
}

func (g *hostile) value(depth int, from string) string {
	switch {
	case depth > 0 && g.chance(25):
		return g.call(depth-1, from)
	case from == "events" && g.chance(40):
		return pick(g.generator, fields...)
	}
	text := pick(g.generator, odd...)
	if from == "events" {
		text = strings.ReplaceAll(text, "number", "length(event)")
	}
	return text
}

// spoiled takes a call that is right, and puts an odd value in the place of a constant.
func (g *hostile) spoiled(depth int, from string) string {
	e, err := hogql.ParseExpr(pick(g.generator, g.right...))
	if err != nil {
		panic(fmt.Sprintf("BUG: an example that does not parse: %v", err))
	}
	constants := 0
	hogql.RewriteExpr(e, func(e hogql.Expr) hogql.Expr {
		if _, ok := e.(*hogql.Const); ok {
			constants++
		}
		return e
	})
	value, err := hogql.ParseExpr(g.value(depth, from))
	if err != nil || constants == 0 {
		return hogql.PrintExpr(e)
	}
	at := g.IntN(constants)
	return hogql.PrintExpr(hogql.RewriteExpr(e, func(e hogql.Expr) hogql.Expr {
		if _, ok := e.(*hogql.Const); !ok {
			return e
		}
		if at--; at == -1 {
			return value
		}
		return e
	}))
}

// call writes a call of any function with about as many arguments as it takes.
func (g *hostile) call(depth int, from string) string {
	if g.chance(60) {
		return g.spoiled(depth, from)
	}
	f := pick(g.generator, g.functions...)
	list := func(least, most int) string {
		if most < least || most > least+4 {
			most = least + 2
		}
		n := least + g.IntN(most-least+1)
		if g.chance(4) {
			n = g.IntN(6)
		}
		values := make([]string, n)
		for i := range values {
			values[i] = g.value(depth, from)
		}
		return strings.Join(values, ", ")
	}
	text := f.Name
	if f.MaxParams > 0 || g.chance(2) {
		text += "(" + list(f.MinParams, f.MaxParams) + ")"
	}
	text += "(" + list(f.MinArgs, f.MaxArgs) + ")"
	if f.WindowOnly || g.chance(3) {
		text += pick(g.generator, " over ()", " over (order by 1)", " over (partition by "+g.value(0, from)+" order by "+g.value(0, from)+" rows between 2 preceding and 1 following)")
	}
	return text
}

func (g *hostile) query() string {
	if g.chance(10) {
		return g.generator.query()
	}
	from := pick(g.generator, "numbers(3)", "numbers(3)", "numbers(0)", "events")
	text := g.call(1+g.IntN(2), from)
	if g.chance(15) {
		text = strings.Repeat(pick(g.generator, "toString(", "(", "-", "not ", "[")+"", 1) + text
	}
	return fmt.Sprintf(pick(g.generator, shapes...), text, from)
}

// examples reads a call of each function.
func examples(t *testing.T) (calls []string) {
	t.Helper()
	raw, err := os.ReadFile("../../compiler/schema/testdata/examples.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			calls = append(calls, text)
		}
	}
	return calls
}

// TestNoQueryIsAnInternalError asks thousands of queries that make little sense. Whatever ClickHouse thinks of them, it is
// the author's to mend: a mistake, or a limit; and what the author is shown holds nothing of the server.
func TestNoQueryIsAnInternalError(t *testing.T) {
	all := newTenants(t)
	library := newLibrary(t, all.db)
	functions, right := slices.Collect(schema.Functions()), examples(t)
	count, seed := rounds(t, 2500), firstSeed(t)
	tally := &tally{refused: map[string]int{}, failed: map[string]int{}}
	next := make(chan string)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for text := range next {
				all.provoke(t, text, tally)
			}
		})
	}
	for _, text := range found {
		next <- text
	}
	for i := range count {
		if tally.bad.Load() >= 20 {
			break
		}
		g := &hostile{generator: library.generator(uint64(seed + i)), functions: functions, right: right}
		g.Rand = rand.New(rand.NewPCG(uint64(seed+i), 47))
		next <- g.query()
	}
	close(next)
	workers.Wait()
	t.Logf("%d answered, %d failed on the engine %v", tally.answered.Load(), tally.errors.Load(), tally.failed)
	if failed := tally.errors.Load(); failed*100 < int64(count)*10 && tally.bad.Load() == 0 {
		t.Errorf("only %d of %d queries failed on the engine: the generator provokes too little", failed, count)
	}
}

// provoke asks one query, and looks at how it fails.
func (all *tenants) provoke(t *testing.T, text string, c *tally) {
	t.Helper()
	compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: all.db, Now: day})
	if err != nil {
		if compiler.Mistakes(err) == nil {
			c.bad.Add(1)
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	_, err = all.both.Query(context.Background(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: tenant}, nothing{})
	if err == nil {
		c.answered.Add(1)
		return
	}
	c.errors.Add(1)
	failure, ok := errors.AsType[*clickhouse.Error](err)
	if !ok || failure.Kind == clickhouse.Internal || failure.Kind == clickhouse.Unavailable || leaks.MatchString(failure.Message) || strings.Contains(failure.Message, marker) {
		c.bad.Add(1)
		t.Errorf("%s\n%v\n%v\n--- SQL\n%s", short(text), err, failure, short(compiled.SQL))
		return
	}
	if failure.Kind == clickhouse.Unrunnable { // no failure of the test, but worth a look: the compiler may know better
		t.Logf("%s\n%v: %s", short(text), failure, failure.Reason())
	}
	c.mu.Lock()
	c.failed[fmt.Sprintf("%v %d %s", failure.Kind, failure.Code, failure.Name)]++
	c.mu.Unlock()
}
