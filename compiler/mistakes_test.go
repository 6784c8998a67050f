package compiler_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestMistakesOfEveryKind checks the first mistake of a query for each entry of contract hogql.md, section 16: its code, the exact text that it points
// at, its words, and its hint.
func TestMistakesOfEveryKind(t *testing.T) {
	t.Parallel()
	const (
		syntax = "hogql_syntax_error"
		wrong  = "hogql_query_error"
	)
	tests := []struct {
		name, in             string
		code, at, want, hint string
	}{
		{"does not parse", "select event form events", syntax, "events", "Unexpected 'events', expected the end of the query", ""},
		{"ends too soon", "select event from", syntax, "", "Unexpected end of the query, expected a table", ""},
		{"empty", "", syntax, "", "The query is empty", ""},
		{"reserved alias", "select 1 as team_id", syntax, "team_id", `"team_id" cannot be an alias or identifier, as it's a reserved keyword`, ""},
		{"ARRAY JOIN without alias", "select 1 from events array join [1]", syntax, "[1]", "ARRAY JOIN arrays must have an alias", ""},
		{"another statement", "delete from events", syntax, "delete", "Unexpected 'delete', expected SELECT: there are no other statements", ""},
		{"SETTINGS", "select 1 settings max_threads = 1", syntax, "settings", "SETTINGS is not supported", ""},

		{"unknown table", "select 1 from evnts", wrong, "evnts", "Unknown table `evnts`.", "events"},
		{"unknown field", "select evnt from events", wrong, "evnt", "Unable to resolve field: evnt", "event"},
		{
			"text in double quotes with a percent sign", `select event like "%a%" from events`, syntax, `"%a%"`,
			`The HogQL identifier "%a%" is not permitted as it contains the "%" character`, "Double quotes are for names. Write text in single quotes: '%a%'",
		},
		{"unknown field of a table", "select e.evnt from events e", wrong, "evnt", "Field not found: evnt", "event"},
		{"field below a plain value", "select event.x from events", wrong, "x", "Unable to resolve field: x: there is nothing below a value that is not JSON, a tuple or a map", ""},
		{"unknown function", "select coutn() from events", wrong, "coutn", "Unsupported function call 'coutn(...)'. Perhaps you meant 'count(...)'?", "count"},
		{"unknown function without a near one", "select frobnicate(1)", wrong, "frobnicate", "Unsupported function call 'frobnicate(...)'", ""},
		{"too few arguments", "select toInt()", wrong, "toInt()", "Function 'toInt' expects 1 argument, found 0", ""},
		{"too many arguments", "select toInt(1, 2, 3)", wrong, "toInt(1, 2, 3)", "Function 'toInt' expects 1 argument, found 3", ""},
		{"arguments of an aggregate", "select sum(1, 2) from events", wrong, "sum(1, 2)", "Aggregation 'sum' expects 1 argument, found 2", ""},
		{"parameters", "select sum(1)(2) from events", wrong, "sum(1)(2)", "Aggregation 'sum' expects 0 parameters, found 1", ""},
		{"nested aggregates", "select sum(count()) from events", wrong, "count()", "Aggregation 'count' cannot be nested inside another aggregation 'sum'.", ""},
		{"zero index", "select [1][0]", wrong, "0", "SQL indexes start from one, not from zero. E.g: array[1]", ""},
		{"asterisk without a table", "select *", wrong, "*", "Cannot use '*' when there are no tables in the query", ""},
		{"asterisk of several tables", "select * from events a, persons b", wrong, "*", "Cannot use '*' without table name when there are multiple tables in the query", ""},
		{"table as a column", "select events from events", wrong, "events", "Can't select a table when a column is expected: events", ""},
		{"redefined alias", "select 1 as a, 2 as a", wrong, "a", "Cannot redefine an alias with the name: a", ""},
		{"double table name", "select 1 from events e join persons e on 1", wrong, "e", "Already have joined a table called \"e\". Can't join another one with the same name.", ""},
		{"FINAL", "select 1 from events final", wrong, "final", "The FINAL keyword is not supported in HogQL as it causes slow queries", ""},
		{"arguments of a table", "select 1 from events(1)", wrong, "events(1)", "Table 'events' does not accept arguments", ""},
		{"no arguments of a table function", "select 1 from numbers()", wrong, "numbers()", "Table function 'numbers' requires at least 1 argument", ""},
		{"a zone that is a file", "select toTimeZone(now(), 'file:/proc/self/fd/3')", wrong, "'file:/proc/self/fd/3'", "Unknown time zone: file:/proc/self/fd/3", ""},
		{"zone in another case", "select toDateTime('2024-01-01', 'europe/berlin')", wrong, "'europe/berlin'", "Unknown time zone: europe/berlin", "Europe/Berlin"},
		{"a fixed offset", "select now('Fixed/UTC+01:00:00')", wrong, "'Fixed/UTC+01:00:00'", "Unknown time zone: Fixed/UTC+01:00:00", ""},
		{"no zone", "select formatDateTime(now(), '%Y', '')", wrong, "''", "Unknown time zone: ", ""},
		{"NULL for a zone", "select toStartOfDay(now(), null)", wrong, "null", "The time zone of 'toStartOfDay' must be a constant name, such as 'Europe/Berlin'", ""},
		{
			"computed zone", "select toTimeZone(now(), concat('file:', '/x'))", wrong, "concat('file:', '/x')",
			"The time zone of 'toTimeZone' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{
			"zone of a property", "select toTimeZone(timestamp, properties.tz) from events", wrong, "properties.tz",
			"The time zone of 'toTimeZone' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{
			"zone of a lambda", "select arrayMap(x -> toString(now(), x), ['UTC'])", wrong, "x",
			"The time zone of 'toString' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{
			"zone of a subquery", "select toTimeZone(now(), (select 'UTC'))", wrong, "(select 'UTC')",
			"The time zone of 'toTimeZone' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{
			"computed zone through an alias", "select lower('x') as tz, toTimeZone(now(), tz)", wrong, "tz",
			"The time zone of 'toTimeZone' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{"zone through an alias", "select 'x' as tz, toTimeZone(now(), tz)", wrong, "tz", "Unknown time zone: x", ""},
		{"zone through a CTE", "with 'x' as tz select toTimeZone(now(), tz)", wrong, "'x'", "Unknown time zone: x", ""},
		{"zone of a macro", "select timezone('x', now())", wrong, "'x'", "Unknown time zone: x", ""},
		{"text as an origin", "select date_bin(interval 1 day, now(), '2024-01-01')", wrong, "'2024-01-01'", "Unknown time zone: 2024-01-01", ""},
		{
			"computed origin", "select toStartOfInterval(timestamp, interval 1 day, properties.x) from events", wrong, "properties.x",
			"The time zone of 'toStartOfInterval' must be a constant name, such as 'Europe/Berlin'", "",
		},
		{"zone in a type", `select JSONExtract('{}', 'a', 'Array(DateTime(\'utc\'))')`, wrong, `'Array(DateTime(\'utc\'))'`, "Unknown time zone: utc", "Array(DateTime('UTC'))"},
		{"unknown type", "select JSONExtractKeysAndValues(properties, 'Strng') from events", wrong, "'Strng'", "Unknown type: Strng", "String"},
		{
			"computed type", "select JSONExtract(properties, 'a', event) from events", wrong, "event",
			"The type of 'JSONExtract' must be a constant text, such as 'Array(String)'", "",
		},
		{"unknown character set", "select convertCharset('a', '../../utf-8', 'utf-8')", wrong, "'../../utf-8'", "Unknown character set: ../../utf-8", ""},
		{
			"computed character set", "select convertCharset('a', 'utf-8', event) from events", wrong, "event",
			"The character set of 'convertCharset' must be a constant name, such as 'windows-1251'", "",
		},
		{"a far distance", "select multiFuzzyMatchAny('a', 3, ['b'])", wrong, "3", "The distance of 'multiFuzzyMatchAny' must be a constant from 0 to 2", ""},
		{"computed distance", "select multiFuzzyMatchAny('a', length('a'), ['b'])", wrong, "length('a')", "The distance of 'multiFuzzyMatchAny' must be a constant from 0 to 2", ""},
		{
			"long patterns", "select multiFuzzyMatchAnyIndex('a', 1, ['abcdefghijklmnop', 'abcdefghijklmnopq'])", wrong, "['abcdefghijklmnop', 'abcdefghijklmnopq']",
			"The patterns of 'multiFuzzyMatchAnyIndex' must be constant, and 32 bytes together at most", "",
		},
		{
			"computed patterns", "select multiFuzzyMatchAllIndices(event, 1, [event]) from events", wrong, "[event]",
			"The patterns of 'multiFuzzyMatchAllIndices' must be constant, and 32 bytes together at most", "",
		},
		{"unresolved placeholder", "select {name}", wrong, "name", "Unresolved placeholder: {name}", ""},
		{"unknown variable", "select {variables.pln}", wrong, "pln", "Variable pln is missing from query. Did you mean: plan?", "plan"},
		{"variable that the project lacks", "select {variables.gone}", wrong, "gone", "Variable gone does not exist", ""},
		{
			"filters on a wrong table", "select 1 from persons where {filters}", wrong, "{filters}",
			"Cannot use 'filters' placeholder in a SELECT clause that does not select from the events, sessions, logs, traces or groups table.", "",
		},
		{
			"other filters", "select 1 from events where {filters.dateRange.form} < timestamp", wrong, "filters.dateRange.form",
			"Unsupported filters placeholder `{filters.dateRange.form}`: there are {filters}, {filters.dateRange.from} and {filters.dateRange.to}", "filters.dateRange.from",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := &query.HogQL{Query: tt.in, Variables: map[string]query.Variable{"1": {CodeName: "plan"}, "2": {CodeName: "gone"}}}
			_, err := compiler.Compile(q, asked.env(t))
			found := compiler.Mistakes(err)
			if len(found) == 0 {
				t.Fatalf("Compile gives %v, want a mistake", err)
			}
			m := found[0]
			got := []string{string(m.Code), tt.in[m.Span.Start:m.Span.End], m.Detail, m.Hint}
			if diff := cmp.Diff([]string{tt.code, tt.at, tt.want, tt.hint}, got); diff != "" {
				t.Errorf("mistake of %q (-want +got):\n%s", tt.in, diff)
			}
			if len(found) > 1 {
				t.Errorf("and %d more: %s", len(found)-1, fmt.Sprint(err))
			}
		})
	}
}

// Mistakes in one stage do not hide those of the next.
func TestMistakesOfAllStages(t *testing.T) {
	t.Parallel()
	_, err := compiler.Compile(&query.HogQL{Query: "select evnt, {x} from events where event = {y} limit 1.5"}, asked.env(t))
	want := "7:11: Unable to resolve field: evnt\n14:15: Unresolved placeholder: {x}\n44:45: Unresolved placeholder: {y}\n" +
		"53:56: LIMIT takes a whole number that is not negative"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}
