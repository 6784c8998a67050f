package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// webProject is the first of the projects with the events that random queries of web analytics are asked of.
const webProject = 380

// webQuery is a random query of web analytics. A plain Go evaluator answers it too.
type webQuery struct {
	zone        *time.Location
	now, before *webSpan // before is nil when nothing is compared
	compareTo   string
	by          string // empty for an overview
	goal        string // "", event, action
	filters     []string

	clean, bounces, scrolls, testAccounts, ascending bool

	order         string
	limit, offset int

	people map[string]string // the ids of people by distinct id
}

// digits is what the project's rule of cleaning replaces.
var digits = regexp.MustCompile(`[0-9]+`)

var webFilters = map[string]map[string]any{
	"browser": {"type": "event", "key": "$browser", "operator": "exact", "value": "Chrome"},
	"page":    {"type": "event", "key": "$pathname", "operator": "exact", "value": []string{"/a"}},
	"source":  {"type": "session", "key": "$entry_utm_source", "operator": "exact", "value": "ads"},
	"plan":    {"type": "person", "key": "plan", "operator": "exact", "value": "pro"},
}

func (q *webQuery) node() map[string]any {
	filters := []any{}
	for _, name := range q.filters {
		filters = append(filters, webFilters[name])
	}
	node := map[string]any{
		"kind": "WebOverviewQuery", "properties": filters, "filterTestAccounts": q.testAccounts,
		"dateRange": map[string]any{"date_from": q.now.from.Format(time.DateOnly), "date_to": q.now.to.Format(time.DateOnly)},
	}
	if q.before != nil {
		node["compareFilter"] = map[string]any{"compare": true, "compare_to": q.compareTo}
	}
	switch q.goal {
	case "event":
		node["conversionGoal"] = map[string]any{"customEventName": "paid"}
	case "action":
		node["conversionGoal"] = map[string]any{"actionId": 4}
	}
	if q.by == "" {
		return node
	}
	node["kind"], node["breakdownBy"], node["limit"], node["offset"] = "WebStatsTableQuery", q.by, q.limit, q.offset
	node["doPathCleaning"], node["includeBounceRate"], node["includeScrollDepth"] = q.clean, q.bounces, q.scrolls
	if q.order != "" {
		node["orderBy"] = []string{q.order, map[bool]string{true: "ASC", false: "DESC"}[q.ascending]}
	}
	return node
}

func randomWebEvents(r *rand.Rand) []trendEvent {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	urls := []any{"https://x.com/a?q=1", "https://x.com/a", "https://x.com/b/12", "https://x.com/b/7#top", "https://x.com", nil}
	var out []trendEvent
	for session := range 70 {
		at := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(20*24*3600)) * time.Second)
		id := r.IntN(12)
		for range 1 + r.IntN(7) {
			if r.IntN(8) == 0 { // somebody else in the same session
				id = r.IntN(12)
			}
			e := trendEvent{
				Event:      pick("$pageview", "$pageview", "$pageview", "$screen", "$autocapture", "$pageleave", "paid", "other").(string),
				DistinctID: fmt.Sprintf("id%d", id), person: fmt.Sprint(id % 11), Timestamp: at, Properties: map[string]any{},
				UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", len(out)),
			}
			e.plan = []any{"pro", "free", nil}[(id%11)%3]
			switch session % 10 {
			case 0: // no session
			case 1: // of a form that names none
				e.Properties["$session_id"] = fmt.Sprintf("session %d", session)
			default:
				e.Properties["$session_id"] = fmt.Sprintf("018e%04x-0000-7000-8000-%012x", session, session)
			}
			for name, values := range map[string][]any{
				"$current_url": urls, "$pathname": {"/a", "/a", "/b/12", "/b/7", nil}, "$browser": {"Chrome", "Safari", nil},
				"$screen_name": {"home", "more", nil}, "$external_click_url": {"https://out.org/1", nil, nil}, "$referring_domain": {"news.org", "$direct", nil},
				"$referrer": {"https://x.com/a", "https://news.org/x", nil}, "$prev_pageview_pathname": {"/a", "/b/12", nil},
				"utm_source": {"ads", "mail", nil, nil}, "utm_medium": {"cpc", nil}, "utm_campaign": {"spring", nil, nil},
				"$browser_language": {"en-US", "en-GB", "nl", "zh-Hans-CN", nil}, "$timezone_offset": {-330, 0, "240", "far", nil},
				"$viewport_width": {1920, 0, "800", nil}, "$viewport_height": {1080, 600, nil}, "$geoip_country_code": {"DE", "US", nil},
				"$geoip_city_name": {"Berlin", "Springfield", nil}, "$prev_pageview_max_scroll_percentage": {0.5, 1, nil},
				"$prev_pageview_max_content_percentage": {0.8, 0.9, nil},
			} {
				if value := pick(values...); value != nil {
					e.Properties[name] = value
				}
			}
			out = append(out, e)
			at = at.Add([]time.Duration{time.Second, 9 * time.Second, 10 * time.Second, 5 * time.Minute, 3 * time.Hour}[r.IntN(5)])
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func randomWeb(r *rand.Rand) *webQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	zone, err := time.LoadLocation(pick("UTC", "America/New_York", "Asia/Kolkata"))
	if err != nil {
		panic(err)
	}
	days := 1 + r.IntN(9)
	from := time.Date(2024, 3, 1+r.IntN(18), 0, 0, 0, 0, zone)
	span := func(from time.Time) *webSpan {
		return &webSpan{from: from, to: from.AddDate(0, 0, days).Add(-time.Microsecond)}
	}
	q := &webQuery{
		zone: zone, now: span(from), goal: pick("", "", "", "event", "action"), clean: r.IntN(3) == 0, bounces: r.IntN(2) == 0, scrolls: r.IntN(3) == 0,
		testAccounts: r.IntN(4) == 0, limit: 100,
		by: pick("Page", "Page", "Page", "InitialPage", "ExitPage", "ExitClick", "PreviousPage", "ScreenName", "InitialReferringDomain", "InitialUTMSource",
			"InitialUTMSourceMediumCampaign", "Browser", "Language", "Timezone", "Viewport", "City"),
	}
	switch r.IntN(4) {
	case 0:
		q.before = span(from.AddDate(0, 0, -days))
	case 1:
		q.before, q.compareTo = span(from.AddDate(0, 0, -7)), "-1w"
	case 2:
		q.before, q.compareTo = span(from.AddDate(0, 0, -2)), "-2d"
	}
	for name := range webFilters {
		if r.IntN(6) == 0 {
			q.filters = append(q.filters, name)
		}
	}
	if r.IntN(2) == 0 {
		q.order = pick("Visitors", "Views", "BounceRate", "AverageScrollPercentage", "TotalConversions", "UniqueConversions", "ConversionRate", "Errors")
		q.ascending = r.IntN(2) == 0
	}
	if q.by == "Page" && r.IntN(3) == 0 { // a filter by page counts in three ways
		q.goal, q.bounces, q.scrolls = "", true, true
		q.filters = []string{"page"}
	}
	if r.IntN(3) == 0 {
		q.limit, q.offset = 1+r.IntN(4), r.IntN(3)
	}
	return q
}

