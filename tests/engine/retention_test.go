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

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// retentionProject is the first of the projects of the events that random retentions are asked of.
const retentionProject = 320

// retentionQuery is a random retention. A plain Go evaluator answers it too.
type retentionQuery struct {
	trendQuery // zone, weekStart, from, to, interval

	kind        string
	start, back trendSeries // event and filter
	filter      string
	columns     int
	minimum     int
	cumulative  bool
	rolling     bool
	brackets    []int
	aggregation string // "", sum, avg
	ofPeople    bool
	breakdown   string // "", browser, plan, event, parity
	limit       int
	groups      bool
	weekdays    []int

	plans    map[string]string  // of people, as they are now
	seats    map[string]float64 // the same
	earliest time.Time          // of the events that count, where the range begins with it
}

var retentionBreakdowns = map[string]map[string]any{
	"browser": {"type": "event", "property": "browser"},
	"plan":    {"type": "person", "property": "plan"},
	"event":   {"type": "event_metadata", "property": "event"},
	"parity":  {"type": "hogql", "property": "if(toInt(toFloat(properties.n)) % 2 = 0, 'even', 'odd')"},
}

func (q *retentionQuery) node() map[string]any {
	entity := func(s trendSeries) map[string]any {
		out := map[string]any{"type": "events", "id": nil}
		if s.event != "" {
			out["id"] = s.event
		}
		if s.filter != "" {
			out["properties"] = []any{trendFilters[s.filter]}
		}
		return out
	}
	filter := map[string]any{
		"targetEntity": entity(q.start), "returningEntity": entity(q.back), "retentionType": q.kind, "period": q.word(), "totalIntervals": q.columns,
		"minimumOccurrences": q.minimum, "cumulative": q.cumulative,
	}
	if q.rolling {
		filter["timeWindowMode"] = "24_hour_windows"
	}
	if len(q.brackets) > 0 {
		filter["retentionCustomBrackets"] = q.brackets
	}
	if q.aggregation != "" {
		filter["aggregationType"], filter["aggregationProperty"] = q.aggregation, "n"
		if q.ofPeople {
			filter["aggregationProperty"], filter["aggregationPropertyType"] = "seats", "person"
		}
	}
	dates := map[string]any{"date_to": q.to}
	if q.from != "" {
		dates["date_from"] = q.from
	}
	if len(q.weekdays) > 0 {
		dates["daysOfWeek"] = q.weekdays
	}
	node := map[string]any{"kind": "RetentionQuery", "retentionFilter": filter, "dateRange": dates}
	if q.filter != "" {
		node["properties"] = []any{trendFilters[q.filter]}
	}
	if q.breakdown != "" {
		node["breakdownFilter"] = map[string]any{"breakdowns": []any{retentionBreakdowns[q.breakdown]}, "breakdown_limit": q.limit}
	}
	if q.groups {
		node["aggregation_group_type_index"] = 0
	}
	return node
}

// retentionEvents are random events whose times are as dense as a period asks for, many of them equal.
func retentionEvents(r *rand.Rand, interval string) []trendEvent {
	events := randomEvents(r)[:160]
	begin := time.Date(2024, 2, 20, 0, 0, 0, 0, time.UTC)
	scale := map[string]float64{"hour": 0.02, "day": 0.3, "week": 1.2, "month": 5}[interval]
	switch interval {
	case "hour", "day": // over a change of the clock in New York
		begin = time.Date(2024, 3, 9, 4, 0, 0, 0, time.UTC)
	case "month": // the other change
		begin = time.Date(2023, 9, 10, 0, 0, 0, 0, time.UTC)
	}
	for i := range events {
		passed := time.Duration(float64(events[i].Timestamp.Sub(time.Date(2024, 2, 20, 0, 0, 0, 0, time.UTC))) * scale)
		events[i].Timestamp = begin.Add(passed.Truncate(10 * time.Minute))
	}
	return events
}

// changePeople gives people another plan than their events recorded, and a number of seats.
func changePeople(t *testing.T, project int64, events []trendEvent) (plans map[string]string, seats map[string]float64) {
	t.Helper()
	plans, seats = map[string]string{}, map[string]float64{}
	ids := map[string]string{}
	for _, e := range events {
		ids[e.person] = e.DistinctID
		plans[e.person] = fmt.Sprintf("plan %d", len(e.person)+int(e.person[0])%3)
		seats[e.person] = float64(e.person[0]%5) / 2
	}
	var lines strings.Builder
	for person, id := range ids {
		fmt.Fprintf(&lines, `{"type": "person", "distinct_ids": [%q], "properties": {"plan": %q, "seats": %v}}`+"\n", id, plans[person], seats[person])
	}
	report, err := ingest.New(client).Import(t.Context(), ingest.Options{Project: project, Now: time.Now()}, ingesttest.Lines(lines.String()))
	if err != nil || report.Bad > 0 {
		t.Fatalf("changing people: %v: %+v", err, report)
	}
	return plans, seats
}

