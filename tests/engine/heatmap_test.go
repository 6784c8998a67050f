package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// heatmapProject is the project of the events that random heatmaps are asked of.
const heatmapProject = 351

// heatmapQuery is a random CalendarHeatmapQuery, in the words of the wire. A plain Go evaluator answers it too.
type heatmapQuery struct {
	zone, from, to string
	days           []int
	series         trendSeries
	goal           string // the event of a goal; empty for none
	bySession      any    // true, false or nil
}

func (q *heatmapQuery) node() map[string]any {
	series := map[string]any{"kind": "EventsNode", "math": q.series.math}
	if q.series.event != "" {
		series["event"] = q.series.event
	}
	if q.series.filter != "" {
		series["properties"] = []any{trendFilters[q.series.filter]}
	}
	node := map[string]any{
		"kind": "CalendarHeatmapQuery", "series": []any{series}, "dateRange": map[string]any{"date_from": q.from, "date_to": q.to, "daysOfWeek": q.days},
	}
	if q.goal != "" {
		node["conversionGoal"] = map[string]any{"customEventName": q.goal}
	}
	if q.bySession != nil {
		node["calendarHeatmapFilter"] = map[string]any{"bucketBySessionStart": q.bySession}
	}
	return node
}

// heatmapResults are the results, in the order of the answer.
type heatmapResults struct {
	Data    []map[string]int `json:"data"`
	Rows    []map[string]int `json:"rowAggregations"`
	Columns []map[string]int `json:"columnAggregations"`
	All     int              `json:"allAggregations"`
}

// TestHeatmapsAgainstPlainGo asks random heatmaps of the engine, and computes each a second time in plain Go.
func TestHeatmapsAgainstPlainGo(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9)) // the same every time
	events := randomEvents(random)
	for i := range events {
		// Sessions of a few days, and events without one.
		day := events[i].Timestamp.YearDay() + random.IntN(5)
		events[i].Properties["$session_id"] = fmt.Sprintf("%s-%d", events[i].person, day/4)
		if random.IntN(10) == 0 {
			delete(events[i].Properties, "$session_id")
		}
	}
	importEvents(t, heatmapProject, events)
	found := 0
	for i := range 80 {
		q := randomHeatmap(random)
		raw, err := json.Marshal(q.node())
		if err != nil {
			t.Fatal(err)
		}
		want := q.evaluate(t, events)
		found += want.All
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			compiled, rows := runNode(t, &trendQuery{zone: q.zone}, heatmapProject, raw)
			answer, err := compiled.Shape(rows.all)
			if err != nil {
				t.Fatal(err)
			}
			var got heatmapResults
			if err := json.Unmarshal(answer.Results, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %s\n%s\nresults (-plain Go +engine):\n%s", raw, q.zone, compiled.SQL, diff)
			}
		})
	}
	if found < 80*10 {
		t.Errorf("only %d are counted: the events are too few to tell", found)
	}
}

func randomHeatmap(r *rand.Rand) *heatmapQuery {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	first := time.Date(2024, 2, 20+r.IntN(20), 0, 0, 0, 0, time.UTC)
	q := &heatmapQuery{
		zone: pick("UTC", "America/New_York", "Asia/Kolkata"), from: first.Format(time.DateOnly), to: first.AddDate(0, 0, r.IntN(14)).Format(time.DateOnly),
		series: trendSeries{event: pick("", "a", "b"), math: pick("total", "dau", "dau"), filter: pick("", "", "chrome", "large", "pro")},
		goal:   pick("", "", "", "c"),
	}
	if r.IntN(4) == 0 {
		q.days = []int{1, 3, 7}
	}
	q.bySession = []any{nil, true, false}[r.IntN(3)]
	return q
}

// evaluate answers with what the contract says.
func (q *heatmapQuery) evaluate(t *testing.T, events []trendEvent) heatmapResults {
	t.Helper()
	zone, err := time.LoadLocation(q.zone)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(text string) time.Time {
		at, err := time.ParseInLocation(time.DateOnly, text, zone)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	from, end := bound(q.from), bound(q.to).AddDate(0, 0, 1)
	type moment struct {
		at     time.Time
		person string
	}
	var counted []moment
	begun := map[any]moment{}
	for i := range events {
		e := &events[i]
		name := q.series.event
		if q.goal != "" {
			name = q.goal
		}
		if name != "" && e.Event != name || !q.series.passes(e) || !e.Timestamp.Before(end) {
			continue
		}
		m := moment{e.Timestamp.In(zone), e.person}
		if q.series.math != "dau" || q.bySession == false {
			counted = append(counted, m)
			continue
		}
		session, given := e.Properties["$session_id"]
		if before, known := begun[session]; given && !e.Timestamp.Before(from.Add(-72*time.Hour)) && (!known || m.at.Before(before.at)) {
			begun[session] = m
		}
	}
	for _, m := range begun {
		counted = append(counted, m)
	}
	var cells [8][25]map[string]bool // of people, or of numbers that tell events apart
	for i, m := range counted {
		day := (int(m.at.Weekday())+6)%7 + 1
		if m.at.Before(from) || len(q.days) > 0 && !slices.Contains(q.days, day) {
			continue
		}
		who := m.person
		if q.series.math != "dau" {
			who = fmt.Sprint(i)
		}
		for _, at := range [][2]int{{day, m.at.Hour()}, {day, 24}, {0, m.at.Hour()}, {0, 24}} {
			cell := &cells[at[0]][at[1]]
			if *cell == nil {
				*cell = map[string]bool{}
			}
			(*cell)[who] = true
		}
	}
	out := heatmapResults{Data: []map[string]int{}, Rows: []map[string]int{}, Columns: []map[string]int{}, All: len(cells[0][24])}
	for day := range cells {
		for hour := range cells[day] {
			n := len(cells[day][hour])
			switch {
			case n == 0 || day == 0 && hour == 24:
			case day == 0:
				out.Columns = append(out.Columns, map[string]int{"column": hour, "value": n})
			case hour == 24:
				out.Rows = append(out.Rows, map[string]int{"row": day, "value": n})
			default:
				out.Data = append(out.Data, map[string]int{"row": day, "column": hour, "value": n})
			}
		}
	}
	return out
}
