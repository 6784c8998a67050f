package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// shownQuery is a query that a page draws, with one of its numbers: its place in the table, and its path in the API's result.
type shownQuery struct {
	query       string
	row, column int
	number      func(t *testing.T, results any) float64
}

// at follows names and indexes into a JSON value.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				t.Fatalf("%v has no item %d", value, step)
			}
			value = list[step]
		}
	}
	return value
}

// numberAt returns the number at a path in the results.
func numberAt(path ...any) func(*testing.T, any) float64 {
	return func(t *testing.T, results any) float64 {
		t.Helper()
		n, ok := at(t, results, path...).(float64)
		if !ok {
			t.Fatalf("there is no number at %v of %v", path, results)
		}
		return n
	}
}

const (
	committing = `{"kind": "EventsNode", "event": "commit authored", "name": "commit authored", "math": "dau"}`
	mergings   = `{"kind": "EventsNode", "event": "pull request merged", "name": "pull request merged"}`
	releases   = `{"kind": "EventsNode", "event": "release tagged", "name": "release tagged"}`
	august     = `"dateRange": {"date_from": "2026-08-01", "date_to": "2026-08-14"}`
	authored   = `{"id": "commit authored", "type": "events"}`
)

// shownQueries have numbers of people, so that each number equals the number of people behind it.
var shownQueries = map[string]shownQuery{
	"trend over time": {
		query: `{"kind": "TrendsQuery", "series": [` + committing + `], ` + august + `, "compareFilter": {"compare": true}}`,
		row:   3, column: 1, number: numberAt(0, "data", 3),
	},
	"trend of the previous period": {
		query: `{"kind": "TrendsQuery", "series": [` + committing + `], ` + august + `, "compareFilter": {"compare": true}, "trendsFilter": {"display": "ActionsBar"}}`,
		row:   1, column: 2, number: numberAt(1, "data", 1),
	},
	"trend of a part of a week": {
		query: `{"kind": "TrendsQuery", "series": [` + committing + `], "interval": "week", "dateRange": {"date_from": "2026-08-05", "date_to": "2026-08-20"}}`,
		row:   0, column: 1, number: numberAt(0, "data", 0),
	},
	"trend by values": {
		query: `{"kind": "TrendsQuery", "series": [` + committing + `], ` + august + `, "trendsFilter": {"display": "ActionsBarValue"},
			"breakdownFilter": {"breakdown": "component", "breakdown_type": "event", "breakdown_limit": 4}}`,
		row: 1, column: 2, number: numberAt(1, "aggregated_value"),
	},
	"funnel, who dropped off": {
		query: `{"kind": "FunnelsQuery", "series": [` + committing + `, ` + mergings + `, ` + releases + `], "dateRange": {"date_from": "2026-01-01", "date_to": "2026-08-22"}}`,
		row:   1, column: 4, number: func(t *testing.T, results any) float64 {
			t.Helper()
			return numberAt(0, "count")(t, results) - numberAt(1, "count")(t, results)
		},
	},
	"funnel of values": {
		query: `{"kind": "FunnelsQuery", "series": [` + committing + `, ` + mergings + `], "dateRange": {"date_from": "2026-01-01", "date_to": "2026-08-22"},
			"breakdownFilter": {"breakdown": "is_bot", "breakdown_type": "person"}}`,
		row: 2, column: 2, number: numberAt(0, 1, "count"),
	},
	"retention": {
		query: `{"kind": "RetentionQuery", "dateRange": {"date_to": "2026-08-22"},
			"retentionFilter": {"period": "Month", "totalIntervals": 6, "targetEntity": ` + authored + `, "returningEntity": ` + authored + `}}`,
		row: 0, column: 3, number: numberAt(0, "values", 2, "count"),
	},
	"stickiness": {
		query: `{"kind": "StickinessQuery", "series": [` + committing + `], ` + august + `}`,
		row:   1, column: 1, number: numberAt(0, "data", 1),
	},
	"lifecycle": {
		query: `{"kind": "LifecycleQuery", "interval": "week", "series": [` + committing + `], "dateRange": {"date_from": "2026-05-01", "date_to": "2026-08-22"}}`,
		row:   4, column: 2, number: numberAt(1, "data", 4),
	},
	"correlation": {
		query: `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "properties", "funnelCorrelationNames": ["$all"], "source": {"kind": "FunnelsActorsQuery",
			"source": {"kind": "FunnelsQuery", "series": [` + committing + `, ` + mergings + `], "dateRange": {"date_from": "2026-01-01", "date_to": "2026-08-22"}}}}`,
		row: 0, column: 3, number: numberAt("events", 0, "failure_count"),
	},
}

