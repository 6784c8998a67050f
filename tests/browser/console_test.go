package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// currentKey is the path of the requesting key.
const currentKey = "/api/personal_api_keys/@current/"

// kept returns the key stored in a tab.
func (c *console) kept(t *testing.T) string {
	t.Helper()
	return c.evaluate(t, `JSON.parse(sessionStorage.getItem("analytics.session") ?? "null")?.key ?? ""`)
}

// works reports whether a key works.
func works(t *testing.T, s *harness.Server, key string) bool {
	t.Helper()
	return s.Client(0, key).Do(t, http.MethodGet, currentKey, nil).Status == http.StatusOK
}

// TestConsoleLink signs in with a link, and signs out.
func TestConsoleLink(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := openConsole(t, d.Server, d.Project)
	link := signInLink(t, d.Server, d.Project)
	c.visit(t, link)
	if got, want := c.evaluate(t, "location.href"), fmt.Sprintf("%s/project/%d", d.URL, d.Project); got != want {
		t.Errorf("signed in, the address is %s, want %s", got, want)
	}
	c.shows(t, "Demo: the history of a public project")
	key := c.kept(t)
	if !strings.HasPrefix(key, "phx_") || !works(t, d.Server, key) {
		t.Fatalf("the tab keeps the key %q", key)
	}
	for _, r := range c.sent() {
		_, code, _ := strings.Cut(link, "#code=")
		if strings.Contains(r.url, code) || strings.Contains(r.url, key) {
			t.Errorf("the code or the key is in an address: %s", r.url)
		}
	}
	if got := c.evaluate(t, "document.cookie + JSON.stringify({ ...localStorage })"); strings.Contains(got, key) || strings.HasPrefix(got, "c") {
		t.Errorf("the browser keeps %s", got)
	}
	c.visit(t, "sql") // reloads everything
	if c.kept(t) != key || len(c.find(t, "button", "Sign out")) != 1 {
		t.Error("a reload signs out")
	}

	second := openConsole(t, d.Server, d.Project)
	second.expect("401")
	second.visit(t, link)
	second.shows(t, "This link has expired or was already used.")
	if second.kept(t) != "" {
		t.Error("a used link signs in")
	}

	c.evaluate(t, `(() => {
		const real = window.fetch;
		window.lost = true;
		window.fetch = (to, how, ...rest) => lost && how?.method === "DELETE" ? Promise.reject(new TypeError("lost")) : real(to, how, ...rest);
		return "";
	})()`)
	c.press(t, "button", "Sign out")
	c.shows(t, "The key of this session was not revoked")
	c.accessible(t)
	c.evaluate(t, `window.lost = false, ""`)
	c.press(t, "button", "Try again")
	c.one(t, "button", "Sign in")
	if c.kept(t) != "" || works(t, d.Server, key) {
		t.Error("the key outlives the session")
	}
}

// TestConsoleLinkInPlace opens a link in the tab with the form: only the fragment of the address changes.
func TestConsoleLinkInPlace(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := openConsole(t, d.Server, d.Project)
	c.visit(t, d.URL+"/")
	c.one(t, "button", "Sign in")
	c.open(t, signInLink(t, d.Server, d.Project))
	c.one(t, "button", "Sign out")
}

