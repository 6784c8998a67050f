package warehouse

import (
	"slices"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestDatesOf: each day is in one span, and no span has too many events, unless a day has.
func TestDatesOf(t *testing.T) {
	const half = eventsAtOnce / 2
	on := func(date string, events int64) clickhouse.Day { return clickhouse.Day{Date: date, Events: events} }
	for name, tt := range map[string]struct {
		days []clickhouse.Day
		want []dates
	}{
		"none":      {nil, nil},
		"one":       {[]clickhouse.Day{on("2024-01-01", 3*half)}, []dates{{"2024-01-01", "2024-01-01"}}},
		"together":  {[]clickhouse.Day{on("2024-01-01", half), on("2024-01-05", half)}, []dates{{"2024-01-01", "2024-01-05"}}},
		"one apart": {[]clickhouse.Day{on("2024-01-01", half), on("2024-01-05", half+1)}, []dates{{"2024-01-01", "2024-01-01"}, {"2024-01-05", "2024-01-05"}}},
		"all": {
			[]clickhouse.Day{on("2024-01-01", 1), on("2024-01-02", 3*half), on("2024-01-03", 1), on("2024-01-04", half), on("2024-01-05", half)},
			[]dates{{"2024-01-01", "2024-01-01"}, {"2024-01-02", "2024-01-02"}, {"2024-01-03", "2024-01-04"}, {"2024-01-05", "2024-01-05"}},
		},
	} {
		if got := datesOf(tt.days); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
