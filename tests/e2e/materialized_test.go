package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const tableLines = `{"event":"a","distinct_id":"ann","timestamp":"2024-02-01T10:00:00Z","properties":{"plan":"pro"}}
{"event":"a","distinct_id":"ann","timestamp":"2024-02-02T10:00:00Z","properties":{"plan":"free"}}
{"event":"b","distinct_id":"bob","timestamp":"2024-02-02T12:00:00Z","properties":{"plan":"pro"}}
`

// filled waits until the table of an endpoint is complete, and returns its state.
func filled(t *testing.T, c *harness.Client, name string) map[string]any {
	t.Helper()
	var state map[string]any
	harness.Eventually(t, time.Minute, func() error {
		state = must(t, c, http.StatusOK, http.MethodGet, "endpoints/"+name+"/materialization_status/", nil)
		if state["status"] != "Completed" {
			return fmt.Errorf("the table is %v", state)
		}
		return nil
	})
	return state
}

// materialized runs an endpoint, and checks whether the rows are from its table.
func materialized(t *testing.T, c *harness.Client, name string, fromTable bool, body map[string]any, want ...any) map[string]any {
	t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	answer := must(t, c, http.StatusOK, http.MethodPost, "endpoints/"+name+"/run", body)
	if diff := cmp.Diff(append([]any{}, want...), answer["results"]); diff != "" {
		t.Errorf("%s with %v (-want +got):\n%s", name, body, diff)
	}
	if got := answer["endpoint_materialized"] == true; got != fromTable {
		t.Errorf("%s with %v: rows from the table: %t, want %t", name, body, got, fromTable)
	}
	return answer
}

func variables(values map[string]any) map[string]any { return map[string]any{"variables": values} }

// TestMaterializedEndpoint follows the life of a table.
func TestMaterializedEndpoint(t *testing.T) {
	c := newProject(t)
	importLines(t, c, tableLines)
	for _, name := range []string{"plan", "since"} {
		kind, def := "String", any("pro")
		if name == "since" {
			kind, def = "Date", "2024-01-01"
		}
		must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": name, "type": kind, "default_value": def})
	}
	made := must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "days", "is_materialized": true, "data_freshness_seconds": 3600,
		"query": hogql("select event, count() as n from events where properties.plan = {variables.plan} and timestamp >= {variables.since} group by event order by event"),
	})
	if made["is_materialized"] != true {
		t.Fatalf("the record is %v", made)
	}
	state := filled(t, c, "days")
	answer := materialized(t, c, "days", true, variables(map[string]any{"plan": "pro", "since": "2024-01-01"}), []any{"a", 1.0}, []any{"b", 1.0})
	if answer["endpoint_materialized_at"] != state["last_materialized_at"] || answer["is_cached"] != false {
		t.Errorf("the run says %v and %v, the state %v", answer["endpoint_materialized_at"], answer["is_cached"], state)
	}
	if again := materialized(t, c, "days", true, variables(map[string]any{"plan": "pro", "since": "2024-01-01"}), []any{"a", 1.0}, []any{"b", 1.0}); again["is_cached"] != true {
		t.Error("the same run again is not from the cache")
	}
	// A bound is truncated to its bucket.
	materialized(t, c, "days", true, variables(map[string]any{"plan": "pro", "since": "2024-02-02T13:00:00Z"}), []any{"b", 1.0})
	materialized(t, c, "days", true, variables(map[string]any{"plan": "none", "since": "2024-01-01"}))
	csv := c.Do(t, http.MethodPost, "endpoints/days/run.csv", variables(map[string]any{"plan": "free", "since": "2024-01-01"}))
	if csv.Status != http.StatusOK || !strings.Contains(string(csv.Raw), "a,1") {
		t.Errorf("as CSV: %d %s", csv.Status, csv.Raw)
	}
	page := must(t, c, http.StatusOK, http.MethodPost, "endpoints/days/run", map[string]any{"variables": map[string]any{"plan": "pro", "since": "2024-01-01"}, "limit": 1})
	if page["endpoint_materialized"] != true || page["hasMore"] != true {
		t.Errorf("a page is %v", page)
	}

	for _, given := range []any{nil, map[string]any{"plan": nil, "since": "2024-01-01"}} {
		refused := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/days/run", map[string]any{"variables": given})
		want := "Required variable(s) 'plan', 'since' not provided"
		if given != nil {
			want = "Required variable(s) 'plan' not provided"
		}
		if refused["detail"] != want || refused["attr"] != "variables" {
			t.Errorf("a run with %v: %v", given, refused)
		}
	}

	// Later events appear in the query itself, and in the next table.
	importLines(t, c, `{"event":"c","distinct_id":"ann","timestamp":"2024-02-03T10:00:00Z","properties":{"plan":"pro"}}`)
	given := map[string]any{"plan": "pro", "since": "2024-02-03"}
	materialized(t, c, "days", true, variables(given))
	materialized(t, c, "days", false, map[string]any{"variables": given, "refresh": "direct"}, []any{"c", 1.0})
	materialized(t, c, "days", true, map[string]any{"variables": given, "refresh": "force"})
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/days/", map[string]any{"bucket_overrides": map[string]any{"timestamp": "hour"}})
	filled(t, c, "days")
	materialized(t, c, "days", true, variables(given), []any{"c", 1.0})
	materialized(t, c, "days", true, variables(map[string]any{"plan": "pro", "since": "2024-02-03T11:00:00Z"}))

	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/days/", map[string]any{"is_materialized": false})
	materialized(t, c, "days", false, nil, []any{"a", 1.0}, []any{"b", 1.0}, []any{"c", 1.0})
	must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/days/run", map[string]any{"refresh": "direct"})
}

