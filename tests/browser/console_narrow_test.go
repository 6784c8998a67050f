package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// least is the width of a 1280 pixel wide window when its page is zoomed to 400%.
const least = 320

// TestConsoleNavigationCloses: in a narrow window, the navigation covers the page until another page is opened.
func TestConsoleNavigationCloses(t *testing.T) {
	t.Parallel()
	c, _ := ownProject(t, "narrow")
	c.visit(t, "insights")
	c.look(t, light, least)
	for how, shut := range map[string]func(){
		"Escape": func() { c.key(t, kb.Escape) },
		"a click beside it": func() {
			if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(300, 600)); err != nil {
				t.Fatal(err)
			}
		},
		"the link to the page":     func() { c.press(t, "link", "Insights") },
		"the link to another page": func() { c.press(t, "link", "Keys") },
		"the focus elsewhere":      func() { c.evaluate(t, `document.querySelector("main button, main a").focus(), ""`) },
	} {
		c.press(t, "button", "Navigation")
		c.one(t, "link", "Home")
		shut()
		if len(c.find(t, "link", "Home")) != 0 {
			t.Errorf("%s leaves the navigation open", how)
		}
		if got := c.focus(t); how == "Escape" && got != "Navigation" {
			t.Errorf("after Escape, the focus is on %q", got)
		}
	}
}

// TestConsoleLongWords: words wider than the window are broken.
func TestConsoleLongWords(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "long words")
	long := strings.Repeat("w", 100)
	trend := map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}}}
	board := create(t, client, "dashboards/", map[string]any{"name": long, "description": long, "tags": []string{long}})
	insight := create(t, client, "insights/", map[string]any{"name": long, "description": long, "tags": []string{long}, "query": trend})
	create(t, client, "endpoints/", map[string]any{"name": long, "description": long, "query": trend})
	c.look(t, light, least)
	for _, page := range []string{fmt.Sprint("dashboard/", board["id"]), fmt.Sprint("insights/", insight["short_id"]), "endpoints/" + long} {
		c.visit(t, page)
		c.fits(t)
	}
	c.press(t, "tab", "OpenAPI")
	c.fits(t)
}