// TestConsoleForm signs in with a personal key.
func TestConsoleForm(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := openConsole(t, d.Server, d.Project)
	c.expect("401")
	c.visit(t, d.URL+"/project/1/insights")
	// described returns what screen readers say about the field after its name.
	described := func() string {
		return c.evaluate(t, `(() => {
			const field = document.querySelector("input");
			const about = (field.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.innerText);
			return [field.getAttribute("aria-invalid"), ...about].join("|");
		})()`)
	}
	const hint = "It begins with phx_. This tab keeps it until you close it or sign out."
	if got, want := described(), "|"+hint; got != want {
		t.Errorf("the field is described as %q, want %q", got, want)
	}
	c.fill(t, "textbox", "Personal key", "phx_wrong")
	c.press(t, "button", "Sign in")
	c.shows(t, "This is not a valid personal key.")
	if got, want := described(), "true|"+hint+"|This is not a valid personal key."; got != want {
		t.Errorf("with a mistake, the field is described as %q, want %q", got, want)
	}
	c.fill(t, "textbox", "Personal key", d.SecretKey)
	c.press(t, "button", "Sign in")
	c.shows(t, "This is not a valid personal key.")
	if c.kept(t) != "" {
		t.Error("a key that is wrong is kept")
	}
	own := d.Key(t, d.Project, "insight:read,project:read", "personal")
	c.fill(t, "textbox", "Personal key", " "+own+" ")
	c.stroke(t, ctrl, "k", 75) // there are no pages to go to yet
	c.key(t, kb.Enter)
	c.one(t, "button", "Sign out")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("signed in, there is a dialog: %s", got)
	}
	if got := c.evaluate(t, "location.pathname"); got != "/project/1/insights" {
		t.Errorf("signed in, the path is %s", got)
	}
	c.press(t, "button", "Sign out")
	if c.kept(t) != "" || !works(t, d.Server, own) {
		t.Error("signing out leaves the key in the tab, or revokes it")
	}
}

// TestConsoleKeyEnds: a session whose key is revoked asks for another.
func TestConsoleKeyEnds(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.expect("401")
	if answer := d.Client(d.Project, c.kept(t)).Do(t, http.MethodDelete, currentKey, nil); answer.Status != http.StatusNoContent {
		t.Fatalf("revoking: %d %s", answer.Status, answer.Raw)
	}
	c.visit(t, "insights")
	c.one(t, "button", "Sign in")
	c.shows(t, "Your session has ended. Sign in again.")
	if c.kept(t) != "" {
		t.Error("the tab keeps a key that does not work")
	}
}

// TestConsoleScopes: the navigation has the pages that the key may see, and the others say what they require.
func TestConsoleScopes(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project, "query:read", "person:read", "project:read")
	for name, shown := range map[string]bool{
		"Home": true, "SQL": true, "Live events": true, "People": true, "Keys": true, "Health": true,
		"Dashboards": false, "Insights": false, "Endpoints": false, "Cohorts": false, "Events": false, "Properties": false, "Actions": false,
	} {
		if got := strings.Contains("\n"+c.text(t, "nav a")+"\n", "\n"+name+"\n"); got != shown {
			t.Errorf("%s is in the navigation: %v", name, got)
		}
	}
	c.visit(t, "endpoints")
	c.shows(t, "It needs the scope endpoint:read.")
	if got := c.answers("/endpoints"); len(got) > 1 { // the page itself
		t.Errorf("the page asked the API all the same: %q", got)
	}
}

// TestConsoleOtherProject: an address of another project than the key's does not show the key's own project.
func TestConsoleOtherProject(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	other, _ := d.Server.Project(t, "other")
	c := signedIn(t, d.Server, d.Project)
	c.visit(t, fmt.Sprintf("%s/project/%d/persons", d.URL, other))
	c.shows(t, "This address belongs to another project")
	c.accessible(t)
	c.press(t, "link", "Demo: the history of a public project")
	if got, want := c.evaluate(t, "location.pathname"), fmt.Sprintf("/project/%d", d.Project); got != want {
		t.Errorf("the link leads to %s, want %s", got, want)
	}
}

// TestConsoleNamelessProject: a key that may not read its project can do everything else that it may.
func TestConsoleNamelessProject(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project, "query:read", "insight:read")
	c.expect("403")
	c.press(t, "link", "Insights")
	if got := c.evaluate(t, "location.pathname"); got != "/project/@current/insights" {
		t.Errorf("the path is %s", got)
	}
	for _, r := range c.sent() {
		if r.status == http.StatusNotFound {
			t.Errorf("%s answers 404", r.url)
		}
	}
}