// TestMaterializedAge: a table older than the freshness is not read.
func TestMaterializedAge(t *testing.T) {
	c := newProject(t)
	importLines(t, c, tableLines)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "old", "is_materialized": true, "data_freshness_seconds": 2, "query": hogql("select count() from events"),
	})
	filled(t, c, "old")
	harness.Eventually(t, time.Minute, func() error {
		if answer := must(t, c, http.StatusOK, http.MethodPost, "endpoints/old/run", map[string]any{}); answer["endpoint_materialized"] == true {
			return fmt.Errorf("the rows are from the table: %v", answer)
		}
		return nil
	})
	if state := must(t, c, http.StatusOK, http.MethodGet, "endpoints/old/materialization_status/", nil); state["ready"] != false {
		t.Errorf("the state of a table that is too old: %v", state)
	}
}

// TestMaterializedAction: after a change to the action that its query uses, a table is not read.
func TestMaterializedAction(t *testing.T) {
	c := newProject(t)
	importLines(t, c, tableLines)
	step := func(plan string) map[string]any {
		return map[string]any{"steps": []any{map[string]any{"properties": []any{map[string]any{"key": "plan", "type": "event", "value": plan, "operator": "exact"}}}}}
	}
	action := step("pro")
	action["name"] = "chose a plan"
	made := must(t, c, http.StatusCreated, http.MethodPost, "actions/", action)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "chosen", "is_materialized": true, "data_freshness_seconds": 3600, "query": hogql("select count() from events where matchesAction('chose a plan')"),
	})
	filled(t, c, "chosen")
	materialized(t, c, "chosen", true, nil, []any{2.0})
	must(t, c, http.StatusOK, http.MethodPatch, fmt.Sprintf("actions/%v/", made["id"]), step("free"))
	materialized(t, c, "chosen", false, nil, []any{1.0})
	if state := must(t, c, http.StatusOK, http.MethodGet, "endpoints/chosen/materialization_status/", nil); state["ready"] != false || state["status"] != "Modified" {
		t.Errorf("the state of the table is %v", state)
	}
}

