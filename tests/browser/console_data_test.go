package browser_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// newClient makes a project, and returns a client for it with every scope.
func newClient(t *testing.T, d *harness.Demo, name string) *harness.Client {
	t.Helper()
	id, _ := d.Server.Project(t, name)
	return d.Client(id, d.Key(t, id, "*", "personal"))
}

// capture sends events like an SDK.
func capture(t *testing.T, c *harness.Client, events ...map[string]any) {
	t.Helper()
	token, err := c.Server.CaptureToken(c.Project)
	if err != nil {
		t.Fatal(err)
	}
	answer := c.Do(t, http.MethodPost, "/batch/", map[string]any{"api_key": token, "batch": events})
	if answer.Status != http.StatusOK {
		t.Fatalf("capturing: %d %s", answer.Status, answer.Raw)
	}
}

// imported imports events into a project.
func imported(t *testing.T, c *harness.Client, events ...map[string]any) {
	t.Helper()
	var lines bytes.Buffer
	encode := json.NewEncoder(&lines)
	for _, event := range events {
		if err := encode.Encode(event); err != nil {
			t.Fatal(err)
		}
	}
	c.Server.MustCommand(t, nil, &lines, "import", "--project", strconv.FormatInt(c.Project, 10), "-")
}

// texts returns the strings that a script returns as JSON.
func (c *console) texts(t *testing.T, script string) (out []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.evaluate(t, script)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// column returns the texts of a labeled column of the table, from the first row on.
func (c *console) column(t *testing.T, label string, column int) []string {
	t.Helper()
	return c.texts(t, fmt.Sprintf(`JSON.stringify([...document.querySelectorAll(%s)].map((row) => row.cells[%d].innerText.trim()))`,
		quote(fmt.Sprintf("[aria-label=%q] tbody tr:not([aria-hidden])", label)), column))
}

// wholeTail returns the uuids of all rows in the list of live events, of which the page only contains the visible ones.
const wholeTail = `(async () => {
	const box = document.querySelector(".live-box");
	const seen = new Map();
	for (let top = 0; box && top < box.scrollHeight; top += 200) {
		box.scrollTop = top;
		await new Promise((resolve) => setTimeout(resolve, 100));
		for (const row of box.querySelectorAll("tr[data-uuid]")) seen.set(row.getAttribute("aria-rowindex"), row.dataset.uuid);
	}
	if (box) box.scrollTop = 0;
	return JSON.stringify([...seen.values()]);
})()`

// TestConsoleLiveEvents captures while the page shows the events: each appears once, even those with an old time.
func TestConsoleLiveEvents(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "live")
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "activity/live")
	c.shows(t, "No events yet")
	sent := 0
	more := func(count int, name string) {
		var batch []map[string]any
		for range count {
			sent++
			batch = append(batch, map[string]any{
				"event": name, "distinct_id": fmt.Sprint("visitor-", sent%5), "properties": map[string]any{"number": sent},
				"timestamp": time.Now().Add(-time.Duration(sent%50) * 20 * time.Minute).UTC().Format(time.RFC3339Nano),
			})
		}
		capture(t, client, batch...)
	}
	for i := range 12 {
		more(1+i%7, "visited")
		time.Sleep(300 * time.Millisecond) // so that polls happen in between
	}
	c.shows(t, fmt.Sprintf("%d shown · %d new", sent, sent))
	check := func(where string) {
		t.Helper()
		answer := client.Do(t, http.MethodPost, "query/", map[string]any{"refresh": "force_blocking", "query": map[string]any{
			"kind": "HogQLQuery", "query": "select toString(uuid) from events where " + where + " limit 1000",
		}})
		rows, _ := answer.Body["results"].([]any)
		want := firsts(rows)
		got := c.texts(t, wholeTail)
		slices.Sort(got)
		slices.Sort(want)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("events where %s (-API +page):\n%s", where, diff)
		}
	}
	check("true")

	c.evaluate(t, `document.activeElement.blur(), ""`)
	c.key(t, "p")
	if got := c.text(t, ".live-status"); !strings.Contains(got, "Live") {
		t.Errorf("P pauses although the focus is not in the list: %s", got)
	}
	c.evaluate(t, `document.querySelector("section[aria-label=Events]").focus(), ""`)
	c.key(t, "p")
	c.shows(t, "Paused")
	before := sent
	more(4, "paused")
	client.Shows(t, "select count() from events where event = 'paused'", []any{4.0})
	if got := c.text(t, ".live-status"); !strings.Contains(got, fmt.Sprint(before, " shown")) {
		t.Errorf("paused, the page goes on: %s", got)
	}
	c.press(t, "button", "Resume")
	c.shows(t, fmt.Sprint(sent, " shown"))
	check("true")

	c.fill(t, "searchbox", "Distinct ID", "visitor-3")
	c.shows(t, "Live · ")
	harness.Eventually(t, time.Minute, func() error {
		people := c.column(t, "Events", 1)
		if !slices.Contains(people, "visitor-3") || slices.ContainsFunc(people, func(p string) bool { return p != "" && p != "visitor-3" }) {
			return fmt.Errorf("the page shows events of %q", people)
		}
		return nil
	})
	check("distinct_id = 'visitor-3'")

	more(2_000, "many")
	c.fill(t, "searchbox", "Distinct ID", " ")
	c.shows(t, "only the newest 1,000 are kept")
	if rows, err := strconv.Atoi(c.evaluate(t, `String(document.querySelectorAll("tr[data-uuid]").length)`)); err != nil || rows == 0 || rows > 100 {
		t.Errorf("the page holds %d rows of 1,000", rows)
	}
	c.accessible(t)
}

