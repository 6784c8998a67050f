package browser_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestConsoleEndsUnsaved: a page with unsaved changes stays when the session ends, and can be saved with another key of the project.
func TestConsoleEndsUnsaved(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "ended")
	c.expect("401")
	_, foreign := c.server.Project(t, "another")
	action := create(t, client, "actions/", map[string]any{"name": "Visit", "steps": []any{map[string]any{"event": "visit"}}})
	revoke := func() {
		t.Helper()
		if answer := c.server.Client(c.project, c.kept(t)).Do(t, http.MethodDelete, currentKey, nil); answer.Status != http.StatusNoContent {
			t.Fatalf("revoking: %d %s", answer.Status, answer.Raw)
		}
	}
	c.visit(t, fmt.Sprint("data-management/actions/", action["id"]))
	c.fill(t, "textbox", "Name", "Visited")
	revoke()
	c.press(t, "button", "Save")
	c.one(t, "dialog", "Sign in")
	c.shows(t, "Your session has ended. Sign in again.")
	c.accessible(t)
	c.press(t, "button", "Close")
	c.press(t, "button", "Save") // asks again
	c.fill(t, "textbox", "Personal key", foreign)
	c.press(t, "button", "Sign in")
	c.shows(t, "This key belongs to another project.")
	own := c.server.Key(t, c.project, "*", "personal")
	c.fill(t, "textbox", "Personal key", own)
	c.press(t, "button", "Sign in")
	c.press(t, "button", "Save")
	if got := record(t, client, fmt.Sprintf("actions/%v/", action["id"]))["name"]; got != "Visited" {
		t.Errorf("the action is called %v", got)
	}
	if got := c.kept(t); got != own {
		t.Errorf("the tab keeps the key %s", got)
	}

	c.visit(t, "keys") // has nothing unsaved
	revoke()
	c.press(t, "tab", "Secret keys")
	c.one(t, "heading", "Sign in")
	c.one(t, "button", "Sign in")
	if got := c.text(t, "dialog"); got != "" {
		t.Errorf("there is a dialog: %s", got)
	}
}
