package resolve_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

const project = 7

var noon = time.Date(2024, 5, 31, 12, 0, 0, 0, time.UTC)

// database is a project with a bit of everything.
func database(t *testing.T, zone string) *schema.Database {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.Database{
		Project: project, Location: location,
		GroupTypes: map[string]int{"organization": 0},
		Cohorts:    schema.NewCohorts([]schema.Cohort{{ID: 5, Name: "paying", Version: 3}}, false),
		Properties: schema.PropertyTypes{
			{Scope: schema.EventProperty, Name: "amount"}:               schema.NumericProperty,
			{Scope: schema.EventProperty, Name: "paid"}:                 schema.BooleanProperty,
			{Scope: schema.EventProperty, Name: "due"}:                  schema.DateTimeProperty,
			{Scope: schema.EventProperty, Name: "$ai_trace_id"}:         schema.NumericProperty,
			{Scope: schema.PersonProperty, Name: "age"}:                 schema.NumericProperty,
			{Scope: schema.GroupProperty, Group: 0, Name: "seats"}:      schema.NumericProperty,
			{Scope: schema.GroupProperty, Group: 1, Name: "not_seats"}:  schema.NumericProperty,
			{Scope: schema.PersonProperty, Name: "amount"}:              schema.StringProperty,
			{Scope: schema.EventProperty, Group: 0, Name: "of no type"}: "Whatever",
		},
	}
}

