package clients_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// cli calls the server with PostHog's command line client, which includes the current tools of its MCP server.
type cli struct {
	site
	script string
}

// call calls a tool, and returns the JSON that the client prints.
func (c cli) call(t *testing.T, tool string, args any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	printed := c.run(t, t.TempDir(), "node", c.script, "call", "--json", "--confirm", tool, string(raw))
	if err := json.Unmarshal([]byte(printed), &out); err != nil {
		t.Fatalf("%s printed %q: %v", tool, printed, err)
	}
	return out
}

// TestCLI uses some of the tools of the command line client: each of its calls takes seconds.
func TestCLI(t *testing.T) {
	shop := newShop(t)
	t.Setenv("POSTHOG_HOST", shop.url)
	t.Setenv("POSTHOG_API_KEY", shop.key)
	t.Setenv("POSTHOG_PROJECT_ID", fmt.Sprint(shop.project))
	c := cli{shop.site, filepath.Join(shop.packages, "node_modules", "@posthog", "cli", "lib", "posthog-api-cli.mjs")}
	const trend = `{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"$pageview"}],"dateRange":{"date_from":"2024-03-01","date_to":"2024-03-03"},"interval":"day"}`
	expect := func(tool, args, want string) map[string]any {
		t.Helper()
		got := c.call(t, tool, json.RawMessage(args))
		var wanted any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, harness.Only(wanted, any(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tool, diff)
		}
		return got
	}
	expect("query-trends-actors", `{"source":`+trend+`,"day":"2024-03-02"}`,
		`{"results": {"columns": ["distinct_id", "email", "name", "event_count", "recordings"], "results": [["ann", null, null, 1, []]]}}`)
	made := expect("insight-create", `{"name":"Views","tags":["web"],"query":{"kind":"InsightVizNode","source":`+trend+`}}`, `{"name": "Views", "tags": ["web"]}`)
	id := fmt.Sprint(made["short_id"])
	expect("insight-query", `{"insightId":"`+id+`","filters_override":{"date_from":"2024-03-03","date_to":"2024-03-03"},"output_format":"json"}`,
		`{"insight": {"name": "Views"}, "results": [{"data": [1]}]}`)
}
