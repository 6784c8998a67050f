package events_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func build(t *testing.T, fields string) (*insight.Listing, error) {
	t.Helper()
	return events.Build(insighttest.Node[*events.Query](t, `{"kind": "EventsQuery", `+fields+`}`), nil, insighttest.World(), 50_000)
}

func TestBuild(t *testing.T) {
	t.Parallel()
	const all = `"after": "all", "before": "2020-01-01", `
	const where = " FROM events WHERE events.timestamp < toDateTime64('2020-01-01 00:00:00.000000', 6, 'UTC')"
	tests := []struct{ name, fields, want string }{
		{"the newest first", all + `"select": ["event", "timestamp"]`, "SELECT event, timestamp" + where + " ORDER BY events.timestamp DESC, events.uuid DESC LIMIT 101"},
		{"by the first column", all + `"select": ["event", "distinct_id"]`, "SELECT event, distinct_id" + where + " ORDER BY event, events.uuid LIMIT 101"},
		{"an empty order is none", all + `"select": ["event"], "orderBy": []`, "SELECT event" + where + " ORDER BY event, events.uuid LIMIT 101"},
		{
			"in an order of its own", all + `"select": ["event"], "orderBy": ["lower(event)DESC", "event asc", "uuid"], "limit": 3, "offset": 6`,
			"SELECT event" + where + " ORDER BY lower(event) DESC, event, uuid, events.uuid DESC LIMIT 4 OFFSET 6",
		},
		{
			"groups, the greatest first", all + `"select": ["event", "count() as n", "max(timestamp)"], "where": ["n > 1", "event != 'x'", "min(timestamp) > '2019-01-01'"]`,
			"SELECT event, count() AS n, max(timestamp)" + where + " AND event != 'x' GROUP BY event HAVING n > 1 AND min(timestamp) > '2019-01-01' ORDER BY count() DESC, event LIMIT 101",
		},
		{
			"groups, the largest first", all + `"select": ["max(timestamp)", "event", "count()"]`,
			"SELECT max(timestamp), event, count()" + where + " GROUP BY event ORDER BY count() DESC, event LIMIT 101",
		},
		{
			"an aggregate in a subquery is none of this query", all + `"select": ["event"], "where": ["event in (select max(event) from events)"]`,
			"SELECT event" + where + " AND event IN (SELECT max(event) FROM events) ORDER BY event, events.uuid LIMIT 101",
		},
		{"a name", all + `"select": ["event"], "event": "a", "events": []`, "SELECT event" + where + " AND events.event = 'a' ORDER BY event, events.uuid LIMIT 101"},
		{"one name of a list", all + `"select": ["event"], "events": ["", "a"]`, "SELECT event" + where + " AND events.event = 'a' ORDER BY event, events.uuid LIMIT 101"},
		{"names", all + `"select": ["event"], "event": "a", "events": ["b", "c"]`, "SELECT event" + where + " AND events.event IN ('a', 'b', 'c') ORDER BY event, events.uuid LIMIT 101"},
		{"empty names are none", all + `"select": ["event"], "event": "", "events": [""]`, "SELECT event" + where + " ORDER BY event, events.uuid LIMIT 101"},
		{
			"the last day", `"select": ["event"]`,
			"SELECT event FROM events WHERE events.timestamp > toDateTime64('2020-01-08 15:30:00.000000', 6, 'UTC') AND " +
				"events.timestamp < toDateTime64('2020-01-09 15:30:05.000000', 6, 'UTC') ORDER BY event, events.uuid LIMIT 101",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(t, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, hogql.Print(built.Query)); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string][2]int{
		`"select": ["event"]`:                                 {100, 0},
		`"select": ["event"], "limit": 7, "offset": 3`:        {7, 3},
		`"select": ["event"], "limit": 60000, "offset": 1000`: {50_000, 1000},
	} {
		built, err := build(t, fields)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{built.Limit, built.Offset}; got != want {
			t.Errorf("%s: limit and offset %v, want %v", fields, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"an action", `"select": ["event"], "actionId": 3`, "actionId: Action ID 3 does not exist!"},
		{
			"a selector of a step", `"select": ["event"], "actionSteps": [{"event": "a"}, {"event": "$autocapture", "selector": "a["}]`,
			"actionSteps.1.selector: The selector of a property filter is invalid: the name of an attribute is missing",
		},
		{
			"an expression of a step", `"select": ["event"], "actionSteps": [{"properties": [{"type": "hogql", "key": "1 +"}]}]`,
			"actionSteps.0.properties.0.key: The HogQL expression of a property filter is invalid: 3:3: Unexpected end of the expression, expected an expression",
		},
		{"no person", `"select": ["event"], "personId": "p1"`, "personId: personId must be the UUID of a person."},
		{"no date", `"select": ["event"], "after": "soon"`, "after: The date is neither ISO 8601 nor relative, such as -7d"},
		{"a placeholder", `"select": ["event", "{x}"]`, "select.1: The HogQL expression cannot hold placeholders"},
		{"a clause in an order", `"select": ["event"], "orderBy": ["event limit 1 by event"]`, "orderBy.0: The HogQL expression is invalid: 6:11: Unexpected 'limit', expected the end of the expression"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	built, err := build(t, `"select": ["event as e", "person -- Who", "*"]`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"e", "person -- Who", "*"}, built.Columns); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	whole, err := build(t, `"select": []`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"*"}, whole.Columns); diff != "" {
		t.Errorf("names of no columns (-want +got):\n%s", diff)
	}
	got, err := built.Row([]byte(`["a,]", [1, "p", "2020-01-01T00:00:00Z", "{\"x\": [1, \"\\\"\"]}", "d"], ["u","a","{}","t",7,"d","","c","full"]]`))
	if err != nil {
		t.Fatal(err)
	}
	want := `["a,]",{"uuid":"p","created_at":"2020-01-01T00:00:00Z","properties":{"x": [1, "\""]},"distinct_id":"d"},` +
		`{"uuid":"u","event":"a","properties":{},"timestamp":"t","team_id":7,"distinct_id":"d","elements_chain":"","created_at":"c","person_mode":"full"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	nobody, err := built.Row([]byte(`["a", [0, "00000000-0000-0000-0000-000000000000", "1970-01-01T00:00:00Z", "", "d"], ["u","a","{}","t",7,"d","a.x:text=\"b\";div","c","full"]]`))
	if err != nil {
		t.Fatal(err)
	}
	const more = `"href":null,"attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":`
	want = `["a",{"distinct_id":"d"},{"uuid":"u","event":"a","properties":{},"timestamp":"t","team_id":7,"distinct_id":"d",` +
		`"elements_chain":"a.x:text=\"b\";div","created_at":"c","person_mode":"full","elements":[` +
		`{"text":"b","tag_name":"a","attr_class":["x"],` + more + `0},{"text":null,"tag_name":"div","attr_class":null,` + more + `1}]}]`
	if diff := cmp.Diff(want, string(nobody)); diff != "" {
		t.Errorf("row of an event without a person (-want +got):\n%s", diff)
	}
	for _, row := range []string{`[]`, `["a", 1, 2]`, `["a", [1, "p", "c", "{", "d"], []]`, `["a", [], []]`, `x`} {
		if got, err := built.Row([]byte(row)); err == nil {
			t.Errorf("row %s gives %s", row, got)
		}
	}
	plain, err := build(t, `"select": ["event"]`)
	if err != nil || plain.Row != nil {
		t.Errorf("rows without objects are changed too, or %v", err)
	}
}

// TestReadSteps checks how the steps of an action that is not stored are read: they do not count next to the number of an action.
func TestReadSteps(t *testing.T) {
	t.Parallel()
	const step = `"actionSteps": [{"event": "a", "tag_name": "", "text": null, "href": "/x", "href_matching": "contains", "url": " /y ", "url_matching": null, "properties": []}]`
	read := func(fields string) *events.Query {
		t.Helper()
		return insighttest.Node[*events.Query](t, `{"kind": "EventsQuery", "select": ["event"], `+fields+`}`)
	}
	name, link := "", "/x"
	want := []query.ActionStep{{At: "actionSteps.0", Event: "a", URL: "/y", TagName: &name, Href: &link, HrefMatching: query.Contains}}
	got := read(step)
	if diff := cmp.Diff(want, got.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if key := string(got.Canonical()); !strings.Contains(key, `"actionSteps":[{"event":"a","url":"/y","tag_name":"","href":"/x","href_matching":"contains"}]`) {
		t.Errorf("the cache key does not contain the steps: %s", key)
	}
	if both, alone := read(step+`, "actionId": 3`), read(`"actionId": 3`); string(both.Canonical()) != string(alone.Canonical()) {
		t.Errorf("with an action too: %s", both.Canonical())
	}
	if none := read(`"actionSteps": []`); none.Steps != nil {
		t.Errorf("an empty list is %v", none.Steps)
	}
	const at = "query.EventsQuery.actionSteps"
	for _, tt := range []struct{ name, steps, attr, want string }{
		{"an unknown field", `[{}, {"id": 1}]`, "actionSteps.1.id", at + ".1.id\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"an unknown matching", `[{"url_matching": "like"}]`, "actionSteps.0.url_matching", at + ".0.url_matching\n  Input should be 'contains', 'regex' or 'exact' [type=enum]"},
		{
			"no regular expression", `[{"href": "("}, {"href": "(", "href_matching": "regex"}]`,
			"actionSteps.1.href", at + ".1.href\n  \"(\" is not a valid regular expression: missing closing ): `(`. [type=value_error]",
		},
		{
			"a regular expression that grows", `[{"url": ".{999}.{999}.{999}.{999}.{999}", "url_matching": "regex"}]`,
			"actionSteps.0.url", at + ".0.url\n  \".{999}.{999}.{999}.{999}.{999}\" is not a valid regular expression: it has more than 20000 states. [type=value_error]",
		},
		{"no step", `["a"]`, "actionSteps.0", at + ".0\n  Input should be a valid dictionary [type=model_type]"},
		{"too many", "[" + strings.Repeat("{}, ", 100) + "{}]", "actionSteps", at + "\n  List should have at most 100 items [type=too_long]"},
		{
			"behavior", `[{"properties": [{"type": "behavioral", "value": "performed_event", "key": "a", "event_type": "events", "time_value": 30, "time_interval": "day"}]}]`,
			"actionSteps.0.properties", at + ".0.properties\n  The steps of an action cannot ask for behavior [type=value_error]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, `{"kind": "EventsQuery", "select": ["event"], "actionSteps": `+tt.steps+`}`, tt.attr, tt.want)
		})
	}
}