// TestMaterializedTenants: endpoints of the same name in two projects have separate tables, and no query can name these.
func TestMaterializedTenants(t *testing.T) {
	one, other := newProject(t), server.Client(server.Project(t, "other tenant"))
	importLines(t, one, tableLines)
	importLines(t, other, `{"event":"theirs","distinct_id":"x","timestamp":"2024-02-01T10:00:00Z"}`)
	for _, c := range []*harness.Client{one, other} {
		must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
			"name": "same", "is_materialized": true, "query": hogql("select distinct event from events order by event"),
		})
	}
	filled(t, one, "same")
	filled(t, other, "same")
	materialized(t, one, "same", true, nil, []any{"a"}, []any{"b"})
	materialized(t, other, "same", true, nil, []any{"theirs"})
	record := must(t, one, http.StatusOK, http.MethodGet, "endpoints/same/", nil)
	id := strings.ReplaceAll(record["id"].(string), "-", "")
	for _, table := range []string{"same_v1", "endpoint_" + strconv.FormatInt(one.Project, 10) + "_" + id + "_v1_1", "default.same_v1", "`system`.tables"} {
		for _, c := range []*harness.Client{one, other} {
			if answer := c.HogQL(t, "select * from "+table); answer.Status != http.StatusBadRequest {
				t.Errorf("a query of %s: %d %s", table, answer.Status, answer.Body)
			}
		}
	}
}

// TestMaterializedFiles: an endpoint's file says whether it is materialized.
func TestMaterializedFiles(t *testing.T) {
	c := newProject(t)
	importLines(t, c, tableLines)
	const text = "name: filed\nquery: select event, count() as n from events group by event order by event\n"
	apply := func(more string) {
		t.Helper()
		c.Server.MustCommand(t, nil, nil, "endpoints", "apply", "--project", strconv.FormatInt(c.Project, 10), folder(t, map[string]string{"filed.yaml": text + more}))
	}
	apply("materialization: {enabled: true, schedule: 1hour}\n")
	filled(t, c, "filed")
	materialized(t, c, "filed", true, nil, []any{"a", 2.0}, []any{"b", 1.0})
	pulled := t.TempDir()
	c.Server.MustCommand(t, nil, nil, "endpoints", "pull", "--project", strconv.FormatInt(c.Project, 10), pulled)
	if got, err := os.ReadFile(filepath.Join(pulled, "filed.yaml")); err != nil || !strings.Contains(string(got), "is_materialized: true") {
		t.Errorf("the file is\n%s (%v)", got, err)
	}
	apply("")
	if record := must(t, c, http.StatusOK, http.MethodGet, "endpoints/filed/", nil); record["is_materialized"] != false {
		t.Errorf("the record is %v", record)
	}
	_, stderr, err := c.Server.Command(nil, "endpoints", "apply", "--project", strconv.FormatInt(c.Project, 10),
		folder(t, map[string]string{"filed.yaml": "name: filed\nquery: select {variables.x} as a from events\nis_materialized: true\nvariables: [{name: x, type: String}]\n"}))
	if err == nil || !strings.Contains(stderr, "filed.yaml:3: cannot materialize the endpoint: Variables not supported: Variable not used in WHERE clause") {
		t.Errorf("a file that can't be applied: %v %s", err, stderr)
	}
}