// runWeb asks the engine.
func runWeb(t *testing.T, q *webQuery, project int64, raw []byte) (*compiler.Compiled, rowCollector) {
	t.Helper()
	node, err := compiler.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	chrome, err := query.ParseActionProperties([]byte(`[{"key": "$browser", "value": "Chrome", "operator": "exact", "type": "event"}]`))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(node, compiler.Env{
		Database: &schema.Database{Project: project, Location: q.zone, Layout: schema.NativeLayout()}, Now: time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC),
		PathCleaning: []query.PathCleaning{{Regex: digits.String(), Alias: ":id"}},
		TestAccounts: &query.Condition{Filter: &query.Property{Type: "event_metadata", Key: "distinct_id", Operator: "is_not", Value: "id1"}},
		Actions:      query.NewActions([]query.Action{{ID: 4, Name: "Reached", Steps: []query.ActionStep{{Event: "paid"}, {Event: "$pageview", Properties: chrome}}}}),
	})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return compiled, webRows(t, compiled, project)
}

func webRows(t *testing.T, compiled *compiler.Compiled, project int64) rowCollector {
	t.Helper()
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	var rows rowCollector
	if _, err := client.Query(t.Context(), clickhouse.Query{SQL: compiled.SQL, Params: params, Project: project}, &rows); err != nil {
		t.Fatalf("%v\n%s", err, compiled.SQL)
	}
	return rows
}

// peopleOfEvents gives the ids of people by their distinct ids.
func peopleOfEvents(t *testing.T, project int64) map[string]string {
	t.Helper()
	node, err := compiler.Parse([]byte(`{"kind": "HogQLQuery", "query": "SELECT distinct_id, toString(any(person_id)) FROM events GROUP BY distinct_id"}`))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(node, compiler.Env{Database: &schema.Database{Project: project, Layout: schema.NativeLayout()}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	rows := webRows(t, compiled, project)
	for row := range rows.all {
		var pair [2]string
		if err := json.Unmarshal(row, &pair); err != nil {
			t.Fatal(err)
		}
		out[pair[0]] = pair[1]
	}
	return out
}

// TestWebAgainstPlainGo asks random queries of web analytics of the engine, and computes each a second time in plain Go.
func TestWebAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9)) // the same every time
	sets, count := 5, rounds(t, 110)
	found := 0
	for set := range sets {
		project := int64(webProject + set)
		events := randomWebEvents(random)
		importEvents(t, project, events)
		people := peopleOfEvents(t, project)
		for i := range count {
			q := randomWeb(random)
			q.people = people
			if i%4 == 0 {
				q.by = ""
			}
			raw, err := json.Marshal(q.node())
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if q.by == "" {
				want = q.overview(events)
			} else {
				rows, more := q.table(events)
				found += len(rows)
				want = map[string]any{"rows": rows, "more": more}
			}
			t.Run(fmt.Sprintf("%d-%d", set, i), func(t *testing.T) {
				t.Parallel()
				compiled, rows := runWeb(t, q, project, raw)
				answer, err := compiled.Shape(rows.all)
				if err != nil {
					t.Fatal(err)
				}
				var got any
				if err := json.Unmarshal(answer.Results, &got); err != nil {
					t.Fatal(err)
				}
				if answer.HasMore != nil {
					got = map[string]any{"rows": got, "more": *answer.HasMore}
				}
				var plain any
				if err := json.Unmarshal([]byte(jsonOf(want)), &plain); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(plain, got, cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.EquateEmpty(), ofWeb); diff != "" {
					t.Errorf("%s in %s\n%s\nresults (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
				}
			})
		}
	}
	if found < sets*count {
		t.Errorf("only %d rows are found: the events are too few to tell", found)
	}
}

// ofWeb leaves the members of items out that follow from others, and takes no rows for an empty list.
var ofWeb = gocmp.Options{
	cmpopts.IgnoreMapEntries(func(name string, value any) bool {
		return name == "kind" || name == "isIncreaseBad" || name == "changeFromPreviousPct" || name == "rows" && emptyRows(value)
	}),
}

func emptyRows(value any) bool {
	rows, isList := value.([]any)
	return value == nil || isList && len(rows) == 0
}