// TestConsoleEventDetails opens an event in the list: its properties, its elements and its person.
func TestConsoleEventDetails(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "details")
	imported(t, client, map[string]any{
		"event": "$autocapture", "distinct_id": "ann", "timestamp": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
		"properties": map[string]any{"plan": "pro", "seats": 3, "$elements_chain": `button.big:text="Go on";form`, "$set": map[string]any{"email": "ann@example.com"}},
	})
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "activity/live")
	c.press(t, "button", "$autocapture")
	c.shows(t, "seats")
	if got, want := c.column(t, "Properties of the event", 2), []string{"text", "number", "text", "object"}; !slices.Equal(got, want) {
		t.Errorf("types of the properties: %q, want %q", got, want)
	}
	c.press(t, "tab", "Elements (2)")
	c.shows(t, "Go on")
	c.press(t, "tab", "Person")
	c.shows(t, "ann@example.com")
	c.press(t, "tab", "JSON")
	c.shows(t, `"elements_chain": "button.big:text=\"Go on\";form"`)
	c.accessible(t)
	c.evaluate(t, `[...document.querySelectorAll("dialog a")].at(-1).click(), ""`)
	c.settle(t)
	c.one(t, "heading", "ann@example.com")
}

// TestConsolePeople searches for people, and opens one of them.
func TestConsolePeople(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	api := d.Client(d.Project, d.PersonalKey)
	c := signedIn(t, d.Server, d.Project)
	c.visit(t, "persons")
	list := api.Do(t, http.MethodGet, "persons/?limit=50&include_total=true", nil).Body
	count, _ := list["count"].(float64)
	c.shows(t, grouped(int(count))+" people")
	records, _ := list["results"].([]any)
	if got, want := c.column(t, "People", 0), membersOf(records, "name"); !slices.Equal(got, want) {
		t.Errorf("the page lists %q, the API %q", got, want)
	}
	c.press(t, "button", "Next")
	next, _ := api.Do(t, http.MethodGet, "persons/?limit=50&offset=50", nil).Body["results"].([]any)
	if got, want := c.column(t, "People", 0), membersOf(next, "name"); !slices.Equal(got, want) {
		t.Errorf("the second page lists %q, the API %q", got, want)
	}

	busy := api.Query(t, "select distinct_id, count(), toString(any(person_id)) from events group by distinct_id order by count() desc, distinct_id limit 1")
	cells, _ := busy[0].([]any)
	distinct, person := fmt.Sprint(cells[0]), fmt.Sprint(cells[2])
	c.fill(t, "searchbox", "Search", distinct)
	harness.Eventually(t, time.Minute, func() error {
		if got := c.column(t, "People", 0); len(got) != 1 {
			return fmt.Errorf("the page finds %q", got)
		}
		return nil
	})
	c.press(t, "link", distinct)
	c.one(t, "heading", distinct)
	events := api.Query(t, fmt.Sprintf("select event from events where person_id = '%s' order by timestamp desc, uuid desc limit 50", person))
	if got, want := c.column(t, "Events of the person", 0), firsts(events); !slices.Equal(got, want) {
		t.Errorf("the timeline has %q, the API %q", got, want)
	}
	c.press(t, "tab", "Cohorts")
	in, _ := api.Do(t, http.MethodGet, "persons/cohorts/?person_id="+person, nil).Body["results"].([]any)
	if got, want := c.column(t, "Cohorts of the person", 0), membersOf(in, "name"); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the person is in %q, by the API in %q", got, want)
	}
	c.visit(t, "person/"+url.PathEscape(distinct)) // distinct ids work, too
	c.one(t, "heading", distinct)
}