// TestConsolePolicy: every page is sent with the policy that allows nothing from outside.
func TestConsolePolicy(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	const want = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for _, path := range []string{"/", "/project/1/sql", "/project/1/person/x"} {
		answer := d.Client(0, "").Do(t, http.MethodGet, path, nil)
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Security-Policy") != want || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s answers %d %v", path, answer.Status, answer.Header)
		}
	}
	// The policy is enforced: an inline script, a handler, a form and another host are blocked, and the tab complains about each.
	c := signedIn(t, d.Server, d.Project)
	c.expect("policy")
	c.expect("Content Security Policy")
	c.expect("security:")
	got := c.evaluate(t, `(async () => {
		window.ran = [];
		const script = document.createElement("script");
		script.textContent = "ran.push('script')";
		document.body.append(script);
		document.body.insertAdjacentHTML("beforeend", "<img src='data:,' onerror=\"ran.push('handler')\"><form action='/api/' id=f><button></form>");
		try { await fetch("https://example.com/"); ran.push("fetch") } catch {}
		document.querySelector("#f").submit();
		await new Promise((resolve) => setTimeout(resolve, 300));
		return ran.join();
	})()`)
	if got != "" {
		t.Errorf("the policy lets through: %s", got)
	}
}

// TestConsoleFirstLoad: the first page of a project without charts takes at most 200 KB.
func TestConsoleFirstLoad(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	id, _ := d.Server.Project(t, "empty")
	c := signedIn(t, d.Server, id)
	total, parts := 0.0, ""
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sent() {
		at, err := url.Parse(r.url)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(at.Path, "/api/") {
			continue
		}
		if r.status != http.StatusOK {
			t.Errorf("%s answers %d", at.Path, r.status)
		}
		total += c.received[r.id]
		parts += fmt.Sprintf("%8.0f %s\n", c.received[r.id], at.Path)
	}
	if total < 10_000 || total > 200<<10 {
		t.Errorf("the first page takes %.0f bytes:\n%s", total, parts)
	}
}

// first returns a member of the first record in a list.
func first(t *testing.T, c *harness.Client, path, member string) string {
	t.Helper()
	answer := c.Do(t, http.MethodGet, path, nil)
	list, _ := answer.Body["results"].([]any)
	if len(list) == 0 {
		t.Fatalf("%s answers %d %s", path, answer.Status, answer.Raw)
	}
	one, _ := list[0].(map[string]any)
	return fmt.Sprint(one[member])
}

// pages returns the paths of all pages of a project with one of everything.
func pages(t *testing.T, c *harness.Client) []string {
	t.Helper()
	out := []string{
		"", "insights", "insights/new", "dashboard", "sql", "endpoints", "activity/live", "persons", "persons/deletions", "imports", "data-management/events", "data-management/properties",
		"data-management/actions", "cohorts", "keys", "health", "no/such/page",
	}
	answer := c.Do(t, http.MethodGet, "insights/?limit=100", nil)
	list, _ := answer.Body["results"].([]any)
	for _, one := range list {
		insight, _ := one.(map[string]any)
		out = append(out, fmt.Sprint("insights/", insight["short_id"]))
	}
	for path, from := range map[string][2]string{
		"dashboard/": {"dashboards/", "id"}, "endpoints/": {"endpoints/", "name"}, "data-management/actions/": {"actions/", "id"}, "cohorts/": {"cohorts/", "id"},
	} {
		out = append(out, path+first(t, c, from[0], from[1]))
	}
	rows := c.Query(t, "select id from persons order by created_at, id limit 1")
	if len(rows) == 1 {
		row, _ := rows[0].([]any)
		out = append(out, fmt.Sprint("person/", row[0]))
	}
	return out
}

// TestConsoleAccessible checks each page with axe-core, in the light and the dark theme, and in a narrow window.
func TestConsoleAccessible(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := openConsole(t, d.Server, d.Project)
	c.visit(t, d.URL+"/")
	t.Run("signing in", func(t *testing.T) { c.inspect(t, "signing-in") })
	c.signIn(t)
	for _, path := range pages(t, d.Client(d.Project, d.PersonalKey)) {
		t.Run("/"+path, func(t *testing.T) {
			c.visit(t, path)
			c.inspect(t, path)
		})
	}
}

