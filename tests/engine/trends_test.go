package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// trendsProject is the project of the events that random trends are asked of.
const trendsProject = 301

// trendQuery is a random trend, in the words of the wire. A plain Go evaluator answers it too.
type trendQuery struct {
	zone      string
	weekStart int
	from, to  string
	interval  string
	series    []trendSeries
	breakdown []string // browser, plan or n10; more than one: the field breakdowns
	limit     int
	compareTo string // "" none, "before", or a relative date
	display   string
	smoothing int
}

type trendSeries struct {
	event  string // "" all
	math   string
	filter string // "", chrome, not_chrome, large, pro
}

var trendFilters = map[string]map[string]any{
	"chrome":     {"type": "event", "key": "browser", "operator": "exact", "value": []string{"Chrome", "Opera"}},
	"not_chrome": {"type": "event", "key": "browser", "operator": "is_not", "value": "Chrome"},
	"large":      {"type": "event", "key": "n", "operator": "gte", "value": 5},
	"pro":        {"type": "person", "key": "plan", "operator": "icontains", "value": "PR"},
}

var trendBreakdowns = map[string]map[string]any{
	"browser": {"type": "event", "property": "browser"},
	"plan":    {"type": "person", "property": "plan"},
	"parity":  {"type": "hogql", "property": "if(toInt(toFloat(properties.n)) % 2 = 0, 'even', 'odd')"},
}

func (q *trendQuery) node() map[string]any {
	node := map[string]any{
		"kind": "TrendsQuery", "interval": q.interval, "dateRange": map[string]any{"date_from": q.from, "date_to": q.to},
	}
	var series []any
	for _, s := range q.series {
		one := map[string]any{"kind": "EventsNode", "event": nil}
		if s.event != "" {
			one["event"] = s.event
		}
		switch s.math {
		case "sum", "avg", "min", "max", "median", "p90":
			one["math_property"] = "n"
		case "unique_group":
			one["math_group_type_index"] = 0
		case "hogql":
			one["math_hogql"] = "count() * 2"
		}
		one["math"] = s.math
		if s.filter != "" {
			one["properties"] = []any{trendFilters[s.filter]}
		}
		series = append(series, one)
	}
	node["series"] = series
	filter := map[string]any{"display": q.display}
	if q.smoothing > 0 {
		filter["smoothingIntervals"] = q.smoothing
	}
	node["trendsFilter"] = filter
	if len(q.breakdown) > 0 {
		var list []any
		for _, name := range q.breakdown {
			list = append(list, trendBreakdowns[name])
		}
		node["breakdownFilter"] = map[string]any{"breakdowns": list, "breakdown_limit": q.limit}
	}
	switch q.compareTo {
	case "":
	case "before":
		node["compareFilter"] = map[string]any{"compare": true}
	default:
		node["compareFilter"] = map[string]any{"compare": true, "compare_to": q.compareTo}
	}
	return node
}

// trendItem is what is compared of an item.
type trendItem struct {
	Series     int       `json:"order"`
	Period     string    `json:"compare_label"`
	Values     []string  `json:"breakdown_value"`
	Days       []string  `json:"days"`
	Data       []float64 `json:"data"`
	Aggregated float64   `json:"aggregated_value"`
	Count      float64   `json:"count"`
}

// TestTrendsAgainstPlainGo asks random trends of the engine, and computes each a second time in plain Go.
func TestTrendsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9)) // the same every time
	events := randomEvents(random)
	importEvents(t, trendsProject, events)
	count := rounds(t, 150)
	for i := range count {
		q := randomTrend(random)
		raw, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			got, sql := askTrend(t, q, raw)
			want := evaluate(q, events)
			byName := cmpopts.SortSlices(func(a, b trendItem) bool { return itemName(a) < itemName(b) })
			options := cmp.Options{cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.EquateEmpty()}
			if strings.HasPrefix(q.display, "Bold") {
				options = append(options, byName) // ties in rank have no order
			}
			if diff := cmp.Diff(want, got, options); diff != "" {
				t.Errorf("%s in %s\n%s\nresults (-plain Go +engine):\n%s", raw, q.zone, sql, diff)
			}
		})
	}
}

func itemName(i trendItem) string { return fmt.Sprint(i.Period, i.Series, i.Values) }