func mustParse(t *testing.T, text string) hogql.Query {
	t.Helper()
	q, err := hogql.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

// compiled returns the SQL of a query with parameters in place, and with the reading of properties as text shortened to P(path).
func compiled(t *testing.T, db *schema.Database, text string) string {
	t.Helper()
	tree, _, _, err := resolve.Query(mustParse(t, text), resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
	if err != nil {
		t.Fatalf("Query(%q): %v", text, err)
	}
	out, params, err := sql.Print(tree, db, nil)
	if err != nil {
		t.Fatalf("Print(%q): %v", text, err)
	}
	for _, p := range slices.Backward(params) {

		value := p.Value
		if p.Type == "String" {
			value = "'" + value + "'"
		}
		out = strings.ReplaceAll(out, "{"+p.Name+":"+p.Type+"}", value)
	}
	return strings.ReplaceAll(out, "`", "")
}

// texts shortens the reading of properties as text.
func texts(sql string, paths ...string) string {
	for _, path := range paths {
		column, key, _ := strings.Cut(path, ".")
		str, object := "dynamicElement("+path+", 'String')", column+".^"+key
		full := "if(isNotNull(" + str + "), " + str + ", multiIf(isNotNull(" + path + "), toJSONString(" + path + "), notEmpty(" + object + "), toString(" + object + "), NULL))"
		sql = strings.ReplaceAll(sql, full, "P("+key+")")
	}
	return sql
}

func TestExpressions(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"column", "event", "event"},
		{"text property", "properties.x", "P(x)"},
		{"key with a dot", "JSONHas(properties, 'a.b') or properties['a.b'] = 'c'", "notEmpty(multiIf(isNotNull(properties.a%2Eb), " +
			"assumeNotNull(toJSONString(properties.a%2Eb)), notEmpty(properties.^a%2Eb), toString(properties.^a%2Eb), '')) " +
			"OR ifNull(properties.a%2Eb.:String = 'c', 0)"},
		{"nested", "properties.x.y", "P(x.y)"},
		{"element", "properties.x[1].y", "JSONExtract(toJSONString(properties.x), 1, 'y', 'Nullable(String)')"},
		{"whole document", "properties", "toString(properties)"},
		{"number", "properties.amount", "multiIf(isNotNull(properties.amount.:Float64), properties.amount.:Float64, " +
			"isNotNull(properties.amount.:Int64), toFloat64(properties.amount.:Int64), " +
			"accurateCastOrNull(properties.amount.:String, 'Float64'))"},
		{"boolean", "properties.paid", "if(isNotNull(properties.paid.:Bool), properties.paid.:Bool, " +
			"toBool(transform(properties.paid.:String, ['true','false'], [1, 0], NULL)))"},
		{"time", "properties.due", "parseDateTime64BestEffortOrNull(P(due), 6, 'UTC')"},
		{"typed only one level deep", "properties.amount.x", "P(amount.x)"},
		{"text where a function takes text", "toFloatOrZero(properties.amount)", "toFloat64OrZero(P(amount))"},
		{"ids of traces are texts", "properties.$ai_trace_id", "P($ai_trace_id)"},
		{"type of another scope", "person.properties.amount", "P(amount)"},

		{"equal", "event = 'a'", "event = 'a'"},
		{"equal to NULL", "properties.x = null", "isNull(P(x))"},
		{"not equal to NULL", "null != properties.x", "isNotNull(P(x))"},
		{"less than NULL", "1 < null", "0"},
		{"both NULL", "null = null", "1"},
		{"word", "properties.x = 'a'", "ifNull(properties.x.:String = 'a', 0)"},
		{"other than a word", "properties.x != 'a'", "ifNull(properties.x.:String != 'a', 1)"},
		{"text that may be a number", "properties.x = '5'", "ifNull(P(x) = '5', 0)"},
		{"text that may be a boolean", "properties.x = 'true'", "ifNull(P(x) = 'true', 0)"},
		{"both nullable", "nullIf(event, 'a') = properties.x", "ifNull((nullIf(event, 'a') AS value) = (P(x) AS value_2), " +
			"isNull(value) AND isNull(value_2))"},
		{"like", "properties.x not like 'a%'", "ifNull(P(x) NOT LIKE 'a%', 1)"},
		{"match", "properties.x =~* 'a'", "ifNull(match(P(x), '(?i)a'), 0)"},
		{"not match", "event !~ 'a'", "NOT match(event, 'a')"},
		{"in words", "properties.x in ('a', 'b')", "properties.x.:String IN ['a','b']"},
		{"in with NULL", "properties.x not in ('a', null)", "P(x) NOT IN ['a',NULL]"},
		{"in nothing", "event in []", "0"},
		{"not in nothing", "event not in []", "1"},
		{"in what is not constant", "event in (distinct_id, 'a')", "has([distinct_id, 'a'], event)"},
		{"not of equal", "not properties.x = 'a'", "ifNull(properties.x.:String != 'a', 1)"},
		{"between", "(properties.amount is null) and (toInt(event) between 1 and 2)", "isNull(multiIf(isNotNull(properties.amount.:Float64), " +
			"properties.amount.:Float64, isNotNull(properties.amount.:Int64), toFloat64(properties.amount.:Int64), " +
			"accurateCastOrNull(properties.amount.:String, 'Float64'))) AND ifNull((accurateCastOrNull(event, 'Int64') AS value) >= 1 " +
			"AND value <= 2, 0)"},
		{"and folds", "event = 'a' and true and 1", "event = 'a'"},
		{"and with false", "event = 'a' and 0", "0"},
		{"or folds", "event = 'a' or false", "event = 'a'"},
		{"or with true", "event = 'a' or 1", "1"},

		{"concat", "event || 3 || properties.x", "concat(event, toString(3), ifNull(P(x), ''))"},
		{"coalesce is not nullable", "coalesce(properties.x, 'a') = 'b'", "coalesce(P(x), 'a') = 'b'"},
		{"if of nullable", "if(properties.x = 'a', 1, 2)", "if(properties.x.:String = 'a', 1, 2)"},
		{"case", "case when event = 'a' then 1 when event = 'b' then 2 end", "multiIf(event = 'a', 1, event = 'b', 2, NULL)"},
		{"case of a value", "case event when 'a' then 1 else 2 end", "transform(event, ['a'], [1], 2)"},
		{"case of a value, not constant", "case event when distinct_id then 1 else 2 end", "if(event = distinct_id, 1, 2)"},
		{"cast", "event::int", "toInt64(event)"},
		{"negative", "-toInt(event)", "0 - accurateCastOrNull(event, 'Int64')"},
		{"negative literal", "-(3)", "-3"},
		{"slice", "[1, 2, 3][2:3]", "arraySlice([1, 2, 3], 2, 2)"},
		{"open slice", "[1, 2, 3][2:]", "arraySlice([1, 2, 3], 2)"},
		{"dictionary", "{'k': 1}", "tuple('__hx_tag', '__hx_obj', 'k', 1)"},
		{"tuple element", "(1, 'a').2", "tupleElement(tuple(1, 'a'), 2)"},
		{"lambda", "arrayMap(x -> x + 1, [1])", "arrayMap(x -> x + 1, [1])"},
		{"lambda over what can be NULL", "arrayExists(x -> x = 'a', [properties.x])", "arrayExists(x -> ifNull(x = 'a', 0), [P(x)])"},
		{"sum of a lambda", "arraySum(x -> toFloatOrZero(x), splitByChar(',', event)) > 100", "arraySum(x -> toFloat64OrZero(x), splitByChar(',', event)) > 100"},
		{"least of a lambda", "arrayMin(x -> length(x), elements_chain_texts) + 1", "arrayMin(x -> length(x), elements_chain_texts) + 1"},
		{"number of elements by a lambda", "arraySum(x -> x = 'a', elements_chain_texts) = 2", "arraySum(x -> x = 'a', elements_chain_texts) = 2"},
		{"lambda over what cannot", "arrayExists(x -> x = 'a', elements_chain_texts)", "arrayExists(x -> x = 'a', elements_chain_texts)"},

		{"number of text", "toFloat(properties.x)", "multiIf(isNotNull(properties.x.:Float64), properties.x.:Float64, " +
			"isNotNull(properties.x.:Int64), toFloat64(properties.x.:Int64), accurateCastOrNull(properties.x.:String, 'Float64'))"},
		{"count all", "count(*)", "count()"},
		{"count distinct", "count(distinct event)", "count(DISTINCT event)"},
		{"filter", "count(*) filter (where properties.x = 'a')", "countIf(properties.x.:String = 'a')"},
		{"filter of the most frequent", "topK(3)(event) filter (where properties.x = 'a')", "topKIf(3)(event, properties.x.:String = 'a')"},
		{"filter of an exact quantile", "quantileExact(0.9)(length(event)) filter (where event = 'a')", "quantileExactIf(0.9)(length(event), event = 'a')"},
		{
			"filter of a funnel", "windowFunnel(60, 'strict_order')(timestamp, event = 'a', event = 'b') filter (where properties.x = 'a')",
			"windowFunnelIf(60, 'strict_order')(timestamp, event = 'a', event = 'b', properties.x.:String = 'a')",
		},
		{"filter of listed columns", "argMax(*columns(event, distinct_id)) filter (where event = 'a')", "argMaxIf(event, distinct_id, event = 'a')"},
		{"average of nothing", "avgArray([1.5]) is null", "isNull(avgArrayOrNull([1.5]))"},
		{"median of nothing", "medianArray([1]) filter (where event = 'a') = 1", "ifNull(medianArrayOrNullIf([1], event = 'a') = 1, 0)"},
		{"JSON function on a document", "JSONExtractString(properties, 'x')", "ifNull(properties.x.:String, '')"},
		{"JSON function with a scalar", "JSONExtractInt(properties, 'x', 'y')", "JSONExtractInt(ifNull(toJSONString(properties.x.y), 'null'))"},
		{"macro", "split_part(event, '-', 2)", "arrayElement(splitByString('-', event), 2)"},
		{"decimal", "toDecimal(event, 2)", "accurateCastOrNull(event, 'Decimal64(2)')"},
		{"not between with a bound that can be NULL", "(event not between nullIf(event, 'a') and 'z')", "ifNull((event < (nullIf(event, 'a') AS value) " +
			"OR event > 'z') AND isNotNull(value) AND isNotNull('z'), 0)"},
		{
			"both nullable in a lambda", "arrayMap(x -> nullIf(x, 1) = nullIf(x, 2), [1])",
			"arrayMap(x -> arrayElement(arrayMap((value, value_2) -> ifNull(value = value_2, isNull(value) AND isNull(value_2)), " +
				"[nullIf(x, 1)], [nullIf(x, 2)]), 1), [1])",
		},
		{"case under a parameter of its name", "arrayMap(value -> case value % 2 when 0 then value else -value end, [1])", "arrayMap(value -> arrayElement(arrayMap(value_2 -> if(value_2 = 0, value, 0 - value), [value % 2]), 1), [1])"},
		{"between under a parameter of its name", "arrayMap(value -> (value + 1) between value and 10, [1])", "arrayMap(value -> arrayElement(arrayMap(value_2 -> value_2 >= value AND value_2 <= 10, [value + 1]), 1), [1])"},
		{"slice under a parameter of its name", "arrayMap(value -> [1, 2][(value + 1):value], [1])", "arrayMap(value -> arrayElement(arrayMap(value_2 -> arraySlice([1, 2], value_2, value - value_2 + 1), [value + 1]), 1), [1])"},
		{"slice from what is computed", "[1, 2][length(event):length(event)]", "arraySlice([1, 2], (length(event) AS value), length(event) - value + 1)"},
		{"lag", "lag(event) over (order by timestamp)", "lagInFrame(toNullable(event)) OVER (ORDER BY timestamp ASC " +
			"ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"},
	}
	db := database(t, "UTC")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compiled(t, db, "select "+tt.in+" as result from events")
			got, _, _ = strings.Cut(strings.TrimPrefix(got, "SELECT "), " AS result FROM events WHERE team_id = 7")
			got = texts(got, "properties.x.y", "properties.amount.x", "properties.x", "properties.due", "properties.amount",
				"properties.$ai_trace_id", "person_properties.amount")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// A virtual field is a single column, whichever of its names it is read by.
func TestVirtualFieldsAsProperties(t *testing.T) {
	tests := []struct{ name, property, field string }{
		{"of a table", "select properties.$virt_initial_channel_type as c from persons", "select $virt_initial_channel_type as c from persons"},
		{
			"by its key", "select p.properties['$virt_initial_channel_type'] as c from persons p",
			"select p.$virt_initial_channel_type as c from persons p",
		},
		{
			"of a part of a table", "select (poe.properties).$virt_initial_channel_type as c from events",
			"select poe.$virt_initial_channel_type as c from events",
		},
		{
			"of a joined table", "select event from events where pdi.person.properties.$virt_initial_referring_domain_type is null",
			"select event from events where pdi.person.$virt_initial_referring_domain_type is null",
		},
		{
			"as text", "select toFloat(toString(person.properties.$virt_initial_channel_type)) as c from events",
			"select toFloat(toString(person.$virt_initial_channel_type)) as c from events",
		},
	}
	db := database(t, "UTC")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(compiled(t, db, tt.field), compiled(t, db, tt.property)); diff != "" {
				t.Errorf("%s (-by its name +as a property):\n%s", tt.property, diff)
			}
		})
	}
	stored := []struct{ name, in, want string }{
		{
			"no such field", "select properties.$virt_initial_channel_type as c from events",
			"SELECT properties__$virt_initial_channel_type AS c FROM (SELECT P($virt_initial_channel_type) AS properties__$virt_initial_channel_type " +
				"FROM events WHERE team_id = 7) AS events",
		},
		{
			"JSON function", "select JSONExtractString(properties, '$virt_initial_channel_type') as c from persons",
			"SELECT JSONExtractString(properties, '$virt_initial_channel_type') AS c FROM (SELECT argMax(toString(person.properties), version) AS properties " +
				"FROM person WHERE team_id = 7 GROUP BY id HAVING argMax(is_deleted = 0 AND created_at < " +
				"toDateTime64('2024-06-01 12:00:00.000000', 6, 'UTC'), version)) AS persons",
		},
		{
			"below what a query over one table shows", "select d.$virt_initial_channel_type as c from (select poe.properties as d from events)",
			"SELECT d__$virt_initial_channel_type AS c FROM (SELECT toString(person_properties) AS d, P($virt_initial_channel_type) AS " +
				"d__$virt_initial_channel_type FROM events WHERE team_id = 7) AS q",
		},
	}
	for _, tt := range stored {
		t.Run(tt.name, func(t *testing.T) {
			got := texts(compiled(t, db, tt.in), "properties.$virt_initial_channel_type", "person_properties.$virt_initial_channel_type")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestConditionsStayBare(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"event", "event = 'a'", "event = 'a'"},
		{"events", "event in ('a', 'b')", "event IN ['a','b']"},
		{"text compared with a time", "timestamp >= '2024-03-01'", "timestamp >= toDateTime64('2024-03-01', 6, 'America/New_York')"},
		{"free text compared with a time", "timestamp < '1 March 2024'", "timestamp < parseDateTime64BestEffort('1 March 2024', 6, 'America/New_York')"},
		{"time", "toDateTime('2024-03-01 10:00:00') < timestamp", "toDateTime('2024-03-01 10:00:00', 'America/New_York') < timestamp"},
		{"fine time", "timestamp = toDateTime('2024-03-01 10:00:00.5')", "timestamp = toDateTime64('2024-03-01 10:00:00.5', 6, 'America/New_York')"},
		{"zone of its own", "timestamp < toDateTime('2024-03-01', 'UTC')", "timestamp < toDateTime('2024-03-01', 'UTC')"},
		{"date", "timestamp >= toDate('2024-03-01')", "timestamp >= toDateTime(toDate('2024-03-01'), 'America/New_York')"},
		{"start of a month", "timestamp >= dateTrunc('months', now())", "timestamp >= toDateTime(dateTrunc('month', now64(6, 'America/New_York')), 'America/New_York')"},
		{"start of a day", "timestamp >= date_trunc('day', now())", "timestamp >= dateTrunc('day', now64(6, 'America/New_York'))"},
		{"start of a week", "timestamp < toStartOfInterval(now(), (interval 1 week as w))", "timestamp < toDateTime(toStartOfInterval(now64(6, 'America/New_York'), (toIntervalWeek(1) AS w)), 'America/New_York')"},
		{"start of an hour", "timestamp < toStartOfInterval(now(), toIntervalHour(6))", "timestamp < toStartOfInterval(now64(6, 'America/New_York'), toIntervalHour(6))"},
		{"start of months from an origin", "timestamp < toStartOfInterval(now(), interval 1 month, toDateTime('2024-01-15'))", "timestamp < toStartOfInterval(now64(6, 'America/New_York'), toIntervalMonth(1), toDateTime('2024-01-15', 'America/New_York'))"},
		{"start of what is not known", "timestamp < toStartOfInterval(now(), interval 1 day + interval 1 hour)", "toTimeZone(timestamp, 'America/New_York') < toStartOfInterval(now64(6, 'America/New_York'), toIntervalDay(1) + toIntervalHour(1))"},
		{"start of the day of a date", "dateTrunc('day', toDate(timestamp)) = '2024-03-01'", "dateTrunc('day', toDate(toTimeZone(timestamp, 'America/New_York'))) = '2024-03-01'"},
		{"set of months", "dateTrunc('month', timestamp) in ('2024-03-01')", "dateTrunc('month', toTimeZone(timestamp, 'America/New_York')) IN ('2024-03-01')"},
		{"text with a clock compared with a date", "toDate(timestamp) < '2024-03-01 10:00:00'", "toDateTime(toDate(toTimeZone(timestamp, 'America/New_York')), 'America/New_York') < toDateTime64('2024-03-01 10:00:00', 6, 'America/New_York')"},
		{"date between texts, one with a clock", "today() between '2024-03-01' and '2024-03-02T10:00:00'", "(toDateTime(today(), 'America/New_York') AS value) >= toDateTime64('2024-03-01', 6, 'America/New_York') AND value <= parseDateTime64BestEffort('2024-03-02T10:00:00', 6, 'America/New_York')"},
		{"text between two times", "'2024-03-01' between timestamp and created_at", "(toDateTime64('2024-03-01', 6, 'America/New_York') AS value) >= timestamp AND value <= created_at"},
		{"date between two times", "toDate(timestamp) between timestamp and created_at", "(toDateTime(toDate(toTimeZone(timestamp, 'America/New_York')), 'America/New_York') AS value) >= timestamp AND value <= created_at"},
		{"text between a time and a text", "'2024-03-01' not between timestamp and '2024-04-01'", "((toDateTime64('2024-03-01', 6, 'America/New_York') AS value) < timestamp OR value > toDateTime64('2024-04-01', 6, 'America/New_York'))"},
		{"range", "timestamp between '2024-03-01' and now()", "timestamp >= toDateTime64('2024-03-01', 6, 'America/New_York') " +
			"AND timestamp <= now64(6, 'America/New_York')"},
		{"set of times", "timestamp in ('2024-03-01', '2024-03-02')", "timestamp IN (toDateTime64('2024-03-01', 6, 'America/New_York'), " +
			"toDateTime64('2024-03-02', 6, 'America/New_York'))"},
		{"day in another zone", "toStartOfDay(timestamp, 'Asia/Tokyo') = '2024-03-15'", "toStartOfDay(toTimeZone(timestamp, 'America/New_York'), 'Asia/Tokyo') = toDateTime64('2024-03-15', 6, 'Asia/Tokyo')"},
		{"time moved to another zone", "toTimeZone(timestamp, 'Asia/Tokyo') >= '2024-03-15T00:00:00'", "toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'Asia/Tokyo') >= parseDateTime64BestEffort('2024-03-15T00:00:00', 6, 'Asia/Tokyo')"},
		{
			"computed of a time in another zone", "dateAdd(dateTrunc('hour', toTimeZone(timestamp, 'Asia/Tokyo')), interval 1 hour) - 1 > toDate(timestamp)",
			"dateTrunc('hour', toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'Asia/Tokyo')) + toIntervalHour(1) - 1 > toDateTime(toDate(toTimeZone(timestamp, 'America/New_York')), 'Asia/Tokyo')",
		},
		{
			"times in two zones", "if(event = 'a', toTimeZone(timestamp, 'Asia/Tokyo'), timestamp) = '2024-03-15 10:00:00'",
			"if(event = 'a', toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'Asia/Tokyo'), toTimeZone(timestamp, 'America/New_York')) = '2024-03-15 10:00:00'",
		},
		{
			"a time in some zone or an unknown value as a time", "toDateTime(if(event = 'a', if(event = 'b', toTimeZone(timestamp, 'UTC'), timestamp), dateTrunc('hour', toDate(timestamp))))",
			"parseDateTime64BestEffortOrNull(toString(if(event = 'a', if(event = 'b', toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'UTC'), " +
				"toTimeZone(timestamp, 'America/New_York')), dateTrunc('hour', toDate(toTimeZone(timestamp, 'America/New_York'))))), 6, 'America/New_York')",
		},
		{
			"times in two zones as a time", "toDateTime(if(event = 'a', toTimeZone(timestamp, 'Asia/Tokyo'), if(event = 'b', toTimeZone(timestamp, 'UTC'), timestamp)))",
			"toDateTime(if(event = 'a', toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'Asia/Tokyo'), " +
				"if(event = 'b', toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'UTC'), toTimeZone(timestamp, 'America/New_York'))), 'America/New_York')",
		},
		{"start of a date", "toStartOfDay(toDate(timestamp)) = '2024-03-15'", "toStartOfDay(toDate(toTimeZone(timestamp, 'America/New_York'))) = toDateTime64('2024-03-15', 6, 'UTC')"},
		{"start of today", "toStartOfDay(today()) = today()", "toStartOfDay(today()) = toDateTime(today(), 'UTC')"},
		{"start of a date in a zone", "toStartOfDay(today(), 'Asia/Tokyo') = '2024-03-15'", "toStartOfDay(today(), 'Asia/Tokyo') = toDateTime64('2024-03-15', 6, 'Asia/Tokyo')"},
		{"hours after a date", "addHours(today(), 1) = '2024-03-15 01:00:00'", "addHours(today(), 1) = toDateTime64('2024-03-15 01:00:00', 6, 'UTC')"},
		{"days after a date", "addDays(today(), 1) = '2024-03-15 01:00:00'", "toDateTime(addDays(today(), 1), 'America/New_York') = toDateTime64('2024-03-15 01:00:00', 6, 'America/New_York')"},
		{
			"a date and hours", "today() + interval 1 hour in ('2024-03-15') and dateSub('minute', 5, today()) > '2024-03-15'",
			"toDateTime64(today() + toIntervalHour(1), 6) IN (toDateTime64('2024-03-15', 6, 'UTC')) AND today() - toIntervalMinute(5) > toDateTime64('2024-03-15', 6, 'UTC')",
		},
		{
			"a week of a time in another zone, and hours", "toStartOfInterval(now('Asia/Tokyo'), interval 1 week) + interval 1 hour > '2024-03-15'",
			"toStartOfInterval(now64(6, 'Asia/Tokyo'), toIntervalWeek(1)) + toIntervalHour(1) > toDateTime64('2024-03-15', 6, 'UTC')",
		},
		{
			"a week of a time in another zone beside a clock", "toStartOfInterval(now('Asia/Tokyo'), interval 1 week) > '2024-03-15 10:00:00'",
			"toDateTime(toStartOfInterval(now64(6, 'Asia/Tokyo'), toIntervalWeek(1)), 'America/New_York') > toDateTime64('2024-03-15 10:00:00', 6, 'America/New_York')",
		},
		{"a week of a date beside a clock", "toStartOfInterval(today(), interval 1 week) > '2024-03-15 10:00:00'", "toDateTime(toStartOfInterval(today(), toIntervalWeek(1)), 'America/New_York') > toDateTime64('2024-03-15 10:00:00', 6, 'America/New_York')"},
		{"a Unix timestamp", "fromUnixTimestamp(toInt(event)) = '2024-03-15'", "fromUnixTimestamp(accurateCastOrNull(event, 'Int64')) = toDateTime64('2024-03-15', 6, 'UTC')"},
		{"a Unix timestamp as a time", "to_timestamp(5) = '2024-03-15'", "toDateTime(fromUnixTimestamp(5), 'America/New_York') = toDateTime64('2024-03-15', 6, 'America/New_York')"},
		{"an hour of a Unix timestamp", "toStartOfHour(fromUnixTimestamp64Milli(toInt(event))) < '2024-03-15'", "toStartOfHour(fromUnixTimestamp64Milli(accurateCastOrNull(event, 'Int64'))) < toDateTime64('2024-03-15', 6, 'UTC')"},
		{"set in another zone", "toDateTime(event, 'Asia/Tokyo') in ('2024-03-15')", "parseDateTime64BestEffortOrNull(event, 6, 'Asia/Tokyo') IN (toDateTime64('2024-03-15', 6, 'Asia/Tokyo'))"},
		{"range in another zone", "now('Asia/Tokyo') between '2024-03-15' and toDate(timestamp)", "(now64(6, 'Asia/Tokyo') AS value) >= toDateTime64('2024-03-15', 6, 'Asia/Tokyo') AND value <= toDateTime(toDate(toTimeZone(timestamp, 'America/New_York')), 'Asia/Tokyo')"},
		{"text between times in another zone", "'2024-03-15' between parseDateTimeBestEffort(event, 'Asia/Tokyo') and now()", "(toDateTime64('2024-03-15', 6, 'Asia/Tokyo') AS value) >= parseDateTime64BestEffortOrNull(event, 6, 'Asia/Tokyo') AND value <= now64(6, 'America/New_York')"},
		{"back in the project's zone", "toTimeZone(toDateTime64(event, 3, 'Asia/Tokyo')) < '2024-03-15'", "toTimeZone(toDateTime64(event, 3, 'Asia/Tokyo'), 'America/New_York') < toDateTime64('2024-03-15', 6, 'America/New_York')"},
		{"time of a subquery", "timestamp >= (select max(timestamp) from events)", "timestamp >= (SELECT max(toTimeZone(timestamp, 'America/New_York')) AS max_timestamp FROM events WHERE team_id = 7)"},
		{"date of a subquery", "timestamp >= (select today())", "timestamp >= toDateTime((SELECT today() AS today), 'America/New_York')"},
		{"time of a subquery in another zone", "timestamp >= toDateTime((select now()), 'Asia/Tokyo')", "timestamp >= toDateTime((SELECT now64(6, 'America/New_York') AS now), 'Asia/Tokyo')"},
		{"text of a subquery", "timestamp >= toDateTime((select '2024-03-15'), 'Asia/Tokyo') and (select '5') > 3", "timestamp >= parseDateTime64BestEffortOrNull(toString((SELECT '2024-03-15' AS value)), 6, 'Asia/Tokyo') AND (SELECT '5' AS value) > 3"},
		{"window of days", "tumbleStart(timestamp, interval 1 day) = '2024-03-15'", "tumbleStart(toDateTime(timestamp, 'America/New_York'), toIntervalDay(1)) = toDateTime64('2024-03-15', 6, 'America/New_York')"},
		{
			"window of days in another zone", "hopEnd(toTimeZone(timestamp, 'UTC'), interval 1 day, interval 2 day) = '2024-03-15'",
			"hopEnd(toDateTime(toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'UTC'), 'UTC'), toIntervalDay(1), toIntervalDay(2)) = toDateTime64('2024-03-15', 6, 'UTC')",
		},
		{"bound of a window", "tumbleStart(tumble(timestamp, interval 1 day)) = '2024-03-15'", "tumbleStart(tumble(toDateTime(timestamp, 'America/New_York'), toIntervalDay(1))) = toDateTime64('2024-03-15', 6, 'America/New_York')"},
		{
			"bound of a window in another zone", "hopEnd(hop(toTimeZone(timestamp, 'UTC'), interval 1 day, interval 2 day)) = '2024-03-15'",
			"hopEnd(hop(toDateTime(toTimeZone(toTimeZone(timestamp, 'America/New_York'), 'UTC'), 'UTC'), toIntervalDay(1), toIntervalDay(2))) = toDateTime64('2024-03-15', 6, 'UTC')",
		},
		{"bound of a window of weeks", "tumbleEnd(tumble(timestamp, interval 1 week)) = '2024-03-17'", "tumbleEnd(tumble(toDateTime(timestamp, 'America/New_York'), toIntervalWeek(1))) = '2024-03-17'"},
		{"bound of a window from elsewhere", "tumbleEnd((tumble(timestamp, interval 1 week) as w)) = '2024-03-17'", "tumbleEnd((tumble(toDateTime(timestamp, 'America/New_York'), toIntervalWeek(1)) AS w)) = '2024-03-17'"},
		{"bound of a window from elsewhere as a time", "toDateTime(tumbleEnd((tumble(timestamp, interval 1 hour) as w)))", "toDateTime(tumbleEnd((tumble(toDateTime(timestamp, 'America/New_York'), toIntervalHour(1)) AS w)), 'America/New_York')"},
		{"window of weeks", "tumbleEnd(timestamp, interval 1 week) = '2024-03-17'", "tumbleEnd(toDateTime(timestamp, 'America/New_York'), toIntervalWeek(1)) = '2024-03-17'"},
		{"set of days", "toStartOfDay(timestamp) in ('2024-03-15')", "toDateTime64(toStartOfDay(toTimeZone(timestamp, 'America/New_York')), 6) IN (toDateTime64('2024-03-15', 6, 'America/New_York'))"},
		{"day in the zone", "toDate(timestamp) = '2024-03-01'", "toDate(toTimeZone(timestamp, 'America/New_York')) = '2024-03-01'"},
		{"word", "properties.x = 'a'", "properties.x.:String = 'a'"},
		{"order of a nullable", "toInt(event) > 5", "accurateCastOrNull(event, 'Int64') > 5"},
		{"other than a word", "properties.x != 'a'", "ifNull(properties.x.:String != 'a', 1)"},
		{"not of a nullable", "not (toInt(event) > 5)", "NOT ifNull(accurateCastOrNull(event, 'Int64') > 5, 0)"},
		{"parts of OR", "event = 'b' or properties.x = 'a'", "(event = 'b' OR properties.x.:String = 'a')"},
		{"always", "true", ""},
	}
	db := database(t, "America/New_York")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compiled(t, db, "select 1 as one from events where "+tt.in)
			got = strings.TrimPrefix(strings.TrimPrefix(got, "SELECT 1 AS one FROM events WHERE team_id = 7"), " AND ")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("where %s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestQueries(t *testing.T) {
	const (
		overrides = "ANY LEFT JOIN (SELECT distinct_id, argMax(person_distinct_id_overrides.person_id, version) AS person_id " +
			"FROM person_distinct_id_overrides WHERE team_id = 7 GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS override " +
			"ON events.distinct_id = override.distinct_id"
		events = "(SELECT if(notEmpty(override.person_id), override.person_id, events.person_id) AS person_id FROM " +
			"(SELECT distinct_id, person_id FROM events WHERE team_id = 7) AS events " + overrides + ") AS events"
	)
	tests := []struct{ name, in, want string }{
		{"one table", "select event from events", "SELECT event FROM events WHERE team_id = 7"},
		{"alias of a table", "select e.event from events e", "SELECT event FROM events AS e WHERE team_id = 7"},
		{"person with overrides", "select person_id from events", "SELECT person_id FROM " + events},
		{
			"person.id is person_id", "select person.id from events where person_id = person.id",
			"SELECT person_id AS id FROM " + events + " WHERE person_id = person_id",
		},
		{"recorded person", "select poe.id, event_person_id from events", "SELECT person_id AS id, person_id AS event_person_id FROM events WHERE team_id = 7"},
		{
			"joined tables are wrapped", "select a.event from events a left join events b on a.uuid = b.uuid",
			"SELECT a.event AS event FROM (SELECT uuid, event FROM events WHERE team_id = 7) AS a " +
				"LEFT JOIN (SELECT uuid FROM events WHERE team_id = 7) AS b ON a.uuid = b.uuid",
		},
		{"merged table", "select id from persons", "SELECT id FROM (SELECT id FROM person WHERE team_id = 7 GROUP BY id " +
			"HAVING argMax(is_deleted = 0 AND created_at < toDateTime64('2024-06-01 12:00:00.000000', 6, 'UTC'), version)) AS persons"},
		{"raw table", "select id, version from raw_persons", "SELECT id, version FROM person AS raw_persons WHERE team_id = 7"},
		{"group", "select organization.key from events", "SELECT group_0__key AS key FROM (SELECT group_0.key AS group_0__key FROM " +
			"(SELECT $group_0 FROM events WHERE team_id = 7) AS events ANY LEFT JOIN (SELECT group_key AS key FROM groups " +
			"WHERE team_id = 7 AND group_type_index = 0 GROUP BY group_type_index, group_key) AS group_0 ON events.$group_0 = group_0.key) AS events"},
		{
			"property through a subquery", "select p.x = 'a' as y from (select properties as p from events) as t",
			"SELECT ifNull(p__x = 'a', 0) AS y FROM (SELECT toString(properties) AS p, properties.x.:String AS p__x FROM events WHERE team_id = 7) AS t",
		},
		{
			"property of grouped documents", "select p.x from (select properties as p from events group by p) as t",
			"SELECT JSONExtract(p, 'x', 'Nullable(String)') AS x FROM (SELECT toString(properties) AS p FROM events WHERE team_id = 7 GROUP BY p) AS t",
		},
		{
			"behind GROUP BY a property has the form of the key",
			"select properties.x as b, b = 'a' as y, countIf(properties.x = 'a') as n from events where b = 'a' group by b having b = 'a' and toFloat(b) > 1",
			"SELECT P(x) AS b, ifNull(b = 'a', 0) AS y, countIf(properties.x.:String = 'a') AS n FROM events WHERE team_id = 7 AND " +
				"properties.x.:String = 'a' GROUP BY b HAVING b = 'a' AND accurateCastOrNull(b, 'Float64') > 1",
		},
		{
			"alias hides a column", "select upper(event) as event from events where event = 'A'",
			"SELECT upper(events.event) AS event FROM events WHERE team_id = 7 AND event = 'A'",
		},
		{
			"alias of a column is the column", "select timestamp as t from events where t > '2024-01-01'",
			"SELECT timestamp AS t FROM events WHERE team_id = 7 AND timestamp > toDateTime64('2024-01-01', 6, 'UTC')",
		},
		{"alias before its definition", "select a + 1 as b, 2 + 3 as a", "SELECT a + 1 AS b, 2 + 3 AS a FROM (SELECT 1)"},
		{
			"alias that a lambda uses", "select arrayMap(x -> a + x, [1]) as b, x + 1 as a from (select 5 as x) as t",
			"SELECT arrayMap(x -> a + x, [1]) AS b, t.x + 1 AS a FROM (SELECT 5 AS x) AS t",
		},
		{
			"alias that is printed as a parameter is written", "select x || '' as _name, arrayMap(name -> concat(name, _name), ['a']) as b, arrayMap(name -> concat(name, _name), ['a']) as c, " +
				"arrayMap(name_2 -> arrayMap(name -> name_2, ['a']), ['a']) as d from (select 'x' || 'y' as x) as t",
			"SELECT concat(x, '') AS name, arrayMap(name_2 -> concat(name_2, name), ['a']) AS b, arrayMap(name_2 -> concat(name_2, name), ['a']) AS c, " +
				"arrayMap(name_2_2 -> arrayMap(name_2 -> name_2_2, ['a']), ['a']) AS d FROM (SELECT concat('x', 'y') AS x) AS t",
		},
		{
			"alias that would be printed as the parameter around it", "select arrayMap(name -> arrayMap(x -> concat((x || '') as _name, _name, name), ['a']), ['b']) as b", "SELECT arrayMap(name -> arrayMap(x -> concat((concat(x, '') AS name_2), name_2, name), ['a']), ['b']) AS b FROM (SELECT 1)",
		},
		{
			"clauses of a macro stay out of its arguments", "select string_agg(toString((select count() from (select 2 as x))), ',') filter (where x = 1) as a, " +
				"json_agg(distinct (select sum(x) from (select 2 as x))) as b from (select 5 as x) as t",
			"SELECT arrayStringConcat(groupArrayIf(toString((SELECT count() AS count FROM (SELECT 2 AS x) AS q)), x = 1), ',') AS a, " +
				"toJSONString(groupArray(DISTINCT (SELECT sum(x) AS sum_x FROM (SELECT 2 AS x) AS q))) AS b FROM (SELECT 5 AS x) AS t",
		},
		{"column CTE", "with 2 + 3 as five select five", "SELECT 2 + 3 AS five FROM (SELECT 1)"},
		{
			"table CTEs go to the top", "select a from (with x as (select 1 as a) select a from x) as t",
			"WITH x AS (SELECT 1 AS a FROM (SELECT 1)) SELECT a FROM (SELECT a FROM x) AS t",
		},
		{"unused CTE", "with x as (select 1 as a) select 2 as b", "SELECT 2 AS b FROM (SELECT 1)"},
		{
			"CTE with the name of a table", "with events as (select event from events) select event from events",
			"WITH events_ AS (SELECT event FROM events WHERE team_id = 7) SELECT event FROM events_",
		},
		{
			"CTE of the first member", "with x as (select 1 as a) select a from x union all select a from x",
			"WITH x AS (SELECT 1 AS a FROM (SELECT 1)) SELECT * FROM (SELECT a FROM x UNION ALL SELECT a FROM x)",
		},
		{
			"positions", "select event, count() as n from events group by 1 order by 2 desc",
			"SELECT event, count() AS n FROM events WHERE team_id = 7 GROUP BY event ORDER BY n DESC",
		},
		{
			"using", "select a from (select 1 as a) x join (select 1 as a) y using (a)",
			"SELECT x.a AS a FROM (SELECT 1 AS a) AS x INNER JOIN (SELECT 1 AS a) AS y ON x.a = y.a",
		},
		{
			"keys of a join stay bare", "select x.a from (select nullIf(1, 2) as a) x join (select nullIf(1, 2) as a) y on x.a = y.a",
			"SELECT x.a AS a FROM (SELECT nullIf(1, 2) AS a) AS x INNER JOIN (SELECT nullIf(1, 2) AS a) AS y ON x.a = y.a",
		},
		{"named columns", "select b from (select 1 as a) as t (b)", "SELECT a AS b FROM (SELECT 1 AS a) AS t"},
		{"numbers", "select number from numbers(1, 2 + 3)", "SELECT number FROM numbers(1, 2 + 3) AS numbers"},
		{
			"array join", "select x + 1 as y from (select [1] as xs) as t array join xs as x",
			"SELECT x + 1 AS y FROM (SELECT [1] AS xs) AS t ARRAY JOIN xs AS x",
		},
		{"sample", "select event from events sample 1", "SELECT event FROM events WHERE team_id = 7"},
		{"sample of a part", "select event from events sample 1/10", "SELECT event FROM events SAMPLE 1 / 10 WHERE team_id = 7"},
		{"name of ClickHouse's own", "select 1 as __grouping_set, 2 as _part", "SELECT 1 AS grouping_set, 2 AS part FROM (SELECT 1)"},
		{"flag", "select is_deleted from raw_persons where is_deleted", "SELECT raw_persons.is_deleted != 0 AS is_deleted FROM person AS raw_persons WHERE team_id = 7 AND raw_persons.is_deleted != 0"},
		{"enum", "select person_mode as m from events", "SELECT toString(person_mode) AS m FROM events WHERE team_id = 7"},
		{"prewhere", "select event from events prewhere event = 'a'", "SELECT event FROM events WHERE team_id = 7 AND event = 'a'"},
		{
			"prewhere of a subquery", "select x from (select 1 as x) as t prewhere x = 1 where x = 2",
			"SELECT x FROM (SELECT 1 AS x) AS t WHERE x = 1 AND x = 2",
		},
		{
			"excluded and replaced", "select * exclude (b) replace (a + 1 as a) from (select 1 as a, 2 as b, 3 as c) as t",
			"SELECT t.a + 1 AS a, c FROM (SELECT 1 AS a, 2 AS b, 3 AS c) AS t",
		},
	}
	db := database(t, "UTC")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts(compiled(t, db, tt.in), "properties.x")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}
