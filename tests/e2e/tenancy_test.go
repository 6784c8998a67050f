package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestTenantsStayApart gives two projects events with their own markers, and as one of them requests everything in every way: no answer, header or log
// line contains a marker of the other.
func TestTenantsStayApart(t *testing.T) {
	ours, theirs := newProject(t), newProject(t)
	for c, marker := range map[string]string{"ours": "our-marker", "theirs": "their-marker"} {
		client := ours
		if c == "theirs" {
			client = theirs
		}
		importLines(t, client, fmt.Sprintf(`{"type":"person","distinct_ids":["shared-id","%[1]s-id"],"properties":{"mark":"%[1]s-person"}}
{"type":"group","group_type":"organization","group_type_index":0,"group_key":"shared-org","properties":{"mark":"%[1]s-group"}}
{"event":"shared","distinct_id":"shared-id","timestamp":"2024-01-01T00:00:00Z","properties":{"mark":"%[1]s-event","$group_0":"shared-org"}}
{"event":"%[1]s","distinct_id":"%[1]s-id","timestamp":"2024-01-01T00:00:00Z","properties":{"mark":"%[1]s-event"}}
`, marker))
	}
	queries := []string{
		"select * from events",
		"select * from persons",
		"select * from groups",
		"select *, properties.mark from events where event = 'their-marker' or 1 = 1",
		"select event, properties.mark, person.properties.mark, group_0.properties.mark from events",
		"select a.event, b.event from events a join events b on a.event = b.event",
		"select a.event, b.event from events a left join events b on 1 = 1",
		"select a.event, b.event from events a right join events b on a.uuid = b.uuid",
		"select a.event, b.event from events a full join events b on a.uuid = b.uuid",
		"select a.event, b.event from events a cross join events b",
		"select a.event, b.event from events a, events b",
		"select p.properties.mark, e.event from persons p full join events e on 1 = 0",
		"select g.properties.mark, p.properties.mark from groups g right join persons p on 1 = 0",
		"select event from events where distinct_id in (select distinct_id from events)",
		"select * from (select * from (select properties from events))",
		"with x as (select * from events) select * from x",
		"with x as (select * from events), y as (select * from x) select * from y a join x b on a.event = b.event",
		"select event from events union all select distinct_id from events union all select toString(id) from persons",
		"select groupArray(properties) from events group by all",
		"select arrayMap(e -> concat(e, 'x'), groupArray(event)) from events",
		"select event from events where team_id = " + fmt.Sprint(theirs.Project),
		"select event from events where team_id in (1, 2, 3, 4, 5, 6, 7, 8, 9) or team_id > 0",
		"select team_id, event from events",
		"select count() from events where properties.mark like 'their%'",
		"select person_id, count() from events group by person_id with totals",
		"select pdi.person_id, pdi.person.properties.mark from events",
		"select distinct_id, person_id from person_distinct_ids",
		"select max(toString(properties)) from persons",
	}
	for _, query := range queries {
		t.Run(query, func(t *testing.T) {
			answer := ours.HogQL(t, query)
			if answer.Status != http.StatusOK && answer.Status != http.StatusBadRequest {
				t.Errorf("answered %d: %s", answer.Status, answer.Raw)
			}
			if text := fmt.Sprint(answer.Header) + string(answer.Raw); strings.Contains(strings.ReplaceAll(text, query, ""), "their-marker-") {
				t.Errorf("holds the other project's marker: %s", text)
			}
		})
	}
	if n := ours.Query(t, "select count() from events where properties.mark like 'their%'"); fmt.Sprint(n) != "[[0]]" {
		t.Errorf("rows of the other project are counted: %v", n)
	}
}

