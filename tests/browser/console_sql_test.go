package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// sqlPage opens the page for SQL with a text.
func (c *console) sqlPage(t *testing.T, text string) {
	t.Helper()
	c.visit(t, "sql?q="+url.QueryEscape(text))
}

// write replaces the text of the editor, like typing after selecting everything.
func (c *console) write(t *testing.T, text string) {
	t.Helper()
	at := c.one(t, "textbox", "Query")
	if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		t.Fatal(err)
	}
	c.stroke(t, ctrl, "a", 65)
	if _, err := chromedp.Call(c.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		t.Fatal(err)
	}
	c.settle(t)
}

// ctrl is the modifier for keys pressed together with Ctrl.
const ctrl = 2

// stroke presses a key that types nothing itself.
func (c *console) stroke(t *testing.T, modifiers int64, key string, number int64) {
	t.Helper()
	for _, kind := range []input.DispatchKeyEventType{"rawKeyDown", "keyUp"} {
		if _, err := chromedp.Call(c.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: kind, Modifiers: modifiers, Key: key, WindowsVirtualKeyCode: number,
		}); err != nil {
			t.Fatal(err)
		}
	}
	c.settle(t)
}

// editorText returns the text in the editor.
const editorText = `[...document.querySelector(".text-editor").shadowRoot.querySelectorAll(".cm-line")].map((l) => l.textContent).join("\n")`

// gridRows returns the visible rows of the result, without their numbers.
func (c *console) gridRows(t *testing.T) [][]string {
	t.Helper()
	var rows [][]string
	raw := c.evaluate(t, `JSON.stringify([...document.querySelectorAll(".sql-results .grid tbody tr[aria-rowindex]")].map((r) => [...r.cells].slice(1).map((e) => e.textContent)))`)
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestConsoleSQL runs a query, and compares the page's numbers with the API's.
func TestConsoleSQL(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	const query = "select event, count() as n, uniq(person_id) as people from events group by event order by n desc"
	c.sqlPage(t, "select 1")
	c.write(t, query)
	c.stroke(t, ctrl, "Enter", 13)
	c.shows(t, "4 rows in")
	var want [][]string
	for _, row := range d.Client(d.Project, d.PersonalKey).Query(t, query) {
		var cells []string
		for _, cell := range row.([]any) {
			cells = append(cells, fmt.Sprint(cell))
		}
		want = append(want, cells)
	}
	if diff := cmp.Diff(want, c.gridRows(t)); diff != "" || len(want) != 4 {
		t.Errorf("the grid (-API +page):\n%s", diff)
	}
	c.press(t, "tab", "Plan")
	c.shows(t, "ReadFromMergeTree")
	c.press(t, "tab", "Timings")
	c.shows(t, "ClickHouse")
	c.press(t, "tab", "Chart")
	c.one(t, "combobox", "Chart")
	c.accessible(t)

	c.press(t, "button", "History")
	c.shows(t, "4 rows in")
	c.press(t, "button", "Close")

	c.press(t, "button", "More")
	c.press(t, "menuitem", "Save as insight")
	c.fill(t, "textbox", "Name", "Events by name")
	c.press(t, "button", "Save")
	answer := d.Client(d.Project, d.PersonalKey).Do(t, http.MethodGet, "insights/?search=Events+by+name", nil)
	if !strings.Contains(string(answer.Raw), query) || !strings.Contains(c.evaluate(t, "location.search"), "?insight=") {
		t.Errorf("what is saved: %s", answer.Raw)
	}
}

// TestConsoleSQLMistakes: an error is shown with its place, and a click fixes it as long as the text is the same.
func TestConsoleSQLMistakes(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.expect("400")
	c.sqlPage(t, "select '😀', evnt from events limit 3")
	harness.Eventually(t, time.Minute, func() error {
		if got := c.evaluate(t, `document.querySelector(".text-editor").shadowRoot.querySelector(".cm-lintRange-error")?.innerText ?? ""`); got != "evnt" {
			return fmt.Errorf("what is underlined is %q", got)
		}
		return nil
	})
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "Unable to resolve field: evnt (line 1, column")
	c.write(t, "select 1, '😀', evnt from events limit 3")
	if len(c.find(t, "button", "Replace with event")) != 0 {
		t.Error("the mistake of a text can be replaced in another one")
	}
	c.write(t, "select '😀', evnt from events limit 3")
	c.press(t, "button", "Replace with event")
	if got := c.evaluate(t, editorText); got != "select '😀', event from events limit 3" {
		t.Errorf("the text is %q", got)
	}
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "3 rows in")
}

// TestConsoleSQLCompletes: the editor suggests existing properties.
func TestConsoleSQLCompletes(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.sqlPage(t, "")
	c.write(t, "select properties.")
	for _, letter := range "compo" {
		c.key(t, string(letter))
	}
	harness.Eventually(t, time.Minute, func() error {
		if got := c.evaluate(t, `document.querySelector(".text-editor").shadowRoot.querySelector(".cm-completionLabel")?.innerText ?? ""`); got != "component" {
			return fmt.Errorf("the first suggestion is %q", got)
		}
		return nil
	})
	c.stroke(t, 0, "Enter", 13)
	if got := c.evaluate(t, editorText); got != "select properties.component" {
		t.Errorf("the text is %q", got)
	}
}

