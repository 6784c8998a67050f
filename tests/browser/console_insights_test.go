package browser_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// ownProject makes a project with three people, two of whom signed up, and opens its console.
func ownProject(t *testing.T, name string) (*console, *harness.Client) {
	t.Helper()
	d := demoServer(t)
	id, key := d.Server.Project(t, name)
	var lines strings.Builder
	for i, event := range []string{"visit", "visit", "visit", "visit", "sign up", "sign up"} {
		who := []string{"ann", "bob", "cid"}[i%3]
		when := time.Now().Add(-time.Duration(i+1) * time.Hour).UTC().Format(time.RFC3339)
		fmt.Fprintf(&lines, `{"event": %q, "distinct_id": %q, "timestamp": %q, "properties": {"$set": {"email": "%s@example.com"}}}`+"\n", event, who, when, who)
	}
	d.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	return signedIn(t, d.Server, id), d.Client(id, key)
}

// record reads a record.
func record(t *testing.T, c *harness.Client, path string) map[string]any {
	t.Helper()
	answer := c.Do(t, http.MethodGet, path, nil)
	if answer.Status != http.StatusOK {
		t.Fatalf("%s answers %d %s", path, answer.Status, answer.Raw)
	}
	return answer.Body
}

// create makes a record.
func create(t *testing.T, c *harness.Client, path string, body any) map[string]any {
	t.Helper()
	answer := c.Do(t, http.MethodPost, path, body)
	if answer.Status != http.StatusCreated {
		t.Fatalf("%s answers %d %s", path, answer.Status, answer.Raw)
	}
	return answer.Body
}

// members returns the objects of a list in a record.
func members(of map[string]any, name string) (out []map[string]any) {
	list, _ := of[name].([]any)
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// path returns the page's path.
func (c *console) path(t *testing.T) string {
	t.Helper()
	return c.evaluate(t, "location.pathname")
}

// arrives waits until a page of the project is open.
func (c *console) arrives(t *testing.T, page string) {
	t.Helper()
	want := fmt.Sprintf("/project/%d/%s", c.project, page)
	harness.Eventually(t, time.Minute, func() error {
		if got := c.path(t); got != want {
			return fmt.Errorf("the path is %s, want %s", got, want)
		}
		return nil
	})
}

// TestConsoleHome: the tiles of the pinned dashboard show the API's numbers.
func TestConsoleHome(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	c := signedIn(t, d.Server, d.Project)
	c.one(t, "link", "How the project is made")
	var funnel map[string]any
	for _, insight := range members(record(t, client, "insights/?refresh=blocking"), "results") {
		if insight["name"] == "From a commit to a release" {
			funnel = insight
		}
	}
	tile := c.text(t, `[aria-label="From a commit to a release"]`)
	for _, step := range members(funnel, "result") {
		if want := fmt.Sprint(step["count"]); !strings.Contains(tile, want) {
			t.Errorf("the tile of the funnel does not show %s:\n%s", want, tile)
		}
	}
	if len(members(funnel, "result")) != 3 || !strings.Contains(tile, "ago") && !strings.Contains(tile, "now") {
		t.Errorf("the tile shows no age, or the funnel is gone: %v\n%s", funnel, tile)
	}
	// At most three tiles load at the same time, and only visible ones.
	asked := len(c.answers("/insights/"))
	c.evaluate(t, `window.scrollTo(0, document.body.scrollHeight), ""`)
	harness.Eventually(t, time.Minute, func() error {
		if later := len(c.answers("/insights/")); later <= asked {
			return fmt.Errorf("%d tiles were loaded before they were in view, %d after", asked, later)
		}
		return nil
	})
	c.settle(t)
}

// TestConsoleFirstEvent: a project without events shows how to send one, and continues when it has arrived.
func TestConsoleFirstEvent(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	id, key := d.Server.Project(t, "nothing yet")
	client := d.Client(id, key)
	token := fmt.Sprint(record(t, d.Client(0, key), fmt.Sprintf("/api/projects/%d/", id))["api_token"])
	c := signedIn(t, d.Server, id)
	c.shows(t, "Send the first event")
	for _, tab := range []string{"Web page", "posthog-js", "Node.js", "curl"} {
		c.press(t, "tab", tab)
		if snippet := c.text(t, ".snippet pre"); !strings.Contains(snippet, token) || !strings.Contains(snippet, d.URL) {
			t.Errorf("the snippet %s has no token or no address:\n%s", tab, snippet)
		}
	}
	c.accessible(t)
	c.picture(t, "first-event")
	answer := client.Do(t, http.MethodPost, "/batch/", map[string]any{"api_key": token, "batch": []any{
		map[string]any{"event": "it works", "distinct_id": "ann"},
	}})
	if answer.Status != http.StatusOK {
		t.Fatalf("capturing: %d %s", answer.Status, answer.Raw)
	}
	c.shows(t, "The first event has arrived: it works")
	c.shows(t, "No insights yet")
	c.shows(t, "Pin a dashboard to see it here.")
	c.accessible(t)
}

// behindCount is a number in an insight of the demo, with the people behind it according to the API.
func behindCount(t *testing.T, client *harness.Client, source map[string]any) int {
	t.Helper()
	answer := client.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "ActorsQuery", "select": []string{"id"}, "source": source, "limit": 50_000,
	}})
	rows, _ := answer.Body["results"].([]any)
	if answer.Status != http.StatusOK {
		t.Fatalf("actors: %d %s", answer.Status, answer.Raw)
	}
	return len(rows)
}