// resultsOf requests the results from the API.
func resultsOf(t *testing.T, client *harness.Client, query string) any {
	t.Helper()
	answer := client.Do(t, http.MethodPost, "query/", map[string]any{"query": json.RawMessage(query)})
	if answer.Status != http.StatusOK {
		t.Fatalf("%s answers %d %s", query, answer.Status, answer.Raw)
	}
	return answer.Body["results"]
}

// draws opens an unsaved query.
func (c *console) draws(t *testing.T, query string) {
	t.Helper()
	c.visit(t, "insights/new?q="+url.QueryEscape(query))
}

// asTable switches the chart to a table, unless it is one already.
func (c *console) asTable(t *testing.T) {
	t.Helper()
	if len(c.find(t, "button", "Table")) > 0 {
		c.press(t, "button", "Table")
	}
}

// TestConsoleCharts: the table of a chart has the API's numbers, and a click on a number lists that many people.
func TestConsoleCharts(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client := d.Client(d.Project, d.PersonalKey)
	c := signedIn(t, d.Server, d.Project)
	for name, shown := range shownQueries {
		want := fmt.Sprint(shown.number(t, resultsOf(t, client, shown.query)))
		if want == "0" {
			t.Errorf("%s: the number is 0, which proves nothing", name)
			continue
		}
		c.draws(t, shown.query)
		c.asTable(t)
		cell := fmt.Sprintf(`document.querySelectorAll(".chart-sheet tbody tr")[%d]?.children[%d]`, shown.row, shown.column)
		if got := c.evaluate(t, cell+`?.innerText ?? document.body.innerText`); got != want {
			t.Errorf("%s: the table has %s, and the API %s", name, got, want)
			continue
		}
		c.evaluate(t, cell+`.querySelector("button").click(), ""`)
		c.settle(t)
		if got := c.evaluate(t, peopleBehind); got != want {
			t.Errorf("%s: behind %s are %s", name, want, got)
		}
	}
}

// peopleBehind returns the number of people given in the dialog.
const peopleBehind = `(async () => {
	const end = Date.now() + 15_000;
	while (Date.now() < end) {
		const found = /([\d,]+) (?:people|person)/.exec(document.querySelector("dialog .actors-count")?.innerText ?? "");
		if (found) return found[1].replaceAll(",", "");
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	return document.querySelector("dialog")?.innerText ?? "no dialog";
})()`

// TestConsoleChartClick: a click into a chart lists the people of the nearest point.
func TestConsoleChartClick(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	query := `{"kind": "TrendsQuery", "series": [` + committing + `], ` + august + `, "trendsFilter": {"display": "%s"}}`
	points, _ := at(t, resultsOf(t, d.Client(d.Project, d.PersonalKey), fmt.Sprintf(query, "ActionsLineGraph")), 0, "data").([]any)
	for _, display := range []string{"ActionsLineGraph", "ActionsBar"} {
		c.draws(t, fmt.Sprintf(query, display))
		// The middle of the plot is at the seventh or eighth of 14 days; bars start at the bottom.
		var place struct{ X, Y float64 }
		raw := c.evaluate(t, `(() => {
			const plot = document.querySelector(".chart-plot canvas");
			plot.scrollIntoView({ block: "center" });
			const box = plot.getBoundingClientRect();
			return JSON.stringify({ X: box.x + box.width * 0.53, Y: box.y + box.height * 0.88 });
		})()`)
		if err := json.Unmarshal([]byte(raw), &place); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(c.ctx, chromedp.MouseClickXY(place.X, place.Y)); err != nil {
			t.Fatal(err)
		}
		c.settle(t)
		title := c.evaluate(t, `document.querySelector("dialog h2")?.innerText ?? "no dialog"`)
		_, date, _ := strings.Cut(title, ", ")
		day, err := time.Parse("Mon, 2 Jan 2006", date)
		if err != nil || day.Day() < 7 || day.Day() > 9 {
			t.Errorf("%s: a click in the middle opens %q", display, title)
			continue
		}
		if got, want := c.evaluate(t, peopleBehind), fmt.Sprint(points[day.Day()-1]); got != want {
			t.Errorf("%s: behind %s are %s people, and the API has %s", display, title, got, want)
		}
	}
}

