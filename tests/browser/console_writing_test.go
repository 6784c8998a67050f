package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// append types at the end of a labeled field.
func (c *console) append(t *testing.T, label, text string) {
	t.Helper()
	c.evaluate(t, fmt.Sprintf(`(() => {
		const field = [...document.querySelectorAll("input, textarea")].find((e) => e.labels[0]?.innerText === %s);
		field.focus();
		field.setSelectionRange(field.value.length, field.value.length);
		document.execCommand("insertText", false, %s);
		return "";
	})()`, quote(label), quote(text)))
	c.settle(t)
}

// TestConsoleLines: a description keeps its line breaks when something is appended, and the record keeps what others change meanwhile.
func TestConsoleLines(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := newClient(t, d, "lines")
	c := signedIn(t, d.Server, client.Project)
	const lines = "one\ntwo"
	trend := map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}}}
	with := func(path string, body map[string]any) map[string]any {
		t.Helper()
		body["description"] = lines
		return create(t, client, path, body)
	}
	board := with("dashboards/", map[string]any{"name": "Growth"})
	insight := with("insights/", map[string]any{"name": "Visits", "query": trend})
	action := with("actions/", map[string]any{"name": "Visit", "steps": []any{map[string]any{"event": "visit"}}})
	cohort := with("cohorts/", map[string]any{"name": "People", "is_static": true})
	event := with("event_definitions/", map[string]any{"name": "visit"})
	with("endpoints/", map[string]any{"name": "visits", "query": trend})
	menu := func(item string) func() {
		return func() {
			c.press(t, "button", "More")
			c.press(t, "menuitem", item)
		}
	}
	for _, one := range []struct {
		page, record, save string
		other              string // a field that is changed while the form is open
		value              any
		open               func()
	}{
		{fmt.Sprint("dashboard/", board["id"]), fmt.Sprintf("dashboards/%v/", board["id"]), "Save", "name", "Another", menu("Name, description, tags")},
		{fmt.Sprint("insights/", insight["short_id"]), fmt.Sprintf("insights/%v/", insight["id"]), "Save", "name", "Another", menu("Name, description, tags")},
		{fmt.Sprint("data-management/actions/", action["id"]), fmt.Sprintf("actions/%v/", action["id"]), "Save", "name", "Another", func() {}},
		{fmt.Sprint("cohorts/", cohort["id"]), fmt.Sprintf("cohorts/%v/", cohort["id"]), "Save", "name", "Another", menu("Rename")},
		{fmt.Sprint("data-management/events/", event["id"]), fmt.Sprintf("event_definitions/%v/", event["id"]), "Save", "hidden", true, func() { c.press(t, "button", "Edit") }},
		{"endpoints/visits", "endpoints/visits/", "Save version", "data_freshness_seconds", 60.0, func() { c.press(t, "tab", "Settings") }},
	} {
		c.visit(t, one.page)
		one.open()
		must(t, client, http.MethodPatch, one.record, map[string]any{one.other: one.value})
		c.append(t, "Description", "\nthree")
		c.evaluate(t, fmt.Sprintf(`[...document.querySelectorAll("[type=submit]")].find((e) => e.innerText === %s).click(), ""`, quote(one.save)))
		c.settle(t)
		saved := record(t, client, one.record)
		if got, want := saved["description"], lines+"\nthree"; got != want {
			t.Errorf("the description of %s is %q, want %q", one.page, got, want)
		}
		if got := saved[one.other]; got != one.value {
			t.Errorf("%s of %s is %v, want %v", one.other, one.page, got, one.value)
		}
	}
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.shows(t, lines+"\nthree")
}

// TestConsoleEscape: Escape closes a form at once if nothing was typed into it, and otherwise asks first.
func TestConsoleEscape(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "escape")
	c.visit(t, "dashboard")
	c.press(t, "button", "New dashboard")
	c.key(t, kb.Escape)
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("after Escape, there is still a form: %s", got)
	}
	c.press(t, "button", "New dashboard")
	c.fill(t, "textbox", "Name", "Retention")
	for range 3 { // Escape also closes the question
		c.key(t, kb.Escape)
		c.one(t, "dialog", "Discard changes?")
		c.key(t, kb.Escape)
		c.one(t, "dialog", "New dashboard")
	}
	c.key(t, kb.Escape)
	c.accessible(t)
	c.press(t, "button", "Keep writing")
	c.press(t, "button", "Create")
	c.one(t, "heading", "Retention")
	c.press(t, "link", "Dashboards")
	c.press(t, "button", "New dashboard")
	c.fill(t, "textbox", "Name", "Growth")
	c.key(t, kb.Escape)
	c.press(t, "button", "Discard")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("after Discard, there is still a form: %s", got)
	}
	if got := c.focus(t); got != "New dashboard" {
		t.Errorf("after Discard, the focus is on %q", got)
	}
	if got := record(t, client, "dashboards/")["count"]; got != 1.0 {
		t.Errorf("there are %v dashboards", got)
	}
}

