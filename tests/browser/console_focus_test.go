package browser_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// focus returns the focused element: its id, or its name for screen readers.
func (c *console) focus(t *testing.T) string {
	t.Helper()
	return c.evaluate(t, `(() => {
		const e = document.activeElement;
		return (e.id === "main" && "#main") || (e === document.body && "BODY") || e.getAttribute("aria-label") || e.innerText.trim();
	})()`)
}

// TestConsoleDialogFocus: however a dialog is closed, the previously focused element gets the focus back, or the page if that element is gone.
func TestConsoleDialogFocus(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "focus")
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	has := func(how, want string) {
		t.Helper()
		if got := c.text(t, "dialog"); got != "" {
			t.Errorf("%s, there is still a dialog: %s", how, got)
		}
		if got := c.focus(t); got != want {
			t.Errorf("%s, the focus is on %q, want %q", how, got, want)
		}
	}
	c.visit(t, "dashboard")
	for how, shut := range map[string]func(){
		"after Close":  func() { c.press(t, "button", "Close") },
		"after Cancel": func() { c.press(t, "button", "Cancel") },
		"after Escape": func() { c.key(t, kb.Escape) },
		"after a click beside it": func() {
			if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(5, 5)); err != nil {
				t.Fatal(err)
			}
			c.settle(t)
		},
	} {
		c.press(t, "button", "New dashboard")
		c.one(t, "dialog", "New dashboard")
		shut()
		has(how, "New dashboard")
	}

	c.press(t, "button", "New dashboard")
	c.fill(t, "textbox", "Name", "Retention")
	if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(5, 5)); err != nil { // does not lose what was written
		t.Fatal(err)
	}
	c.press(t, "button", "Create")
	c.one(t, "heading", "Retention")
	has("on another page", "#main")

	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Name, description, tags")
	c.fill(t, "textbox", "Name", "More growth")
	c.press(t, "button", "Save")
	c.one(t, "heading", "More growth")
	has("after Save", "More")

	// A request sent from a dialog that was then closed can still fail, without affecting other dialogs.
	c.expect("404")
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Name, description, tags")
	client.Do(t, http.MethodPatch, fmt.Sprintf("dashboards/%v/", board["id"]), map[string]any{"deleted": true})
	c.evaluate(t, `(async () => {
		const send = window.fetch;
		window.fetch = async (...request) => {
			await new Promise((resolve) => setTimeout(resolve, 300));
			return send(...request);
		};
		document.querySelector("dialog [type=submit]").click();
		await new Promise((resolve) => setTimeout(resolve, 50));
		document.querySelector("dialog [aria-label=Close]").click();
		return "";
	})()`)
	c.shows(t, "Not found.")

	// A dialog over another one returns the focus to that one.
	c.visit(t, "dashboard")
	c.press(t, "button", "New dashboard")
	c.evaluate(t, `document.querySelector("dialog input").focus(), ""`)
	c.stroke(t, ctrl, "k", 75)
	c.one(t, "dialog", "Go to")
	c.stroke(t, ctrl, "k", 75)
	if got := c.evaluate(t, `String(document.activeElement === document.querySelector("dialog input"))`); got != "true" {
		t.Errorf("after the dialog above, the focus is on %q", c.focus(t))
	}
	c.press(t, "button", "Cancel")
	has("after the dialog below", "New dashboard")
}

// TestConsoleToastOverDialog: a message that appears while a dialog is open is shown above it, and read out.
func TestConsoleToastOverDialog(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "toasts")
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	create(t, client, "insights/", map[string]any{"name": "Visits", "query": map[string]any{"kind": "InsightVizNode", "source": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}},
	}}})
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.press(t, "button", "Add")
	c.press(t, "menuitem", "Insight")
	c.expect("404")
	client.Do(t, http.MethodPatch, fmt.Sprintf("dashboards/%v/", board["id"]), map[string]any{"deleted": true})
	over := c.evaluate(t, `(async () => { // in one go: a message is there for five seconds
		document.querySelector("[aria-label='Add Visits']").click();
		while (!document.querySelector(".toast")) await new Promise((resolve) => setTimeout(resolve, 20));
		const box = document.querySelector(".toast").getBoundingClientRect();
		return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).innerText;
	})()`)
	c.one(t, "alert", "")
	if want := "Not found."; over != want {
		t.Errorf("where the message should be is %q, want %q", over, want)
	}
}