// membersOf returns the texts of a member of records.
func membersOf(records []any, member string) []string {
	var out []string
	for _, one := range records {
		record, _ := one.(map[string]any)
		out = append(out, fmt.Sprint(record[member]))
	}
	return out
}

// firsts returns the texts in the first column of rows.
func firsts(rows []any) []string {
	var out []string
	for _, row := range rows {
		cells, _ := row.([]any)
		out = append(out, fmt.Sprint(cells[0]))
	}
	return out
}

// grouped formats a number like the pages do: 12,345.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TestConsoleDefinitions lists events and properties, opens one of each, and describes an event.
func TestConsoleDefinitions(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "definitions")
	when := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for i, plan := range []string{"pro", "pro", "free"} {
		imported(t, client, map[string]any{
			"event": "signed up", "distinct_id": fmt.Sprint("user-", i), "timestamp": when,
			"properties": map[string]any{"plan": plan, "$set": map[string]any{"tier": plan}},
		})
	}
	imported(t, client, map[string]any{"event": "paid", "distinct_id": "user-1", "timestamp": when, "properties": map[string]any{"amount": 9}})
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "data-management/events")
	got := map[string]string{}
	volumes := c.column(t, "Events", 2)
	for i, name := range c.column(t, "Events", 0) {
		got[name] = volumes[i]
	}
	if want := map[string]string{"signed up": "3", "paid": "1"}; !maps.Equal(got, want) {
		t.Errorf("the page lists %v, want %v", got, want)
	}
	c.press(t, "link", "signed up")
	if got := c.column(t, "Recent events", 0); !slices.Equal(got, []string{"signed up", "signed up", "signed up"}) {
		t.Errorf("recent events: %q", got)
	}
	c.press(t, "button", "Edit")
	c.fill(t, "textbox", "Description", "Made an account")
	c.fill(t, "textbox", "Tags", "growth, core")
	c.press(t, "checkbox", "Verified")
	c.press(t, "button", "Save")
	c.shows(t, "Made an account")
	saved := client.Do(t, http.MethodGet, "event_definitions/by_name/?name=signed+up", nil).Body
	if saved["description"] != "Made an account" || saved["verified"] != true {
		t.Errorf("saved: %v", saved)
	}
	c.press(t, "link", "Use in an insight")
	if got := c.evaluate(t, `new URLSearchParams(location.search).get("q")`); !strings.Contains(got, `"event":"signed up"`) {
		t.Errorf("the insight's query is %s", got)
	}

	c.visit(t, "data-management/properties")
	c.press(t, "link", "plan")
	if got := c.column(t, "Events with the property", 1); !slices.Equal(got, []string{"3"}) {
		t.Errorf("the property occurs %q times", got)
	}
	values := c.column(t, "Values", 0)
	slices.Sort(values)
	if !slices.Equal(values, []string{"free", "pro"}) {
		t.Errorf("values of the property: %q", values)
	}
	c.visit(t, "data-management/properties?type=person")
	c.press(t, "link", "tier")
	if got := c.column(t, "Values", 1); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("people with the values: %q", got)
	}
}

// drafts are steps for which the preview of an action must count the same as the server.
var drafts = []map[string]any{
	{"event": "paid"},
	{"event": "$pageview", "url": "/Docs"},
	{"event": "$pageview", "url": "https://example.com/docs", "url_matching": "exact"},
	{"url": "^https://example\\.com/(docs|a'b)", "url_matching": "regex"},
	{"event": "$pageview", "url": "do_s%/intro"},
	{"event": "$autocapture"},
	{"event": "$autocapture", "text": "Sign up"},
	{"event": "$autocapture", "text": "sign", "text_matching": "contains"},
	{"event": "$autocapture", "text": "^Sign (up|in)$", "text_matching": "regex"},
	{"event": "$autocapture", "href": "/go"},
	{"event": "$autocapture", "href": "/GO", "href_matching": "contains"},
	{"event": "$autocapture", "tag_name": "button"},
	{"event": "$autocapture", "selector": "form.signup > button"},
	{"event": "paid", "selector": "form.signup > button", "text": "Sign up"}, // only applies to clicks
	{"event": "paid", "properties": []any{map[string]any{"type": "event", "key": "plan", "operator": "exact", "value": []string{"it's"}}}},
	{"properties": []any{map[string]any{"type": "person", "key": "tier", "operator": "exact", "value": "gold"}}},
	{},
}