// TestMaterializedSurvives: tables survive a reload and a restart, and an interrupted fill starts again.
func TestMaterializedSurvives(t *testing.T) {
	s := harness.Start(t)
	c := s.Client(s.Project(t, "survives"))
	importLines(t, c, tableLines)
	publish := func(name, query string) {
		t.Helper()
		must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": name, "is_materialized": true, "query": hogql(query)})
	}
	publish("kept", "select event, count() as n from events group by event order by event")
	filled(t, c, "kept")
	importLines(t, c, `{"event":"c","distinct_id":"x","timestamp":"2024-02-01T10:00:00Z"}`)
	publish("slow", "select number % 7 as k, count() as n from numbers(3000000000) where cityHash64(number) % 3 = 0 group by k")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	materialized(t, c, "kept", true, nil, []any{"a", 2.0}, []any{"b", 1.0})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	materialized(t, c, "kept", true, nil, []any{"a", 2.0}, []any{"b", 1.0})
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/slow/", map[string]any{"query": hogql("select 1 as k")})
	filled(t, c, "slow")
	materialized(t, c, "slow", true, nil, []any{1.0})
}

// TestMaterializedInactive: a version that is not active gets no table, also when it is given the query that it has.
func TestMaterializedInactive(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "off", "query": hogql("select 1 as one")})
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/off/", map[string]any{"version": 1, "is_active": false})
	for _, body := range []map[string]any{
		{"is_materialized": true}, {"is_materialized": true, "version": 1}, {"is_materialized": true, "query": hogql("select 1 as one")},
	} {
		refused := must(t, c, http.StatusBadRequest, http.MethodPatch, "endpoints/off/", body)
		if refused["attr"] != "is_materialized" {
			t.Errorf("%v: %v", body, refused)
		}
	}
	made := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/off/", map[string]any{"is_materialized": true, "query": hogql("select 2 as two")})
	if made["is_materialized"] != true || made["current_version"] != 2.0 {
		t.Errorf("a new version: %v", made)
	}
}

// TestMaterializedShown: what is shown of a table, and the document of its endpoint, need nothing of the caller's rate, even after a restart.
func TestMaterializedShown(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 3/h\n\t\t}")
	c := s.Client(s.Project(t, "shown"))
	importLines(t, c, tableLines)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "plan", "is_materialized": true, "query": hogql("select event, count() as n from events group by event"),
	})
	filled(t, c, "plan")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error { // ClickHouse answers, and then the rate is spent
		if answer := c.HogQL(t, fmt.Sprint("select ", time.Now().UnixNano())); answer.Status != http.StatusTooManyRequests {
			return fmt.Errorf("%d %s", answer.Status, answer.Raw)
		}
		return nil
	})
	harness.Eventually(t, time.Minute, func() error { // the queries may have been refused before ClickHouse answered
		if state := must(t, c, http.StatusOK, http.MethodGet, "endpoints/plan/materialization_status/", nil); state["status"] != "Completed" || state["ready"] != true {
			return fmt.Errorf("the table is %v", state)
		}
		return nil
	})
	record := must(t, c, http.StatusOK, http.MethodGet, "endpoints/plan/", nil)
	if table, _ := record["materialization"].(map[string]any); table["ready"] != true || table["reason"] != nil {
		t.Errorf("the record has %v", table)
	}
	must(t, c, http.StatusOK, http.MethodGet, "endpoints/plan/openapi.json", nil)
	versions := must(t, c, http.StatusOK, http.MethodGet, "endpoints/plan/versions/?limit=1", nil)
	if list, _ := versions["results"].([]any); versions["count"] != 1.0 || len(list) != 1 {
		t.Errorf("the versions are %v", versions)
	}
}