// TestConsoleChartCohorts: a retention that is split by cohort has the names of the cohorts, which its result has not.
func TestConsoleChartCohorts(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	name := record(t, d.Client(d.Project, d.PersonalKey), "cohorts/1/")["name"]
	c := signedIn(t, d.Server, d.Project)
	const event = `{"id": "commit authored", "type": "events"}`
	c.draws(t, `{"kind": "RetentionQuery", `+august+`, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [1, "all"]},
		"retentionFilter": {"period": "Day", "totalIntervals": 3, "targetEntity": `+event+`, "returningEntity": `+event+`}}`)
	c.reads(t, ".chart-heat-group", fmt.Sprintf("All people\n%s", name))
}

// TestConsoleChartLooks draws every kind of chart: each is accessible, fits into a narrow window, and complies with the page's policy.
func TestConsoleChartLooks(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	c := signedIn(t, d.Server, d.Project)
	queries := map[string]string{
		"paths":    `{"kind": "PathsQuery", "dateRange": {"date_from": "2026-01-01", "date_to": "2026-08-22"}, "pathsFilter": {"includeEventTypes": ["custom_event"]}}`,
		"calendar": `{"kind": "CalendarHeatmapQuery", "properties": [], "series": [` + mergings + `], "dateRange": {"date_from": "2026-06-01", "date_to": "2026-08-22"}}`,
		"visits":   `{"kind": "WebOverviewQuery", "properties": [], "dateRange": {"date_from": "-30d"}}`,
		"times": `{"kind": "FunnelsQuery", "series": [` + committing + `, ` + mergings + `], "dateRange": {"date_from": "2026-01-01", "date_to": "2026-08-22"},
			"funnelsFilter": {"funnelVizType": "time_to_convert"}}`,
	}
	for _, display := range []string{
		"ActionsLineGraph", "ActionsAreaGraph", "ActionsUnstackedBar", "ActionsLineGraphCumulative", "BoldNumber", "Metric", "ActionsPie", "ActionsDonut", "ActionsTable",
		"WorldMap", "TwoDimensionalHeatmap", "SlopeGraph", "ScatterPlot", "BoxPlot",
	} {
		queries[display] = `{"kind": "TrendsQuery", "series": [` + committing + `], ` + august + `, "trendsFilter": {"display": "` + display + `"},
			"breakdownFilter": {"breakdown": "branch", "breakdown_type": "event"}}`
	}
	for name, shown := range shownQueries {
		queries[name] = shown.query
	}
	for name, query := range queries {
		for _, look := range []struct {
			theme string
			width int64
		}{{light, wide}, {dark, narrow}} {
			c.look(t, look.theme, look.width)
			c.draws(t, query)
			if got := c.evaluate(t, `document.querySelector(".insight-result figure.chart, figure.chart") ? "" : document.body.innerText`); got != "" {
				t.Errorf("%s is not drawn:\n%s", name, got)
				continue
			}
			c.picture(t, fmt.Sprint("chart ", name, " ", look.theme))
			c.fits(t)
			c.accessible(t)
		}
	}
}

// TestConsoleChartNames: names of events and values are shown as text, whatever they look like.
func TestConsoleChartNames(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	id, _ := d.Server.Project(t, "names of charts")
	const hostile = `<img src=x onerror=alert(1)>{b|x}`
	lines := ""
	for i := range 3 {
		when := time.Now().Add(-time.Duration(i) * time.Minute).UTC().Format(time.RFC3339)
		line, err := json.Marshal(map[string]any{
			"event": hostile, "distinct_id": fmt.Sprint("p", i), "timestamp": when, "properties": map[string]any{"kind": hostile},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	d.MustCommand(t, nil, strings.NewReader(lines), "import", "--project", fmt.Sprint(id), "-")
	c := signedIn(t, d.Server, id)
	name, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for _, display := range []string{"ActionsLineGraph", "ActionsPie", "ActionsBarValue", "BoldNumber", "ActionsTable"} {
		c.draws(t, `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": `+string(name)+`}], "dateRange": {"date_from": "-1d"}, "trendsFilter": {"display": "`+display+
			`", "showLegend": true}, "breakdownFilter": {"breakdown": "kind", "breakdown_type": "event"}}`)
		if got := c.evaluate(t, `String(document.querySelectorAll("img").length)`); got != "0" {
			t.Errorf("%s: a name became %s elements", display, got)
		}
		c.asTable(t)
		if got := c.text(t, ".chart-sheet, .chart-figures"); !strings.Contains(got, hostile) {
			t.Errorf("%s does not show the name but\n%s", display, got)
		}
	}
}
