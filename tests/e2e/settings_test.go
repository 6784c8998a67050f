package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTestAccounts sets a project's test account filters, and runs every kind of query with and without them: answers cached before the setting changed are
// not used afterwards.
func TestTestAccounts(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"type": "person", "distinct_ids": ["us"], "properties": {"email": "me@shop.example"}}
{"type": "person", "distinct_ids": ["you"], "properties": {"email": "you@other.example"}}
{"event": "a", "distinct_id": "us", "timestamp": "2024-02-01T10:00:00Z"}
{"event": "a", "distinct_id": "you", "timestamp": "2024-02-01T10:00:00Z"}
{"event": "a", "distinct_id": "you", "timestamp": "2024-02-01T10:00:00Z", "properties": {"internal": true}}
`)
	series, day := []any{map[string]any{"kind": "EventsNode", "event": "a"}}, map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-01"}
	sum := func(node map[string]any) (total float64) {
		for _, item := range results(t, c, node) {
			count, _ := item["count"].(float64)
			total += max(count, -count)
		}
		return total
	}
	list := func(node map[string]any) []any {
		answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": node})
		list, ok := answer.Body["results"].([]any)
		if !ok || len(list) == 0 {
			t.Fatalf("%v: %d %s", node, answer.Status, answer.Raw)
		}
		return list
	}
	rows := func(node map[string]any) any {
		cells, _ := list(node)[0].([]any)
		return cells[0]
	}
	count := func(on bool) []any {
		trend := map[string]any{"kind": "TrendsQuery", "series": series, "dateRange": day, "filterTestAccounts": on}
		return []any{
			sum(trend),
			sum(map[string]any{"kind": "LifecycleQuery", "series": series, "dateRange": day, "filterTestAccounts": on}),
			sum(map[string]any{"kind": "StickinessQuery", "series": series, "dateRange": day, "filterTestAccounts": on}),
			rows(map[string]any{"kind": "EventsQuery", "select": []string{"count()"}, "after": "all", "filterTestAccounts": on}),
			float64(len(list(map[string]any{"kind": "ActorsQuery", "select": []string{"id"}, "source": map[string]any{"kind": "InsightActorsQuery", "source": trend, "day": "2024-02-01"}}))),
			rows(map[string]any{"kind": "HogQLQuery", "query": "select count() from events as e where {filters}", "filters": map[string]any{"filterTestAccounts": on}}),
		}
	}
	set := func(filters string) {
		t.Helper()
		c.Server.MustCommand(t, nil, nil, "project", "set", "--project", strconv.FormatInt(c.Project, 10), "--test-account-filters", filters)
	}
	all, theirs, plain := []any{3.0, 2.0, 2.0, 3.0, 2.0, 3.0}, []any{2.0, 1.0, 1.0, 2.0, 1.0, 2.0}, []any{1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
	check := func(what string, on bool, want []any) {
		t.Helper()
		if diff := cmp.Diff(want, count(on)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("asked for, and nothing set", true, all)
	set(`[{"type": "person", "key": "email", "operator": "not_icontains", "value": "@shop.example"}]`)
	check("without those of one address", true, theirs)
	check("not asked for", false, all)
	file := filepath.Join(t.TempDir(), "filters.json")
	filters := `[{"type": "person", "key": "email", "operator": "not_icontains", "value": "@shop.example"}, {"type": "hogql", "key": "properties.internal is null"}]`
	if err := os.WriteFile(file, []byte(filters), 0o600); err != nil {
		t.Fatal(err)
	}
	set("@" + file)
	check("without two kinds of them", true, plain)
	set(`[]`)
	check("nothing set any more", true, all)
}

// TestProjectSet changes a project with its command, which refuses invalid values.
func TestProjectSet(t *testing.T) {
	id, _ := server.Project(t, "before", "--timezone", "Asia/Tokyo", "--path-cleaning-filters", `[{"regex": "/\\d+", "alias": "/:id"}]`)
	project := strconv.FormatInt(id, 10)
	var got map[string]any
	server.MustCommand(t, &got, nil, "project", "set", "--project", project, "--name", "after", "--week-start", "1")
	delete(got, "created_at")
	if token, _ := got["api_token"].(string); !strings.HasPrefix(token, "phc_") {
		t.Errorf("the project's token is %q", token)
	}
	delete(got, "api_token")
	want := map[string]any{
		"id": float64(id), "name": "after", "timezone": "Asia/Tokyo", "week_start": 1.0, "test_account_filters": []any{},
		"path_cleaning_filters": []any{map[string]any{"regex": `/\d+`, "alias": "/:id"}}, "retention_days": 0.0, "events_from": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the project (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"nothing", "no setting to change was given", nil},
		{"no zone", `timezone: "Mars/Base" is not a valid choice.`, []string{"--timezone", "Mars/Base"}},
		{"a zone in another case", `Perhaps you meant "Asia/Tokyo"?`, []string{"--timezone", "asia/tokyo"}},
		{"a zone that is a file", `timezone: "file:/proc/self/fd/3" is not a valid choice.`, []string{"--timezone", "file:/proc/self/fd/3"}},
		{"no JSON", "--test-account-filters is not valid JSON", []string{"--test-account-filters", "[{]"}},
		{"no file", "reading --test-account-filters: open nowhere.json", []string{"--test-account-filters", "@nowhere.json"}},
		{"no list", "Input should be a valid list", []string{"--test-account-filters", "{}"}},
		{"an unknown operator", "test_account_filters.0.operator", []string{"--test-account-filters", `[{"key": "a", "operator": "like", "value": 1}]`}},
		{"no value", "test_account_filters.0.value", []string{"--test-account-filters", `[{"key": "a", "operator": "exact"}]`}},
		{"a group", "Input should be a property filter, not a group of them", []string{"--test-account-filters", `[{"type": "OR", "values": [{"key": "a", "value": 1}]}]`}},
		{"an unknown column", "Unable to resolve field: evnt", []string{"--test-account-filters", `[{"type": "hogql", "key": "evnt = 1"}]`}},
		{"a cohort", "test_account_filters.0", []string{"--test-account-filters", `[{"type": "cohort", "key": "id", "value": 1}]`}},
		{"half an expression", "path_cleaning_filters.0.regex", []string{"--path-cleaning-filters", `[{"regex": "("}]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, err := server.Command(nil, append([]string{"project", "set", "--project", project}, tt.args...)...)
			if err == nil || !strings.Contains(stderr, tt.want) {
				t.Errorf("it says %q, want %q", stderr, tt.want)
			}
		})
	}
	if _, stderr, err := server.Command(nil, "project", "set", "--project", "999999", "--name", "x"); err == nil || !strings.Contains(stderr, "not found") {
		t.Errorf("a project that is not there: %q", stderr)
	}
	if _, stderr, err := server.Command(nil, "project", "create", "--name", "x", "--test-account-filters", `[{"type": "hogql", "key": "evnt = 1"}]`); err == nil {
		t.Errorf("a project with filters that make no sense was made: %q", stderr)
	}
}