func askTrend(t *testing.T, q *trendQuery, raw []byte) ([]trendItem, string) {
	t.Helper()
	compiled, rows := runNode(t, q, trendsProject, raw)
	answer, err := compiled.Shape(func(yield func([]byte) bool) {
		for _, row := range rows {
			if !yield([]byte(row)) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var items []trendItem
	if err := json.Unmarshal(answer.Results, &items); err != nil {
		t.Fatal(err)
	}
	return items, compiled.SQL
}

// runNode compiles a query for the zone and the weeks of a trend, and runs it.
func runNode(t *testing.T, q *trendQuery, project int64, raw []byte) (*compiler.Compiled, rowCollector) {
	t.Helper()
	node, err := compiler.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	zone, err := time.LoadLocation(q.zone)
	if err != nil {
		t.Fatal(err)
	}
	db := &schema.Database{
		Project: project, Location: zone, WeekStart: q.weekStart, Layout: schema.NativeLayout(),
		Properties: schema.PropertyTypes{{Scope: schema.EventProperty, Name: "n"}: schema.NumericProperty},
	}
	compiled, err := compiler.Compile(node, compiler.Env{Database: db, Now: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	var rows rowCollector
	if _, err := client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: project}, &rows); err != nil {
		t.Fatalf("%s: %v\n%s", raw, err, compiled.SQL)
	}
	return compiled, rows
}

// trendEvent is one random event.
type trendEvent struct {
	Event      string         `json:"event"`
	DistinctID string         `json:"distinct_id"`
	Timestamp  time.Time      `json:"timestamp"`
	Properties map[string]any `json:"properties"`
	UUID       string         `json:"uuid,omitempty"`

	person, group string
	plan          any
}

func randomEvents(r *rand.Rand) []trendEvent {
	plans := []any{"pro", "free", "Preview", nil, ""}
	start := time.Date(2024, 2, 20, 0, 0, 0, 0, time.UTC)
	var out []trendEvent
	for range 400 {
		id := r.IntN(14)
		person := id % 11 // three people have two ids
		e := trendEvent{
			Event: []string{"a", "a", "b", "c"}[r.IntN(4)], DistinctID: fmt.Sprintf("id%d", id), person: fmt.Sprint(person), plan: plans[person%len(plans)],
			Timestamp:  start.Add(time.Duration(r.IntN(30*24*60)) * time.Minute),
			Properties: map[string]any{"$session_id": fmt.Sprintf("s%d", r.IntN(60))},
		}
		if r.IntN(3) > 0 {
			e.group = fmt.Sprintf("org%d", r.IntN(4))
			e.Properties["$group_0"] = e.group
		}
		switch browser := []any{"Chrome", "Firefox", "Safari", "Opera", "", nil, "-"}[r.IntN(7)]; browser {
		case "-":
		default:
			e.Properties["browser"] = browser
		}
		switch r.IntN(8) {
		case 0:
		case 1:
			e.Properties["n"] = "none"
		case 2:
			e.Properties["n"] = "7"
		default:
			e.Properties["n"] = r.IntN(12)
		}
		out = append(out, e)
	}
	return out
}

func importEvents(t *testing.T, project int64, events []trendEvent) {
	t.Helper()
	var records []any
	ids, plans := map[string][]string{}, map[string]any{}
	for _, e := range events {
		if !slices.Contains(ids[e.person], e.DistinctID) {
			ids[e.person] = append(ids[e.person], e.DistinctID)
		}
		plans[e.person] = e.plan
	}
	for person, all := range ids {
		records = append(records, map[string]any{"type": "person", "distinct_ids": all, "properties": map[string]any{"plan": plans[person]}})
	}
	for i := range 4 {
		records = append(records, map[string]any{"type": "group", "group_type": "organization", "group_type_index": 0, "group_key": fmt.Sprintf("org%d", i), "properties": map[string]any{}})
	}
	for _, e := range events {
		records = append(records, e)
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: project, Now: time.Now()}, ingesttest.Records(t, records...))
	if err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
}

func randomTrend(r *rand.Rand) *trendQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	q := &trendQuery{
		zone: pick("UTC", "America/New_York", "Asia/Kolkata"), weekStart: r.IntN(2), interval: pick("hour", "day", "day", "week", "month"),
		display: pick("ActionsLineGraph", "ActionsLineGraph", "ActionsLineGraphCumulative", "BoldNumber"), limit: 1 + r.IntN(3),
		compareTo: pick("", "", "before", "-3d", "-1w"),
	}
	first := time.Date(2024, 3, 1+r.IntN(9), 0, 0, 0, 0, time.UTC)
	days := r.IntN(12)
	if q.interval == "hour" {
		days = r.IntN(2)
	}
	q.from, q.to = first.Format(time.DateOnly), first.AddDate(0, 0, days).Format(time.DateOnly)
	if q.display == "BoldNumber" {
		q.limit = 25
	}
	if q.display == "ActionsLineGraph" && r.IntN(4) == 0 {
		q.smoothing = 3
	}
	for range 1 + r.IntN(3) {
		q.series = append(q.series, trendSeries{
			event: pick("", "a", "a", "b", "none"), filter: pick("", "", "chrome", "not_chrome", "large", "pro"),
			math: pick("total", "total", "dau", "dau", "weekly_active", "monthly_active", "unique_session", "unique_group", "sum", "avg", "min", "max",
				"median", "p90", "avg_count_per_actor", "max_count_per_actor", "first_time_for_user", "first_matching_event_for_user", "hogql"),
		})
	}
	switch r.IntN(4) {
	case 0:
		q.breakdown = []string{pick("browser", "plan", "parity")}
	case 1:
		q.breakdown = []string{"browser", "plan"}
	}
	return q
}