// TestConsoleBehind: a click on a number lists that many people.
func TestConsoleBehind(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	var funnel map[string]any
	for _, insight := range members(record(t, client, "insights/?refresh=blocking"), "results") {
		if insight["name"] == "From a commit to a release" {
			funnel = insight
		}
	}
	query, _ := funnel["query"].(map[string]any)
	c := signedIn(t, d.Server, d.Project)
	for i, step := range members(funnel, "result") {
		c.visit(t, fmt.Sprint("insights/", funnel["short_id"]))
		count := fmt.Sprint(step["count"])
		clicked := c.evaluate(t, fmt.Sprintf(`(() => {
			const number = [...document.querySelectorAll(".insight-result button")].find((b) => b.innerText === %s);
			number?.click();
			return number ? "yes" : document.querySelector(".insight-result").innerText;
		})()`, quote(count)))
		if clicked != "yes" {
			t.Fatalf("step %d has no number %s to click on:\n%s", i+1, count, clicked)
		}
		c.settle(t)
		c.shows(t, count+" people")
		if got := behindCount(t, client, map[string]any{"kind": "FunnelsActorsQuery", "funnelStep": i + 1, "source": query["source"]}); fmt.Sprint(got) != count {
			t.Errorf("step %d says %s, and the API has %d people", i+1, count, got)
		}
		rows := c.evaluate(t, `String(document.querySelectorAll("dialog tbody tr").length)`)
		if want := min(int(step["count"].(float64)), 50); rows != fmt.Sprint(want) {
			t.Errorf("step %d lists %s people on its first page, want %d", i+1, rows, want)
		}
	}
	// The people of the last step become a cohort.
	c.press(t, "button", "Save as cohort")
	c.fill(t, "textbox", "Name", "got a release")
	c.press(t, "button", "Save")
	last := members(funnel, "result")[2]["count"]
	harness.Eventually(t, time.Minute, func() error {
		found := members(record(t, client, "cohorts/?search=got+a+release"), "results")
		if len(found) != 1 || found[0]["count"] != last {
			return fmt.Errorf("the cohorts are %v, want one of %v", found, last)
		}
		return nil
	})
}

