package materialize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestScheduled(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	filledAgo := func(ago time.Duration) registry.Table { return registry.Table{Fill: 1, AsOf: now.Add(-ago)} }
	waits := filledAgo(0)
	waits.Pending = 2
	for _, tt := range []struct {
		name      string
		table     registry.Table
		freshness int
		want      bool
	}{
		{"never filled", registry.Table{}, 900, true},
		{"awaited", waits, 900, true},
		{"young", filledAgo(13 * time.Minute), 900, false},
		{"nearly too old", filledAgo(14 * time.Minute), 900, true},
		{"too old, but filled within a minute", filledAgo(50 * time.Second), 10, false},
		{"too old", filledAgo(time.Minute), 10, true},
	} {
		if got := scheduled(&tt.table, tt.freshness, now); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestMayRetry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		errors int
		ago    time.Duration
		want   bool
	}{
		{"no error", 0, 0, true},
		{"the first, just now", 1, 59 * time.Second, false},
		{"the first, a minute ago", 1, time.Minute, true},
		{"the third", 3, 3 * time.Minute, false},
		{"the third, long ago", 3, 4 * time.Minute, true},
		{"many", 1000, longestWait - 1, false},
		{"many, long ago", 1000, longestWait, true},
	} {
		if got := mayRetry(&registry.Table{Errors: tt.errors, LastErrorAt: now.Add(-tt.ago)}, now); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestState: a table is compared again when anything that its query depends on has changed.
func TestState(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	is := func() state {
		return state{serial: 1, from: day, fill: 2, buckets: map[string]string{"since": "day"}, optional: []string{"a"}}
	}
	if !is().equals(is()) {
		t.Error("a state does not equal itself")
	}
	for name, change := range map[string]func(*state){
		"the definitions":         func(s *state) { s.serial++ },
		"the day":                 func(s *state) { s.from = s.from.AddDate(0, 0, 1) },
		"the fill":                func(s *state) { s.fill++ },
		"the buckets":             func(s *state) { s.buckets["since"] = "hour" },
		"the optional breakdowns": func(s *state) { s.optional = nil },
	} {
		other := is()
		if change(&other); other.equals(is()) {
			t.Errorf("with another value of %s the states are equal", name)
		}
	}
}

// TestRescued: work on a version that panics is put off.
func TestRescued(t *testing.T) {
	f := &Filler{Config: Config{Logger: zap.NewNop()}}
	fine, broken := name{1, "a", 1}, name{1, "a", 2}
	f.rescued(fine, func() {})
	f.rescued(broken, func() { panic("broken") })
	if now := time.Now(); f.pauses.Holds(fine, now) || !f.pauses.Holds(broken, now) {
		t.Error("the wrong version is put off")
	}
}

// TestFilledAhead: a table whose fill, or the failure of one, was recorded while a clock was ahead is due when it is as old as others, from when it was first
// seen. What the snapshot says stays.
func TestFilledAhead(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ahead := now.AddDate(1, 0, 0)
	for name, table := range map[string]registry.Table{
		"a fill": {Fill: 1, AsOf: ahead}, "a failure": {Fill: 1, AsOf: now.AddDate(-1, 0, 0), Errors: 1, LastErrorAt: ahead},
	} {
		f, stored := &Filler{}, table
		version := &registry.Version{Number: 1, FreshnessSeconds: 60, Table: &stored}
		for _, tt := range []struct {
			after time.Duration
			want  bool
		}{{0, false}, {59 * time.Second, false}, {time.Minute, true}} {
			if got := f.due(nil, registry.Materialized{Endpoint: &registry.Endpoint{ID: "a"}, Version: version}, now.Add(tt.after)); got != tt.want {
				t.Errorf("%s, after %s: %t, want %t", name, tt.after, got, tt.want)
			}
		}
		if diff := cmp.Diff(table, *version.Table); diff != "" || version.Table != &stored {
			t.Errorf("%s: the snapshot's table (-before +after):\n%s", name, diff)
		}
	}
}
