package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// secretShown returns the key shown in a dialog, and closes the dialog.
func (c *console) secretShown(t *testing.T) string {
	t.Helper()
	c.shows(t, "It is not shown again.")
	c.key(t, kb.Escape) // closes other dialogs
	key := strings.TrimSpace(c.evaluate(t, `document.querySelector(".keys-secret code").textContent`))
	c.press(t, "button", "Done")
	if strings.Contains(c.text(t, "body"), key) {
		t.Error("the page still shows the key")
	}
	return key
}

// runsWith returns the status of running an endpoint with a key, and the plans in its rows.
func runsWith(t *testing.T, c *harness.Client, key, endpoint string, body map[string]any) (status int, plans string) {
	t.Helper()
	answer := c.Server.Client(c.Project, key).Do(t, http.MethodPost, "endpoints/"+endpoint+"/run", body)
	rows, _ := answer.Body["results"].([]any)
	seen := map[string]bool{}
	for _, row := range rows {
		cells, _ := row.([]any)
		plan, _ := cells[1].(string)
		if !seen[plan] {
			seen[plan] = true
			plans += plan
		}
	}
	return answer.Status, plans
}

// TestConsoleSecretKeyLife: a key made for one customer only runs for that customer, until it is rolled or revoked.
func TestConsoleSecretKeyLife(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client, "sales", "others")
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "keys?tab=secret")
	c.shows(t, "No secret keys")

	c.press(t, "button", "New secret key")
	c.fill(t, "textbox", "Label", "acme")
	c.fill(t, "combobox", "Endpoints", "sal")
	c.press(t, "option", "sales")
	c.fill(t, "textbox", "Fixed variables", "plan = free")
	c.accessible(t)
	c.picture(t, "key new")
	c.press(t, "button", "Create key")
	first := c.secretShown(t)
	c.shows(t, "plan = free; only sales")
	for _, run := range []struct {
		endpoint string
		body     map[string]any
		status   int
		plans    string
	}{
		{"sales", map[string]any{}, 200, "free"},
		{"sales", map[string]any{"variables": map[string]any{"plan": "pro"}}, 403, ""},
		{"others", map[string]any{}, 403, ""},
	} {
		if status, plans := runsWith(t, client, first, run.endpoint, run.body); status != run.status || plans != run.plans {
			t.Errorf("%s with %v: %d with the plans %q", run.endpoint, run.body, status, plans)
		}
	}

	c.press(t, "button", "Actions for acme")
	c.press(t, "menuitem", "Roll…")
	c.press(t, "button", "Roll")
	second := c.secretShown(t)
	if status, _ := runsWith(t, client, first, "sales", map[string]any{}); status != http.StatusUnauthorized {
		t.Errorf("the rolled key: %d", status)
	}
	if status, plans := runsWith(t, client, second, "sales", map[string]any{}); status != http.StatusOK || plans != "free" {
		t.Errorf("the new key: %d with the plans %q", status, plans)
	}

	c.press(t, "button", "Actions for acme")
	c.press(t, "menuitem", "Rename…")
	c.fill(t, "textbox", "Label", "Acme Ltd")
	c.press(t, "button", "Save")
	c.press(t, "button", "Actions for Acme Ltd")
	c.press(t, "menuitem", "Revoke…")
	c.press(t, "button", "Revoke")
	c.shows(t, "No secret keys")
	if status, _ := runsWith(t, client, second, "sales", map[string]any{}); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", status)
	}
}

// TestConsoleToken: a token is made with a secret key that the page does not store.
func TestConsoleToken(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client, "sales")
	secret := d.Key(t, client.Project, "endpoint:read", "secret")
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "endpoints/sales?tab=tokens")
	c.fill(t, "textbox", "plan", "free")
	c.press(t, "checkbox", "The token fixes plan")
	c.fill(t, "textbox", "Sites", "")
	c.fill(t, "textbox", "Secret key", secret)
	c.press(t, "button", "Create a token")
	c.shows(t, "It works until")
	token := c.evaluate(t, `document.querySelector(".endpoints-minted code").textContent`)
	if status, plans := runsWith(t, client, token, "sales", map[string]any{}); status != http.StatusOK || plans != "free" {
		t.Errorf("a run with the token: %d with the plans %q", status, plans)
	}
	if status, _ := runsWith(t, client, token, "sales", map[string]any{"variables": map[string]any{"plan": "pro"}}); status != http.StatusForbidden {
		t.Errorf("a run with another plan: %d", status)
	}
	kept := c.evaluate(t, `JSON.stringify([document.documentElement.outerHTML, [...document.querySelectorAll("input")].map((i) => i.value), { ...localStorage }, { ...sessionStorage }])`)
	if strings.Contains(kept, secret) {
		t.Error("the page keeps the secret key")
	}
}