// TestConsoleInsight: the life of an insight.
func TestConsoleInsight(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "insights")
	board := create(t, client, "dashboards/", map[string]any{"name": "Board"})
	query, err := json.Marshal(map[string]any{
		"kind": "FunnelsQuery", "dateRange": map[string]any{"date_from": "-7d"},
		"series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}, map[string]any{"kind": "EventsNode", "event": "sing up"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.visit(t, "insights/new?q="+url.QueryEscape(string(query)))
	c.shows(t, "No event named 'sing up' has been seen in this project.")
	c.press(t, "button", "Use sign up") // the warning's fix
	harness.Eventually(t, time.Minute, func() error {
		if at := c.evaluate(t, "decodeURIComponent(location.search)"); !strings.Contains(at, "sign+up") {
			return fmt.Errorf("the address is %s", at)
		}
		return nil
	})
	c.settle(t)
	if got := c.text(t, ".insight-result"); strings.Contains(got, "No event named") || !strings.Contains(got, "3") {
		t.Errorf("after the fix the result is\n%s", got)
	}

	c.press(t, "button", "Save")
	c.fill(t, "textbox", "Name", "Signing up")
	c.key(t, kb.Enter)
	c.one(t, "heading", "Signing up")
	saved := members(record(t, client, "insights/"), "results")
	if len(saved) != 1 || c.path(t) != fmt.Sprintf("/project/%d/insights/%v", client.Project, saved[0]["short_id"]) {
		t.Fatalf("saved are %v, the path is %s", saved, c.path(t))
	}
	at := fmt.Sprint("insights/", saved[0]["short_id"])

	c.visit(t, at) // by its link
	c.one(t, "heading", "Signing up")
	for _, step := range members(record(t, client, at+"/?refresh=blocking"), "result") {
		if got := c.text(t, ".insight-result"); !strings.Contains(got, fmt.Sprint(step["count"])) {
			t.Errorf("the page does not show %v:\n%s", step["count"], got)
		}
	}

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Name, description, tags")
	c.fill(t, "textbox", "Name", "Who signs up")
	c.fill(t, "textbox", "Tags", "growth, web")
	c.press(t, "button", "Save")
	c.one(t, "heading", "Who signs up")
	if got := record(t, client, at+"/"); got["name"] != "Who signs up" || fmt.Sprint(got["tags"]) != "[growth web]" {
		t.Errorf("renamed, the insight is %v %v", got["name"], got["tags"])
	}

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Show as code")
	c.press(t, "tab", "curl")
	c.accessible(t)
	c.press(t, "button", "Close")

	c.press(t, "button", "Retention")
	c.shows(t, "Unsaved changes")
	c.press(t, "link", "Home")
	c.shows(t, "Leave this page?")
	c.press(t, "button", "Stay")
	c.press(t, "button", "Discard")
	if got := c.text(t, "h1"); strings.Contains(got, "Unsaved") {
		t.Errorf("after discarding, the title is %s", got)
	}

	c.press(t, "button", "Retention")
	c.press(t, "button", "Edit as JSON")
	c.fill(t, "textbox", "Query", `{"kind": `)
	c.shows(t, "This is no query")
	if c.evaluate(t, `[...document.querySelectorAll("button")].some((b) => b.textContent === "Save" && !b.disabled) ? "yes" : ""`) != "" {
		t.Error("text that is no query can be saved")
	}
	c.press(t, "link", "Home")
	c.shows(t, "Leave this page?")
	c.press(t, "button", "Stay")
	c.press(t, "button", "Edit as a form")
	if c.evaluate(t, `[...document.querySelectorAll("button")].some((b) => b.textContent === "Save" && !b.disabled) ? "yes" : ""`) == "" {
		t.Error("an edited insight cannot be saved")
	}
	c.press(t, "button", "Discard")

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Dashboards…")
	other := create(t, client, "dashboards/", map[string]any{"name": "Other"})
	must(t, client, http.MethodPatch, at+"/", map[string]any{"dashboards": []any{other["id"]}}) // as somebody else does
	c.press(t, "button", "Add to Board")
	c.press(t, "button", "Close")
	if got := record(t, client, at+"/")["dashboards"]; fmt.Sprint(got) != fmt.Sprint([]any{board["id"], other["id"]}) {
		t.Errorf("the insight is on the dashboards %v", got)
	}

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Publish as an endpoint…")
	c.fill(t, "textbox", "Name", "who signs up")
	c.shows(t, "The name can have letters, digits, hyphens and underscores only.")
	c.fill(t, "textbox", "Name", "who-signs-up")
	c.press(t, "button", "Publish")
	if got, want := c.path(t), fmt.Sprintf("/project/%d/endpoints/who-signs-up", client.Project); got != want {
		t.Errorf("published, the path is %s, want %s", got, want)
	}
	if answer := client.Do(t, http.MethodPost, "endpoints/who-signs-up/run", map[string]any{}); answer.Status != http.StatusOK {
		t.Errorf("the endpoint answers %d %s", answer.Status, answer.Raw)
	}

	c.visit(t, at)
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete")
	c.press(t, "button", "Delete")
	if got, want := c.path(t), fmt.Sprintf("/project/%d/insights", client.Project); got != want {
		t.Errorf("deleted, the path is %s, want %s", got, want)
	}
	if got := members(record(t, client, "insights/"), "results"); len(got) != 0 {
		t.Errorf("there still is %v", got)
	}
}

// TestConsoleInsightReader: a key that may only read insights sees their numbers, and no controls that would change them.
func TestConsoleInsightReader(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	var funnel map[string]any
	for _, insight := range members(record(t, client, "insights/?refresh=blocking"), "results") {
		if insight["name"] == "From a commit to a release" {
			funnel = insight
		}
	}
	c := signedIn(t, d.Server, d.Project, "project:read", "insight:read", "dashboard:read")
	c.one(t, "link", "How the project is made")
	c.visit(t, fmt.Sprint("insights/", funnel["short_id"]))
	c.shows(t, "Your key may see results but not run other queries.")
	for _, step := range members(funnel, "result") {
		if got := c.text(t, ".insight-result"); !strings.Contains(got, fmt.Sprint(step["count"])) {
			t.Errorf("the page does not show %v:\n%s", step["count"], got)
		}
	}
	if buttons := c.find(t, "button", "Save"); len(buttons) != 0 {
		t.Error("the key may save the insight")
	}
	c.press(t, "button", "More")
	if got := c.evaluate(t, `[...document.querySelectorAll("[role=menuitem]:not(:disabled)")].map((e) => e.innerText).join()`); got != "Show as code" {
		t.Errorf("the key may %s", got)
	}
	c.visit(t, fmt.Sprint("dashboard/", first(t, client, "dashboards/", "id")))
	for _, name := range []string{"Arrange", "Add", "Tile"} {
		if buttons := c.find(t, "button", name); len(buttons) != 0 {
			t.Errorf("the key has the button %s", name)
		}
	}
	for _, r := range c.sent() {
		if r.status >= 400 {
			t.Errorf("%s answers %d", r.url, r.status)
		}
	}

	// A key that may try queries but not save them is not asked about unsaved changes.
	curious := signedIn(t, d.Server, d.Project, "project:read", "insight:read", "query:read")
	for _, path := range []string{fmt.Sprint("insights/", funnel["short_id"]), "insights/new"} {
		curious.visit(t, path)
		curious.press(t, "button", "Retention")
		curious.press(t, "link", "Home")
		if got, want := curious.path(t), fmt.Sprintf("/project/%d", d.Project); got != want {
			t.Errorf("from %s, the link to Home leads to %s, want %s", path, got, want)
		}
	}
}

// TestConsoleAlerts: an alert of a trend is made, changed and deleted.
func TestConsoleAlerts(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "alerts")
	insight := create(t, client, "insights/", map[string]any{"name": "Visits", "query": map[string]any{"kind": "InsightVizNode", "source": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}},
	}}})
	c.visit(t, fmt.Sprint("insights/", insight["short_id"]))
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Alerts…")
	c.press(t, "button", "New alert")
	c.press(t, "button", "Create")
	c.shows(t, "Give a lower or an upper bound.")
	c.fill(t, "textbox", "Fires below", "2.5")
	c.press(t, "button", "Create")
	c.shows(t, "below 2.5")
	made := members(record(t, client, "alerts/"), "results")
	if len(made) != 1 || !strings.Contains(fmt.Sprint(made[0]["threshold"]), "lower:2.5") {
		t.Fatalf("the alerts are %v", made)
	}
	c.press(t, "button", "Edit Visits")
	c.fill(t, "textbox", "Fires above", "7")
	c.press(t, "button", "Save")
	c.shows(t, "below 2.5 or above 7")
	sent := c.sent()
	if got, want := sent[len(sent)-2], `{"threshold":{"configuration":{"type":"absolute","bounds":{"lower":2.5,"upper":7}}}}`; got.method != http.MethodPatch || got.body != want {
		t.Errorf("the form sends %s %s, want only %s", got.method, got.body, want)
	}
	c.press(t, "button", "Checks of Visits")
	c.shows(t, "Checks of Visits")
	c.accessible(t)
	c.press(t, "button", "Close")
	c.press(t, "button", "Delete Visits")
	c.press(t, "button", "Delete")
	c.shows(t, "No alerts yet")
	if got := members(record(t, client, "alerts/"), "results"); len(got) != 0 {
		t.Errorf("there still is %v", got)
	}
}

