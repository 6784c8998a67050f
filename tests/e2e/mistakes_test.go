package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestMistakesOfNewUsers makes common first-day mistakes: each answer says what to do instead.
func TestMistakesOfNewUsers(t *testing.T) {
	c := newProject(t)
	importLines(t, c, threeLines)
	c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "weekly", "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
	node := func(node any) map[string]any { return map[string]any{"query": node} }
	hogql := func(text string) map[string]any { return node(map[string]any{"kind": "HogQLQuery", "query": text}) }
	for _, tt := range []struct {
		path   string
		body   any
		status int
		want   []string // parts of the body
	}{
		{"query/", node(map[string]any{"kind": "TrendQuery"}), 400, []string{"'TrendQuery' found using 'kind'", "did you mean 'TrendsQuery'?"}},
		{"query/", map[string]any{"kind": "HogQLQuery", "query": "select 1"}, 400, []string{"Extra inputs are not permitted"}},
		{"query/", "", 400, []string{"the body is empty"}},
		{"query/", hogql(`select count() from events where event = "a"`), 400, []string{"Unable to resolve field: a", "Write text in single quotes: 'a'"}},
		{"query/", hogql(`select count() from events where event like "%a%"`), 400, []string{"Write text in single quotes: '%a%'"}},
		{"query/", hogql("select count() from events where timestamp > 'yesterday'"), 400, []string{"'yesterday' cannot be read as a time", "2024-01-31 12:00:00", `"column":46`}},
		{"query/", hogql("select count() from events where timestamp > concat('yester', 'day')"), 400, []string{"cannot_parse_datetime", "Write a time as '2024-01-31'"}},
		{"query/", hogql("select event form events"), 400, []string{"Unexpected 'events', expected the end of the query", "Did you mean FROM by 'form'?"}},
		{"query/", hogql("select event from events where event = 'it's'"), 400, []string{"Write a quote inside of a text twice: 'it''s'"}},
		{"query/", hogql("select 1 from events where timestamp > now() - 7 days"), 400, []string{"interval 7 day"}},
		{"query/", hogql("select event, count() from events"), 400, []string{"Column 'event' is not under aggregate function", "GROUP BY, or put it into"}},
		{"query/", hogql("select properties.a, count() from events"), 400, []string{"Column 'properties.a' is not under aggregate function"}},
		{"query/", hogql("select person.properties.a, count() from events"), 400, []string{"Column 'person.properties.a' is not under aggregate function"}},
		{"query/", hogql("select sum(count() over ()) over () from events"), 400, nil},
		{"query/", hogql("select multiMatchAny('x', ['a{1,30000}'])"), 400, []string{"Regular expression evaluation in vectorscan will be too slow.\""}},
		{"query/", hogql("select " + strings.Repeat("arrayMap(x -> ", 100) + "1" + strings.Repeat(", [1])", 100)), 400, nil},
		{"query/", hogql("select event from events group by 7"), 400, nil},
		{"endpoints/weakly/run", map[string]any{}, 404, []string{`"detail":"Not found."`, `This project has no endpoint named \"weakly\". Did you mean \"weekly\"?`, `"hint":"weekly"`}},
		{"endpoints/nothing/run", map[string]any{}, 404, []string{`This project has no endpoint named \"nothing\"."`}},
	} {
		answer := c.Do(t, http.MethodPost, tt.path, tt.body)
		if answer.Status != tt.status {
			t.Errorf("%v\nanswers %d: %s", tt.body, answer.Status, answer.Raw)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(answer.Raw), want) {
				t.Errorf("%v\ndoes not say %s but\n%s", tt.body, want, answer.Raw)
			}
		}
	}
	form := *c
	form.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if answer := form.Do(t, http.MethodPost, "query/", `{}`); answer.Status != 415 || !strings.Contains(string(answer.Raw), "Content-Type: application/json") {
		t.Errorf("a form answers %d: %s", answer.Status, answer.Raw)
	}
}

// TestNearestEndpointStaysInside checks that a key which may only run some endpoints never gets another one as a suggestion.
func TestNearestEndpointStaysInside(t *testing.T) {
	c := newProject(t)
	for _, name := range []string{"weekly", "orders"} {
		c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
	}
	var made struct{ Key string }
	server.MustCommand(t, &made, nil, "key", "create", "--project", fmt.Sprint(c.Project), "--kind", "secret", "--scopes", "endpoint:read", "--endpoints", "orders")
	bound := server.Client(c.Project, made.Key)
	for _, name := range []string{"weekl", "weekly", "order"} {
		answer := bound.Do(t, http.MethodPost, "endpoints/"+name+"/run", nil)
		if answer.Status != http.StatusForbidden || strings.Contains(string(answer.Raw), "weekly") || strings.Contains(string(answer.Raw), "orders") {
			t.Errorf("%s answers %d: %s", name, answer.Status, answer.Raw)
		}
	}
}

