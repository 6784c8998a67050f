package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// shop is a server with a project of three pageviews, for PostHog's own clients.
type shop struct {
	site
	project  int64
	packages string // the folder with the clients
}

func newShop(t *testing.T) shop {
	t.Helper()
	if testing.Short() {
		t.Skip("npm packages take their time")
	}
	packages, err := harness.Packages("toolkit")
	if err != nil {
		t.Fatalf("fetching the clients: %v", err)
	}
	server := harness.Start(t)
	id, _ := server.Project(t, "shop")
	var lines strings.Builder
	for day := 1; day <= 3; day++ {
		fmt.Fprintf(&lines, `{"event":"$pageview","distinct_id":"ann","timestamp":"2024-03-0%dT10:00:00Z","properties":{"path":"/a"}}`+"\n", day)
	}
	server.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", strconv.FormatInt(id, 10), "-")
	return shop{site{url: server.URL, key: server.Key(t, id, "*", "personal")}, id, packages}
}

// TestToolkit runs the published versions of PostHog's tools for language models, and compares their results with the server's
// answers.
func TestToolkit(t *testing.T) {
	s := newShop(t)
	script, err := os.ReadFile(filepath.Join("toolkit", "tools.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	printed := s.run(t, s.packages, "node", "--input-type=module", "--eval", string(script))
	var got any
	if err := json.Unmarshal([]byte(printed), &got); err != nil {
		t.Fatalf("the tools printed %q: %v", printed, err)
	}
	organization := `{"name": "shop"}`
	insight := `{"name": "Views", "description": "by day", "filters": {}, "favorited": true, "query": {"kind": "InsightVizNode", "source": {"kind": "TrendsQuery"}}}`
	var want any
	if err := json.Unmarshal([]byte(`{
		"organizations-get": [`+organization+`], "organization-details-get": `+organization+`, "projects-get": [{"id": `+strconv.FormatInt(s.project, 10)+`, "name": "shop"}],
		"switch-project": "Switched to project `+strconv.FormatInt(s.project, 10)+`",
		"event-definitions-list": [{"name": "$pageview", "last_seen_at": "2024-03-03T10:00:00Z"}], "properties-list": [{"name": "path", "property_type": "String"}],
		"trends": [{"label": "$pageview", "data": [1, 1, 1]}], "funnel": [{"custom_name": "Views", "count": 1}, {"count": 1}], "sql": [["$pageview", 2]],
		"mistake": {"mistake": "Failed to query insight: Validation error: hogql_query_error"},
		"insight-create-from-query": `+insight+`, "insights-get-all": [`+insight+`], "insight-get": `+insight+`,
		"insight-query": {"insight": `+insight+`, "results": [{"data": [1, 1, 1]}]},
		"insight-update": {"name": "Counts", "description": "by day", "favorited": false, "query": {"kind": "DataVisualizationNode"}},
		"dashboard-create": {"name": "Board"}, "add-insight-to-dashboard": {"name": "Counts", "tags": ["web"]},
		"dashboard-get": {"name": "Board", "description": "all of it", "tiles": [{"order": 0, "insight": {"name": "Counts"}}]},
		"dashboard-update": {"name": "Other board"}, "dashboards-get-all": [{"name": "Other board", "description": "all of it"}],
		"dashboard-delete": {"success": true}, "insight-delete": {"success": true}
	}`), &want); err != nil {
		t.Fatal(err)
	}
	answers, _ := got.(map[string]any)
	if gone := fmt.Sprint(answers["gone"]); !strings.Contains(gone, "No insight found with short_id") {
		t.Errorf("a deleted insight gives %s", gone)
	}
	if diff := cmp.Diff(want, harness.Only(want, got)); diff != "" {
		t.Errorf("the tools print (-want +got):\n%s", diff)
	}
}
