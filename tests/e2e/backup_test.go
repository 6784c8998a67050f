package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestRestoreAnswersTheSame restores a backup of a server with some of everything on another server, and compares their answers to the same requests
// with the same keys.
func TestRestoreAnswersTheSame(t *testing.T) {
	from := harness.Start(t)
	id, key := from.Project(t, "backed up")
	c := from.Client(id, key)
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, `{"event":%q,"distinct_id":"p%d","timestamp":"2024-02-%02dT%02d:00:00Z","properties":{"plan":"plan%d","amount":%d,"$set":{"age":%d},"$groups":{"company":"c%d"}}}`+"\n",
			[]string{"seen", "signed", "paid"}[i%3], i%23, 1+i%20, i%24, i%4, i%7, i%60, i%3)
	}
	lines.WriteString(`{"type":"person","distinct_ids":["p1","p1-alias"],"properties":{"name":"Ann"}}` + "\n")
	importLines(t, c, lines.String())
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "plans", "query": map[string]any{"kind": "HogQLQuery", "query": "select properties.plan as plan, count() as n from events group by plan order by plan"},
		"is_materialized": true, "data_freshness_seconds": 86400,
	})
	filled(t, c, "plans")
	insight := must(t, c, http.StatusCreated, http.MethodPost, "insights/", map[string]any{"name": "saved", "query": json.RawMessage(dailyTrend("seen"))})
	action := must(t, c, http.StatusCreated, http.MethodPost, "actions/", map[string]any{"name": "bought", "steps": []any{map[string]any{"event": "paid"}}})
	var cohort struct{ ID int64 }
	from.MustCommand(t, &cohort, nil, "cohort", "create", "--project", fmt.Sprint(id), "--name", "static")
	importLines(t, c, fmt.Sprintf(`{"type":"cohort","cohort_id":%d,"distinct_ids":["p1","p2","p3"]}`+"\n", cohort.ID))

	folder := filepath.Join(t.TempDir(), "backups")
	from.MustCommand(t, nil, nil, "backup", "create", folder)
	to := harness.Start(t)
	to.MustCommand(t, nil, nil, "backup", "restore", folder)
	copied := to.Client(id, key)

	dates := `"dateRange":{"date_from":"2024-02-01","date_to":"2024-02-20"}`
	series := `"series":[{"kind":"EventsNode","event":"seen"},{"kind":"EventsNode","event":"paid"}]`
	queries := []string{
		dailyTrend("paid"),
		`{"kind":"TrendsQuery",` + dates + `,` + series + `,"breakdownFilter":{"breakdown":"plan","breakdown_type":"event"}}`,
		`{"kind":"FunnelsQuery",` + dates + `,` + series + `}`,
		`{"kind":"RetentionQuery",` + dates + `,"retentionFilter":{"period":"Day","totalIntervals":7,"targetEntity":{"id":"seen","type":"events"},"returningEntity":{"id":"paid","type":"events"}}}`,
		`{"kind":"LifecycleQuery",` + dates + `,"series":[{"kind":"EventsNode","event":"seen"}]}`,
		`{"kind":"StickinessQuery",` + dates + `,"series":[{"kind":"EventsNode","event":"seen"}]}`,
		`{"kind":"PathsQuery",` + dates + `,"pathsFilter":{"includeEventTypes":["custom_event"]}}`,
		`{"kind":"EventsQuery","select":["event","distinct_id","timestamp","properties.plan"],"orderBy":["timestamp","distinct_id","event"],"after":"2024-01-01","before":"2025-01-01","limit":500}`,
		`{"kind":"HogQLQuery","query":"select event, properties.plan, sum(properties.amount), count(distinct person_id), max(person.properties.age), any(group_0.created_at) from events group by 1, 2 order by 1, 2"}`,
		fmt.Sprintf(`{"kind":"HogQLQuery","query":"select count(), count(distinct person_id) from events where person_id in cohort %d"}`, cohort.ID),
		fmt.Sprintf(`{"kind":"HogQLQuery","query":"select count() from events where matchesAction(%v)"}`, action["id"]),
		`{"kind":"HogQLQuery","query":"select id, created_at, properties.age, properties.name from persons order by id limit 100"}`,
	}
	for _, query := range queries {
		body := map[string]any{"query": json.RawMessage(query), "refresh": "force_blocking"}
		compare(t, query, ask(t, c, http.MethodPost, "query/", body), ask(t, copied, http.MethodPost, "query/", body))
	}
	for _, path := range []string{
		fmt.Sprintf("insights/%v/?refresh=force_blocking", insight["id"]), fmt.Sprintf("actions/%v/", action["id"]), fmt.Sprintf("cohorts/%d/", cohort.ID),
		"endpoints/plans/",
	} {
		compare(t, path, ask(t, c, http.MethodGet, path, nil), ask(t, copied, http.MethodGet, path, nil))
	}
	run := ask(t, copied, http.MethodPost, "endpoints/plans/run", map[string]any{})
	compare(t, "the endpoint", ask(t, c, http.MethodPost, "endpoints/plans/run", map[string]any{}), run)
	if run["endpoint_materialized"] != true {
		t.Errorf("the endpoint's rows do not come from its table: %v", run)
	}

	token := captureTokens(t, c, "show")[0]
	for _, s := range []*harness.Server{from, to} {
		if answer := page(s).Do(t, http.MethodPost, "/e/", captured(token, "after")); answer.Status != http.StatusOK {
			t.Errorf("capturing after the backup: %d %s", answer.Status, answer.Raw)
		}
	}
	harness.Eventually(t, time.Minute, func() error {
		rows := copied.Query(t, fmt.Sprintf("select count() from events where event = 'after' and %d > 0", time.Now().UnixNano()))
		if diff := cmp.Diff([]any{[]any{1.0}}, rows); diff != "" {
			return fmt.Errorf("events that come in after the restore (-want +got):\n%s", diff)
		}
		return nil
	})
}

func dailyTrend(event string) string {
	return fmt.Sprintf(`{"kind":"TrendsQuery","dateRange":{"date_from":"2024-02-01","date_to":"2024-02-20"},"series":[{"kind":"EventsNode","event":%q,"math":"dau"}]}`, event)
}

func ask(t *testing.T, c *harness.Client, method, path string, body any) map[string]any {
	t.Helper()
	return must(t, c, http.StatusOK, method, path, body)
}

// compare compares two answers, ignoring the time of computation and the server's address.
func compare(t *testing.T, what string, want, got map[string]any) {
	t.Helper()
	if diff := cmp.Diff(plainAnswer(want), plainAnswer(got)); diff != "" {
		t.Errorf("%s (-backed up +restored):\n%s", what, diff)
	}
}

// plainAnswer removes the fields of an answer that differ between servers.
func plainAnswer(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			switch name {
			case "last_refresh", "next_allowed_client_refresh", "cache_key", "cache_target_age", "timings", "clickhouse", "query_id", "execution_id", "url", "next", "previous",
				"endpoint_path", "ui_url", "calculation_trigger", "is_cached", "last_executed_at", "last_viewed_at", "query_status", "last_modified_at", "last_seen_at":
			default:
				out[name] = plainAnswer(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainAnswer(v[i])
		}
		return out
	}
	return value
}
