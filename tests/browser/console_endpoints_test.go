package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// salesQuery is a query with a variable.
const salesQuery = "select toInt(properties.n) as n, properties.plan as plan from events where event = 'sold' and properties.plan = {variables.plan} order by 1"

// sellers makes a project with sales 0 to 11, every second of which has the plan pro.
func sellers(t *testing.T, d *harness.Demo) *harness.Client {
	t.Helper()
	id, _ := d.Server.Project(t, "A shop")
	var lines strings.Builder
	for n := range 12 {
		line, err := json.Marshal(map[string]any{
			"event": "sold", "distinct_id": fmt.Sprint("u", n%3), "timestamp": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
			"properties": map[string]any{"n": n, "plan": []string{"pro", "free"}[n%2]},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	d.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	return d.Client(id, d.Key(t, id, "*", "personal"))
}

// publish makes the endpoint sales and its variable.
func publish(t *testing.T, c *harness.Client, names ...string) {
	t.Helper()
	must(t, c, http.MethodPost, "insight_variables/", map[string]any{"name": "plan", "type": "String", "default_value": "pro"})
	for _, name := range names {
		must(t, c, http.MethodPost, "endpoints/", map[string]any{"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": salesQuery}})
	}
}

// must sends a request that must succeed.
func must(t *testing.T, c *harness.Client, method, path string, body any) map[string]any {
	t.Helper()
	answer := c.Do(t, method, path, body)
	if answer.Status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Raw)
	}
	return answer.Body
}