// TestConsoleLeavingBack: the form of an import asks before the page is left, even by Back, and the history stays intact.
func TestConsoleLeavingBack(t *testing.T) {
	t.Parallel()
	c, _ := ownProject(t, "leaving")
	back := func() {
		t.Helper()
		c.evaluate(t, `history.back(), ""`)
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(`{"event": "visit", "distinct_id": "ann", "timestamp": "2024-01-31T10:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"Dashboards", "Keys", "Imports"} {
		c.press(t, "link", page)
	}
	c.attach(t, file)
	entries := c.evaluate(t, "String(history.length)")
	for range 2 {
		back()
		c.one(t, "dialog", "Leave this page?")
		c.arrives(t, "imports")
		c.press(t, "button", "Stay")
	}
	if got := c.evaluate(t, "String(history.length)"); got != entries {
		t.Errorf("the history has %s entries, it had %s", got, entries)
	}
	back()
	c.press(t, "button", "Leave")
	c.arrives(t, "keys")
	back()
	c.arrives(t, "dashboard")
	c.evaluate(t, `history.go(2), ""`)
	c.arrives(t, "imports")

	c.attach(t, file)
	c.press(t, "checkbox", "Dry run: check the file and say what it would bring, without writing")
	c.press(t, "button", "Import the file")
	c.imports(t, "Completed")
	c.press(t, "link", "Keys")
	c.arrives(t, "keys")
}

// TestConsoleLeavingForm: a form in which something was written asks before Back, a reload or the end of the session takes it away, and not
// when it is saved or closed.
func TestConsoleLeavingForm(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "leaving a form")
	back := func() { c.evaluate(t, `history.back(), ""`) }
	reloads := func() bool {
		return c.evaluate(t, `String(dispatchEvent(new Event("beforeunload", { cancelable: true })))`) == "true"
	}
	for _, page := range []string{"Keys", "Dashboards"} {
		c.press(t, "link", page)
	}
	c.press(t, "button", "New dashboard")
	if !reloads() {
		t.Error("an untouched form asks before a reload")
	}
	c.fill(t, "textbox", "Name", "Growth")
	if reloads() {
		t.Error("a form with something written does not ask before a reload")
	}
	back()
	c.one(t, "dialog", "Leave this page?")
	c.shows(t, "What you wrote into “New dashboard” is not saved.")
	c.accessible(t)
	c.picture(t, "leaving a form")
	c.press(t, "button", "Stay")
	c.arrives(t, "dashboard")
	c.press(t, "button", "Create")
	board := record(t, client, "dashboards/")["results"].([]any)[0].(map[string]any)
	c.arrives(t, fmt.Sprint("dashboard/", board["id"]))
	back()
	c.arrives(t, "dashboard")

	c.press(t, "button", "New dashboard")
	c.fill(t, "textbox", "Name", "Growth")
	back()
	c.press(t, "button", "Leave")
	c.arrives(t, "keys")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("the form is still there: %s", got)
	}

	c.press(t, "link", "Endpoints")
	c.press(t, "button", "New endpoint")
	c.fill(t, "textbox", "Name", "sales")
	back()
	c.press(t, "button", "Leave")
	c.arrives(t, "endpoints")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("the form of an endpoint is still there: %s", got)
	}
	c.press(t, "button", "New endpoint")
	c.fill(t, "textbox", "Name", "sales")
	c.press(t, "button", "Cancel")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("Cancel leaves %s", got)
	}
	if !reloads() {
		t.Error("a form that was closed asks before a reload")
	}
}

// TestConsoleTabKeys moves through tabs and menus with Home and End.
func TestConsoleTabKeys(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "tab keys")
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	on := func(want string) {
		t.Helper()
		if got := c.focus(t); got != want {
			t.Errorf("the focus is on %q, want %q", got, want)
		}
	}
	c.visit(t, "keys")
	c.press(t, "tab", "Secret keys")
	c.key(t, kb.End)
	last := c.focus(t)
	c.key(t, kb.Home)
	first := c.focus(t)
	c.key(t, kb.ArrowLeft)
	on(last)
	if first == last {
		t.Errorf("Home and End go to %q", first)
	}
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.press(t, "button", "More")
	c.key(t, kb.End)
	on("Delete")
	c.key(t, kb.Home)
	on("Name, description, tags")
	c.key(t, kb.ArrowUp)
	on("Delete")
}

// TestConsoleEndpointDays: the days of a version are in the project's time zone.
func TestConsoleEndpointDays(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	id, key := d.Server.Project(t, "days", "--timezone", "America/New_York")
	client := d.Client(id, key)
	create(t, client, "endpoints/", map[string]any{"name": "one", "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
	c := signedIn(t, d.Server, id)
	c.visit(t, "endpoints/one")
	c.press(t, "tab", "Settings")
	c.evaluate(t, `(() => {
		const field = document.querySelector("input[type=date]");
		field.value = "2026-06-30";
		field.dispatchEvent(new Event("input", { bubbles: true }));
		return "";
	})()`)
	c.press(t, "button", "Save version")
	if got, want := must(t, client, http.MethodGet, "endpoints/one/", nil)["deprecated_at"], "2026-06-30T04:00:00Z"; got != want {
		t.Errorf("deprecated at %v, want %s", got, want)
	}
	c.visit(t, "endpoints/one")
	c.press(t, "tab", "Settings")
	if got := c.evaluate(t, `document.querySelector("input[type=date]").value`); got != "2026-06-30" {
		t.Errorf("the field has %q", got)
	}
}
