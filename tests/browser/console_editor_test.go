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

	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// editing is a tab with the insight editor.
type editing struct{ *console }

// pick types part of a name into a field with suggestions, and takes the first of them.
func (c *editing) pick(t *testing.T, field, part string) {
	t.Helper()
	c.fill(t, "combobox", field, part)
	c.key(t, kb.Enter)
}

// add presses a button that turns into a field with suggestions, and picks one of them.
func (c *editing) add(t *testing.T, button, part string) {
	t.Helper()
	c.press(t, "button", button)
	c.pick(t, button+": "+map[bool]string{true: "event", false: "property"}[button != "Add filter" && button != "Add breakdown"], part)
}

// choose selects an option of a list, like the browser does for a user.
func (c *editing) choose(t *testing.T, list, option string) {
	t.Helper()
	at := c.one(t, "combobox", list)
	got := c.evaluate(t, fmt.Sprintf(`(() => {
		const select = document.elementFromPoint(%v, %v);
		const option = [...select.options].find((o) => o.label === %s && !o.disabled);
		if (!option) return [...select.options].map((o) => o.label + (o.disabled ? " (disabled)" : "")).join(", ");
		select.focus();
		select.value = option.value;
		select.dispatchEvent(new Event("change", { bubbles: true }));
		return "";
	})()`, at.X, at.Y, quote(option)))
	if got != "" {
		t.Fatalf("%s has no option %q, but %s", list, option, got)
	}
	c.settle(t)
}

// insight returns the insight in a query that was sent.
func (*editing) insight(query any) any {
	node, _ := query.(map[string]any)
	if node["kind"] == "InsightVizNode" {
		return node["source"]
	}
	return query
}

// asks waits until the page's last query equals the one in a JSON text, and was answered with 200.
func (c *editing) asks(t *testing.T, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error {
		sent := c.sent()
		slices.Reverse(sent)
		for _, r := range sent {
			if r.method != http.MethodPost || !strings.HasSuffix(r.url, "/query/") {
				continue
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(r.body), &body); err != nil {
				return fmt.Errorf("the page sent %q: %w", r.body, err)
			}
			if diff := cmp.Diff(wanted, c.insight(body["query"])); diff != "" {
				return fmt.Errorf("the last query (-want +got):\n%s", diff)
			}
			if r.status != http.StatusOK {
				return fmt.Errorf("the query is answered with %d", r.status)
			}
			return nil
		}
		return fmt.Errorf("the page asked no query")
	})
}