// inspect checks a page in all views.
func (c *console) inspect(t *testing.T, name string) {
	t.Helper()
	for _, width := range []int64{wide, narrow} {
		for _, theme := range []string{light, dark} {
			t.Run(fmt.Sprintf("%s %d", theme, width), func(t *testing.T) {
				c.look(t, theme, width)
				c.settle(t)
				c.accessible(t)
				c.fits(t)
				c.picture(t, fmt.Sprintf("%s-%s-%d", name, theme, width))
			})
		}
	}
	c.look(t, light, wide)
}

// hostile are texts that become code if a page treats them as HTML, an address or a template.
var hostile = []string{
	`<img src=x onerror="window.pwned=1" class=pwned>`,
	`"><script class=pwned>window.pwned=1</script>`,
	`'-(window.pwned=1)-'{{constructor.constructor("window.pwned=1")()}}${window.pwned=1}`,
	`[click](javascript:window.pwned=1) <a class=pwned href="javascript:window.pwned=1">click</a>`,
	`<svg class=pwned onload="window.pwned=1"><style class=pwned>@import "//evil.example/";</style>`,
	`%s %<b class=pwned>b</b>{a|<i class=pwned>}{value}`,
}

// isPwned returns which of the hostile texts took effect. Links on pages only lead to pages.
const isPwned = `(() => {
	const out = [];
	if ("pwned" in window) out.push("code ran");
	for (const e of document.querySelectorAll(".pwned")) out.push(e.outerHTML.slice(0, 200));
	for (const e of document.querySelectorAll("[href], [src], [action], [formaction]"))
		for (const name of ["href", "src", "action", "formaction", "xlink:href"])
			if (/^\s*(javascript|vbscript):/i.test(e.getAttribute(name) ?? "")) out.push(e.outerHTML.slice(0, 200));
	for (const e of document.querySelectorAll("*"))
		for (const a of e.attributes) if (/^on/i.test(a.name)) out.push(e.outerHTML.slice(0, 200));
	return out.join("\n");
})()`