// TestConsoleMistakenTile: a tile whose query is invalid says why, and the others show their results.
func TestConsoleMistakenTile(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "mistaken")
	action := create(t, client, "actions/", map[string]any{"name": "Joined the club", "steps": []any{map[string]any{"event": "sign up"}}})
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	for name, series := range map[string]any{
		"Visits": map[string]any{"kind": "EventsNode", "event": "visit"}, "Joiners": map[string]any{"kind": "ActionsNode", "id": action["id"]},
	} {
		create(t, client, "insights/", map[string]any{"name": name, "dashboards": []any{board["id"]}, "query": map[string]any{"kind": "InsightVizNode", "source": map[string]any{
			"kind": "TrendsQuery", "series": []any{series}, "trendsFilter": map[string]any{"display": "BoldNumber"},
		}}})
	}
	if answer := client.Do(t, http.MethodPatch, fmt.Sprintf("actions/%v/", action["id"]), map[string]any{"deleted": true}); answer.Status != http.StatusOK {
		t.Fatalf("deleting the action: %d %s", answer.Status, answer.Raw)
	}
	c.expect("status of 400")
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.shows(t, fmt.Sprintf(`Action "Joined the club" (ID %v) was deleted.`, action["id"]))
	c.settle(t)
	if got := c.text(t, `[aria-label="Visits"]`); !strings.Contains(got, "4") {
		t.Errorf("beside it there is\n%s", got)
	}
}

