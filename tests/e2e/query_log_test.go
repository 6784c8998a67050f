package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// logProject makes a project with an endpoint that has a variable, and a secret key of one customer.
func logProject(t *testing.T, s *harness.Server, name string) (all, customer *harness.Client) {
	t.Helper()
	id, key := s.Project(t, name)
	all = s.Client(id, key)
	made := must(t, all, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "Customer", "type": "String", "default_value": "none"})
	variable, _ := made["id"].(string)
	must(t, all, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "mine", "query": map[string]any{
		"kind": "HogQLQuery", "query": "select {variables.customer}, '" + name + "'",
		"variables": map[string]any{variable: map[string]any{"variableId": variable, "code_name": "customer", "value": "none"}},
	}})
	var secret struct{ Key string }
	s.MustCommand(t, &secret, nil, "key", "create", "--project", fmt.Sprint(id), "--kind", "secret", "--scopes", "endpoint:read", "--fix", "customer=acme")
	return all, s.Client(id, secret.Key)
}

// loggedRuns returns the messages in the list of runs, without parts that vary.
func loggedRuns(t *testing.T, c *harness.Client, path string) (runs []string) {
	t.Helper()
	answer := must(t, c, http.StatusOK, http.MethodGet, path, nil)
	list, _ := answer["results"].([]any)
	for _, one := range list {
		run, _ := one.(map[string]any)
		runs = append(runs, fmt.Sprint(run["status"], " ", run["cache"], " ", run["version"], " ", run["customer"], " ", run["instance_id"] != ""))
	}
	return runs
}

// usageOf returns how an endpoint was used: calls, cached answers, and both for each customer.
func usageOf(t *testing.T, c *harness.Client) string {
	t.Helper()
	answer := must(t, c, http.StatusOK, http.MethodGet, "endpoints/mine/usage/", nil)
	day, _ := answer["day"].(map[string]any)
	keys, _ := answer["keys"].([]any)
	text := fmt.Sprintf("%v calls, %v cached, %d keys", day["calls"], day["cached"], len(keys))
	customers, _ := answer["customers"].([]any)
	for _, one := range customers {
		customer, _ := one.(map[string]any)
		of, _ := customer["day"].(map[string]any)
		text += fmt.Sprintf(", %v: %v", customer["variables"], of["calls"])
	}
	return text
}

