package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

func listEvents(t *testing.T, c *harness.Client, fields map[string]any) harness.Answer {
	t.Helper()
	fields["kind"] = "EventsQuery"
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": fields})
	if answer.Status != http.StatusOK {
		t.Fatalf("%v\nanswered %d: %s", fields, answer.Status, answer.Raw)
	}
	return answer
}

// TestEventElements: a whole event has the elements of its chain as a list.
func TestEventElements(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event": "$autocapture", "distinct_id": "d", "timestamp": "2024-03-01T12:00:00Z", `+
		`"properties": {"$elements_chain": "a:attr__href=\"/x\"href=\"/x\"nth-child=\"1\"nth-of-type=\"1\"text=\"Go\";div:nth-child=\"2\"nth-of-type=\"1\""}}`)
	results, _ := listEvents(t, c, map[string]any{"select": []string{"*"}, "after": "all"}).Body["results"].([]any)
	if len(results) != 1 {
		t.Fatalf("%d rows, want 1", len(results))
	}
	cells, _ := results[0].([]any)
	event, _ := cells[0].(map[string]any)
	list, _ := event["elements"].([]any)
	if len(list) != 2 {
		t.Fatalf("the elements are %v, want two", event["elements"])
	}
	link, _ := list[0].(map[string]any)
	if diff := cmp.Diff([]any{"a", "Go", "/x"}, []any{link["tag_name"], link["text"], link["href"]}); diff != "" || event["person_mode"] != "full" {
		t.Errorf("the first element of %v (-want +got):\n%s", event, diff)
	}
}

