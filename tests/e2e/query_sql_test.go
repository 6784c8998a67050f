package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQuerySQL requests the SQL of queries: nothing runs, and the text only has the project's condition and names.
func TestQuerySQL(t *testing.T) {
	c := newProject(t)
	got := must(t, c, http.StatusOK, http.MethodPost, "query/sql/", map[string]any{
		"query":            hogql("select event, count() as number from events where event in ('signed up', 'signed in', 'signed out', 'invited', 'paid', 'left') and {filters} group by event"),
		"filters_override": map[string]any{"date_from": "2026-01-01", "date_to": "2026-01-31"},
	})
	want := map[string]any{
		"hogql": "SELECT event, count() AS number\nFROM events\n" +
			"WHERE event IN ('signed up', 'signed in', 'signed out', 'invited', 'paid', 'left')\n" +
			"  AND (\n    events.timestamp < toDateTime64('2026-01-31 00:00:00.000000', 6, 'UTC')\n" +
			"      AND events.timestamp >= toDateTime64('2026-01-01 00:00:00.000000', 6, 'UTC')\n  )\nGROUP BY event\nLIMIT 101",
		"sql": "SELECT event, count() AS number\nFROM events\nWHERE team_id = " + fmt.Sprint(c.Project) + "\n" +
			"  AND event IN {p0:Array(String)}\n  AND timestamp < toDateTime64({p1:String}, 6, {p2:String})\n" +
			"  AND timestamp >= toDateTime64({p3:String}, 6, {p2:String})\nGROUP BY event\nLIMIT 101",
	}
	if diff := cmp.Diff(want, pick(got, "hogql", "sql")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parameters, _ := got["parameters"].([]any)
	if len(parameters) != 4 {
		t.Fatalf("parameters: %v", parameters)
	}
	if diff := cmp.Diff(map[string]any{"name": "p2", "type": "String", "value": "UTC"}, parameters[2]); diff != "" {
		t.Errorf("a parameter (-want +got):\n%s", diff)
	}

	trend := map[string]any{"kind": "InsightVizNode", "source": map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "paid"}}}}
	shown := must(t, c, http.StatusOK, http.MethodPost, "query/sql/", map[string]any{"query": trend})
	ran := must(t, c, http.StatusOK, http.MethodPost, "query/", map[string]any{"query": trend["source"], "refresh": "force_blocking"}) // as a whole
	for member, of := range map[string]string{"hogql": "hogql", "sql": "clickhouse"} {
		if one := strings.Join(strings.Fields(shown[member].(string)), " "); one != ran[of] {
			t.Errorf("%s of a trend is %s, and its answer has %s", member, one, ran[of])
		}
	}
	must(t, c, http.StatusOK, http.MethodPost, "query/sql/", map[string]any{"query": hogql("select 42")})
	if first := must(t, c, http.StatusOK, http.MethodPost, "query/", map[string]any{"query": hogql("select 42")}); first["is_cached"] != false {
		t.Error("the query that was asked for ran")
	}
	for name, body := range map[string]any{
		"a mistake":                   map[string]any{"query": hogql("select evnt from events")},
		"a kind without SQL":          map[string]any{"query": map[string]any{"kind": "HogQLMetadata", "language": "hogQL", "query": "select 1"}},
		"no query":                    map[string]any{},
		"another field":               map[string]any{"query": hogql("select 1"), "sql": true},
		"another project's cohort":    map[string]any{"query": hogql("select person_id in cohort 99999 from events")},
		"an unknown table":            map[string]any{"query": hogql("select 1 from system.users")},
		"a table of ClickHouse's":     map[string]any{"query": hogql("select 1 from system.query_log")},
		"a list in the query's place": map[string]any{"query": []any{}},
	} {
		if answer := c.Do(t, http.MethodPost, "query/sql/", body); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Raw)
		}
	}
	reader := server.Client(c.Project, server.Key(t, c.Project, "insight:write,endpoint:write", "personal"))
	must(t, reader, http.StatusForbidden, http.MethodPost, "query/sql/", map[string]any{"query": hogql("select 1")})
	held := server.Client(c.Project, server.Key(t, c.Project, "query:read", "personal"))
	must(t, held, http.StatusBadRequest, http.MethodPost, "query/sql/", map[string]any{"query": hogql("select id from system.insights")})
}
