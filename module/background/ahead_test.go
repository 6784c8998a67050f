package background_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/background"
)

// TestAhead: a time that is ahead of the clock counts as the time when it was first seen, until another one is recorded or the clock is set back.
func TestAhead(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	year := now.AddDate(1, 0, 0)
	var a background.Ahead[string]
	for _, tt := range []struct {
		name          string
		of            string
		recorded, now time.Time
		want          time.Time
	}{
		{"past", "a", now.Add(-time.Hour), now, now.Add(-time.Hour)},
		{"as far ahead as clocks may differ", "a", now.Add(background.ClockSkew), now, now.Add(background.ClockSkew)},
		{"ahead", "a", year, now, now},
		{"seen again", "a", year, now.Add(time.Hour), now},
		{"of another", "b", year, now.Add(time.Hour), now.Add(time.Hour)},
		{"another time", "a", year.Add(1), now.Add(time.Hour), now.Add(time.Hour)},
		{"before it was first seen", "b", year, now, now},
		{"when the clock is there", "a", year, year, year},
	} {
		if got := a.Past(tt.of, tt.recorded, tt.now); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := a.Within("a", now.Add(time.Hour), now, time.Hour); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("a time that may be in the future: %s", got)
	}
}
