package bind_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

var now = time.Date(2024, 5, 31, 13, 45, 10, 0, time.UTC)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func parse(t *testing.T, text string) hogql.Query {
	t.Helper()
	q, err := hogql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	variables := map[string]bind.Variable{
		"customer": {Value: "acme"}, "nothing": {IsNull: true}, "yes": {Value: true}, "n": {Value: json.Number("3")},
		"gone": {Value: "x"},
	}
	tests := []struct {
		name   string
		text   string
		values map[string]any
		want   string
	}{
		{"a string", "select {a}", map[string]any{"a": "it's"}, `SELECT 'it\'s'`},
		{"a string is never SQL", "select 1 from events where event = {a}", map[string]any{"a": "' OR 1=1 --"}, `SELECT 1 FROM events WHERE event = '\' OR 1=1 --'`},
		{
			"constants of all kinds", "select {a}, {b}, {c}, {d}, {e}",
			map[string]any{"a": json.Number("5"), "b": json.Number("5.0"), "c": nil, "d": true, "e": json.Number("18446744073709551615")},
			"SELECT 5, 5.0, NULL, true, 18446744073709551615",
		},
		{"a list", "select 1 in {a}", map[string]any{"a": []any{json.Number("1"), "x", nil}}, "SELECT 1 IN [1, 'x', NULL]"},
		{"below an object", "select {a.b}", map[string]any{"a": map[string]any{"b": "x"}}, "SELECT 'x'"},
		{"a variable", "select {variables.customer}", nil, "SELECT 'acme'"},
		{"a variable that is NULL", "select {variables.nothing}", nil, "SELECT NULL"},
		{"a choice", "select {variables.yes ? 'a' : 'b'}, {variables.n > 5 ? 1 : 2}", nil, "SELECT 'a', 2"},
		{"a choice of expressions", "select 1 from events where {variables.yes ? sql(event = {a}) : sql(event = 'y')}", map[string]any{"a": "x"}, "SELECT 1 FROM events WHERE event = 'x'"},
		{"a default", "select {variables.nothing ?? 'none'}", nil, "SELECT 'none'"},
		{"arithmetic", "select {variables.n * 2 + 1}, {variables.n / 2}, {'a' || variables.customer}", nil, "SELECT 7, 1.5, 'aacme'"},
		{"conditions", "select {variables.n = 3 and not (variables.customer in ('x', 'y'))}", nil, "SELECT true"},
		{"numbers and booleans are not empty", "select {empty('')}, {empty([])}, {empty(null)}, {empty(0)}, {notEmpty(false)}, {notEmpty('a')}", nil, "SELECT true, true, true, false, true, true"},
		{
			"texts are compared with numbers as numbers", "select {a = 5}, {' 5.0 ' = b}, {a != 5}, {a > 10}, {'abc' = 5}, {'' = 0}, {'0x5' = 5}, {a = '5.0'}, {a in (5, 6)}",
			map[string]any{"a": "5", "b": json.Number("5")},
			"SELECT true, true, false, false, false, false, false, false, false",
		},
		{
			"booleans are compared with texts and numbers", "select {a = 'TRUE'}, {'false' != a}, {a = 'x'}, {'' = a}, {a = 1}, {0 < a}, {a <= 'false'}, {a > false}, {1 = null}",
			map[string]any{"a": true},
			"SELECT true, true, true, false, true, true, false, true, false",
		},
		{
			"a table and an expression of the compiler's own", "select {e} from {t} as t",
			map[string]any{"e": hogql.Expr(&hogql.Field{Chain: []hogql.Name{{Text: "event"}}}), "t": hogql.Table(&hogql.TableName{Chain: []hogql.Name{{Text: "events"}}})},
			"SELECT event FROM events AS t",
		},
		{"filters that the request lacks", "select 1 from events where {filters}", nil, "SELECT 1 FROM events WHERE true"},
		{"bounds that the request lacks", "select 1 from events where timestamp >= {filters.dateRange.from} and timestamp < {filters.dateRange.to}", nil, "SELECT 1 FROM events WHERE true AND true"},
		{
			"bounds that the request lacks, in operators",
			"select 1 from events where timestamp >= {filters.dateRange.from} - interval 7 day and not -(5 + {filters.dateRange.to}::int * 2) < 3",
			nil, "SELECT 1 FROM events WHERE true AND NOT true",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := bind.Placeholders(parse(t, tt.text), bind.Values{
				Values: tt.values, Variables: variables, Known: func(code string) bool { return code != "gone" },
				Now: now, Location: time.UTC,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, hogql.Print(got)); diff != "" {
				t.Errorf("Placeholders(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
	mistakes := []struct {
		name   string
		text   string
		values map[string]any
		want   string
	}{
		{"nothing given", "select {x}", nil, "8:9: Unresolved placeholder: {x}"},
		{
			"others given", "select {cc}, {d.e}",
			map[string]any{"a": 1, "ccc": 2},
			"8:10: Placeholder {cc} is not available in this context. You can use the following: a, ccc\n" +
				"14:15: Placeholder {d.e} is not available in this context. You can use the following: a, ccc",
		},
		{
			"long names given", "select {cc}",
			map[string]any{strings.Repeat("a", 1000): 1, "b": 2},
			"8:10: Placeholder {cc} is not available in this context. You can use the following: " + strings.Repeat("a", 60) + "…, b",
		},
		{"an object", "select {a}", map[string]any{"a": map[string]any{}}, "7:10: The value of placeholder {a} cannot be used: an object is not a constant"},
		{"a missing variable", "select {variables.custmer}", nil, "18:25: Variable custmer is missing from query. Did you mean: customer?"},
		{"a missing variable with no near name", "select {variables.zzzzzzzz}", nil, "18:26: Variable zzzzzzzz is missing from query"},
		{"a variable that the project lacks", "select {variables.gone}", nil, "18:22: Variable gone does not exist"},
		{"no constant expression", "select {event(1)}", nil, "8:16: This expression cannot be used in a placeholder: event(1)"},
		{"text that is not a number", "select {'abc' < 5}", nil, "8:17: This expression cannot be used in a placeholder: 'abc' < 5"},
		{"no query", "select 1 from {a}", map[string]any{"a": "events"}, "14:17: The placeholder {a} does not stand for a table"},
		{
			"filters on another table", "select 1 from persons where {filters}", nil,
			"28:37: Cannot use 'filters' placeholder in a SELECT clause that does not select from the events, sessions, logs, traces or groups table.",
		},
		{
			"other filters", "select 1 from events where {filters.x}", nil,
			"28:37: Unsupported filters placeholder `{filters.x}`: there are {filters}, {filters.dateRange.from} and {filters.dateRange.to}",
		},
		{
			"an unknown bound", "select toDate({filters.dateRange.to}) from events", nil,
			"14:36: The `{filters.dateRange.to}` placeholder must be a side of a comparison such as `>=`, and not inside a function or BETWEEN, when the request gives it no date",
		},
		{
			"an unknown bound in a function", "select 1 from events where timestamp > toDate({filters.dateRange.to})", nil,
			"46:68: The `{filters.dateRange.to}` placeholder must be a side of a comparison such as `>=`, and not inside a function or BETWEEN, when the request gives it no date",
		},
		{
			"an unknown bound in another comparison", "select 1 from events where timestamp > (select {filters.dateRange.from})", nil,
			"47:71: The `{filters.dateRange.from}` placeholder must be a side of a comparison such as `>=`, and not inside a function or BETWEEN, when the request gives it no date",
		},
	}
	for _, tt := range mistakes {
		t.Run("mistake: "+tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := bind.Placeholders(parse(t, tt.text), bind.Values{
				Values: tt.values, Variables: variables, Known: func(code string) bool { return code != "gone" },
				Now: now, Location: time.UTC,
			})
			if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
				t.Errorf("Placeholders(%q) mistakes (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		text    string
		filters bind.Filters
		want    string
	}{
		{
			"both bounds", "select 1 from events as e where {filters}",
			bind.Filters{DateFrom: "2020-02-02", DateTo: "-1d"},
			"e.timestamp < toDateTime64('2024-05-30 13:45:10.000000', 6, 'UTC') AND e.timestamp >= toDateTime64('2020-02-01 23:00:00.000000', 6, 'UTC')",
		},
		{
			"the last week", "select 1 from events e where {filters}",
			bind.Filters{DateFrom: "-1wStart", DateTo: "-1wEnd"},
			"e.timestamp < toDateTime64('2024-05-26 21:59:59.999999', 6, 'UTC') AND e.timestamp >= toDateTime64('2024-05-19 22:00:00.000000', 6, 'UTC')",
		},
		{"all time", "select 1 from events where {filters}", bind.Filters{DateFrom: "all"}, "true"},
		{"groups", "select 1 from groups where {filters}", bind.Filters{DateTo: "2020-02-02"}, "groups.created_at < toDateTime64('2020-02-01 23:00:00.000000', 6, 'UTC')"},
		{
			"the bounds alone", "select 1 from events where timestamp > {filters.dateRange.from}",
			bind.Filters{DateFrom: "2020-02-02T01:00:00Z"},
			"timestamp > toDateTime64('2020-02-02 01:00:00.000000', 6, 'UTC')",
		},
		{
			"exact", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "event", Key: "$browser", Operator: "exact", Value: []any{"Chrome", json.Number("5"), true}}}},
			"events.properties.$browser = 'Chrome' OR events.properties.$browser = '5' OR events.properties.$browser = 'true'",
		},
		{
			"shut out", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "person", Key: "email", Operator: "not_icontains", Value: []any{"50%", "b"}}}},
			`toString(events.person.properties.email) NOT ILIKE '%50\\%%' AND toString(events.person.properties.email) NOT ILIKE '%b%'`,
		},
		{
			"numbers", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "group", Group: 1, Key: "n", Operator: "gte", Value: "2.5"}}},
			"toFloat(events.group_1.properties.n) >= 2.5",
		},
		{
			"presence", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "event", Key: "n", Operator: "is_set"}, {Type: "event", Key: "m", Operator: "is_not_set"}}},
			"events.properties.n IS NOT NULL AND events.properties.m IS NULL",
		},
		{
			"sessions", "select 1 from sessions s where {filters}",
			bind.Filters{DateTo: "2020-02-02", Properties: []filter.Property{{Type: "session", Key: "$channel_type", Value: "Direct"}, {Type: "hogql", Key: "$pageview_count > 1"}}},
			"toString(s.$channel_type) = 'Direct' AND $pageview_count > 1 AND s.$start_timestamp < toDateTime64('2020-02-01 23:00:00.000000', 6, 'UTC')",
		},
		{
			"sessions before events", "select 1 from sessions s join persons p on 1 = 1 join events e on e.$session_id = s.session_id where {filters}",
			bind.Filters{DateTo: "2020-02-02", Properties: []filter.Property{
				{Type: "event", Key: "$browser", Value: "Chrome"}, {Type: "session", Key: "$channel_type", Value: "Direct"},
			}},
			"e.properties.$browser = 'Chrome' AND toString(s.$channel_type) = 'Direct' AND e.timestamp < toDateTime64('2020-02-01 23:00:00.000000', 6, 'UTC')",
		},
		{
			"events before sessions", "select 1 from events join sessions on events.$session_id = sessions.session_id where {filters}",
			bind.Filters{DateTo: "2020-02-02", Properties: []filter.Property{{Type: "session", Key: "$channel_type", Value: "Direct"}}},
			"toString(sessions.$channel_type) = 'Direct' AND events.timestamp < toDateTime64('2020-02-01 23:00:00.000000', 6, 'UTC')",
		},
		{
			"events before groups", "select 1 from events e join groups g on e.$group_0 = g.key where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "event", Key: "$browser", Value: "Chrome"}}},
			"e.properties.$browser = 'Chrome'",
		},
		{
			"properties of groups", "select 1 from groups where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "group", Group: 1, Key: "n", Operator: "gt", Value: "2"}, {Type: "group", Key: "m", Value: "x"}}},
			"toFloat(groups.properties.n) > 2.0 AND groups.properties.m = 'x'",
		},
		{
			"incomplete", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "event", Key: "a", Operator: "icontains"}, {Type: "person", Key: "b", Value: []any{}}, {Type: "group", Group: -1, Key: "c", Value: "d"}, {Type: "cohort", Key: "id"}}},
			"true AND true AND true AND true",
		},
		{
			"a path as it is cleaned", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "event", Key: "$pathname", Operator: "is_cleaned_path_exact", Value: "/A"}}},
			"lower(toString(events.properties.$pathname)) = lower('/A')",
		},
		{
			"an expression", "select 1 from events where {filters}",
			bind.Filters{Properties: []filter.Property{{Type: "hogql", Key: "properties.a = 'x' or 1 = 2"}}},
			"properties.a = 'x' OR 1 = 2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			clean := func(path hogql.Expr) hogql.Expr { return &hogql.Call{Name: "lower", Args: []hogql.Expr{path}} }
			q, err := bind.Placeholders(parse(t, tt.text), bind.Values{Filters: &tt.filters, Now: now, Location: berlin(t), WeekStart: 1, Clean: clean})
			if err != nil {
				t.Fatal(err)
			}
			s, ok := q.(*hogql.Select)
			if !ok {
				t.Fatalf("got a %T", q)
			}
			if diff := cmp.Diff(tt.want, hogql.PrintExpr(s.Where)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
	mistakes := []struct {
		name    string
		filters bind.Filters
		want    string
	}{
		{"no date", bind.Filters{DateFrom: "soon"}, "27:36: The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{"a date too early", bind.Filters{DateFrom: "-100000y"}, "27:36: The date '-100000y' is neither ISO 8601 nor relative, such as -7d"},
		{"a date too late", bind.Filters{DateTo: "9999-12-31"}, "27:36: The date '9999-12-31' is neither ISO 8601 nor relative, such as -7d"},
		{"an unknown operator", bind.Filters{Properties: []filter.Property{{Type: "event", Key: "a", Operator: "flag_evaluates_to", Value: "1"}}}, "27:36: The property filter on 'a' has operator 'flag_evaluates_to', which is not supported with its value"},
		{"an invalid number", bind.Filters{Properties: []filter.Property{{Type: "event", Key: "a", Operator: "gt", Value: "x"}}}, "27:36: The property filter on 'a' has operator 'gt', which is not supported with its value"},
		{"an unknown type", bind.Filters{Properties: []filter.Property{{Type: "recording", Key: "duration", Value: "1"}}}, "27:36: Property filters of type 'recording' are not supported"},
		{"half a cohort", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "id", Value: 7.5}}}, "27:36: A property filter of type 'cohort' has the id of a cohort as its value"},
		{"several cohorts", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "id", Value: []any{int64(7)}}}}, "27:36: A property filter of type 'cohort' has the id of a cohort as its value"},
		{"an unknown cohort", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "id", Value: int64(9)}}}, "27:36: Could not find cohort with ID 9"},
		{"everybody", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "id", Value: int64(0)}}}, "27:36: Could not find cohort with ID 0"},
		{"a cohort by its name", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "name", Value: int64(7)}}}, "27:36: A property filter of type 'cohort' has the key 'id', not 'name'"},
		{"an operator that cohorts lack", bind.Filters{Properties: []filter.Property{{Type: "cohort", Key: "id", Value: int64(7), Operator: "gt"}}}, "27:36: The property filter on 'id' has operator 'gt', which is not supported with its value"},
		{"a placeholder", bind.Filters{Properties: []filter.Property{{Type: "hogql", Key: "{a}"}}}, "27:36: The HogQL expression of a property filter cannot hold placeholders"},
	}
	t.Run("mistake: a type that the table lacks", func(t *testing.T) {
		t.Parallel()
		filters := &bind.Filters{Properties: []filter.Property{{Type: "person", Key: "email", Value: "x"}}}
		_, err := bind.Placeholders(parse(t, "select 1 from sessions where {filters}"), bind.Values{Filters: filters, Now: now, Location: time.UTC})
		if diff := cmp.Diff("29:38: Property filters of type 'person' cannot be used over the sessions table: use session or hogql", errText(err)); diff != "" {
			t.Errorf("mistakes (-want +got):\n%s", diff)
		}
	})
	for _, tt := range mistakes {
		t.Run("mistake: "+tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := bind.Placeholders(parse(t, "select 1 from events where {filters}"), bind.Values{
				Filters: &tt.filters, Cohorts: schema.NewCohorts([]schema.Cohort{{ID: 7, Name: "paying", Version: 3}}, false), Now: now, Location: time.UTC,
			})
			if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	q := parse(t, "select {variables.b ? sql({variables.a}) : variables.c}, {other} from {variables.t} where x in (select {variables.a})")
	if diff := cmp.Diff([]string{"a", "b", "c", "t"}, bind.Variables(q)); diff != "" {
		t.Errorf("Variables (-want +got):\n%s", diff)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	cut := func(limit int, flags ...string) bind.Cut {
		c := bind.Cut{Limit: limit}
		for _, f := range flags {
			switch f {
			case "probe":
				c.Probe, c.Default = true, true
			case "probe of its own":
				c.Probe = true
			case "set":
				c.Set = true
			}
		}
		return c
	}
	tests := []struct {
		name, text string
		mode       bind.Mode
		want       string
		cut        bind.Cut
	}{
		{"none", "select 1", bind.QueryRoute, "SELECT 1 LIMIT 101", cut(100, "probe")},
		{"none, for pages", "select 1", bind.Pages, "SELECT 1 LIMIT 50001", cut(50_000, "probe")},
		{"OFFSET alone", "select 1 offset 5", bind.QueryRoute, "SELECT 1 LIMIT 101 OFFSET 5", cut(100, "probe")},
		{"NULL is none", "select 1 limit null", bind.QueryRoute, "SELECT 1 LIMIT 101", cut(100, "probe")},
		{"its own", "select 1 limit 7 offset 2", bind.QueryRoute, "SELECT 1 LIMIT 7 OFFSET 2", cut(7)},
		{"none, for all rows", "select 1", bind.Whole, "SELECT 1 LIMIT 9007199254740993", cut(1<<53, "probe")},
		{"its own, for all rows", "select 1 limit 70000", bind.Whole, "SELECT 1 LIMIT 70000", cut(70_000)},
		{"of a union, for all rows", "select 1 union all select 2", bind.Whole, "SELECT 1 LIMIT 9007199254740992 UNION ALL (SELECT 2 LIMIT 9007199254740992) LIMIT 9007199254740992", cut(1<<53, "set")},
		{"its own, for pages", "select 1 limit 7", bind.Pages, "SELECT 1 LIMIT 7", cut(7)},
		{"the most, for pages", "select 1 limit 50000", bind.Pages, "SELECT 1 LIMIT 50000", cut(50_000)},
		{"too many, for pages", "select 1 limit 1000000 offset 5", bind.Pages, "SELECT 1 LIMIT 50001 OFFSET 5", cut(50_000, "probe of its own")},
		{"computed, for pages", "select 1 limit length([1, 2])", bind.Pages, "SELECT 1 LIMIT max2(0, min2(50001, ifNull(toInt(length([1, 2])), 0)))", cut(50_000, "probe of its own")},
		{"ties, for pages", "select x from t order by x limit 1 with ties", bind.Pages, "SELECT * FROM (SELECT x FROM t ORDER BY x LIMIT 1 WITH TIES) LIMIT 50001", cut(50_000, "probe of its own")},
		{"too many", "select 1 limit 1000000", bind.QueryRoute, "SELECT 1 LIMIT 50000", cut(50_000)},
		{"computed of constants", "select 1 limit 10 * 10 - 1", bind.QueryRoute, "SELECT 1 LIMIT 99", cut(99)},
		{"a whole float", "select 1 limit 10.0", bind.QueryRoute, "SELECT 1 LIMIT 10", cut(10)},
		{"computed", "select 1 limit length([1, 2])", bind.QueryRoute, "SELECT 1 LIMIT max2(0, min2(50000, ifNull(toInt(length([1, 2])), 0)))", cut(50_000)},
		{"ties", "select x from t order by x limit 1 with ties", bind.QueryRoute, "SELECT * FROM (SELECT x FROM t ORDER BY x LIMIT 1 WITH TIES) LIMIT 50000", cut(50_000)},
		{"a share", "select 1 limit 40 %", bind.QueryRoute, "SELECT * FROM (SELECT 1 LIMIT 40 %) LIMIT 50000", cut(50_000)},
		{"a subquery stays", "select 1 from (select 2 limit 1000000)", bind.QueryRoute, "SELECT 1 FROM (SELECT 2 LIMIT 1000000) LIMIT 101", cut(100, "probe")},
		{"LIMIT BY stays", "select 1 from t limit 1000000 by x", bind.QueryRoute, "SELECT 1 FROM t LIMIT 1000000 BY x LIMIT 101", cut(100, "probe")},
		{"each member", "select 1 union all select 2 limit 3", bind.QueryRoute, "SELECT 1 LIMIT 100 UNION ALL SELECT 2 LIMIT 3", cut(103, "set")},
		{"each member of a member", "select 1 union all (select 2 union distinct select 3)", bind.Pages, "SELECT 1 LIMIT 100 UNION ALL (SELECT 2 LIMIT 100 UNION DISTINCT SELECT 3 LIMIT 100)", cut(300, "set")},
		{"members together", "(select 1 limit 50000) union all (select 2 limit 50000)", bind.QueryRoute, "SELECT 1 LIMIT 50000 UNION ALL (SELECT 2 LIMIT 50000) LIMIT 50000", cut(50_000, "set")},
		{"members of EXCEPT stay whole", "select 1 except select 2", bind.QueryRoute, "SELECT 1 EXCEPT (SELECT 2) LIMIT 100", cut(100, "set")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, cut, err := bind.Limit(parse(t, tt.text), bind.Limits{Mode: tt.mode})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, hogql.Print(got)); diff != "" {
				t.Errorf("Limit(%q) (-want +got):\n%s", tt.text, diff)
			}
			if diff := cmp.Diff(tt.cut, cut); diff != "" {
				t.Errorf("Limit(%q) cut (-want +got):\n%s", tt.text, diff)
			}
		})
	}
	mistakes := []struct{ name, text, want string }{
		{"negative", "select 1 limit -1000000", "15:23: LIMIT takes a whole number that is not negative"},
		{"computed negative", "select 1 limit 0 - 1000000", "15:26: LIMIT takes a whole number that is not negative"},
		{"a fraction", "select 1 limit 0.9", "15:18: LIMIT takes a whole number that is not negative"},
		{"text", "select 1 limit 'x'", "15:18: LIMIT takes a whole number that is not negative"},
		{"a negative OFFSET of a member", "select 1 union all select 2 limit 1 offset -1", "43:45: OFFSET takes a whole number that is not negative"},
	}
	for _, tt := range mistakes {
		t.Run("mistake: "+tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := bind.Limit(parse(t, tt.text), bind.Limits{})
			if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
				t.Errorf("Limit(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}