// grid returns the text of each cell of a grid, without the row numbers.
func (c *console) grid(t *testing.T) (rows [][]string) {
	t.Helper()
	raw := c.evaluate(t, `JSON.stringify([...document.querySelectorAll(".grid tbody tr")].map((row) => [...row.cells].slice(1).map((cell) => cell.textContent)))`)
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// row returns the text of each cell in the row that contains a link.
func (c *console) row(t *testing.T, link string) (cells []string) {
	t.Helper()
	raw := c.evaluate(t, fmt.Sprintf(`JSON.stringify([...[...document.querySelectorAll("main tr a")].find((a) => a.textContent === %s)?.closest("tr").cells ?? []]
		.map((cell) => cell.innerText.trim()))`, quote(link)))
	if err := json.Unmarshal([]byte(raw), &cells); err != nil {
		t.Fatal(err)
	}
	return cells
}

// rowsOf returns the text of each cell of a named table.
func (c *console) rowsOf(t *testing.T, table string) (rows [][]string) {
	t.Helper()
	raw := c.evaluate(t, fmt.Sprintf(`JSON.stringify([...document.querySelectorAll("main section[aria-label=" + CSS.escape(%s) + "] tbody tr")]
		.map((row) => [...row.cells].map((cell) => cell.textContent.trim())))`, quote(table)))
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestConsoleEndpointLife: an endpoint is made, tried, changed, rolled back and deleted on its pages.
func TestConsoleEndpointLife(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	c := signedIn(t, d.Server, client.Project)
	c.expect("400") // a run with a wrong value
	c.visit(t, "endpoints")
	c.shows(t, "No endpoints yet")

	c.press(t, "button", "New endpoint")
	c.fill(t, "textbox", "Name", "sales")
	c.fill(t, "textbox", "Description", "What was sold")
	c.fill(t, "textbox", "SQL", salesQuery)
	c.shows(t, "The project does not have these variables yet")
	c.fill(t, "textbox", "Default of plan", "pro")
	c.picture(t, "endpoint new")
	c.press(t, "button", "Create endpoint")
	c.shows(t, "Active")

	t.Run("try", func(t *testing.T) {
		c.fill(t, "textbox", "plan", "free")
		c.fill(t, "textbox", "Limit", "4")
		c.press(t, "button", "Run")
		c.shows(t, "Computed now")
		if diff := cmp.Diff([][]string{{"1", "free"}, {"3", "free"}, {"5", "free"}, {"7", "free"}}, c.grid(t)); diff != "" {
			t.Errorf("the first page (-want +got):\n%s", diff)
		}
		c.press(t, "button", "Next page")
		if diff := cmp.Diff([][]string{{"9", "free"}, {"11", "free"}}, c.grid(t)); diff != "" {
			t.Errorf("the second page (-want +got):\n%s", diff)
		}
		c.shows(t, "From the cache")
		c.pick(t, "Format", "csv")
		c.press(t, "button", "Run")
		c.shows(t, "1,free")
		c.shows(t, "7,free")
		c.accessible(t)
		c.picture(t, "endpoint try")
	})

	t.Run("drafts", func(t *testing.T) {
		c.press(t, "tab", "Versions")
		c.press(t, "button", "New version")
		c.fill(t, "textbox", "SQL", strings.Replace(salesQuery, "as n", "as amount", 1))
		c.press(t, "button", "Save draft")
		c.shows(t, "Draft")
		c.shows(t, "column n is renamed to amount")
		c.shows(t, "Breaks callers")
		if got := c.text(t, ".endpoints-diff-added"); !strings.Contains(got, "as amount") {
			t.Errorf("the comparison shows as added: %q", got)
		}
		c.accessible(t)
		c.picture(t, "endpoint versions")
		c.press(t, "button", "Actions for v2")
		c.pressTells(t, "menuitem", "Promote", "v2 is current now")
		if got := must(t, client, http.MethodGet, "endpoints/sales/", nil)["current_version"]; got != 2.0 {
			t.Errorf("after promoting the current version is %v", got)
		}
		c.press(t, "button", "Roll back")
		if got := must(t, client, http.MethodGet, "endpoints/sales/", nil)["current_version"]; got != 1.0 {
			t.Errorf("after rolling back the current version is %v", got)
		}
	})

	t.Run("settings", func(t *testing.T) {
		c.press(t, "tab", "Settings")
		c.fill(t, "textbox", "Fresh for, in seconds", "60")
		c.fill(t, "textbox", "Rate limit", "30/m")
		c.press(t, "button", "Save version")                      // leaves what was typed into the other form
		for _, item := range []string{"Deactivate", "Activate"} { // which leaves it, too
			c.press(t, "button", "More")
			c.press(t, "menuitem", item)
		}
		c.press(t, "tab", "Runs")
		c.shows(t, "The changes of the endpoint are not saved.")
		c.press(t, "button", "Stay")
		c.press(t, "button", "Save endpoint")
		c.pick(t, "Version", "2")
		c.fill(t, "textbox", "Description", "The draft")
		c.pick(t, "Version", "1")
		c.press(t, "link", "Keys")
		c.shows(t, "The changes of v2 are not saved.")
		c.press(t, "button", "Stay")
		c.pick(t, "Version", "2")
		c.press(t, "button", "Save version")
		if got := must(t, client, http.MethodGet, "endpoints/sales/?version=2", nil); got["description"] != "The draft" {
			t.Errorf("the description of v2 is %v", got["description"])
		}
		got := must(t, client, http.MethodGet, "endpoints/sales/", nil)
		if got["data_freshness_seconds"] != 60.0 || got["rate_limit"] != "30/m" {
			t.Errorf("the settings are %v and %v", got["data_freshness_seconds"], got["rate_limit"])
		}
	})

	t.Run("materialization", func(t *testing.T) {
		c.press(t, "tab", "Materialization")
		c.shows(t, "What fills the table")
		c.press(t, "button", "Materialize")
		c.shows(t, "Runs read it.")
		c.press(t, "button", "Drop the table")
		c.shows(t, "Runs ask the query itself.")
	})

	t.Run("numbers", func(t *testing.T) {
		client.Do(t, http.MethodPost, "endpoints/sales/run", map[string]any{"variables": map[string]any{"plan": []int{1}}})
		client.Do(t, http.MethodPost, "endpoints/sales/run", map[string]any{"limit": 1})
		client.Do(t, http.MethodPost, "endpoints/sales/run", map[string]any{"limit": 1})
		day, _ := must(t, client, http.MethodGet, "endpoints/sales/usage/", nil)["day"].(map[string]any)
		logs := must(t, client, http.MethodGet, "endpoints/sales/logs/", nil)
		c.visit(t, "endpoints")
		cells := c.row(t, "sales")
		want := []string{fmt.Sprint(day["calls"]), fmt.Sprint(day["errors"])}
		if len(cells) < 8 || !cmp.Equal(want, []string{cells[4], cells[7]}) {
			t.Errorf("the list shows %q; the API says calls and errors %v", cells, want)
		}
		c.visit(t, "endpoints/sales?tab=runs")
		if got := c.evaluate(t, `String(document.querySelectorAll("main tbody tr").length)`); got != fmt.Sprint(logs["count"]) {
			t.Errorf("there are %s runs on the page, and %v in the log", got, logs["count"])
		}
		c.visit(t, "endpoints/sales?tab=openapi")
		c.shows(t, "run_sales")
		c.accessible(t)
	})

	t.Run("usage", func(t *testing.T) {
		acme := must(t, client, http.MethodPost, "project_secret_api_keys/", map[string]any{"label": "Acme", "scopes": []string{"endpoint:read"}, "fixed": map[string]any{"plan": "free"}})
		text, _ := acme["value"].(string)
		for range 3 {
			if status, plans := runsWith(t, client, text, "sales", map[string]any{}); status != http.StatusOK || plans != "free" {
				t.Errorf("a run with a key: %d, the plans %q", status, plans)
			}
		}
		usage := must(t, client, http.MethodGet, "endpoints/sales/usage/", nil)
		c.visit(t, "endpoints/sales?tab=usage")
		c.shows(t, "Acme")
		for _, span := range []string{"day", "hour"} {
			c.pick(t, "Numbers of", span)
			for part, name := range map[string]string{"versions": "By version", "keys": "By key", "customers": "By customer"} {
				want := []string{}
				rows, _ := usage[part].([]any)
				for _, row := range rows {
					of, _ := row.(map[string]any)
					window, _ := of[span].(map[string]any)
					want = append(want, fmt.Sprint(window["calls"], " ", window["errors"]))
				}
				var got []string
				for _, cells := range c.rowsOf(t, name) {
					got = append(got, cells[1]+" "+cells[5])
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s of the %s, calls and errors (-want +got):\n%s", name, span, diff)
				}
			}
		}
		keys, customers := c.rowsOf(t, "By key"), c.rowsOf(t, "By customer")
		if at := slices.IndexFunc(keys, func(cells []string) bool { return cells[0] == "Acme" }); at < 0 || keys[at][1] != "3" {
			t.Errorf("the key Acme, which ran it three times, is shown as %q", keys)
		}
		if len(customers) != 1 || customers[0][0] != "plan = free" || customers[0][1] != "3" {
			t.Errorf("the customer is shown as %q", customers)
		}
		if versions := c.rowsOf(t, "By version"); len(versions) != 1 || versions[0][0] != "v1 Current" {
			t.Errorf("the version is shown as %q", versions)
		}
		c.accessible(t)
		c.picture(t, "endpoint usage")
	})

	t.Run("end", func(t *testing.T) {
		c.visit(t, "endpoints")
		c.press(t, "button", "Actions for sales")
		c.press(t, "menuitem", "Deactivate")
		c.shows(t, "Inactive")
		if got := client.Do(t, http.MethodPost, "endpoints/sales/run", map[string]any{}); got.Status != http.StatusNotFound {
			t.Errorf("a run of the inactive endpoint: %d %s", got.Status, got.Raw)
		}
		c.press(t, "button", "Actions for sales")
		c.press(t, "menuitem", "Delete…")
		c.press(t, "button", "Delete")
		c.shows(t, "No endpoints yet")
		if got := client.Do(t, http.MethodGet, "endpoints/sales/", nil); got.Status != http.StatusNotFound {
			t.Errorf("the deleted endpoint: %d %s", got.Status, got.Raw)
		}
	})
}

// TestConsoleEndpointSearch: the server searches, sorts and pages the list.
func TestConsoleEndpointSearch(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client)
	for i := range 30 {
		must(t, client, http.MethodPost, "endpoints/", map[string]any{
			"name": fmt.Sprintf("e%02d", i), "description": fmt.Sprint("number ", i), "query": map[string]any{"kind": "HogQLQuery", "query": salesQuery},
		})
	}
	must(t, client, http.MethodPost, "endpoints/e07/run", map[string]any{})
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "endpoints")
	names := func() string { return strings.Join(strings.Fields(c.text(t, "main td a")), " ") }
	if got := names(); !strings.HasPrefix(got, "e29 e28") || !strings.HasSuffix(got, "e06 e05") {
		t.Errorf("the first page has %s", got)
	}
	c.press(t, "button", "Next")
	if got := names(); got != "e04 e03 e02 e01 e00" {
		t.Errorf("the second page has %s", got)
	}
	c.pick(t, "Order", "-calls")
	if got := names(); !strings.HasPrefix(got, "e07 ") {
		t.Errorf("by calls the page has %s", got)
	}
	c.fill(t, "searchbox", "Search", "number 12")
	harness.Eventually(t, time.Minute, func() error {
		if got := names(); got != "e12" {
			return fmt.Errorf("the search finds %s", got)
		}
		return nil
	})
	c.look(t, dark, narrow)
	c.fits(t)
	c.accessible(t)
}

