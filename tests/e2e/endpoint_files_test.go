package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// folder makes a folder of files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// endpointsCommand runs `caddy analytics endpoints …`, and returns its output and exit status.
func endpointsCommand(t *testing.T, s *harness.Server, project int64, action, dir string, more ...string) (report map[string]any, stderr string, status int) {
	t.Helper()
	args := append([]string{"endpoints", action, "--project", strconv.FormatInt(project, 10), dir}, more...)
	stdout, stderr, err := s.Command(nil, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("endpoints %s printed %q: %v", action, stdout, err)
		}
	}
	return report, stderr, status
}

const plansFile = `# Orders of a plan, for the customers' board.
name: orders
description: Orders of a plan
query: |
  select number as id, {variables.plan} as plan
  from numbers(3)
  order by id
variables:
  - {name: plan, type: String, default: pro}
data_freshness_seconds: 900
tags: [board]
rate_limit: 60/m
`

const trendFile = `name: visits
query_definition:
  kind: TrendsQuery
  series:
    - {kind: EventsNode, event: visit}
  dateRange: {date_from: "2024-01-01", date_to: "2024-01-02"}
`

// TestEndpointFiles plans, applies, runs, pulls and plans again; an invalid file changes nothing.
func TestEndpointFiles(t *testing.T) {
	c := newProject(t)
	dir := folder(t, map[string]string{"orders.yaml": plansFile, "visits.yml": trendFile, "README.md": "not an endpoint"})

	plan, stderr, status := endpointsCommand(t, c.Server, c.Project, "plan", dir, "--detailed-exitcode")
	if status != 2 || plan["changed"] != true || plan["applied"] != false {
		t.Errorf("the first plan: status %d, %v", status, pick(plan, "changed", "applied"))
	}
	const planned = "+ variable plan\n+ endpoint orders\n+ endpoint visits\n0 endpoints match their files\n"
	if diff := cmp.Diff(planned, stderr); diff != "" {
		t.Errorf("the first plan (-want +got):\n%s", diff)
	}
	if got := must(t, c, http.StatusOK, http.MethodGet, "endpoints/", nil)["count"]; got != 0.0 {
		t.Errorf("planning made %v endpoints", got)
	}

	if applied, stderr, status := endpointsCommand(t, c.Server, c.Project, "apply", dir); status != 0 || applied["applied"] != true {
		t.Fatalf("apply: status %d: %s", status, stderr)
	}
	run := must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/run", map[string]any{"variables": map[string]any{"plan": "free"}, "limit": 2})
	if diff := cmp.Diff([]any{[]any{0.0, "free"}, []any{1.0, "free"}}, run["results"]); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	record := must(t, c, http.StatusOK, http.MethodGet, "endpoints/orders/", nil)
	if diff := cmp.Diff(map[string]any{"description": "Orders of a plan", "data_freshness_seconds": 900.0, "tags": []any{"board"}, "current_version": 1.0, "created_by": nil, "rate_limit": "60/m"},
		pick(record, "description", "data_freshness_seconds", "tags", "current_version", "created_by", "rate_limit")); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	must(t, c, http.StatusOK, http.MethodPost, "endpoints/visits/run", map[string]any{"variables": map[string]any{"date_to": "2024-01-03"}})
	for _, action := range []string{"plan", "apply"} { // applying again changes nothing
		var more []string
		if action == "plan" {
			more = []string{"--detailed-exitcode"}
		}
		if report, stderr, status := endpointsCommand(t, c.Server, c.Project, action, dir, more...); status != 0 || report["changed"] != false || stderr != "2 endpoints match their files\n" {
			t.Errorf("%s again: status %d, changed %v: %s", action, status, report["changed"], stderr)
		}
	}

	pulled := t.TempDir()
	if report, stderr, status := endpointsCommand(t, c.Server, c.Project, "pull", pulled); status != 0 || len(report["written"].([]any)) != 2 {
		t.Fatalf("pull: status %d, %v: %s", status, report, stderr)
	}
	if report, _, status := endpointsCommand(t, c.Server, c.Project, "plan", pulled, "--detailed-exitcode"); status != 0 || report["changed"] != false {
		t.Errorf("a plan of what was pulled: status %d, %v", status, report)
	}
	if report, _, _ := endpointsCommand(t, c.Server, c.Project, "pull", dir); len(report["unchanged"].([]any)) != 2 {
		t.Errorf("pulling over the same files: %v", report)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "orders.yaml")); err != nil || string(raw) != plansFile {
		t.Errorf("pulling over the same file changed it: %v\n%s", err, raw)
	}

	write(t, dir, "orders.yaml", strings.Replace(strings.Replace(plansFile, "as id,", "as number,", 1), "order by id", "order by number", 1))
	_, stderr, status = endpointsCommand(t, c.Server, c.Project, "apply", dir, "--refuse-breaking")
	if want := "~ endpoint orders: query, version 2\n    ! endpoint orders: column id is renamed to number\n"; status != 1 || !strings.HasPrefix(stderr, want) {
		t.Errorf("a breaking change: status %d: %s", status, stderr)
	}
	write(t, dir, "broken.yaml", "name: broken\nquery: |\n  select 1\n  from event\n")
	write(t, dir, "worse.yaml", "name: worse\nqueri: select 1\n")
	for _, action := range []string{"plan", "apply"} {
		_, stderr, status = endpointsCommand(t, c.Server, c.Project, action, dir)
		if status != 1 || !strings.HasPrefix(stderr, filepath.Join(dir, "worse.yaml")+":2: an endpoint has no field queri\n") {
			t.Errorf("%s of a file with an unknown field: status %d: %s", action, status, stderr)
		}
	}
	if err := os.Remove(filepath.Join(dir, "worse.yaml")); err != nil {
		t.Fatal(err)
	}
	_, stderr, status = endpointsCommand(t, c.Server, c.Project, "apply", dir)
	if status != 1 || !strings.HasPrefix(stderr, filepath.Join(dir, "broken.yaml")+":4: Unknown table `event`") {
		t.Errorf("apply of a file with an unknown table: status %d: %s", status, stderr)
	}
	after := must(t, c, http.StatusOK, http.MethodGet, "endpoints/", nil)
	if after["count"] != 2.0 || after["results"].([]any)[0].(map[string]any)["current_version"] != 1.0 {
		t.Errorf("broken files changed something: %v", after)
	}

	if err := os.Remove(filepath.Join(dir, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "visits.yml")); err != nil {
		t.Fatal(err)
	}
	_, stderr, status = endpointsCommand(t, c.Server, c.Project, "apply", dir)
	if status != 0 || !strings.HasSuffix(stderr, "1 endpoint has no file and stays: visits\n") {
		t.Errorf("apply without a file: status %d: %s", status, stderr)
	}
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "by_hand", "query": hogql("select {variables.plan} as p")})
	write(t, dir, "orders.yaml", strings.Replace(strings.ReplaceAll(plansFile, "id", "number"), "type: String, default: pro", "type: Number, default: 1", 1))
	if _, stderr, _ = endpointsCommand(t, c.Server, c.Project, "plan", dir); !strings.HasPrefix(stderr,
		"~ variable plan: type, default\n    ! endpoint orders: variable plan is a Number, before it was a String\n    ! endpoint by_hand: variable plan is a Number") {
		t.Errorf("plan of a variable's other type: %s", stderr)
	}
	write(t, dir, "orders.yaml", strings.ReplaceAll(plansFile, "id", "number"))
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"rate_limit": nil}) // the file takes precedence
	if plan, _, _ := endpointsCommand(t, c.Server, c.Project, "plan", dir); fmt.Sprint(plan["endpoints"].([]any)[0].(map[string]any)["fields"]) != "[rate_limit]" {
		t.Errorf("the plan after a rate was taken away: %v", plan["endpoints"])
	}
	if _, stderr, status = endpointsCommand(t, c.Server, c.Project, "apply", dir, "--prune"); status != 0 || !strings.HasPrefix(stderr, "~ endpoint orders: rate_limit\n- endpoint by_hand\n- endpoint visits\n") {
		t.Errorf("apply with --prune: status %d: %s", status, stderr)
	}
	must(t, c, http.StatusNotFound, http.MethodGet, "endpoints/visits/", nil)
	if got := must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/run", map[string]any{})["columns"]; cmp.Diff([]any{"number", "plan"}, got) != "" {
		t.Errorf("columns after the change: %v", got)
	}
}

