package resolve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// mistakes returns the mistakes of a query, one per line, with hints after an arrow.
func mistakes(t *testing.T, text string) string {
	t.Helper()
	_, _, _, err := resolve.Query(mustParse(t, text), resolve.World{Database: database(t, "UTC"), Now: noon, Spend: budget.New(nil)})
	var found diag.Errors
	if err != nil && !errors.As(err, &found) {
		t.Fatalf("Query(%q): %v is no diag.Errors", text, err)
	}
	lines := make([]string, len(found))
	for i, e := range found {
		lines[i] = e.Error()
		if e.Hint != "" {
			lines[i] += " → " + e.Hint
		}
	}
	return strings.Join(lines, "\n")
}

func TestMistakes(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"unknown field", "select evnt from events", "7:11: Unable to resolve field: evnt → event"},
		{"a word compared with a time", "select timestamp > 'yesterday' from events", "19:30: The text 'yesterday' cannot be read as a time. Write '2024-01-31' or '2024-01-31 12:00:00', or compute it: " +
			"now() - interval 1 day, toStartOfDay(now())"},
		{"no day of any month", "select now() between '2024-02-30' and '2024-12-31' from events", "21:33: The text '2024-02-30' cannot be read as a time. Write '2024-01-31' or " +
			"'2024-01-31 12:00:00', or compute it: now() - interval 1 day, toStartOfDay(now())"},
		{"words in a set of times", "select timestamp in ('2024-02-29', '') from events", "35:37: The text '' cannot be read as a time. Write '2024-01-31' or " +
			"'2024-01-31 12:00:00', or compute it: now() - interval 1 day, toStartOfDay(now())"},
		{"a filter of too few arguments", "select topK(2)() filter (where number = 1) from numbers(1)", "7:42: Aggregation 'topK' expects 1 argument, found 0"},
		{"a filter without parameters", "select topK(number) filter (where number = 1) from numbers(1)", "7:45: Aggregation 'topK' requires parameters in addition to arguments"},
		{"a filter of a state", "select sumForEachState([number]) filter (where number = 1) from numbers(1)", "7:22: FILTER is not supported for 'sumForEachState'"},
		{"a percentage in a subquery", "select * from (select event from events limit 200 %)", "46:49: LIMIT % takes a number from 0 to 100"},
		{
			"a CTE inside of a recursive one that reads it",
			"with recursive a as (select 1 as n union all (with b as (select n from a where n < 5) select n + 1 as n from b)) select n from a",
			"51:52: The CTE 'b' cannot read the recursive CTE that it is part of: use a subquery",
		},
		{
			"a CTE inside of a recursive one", "with recursive a as (select 1 as n union all (with recursive b as (select 1 as m union all select m + 1 as m from b where m < 3), " +
				"c as (select m from b) select n + 1 as n from a cross join c)) select n from a", "",
		},
		{"a column CTE of another one that is hidden", "with person.id as x select y from (with x as y, 1 as x select y from events)", ""},
		{"unknown field of a table", "select e.evnt from events e", "9:13: Field not found: evnt → event"},
		{"unknown field of a lazy join", "select pdi.persn_id from events", "11:19: Field not found: persn_id → person_id"},
		{"field without a table", "select event", "7:12: Unable to resolve field: event"},
		{"unknown table", "select 1 from evnts", "14:19: Unknown table `evnts`. → events"},
		{"unknown table hides its columns", "select a, b from nothing_like_it", "17:32: Unknown table `nothing_like_it`."},
		{"physical table", "select 1 from person_distinct_id2", "14:33: Unknown table `person_distinct_id2`. → person_distinct_ids"},
		{"system table", "select 1 from system.tables", "14:27: Unknown table `system.tables`."},
		{"unknown table of a namespace", "select 1 from posthog.evnts", "14:27: Unknown table `posthog.evnts`. → posthog.events"},
		{"system table in another namespace", "select 1 from posthog.system.teams", "14:34: Unknown table `posthog.system.teams`."},
		{"CTE in a namespace", "with x as (select 1) select * from posthog.x", "35:44: Unknown table `posthog.x`."},
		{"unknown table function", "select 1 from url('x')", "14:17: Unknown table `url`."},
		{"table with arguments", "select 1 from events(1)", "14:23: Table 'events' does not accept arguments"},
		{"numbers without arguments", "select 1 from numbers()", "14:23: Table function 'numbers' requires at least 1 argument"},
		{"numbers of a column", "select 1 from events, numbers(event)", "30:35: Unable to resolve field: event"},
		{
			"unknown function", "select cuont() from events",
			"7:12: Unsupported function call 'cuont(...)'. Perhaps you meant 'count(...)'? → count",
		},
		{"function of the engine", "select sleep(1)", "7:12: Unsupported function call 'sleep(...)'"},
		{"too few arguments", "select toInt()", "7:14: Function 'toInt' expects 1 argument, found 0"},
		{"all mistakes", "select a, count(count()), f(b) from events where sum(1) > c", "7:8: Unable to resolve field: a\n" +
			"16:23: Aggregation 'count' cannot be nested inside another aggregation 'count'.\n" +
			"26:27: Unsupported function call 'f(...)'\n28:29: Unable to resolve field: b\n" +
			"49:55: Aggregation 'sum' cannot be used in WHERE\n58:59: Unable to resolve field: c"},
		{"aggregate by its alias", "select count() as n from events where n > 1", "38:39: Aggregation 'n' cannot be used in WHERE"},
		{
			"aggregate of an aggregate's alias", "select count() as n, sum(n) from events",
			"25:26: Aggregation 'n' cannot be nested inside another aggregation 'sum'.",
		},
		{"alias twice", "select 1 as a, 2 as a", "20:21: Cannot redefine an alias with the name: a"},
		{"table twice", "select 1 from events join events on 1", "26:32: Already have joined a table called \"events\". Can't join another one with the same name."},
		{
			"ambiguous", "select event from events a join events b on a.uuid = b.uuid",
			"7:12: Ambiguous query. Found multiple sources for field: event",
		},
		{"table as a column", "select events from events", "7:13: Can't select a table when a column is expected: events"},
		{"lazy join as a column", "select pdi from events", "7:10: Can't select a table when a column is expected: pdi. Select one of its columns, such as pdi.distinct_id"},
		{"below a column", "select event.x from events", "13:14: Unable to resolve field: x: there is nothing below a value that is not JSON, a tuple or a map"},
		{"asterisk without a table", "select *", "7:8: Cannot use '*' when there are no tables in the query"},
		{"asterisk of two tables", "select * from events a, events b", "7:8: Cannot use '*' without table name when there are multiple tables in the query"},
		{"asterisk of no table", "select x.* from events", "7:8: Unable to resolve field: x"},
		{"asterisk inside", "select upper(*) from events", "13:14: An asterisk is only allowed in a select list or in count(*)"},
		{"no correlation", "select (select e.event) from events e", "15:16: Unable to resolve field: e"},
		{"CTE that uses itself", "with x as (select * from x) select * from x", "25:26: Unknown table `x`."},
		{"CTE twice", "with x as (select 1), x as (select 2) select 1", "22:23: Cannot redefine a CTE with the name: x"},
		{"value as a table", "with 1 as x select * from x", "26:27: CTE `x` is a value, not a table"},
		{"recursion without a start", "with recursive x as (select 1 from x) select * from x", "15:37: The recursive CTE `x` must be one query to start from, UNION ALL, and queries that go on from it"},
		{"recursion with UNION", "with recursive x as (select 1 as n union select n + 1 from x) select n from x", "15:61: The recursive CTE `x` must be one query to start from, UNION ALL, and queries that go on from it"},
		{"recursion in the start", "with recursive x as (select 1 from x union all select 1) select * from x", "35:36: Unknown table `x`."},
		{"columns of a recursion", "with recursive x as (select 1 union all select 1, 2 from x) select 1 from x", "40:58: The members of a set operation must have as many columns as the first: 1, found 2"},
		{"some BY NAME", "select 1 as a union all by name select 2 as a union all select 3", "56:64: Either all set operators are BY NAME or none"},
		{"BY NAME twice", "select 1 as a, 2 as b union all by name select event, event from events", "40:71: BY NAME needs columns of different names, found two called event"},
		{"EXCEPT BY NAME", "select 1 as a except by name select 2 as b", "29:42: INTERSECT and EXCEPT BY NAME need members with the same columns"},
		{"columns of a union", "select 1, 2 union all select 1", "22:30: The members of a set operation must have as many columns as the first: 2, found 1"},
		{"column names of a subquery", "select a from (select 1) as t (a, b)", "31:35: The table has 1 column(s) but 2 column name(s) were provided"},
		{"column names of a table", "select 1 from numbers(3) as n (a, b)", "31:35: The table has 1 column(s) but 2 column name(s) were provided"},
		{"the name that a column has lost", "select e.uuid from events as e (a, b)", "9:13: Field not found: uuid"},
		{"zero index", "select [1][0], properties.x[0], (1, 2).0 from events", "11:12: SQL indexes start from one, not from zero. E.g: array[1]\n" +
			"28:29: SQL indexes start from one, not from zero. E.g: array[1]\n" +
			"32:40: SQL indexes start from one, not from zero. E.g: array[1]"},
		{
			"text compared with a number", "select 1 from events where properties.n > 5",
			"27:39: Cannot compare text with a number: write toFloat(properties.n)",
		},
		{"lambda where none can be", "select arrayMap(x -> x, [1]), lcm(1, x -> x)", "37:43: A lambda can only be the first argument of a function that takes one, such as arrayMap"},
		{"computed name of a property", "select properties[event] from events", "18:23: The name of a property must be constant: JSONExtractString(properties, name) takes a computed one"},
		{"unknown cohort", "select 1 from events where person_id in cohort 2", "47:48: Could not find cohort with ID 2"},
		{"everybody as a cohort", "select 1 from events where person_id in cohort 0", "47:48: Could not find cohort with ID 0"},
		{"cohort of nearly that name", "select 1 from events where person_id in cohort 'payin'", "47:54: Could not find a cohort with the name 'payin' → paying"},
		{"cohort of no such name", "select 1 from events where person_id not in cohort 'nobody\\'s'", "51:62: Could not find a cohort with the name 'nobody\\'s'"},
		{"cohort that is not constant", "select 1 from events where person_id in cohort event", "47:52: IN COHORT only works with constant arguments: the id of a cohort, or its name"},
		{"half a cohort", "select 1 from events where person_id in cohort 1.5", "47:50: cohort() takes exactly one string or integer argument"},
		{"cohort of events", "select 1 from events where event in cohort 5", "27:32: IN COHORT takes the id of a person on its left side, such as person_id"},
		{"mistakes on both sides of IN COHORT", "select 1 from events where prson_id in cohort 2", "27:35: Unable to resolve field: prson_id → person_id\n46:47: Could not find cohort with ID 2"},
		{"cast", "select 1::uint8", "10:15: Unsupported type cast: uint8"},
		{"position", "select event from events group by 2", "34:35: Position 2 is not in the select list of 1 columns"},
		{"unit that is no unit", "select dateDiff('fortnight', timestamp, now()) from events", "16:27: Unknown unit of time for 'dateDiff': fortnight"},
		{"unit that is not constant", "select dateTrunc(event, timestamp) from events", "17:22: The unit of 'dateTrunc' must be a constant text, such as 'day'"},
		{"aggregate for arrayReduce", "select arrayReduce('sleep', [1])", "19:26: Invalid parametric function in 'arrayReduce', 'sleep' is not supported. It takes one of " +
			"avg, avgMap, avgMapState, avgState, count, countMap, countMapState, max, maxMap, maxMapState, median, min, minMap, minMapState, " +
			"sum, sumMap, sumMapState, uniq, uniqMap, uniqMapState, uniqState"},
		{"window function without a window", "select row_number() from events", "7:17: Function 'row_number' needs OVER"},
		{"window of a scalar", "select upper(event) over () from events", "7:12: Function 'upper' cannot have OVER"},
		{"unknown window", "select count() over w from events", "20:21: Unknown window: w"},
		{"distinct of a scalar", "select upper(distinct event) from events", "7:12: Function 'upper' cannot have DISTINCT"},
		{"order inside a call", "select max(event order by timestamp) from events", "26:35: ORDER BY inside the arguments of 'max' is not supported"},
		{"two directions inside a call", "select groupArray(event order by timestamp desc, event) from events", "49:54: ORDER BY inside 'groupArray' must have one direction"},
		{"columns of a subquery after IN", "select event from events where event in (select event, 1 from events)", "40:69: The left side of IN is one value, the subquery gives 2 columns"},
		{"columns of a subquery compared with a tuple", "select 1 where (1, 2) in (select 1, 2, 3)", "25:41: The left side of IN is a tuple of 2, the subquery gives 3 columns"},
		{"limit by a column", "select event from events limit event", "31:36: Unable to resolve field: event"},
		{"totals below", "select * from (select event, count() from events group by event with totals)", "49:75: WITH TOTALS is only allowed in the outermost SELECT: a query around it would not see the totals"},
		{"totals and having", "select event, count() as c from events group by event with totals having c > 1", "39:65: WITH TOTALS is not supported together with HAVING: filter in a subquery"},
		{"table function without arguments", "select * from numbers", "14:21: Table function 'numbers' requires arguments"},
		{"macro over a window", "select every(1) over () from events", "7:12: Function 'every' cannot have OVER or DISTINCT"},
		{"sample of rows", "select 1 from events sample 1000", "28:32: SAMPLE takes a share of the rows, from 0 to 1"},
		{"sample of rows as a fraction", "select 1 from events sample 20/2", "28:32: SAMPLE takes a share of the rows, from 0 to 1"},
		{"sample behind rows", "select 1 from events sample 1/2 offset 3/2", "39:42: SAMPLE takes a share of the rows, from 0 to 1"},
		{"long chain", "select properties" + strings.Repeat(".a", 256) + " from events", "7:529: The query has a chain of more than 256 names"},
		{
			"many keys", "select 1 from events group by event" + strings.Repeat(", event", 1_000),
			"7030:7035: The query has more than 1000 keys in GROUP BY",
		},
		{"sample of a merged table", "select id from persons sample 1/2", "23:33: SAMPLE needs a table that is stored as it is, which persons is not"},
		{"column of USING", "select 1 from events a join persons b using (event)", "45:50: Unable to resolve field: event"},
		{
			"join in parentheses that needs a subquery", "select 1 from numbers(1) a, numbers(1) b left join (numbers(1) c, numbers(1) d) on a.number = c.number",
			"52:78: These tables in parentheses cannot be joined this way: make them a subquery with an alias",
		},
		{
			"asof join in parentheses", "select 1 from numbers(1) a asof join (numbers(1) b, numbers(1) c) on a.number > b.number",
			"38:64: These tables in parentheses cannot be joined this way: make them a subquery with an alias",
		},
		{
			"later table of a join in parentheses", "select 1 from numbers(1) a, numbers(1) b join (numbers(1) c, numbers(1) d) on a.number = d.number",
			"89:97: Unable to resolve field: d: after several tables, the condition sees only the first of those in parentheses: make these a subquery with an alias",
		},
		{
			"table outside the parentheses", "select 1 from numbers(1) a join (numbers(1) b join numbers(1) c on a.number = c.number) on a.number = b.number",
			"67:75: Unable to resolve field: a: a condition in parentheses sees only the tables in them",
		},
		{
			"column outside the parentheses", "select 1 from (select 1 as x) a join (numbers(1) b join (select 1 as y) c on x = y) on x = y",
			"77:78: Unable to resolve field: x: a condition in parentheses sees only the tables in them",
		},
		{
			"one name inside and outside", "select 1 from events a join (persons b join persons a on a.id = b.id) on a.person_id = b.id",
			"29:68: Already have joined a table called \"a\". Can't join another one with the same name.",
		},
		{
			"ambiguous column of USING", "select 1 from (numbers(1) a full join numbers(1) b using number) join numbers(1) c using number",
			"89:95: number is a column of an earlier FULL JOIN, or of both sides of a join: write the condition of this join with ON",
		},
		{"columns that match nothing", "select columns('^nothing$') from events", "7:27: No columns matched the COLUMNS('^nothing$') expression"},
		{"excluded column", "select * exclude (evnt) from events", "18:22: Column \"evnt\" in EXCLUDE list was not found in events → event"},
		{"reserved name of a parameter", "select arrayMap(team_id -> 1, [1])", `16:28: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mistakes(t, tt.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestOutputNames(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"select event, events.event, upper(event) as u from events", []string{"event", "event", "u"}},
		{"select properties.$browser, properties.a.b, properties['a b']['c'], properties.list.1 from events", []string{"$browser", "a__b", "a b__c", "list__1"}},
		{"select person.properties.email, group_0.properties.x.y from events", []string{"email", "x__y"}},
		{"select count(), 1 + 2, [1, 2][1] from events", []string{"count()", "plus(1, 2)", "[1, 2][1]"}},
		{"select 1 as a union all select 2 as b", []string{"a"}},
		{"select * from (select 1 as a, 2 as b)", []string{"a", "b"}},
		{"select * from groups", []string{"index", "key", "created_at", "updated_at", "properties"}},
		{"select * from persons", []string{"id", "created_at", "properties", "is_identified"}},
		{"select * from person_distinct_ids", []string{"distinct_id", "person_id"}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			_, outputs, _, err := resolve.Query(mustParse(t, tt.in), resolve.World{Database: database(t, "UTC"), Now: noon, Spend: budget.New(nil)})
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, len(outputs))
			for i, o := range outputs {
				names[i] = o.Name
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// times joins the results of f for 0 to n-1.
func times(n int, f func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// Queries that are long, deep, or expand to much more than their text must end in time proportional to their text.
func TestLargeQueries(t *testing.T) {
	list := strings.Repeat("'x', ", 49_999) + "'y'"
	doubled := "with 1 as c0" + times(40, func(i int) string { return fmt.Sprintf(", c%d + c%d as c%d", i, i, i+1) })
	aliases := "select 1 as a0" + times(200, func(i int) string { return fmt.Sprintf(", a%d + a%d as a%d", i, i, i+1) })
	ctes := "with t0 as (select properties from events)" + times(60, func(i int) string {
		return fmt.Sprintf(", t%d as (select a.properties from t%d a join t%d b on a.properties.k = b.properties.k)", i+1, i, i)
	})
	nested := "properties.x"
	for i := range 100 {
		nested = fmt.Sprintf("nullIf(%s = properties.y, %d)", nested, i)
	}
	lambdas := "nullIf(x, 0)"
	for i := range 60 {
		lambdas = fmt.Sprintf("nullIf(%s = nullIf(x, %d), 1)", lambdas, i)
	}
	slices := "xs"
	for range 60 {
		slices = "xs[" + slices + "[1]:5]"
	}
	tooLarge := fmt.Sprintf("The query is too large: it grows beyond %d parts once its common table expressions, asterisks, filters and macros "+
		"are expanded.", budget.MaxNodes)
	expanded := fmt.Sprintf("The query is too large: it grows beyond %d parts once its aliases are put in place of their names.", budget.MaxExpanded)
	const tooMany = "The query has more than 500 SELECTs, each use of a CTE counted."
	const tooLaden = "The query has more than 2000 tables and joins, each use of a CTE counted, and those that persons and groups need."
	crowd := func(n int) string {
		columns := times(n, func(i int) string {
			return fmt.Sprintf(", e%d.pdi.person.created_at as a%[1]d, e%[1]d.group_0.created_at as b%[1]d, e%[1]d.group_1.created_at as c%[1]d", i)
		})
		return "select 1 as one" + columns + " from " + strings.TrimPrefix(times(n, func(i int) string { return fmt.Sprintf(", events e%d", i) }), ", ")
	}
	tests := []struct{ name, in, want string }{
		{"list", "select event from events where event in (" + list + ")", ""},
		{"properties in a list", "select event from events where properties.x not in (" + list + ")", ""},
		{"union", "select 1 as a" + strings.Repeat(" union all select 1 as a", 499), ""},
		{"longer union", "select 1 as a" + strings.Repeat(" union all select 1 as a", 9_999), tooMany},
		{"and", "select 1 from events where event = 'a'" + strings.Repeat(" and event = 'b'", 9_999), ""},
		{"columns", "select properties.a" + strings.Repeat(", properties.a", 3_999) + " from events", ""},
		{"aliases that double", aliases, expanded},
		{"comparisons of comparisons", "select " + nested + " from events", expanded},
		{"comparisons of comparisons in a lambda", "select arrayMap(x -> " + lambdas + ", [1])", ""},
		{"slices of slices", "select " + slices + " from (select [1, 2] as xs) as t", expanded},
		{"CTEs that double", ctes + " select properties.k from t60", tooMany},
		{
			"properties of a joined table", "select " + strings.TrimPrefix(times(501, func(i int) string { return fmt.Sprintf(", person.properties.p%d, pdi.person_id", i) }), ", ") + " from events",
			"The query reads more than 500 columns and properties of one joined table.",
		},
		{"tables with persons and groups", crowd(100), ""},
		{"more tables with persons and groups", crowd(250), tooLaden},
		{"a CTE of tables, often", "with c as (" + crowd(30) + ") select 1 from (select 1 as a" + strings.Repeat(" union all select 1 as a from c", 30) + ") as t", tooLaden},
		{"column CTEs that double", doubled + " select c40", tooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := mustParse(t, tt.in)
			spend := budget.New(nil)
			tree, _, _, err := resolve.Query(q, resolve.World{Database: database(t, "UTC"), Now: noon, Spend: spend})
			if err == nil {
				_, _, err = sql.Print(tree, database(t, "UTC"), spend)
			}
			got := ""
			if found, ok := errors.AsType[*diag.Error](err); ok {
				got = found.Detail
			}
			if got != tt.want {
				t.Errorf("mistake %q, want %q (%v)", got, tt.want, err)
			}
		})
	}
}

func TestQueryLeavesItsInput(t *testing.T) {
	for _, text := range nasty {
		q := mustParse(t, text)
		if _, _, _, err := resolve.Query(q, resolve.World{Database: database(t, "UTC"), Now: noon, Spend: budget.New(nil)}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(mustParse(t, text), q); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", text, diff)
		}
	}
}
