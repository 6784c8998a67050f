package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestEventPages follows next through events, many of which have the same time: each is shown once, in both orders, with any page size.
func TestEventPages(t *testing.T) {
	c := newProject(t)
	var lines strings.Builder
	for i := range 23 {
		fmt.Fprintf(&lines, `{"event":"e","distinct_id":"d%d","timestamp":"2024-03-01T10:00:%02dZ","properties":{"n":%d}}`+"\n", i%3, i/7, i)
	}
	importLines(t, c, lines.String())
	for _, order := range []string{"-timestamp", "timestamp"} {
		for limit := range 9 {
			seen, path := map[any]bool{}, fmt.Sprintf("events/?limit=%d&orderBy=%s", limit+1, url.QueryEscape(`["`+order+`"]`))
			for range 30 {
				answer := mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)
				results, _ := answer["results"].([]any)
				for _, r := range results {
					id := r.(map[string]any)["id"]
					if seen[id] {
						t.Errorf("%s, pages of %d: %v comes twice", order, limit+1, id)
					}
					seen[id] = true
				}
				next, more := answer["next"].(string)
				if !more {
					break
				}
				_, path, _ = strings.Cut(next, fmt.Sprintf("/api/projects/%d/", c.Project))
			}
			if len(seen) != 23 {
				t.Errorf("%s, pages of %d: %d events, want 23", order, limit+1, len(seen))
			}
		}
	}
}

// TestPeopleAndEvents requests single records and suggestions.
func TestPeopleAndEvents(t *testing.T) {
	c := newProject(t)
	recent := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	importLines(t, c, fmt.Sprintf(`{"type":"person","distinct_ids":["01890000-0000-7000-8000-00000000000a","ann"],"properties":{"plan":"pro","email":"ann@mail.test"},"created_at":"2024-01-01T00:00:00Z"}
{"event":"click","distinct_id":"ann","timestamp":%[1]q,"uuid":"be349c38-5f7e-41eb-9f47-57f1fa0d45e1","properties":{"tier":"gold","tags":["a","b"],"$elements_chain":"a.btn:text=\"Go\""}}
{"event":"click","distinct_id":"ann","timestamp":%[1]q,"properties":{"tier":"golden"}}
{"event":"view","distinct_id":"bob","timestamp":%[1]q,"properties":{"tier":"iron"}}
{"event":"view","distinct_id":"bob","timestamp":"2024-01-01T00:00:00Z","properties":{"tier":"old gold"}}
`, recent))
	all := &harness.Client{Server: c.Server, Project: c.Project, Key: c.Server.Key(t, c.Project, "person:read,query:read,cohort:read", "personal")}
	for _, tt := range []struct {
		path string
		want any
	}{
		{"events/be349c38-5f7e-41eb-9f47-57f1fa0d45e1/", fields{"event": "click", "person": nil, "elements_chain": `a.btn:text="Go"`}},
		{"events/BE349C38-5f7e-41eb-9f47-57f1fa0d45e1/?include_person=true", fields{"person": fields{"properties": fields{"email": "ann@mail.test"}}}},
		{"persons/?include_total=true&limit=1", fields{"count": 2.0}},
		{"persons/?include_total&limit=1", fields{"count": 2.0}},
		{"persons/?include_total=false&limit=1", fields{"count": 2.0}},
		{"persons/?distinct_id=ann", fields{"results": []any{fields{
			"name": "ann@mail.test", "distinct_ids": []any{"ann", "01890000-0000-7000-8000-00000000000a"}, "matched_recordings": []any{}, "value_at_data_point": nil,
		}}}},
		{"persons/?search=N@MAIL", fields{"results": []any{fields{"name": "ann@mail.test"}}}},
		{"persons/?search=bob", fields{"results": []any{fields{"name": "bob"}}}},
		{"persons/?search=bo", fields{"results": []any{}}},
		{"persons/?search=%25", fields{"results": []any{}}},
		{"persons/?email=ann@mail.test&distinct_id=bob", fields{"results": []any{}}},
		{"persons/?distinct_id=" + url.QueryEscape(`' or 1 = 1 or '`), fields{"results": []any{}}},
	} {
		answer := any(mustDo(t, all, http.StatusOK, http.MethodGet, tt.path, nil))
		if diff := cmp.Diff(tt.want, harness.Only(tt.want, answer), cmp.Transformer("fields", func(f fields) map[string]any { return f })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
	for path, want := range map[string]string{
		"events/values/?key=tier":                                           `[{"name":"gold"},{"name":"golden"},{"name":"iron"}]`,
		"events/values/?key=tier&value=GOLD":                                `[{"name":"gold"},{"name":"golden"}]`,
		"events/values/?key=tier&event_name=view":                           `[{"name":"iron"}]`,
		"events/values/?key=tier&event_name=view&event_name=click&value=r":  `[{"name":"iron"}]`,
		"events/values/?key=tier&event_name=" + url.QueryEscape(`["view"]`): `[{"name":"iron"}]`,
		"events/values/?key=tags":                                           `[{"name":"a"},{"name":"b"}]`,
		"events/values/?key=tier&properties_tags=x":                         `[]`,
		"events/values/?key=event&is_column=true":                           `[{"name":"click"},{"name":"view"}]`,
		"events/values/?key=custom_event&value=CL":                          `[{"name":"click"}]`,
		"events/values/":                `[]`,
		"persons/values/?key=plan":      `[{"name":"pro","count":1}]`,
		"persons/values/?key=$virt_mrr": `[]`,
	} {
		if answer := all.Do(t, http.MethodGet, path, nil); answer.Status != http.StatusOK || strings.TrimSpace(string(answer.Raw)) != want {
			t.Errorf("%s answers %d %s, want %s", path, answer.Status, answer.Raw, want)
		}
	}
	for path, attr := range map[string]string{
		"events/?after=soon": "after", "events/?person_id=7": "person_id", "events/?orderBy=event": "orderBy", "events/?limit=x": "limit",
		"events/?properties=x": "properties", "events/?properties=[{]": "properties", "events/values/?key=uuid&is_column=true": "key",
		"persons/?properties=" + url.QueryEscape(`[{"key":"a","type":"event","value":1}]`): "properties.0", "persons/cohorts/": "person_id",
	} {
		if answer := all.Do(t, http.MethodGet, path, nil); answer.Status != http.StatusBadRequest || fmt.Sprint(answer.Body["attr"]) != attr {
			t.Errorf("%s answers %d %s, want the attr %s", path, answer.Status, answer.Raw, attr)
		}
	}
	if answer := all.Do(t, http.MethodGet, "persons/9007199254740993/", nil); answer.Status != http.StatusNotFound {
		t.Errorf("a number answers %d %s", answer.Status, answer.Raw)
	}
	writer := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "person:write", "personal"))
	if answer := writer.Do(t, http.MethodPost, "persons/", fields{}); answer.Status != http.StatusMethodNotAllowed ||
		!strings.HasPrefix(fmt.Sprint(answer.Body["detail"]), "Creating persons via this API is not allowed.") {
		t.Errorf("creating a person answers %d %s", answer.Status, answer.Raw)
	}
}