// TestEndpointFolder sets a folder in the Caddyfile: its files are applied on start and on reload, and an invalid one is refused with its line and
// changes nothing.
func TestEndpointFolder(t *testing.T) {
	dir := folder(t, map[string]string{"orders.yaml": plansFile})
	s := harness.Start(t, "endpoints "+dir+" {\n\t\t\tproject 1\n\t\t}")
	id, key := s.Project(t, "files") // the server started without it
	if id != 1 {
		t.Fatalf("the project has the number %d", id)
	}
	c := s.Client(id, key)
	columns := func() any {
		t.Helper()
		return must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/run", map[string]any{})["columns"]
	}
	harness.Eventually(t, time.Minute, func() error {
		if answer := c.Do(t, http.MethodGet, "endpoints/orders/", nil); answer.Status != http.StatusOK {
			return errors.New("the file is not applied: " + string(answer.Raw))
		}
		return nil
	})
	if diff := cmp.Diff([]any{"id", "plan"}, columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"description": "by hand"})

	write(t, dir, "orders.yaml", strings.ReplaceAll(plansFile, "id", "no"))
	if err := s.Reload(); err != nil { // the Caddyfile is unchanged

		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"no", "plan"}, columns()); diff != "" {
		t.Errorf("columns after the reload (-want +got):\n%s", diff)
	}
	if got := must(t, c, http.StatusOK, http.MethodGet, "endpoints/orders/", nil)["description"]; got != "Orders of a plan" {
		t.Errorf("what was changed by hand stays: %v", got)
	}

	write(t, dir, "second.yaml", "name: second\nquery: select 1\n")
	for name, broken := range map[string]string{
		"syntax": "name: broken\nis_active: true\nquery: select from\n", "meaning": "name: broken\nis_active: true\nquery: select nothing from events\n",
	} {
		write(t, dir, "broken.yaml", broken)
		err := s.Reload()
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "broken.yaml")+":3: ") {
			t.Errorf("%s: reload with a broken file: %v", name, err)
		}
		must(t, c, http.StatusNotFound, http.MethodGet, "endpoints/second/", nil)
		columns()
	}
	write(t, dir, "broken.yaml", "name: broken\nquery: select from\n")
	validate := exec.Command(must2(harness.Binary())(t), "validate", "--config", s.Caddyfile(), "--adapter", "caddyfile")
	validate.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	if out, err := validate.CombinedOutput(); err == nil || !strings.Contains(string(out), filepath.Join(dir, "broken.yaml")+":2: ") {
		t.Errorf("caddy validate of a broken file: %v\n%s", err, out)
	}
}