// warningsOf returns the messages of an answer's warnings.
func warningsOf(t *testing.T, answer harness.Answer) (messages []string) {
	t.Helper()
	if answer.Status != http.StatusOK {
		t.Fatalf("answers %d: %s", answer.Status, answer.Raw)
	}
	list, _ := answer.Body["warnings"].([]any)
	for _, entry := range list {
		messages = append(messages, fmt.Sprint(entry.(map[string]any)["message"]))
	}
	return messages
}

// TestWarnings queries things that do not exist. Warnings come with computed and with cached answers, and only while they are true.
func TestWarnings(t *testing.T) {
	c := newProject(t)
	importLines(t, c, threeLines)
	ask := func(refresh string, node map[string]any) harness.Answer {
		t.Helper()
		return c.Do(t, http.MethodPost, "query/", map[string]any{"query": node, "refresh": refresh})
	}
	hogql := func(text string) map[string]any { return map[string]any{"kind": "HogQLQuery", "query": text} }
	trend := func(event, property, breakdown string) map[string]any {
		return map[string]any{
			"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2024-01-01", "date_to": "2024-01-05"},
			"series":          []any{map[string]any{"kind": "EventsNode", "event": event, "properties": []any{map[string]any{"type": "event", "key": property, "operator": "is_set"}}}},
			"breakdownFilter": map[string]any{"breakdown": breakdown, "breakdown_type": "event"},
		}
	}
	warned := func(what string, node map[string]any, want ...string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error { // on a busy machine, names are not always checked in time
			if diff := cmp.Diff(want, warningsOf(t, ask("force_blocking", node))); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", what, diff)
			}
			return nil
		})
	}
	const noEvent = "No event named '%s' has been seen in this project."
	for _, tt := range []struct {
		name string
		node map[string]any
		want []string
	}{
		{"nothing wrong", hogql("select properties.n from events where event in ('a', 'b')"), nil},
		{"an event", hogql("select 1 from events where event in ('a', 'sign up')"), []string{fmt.Sprintf(noEvent, "sign up")}},
		{"a property", hogql("select 1 from events where properties.nothing_such = 'x'"), []string{"No event of this project has the property 'nothing_such'."}},
		{"a limit", hogql("select 1 from events where event = 'a' limit 60000"), []string{"A query returns at most 50000 rows: the limit was lowered to that"}},
		{"a trend that is right", trend("a", "n", "n"), nil},
		{"a trend", trend("c", "m", "o"), []string{fmt.Sprintf(noEvent, "c"), "No event of this project has the property 'm'.", "No event of this project has the property 'o'."}},
		{
			"a range", map[string]any{
				"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2024-02-01", "date_to": "2024-01-01"},
				"series": []any{map[string]any{"kind": "EventsNode", "event": "a"}},
			}, []string{"The range of time ends before it begins, so there is nothing in it"},
		},
	} {
		warned(tt.name, tt.node, tt.want...)
		if diff := cmp.Diff(tt.want, warningsOf(t, ask("force_cache", tt.node))); diff != "" {
			t.Errorf("%s, from the cache (-want +got):\n%s", tt.name, diff)
		}
	}

	warned("before the event", hogql("select count() from events where event = 'signed_up'"), fmt.Sprintf(noEvent, "signed_up"))
	importLines(t, c, `{"event":"signed_up","distinct_id":"p","timestamp":"2024-01-01T00:00:00Z","properties":{}}`)
	after := ask("force_blocking", hogql("select count() from events where event = 'signed_up'"))
	if got := warningsOf(t, after); got != nil {
		t.Errorf("after the event: %v", got)
	}

	c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "gone", "query": hogql("select event from events where event = 'gone' limit 60000")})
	run := c.Do(t, http.MethodPost, "endpoints/gone/run", map[string]any{})
	if diff := cmp.Diff([]string{"A query returns at most 50000 rows: the limit was lowered to that"}, warningsOf(t, run)); diff != "" {
		t.Errorf("a run (-want +got):\n%s", diff)
	}
}