// TestConsoleSQLMany: of a result with 50,000 rows, only the visible ones are in the page.
func TestConsoleSQLMany(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.sqlPage(t, "select number from numbers(150) union all select number from numbers(150)")
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "200 rows in")
	c.shows(t, "Each part without a LIMIT has at most 100 rows.")
	c.write(t, "select number, number * 2 from (select number from numbers(60000) limit 60000)")
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "100 rows (there are more)")
	c.write(t, "select number from numbers(60000)")
	if len(c.find(t, "button", "Show up to 50,000")) != 0 {
		t.Error("a button replaces the text by the one of the result")
	}
	c.write(t, "select number, number * 2 from (select number from numbers(60000) limit 60000)")
	c.press(t, "button", "Show up to 50,000")
	c.shows(t, "50,000 rows in")
	c.evaluate(t, `(() => { const grid = document.querySelector(".sql-results .grid"); grid.scrollTop = grid.scrollHeight; return "" })()`)
	harness.Eventually(t, time.Minute, func() error {
		rows := c.gridRows(t)
		if len(rows) == 0 || len(rows) > 100 || !cmp.Equal(rows[len(rows)-1], []string{"49999", "99998"}) {
			return fmt.Errorf("%d rows are in the page, the last is %v", len(rows), rows[max(0, len(rows)-1):])
		}
		return nil
	})
}

// TestConsoleSQLWide: a column of long JSON leaves room for the others, and a click shows the whole value.
func TestConsoleSQLWide(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.sqlPage(t, `select concat('{"text": "', repeat('many words ', 1000), '", "end": "here"}') as json, number as a, number + 1 as b, number + 2 as c from numbers(3)`)
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "3 rows in")
	var widths []int
	raw := c.evaluate(t, `JSON.stringify([...document.querySelectorAll(".sql-results tr:nth-child(-n+2) > *")].map((e) => e.offsetWidth))`)
	if err := json.Unmarshal([]byte(raw), &widths); err != nil || len(widths) < 10 || slices.Max(widths) > 500 {
		t.Errorf("the columns are %s pixels wide", raw)
	}
	if got := c.evaluate(t, `(() => { const e = document.querySelector(".sql-results .grid"); return String(e.scrollWidth - e.clientWidth) })()`); got != "0" {
		t.Errorf("the table is wider than its box by %s pixels", got)
	}
	c.evaluate(t, `document.querySelector("[data-cell='0 0']").click(), ""`)
	c.shows(t, `"end": "here"`)
	c.accessible(t)
	c.fits(t)
}

// TestConsoleSQLVariables: values of variables are typed, and go into the query.
func TestConsoleSQLVariables(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.sqlPage(t, "select {variables.year} + 1 as next")
	c.fill(t, "spinbutton", "year", "2030")
	c.press(t, "button", "Run Ctrl ⏎")
	c.shows(t, "1 row in")
	if diff := cmp.Diff([][]string{{"2031"}}, c.gridRows(t)); diff != "" {
		t.Error(diff)
	}
}

// TestConsoleSQLCancel: cancelling a query also stops it on the server.
func TestConsoleSQLCancel(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.expect("400")
	c.expect("ERR_ABORTED")
	c.sqlPage(t, "select max(cityHash64(number)) from numbers(100000000000)")
	at := c.one(t, "button", "Run Ctrl ⏎")
	if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		t.Fatal(err)
	}
	c.press(t, "button", "Cancel")
	c.shows(t, "Query canceled")
	c.one(t, "button", "Run Ctrl ⏎")
	var cancelled bool
	for _, r := range c.sent() {
		cancelled = cancelled || r.method == http.MethodDelete && strings.Contains(r.url, "/query/") && r.status == http.StatusOK
	}
	if !cancelled {
		t.Error("the server was not told")
	}
}

// TestConsoleGoTo opens a page by its name, using only the keyboard.
func TestConsoleGoTo(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	c.stroke(t, ctrl, "k", 75)
	for _, letter := range "heal" {
		c.key(t, string(letter))
	}
	harness.Eventually(t, time.Minute, func() error {
		if got := c.text(t, "dialog [role=option]"); !strings.HasPrefix(got, "Health") {
			return fmt.Errorf("the suggestions are %q", got)
		}
		return nil
	})
	c.stroke(t, 0, "Enter", 13)
	if got := c.evaluate(t, "location.pathname"); got != "/project/1/health" {
		t.Errorf("the path is %s", got)
	}
}