// TestMaterializedOptional: a run may leave out the breakdowns that its version declares optional, and then reads the table.
func TestMaterializedOptional(t *testing.T) {
	c := newProject(t)
	importLines(t, c, tableLines)
	insight := func(kind string) map[string]any {
		q := map[string]any{
			"kind": kind, "breakdownFilter": map[string]any{"breakdown": "plan", "breakdown_type": "event"},
			"dateRange": map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-02"},
		}
		if kind == "TrendsQuery" {
			q["series"] = []any{map[string]any{"kind": "EventsNode", "event": "a"}}
		} else {
			q["retentionFilter"] = map[string]any{}
		}
		return q
	}
	run := func(name string, body map[string]any) map[string]any {
		t.Helper()
		return must(t, c, http.StatusOK, http.MethodPost, "endpoints/"+name+"/run", body)
	}
	for _, kind := range []string{"RetentionQuery", "TrendsQuery"} {
		must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
			"name": kind, "is_materialized": true, "query": insight(kind), "optional_breakdown_properties": []string{"plan"},
		})
		filled(t, c, kind)
		table, direct := run(kind, map[string]any{}), run(kind, map[string]any{"refresh": "direct"})
		if table["endpoint_materialized"] != true {
			t.Errorf("a run of %s without its optional breakdown does not read the table: %v", kind, table)
		}
		if diff := cmp.Diff(direct["results"], table["results"]); diff != "" {
			t.Errorf("%s (-query +table):\n%s", kind, diff)
		}
	}

	// The breakdown of a funnel is never required.
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "funnel", "is_materialized": true, "query": map[string]any{
			"kind": "FunnelsQuery", "breakdownFilter": map[string]any{"breakdown": "plan", "breakdown_type": "event"},
			"dateRange": map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-02"},
			"series":    []any{map[string]any{"kind": "EventsNode", "event": "a"}, map[string]any{"kind": "EventsNode", "event": "b"}},
		},
	})
	filled(t, c, "funnel")
	table, direct := run("funnel", map[string]any{}), run("funnel", map[string]any{"refresh": "direct"})
	if table["endpoint_materialized"] != true {
		t.Errorf("a run of a funnel without its breakdown does not read the table: %v", table)
	}
	if diff := cmp.Diff(direct["results"], table["results"]); diff != "" {
		t.Errorf("the funnel (-query +table):\n%s", diff)
	}
	document := must(t, c, http.StatusOK, http.MethodGet, "endpoints/funnel/openapi.json", nil)
	if text := fmt.Sprint(document); !strings.Contains(text, "plan") || strings.Contains(text, "required:[plan]") || strings.Contains(text, "required:[variables]") {
		t.Errorf("the document of a funnel says that its breakdown is required: %s", text)
	}

	// The list of a version can change. A table is filled anew for that after a minute.
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/TrendsQuery/", map[string]any{"optional_breakdown_properties": []string{}})
	must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/TrendsQuery/run", map[string]any{})
	pro := map[string]any{"variables": map[string]any{"plan": "pro"}}
	if answer := run("TrendsQuery", pro); answer["endpoint_materialized"] == true {
		t.Errorf("a table without every value is read for one: %v", answer)
	}
	if state := must(t, c, http.StatusOK, http.MethodGet, "endpoints/TrendsQuery/materialization_status/", nil); state["status"] != "Modified" {
		t.Errorf("the table is %v", state)
	}
	refused := must(t, c, http.StatusBadRequest, http.MethodPatch, "endpoints/RetentionQuery/", map[string]any{"optional_breakdown_properties": []string{}})
	if want := "Cannot materialize endpoint. Reason: Breakdowns of RetentionQuery are not supported for materialization, unless they are optional"; refused["detail"] != want {
		t.Errorf("a breakdown of retention that is required: %v", refused)
	}

	// Files say the same.
	c.Server.MustCommand(t, nil, nil, "endpoints", "apply", "--project", strconv.FormatInt(c.Project, 10), folder(t, map[string]string{
		"kept.yaml": "name: kept\nis_materialized: true\noptional_breakdown_properties: [plan]\nquery:\n  kind: RetentionQuery\n" +
			"  breakdownFilter: {breakdown: plan, breakdown_type: event}\n  dateRange: {date_from: '2024-02-01', date_to: '2024-02-02'}\n  retentionFilter: {}\n",
	}))
	filled(t, c, "kept")
	if answer := run("kept", map[string]any{}); answer["endpoint_materialized"] != true {
		t.Errorf("a run of the file's endpoint does not read the table: %v", answer)
	}
}