// TestDeletePerson deletes the events of a person, and the person only where nothing says to keep it.
func TestDeletePerson(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event":"click","distinct_id":"ann","timestamp":"2024-01-01T00:00:00Z","uuid":"be349c38-5f7e-41eb-9f47-57f1fa0d45e1"}`)
	ann := idOf(t, c, "ann")
	writer := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "person:write", "personal"))
	for _, step := range []struct {
		path                   string
		status, events, people int
	}{
		{"persons/" + ann + "/?keep_person", http.StatusAccepted, 1, 1},
		{"persons/" + ann + "/?keep_person=true&delete_events=true", http.StatusAccepted, 0, 1},
		{"persons/be349c38-5f7e-41eb-9f47-57f1fa0d45e1/?keep_person=true", http.StatusNotFound, 0, 1},
		{"persons/" + ann + "/", http.StatusAccepted, 0, 0},
		{"persons/" + ann + "/?keep_person=true", http.StatusNotFound, 0, 0},
	} {
		answer := writer.Do(t, http.MethodDelete, step.path, nil)
		got := fmt.Sprint(answer.Status, c.Query(t, "select (select count() from events), (select count() from persons)"))
		if want := fmt.Sprintf("%d [[%d %d]]", step.status, step.events, step.people); got != want {
			t.Errorf("DELETE %s answers %s; status, events and people are %s, want %s", step.path, answer.Raw, got, want)
		}
	}
}