// TestConsoleActionPreview: the preview, which queries with the steps in the form, has the same count as the saved action.
func TestConsoleActionPreview(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "previews")
	when := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	var events []map[string]any
	add := func(event string, properties map[string]any) {
		who := fmt.Sprint("user-", len(events)%3)
		if who == "user-1" {
			properties["$set"] = map[string]any{"tier": "gold"}
		}
		events = append(events, map[string]any{"event": event, "distinct_id": who, "timestamp": when, "properties": properties})
	}
	for _, page := range []string{"https://example.com/docs", "https://example.com/Docs", "https://example.com/docs/intro", "https://example.com/a'b", "https://example.com/"} {
		add("$pageview", map[string]any{"$current_url": page})
	}
	for _, chain := range []string{
		`button:text="Sign up";form.signup;body`, `button:text="Sign in";div;form.signup;body`, `a:attr__href="/go"href="/go"text="Go";body`, `span:text="design";button;body`,
	} {
		add("$autocapture", map[string]any{"$elements_chain": chain})
	}
	add("paid", map[string]any{"plan": "it's"})
	add("paid", map[string]any{"plan": "pro"})
	imported(t, client, events...)
	c := signedIn(t, d.Server, client.Project)
	counts := map[int]bool{}
	for i, steps := range append(oneByOne(drafts), []any{drafts[0], drafts[6]}, []any{drafts[0], drafts[16]}) {
		made := client.Do(t, http.MethodPost, "actions/", map[string]any{"name": fmt.Sprint("draft ", i), "steps": steps}).Body
		id, _ := made["id"].(float64)
		answer := client.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
			"kind": "EventsQuery", "select": []string{"count()"}, "actionId": id, "after": "-7d",
		}})
		rows, _ := answer.Body["results"].([]any)
		want := firsts(rows)
		c.visit(t, fmt.Sprintf("data-management/actions/%d", int(id)))
		got := []string{c.evaluate(t, `document.querySelector(".actions-count")?.dataset.count ?? document.body.innerText`)}
		if !slices.Equal(got, want) {
			t.Errorf("%v: the preview counts %q, the saved action %q", steps, got, want)
		}
		n, _ := strconv.Atoi(cmp.Or(strings.Join(want, ""), "-1"))
		counts[n] = true
	}
	if len(counts) < 5 {
		t.Errorf("the actions match %v events: nothing is told apart", counts)
	}
}

// oneByOne makes an action for each step.
func oneByOne(steps []map[string]any) (out [][]any) {
	for _, step := range steps {
		out = append(out, []any{step})
	}
	return out
}

// TestConsoleActions makes, changes and deletes an action.
func TestConsoleActions(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "actions")
	when := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for i := range 3 {
		imported(t, client, map[string]any{"event": "paid", "distinct_id": "ann", "timestamp": when, "properties": map[string]any{"$current_url": fmt.Sprint("https://example.com/", i)}})
	}
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "data-management/actions")
	c.shows(t, "No actions yet")
	c.press(t, "link", "New action")
	c.fill(t, "textbox", "Name", "Bought")
	c.fill(t, "combobox", "Event", "paid")
	c.press(t, "option", "paid")
	c.fill(t, "textbox", "URL", "/2")
	c.shows(t, "1 event\n")
	c.press(t, "button", "Save")
	c.shows(t, "Nothing uses it")
	id := first(t, client, "actions/", "id")
	record := client.Do(t, http.MethodGet, "actions/"+id+"/", nil).Body
	steps, _ := record["steps"].([]any)
	step, _ := steps[0].(map[string]any)
	if record["name"] != "Bought" || len(steps) != 1 || step["event"] != "paid" || step["url"] != "/2" || step["url_matching"] != "contains" {
		t.Errorf("saved: %v", record)
	}
	client.Do(t, http.MethodPost, "insights/", map[string]any{"name": "Sales", "query": map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "ActionsNode", "id": record["id"]}}}})
	c.visit(t, "data-management/actions/"+id)
	if got := c.column(t, "Used by", 1); !slices.Equal(got, []string{"Sales"}) {
		t.Errorf("the action is used by %q", got)
	}
	c.fill(t, "textbox", "Name", "Paid")
	c.press(t, "link", "Cohorts")
	c.shows(t, "The changes of this action are not saved.")
	c.press(t, "button", "Stay")
	c.press(t, "button", "Sign out")
	c.shows(t, "The changes of this action are not saved.")
	c.press(t, "button", "Stay")
	c.press(t, "button", "Delete")
	c.evaluate(t, `document.querySelector("dialog [type=submit]").click(), ""`)
	c.settle(t)
	c.shows(t, "No actions yet")
	if answer := client.Do(t, http.MethodGet, "actions/"+id+"/", nil); answer.Body["deleted"] != true {
		t.Errorf("after deleting: %s", answer.Raw)
	}

	reader := signedIn(t, d.Server, client.Project, "action:read", "query:read", "project:read")
	reader.visit(t, "data-management/actions")
	if links := reader.find(t, "link", "New action"); len(links) != 0 {
		t.Error("a key that may not write sees the link to a new action")
	}
}

