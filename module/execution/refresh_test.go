package execution

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestThresholds pins the ages of contract api.md, section 1.3.
func TestThresholds(t *testing.T) {
	const hour = time.Hour
	tests := []struct {
		node        string
		fresh, lazy time.Duration
	}{
		{`{"kind": "HogQLQuery", "query": "select 1"}`, 5 * time.Minute, 10 * time.Minute}, // as the executor says
		{`{"kind": "TrendsQuery", "series": [], "interval": "minute"}`, 5 * time.Minute, 15 * time.Minute},
		{`{"kind": "TrendsQuery", "series": [], "interval": "hour"}`, hour, 2 * hour},
		{`{"kind": "TrendsQuery", "series": []}`, 6 * hour, 12 * hour},
		{`{"kind": "TrendsQuery", "series": [], "interval": "week"}`, 24 * hour, 24 * hour},
		{`{"kind": "TrendsQuery", "series": [], "interval": "month"}`, 48 * hour, 48 * hour},
	}
	e := newExecutor(t)
	for _, tt := range tests {
		node, err := compiler.Parse([]byte(tt.node))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.thresholdsOf(node); got != (thresholds{tt.fresh, tt.lazy}) {
			t.Errorf("%s: %v", tt.node, got)
		}
	}
}

// TestPastRangesLast: an answer whose range had ended when it was computed does not become stale.
func TestPastRangesLast(t *testing.T) {
	e := newExecutor(t)
	for date, lasts := range map[string]bool{`"2024-03-04"`: true, `"-1d"`: false, `"2024-03-04", "excludeIncompletePeriods": true`: false} {
		node, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}], "dateRange": {"date_to": ` + date + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		q := &Query{Node: node}
		done := &Details{Insight: &insightAnswer{until: time.Date(2024, 3, 4, 23, 59, 59, 0, time.UTC)}}
		done.over = q.isOver(done.Insight, noon)
		entry := cache.NewEntry(&cache.Result{}, noon, done, 0)
		f := e.FreshnessOf(node, RefreshBlocking)
		if got := f.Policy(noon.Add(4 * 24 * time.Hour)).Lasting(entry); got != lasts {
			t.Errorf("an answer up to %s lasts: %t, want %t", date, got, lasts)
		}
		done.Insight.until = noon.Add(-overMargin + time.Second)
		if q.isOver(done.Insight, noon) {
			t.Errorf("an answer computed just behind its range, up to %s, lasts", date)
		}
	}
}

// TestHitTakesNoLock: a cached answer does not wait for the lock of the runs, in any mode and with any name.
func TestHitTakesNoLock(t *testing.T) {
	e := newExecutor(t)
	q := queryOf("me", "select 1")
	node, err := compiler.Parse([]byte(`{"kind": "HogQLQuery", "query": "select 1"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Node = node
	entry := cache.NewEntry(&cache.Result{}, time.Now(), &Details{}, 1)
	if _, err := e.Cache.Do(t.Context(), q.Key, cache.Policy{Now: time.Now()}, func(context.Context) (*cache.Entry, error) { return entry, nil }); err != nil {
		t.Fatal(err)
	}
	c := &Caller{Project: &registry.Project{ID: 7}, Key: &registry.Key{}, Start: time.Now()}
	for _, mode := range refreshModes[:4] {
		f := e.FreshnessOf(node, mode)
		for stored := false; !stored; { // what was computed is there soon
			_, stored = e.Cache.Get(q.Key, f.Policy(time.Now()))
		}
		e.Runs.mu.Lock()
		got, err := e.Refresh(t.Context(), c, q, &f, Origin{}, nil) // would never come
		e.Runs.mu.Unlock()
		if err != nil || got.Answer.Status != cache.Hit || got.Answer.Entry != entry {
			t.Errorf("%s: %v, %v", mode, got.Answer.Status, err)
		}
	}
}