// TestQueryLogSurvivesARestart: after a restart, runs, their counts and queries are there, once each, and only for their project.
func TestQueryLogSurvivesARestart(t *testing.T) {
	s := harness.Start(t)
	all, customer := logProject(t, s, "ours")
	others, _ := logProject(t, s, "theirs")
	must(t, others, http.StatusOK, http.MethodPost, "endpoints/mine/run/", nil)
	must(t, all, http.StatusOK, http.MethodPost, "endpoints/mine/run/", nil)
	for range 3 {
		must(t, customer, http.StatusOK, http.MethodPost, "endpoints/mine/run/", nil)
	}
	must(t, all, http.StatusBadRequest, http.MethodPost, "endpoints/mine/run/", map[string]any{"unknown": 1})
	must(t, all, http.StatusOK, http.MethodPost, "query/", map[string]any{
		"query": map[string]any{"kind": "HogQLQuery", "query": "select 'asked'"}, "client_query_id": "named", "name": "label",
	})
	const acme = `{"customer":"acme"}`
	runs := []string{"400 <nil> <nil> <nil> false", "200 hit 1 " + acme + " true", "200 hit 1 " + acme + " true", "200 miss 1 " + acme + " true", "200 miss 1 <nil> true"}
	const queries = "select query, name, endpoint, endpoint_version, customer, status, result_rows from query_log where name = 'label' or endpoint = 'mine' order by query_start_time"
	check := func(when string) {
		t.Helper()
		harness.Eventually(t, 2*time.Minute, func() error { // while ClickHouse takes more than 2 s, the answers have what is in memory
			if diff := cmp.Diff(runs, loggedRuns(t, all, "endpoints/mine/logs/")); diff != "" {
				return fmt.Errorf("%s the runs are (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(runs[1:3], loggedRuns(t, all, "endpoints/mine/logs/?offset=1&limit=2")); diff != "" {
				return fmt.Errorf("%s a page of the runs is (-want +got):\n%s", when, diff)
			}
			if got, want := usageOf(t, all), "5 calls, 2 cached, 2 keys, map[customer:acme]: 3"; got != want {
				return fmt.Errorf("%s the usage is %s, want %s", when, got, want)
			}
			return nil
		})
		text := "select {variables.customer}, 'ours'"
		all.Shows(t, queries, []any{text, "", "mine", 1.0, "", "QueryFinish", 1.0}, []any{text, "", "mine", 1.0, acme, "QueryFinish", 1.0},
			[]any{"select 'asked'", "label", "", 0.0, "", "QueryFinish", 1.0})
		log := must(t, all, http.StatusOK, http.MethodGet, "query/named/log/", nil)
		if rows, _ := log["results"].([]any); len(rows) != 1 {
			t.Errorf("%s the log of a query has %d rows", when, len(rows))
		}
		if got := loggedRuns(t, others, "endpoints/mine/logs/"); len(got) != 1 {
			t.Errorf("%s the other project has the runs %q", when, got)
		}
		others.Shows(t, "select count() from query_log where endpoint = 'mine' and query like '%ours%' or name = 'label'", []any{0.0})
	}
	check("at once")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	check("after a reload")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	check("after a restart")
	harness.Eventually(t, 2*time.Minute, func() error {
		if usage := mustAnswer(t, all, http.StatusOK, http.MethodGet, "endpoint_usage/?ordering=-calls", nil); !strings.Contains(string(usage.Raw), `"calls":5`) {
			return fmt.Errorf("the list of usage is %s", usage.Raw)
		}
		return nil
	})
}

// TestQueryLogHasNoHoles tries to read another project's rows from the log.
func TestQueryLogHasNoHoles(t *testing.T) {
	ours, _ := logProject(t, server, "curious")
	others, _ := logProject(t, server, "hidden rows")
	must(t, others, http.StatusOK, http.MethodPost, "endpoints/mine/run/", nil)
	others.Shows(t, "select count() > 0 from query_log where query like '%hidden rows%'", []any{1.0})
	for _, hogql := range []string{
		"select query from query_log where query like '%hidden rows%' and name != 'probe'",
		"select query from query_log where team_id != %d or 1 = 1",
		"select a.query from query_log a cross join query_log b",
		"select b.query from events e right join query_log b on 1 = 1",
		"select b.query from query_log a full outer join query_log b on a.query = b.query or 1 = 1",
		"select query from (select query from query_log union all select query from query_log)",
		"with x as (select query from query_log) select query from x",
		"select query from numbers(2) as n left join query_log q on 1 = 1",
		"select (select groupArray(query) from query_log)",
		"select arrayJoin(groupArray(query)) from query_log as l where l.team_id in (select team_id from query_log)",
		"select query from query_log having 1 = 1",
		"select query from query_log sample 1",
	} {
		answer := ours.HogQL(t, strings.ReplaceAll(hogql, "%d", fmt.Sprint(ours.Project)))
		if text := strings.ReplaceAll(string(answer.Raw), hogql, ""); strings.Contains(text, "'hidden rows'") {
			t.Errorf("%s gives away\n%s", hogql, text)
		}
	}
	for _, hogql := range []string{
		"select * from system.query_log", "select * from run_log", "select * from analytics.query_log", "select * from default.query_log",
		"select * from remote('127.0.0.1', 'analytics', 'query_log')", "select * from merge('query_log')", "select * from clusterAllReplicas('default', system.query_log)",
		"select * from query_log settings additional_table_filters = {}",
	} {
		if answer := ours.HogQL(t, hogql); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", hogql, answer.Status, answer.Raw)
		}
	}
}

// TestQueryLogHasExports: exports are in the log, and an export of the log has the earlier ones.
func TestQueryLogHasExports(t *testing.T) {
	c := newProject(t)
	publish(t, c, "numbers", "select number as n from numbers(1000)")
	publish(t, c, "divides", "select intDiv(1, number) as n from numbers(3)")
	publish(t, c, "logged", "select endpoint, status, result_rows, result_bytes > 0 as bytes, exception from query_log where endpoint in ('numbers', 'divides') order by query_start_time")
	for _, path := range []string{"numbers/run.csv", "numbers/run.parquet", "divides/run.ndjson"} {
		c.Do(t, http.MethodGet, "endpoints/"+path, nil)
	}
	const want = "endpoint,status,result_rows,bytes,exception\r\nnumbers,QueryFinish,1000,1,\"\"\r\nnumbers,QueryFinish,0,1,\"\"\r\ndivides,ExceptionWhileProcessing,0,0,ILLEGAL_DIVISION\r\n"
	harness.Eventually(t, 2*time.Minute, func() error { // what is not written within 2 s is missing
		if answer := c.Do(t, http.MethodGet, "endpoints/logged/run.csv", nil); string(answer.Raw) != want {
			return fmt.Errorf("the log is\n%s", answer.Raw)
		}
		return nil
	})
}