// TestConsolePageOpens: opening a page sets the document's title and focuses the page, without a focus ring for mouse users.
func TestConsolePageOpens(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "titles")
	c.expect("404")
	board := create(t, client, "dashboards/", map[string]any{"name": "<b>Growth</b>", "pinned": true})
	has := func(where, title, focus string) {
		t.Helper()
		if got := c.evaluate(t, "document.title"); got != title {
			t.Errorf("%s, the title is %q, want %q", where, got, title)
		}
		if got := c.focus(t); got != focus {
			t.Errorf("%s, the focus is on %q, want %q", where, got, focus)
		}
	}
	c.press(t, "link", "Dashboards")
	has("after a click", "Dashboards · Analytics", "#main")
	if got := c.evaluate(t, "getComputedStyle(document.activeElement).outlineStyle"); got != "none" {
		t.Errorf("after a click, the page has the outline %s", got)
	}
	c.press(t, "link", "<b>Growth</b>")
	has("in a dashboard", "<b>Growth</b> · Dashboards · Analytics", "#main")
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	has("at the dashboard's address", "<b>Growth</b> · Dashboards · Analytics", "BODY")
	for path, title := range map[string]string{"dashboard/0": "Dashboard · Dashboards", "insights/none": "Insight · Insights"} {
		c.visit(t, path)
		c.shows(t, "Not found.")
		has("at what is not there, "+path, title+" · Analytics", "BODY")
		c.accessible(t)
	}
	c.press(t, "link", "People")
	c.press(t, "link", "ann@example.com")
	has("at a person", "ann@example.com · People · Analytics", "#main")
	if got := c.evaluate(t, `document.querySelector("nav [aria-current=page]")?.innerText ?? "nothing"`); got != "People" {
		t.Errorf("at a person, the navigation marks %s", got)
	}
	c.press(t, "link", "Keys")
	c.press(t, "tab", "Secret keys") // only changes the query string
	has("after a tab", "Keys · Analytics", "Secret keys")
	c.one(t, "tabpanel", "Secret keys")
	if got := c.evaluate(t, `document.getElementById(document.activeElement.getAttribute("aria-controls"))?.role ?? "nothing"`); got != "tabpanel" {
		t.Errorf("the tab controls %s", got)
	}
	c.stroke(t, ctrl, "k", 75)
	c.fill(t, "combobox", "Page, insight, dashboard or endpoint", "heal")
	c.press(t, "option", "Health Page")
	has("from the list of pages", "Health · Analytics", "#main")
	c.press(t, "button", "Sign out")
	c.one(t, "button", "Sign in")
	if got, want := c.evaluate(t, "document.title"), "Sign in · Analytics"; got != want {
		t.Errorf("signed out, the title is %q, want %q", got, want)
	}
}

// TestConsoleTileKeepsFocus: a tile that is moved past another one keeps the focus, so that it can be moved further.
func TestConsoleTileKeepsFocus(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "tiles")
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	for _, name := range []string{"One", "Two", "Three"} {
		create(t, client, "insights/", map[string]any{"name": name, "dashboards": []any{board["id"]}, "query": map[string]any{
			"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}},
		}})
	}
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.press(t, "button", "Arrange")
	for _, name := range []string{"Move One", "Move Three"} {
		c.evaluate(t, fmt.Sprintf(`document.querySelector("[aria-label='%s']").focus(), ""`, name))
		for _, key := range []string{kb.ArrowDown, kb.ArrowDown, kb.ArrowUp, kb.ArrowUp, kb.ArrowRight, kb.ArrowLeft} {
			c.key(t, key)
			if got := c.focus(t); got != name {
				t.Fatalf("after a key, the focus is on %q, want %q", got, name)
			}
		}
	}
}

