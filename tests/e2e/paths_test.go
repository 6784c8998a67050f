package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// demoVisits selects the sessions of the demo's people in 2023, split at 30 minutes without an event. RANGE puts simultaneous events into the same
// session.
const demoVisits = `select person_id, visit, uniqExact(step) as steps, count() as events from (
	select person_id, step, sum(fresh) over (partition by person_id order by timestamp range between unbounded preceding and current row) as visit from (
		select person_id, timestamp, step, if(ifNull(dateDiff('second', before, timestamp), 1800) >= 1800, 1, 0) as fresh from (
			select person_id, timestamp, step, lag(timestamp) over (partition by person_id order by timestamp) as before from (
				select person_id, timestamp, {step} as step from events where timestamp >= '2023-01-01' and timestamp < '2024-01-01' and event not like '$%'
			)
		)
	)
) group by person_id, visit`

// TestPathsAgreeWithHogQL compares the edges from first steps with sessions that HogQL counts in the demo's real events: without a limit on edges, their
// sum is the number of sessions with two different steps.
func TestPathsAgreeWithHogQL(t *testing.T) {
	c := demoProject(t)
	for _, tt := range []struct{ name, step string }{
		{"by event", "event"},
		{"by component", "ifNull(toString(properties.component), 'none')"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			edges := results(t, c, map[string]any{
				"kind": "PathsQuery", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"},
				"pathsFilter": map[string]any{"includeEventTypes": []string{"custom_event", "hogql"}, "pathsHogQLExpression": tt.step, "edgeLimit": 50000},
			})
			sum := 0.0
			for _, edge := range edges {
				source, _ := edge["source"].(string)
				value, _ := edge["value"].(float64)
				if strings.HasPrefix(source, "1_") {
					sum += value
				}
			}
			visits := strings.ReplaceAll(demoVisits, "{step}", tt.step)
			row, _ := c.Query(t, "select countIf(steps > 1), count() from ("+visits+")")[0].([]any)
			want, _ := row[0].(float64)
			if all, _ := row[1].(float64); sum != want || want < 100 || want >= all {
				t.Errorf("%v sessions leave their first step; HogQL counts %v of %v", sum, want, all)
			}
		})
	}
}

// TestPathsEndpoint runs published paths with dates, and lists the people on the most frequent edge.
func TestPathsEndpoint(t *testing.T) {
	c := demoProject(t)
	filter := map[string]any{"includeEventTypes": []string{"hogql"}, "pathsHogQLExpression": "ifNull(toString(properties.component), 'none')"}
	node := map[string]any{"kind": "PathsQuery", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"}, "pathsFilter": filter}
	if a := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "ways", "query": node}); a.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", a.Status, a.Raw)
	}
	run := func(variables map[string]any) []any {
		a := c.Do(t, http.MethodPost, "endpoints/ways/run", map[string]any{"variables": variables})
		list, _ := a.Body["results"].([]any)
		if a.Status != http.StatusOK || len(list) == 0 {
			t.Fatalf("%v: %d %s", variables, a.Status, a.Raw)
		}
		return list
	}
	// In this quarter, nobody sent simultaneous events of two components, whose order would be undefined.
	const from, to = "2023-01-01", "2023-03-31"
	year, quarter := run(nil), run(map[string]any{"date_from": from, "date_to": to})
	node["dateRange"] = map[string]any{"date_from": from, "date_to": to}
	direct := []any{}
	for _, edge := range results(t, c, node) {
		direct = append(direct, edge)
	}
	if diff := cmp.Diff(direct, quarter); diff != "" || cmp.Equal(year, quarter) {
		t.Errorf("a quarter (-query +run):\n%s", diff)
	}
	edge, _ := quarter[0].(map[string]any)
	filter["pathStartKey"], filter["pathEndKey"] = edge["source"], edge["target"]
	people := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "ActorsQuery", "select": []string{"id", "event_count"}, "source": map[string]any{"kind": "InsightActorsQuery", "source": node},
	}})
	sum := 0.0
	rows, _ := people.Body["results"].([]any)
	for _, row := range rows {
		cells, _ := row.([]any)
		n, _ := cells[1].(float64)
		sum += n
	}
	if people.Status != http.StatusOK || sum != edge["value"] {
		t.Errorf("%d people took %v of %v edges: %d %s", len(rows), sum, edge["value"], people.Status, people.Raw)
	}
}

// TestPathsMistakes sends queries that must not reach ClickHouse.
func TestPathsMistakes(t *testing.T) {
	c := demoProject(t)
	for attr, filter := range map[string]map[string]any{
		"pathsFilter.localPathCleaningFilters.0.regex": {"localPathCleaningFilters": []any{map[string]any{"regex": "(", "alias": ""}}},
		"pathsFilter.includeEventTypes.0":              {"includeEventTypes": []string{"$autocapture"}},
		"pathsFilter.stepLimit":                        {"stepLimit": -5},
		"pathsFilter.edgeLimit":                        {"edgeLimit": 1_000_000},
		"pathsFilter.minEdgeWeight":                    {"minEdgeWeight": -9},
		"pathsFilter.pathsHogQLExpression":             {"pathsHogQLExpression": "properties."},
	} {
		a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "PathsQuery", "pathsFilter": filter}})
		detail, _ := a.Body["detail"].(string)
		if a.Status != http.StatusBadRequest || a.Body["attr"] != attr && !strings.Contains(detail, "\nquery.PathsQuery."+attr+"\n") {
			t.Errorf("%v: %d %s, want %s", filter, a.Status, a.Raw, attr)
		}
	}
}