func randomRetention(r *rand.Rand, interval string, events []trendEvent) *retentionQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	entity := func() trendSeries {
		return trendSeries{event: pick("", "a", "a", "b"), filter: pick("", "", "", "chrome", "not_chrome", "large", "pro")}
	}
	q := &retentionQuery{
		trendQuery: trendQuery{zone: pick("UTC", "America/New_York", "Asia/Kolkata"), weekStart: r.IntN(2), interval: interval},
		kind:       pick("retention_recurring", "retention_recurring", "retention_first_time", "retention_first_ever_occurrence"),
		start:      entity(), back: entity(), filter: pick("", "", "", "not_chrome", "pro"),
		columns: 1 + r.IntN(9), minimum: 1, breakdown: pick("", "", "", "browser", "plan", "event", "parity"), limit: 1 + r.IntN(3), groups: r.IntN(5) == 0,
	}
	if r.IntN(3) == 0 {
		q.back = q.start
	}
	last := events[r.IntN(len(events))].Timestamp.In(q.location())
	form := pick(time.DateOnly, "2006-01-02T15:04:05")
	if interval == "hour" {
		form = "2006-01-02T15:04:05"
	}
	q.to = last.Format(form)
	if r.IntN(2) == 0 {
		back := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour}[interval]
		q.from = last.Add(-back * time.Duration(r.IntN(90))).Format(form)
	}
	if r.IntN(4) == 0 {
		for range 1 + r.IntN(3) {
			q.brackets = append(q.brackets, 1+r.IntN(4))
		}
	}
	if r.IntN(8) == 0 {
		q.weekdays = []int{1, 2, 6, 7}
	}
	switch r.IntN(6) {
	case 0:
		q.rolling = true
	case 1:
		q.cumulative = true
	case 2:
		q.aggregation, q.ofPeople = pick("sum", "avg"), r.IntN(3) == 0
	}
	if r.IntN(4) == 0 {
		q.minimum = 2 + r.IntN(2)
	}
	if r.IntN(8) == 0 {
		_, behind := q.starts()
		for i := range events {
			e := &events[i]
			if q.counts(e, behind) && (q.matches(&q.start, e) || q.matches(&q.back, e)) && (q.earliest.IsZero() || e.Timestamp.Before(q.earliest)) {
				q.earliest, q.from = e.Timestamp, "all"
			}
		}
	}
	return q
}

// TestRetentionAgainstPlainGo asks random retentions of the engine, and computes each a second time in plain Go.
func TestRetentionAgainstPlainGo(t *testing.T) {
	for i, interval := range []string{"hour", "day", "week", "month"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			retentionsAgainstPlainGo(t, int64(retentionProject+i), interval)
		})
	}
}

func retentionsAgainstPlainGo(t *testing.T, project int64, interval string) {
	t.Helper()
	random := rand.New(rand.NewPCG(8, uint64(project))) // the same every time
	count := rounds(t, 130)
	events := retentionEvents(random, interval)
	importEvents(t, project, events)
	plans, seats := changePeople(t, project, events)
	some := 0
	for n := range count {
		q := randomRetention(random, interval, events)
		q.plans, q.seats = plans, seats
		raw, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		compiled, rows := runNode(t, &q.trendQuery, project, raw)
		answer, err := compiled.Shape(rows.all)
		if err != nil {
			t.Fatalf("%s: %v\n%s", raw, err, compiled.SQL)
		}
		var got []retentionRow
		if err := json.Unmarshal(answer.Results, &got); err != nil {
			t.Fatal(err)
		}
		want := q.evaluate(events)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s in %s\n%s\nrows (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
		}
		some += comesBack(got)
		if n%3 == 0 {
			checkRetentionActors(t, q, project, raw, events, random)
		}
	}
	if some < count/4 {
		t.Errorf("only %d of %d retentions have anybody coming back: the events are too few to tell", some, count)
	}
}

// comesBack is 1 when a column behind the first is not 0.
func comesBack(rows []retentionRow) int {
	for _, row := range rows {
		if slices.ContainsFunc(row.Values[1:], func(c retentionCell) bool { return c.Count > 0 }) {
			return 1
		}
	}
	return 0
}

// checkRetentionActors asks who is in a row, and in which columns.
func checkRetentionActors(t *testing.T, q *retentionQuery, project int64, raw []byte, events []trendEvent, random *rand.Rand) {
	t.Helper()
	members := q.members(events)
	if len(members) == 0 {
		return
	}
	chosen := members[random.IntN(len(members))]
	node := map[string]any{"kind": "InsightActorsQuery", "source": json.RawMessage(raw), "interval": chosen.row}
	if q.breakdown != "" {
		node["breakdown"] = []any{chosen.value}
	}
	var want, got []string
	for _, m := range members {
		if m.row != chosen.row || m.value != chosen.value {
			continue
		}
		columns, flags := []int{}, make([]int, q.width())
		for column := range m.amounts {
			columns, flags[column] = append(columns, column), 1
		}
		slices.Sort(columns)
		want = append(want, retentionActor(t, q, m.actor, columns, flags))
	}
	text, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	compiled, rows := runNode(t, &q.trendQuery, project, text)
	for _, row := range rows {
		var cells []any
		if err := json.Unmarshal([]byte(row), &cells); err != nil {
			t.Fatal(err)
		}
		got = append(got, retentionActor(t, q, cells[0], cells[1], cells[2:]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s in %s\n%s\nactors (-plain Go +engine):\n%s", text, q.zone, compiled.SQL, diff)
	}
}

// retentionActor is an actor as it is compared; the ids of people are the engine's own.
func retentionActor(t *testing.T, q *retentionQuery, actor, columns, flags any) string {
	t.Helper()
	if !q.groups {
		actor = "somebody"
	}
	out, err := json.Marshal([]any{actor, columns, flags})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