// TestKeysOpenTheirProjectAlone uses a key on another project's routes.
func TestKeysOpenTheirProjectAlone(t *testing.T) {
	ours, theirs := newProject(t), newProject(t)
	importLines(t, theirs, `{"event":"their-secret","distinct_id":"a","timestamp":"2024-01-01T00:00:00Z"}`)
	query := map[string]any{"kind": "HogQLQuery", "query": "select event from events"}
	if answer := theirs.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "mine", "query": query}); answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	if answer := theirs.Do(t, http.MethodPost, "endpoints/mine/run", map[string]any{}); !strings.Contains(string(answer.Raw), "their-secret") {
		t.Fatalf("the owner's own run: %d %s", answer.Status, answer.Raw)
	}
	intruder := server.Client(theirs.Project, ours.Key)
	want := fmt.Sprintf("API key does not have access to the requested project: ID %d.", theirs.Project)
	for _, prefix := range []string{"projects", "environments"} {
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{http.MethodPost, "query/", map[string]any{"query": query}},
			{http.MethodGet, "endpoints/", nil},
			{http.MethodGet, "endpoints/mine/", nil},
			{http.MethodGet, "endpoints/mine/versions/", nil},
			{http.MethodPost, "endpoints/mine/run", map[string]any{}},
			{http.MethodGet, "endpoints/mine/run", nil},
			{http.MethodPatch, "endpoints/mine/", map[string]any{"description": "x"}},
			{http.MethodDelete, "endpoints/mine/", nil},
			{http.MethodGet, "insight_variables/", nil},
		} {
			answer := intruder.Do(t, r.method, fmt.Sprintf("/api/%s/%d/%s", prefix, theirs.Project, r.path), r.body)
			if answer.Status != http.StatusForbidden || answer.Body["detail"] != want || strings.Contains(string(answer.Raw), "their-secret") {
				t.Errorf("%s %s %s: %d %s", r.method, prefix, r.path, answer.Status, answer.Raw)
			}
		}
	}
	// The same bytes as the owner's, sent with a key of another project to that project: it gets nothing of the owner's plan or result.
	own := ours.Do(t, http.MethodPost, "query/", map[string]any{"query": query})
	if own.Status != http.StatusOK || strings.Contains(string(own.Raw), "their-secret") {
		t.Errorf("the intruder's own project: %d %s", own.Status, own.Raw)
	}
	if answer := ours.Do(t, http.MethodPost, "endpoints/mine/run", map[string]any{}); answer.Status != http.StatusNotFound {
		t.Errorf("an endpoint of another project by its name: %d %s", answer.Status, answer.Raw)
	}
}

// TestErrorsTellNothingOfOthers: an expression that fails on another project's rows must neither fail here nor quote them.
func TestErrorsTellNothingOfOthers(t *testing.T) {
	ours, theirs := newProject(t), newProject(t)
	var numbers, words strings.Builder
	for i := range 500 {
		line := `{"event":"%[1]s","distinct_id":"%[1]s","timestamp":"2024-01-01T00:00:00Z","properties":{"v":"%[1]s","n":"%[1]s"}}` + "\n"
		fmt.Fprintf(&numbers, line, strconv.Itoa(i))
		fmt.Fprintf(&words, line, fmt.Sprintf("their-marker-%d", i))
	}
	importLines(t, theirs, words.String())
	importLines(t, ours, numbers.String())
	for _, query := range []string{
		"select count() from events where distinct_id::int >= 0",
		"select count() from events where event::int >= 0",
		"select count() from events where properties.v::int >= 0",
		"select count() from events where properties.v::int + distinct_id::int + event::int >= 0",
		"select count() from events where intDiv(1, length(distinct_id) - 14) < 5",
		"select count() from events prewhere distinct_id::int >= 0",
		"select count() from persons where properties.v::int is null",
		"select count() from events a join events b on a.distinct_id::int = b.distinct_id::int",
		"select sum(distinct_id::int) >= 0 ? 500 : 0 from events",
		"select count() from (select distinct_id::int as n from events order by n)",
		"select countIf(person.properties.x::int is null) from events where event::int >= 0",
	} {
		t.Run(query, func(t *testing.T) {
			answer := ours.HogQL(t, query)
			if strings.Contains(string(answer.Raw), "their-marker-") {
				t.Errorf("quotes the other project: %s", answer.Raw)
			}
			if answer.Status != http.StatusOK {
				t.Errorf("fails: %d %s", answer.Status, answer.Raw)
			}
		})
	}
}