// TestConsoleDashboard: the life of a dashboard.
func TestConsoleDashboard(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "dashboards")
	for _, name := range []string{"Visits", "Sign-ups"} {
		create(t, client, "insights/", map[string]any{"name": name, "query": map[string]any{"kind": "InsightVizNode", "source": map[string]any{
			"kind": "FunnelsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}, map[string]any{"kind": "EventsNode", "event": "sign up"}},
		}}})
	}
	c.visit(t, "dashboard")
	c.shows(t, "No dashboards yet")
	c.press(t, "button", "New dashboard")
	c.fill(t, "textbox", "Name", "Growth")
	c.press(t, "button", "Create")
	c.one(t, "heading", "Growth")
	list := members(record(t, client, "dashboards/"), "results")
	if len(list) != 1 {
		t.Fatalf("the dashboards are %v", list)
	}
	at := fmt.Sprintf("dashboards/%v/", list[0]["id"])
	if got, want := c.path(t), fmt.Sprintf("/project/%d/dashboard/%v", client.Project, list[0]["id"]); got != want {
		t.Errorf("the path is %s, want %s", got, want)
	}

	for _, name := range []string{"Visits", "Sign-ups"} {
		c.press(t, "button", "Add")
		c.press(t, "menuitem", "Insight")
		c.press(t, "button", "Add "+name)
		c.press(t, "button", "Close")
	}
	c.press(t, "button", "Add")
	c.press(t, "menuitem", "Text")
	c.fill(t, "textbox", "Text", "# Read me\n\n[good](https://example.com/) [bad](javascript:alert(1)) <b>bold</b>")
	c.press(t, "button", "Add")
	c.one(t, "heading", "Read me")
	c.shows(t, "<b>bold</b>")
	if got := c.evaluate(t, `[...document.querySelectorAll(".markdown a")].map((a) => a.href).join()`); got != "https://example.com/" {
		t.Errorf("the text links to %s", got)
	}
	for _, name := range []string{"Visits", "Sign-ups"} {
		if got := c.text(t, fmt.Sprintf("[aria-label=%q]", name)); !strings.Contains(got, "3") {
			t.Errorf("the tile %s shows\n%s", name, got)
		}
	}

	// places returns the places of the tiles according to the API.
	places := func() string {
		var out []string
		for _, tile := range members(record(t, client, at), "tiles") {
			layouts, _ := tile["layouts"].(map[string]any)
			box, _ := layouts["sm"].(map[string]any)
			name := "text"
			if insight, ok := tile["insight"].(map[string]any); ok {
				name = fmt.Sprint(insight["name"])
			}
			out = append(out, fmt.Sprintf("%s %v,%v %v×%v", name, box["x"], box["y"], box["w"], box["h"]))
		}
		slices.Sort(out)
		return strings.Join(out, "; ")
	}
	becomes := func(want string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := places(); got != want {
				return fmt.Errorf("the places are %s, want %s", got, want)
			}
			return nil
		})
	}
	c.press(t, "button", "Arrange")
	c.evaluate(t, `document.querySelector("[aria-label='Resize Visits']").focus(), ""`)
	c.key(t, kb.ArrowRight)
	c.key(t, kb.ArrowUp)
	becomes("Sign-ups 6,4 6×5; Visits 0,0 7×4; text 0,4 6×5")
	c.evaluate(t, `document.querySelector("[aria-label='Move Visits']").focus(), ""`)
	c.key(t, kb.ArrowRight)
	becomes("Sign-ups 6,4 6×5; Visits 1,0 7×4; text 0,4 6×5")
	// Each of three moves takes effect: the second while the first is being saved, and the third right afterwards.
	c.evaluate(t, `(async () => {
		const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
		const until = async (holds) => { while (!holds()) await wait(5); };
		const send = window.fetch;
		let [sent, answered] = [0, 0];
		window.fetch = async (...request) => {
			if (request[1]?.method !== "PATCH") return send(...request);
			sent++;
			await wait(300);
			return send(...request).finally(() => answered++);
		};
		const move = () => document.querySelector("[aria-label='Move Visits']").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
		move();
		await until(() => sent === 1);
		move();
		await until(() => answered === 1);
		await wait(50);
		move();
		return "";
	})()`)
	becomes("Sign-ups 6,4 6×5; Visits 4,0 7×4; text 0,4 6×5")
	c.visit(t, fmt.Sprint("dashboard/", list[0]["id"])) // the places are kept
	becomes("Sign-ups 6,4 6×5; Visits 4,0 7×4; text 0,4 6×5")

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Pin to home")
	if record(t, client, at)["pinned"] != true {
		t.Error("the dashboard is not pinned")
	}
	c.evaluate(t, `document.querySelector("[aria-label=Text] [title=Tile]").click(), ""`)
	c.press(t, "menuitem", "Remove from dashboard")
	if got := members(record(t, client, at), "tiles"); len(got) != 2 {
		t.Errorf("there are %d tiles, want 2", len(got))
	}
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete")
	c.press(t, "button", "Delete")
	c.shows(t, "No dashboards yet")
	if got := members(record(t, client, "dashboards/"), "results"); len(got) != 0 {
		t.Errorf("there still is %v", got)
	}
	if got := members(record(t, client, "insights/"), "results"); len(got) != 2 {
		t.Errorf("there are %d insights, want 2", len(got))
	}
}