// TestConsoleTileScrolls: the page scrolls with a tile that is dragged to the edge of the window, and with one that is moved by keys.
func TestConsoleTileScrolls(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "far tiles")
	board := create(t, client, "dashboards/", map[string]any{"name": "Growth"})
	for i := range 10 {
		create(t, client, "insights/", map[string]any{"name": fmt.Sprint("Tile ", i), "dashboards": []any{board["id"]}, "query": map[string]any{
			"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}},
		}})
	}
	c.visit(t, fmt.Sprint("dashboard/", board["id"]))
	c.press(t, "button", "Arrange")
	name := c.evaluate(t, `document.querySelector(".dash-move").getAttribute("aria-label")`)
	at := c.one(t, "button", name)
	mouse := func(what input.DispatchMouseEventType, y float64) {
		t.Helper()
		_, err := chromedp.Call(c.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: what, X: at.X, Y: y, Button: "left", Buttons: 1, ClickCount: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// row returns the first row of the tile, from 1.
	row := func() string {
		return c.evaluate(t, fmt.Sprintf(`document.querySelector("[aria-label='%s']").closest(".dash-place").style.gridRow.split(" ")[0]`, name))
	}
	wait := func(what, script string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := c.evaluate(t, script); got != "true" {
				return fmt.Errorf("%s: %s; the tile is in row %s, and the page at %s", what, got, row(), c.evaluate(t, "String(scrollY)"))
			}
			return nil
		})
	}
	height, err := strconv.ParseFloat(c.evaluate(t, "String(innerHeight)"), 64)
	if err != nil {
		t.Fatal(err)
	}
	mouse("mousePressed", at.Y)
	mouse("mouseMoved", at.Y+200)
	mouse("mouseMoved", height-5)
	wait("the page does not scroll down", `String(scrollY > 500 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2)`)
	mouse("mouseReleased", height-5)
	c.picture(t, "tile dragged")
	if got := row(); got != "21" { // below four others
		t.Errorf("the tile that was dragged down is in row %s", got)
	}
	harness.Eventually(t, time.Minute, func() error {
		tiles := members(record(t, client, fmt.Sprintf("dashboards/%v/", board["id"])), "tiles")
		for _, tile := range tiles {
			layouts, _ := tile["layouts"].(map[string]any)
			if box, _ := layouts["sm"].(map[string]any); box["y"] == 20.0 && "Move "+fmt.Sprint(tile["insight"].(map[string]any)["name"]) == name {
				return nil
			}
		}
		return fmt.Errorf("its place is not saved: %v", tiles)
	})
	// A drag that Escape ends leaves the tile where it was, and the pointer moves it no longer.
	at.Y, err = strconv.ParseFloat(c.evaluate(t, fmt.Sprintf(`(() => { const r = document.querySelector("[aria-label='%s']").getBoundingClientRect(); return String(r.y + r.height / 2) })()`, name)), 64)
	if err != nil {
		t.Fatal(err)
	}
	mouse("mousePressed", at.Y)
	mouse("mouseMoved", at.Y-20)
	mouse("mouseMoved", 5)
	wait("the page does not scroll up", `String(scrollY === 0)`)
	c.key(t, kb.Escape)
	mouse("mouseMoved", 300)
	mouse("mouseReleased", 300)
	if got := row(); got != "21" {
		t.Errorf("after Escape, the tile is in row %s", got)
	}

	seen := fmt.Sprintf(`(() => { const r = document.querySelector("[aria-label='%s']").getBoundingClientRect(); return String(r.top >= -20 && r.bottom <= innerHeight + 20) })()`, name)
	c.evaluate(t, fmt.Sprintf(`document.querySelector("[aria-label='%s']").focus(), ""`, name))
	for _, key := range []string{kb.ArrowUp, kb.ArrowUp, kb.ArrowUp, kb.ArrowUp, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown, kb.ArrowDown} {
		c.key(t, key)
		if c.evaluate(t, seen) != "true" {
			t.Errorf("the tile that keys moved to row %s is out of view", row())
		}
	}
	if got := row(); got != "21" {
		t.Errorf("the tile that was moved up and down is in row %s", got)
	}
}