// attack fills a project with hostile texts, in everything that a caller can write.
func attack(t *testing.T, d *harness.Demo) *harness.Client {
	t.Helper()
	id, _ := d.Server.Project(t, `<img src=x onerror="window.pwned=1" class=pwned>`)
	c := d.Client(id, d.Key(t, id, "*", "personal"))
	var lines strings.Builder
	encode := json.NewEncoder(&lines)
	when := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for i, text := range hostile {
		properties := map[string]any{text: text, "page": text, "$current_url": "javascript:window.pwned=1", "$set": map[string]any{text: text, "email": text, "name": text}}
		for n := range 3 {
			who := fmt.Sprintf("%s%d", text, n)
			if err := encode.Encode(map[string]any{"event": text, "distinct_id": who, "timestamp": when, "properties": properties}); err != nil {
				t.Fatal(err)
			}
			if err := encode.Encode(map[string]any{"event": hostile[(i+1)%len(hostile)], "distinct_id": who, "timestamp": when, "properties": properties}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	post := func(path string, body map[string]any) map[string]any {
		t.Helper()
		answer := c.Do(t, http.MethodPost, path, body)
		if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
			t.Fatalf("%s %v: %d %s", path, body, answer.Status, answer.Raw)
		}
		return answer.Body
	}
	series := func(events ...string) (out []any) {
		for _, name := range events {
			out = append(out, map[string]any{"kind": "EventsNode", "event": name, "custom_name": name + "!"})
		}
		return out
	}
	dashboard := post("dashboards/", map[string]any{"name": hostile[0], "description": hostile[1], "tags": []string{hostile[2]}})
	board := fmt.Sprintf("dashboards/%v/", dashboard["id"])
	for i, text := range hostile {
		breakdown := map[string]any{"breakdown": "page", "breakdown_type": "event"}
		days := map[string]any{"date_from": "-3d"}
		queries := []map[string]any{
			{"kind": "TrendsQuery", "series": series(text), "breakdownFilter": breakdown, "dateRange": days},
			{"kind": "TrendsQuery", "series": series(hostile...), "dateRange": days, "trendsFilter": map[string]any{"display": "ActionsPie"}},
			{"kind": "FunnelsQuery", "series": series(text, hostile[(i+1)%len(hostile)]), "breakdownFilter": breakdown, "dateRange": days},
			{"kind": "PathsQuery", "pathsFilter": map[string]any{"includeEventTypes": []string{"custom_event"}}, "dateRange": days},
			{"kind": "StickinessQuery", "series": series(text), "dateRange": days},
			{"kind": "LifecycleQuery", "series": series(text), "dateRange": days},
			{"kind": "RetentionQuery", "retentionFilter": map[string]any{
				"targetEntity": map[string]any{"id": text, "name": text, "type": "events"}, "returningEntity": map[string]any{"id": text, "name": text, "type": "events"},
			}},
		}
		post("insights/", map[string]any{
			"name": text, "description": text, "tags": []string{text}, "dashboards": []any{dashboard["id"]},
			"query": map[string]any{"kind": "InsightVizNode", "source": queries[i%len(queries)]},
		})
		post(board+"create_text_tile/", map[string]any{"body": text + "\n\n# " + text + "\n\n[x](javascript:window.pwned=1) ![x](javascript:window.pwned=1) <javascript:window.pwned=1>"})
		post("actions/", map[string]any{"name": text, "description": text, "tags": []string{text}, "steps": []any{map[string]any{"event": text}}})
		post("cohorts/", map[string]any{"name": text, "description": text, "filters": map[string]any{"properties": map[string]any{"type": "OR", "values": []any{
			map[string]any{"type": "OR", "values": []any{map[string]any{"type": "person", "key": text, "operator": "exact", "value": text}}},
		}}}})
		post("endpoints/", map[string]any{
			"name": fmt.Sprint("attack", i), "description": text,
			"query": map[string]any{"kind": "HogQLQuery", "query": "select event, distinct_id, " + literal(text) + " as x, properties from events limit 20 -- " + text},
		})
		post("insight_variables/", map[string]any{"name": fmt.Sprintf("v%d %s", i, text), "type": "String", "default_value": text})
		post("project_secret_api_keys/", map[string]any{"label": text[:min(len(text), 40)], "scopes": []string{"endpoint:read"}})
	}
	post("insights/", map[string]any{"name": "a table", "query": map[string]any{"kind": "DataVisualizationNode", "source": map[string]any{
		"kind": "HogQLQuery", "query": "select event as `<img src=x onerror=pwned=1 class=pwned>`, properties, distinct_id from events",
	}}})
	post("insights/", map[string]any{"name": "an error", "query": map[string]any{"kind": "DataVisualizationNode", "source": map[string]any{
		"kind": "HogQLQuery", "query": "select `<img src=x onerror=pwned=1 class=pwned>` from events",
	}}})
	return c
}

// literal returns a text as a HogQL literal.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// TestConsoleStoredScripts: what callers write is shown as text on each page.
func TestConsoleStoredScripts(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := attack(t, d)
	c := signedIn(t, d.Server, client.Project)
	c.expect("404")
	c.expect("400") // the insight with an error
	all := pages(t, client)
	for i := range hostile {
		all = append(all, fmt.Sprint("endpoints/attack", i))
	}
	for _, column := range []string{"actions", "cohorts"} {
		answer := client.Do(t, http.MethodGet, column+"/", nil)
		list, _ := answer.Body["results"].([]any)
		for _, one := range list {
			record, _ := one.(map[string]any)
			path := fmt.Sprintf("%s/%v", column, record["id"])
			if column == "actions" {
				path = "data-management/" + path
			}
			all = append(all, path)
		}
	}
	for _, row := range client.Query(t, "select id from persons") {
		cells, _ := row.([]any)
		all = append(all, fmt.Sprint("person/", cells[0]))
	}
	for _, text := range hostile {
		all = append(all, "insights?search="+url.QueryEscape(text), "person/"+url.PathEscape(text), "insights/"+url.PathEscape(text), url.PathEscape(text))
	}
	shown := 0
	for _, path := range all {
		c.visit(t, path)
		if got := c.evaluate(t, isPwned); got != "" {
			t.Errorf("/%s: %s", path, got)
		}
		if strings.Contains(c.text(t, "main"), hostile[0]) {
			shown++
		}
	}
	if shown < 10 {
		t.Errorf("%d pages show what was written: little was tried", shown)
	}
}
