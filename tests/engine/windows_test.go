package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The projects of the tests of active users.
const (
	crowdProject = 371
	axisProject  = 372
)

// TestActiveUsersOfManyPeople counts people in windows that together have more buckets than the engine lets range make at once.
func TestActiveUsersOfManyPeople(t *testing.T) {
	const people = 1500
	execute(t, dsn, fmt.Sprintf("INSERT INTO events (uuid, event, properties, timestamp, team_id, distinct_id, person_id) SELECT generateUUIDv4(), 'a', "+
		"concat('{\"browser\": \"', toString(number), '\"}'), toDateTime64('2024-03-01 00:00:00', 6, 'UTC') + toIntervalMinute(number %% 2 * 60 * 24 * 5), %d, "+
		"toString(number), toUUID(concat('00000000-0000-0000-0000-', leftPad(toString(number), 12, '0'))) FROM numbers(%d)", crowdProject, people))
	for _, tt := range []struct {
		interval  string
		perDay    int
		breakdown string
	}{
		{"minute", 24 * 60, ""},
		{"hour", 24, `, "breakdownFilter": {"breakdowns": [{"property": "browser"}], "breakdown_limit": 1}`},
	} {
		items, _ := itemsOf(t, crowdProject, fmt.Sprintf(`{"kind": "TrendsQuery", "series": [{"event": "a", "math": "monthly_active"}], "interval": %q,
			"dateRange": {"date_from": "2024-03-05T00:00:00", "date_to": "2024-03-11T00:00:00"}%s}`, tt.interval, tt.breakdown))
		slices.SortFunc(items, func(a, b trendItem) int { return int(b.Count - a.Count) })
		data := make([]float64, 6*tt.perDay+1)
		for i := range data {
			if data[i] = people / 2; i >= tt.perDay { // the other half comes after a day
				data[i] = people
			}
			if tt.breakdown != "" {
				data[i]-- // of the value that is shown
			}
		}
		if diff := cmp.Diff(data, items[0].Data); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", tt.interval, diff)
		}
	}
}

// TestActiveUsersRankByTheirAxis asks for the largest value only. Active users on days that are not shown do not count.
func TestActiveUsersRankByTheirAxis(t *testing.T) {
	var events []trendEvent
	add := func(event, browser, day string, people int) {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		for i := range people {
			name := fmt.Sprint(event, browser, i)
			events = append(events, trendEvent{
				Event: event, DistinctID: name, person: name, Timestamp: at.Add(time.Hour), Properties: map[string]any{"browser": browser},
			})
		}
	}
	add("week", "hidden", "2024-03-04", 2) // on the axis until the 10th, like the six days before it
	add("week", "shown", "2024-02-03", 3)  // on the axis until the 3rd
	add("weekday", "hidden", "2024-02-05", 5)
	add("weekday", "shown", "2024-03-11", 1)
	add("slope", "hidden", "2024-03-08", 5)
	add("slope", "shown", "2024-03-24", 1)
	importEvents(t, axisProject, events)

	for _, tt := range []struct {
		event, query string
		want         []float64
		more         bool
	}{
		{"week", `"interval": "week", "dateRange": {"date_from": "2024-03-03", "date_to": "2024-03-16"}`, []float64{3, 0}, true},
		{"weekday", `"dateRange": {"date_from": "2024-03-05", "date_to": "2024-03-11", "daysOfWeek": [1]}`, []float64{1}, false},
		{"slope", `"trendsFilter": {"display": "SlopeGraph"}, "dateRange": {"date_from": "2024-02-01", "date_to": "2024-03-24"}`, []float64{0, 1}, false},
	} {
		math := "monthly_active"
		if tt.event == "slope" {
			math = "weekly_active"
		}
		items, more := itemsOf(t, axisProject, fmt.Sprintf(`{"kind": "TrendsQuery", "series": [{"event": %q, "math": %q}], %s,
			"breakdownFilter": {"breakdowns": [{"property": "browser"}], "breakdown_limit": 1}}`, tt.event, math, tt.query))
		if more != tt.more || !slices.Equal(items[0].Values, []string{"shown"}) || !slices.Equal(items[0].Data, tt.want) {
			t.Errorf("%s: %+v, more %t, want first the value that is shown, with %v, and more %t", tt.event, items, more, tt.want, tt.more)
		}
	}
}

// itemsOf returns the items of a trend in UTC, and whether there are more values.
func itemsOf(t *testing.T, project int64, query string) (items []trendItem, more bool) {
	t.Helper()
	compiled, rows := runNode(t, &trendQuery{zone: "UTC"}, project, []byte(query))
	answer, err := compiled.Shape(rowsIn(rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Results, &items); err != nil {
		t.Fatal(err)
	}
	return items, *answer.HasMore
}