// TestConsolePersonalKeyLife: a key is made, changed, rolled and revoked, and the page marks the key that it uses itself.
func TestConsolePersonalKeyLife(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "keys")
	if got := c.evaluate(t, `String([...document.querySelectorAll("main tbody tr")].filter((row) => /\bYou\b/.test(row.innerText)).length)`); got != "1" {
		t.Errorf("%s keys are marked as the one in use", got)
	}
	c.press(t, "button", "New personal key")
	c.fill(t, "textbox", "Label", "tool")
	c.press(t, "button", "Run endpoints")
	c.pick(t, "Insights", "read")
	c.pick(t, "Expires", "7")
	c.accessible(t)
	c.picture(t, "key personal")
	c.press(t, "button", "Create key")
	first := c.secretShown(t)
	asks := func(key, path string) int {
		return d.Client(client.Project, key).Do(t, http.MethodGet, path, nil).Status
	}
	for path, want := range map[string]int{"endpoints/": 200, "insights/": 200, "dashboards/": 403} {
		if got := asks(first, path); got != want {
			t.Errorf("%s with the key: %d", path, got)
		}
	}

	c.press(t, "button", "Actions for tool")
	c.press(t, "menuitem", "Change…")
	c.pick(t, "Dashboards", "write")
	c.press(t, "button", "Save")
	if got := asks(first, "dashboards/"); got != http.StatusOK {
		t.Errorf("dashboards/ with the changed key: %d", got)
	}
	c.press(t, "button", "Actions for tool")
	c.press(t, "menuitem", "Change…")
	for _, key := range members(record(t, client, "personal_api_keys/"), "results") {
		if key["label"] == "tool" {
			must(t, client, http.MethodPatch, fmt.Sprintf("personal_api_keys/%v/", key["id"]), map[string]any{"scopes": []string{"endpoint:read"}})
		}
	}
	c.fill(t, "textbox", "Label", "cli")
	c.press(t, "button", "Save")
	if got := asks(first, "dashboards/"); got != http.StatusForbidden {
		t.Errorf("dashboards/ with a key that was narrowed while its label was changed: %d", got)
	}
	c.press(t, "button", "Actions for cli")
	c.press(t, "menuitem", "Roll…")
	c.press(t, "button", "Roll")
	second := c.secretShown(t)
	if old, now := asks(first, "endpoints/"), asks(second, "endpoints/"); old != http.StatusUnauthorized || now != http.StatusOK {
		t.Errorf("after rolling, the old key gets %d and the new one %d", old, now)
	}
	c.press(t, "button", "Actions for cli")
	c.press(t, "menuitem", "Revoke…")
	c.press(t, "button", "Revoke")
	if got := asks(second, "endpoints/"); got != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", got)
	}
	c.look(t, light, narrow)
	c.fits(t)
	c.accessible(t)
}

// TestConsoleKeysOfReaders: a key without write access gets no buttons for it.
func TestConsoleKeysOfReaders(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := sellers(t, d)
	publish(t, client, "sales")
	c := signedIn(t, d.Server, client.Project, "project:read", "endpoint:read")
	for page, button := range map[string]string{
		"keys": "New personal key", "keys?tab=secret": "New secret key", "endpoints": "New endpoint", "endpoints/sales?tab=versions": "New version",
		"endpoints/sales?tab=settings": "Save version", "endpoints/sales?tab=materialization": "Materialize",
	} {
		c.visit(t, page)
		found := c.evaluate(t, `JSON.stringify([...document.querySelectorAll("main button")].filter((b) => b.innerText === `+quote(button)+`).map((b) => b.disabled))`)
		if found != "[true]" {
			t.Errorf("on %s the button %q is disabled: %s", page, button, found)
		}
	}
}
