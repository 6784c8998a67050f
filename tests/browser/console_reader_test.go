package browser_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// readScopes are the scopes of a key that cannot change anything.
var readScopes = strings.Fields("query:read insight:read dashboard:read endpoint:read insight_variable:read user:read project:read organization:read cohort:read " +
	"action:read alert:read event_definition:read property_definition:read group:read person:read")

// changes are the names of buttons and links that change stored data. Writing and running a query, and trying an insight, do not.
var changes = regexp.MustCompile(`(?i)^(save\b|delete|create|revoke|roll\b|roll back|rename|publish|promote|restore|new (\w+ )?(dashboard|endpoint|action|cohort|key|alert|text)|add (to dashboard|insight|text|tile|member)|remove from|edit (dashboard|endpoint|action|cohort|name|details)|upload|pin\b|unpin)`)

// offers returns the names of the controls on the page that change something.
func (c *console) offers(t *testing.T) (names []string) {
	t.Helper()
	all := c.evaluate(t, `[...document.querySelectorAll("button, a, [role=button], [role=menuitem]")]
		.filter((e) => e.checkVisibility() && !e.disabled).map((e) => e.getAttribute("aria-label") ?? e.innerText.trim()).join("\n")`)
	for name := range strings.SplitSeq(all, "\n") {
		if changes.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// TestConsoleReader: for a read-only key, the page has no button that would be refused, and sends no request that is.
func TestConsoleReader(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	writer := signedIn(t, d.Server, d.Project)
	for _, path := range []string{"insights/new", "dashboard", "keys"} {
		writer.visit(t, path)
		if names := writer.offers(t); len(names) == 0 {
			t.Errorf("/%s has nothing that changes something, for a key that may", path)
		}
	}
	c := signedIn(t, d.Server, d.Project, readScopes...)
	for _, path := range pages(t, d.Client(d.Project, d.PersonalKey)) {
		c.visit(t, path)
		if names := c.offers(t); len(names) > 0 {
			t.Errorf("/%s has %q", path, names)
		}
	}
	for _, r := range c.sent() {
		if r.status == http.StatusForbidden || r.method != http.MethodGet && r.method != http.MethodPost {
			t.Errorf("%s %s answers %d", r.method, r.url, r.status)
		}
	}
}

// TestConsoleAnnounces: a screen reader says in a line that an endpoint has answered, and does not read out the answer.
func TestConsoleAnnounces(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	made := client.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "announced", "query": map[string]any{"kind": "HogQLQuery", "query": "select number, number * 2 as double from numbers(100)"},
	})
	if made.Status != http.StatusCreated {
		t.Fatalf("creating the endpoint: %d %s", made.Status, made.Raw)
	}
	t.Cleanup(func() { client.Do(t, http.MethodDelete, "endpoints/announced/", nil) })
	c := signedIn(t, d.Server, d.Project)
	c.visit(t, "endpoints/announced")
	for _, view := range []string{"Rows", "As sent"} {
		if view == "Rows" {
			c.press(t, "button", "Run")
		} else {
			c.press(t, "button", view)
		}
		c.shows(t, "100 rows")
		if got := c.text(t, ".endpoints-try [role=status]"); !strings.HasPrefix(got, "Computed now") {
			t.Errorf("%s: a screen reader says %q", view, got)
		}
		got := c.evaluate(t, `(() => {
			const answers = [...document.querySelectorAll(".endpoints-answer :is(.grid, pre)")];
			return answers.length + " " + answers.filter((e) => e.closest("[aria-live], [role=status]")).length;
		})()`)
		if got != "1 0" {
			t.Errorf("%s: answers in the page, and those that a screen reader reads out: %s, want 1 0", view, got)
		}
	}
}