// TestConsoleInsightList: thousands of insights are searched, filtered and paged on the server.
func TestConsoleInsightList(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "many insights")
	for i := range 120 {
		kind, source := "InsightVizNode", map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}}}
		if i%10 == 0 {
			kind, source = "DataVisualizationNode", map[string]any{"kind": "HogQLQuery", "query": "select 1"}
		}
		create(t, client, "insights/", map[string]any{"name": fmt.Sprintf("number %03d", i), "query": map[string]any{"kind": kind, "source": source}})
	}
	rows := func() string { return c.evaluate(t, `String(document.querySelectorAll("main tbody tr").length)`) }
	c.visit(t, "insights")
	c.shows(t, "1–50 of 120")
	if got := rows(); got != "50" {
		t.Errorf("the first page has %s rows", got)
	}
	c.press(t, "button", "Next")
	c.press(t, "button", "Next")
	c.shows(t, "101–120 of 120")
	c.one(t, "link", "number 000") // the oldest comes last
	c.fill(t, "searchbox", "Search", "number 07")
	c.one(t, "link", "number 077")
	if got := c.evaluate(t, "location.search"); got != "?search=number+07" {
		t.Errorf("the address has %s", got)
	}
	c.press(t, "link", "Insights")
	c.shows(t, "1–50 of 120")
	if got := c.evaluate(t, "document.querySelector('input[type=search]').value"); got != "" {
		t.Errorf("after the link to all insights, the search has %q", got)
	}
	c.visit(t, "insights?insight=SQL")
	if got := rows(); got != "12" {
		t.Errorf("there are %s insights in SQL, want 12", got)
	}
	c.press(t, "link", "number 110")
	c.one(t, "link", "Open in the SQL editor")
	large := create(t, client, "insights/", map[string]any{"name": "large", "query": map[string]any{
		"kind": "DataVisualizationNode", "source": map[string]any{"kind": "HogQLQuery", "query": "select 9007199254740993 as id"},
	}})
	for _, path := range []string{fmt.Sprint("insights/", large["short_id"]), ""} { // the page, and the tile on Home
		c.visit(t, path)
		c.shows(t, "9007199254740993")
	}
}

// TestConsoleInsightCancel: after Cancel, the page does not present the previous query's result as current.
func TestConsoleInsightCancel(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.expect("400")
	c.expect("ERR_ABORTED")
	c.visit(t, "insights/new")
	c.shows(t, "Computed")
	query := url.QueryEscape(`{"kind":"HogQLQuery","query":"select max(cityHash64(number)) from numbers(100000000000)"}`)
	c.evaluate(t, `(() => { history.pushState(null, "", "?q=`+query+`"); dispatchEvent(new PopStateEvent("popstate")); return "" })()`)
	harness.Eventually(t, time.Minute, func() error {
		for _, r := range c.sent() {
			if strings.Contains(r.body, "cityHash64") && strings.Contains(r.body, `"refresh":"blocking"`) {
				return nil
			}
		}
		return errors.New("the query has not been sent")
	})
	c.press(t, "button", "Cancel")
	c.shows(t, "The query was canceled")
	c.shows(t, "Below is the result of the query before.")
	c.reads(t, ".insight-status [role=status]", "")
}
