package cohorts

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestDue: a failing cohort waits twice as long each time, and in the end forever.
func TestDue(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		errors int
		ago    time.Duration
		want   bool
	}{
		{0, 0, true},
		{1, 59 * time.Minute, false},
		{1, time.Hour, true},
		{3, 3 * time.Hour, false},
		{3, 4 * time.Hour, true},
		{20, 365 * 24 * time.Hour, false},
		{20, 60 * 365 * 24 * time.Hour, true},
		{21, 60 * 365 * 24 * time.Hour, false},
	} {
		if got := new(Calculator).due(&registry.Cohort{Errors: tt.errors, LastErrorAt: now.Add(-tt.ago)}, now); got != tt.want {
			t.Errorf("after %d errors, the last %v ago: due %t", tt.errors, tt.ago, got)
		}
	}
}

// TestSchedule: cohorts in use are computed once an hour, all others never.
func TestSchedule(t *testing.T) {
	reg := sqlitetest.Open(t, registry.Options{})
	now := time.Now()
	if _, err := reg.CreateProject(t.Context(), registry.NewProject{Name: "p"}, now); err != nil {
		t.Fatal(err)
	}
	const queried, saved, unused, static = 1, 2, 3, 4
	for id := int64(queried); id <= static; id++ {
		c, err := reg.CreateCohort(t.Context(), registry.NewCohort{Project: 1, CohortFields: registry.CohortFields{Static: registry.To(id == static)}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reg.SwapCohort(t.Context(), 1, id, c.PendingVersion, 5, now); err != nil {
			t.Fatal(err)
		}
	}
	c := &Calculator{
		Config: Config{Registry: reg, InUse: func(_ *registry.Snapshot, _, cohort int64) bool { return cohort == saved || cohort == static }},
		open:   context.Background(), bell: background.NewBell(), used: map[name]time.Time{{1, queried}: now},
	}
	for _, tt := range []struct {
		after time.Duration
		want  map[int64]bool
	}{
		{59 * time.Minute, nil},
		{time.Hour + time.Second, map[int64]bool{queried: true, saved: true}},
	} {
		c.schedule(reg.Snapshot(), 1, now.Add(tt.after))
		for id := int64(queried); id <= static; id++ {
			if got := reg.Snapshot().Cohort(1, id).Calculating(); got != tt.want[id] {
				t.Errorf("after %v cohort %d is computed: %t", tt.after, id, got)
			}
		}
	}
}

// TestFailedAhead: a cohort whose failure was recorded while a clock was ahead is tried again as after one that was first seen now.
func TestFailedAhead(t *testing.T) {
	c, now := &Calculator{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	known := &registry.Cohort{ID: 1, Errors: 1, LastErrorAt: now.AddDate(1, 0, 0)}
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {2*errorWait - time.Second, false}, {2 * errorWait, true}} {
		if got := c.due(known, now.Add(tt.after)); got != tt.want {
			t.Errorf("after %s: %t, want %t", tt.after, got, tt.want)
		}
	}
}

// TestComputedAhead: members whose calculation was recorded while a clock was ahead grow old from when they were first seen.
func TestComputedAhead(t *testing.T) {
	c, now := &Calculator{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	known := &registry.Cohort{Project: 1, ID: 2, LastCalculation: now.AddDate(1, 0, 0)}
	for _, age := range []time.Duration{0, scheduledAge, usedAge} {
		if got := c.age(known, now.Add(age)); got != age {
			t.Errorf("after %s they are %s old", age, got)
		}
	}
	known.LastCalculation = now.Add(-time.Hour)
	if got := c.age(known, now); got != time.Hour {
		t.Errorf("an hour later they are %s old", got)
	}
}
