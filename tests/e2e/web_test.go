package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// webLines are two people's visits: one of two pages, one of a single page, and one that starts the day before.
func webLines() string {
	var lines strings.Builder
	for i, visit := range []struct{ person, session, at, page, event string }{
		{"p1", "1", "2024-03-01T23:50:00Z", "/", "$pageview"},
		{"p1", "1", "2024-03-02T00:10:00Z", "/a", "$pageview"},
		{"p1", "2", "2024-03-02T10:00:00Z", "/a", "$pageview"},
		{"p1", "2", "2024-03-02T10:00:30Z", "/b", "$pageview"},
		{"p2", "3", "2024-03-03T10:00:00Z", "/b/17", "$pageview"},
		{"p2", "3", "2024-03-03T10:00:05Z", "/b/17", "paid"},
	} {
		fmt.Fprintf(&lines, `{"event": %q, "distinct_id": %q, "timestamp": %q, "uuid": "00000000-0000-4000-8000-%012d",
			"properties": {"$session_id": "018e0000-0000-7000-8000-00000000000%s", "$pathname": %q, "$current_url": "https://x.com%s"}}`,
			visit.event, visit.person, visit.at, i, visit.session, visit.page, visit.page)
		lines.WriteByte('\n')
	}
	return strings.ReplaceAll(lines.String(), "\n\t\t\t", " ")
}

// TestWeb queries visits, saves the query, and checks that it cannot be published.
func TestWeb(t *testing.T) {
	c := newProject(t)
	importLines(t, c, webLines())
	days := map[string]any{"date_from": "2024-03-02", "date_to": "2024-03-03"}
	overview := map[string]any{"kind": "WebOverviewQuery", "properties": []any{}, "dateRange": days}
	numbers := func(node map[string]any) map[string]any {
		out := map[string]any{}
		for _, item := range results(t, c, node) {
			key, _ := item["key"].(string)
			out[key] = item["value"]
		}
		return out
	}
	want := map[string]any{"visitors": 2.0, "views": 3.0, "sessions": 2.0, "session duration": 17.5, "bounce rate": 50.0}
	if diff := cmp.Diff(want, numbers(overview)); diff != "" {
		t.Errorf("overview (-want +got):\n%s", diff)
	}
	overview["conversionGoal"] = map[string]any{"customEventName": "paid"}
	want = map[string]any{"visitors": 2.0, "total conversions": 1.0, "unique conversions": 1.0, "conversion rate": 50.0}
	if diff := cmp.Diff(want, numbers(overview)); diff != "" {
		t.Errorf("overview of a goal (-want +got):\n%s", diff)
	}
	table := map[string]any{
		"kind": "WebStatsTableQuery", "properties": []any{}, "dateRange": days, "breakdownBy": "Page", "includeBounceRate": true, "doPathCleaning": true,
	}
	server.MustCommand(t, nil, nil, "project", "set", "--project", strconv.FormatInt(c.Project, 10), "--path-cleaning-filters", `[{"regex": "/[0-9]+$", "alias": "/:id"}]`)
	rows := []any{
		[]any{"/a", []any{1.0, 0.0}, []any{1.0, 0.0}, []any{0.0, nil}, 1.0 / 3, ""},
		[]any{"/b", []any{1.0, 0.0}, []any{1.0, 0.0}, []any{nil, nil}, 1.0 / 3, ""},
		[]any{"/b/:id", []any{1.0, 0.0}, []any{1.0, 0.0}, []any{1.0, nil}, 1.0 / 3, ""},
	}
	a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": table})
	if diff := cmp.Diff([]any{rows, false, 100.0, 0.0}, []any{a.Body["results"], a.Body["hasMore"], a.Body["limit"], a.Body["offset"]}); diff != "" {
		t.Errorf("pages (-want +got):\n%s\n%s", diff, a.Raw)
	}
	saved := c.Do(t, http.MethodPost, "insights/", map[string]any{"name": "pages", "query": map[string]any{"kind": "InsightVizNode", "source": table}})
	if saved.Status != http.StatusCreated {
		t.Fatalf("saving: %d %s", saved.Status, saved.Raw)
	}
	shown := c.Do(t, http.MethodGet, fmt.Sprintf("insights/%v/?refresh=blocking", saved.Body["id"]), nil)
	if diff := cmp.Diff([]any{rows, a.Body["columns"], a.Body["types"]}, []any{shown.Body["result"], shown.Body["columns"], shown.Body["types"]}); diff != "" {
		t.Errorf("the saved table (-want +got):\n%s\n%s", diff, shown.Raw)
	}
	refused := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "pages", "query": table})
	if detail, _ := refused.Body["detail"].(string); refused.Status != http.StatusBadRequest || !strings.Contains(detail, "cannot run a query of kind WebStatsTableQuery") {
		t.Errorf("publishing: %d %s", refused.Status, refused.Raw)
	}
}
