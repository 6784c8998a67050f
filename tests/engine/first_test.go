package engine_test

import (
	"slices"
	"testing"
	"time"
)

// firstsProject is the project of the events of TestFirstOnDaysOfWeek.
const firstsProject = 308

// TestFirstOnDaysOfWeek asks for first events on Mondays only. An event that has to match the filters has to be on a Monday, but the first
// event of a name is the first on any day.
func TestFirstOnDaysOfWeek(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2024, 3, day, 12, 0, 0, 0, time.UTC) }
	event := func(id string, day int) trendEvent {
		return trendEvent{Event: "a", DistinctID: id, person: id, Timestamp: at(day), Properties: map[string]any{"$group_0": "org0"}}
	}
	importEvents(t, firstsProject, []trendEvent{
		event("both", 10), event("both", 11), event("both", 18), // a Sunday, then Mondays
		event("monday", 18),
	})
	for math, want := range map[string][]float64{
		"first_matching_event_for_user":  {1, 1},
		"first_matching_event_for_group": {1, 0},
		"first_time_for_user":            {0, 1},
		"first_time_for_group":           {0, 0},
	} {
		items, _ := itemsOf(t, firstsProject, `{"kind": "TrendsQuery", "series": [{"event": "a", "math": "`+math+`", "math_group_type_index": 0}],
			"dateRange": {"date_from": "2024-03-08", "date_to": "2024-03-20", "daysOfWeek": [1]}}`)
		if len(items) != 1 || !slices.Equal(items[0].Data, want) {
			t.Errorf("%s: %+v, want %v", math, items, want)
		}
	}
}
