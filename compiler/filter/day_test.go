package filter_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
)

// TestStartOfDay visits the days of zones whose clock is moved across midnight: a day begins at the first moment with its date.
func TestStartOfDay(t *testing.T) {
	for _, name := range []string{"America/Havana", "Africa/Cairo", "America/Santiago", "Asia/Beirut", "America/Asuncion", "Pacific/Apia", "Europe/Berlin", "Australia/Lord_Howe", "UTC"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		noon := time.Date(2010, time.January, 1, 12, 0, 0, 0, zone)
		start := filter.StartOfDay(noon, 0)
		for days := 1; days < 16*365; days++ {
			next := filter.StartOfDay(start, 1)
			if far := filter.StartOfDay(noon, days); !far.Equal(next) && name != "Pacific/Apia" { // where a day was skipped, days are counted by date
				t.Fatalf("%s: %d days after the first is %s, and the day after %s is %s", name, days, far, start, next)
			}
			date, before := next.Format(time.DateOnly), next.Add(-time.Microsecond).Format(time.DateOnly)
			if date <= before || before != start.Format(time.DateOnly) {
				t.Fatalf("%s: the day after %s begins at %s, and a microsecond before it is %s", name, start, next, before)
			}
			if again := filter.StartOfDay(next.Add(11*time.Hour), 0); !again.Equal(next) {
				t.Fatalf("%s: the day of %s begins at %s, want %s", name, next.Add(11*time.Hour), again, next)
			}
			start = next
		}
	}
}