// TestDeletePeople: the answer says what is deleted. Of people that do not exist that is nothing.
func TestDeletePeople(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event":"click","distinct_id":"ann","timestamp":"2024-01-01T00:00:00Z"}`)
	writer := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "person:write", "personal"))
	for _, tt := range []struct {
		names []string
		want  fields
	}{
		{[]string{"nobody"}, fields{"persons_found": 0.0, "persons_deleted": 0.0, "events_queued_for_deletion": false}},
		{[]string{"nobody", "ann"}, fields{"persons_found": 1.0, "persons_deleted": 1.0, "events_queued_for_deletion": true}},
		{[]string{"ann"}, fields{"persons_found": 0.0, "persons_deleted": 0.0, "events_queued_for_deletion": false}},
	} {
		got := mustDo(t, writer, http.StatusAccepted, http.MethodPost, "persons/bulk_delete/", fields{"distinct_ids": tt.names, "delete_events": true})
		if diff := cmp.Diff(any(tt.want), harness.Only(tt.want, any(got))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.names, diff)
		}
	}
}

// TestNamesOfPeople changes the properties that name people: lists and queries follow at once.
func TestNamesOfPeople(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"type":"person","distinct_ids":["ann"],"properties":{"nick name":"Annie","email":"ann@mail.test"}}
{"event":"click","distinct_id":"ann","timestamp":"2024-01-01T00:00:00Z"}
`)
	all := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "person:read,query:read,project:write", "personal"))
	for _, want := range []string{"ann@mail.test", "Annie"} {
		list := mustDo(t, all, http.StatusOK, http.MethodGet, "persons/", nil)
		wanted := any(fields{"results": []any{fields{"name": want}}})
		if diff := cmp.Diff(wanted, harness.Only(wanted, list)); diff != "" {
			t.Errorf("persons/ (-want +got):\n%s", diff)
		}
		for _, node := range []fields{
			{"kind": "EventsQuery", "select": []string{"person_display_name"}, "after": "all", "orderBy": []string{"person_display_name"}},
			{"kind": "ActorsQuery", "select": []string{"person_display_name"}},
		} {
			answer := mustDo(t, all, http.StatusOK, http.MethodPost, "query/", fields{"query": node})
			wanted := any(fields{"results": []any{[]any{fields{"display_name": want}}}})
			if diff := cmp.Diff(wanted, harness.Only(wanted, answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", node["kind"], diff)
			}
		}
		mustDo(t, all, http.StatusOK, http.MethodPatch, fmt.Sprintf("/api/projects/%d/", c.Project), fields{"person_display_name_properties": []string{"nick name"}})
	}
}

// TestNamesOfMembers compares the members of a cohort with the list of people: both have the same names and dates.
func TestNamesOfMembers(t *testing.T) {
	c := newProject(t)
	const uuids = `"01890000-0000-7000-8000-000000000001","01890000-0000-7000-8000-000000000002"`
	var made strings.Builder
	for i := range 10 {
		fmt.Fprintf(&made, `"%d1890000-0000-7000-8000-000000000000",`, i)
	}
	importLines(t, c, `{"type":"person","distinct_ids":[`+uuids+`,"chosen"],"properties":{"EMAIL":"no@mail.test"},"created_at":"2024-01-04T00:00:00Z"}
{"type":"person","distinct_ids":["by-number"],"properties":{"username":12},"created_at":"2024-01-03T00:00:00Z"}
{"type":"person","distinct_ids":["by-name"],"properties":{"Name":"Ann","nick name":"Annie"},"created_at":"2024-01-02T00:00:00Z"}
{"type":"person","distinct_ids":[`+made.String()+`"one of many"],"properties":{},"created_at":"1970-01-01T00:00:00Z"}
`)
	all := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "person:read,query:read,cohort:read,cohort:write,project:write", "personal"))
	mustDo(t, all, http.StatusCreated, http.MethodPost, "cohorts/", fields{"name": "everybody", "is_static": true})
	importLines(t, c, `{"type":"cohort","cohort_id":1,"distinct_ids":["chosen","by-number","by-name","one of many"]}`)
	for _, names := range [][]string{{"chosen", "12", "Ann", "one of many"}, {"chosen", "by-number", "Annie", "one of many"}} {
		var want []any
		for i, name := range names {
			one := fields{"type": "person", "name": name, "created_at": fmt.Sprintf("2024-01-%02dT00:00:00Z", 4-i)}
			if i == 3 {
				one["created_at"] = nil
			}
			want = append(want, one)
		}
		wanted := any(fields{"results": want})
		for _, path := range []string{"persons/", "cohorts/1/persons/"} {
			got := any(mustDo(t, all, http.StatusOK, http.MethodGet, path, nil))
			if diff := cmp.Diff(wanted, harness.Only(wanted, got), cmp.Transformer("fields", func(f fields) map[string]any { return f })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
		mustDo(t, all, http.StatusOK, http.MethodPatch, fmt.Sprintf("/api/projects/%d/", c.Project), fields{"person_display_name_properties": []string{"nick name"}})
	}
	answer := mustDo(t, all, http.StatusOK, http.MethodGet, "cohorts/1/persons/?search=one", nil)
	if results, _ := answer["results"].([]any); len(results) != 1 || len(results[0].(map[string]any)["distinct_ids"].([]any)) != 10 {
		t.Errorf("a member with 11 distinct ids: %v", answer)
	}
}

// TestPeopleOfOthers tries to read another project's people and events in every way: it gets none.
func TestPeopleOfOthers(t *testing.T) {
	ours, theirs := newProject(t), newProject(t)
	recent := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []*harness.Client{ours, theirs} {
		marker := map[bool]string{true: "ours", false: "theirs"}[c == ours]
		importLines(t, c, fmt.Sprintf(`{"type":"person","distinct_ids":["shared","%[1]s-id"],"properties":{"mark":"marker-%[1]s","email":"%[1]s@mail.test"}}
{"event":"%[1]s event","distinct_id":"shared","timestamp":%[2]q,"properties":{"mark":"marker-%[1]s"},"uuid":"be349c38-5f7e-41eb-9f47-57f1fa0d45e%[3]d"}
`, marker, recent, len(marker)))
	}
	person := idOf(t, theirs, "theirs-id")
	key := ours.Server.Client(ours.Project, ours.Server.Key(t, ours.Project, "person:read,query:read,cohort:read", "personal"))
	for _, path := range []string{
		"events/", "events/?event=theirs%20event", "events/?distinct_id=theirs-id", "events/?person_id=" + person, "events/be349c38-5f7e-41eb-9f47-57f1fa0d45e6/?include_person=1",
		"events/?properties=" + url.QueryEscape(`[{"type":"hogql","key":"event in (select event from events where team_id > 0) or 1 = 1"}]`),
		"events/values/?key=mark", "events/values/?key=custom_event", "events/values/?key=event&is_column=1", "events/values/?key=mark&properties_mark=theirs",
		"persons/", "persons/?distinct_id=theirs-id", "persons/?distinct_id=shared", "persons/?email=theirs@mail.test", "persons/?search=mail.test", "persons/?search=" + person,
		"persons/?properties=" + url.QueryEscape(`[{"type":"hogql","key":"1 = 1 or id in (select person_id from events)"}]`), "persons/" + person + "/",
		"persons/values/?key=mark", "persons/values/?key=email", "persons/cohorts/?person_id=" + person,
	} {
		answer := key.Do(t, http.MethodGet, path, nil)
		if answer.Status >= http.StatusInternalServerError || strings.Contains(string(answer.Raw), "marker-theirs") {
			t.Errorf("%s answers %d %s", path, answer.Status, answer.Raw)
		}
		if answer := key.Do(t, http.MethodGet, fmt.Sprintf("/api/projects/%d/%s", theirs.Project, path), nil); answer.Status != http.StatusForbidden && answer.Status != http.StatusNotFound {
			t.Errorf("their %s answers %d %s", path, answer.Status, answer.Raw)
		}
	}
	if answer := key.Do(t, http.MethodGet, "persons/"+person+"/", nil); answer.Status != http.StatusNotFound {
		t.Errorf("their person answers %d %s", answer.Status, answer.Raw)
	}
	reader := ours.Server.Client(ours.Project, ours.Server.Key(t, ours.Project, "person:read", "personal"))
	hogql := "persons/?properties=" + url.QueryEscape(`[{"type":"hogql","key":"id in (select person_id from events where event = 'ours event')"}]`)
	if answer := reader.Do(t, http.MethodGet, hogql, nil); answer.Status != http.StatusForbidden {
		t.Errorf("HogQL of a key for people alone answers %d %s", answer.Status, answer.Raw)
	}
}