// TestPeopleOfEvents shows the people of events as they are now, not as they were recorded with the events.
func TestPeopleOfEvents(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event": "buy", "distinct_id": "u", "timestamp": "2024-03-01T12:00:00Z", "properties": {"$set": {"email": "old@b.c"}}}
{"event": "$set", "distinct_id": "u", "timestamp": "2024-03-02T12:00:00Z", "properties": {"$set": {"email": "new@b.c"}}}
{"event": "look", "distinct_id": "v", "timestamp": "2024-03-03T12:00:00Z", "properties": {"$process_person_profile": false}}
{"event": "look", "distinct_id": "nobody", "timestamp": "2024-03-04T12:00:00Z", "properties": {"$process_person_profile": false}}
`)
	importLines(t, c, `{"event": "$identify", "distinct_id": "w", "timestamp": "2024-03-05T12:00:00Z", "properties": {"$anon_distinct_id": "v", "$set": {"email": "w@b.c"}}}`+"\n")
	emails := func(fields map[string]any) map[string]any {
		t.Helper()
		fields["after"] = "all"
		answer := listEvents(t, c, fields)
		out := map[string]any{}
		rows, _ := answer.Body["results"].([]any)
		for _, row := range rows {
			cells, _ := row.([]any)
			who, _ := cells[0].(map[string]any)
			properties, _ := who["properties"].(map[string]any)
			out[fmt.Sprint(cells[1], " ", who["distinct_id"])] = properties["email"]
		}
		if len(out) != len(rows) {
			t.Errorf("rows are shown several times: %s", answer.Raw)
		}
		return out
	}
	want := map[string]any{"buy u": "new@b.c", "$set u": "new@b.c", "look v": "w@b.c", "look nobody": nil, "$identify w": "w@b.c"}
	for name, fields := range map[string]map[string]any{
		"as they come": {"select": []string{"person", "event"}},
		"ordered":      {"select": []string{"person", "event as name", "count() as n"}, "orderBy": []string{"n", "name desc"}},
		"hidden":       {"select": []string{"person", "event", "'x' as distinct_id", "'y' as row", "'z' as column_2", "'p' as page", "'k' as known"}},
		"as recorded":  {"select": []string{"person -- Who", "event"}, "modifiers": map[string]any{"personsOnEventsMode": "person_id_no_override_properties_on_events"}},
	} {
		if diff := cmp.Diff(want, emails(fields)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(map[string]any{"2 u": "new@b.c"}, emails(map[string]any{"select": []string{"person", "count()"}, "where": []string{"distinct_id = 'u'"}})); diff != "" {
		t.Errorf("grouped by the person (-want +got):\n%s", diff)
	}
	nobody := listEvents(t, c, map[string]any{"select": []string{"person"}, "where": []string{"distinct_id = 'nobody'"}, "after": "all"})
	if diff := cmp.Diff(any([]any{[]any{map[string]any{"distinct_id": "nobody"}}}), nobody.Body["results"]); diff != "" {
		t.Errorf("nobody (-want +got):\n%s", diff)
	}
}

// TestPagesOfEqualEvents reads events with the same time and name page by page: each comes once.
func TestPagesOfEqualEvents(t *testing.T) {
	c := newProject(t)
	var lines strings.Builder
	for i := range 700 {
		fmt.Fprintf(&lines, `{"event": "tie", "distinct_id": "d%d", "timestamp": "2024-03-01T12:00:00Z"}`+"\n", i)
	}
	importLines(t, c, lines.String())
	for _, fields := range []map[string]any{
		{"select": []string{"uuid", "timestamp"}, "orderBy": []string{"timestamp DESC"}},
		{"select": []string{"uuid", "event"}, "orderBy": []string{"event"}},
		{"select": []string{"distinct_id", "count()"}},
		{"select": []string{"distinct_id", "person", "timestamp"}},
		{"select": []string{"uuid", "person", "timestamp"}, "orderBy": []string{"3 DESC"}},
		{"select": []string{"distinct_id", "'x' as uuid", "'y' as row", "person", "timestamp as order_1"}, "orderBy": []string{"timestamp"}},
	} {
		seen := map[any]bool{}
		for offset := 0; offset < 700; offset += 100 {
			fields["after"], fields["limit"], fields["offset"] = "all", 100, offset
			rows, _ := listEvents(t, c, fields).Body["results"].([]any)
			for _, row := range rows {
				cells, _ := row.([]any)
				seen[cells[0]] = true
			}
		}
		if len(seen) != 700 {
			t.Errorf("%v: the pages have %d different rows of 700", fields, len(seen))
		}
	}
}

// TestEventsQuery lists events, entirely and in part, page by page.
func TestEventsQuery(t *testing.T) {
	c := newProject(t)
	var lines strings.Builder
	lines.WriteString(`{"type": "person", "distinct_ids": ["d0", "d1"], "properties": {"email": "a@b.c"}, "created_at": "2024-01-01T00:00:00Z"}` + "\n")
	for i := range 7 {
		fmt.Fprintf(&lines, `{"event": "e%d", "distinct_id": "d%d", "timestamp": "2024-03-0%dT12:00:00Z", "properties": {"n": %d, "text": "\"<%d>\""}, "uuid": "be349c38-5f7e-41eb-9f47-57f1fa0d45e%d"}`+"\n",
			i%2, i%3, i+1, i, i, i)
	}
	importLines(t, c, lines.String())

	whole := listEvents(t, c, map[string]any{"select": []string{"*", "person", "properties.n"}, "after": "2024-03-06", "before": "2024-03-07"})
	person := c.Query(t, "select toString(person_id) from events where distinct_id = 'd2' limit 1")
	id, _ := person[0].([]any)
	results, _ := whole.Body["results"].([]any)
	if len(results) != 1 {
		t.Fatalf("%d rows, want 1: %s", len(results), whole.Raw)
	}
	cells, _ := results[0].([]any)
	event, _ := cells[0].(map[string]any)
	delete(event, "created_at") // the time of the import
	want := map[string]any{
		"uuid": "be349c38-5f7e-41eb-9f47-57f1fa0d45e5", "event": "e1", "distinct_id": "d2", "elements_chain": "", "timestamp": "2024-03-06T12:00:00Z",
		"properties": map[string]any{"n": 5.0, "text": `"<5>"`}, "team_id": float64(c.Project), "person_mode": "full",
	}
	if diff := cmp.Diff(want, event); diff != "" {
		t.Errorf("* (-want +got):\n%s", diff)
	}
	who, _ := cells[1].(map[string]any)
	if diff := cmp.Diff([]any{id[0], map[string]any{}, "d2"}, []any{who["uuid"], who["properties"], who["distinct_id"]}); diff != "" {
		t.Errorf("person (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"*", "person", "properties.n"}, whole.Body["columns"]); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if types, _ := whole.Body["types"].([]any); len(types) != 3 || types[1] != "String" || types[2] != "Nullable(Float64)" {
		t.Errorf("types %v", whole.Body["types"])
	}

	for offset, want := range map[int]struct {
		rows []any
		more bool
	}{
		0: {[]any{row("e0", 6.0), row("e1", 5.0), row("e0", 4.0)}, true},
		3: {[]any{row("e1", 3.0), row("e0", 2.0), row("e1", 1.0)}, true},
		6: {[]any{row("e0", 0.0)}, false},
	} {
		page := listEvents(t, c, map[string]any{
			"select": []string{"event", "properties.n"}, "orderBy": []string{"timestamp DESC"}, "after": "all", "limit": 3, "offset": offset,
		})
		got := []any{page.Body["results"], page.Body["hasMore"], page.Body["limit"], page.Body["offset"]}
		if diff := cmp.Diff([]any{want.rows, want.more, 3.0, float64(offset)}, got); diff != "" {
			t.Errorf("page from %d: rows, hasMore, limit, offset (-want +got):\n%s", offset, diff)
		}
	}

	for name, tt := range map[string]struct {
		fields map[string]any
		want   []any
	}{
		"groups":       {map[string]any{"select": []string{"event", "count()"}}, []any{row("e0", 4.0), row("e1", 3.0)}},
		"one name":     {map[string]any{"select": []string{"count()"}, "event": "e1"}, []any{row(3.0)}},
		"one person":   {map[string]any{"select": []string{"count()"}, "personId": id[0]}, []any{row(2.0)}},
		"a condition":  {map[string]any{"select": []string{"count()"}, "where": []string{"toFloat(properties.n) > 3"}}, []any{row(3.0)}},
		"a filter":     {map[string]any{"select": []string{"count()"}, "properties": []any{map[string]any{"key": "n", "operator": "lt", "value": 2}}}, []any{row(2.0)}},
		"of a person":  {map[string]any{"select": []string{"count()"}, "fixedProperties": []any{map[string]any{"type": "person", "key": "email", "value": "a@b.c"}}}, []any{row(5.0)}},
		"in a wrapper": {map[string]any{"select": []string{"max(timestamp)"}, "where": []string{"event = 'e1'"}}, []any{row("2024-03-06T12:00:00Z")}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.fields["after"] = "2024-01-01"
			var answer harness.Answer
			if name == "in a wrapper" {
				tt.fields["kind"] = "EventsQuery"
				answer = c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "DataTableNode", "source": tt.fields}})
			} else {
				answer = listEvents(t, c, tt.fields)
			}
			if diff := cmp.Diff(any(tt.want), answer.Body["results"]); diff != "" {
				t.Errorf("rows (-want +got):\n%s\n%s", diff, answer.Raw)
			}
		})
	}
}

// TestEventsQueryMistakes checks that bad input is refused with the field's name, before anything runs.
func TestEventsQueryMistakes(t *testing.T) {
	c := newProject(t)
	for name, tt := range map[string]struct {
		fields map[string]any
		attr   any
		detail string
	}{
		"an unknown field":    {map[string]any{"select": []string{"event"}, "sort": 1}, nil, "query.EventsQuery.sort\n  Extra inputs are not permitted"},
		"an unknown name":     {map[string]any{"select": []string{"evnt"}}, nil, "Unable to resolve field: evnt"},
		"bad syntax":          {map[string]any{"select": []string{"event"}, "where": []string{"event ="}}, "where.0", "The HogQL expression is invalid"},
		"two statements":      {map[string]any{"select": []string{"event) from events; select ("}}, "select.0", "The HogQL expression is invalid"},
		"a page of no number": {map[string]any{"select": []string{"event"}, "offset": "x"}, nil, "query.EventsQuery.offset\n  Input should be a valid integer"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.fields["kind"] = "EventsQuery"
			answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": tt.fields})
			detail, _ := answer.Body["detail"].(string)
			if answer.Status != http.StatusBadRequest || !strings.Contains(detail, tt.detail) || answer.Body["attr"] != tt.attr {
				t.Errorf("answered %d: %s", answer.Status, answer.Raw)
			}
		})
	}
}