// TestEndpointFolders: files of several projects are applied together or not at all, and a project that does not exist holds up no other.
func TestEndpointFolders(t *testing.T) {
	first, second := folder(t, map[string]string{"orders.yaml": plansFile}), folder(t, map[string]string{"orders.yaml": plansFile})
	missing := folder(t, map[string]string{"orders.yaml": plansFile})
	var lines string
	for n, dir := range []string{missing, first, second} {
		lines += fmt.Sprintf("endpoints %s {\n\t\t\tproject %d\n\t\t}\n\t\t", dir, []int{9, 1, 2}[n])
	}
	s := harness.Start(t, lines) // before there are projects
	var clients []*harness.Client
	for want := range int64(2) {
		id, key := s.Project(t, "files")
		if id != want+1 {
			t.Fatalf("the project has the number %d", id)
		}
		clients = append(clients, s.Client(id, key))
	}
	for _, c := range clients {
		harness.Eventually(t, time.Minute, func() error {
			if answer := c.Do(t, http.MethodGet, "endpoints/orders/", nil); answer.Status != http.StatusOK {
				return errors.New("the file is not applied: " + string(answer.Raw))
			}
			return nil
		})
	}
	write(t, first, "more.yaml", "name: more\nquery: select 1\n")
	write(t, second, "broken.yaml", "name: broken\nquery: select nothing from events\n")
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "broken.yaml") {
		t.Errorf("a reload with a broken file: %v", err)
	}
	must(t, clients[0], http.StatusNotFound, http.MethodGet, "endpoints/more/", nil)
}

// must2 unwraps a required result.
func must2[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