// TestConsoleCohorts makes a dynamic and a static cohort, and changes the members of the static one.
func TestConsoleCohorts(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "cohorts")
	when := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for who, times := range map[string]int{"ann": 3, "ben": 2, "cem": 1} {
		for i := range times {
			imported(t, client, map[string]any{"event": "paid", "distinct_id": who, "timestamp": when, "properties": map[string]any{"number": i, "$set": map[string]any{"email": who + "@example.com"}}})
		}
	}
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "cohorts")
	c.press(t, "link", "New cohort")
	c.fill(t, "textbox", "Name", "Regulars")
	c.pick(t, "Criterion 1: kind", "performed_event_multiple")
	c.fill(t, "combobox", "Criterion 1: event", "paid")
	c.press(t, "option", "paid")
	c.fill(t, "spinbutton", "Criterion 1: times", "2")
	c.press(t, "link", "Home")
	c.shows(t, "The new cohort is not saved.")
	c.press(t, "button", "Stay")
	c.press(t, "button", "Create")
	c.one(t, "heading", "Regulars")
	id := first(t, client, "cohorts/", "id")
	members := func(want ...string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			got := c.column(t, "Members", 0)
			slices.Sort(got)
			if size := c.text(t, ".cohorts-figures dd:first-of-type"); !slices.Equal(got, want) || !strings.HasPrefix(size, strconv.Itoa(len(want))) {
				return fmt.Errorf("the members are %q (%s), want %q", got, size, want)
			}
			return nil
		})
	}
	members("ann@example.com", "ben@example.com")
	if record := client.Do(t, http.MethodGet, "cohorts/"+id+"/", nil); record.Body["count"] != 2.0 {
		t.Errorf("the API's record: %s", record.Raw)
	}
	c.press(t, "tab", "Criteria")
	c.fill(t, "spinbutton", "Criterion 1: times", "3")
	c.press(t, "tab", "Members")
	c.press(t, "link", "Cohorts")
	c.shows(t, "The changed criteria of this cohort are not saved.")
	c.press(t, "button", "Stay")
	c.press(t, "tab", "Criteria")
	c.press(t, "button", "Save criteria")
	c.press(t, "tab", "Members")
	members("ann@example.com")

	c.visit(t, "cohorts/new")
	c.fill(t, "textbox", "Name", "Asked")
	c.press(t, "button", "Static")
	c.pick(t, "Or a list of", "email")
	c.fill(t, "textbox", "List", "ben@example.com\nnobody@example.com")
	c.press(t, "button", "Create")
	c.one(t, "heading", "Asked Static")
	members("ben@example.com")
	c.press(t, "button", "Add people")
	c.fill(t, "textbox", "List", "cem\nann")
	c.press(t, "button", "Add")
	members("ann@example.com", "ben@example.com", "cem@example.com")
	c.press(t, "button", "Remove ben@example.com")
	members("ann@example.com", "cem@example.com")
	c.accessible(t)
	// For a key that may not read people, there is no tab of members, and a list has no criteria.
	blind := signedIn(t, d.Server, client.Project, "cohort:read", "project:read")
	blind.visit(t, strings.TrimPrefix(c.path(t), fmt.Sprintf("/project/%d/", client.Project)))
	blind.one(t, "tabpanel", "Used by (0)")

	c.visit(t, "cohorts/"+id)
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Duplicate as static")
	c.one(t, "heading", "Regulars (static copy) Static")
	members("ann@example.com")
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete")
	c.evaluate(t, `document.querySelector("dialog [type=submit]").click(), ""`)
	c.settle(t)
	if got := c.column(t, "Cohorts", 0); !slices.Equal(got, []string{"Asked", "Regulars"}) {
		t.Errorf("after deleting there are %q", got)
	}
}