// TestConsoleEditor builds an insight of each kind, and checks the query that the page sends.
func TestConsoleEditor(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	for _, tt := range []struct {
		kind, want string
		build      func(t *testing.T, c *editing)
	}{
		{"TRENDS", `{
			"kind": "TrendsQuery", "dateRange": {"date_from": "all"}, "interval": "year",
			"series": [{"kind": "EventsNode", "event": "pull request merged"}, {"kind": "EventsNode", "event": "commit authored", "math": "dau"}],
			"properties": [{"type": "event", "key": "is_fix", "operator": "exact", "value": ["true"]}],
			"breakdownFilter": {"breakdown": "is_bot", "breakdown_type": "person"},
			"trendsFilter": {"display": "ActionsBar", "formulaNodes": [{"formula": "A / B"}]}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.pick(t, "Series A: event", "commit auth")
			c.choose(t, "What Series A counts", "Unique people")
			c.add(t, "Add series", "merged")
			c.press(t, "button", "Move Series B up (Alt ↑)")
			c.press(t, "button", "Add formula")
			c.fill(t, "textbox", "New formula", "A / B")
			c.key(t, kb.Enter)
			c.add(t, "Add filter", "is_fix")
			c.choose(t, "Value of is_fix", "true")
			c.add(t, "Add breakdown", "is_bot")
			c.choose(t, "Interval", "year")
			c.choose(t, "Chart type", "Bars, stacked")
		}},
		{"FUNNELS", `{
			"kind": "FunnelsQuery", "dateRange": {"date_from": "all"},
			"series": [{"kind": "EventsNode", "event": "commit authored"}, {"kind": "EventsNode", "event": "pull request merged"}, {"kind": "ActionsNode", "id": 2, "name": "Shipped"}],
			"funnelsFilter": {
				"funnelOrderType": "strict", "funnelWindowInterval": 28,
				"exclusions": [{"kind": "EventsNode", "event": "release tagged", "funnelFromStep": 0, "funnelToStep": 1}]
			}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.pick(t, "Step 1: event", "commit auth")
			c.pick(t, "Step 2: event", "merged")
			c.add(t, "Add exclusion", "release")
			c.add(t, "Add step", "Shipped")
			c.choose(t, "Exclusion 1 before step", "Step 2")
			c.choose(t, "Order", "In order, nothing in between")
			c.fill(t, "spinbutton", "Within", "28")
			c.key(t, kb.Tab)
		}},
		{"RETENTION", `{
			"kind": "RetentionQuery", "dateRange": {"date_from": "all"},
			"retentionFilter": {
				"period": "Month", "totalIntervals": 6, "retentionType": "retention_recurring",
				"targetEntity": {"id": "pull request merged", "name": "pull request merged", "type": "events"},
				"returningEntity": {"id": "commit authored", "name": "commit authored", "type": "events"}
			}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.pick(t, "Who did", "merged")
			c.pick(t, "And came back with", "commit auth")
			c.choose(t, "Which time", "In each period")
			c.choose(t, "Period", "Month")
			c.fill(t, "spinbutton", "How many", "6")
			c.key(t, kb.Enter)
		}},
		{"PATHS", `{
			"kind": "PathsQuery", "dateRange": {"date_from": "all"},
			"pathsFilter": {"includeEventTypes": ["custom_event"], "startPoint": "commit authored", "excludeEvents": ["commit landed"], "edgeLimit": 10}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.fill(t, "textbox", "Start at", "commit authored")
			c.key(t, kb.Tab)
			c.pick(t, "Steps to leave out", "commit landed")
			c.fill(t, "spinbutton", "Most edges", "10")
			c.key(t, kb.Enter)
		}},
		{"STICKINESS", `{
			"kind": "StickinessQuery", "dateRange": {"date_from": "all"}, "interval": "month", "series": [{"kind": "EventsNode", "event": "commit authored"}],
			"stickinessFilter": {"stickinessCriteria": {"operator": "gte", "value": 3}, "computedAs": "cumulative"}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.pick(t, "Series A: event", "commit auth")
			c.fill(t, "spinbutton", "An interval counts if it has", "3")
			c.key(t, kb.Enter)
			c.choose(t, "Show those active in", "At least this many intervals")
			c.choose(t, "Interval", "month")
		}},
		{"LIFECYCLE", `{
			"kind": "LifecycleQuery", "dateRange": {"date_from": "all"}, "interval": "quarter", "series": [{"kind": "EventsNode", "event": "commit authored"}],
			"properties": [{"type": "cohort", "key": "id", "value": 1, "operator": "in"}],
			"lifecycleFilter": {"toggledLifecycles": ["new", "returning", "resurrecting"]}
		}`, func(t *testing.T, c *editing) {
			t.Helper()
			c.pick(t, "Series 1: event", "commit auth")
			c.add(t, "Add filter", "Regular")
			c.choose(t, "Interval", "quarter")
			c.press(t, "checkbox", "Dormant")
		}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			c := &editing{signedIn(t, d.Server, d.Project)}
			c.visit(t, "insights/new?insight="+tt.kind)
			c.choose(t, "Date range", "All time")
			tt.build(t, c)
			c.asks(t, tt.want)
			c.accessible(t)
			c.look(t, dark, narrow)
			c.accessible(t)
			c.fits(t)
			c.picture(t, "editor-"+tt.kind)
		})
	}
}

// TestConsoleEditorMistake: the server's message about a field is shown next to it.
func TestConsoleEditorMistake(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := &editing{signedIn(t, d.Server, d.Project)}
	c.expect("400")
	c.visit(t, "insights/new?insight=TRENDS")
	c.choose(t, "What Series A counts", "SQL expression")
	c.fill(t, "textbox", "SQL expression of Series A", "sum({x})")
	c.key(t, kb.Enter)
	const mistake = "The aggregate expression cannot hold placeholders"
	c.reads(t, `.editor [aria-label="Series A"] [role=alert]`, mistake)
	c.reads(t, ".editor [role=alert]", mistake)
	c.choose(t, "What Series A counts", "Unique sessions")
	c.reads(t, ".editor [role=alert]", "")
}

// TestConsoleEditorDate: like other values, a typed date is applied when its field loses the focus; an invalid date is not.
func TestConsoleEditorDate(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := &editing{signedIn(t, d.Server, d.Project)}
	const text = `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": null}],
		"properties": [{"type": "event", "key": "due", "operator": "is_date_before", "value": %s}]}`
	c.visit(t, "insights/new?q="+url.QueryEscape(fmt.Sprintf(text, "null")))
	leave := func() { c.evaluate(t, `document.activeElement.blur(), ""`) }
	c.fill(t, "combobox", "Value of due", "2026-01-31")
	leave()
	c.asks(t, fmt.Sprintf(text, `"2026-01-31"`))
	c.fill(t, "combobox", "Value of due", "some day")
	leave()
	c.settle(t)
	if got := c.evaluate(t, `document.querySelector("[aria-label='Value of due']").value`); got != "2026-01-31" {
		t.Errorf("the date is %q", got)
	}
}

// TestConsoleEditorValue: Enter takes the value that was typed, although others with it in their names come first.
func TestConsoleEditorValue(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	id, _ := d.Server.Project(t, "plans")
	var lines strings.Builder
	for i, plan := range []string{"enterprise-pro", "enterprise-pro", "pro"} {
		fmt.Fprintf(&lines, `{"event": "visit", "distinct_id": "%d", "timestamp": %q, "properties": {"plan": %q}}`+"\n", i, time.Now().UTC().Format(time.RFC3339), plan)
	}
	d.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	c := &editing{signedIn(t, d.Server, id)}
	const text = `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": null}],
		"properties": [{"type": "event", "key": "plan", "operator": "exact", "value": %s}]}`
	c.visit(t, "insights/new?q="+url.QueryEscape(fmt.Sprintf(text, "null")))
	c.fill(t, "combobox", "Value of plan", "pro")
	c.shows(t, "enterprise-pro")
	c.key(t, kb.Enter)
	c.asks(t, fmt.Sprintf(text, `["pro"]`))
}

// TestConsoleEditorKeeps: an insight saved by another client is opened, changed and saved without losing fields that the editor does not know.
func TestConsoleEditorKeeps(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	const text = `{"kind": "InsightVizNode", "full": true, "source": {
		"kind": "TrendsQuery", "version": 2, "dateRange": {"date_from": "-1mStart", "date_to": "-1mEnd", "explicitDate": true}, "modifiers": {"debug": false},
		"series": [{"kind": "EventsNode", "event": "commit authored", "name": "Commits", "math": "p90_count_per_actor", "custom_name": "Busy",
			"fixedProperties": [{"type": "event", "key": "branch", "operator": "is_set", "value": "is_set"}]}],
		"properties": {"type": "AND", "values": [{"type": "OR", "values": [{"type": "event", "key": "branch", "operator": "semver_gt", "value": "1.0.0"},
			{"type": "event", "key": "size", "operator": "lt", "value": 9007199254740993}, {"type": "event", "key": "lines", "operator": "lt", "value": 5},
			{"type": "behavioral", "value": "performed_event", "event_type": "events", "key": "commit authored", "time_value": 30, "time_interval": "day"}]}]},
		"breakdownFilter": {"breakdown": ["branch"], "breakdown_type": "event", "breakdown_limit": 7},
		"trendsFilter": {"goalLines": [{"label": "goal", "value": 5}], "showLegend": true, "formula": "A*2", "tooltipColor": "red"}
	}}`
	var query map[string]any
	if err := json.Unmarshal([]byte(text), &query); err != nil {
		t.Fatal(err)
	}
	made := client.Do(t, http.MethodPost, "insights/", map[string]any{"name": "From elsewhere", "query": json.RawMessage(text)})
	if made.Status != http.StatusCreated {
		t.Fatalf("creating the insight: %d %s", made.Status, made.Raw)
	}
	path := fmt.Sprintf("insights/%v/", made.Body["id"])
	t.Cleanup(func() { client.Do(t, http.MethodPatch, path, map[string]any{"deleted": true}) })

	c := &editing{signedIn(t, d.Server, d.Project)}
	c.visit(t, fmt.Sprint("insights/", made.Body["short_id"]))
	if strings.Contains(c.text(t, "h1"), "Unsaved changes") {
		t.Error("opening the insight changes it")
	}
	c.choose(t, "Interval", "week")
	c.fill(t, "spinbutton", "Value of lines", "18014398509481985")
	c.pressTells(t, "button", "Save", "Saved")
	source, _ := query["source"].(map[string]any)
	source["interval"] = "week"
	at(t, query, "source", "properties", "values", 0, "values", 2).(map[string]any)["value"] = 18014398509481985.0
	answer := client.Do(t, http.MethodGet, path, nil)
	if diff := cmp.Diff(any(query), answer.Body["query"]); diff != "" {
		t.Errorf("the saved query (-want +got):\n%s", diff)
	}
	for _, digits := range []string{"9007199254740993", "18014398509481985"} { // a float would round them
		if !strings.Contains(string(answer.Raw), digits) {
			t.Errorf("the saved query has no %s: %s", digits, answer.Raw)
		}
	}
}