// TestConsoleSnippets: the programs shown on the page run unchanged.
func TestConsoleSnippets(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client, "sales")
	secret := d.Key(t, client.Project, "endpoint:read", "secret")
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "endpoints/sales")
	c.fill(t, "textbox", "plan", `free' " $(id) \ é`)
	c.fill(t, "textbox", "Limit", "3")
	c.press(t, "tab", "Use")
	shown := func(language string) string {
		c.press(t, "button", language)
		return c.evaluate(t, `document.querySelector("main .snippet code").textContent`)
	}
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	esbuild := filepath.Join(root, "console", "node_modules", ".bin", "esbuild")
	programs := []struct{ language, file, command string }{
		{"curl", "run.sh", "sh run.sh"},
		{"TypeScript", "run.mts", esbuild + " run.mts --log-level=error --outfile=run.mjs && node run.mjs"},
		{"Python", "run.py", "python3 run.py"},
		{"Go", "run.go", "go run run.go"},
	}
	run := func(t *testing.T, file, text, command string) (string, error) {
		t.Helper()
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "ANALYTICS_KEY="+secret, "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, values := range []struct{ plan, want string }{{`free' " $(id) \ é`, ""}, {"free", "free"}} {
		c.press(t, "tab", "Try it")
		c.fill(t, "textbox", "plan", values.plan)
		c.press(t, "tab", "Use")
		for _, p := range programs {
			program := strings.Fields(p.command)[0]
			if p.language == "TypeScript" {
				program = "node"
			}
			if _, err := exec.LookPath(program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				continue
			}
			out, err := run(t, p.file, shown(p.language), p.command)
			if err != nil {
				t.Errorf("%s with %s: %v\n%s", p.language, values.plan, err, out)
			}
			if got := strings.Count(out, "free"); values.want != "" && got != 3 || values.want == "" && got != 0 {
				t.Errorf("%s with %s prints %s", p.language, values.plan, out)
			}
		}
	}
	if got, _ := must(t, client, http.MethodGet, "endpoints/sales/logs/", nil)["count"].(float64); got < 4 {
		t.Errorf("the endpoint ran %v times", got)
	}
}