// TestConsoleGoToFails: a search that fails says why, and the other results are shown all the same.
func TestConsoleGoToFails(t *testing.T) {
	t.Parallel()
	c, client := ownProject(t, "go to")
	create(t, client, "insights/", map[string]any{"name": "Visits", "query": map[string]any{"kind": "InsightVizNode", "source": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "visit"}},
	}}})
	c.visit(t, "keys")
	c.evaluate(t, `(() => {
		const real = window.fetch;
		window.lost = /\/endpoints\//;
		window.fetch = (to, ...rest) => lost.test(to) ? Promise.reject(new TypeError("lost")) : real(to, ...rest);
		return "";
	})()`)
	offers := func(want string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := c.text(t, "dialog [role=option]"); got != want {
				return fmt.Errorf("the suggestions are %q, want %q", got, want)
			}
			return nil
		})
	}
	const why = "The server cannot be reached. Check that it runs, and try again."
	c.stroke(t, ctrl, "k", 75)
	c.fill(t, "combobox", "Page, insight, dashboard or endpoint", "visits")
	offers("Visits\nInsight\n" + why)
	c.one(t, "alert", "")
	c.accessible(t)
	c.evaluate(t, `window.lost = /./, ""`)
	c.fill(t, "combobox", "Page, insight, dashboard or endpoint", "sign")
	offers(why)
	c.evaluate(t, `window.lost = /^$/, ""`)
	c.fill(t, "combobox", "Page, insight, dashboard or endpoint", "nothing of that name")
	offers("Nothing found")
}

// TestConsoleSQLDrafts: unsaved changes of an insight survive a reload, until they are discarded; the tab's own draft is kept separately.
func TestConsoleSQLDrafts(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	holds := func(want string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := c.evaluate(t, editorText); got != want {
				return fmt.Errorf("the text is %q, want %q", got, want)
			}
			return nil
		})
	}
	c.visit(t, "sql")
	c.write(t, "select 1 as own")
	client := d.Client(d.Project, d.PersonalKey)
	made := client.Do(t, http.MethodPost, "insights/", map[string]any{"name": "Drafted", "query": map[string]any{
		"kind": "DataVisualizationNode", "source": map[string]any{"kind": "HogQLQuery", "query": "select 2 as saved"},
	}})
	insight := fmt.Sprint("sql?insight=", made.Body["short_id"])
	c.visit(t, insight)
	holds("select 2 as saved")
	if len(c.find(t, "button", "Discard")) != 0 {
		t.Error("nothing was changed, and can be discarded")
	}
	c.write(t, "select 3 as changed")
	c.shows(t, "Unsaved changes")
	c.visit(t, insight)
	holds("select 3 as changed")
	c.press(t, "button", "Discard")
	holds("select 2 as saved")
	c.visit(t, "sql")
	holds("select 1 as own")

	// The state of an insight is not carried over to the tab's text.
	c.write(t, "select count() from events where {filters}")
	made = client.Do(t, http.MethodPost, "insights/", map[string]any{"name": "", "query": map[string]any{
		"kind": "DataVisualizationNode", "source": map[string]any{
			"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": map[string]any{"dateRange": map[string]any{"date_from": "-90d"}},
		},
	}})
	c.visit(t, fmt.Sprint("sql?insight=", made.Body["short_id"]))
	dates := func(want string) {
		t.Helper()
		harness.Eventually(t, time.Minute, func() error {
			if got := c.evaluate(t, `document.querySelector("[aria-label='Dates of {filters}']")?.selectedOptions[0].label ?? ""`); got != want {
				return fmt.Errorf("the dates are %q, want %q", got, want)
			}
			return nil
		})
	}
	dates("Last 90 days")
	if got := c.text(t, "h1"); got != "SQL" {
		t.Errorf("an insight without a name is called %q", got)
	}
	c.press(t, "link", "SQL")
	holds("select count() from events where {filters}")
	dates("Last 7 days")

	// Variable values, dates and the chart are kept with the text.
	c.write(t, "select {variables.year} + 1 as next, count() > 0 as some from events where {filters}")
	c.fill(t, "spinbutton", "year", "2030")
	c.pick(t, "Dates of {filters}", "-90d")
	c.press(t, "button", "Run Ctrl ⏎")
	c.press(t, "tab", "Chart")
	c.pick(t, "Chart", "ActionsPie")
	c.visit(t, "sql")
	dates("Last 90 days")
	c.press(t, "button", "Run Ctrl ⏎")
	if got := c.evaluate(t, `[...document.querySelectorAll("select")].find((e) => e.labels[0]?.innerText === "Chart")?.value ?? ""`); got != "ActionsPie" {
		t.Errorf("the chart is %q", got)
	}
	c.press(t, "tab", "Rows")
	if rows := c.gridRows(t); len(rows) != 1 || rows[0][0] != "2031" {
		t.Errorf("the rows are %q", rows)
	}
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Save as insight")
	c.fill(t, "textbox", "Name", "Next year")
	c.press(t, "button", "Save")
	c.fill(t, "spinbutton", "year", "2040")
	c.shows(t, "Unsaved changes")
	c.press(t, "button", "Discard")
	if got := c.evaluate(t, `document.querySelector(".sql-variables input").value`); got != "2030" {
		t.Errorf("after discarding, the year is %s", got)
	}
}
