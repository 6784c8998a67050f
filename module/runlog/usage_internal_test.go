package runlog

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// shown is a window in the form that tests compare: calls, answered, cached, client and server errors, rate limited.
type shown struct {
	Total [6]int64
	Calls []int64
}

func show(w *Window) shown {
	s := shown{Total: [6]int64{w.Calls(), w.Answered, w.Cached, w.ClientErrors, w.ServerErrors, w.RateLimited}}
	for i := range w.Steps {
		s.Calls = append(s.Calls, w.Steps[i].Calls())
	}
	return s
}

func TestUsageCountsByTime(t *testing.T) {
	now := began.Add(7 * time.Minute) // 12:07
	var log Log
	add := func(ago time.Duration, version, status int, c cache.Status) {
		log.Add(Run{At: now.Add(-ago), Took: time.Millisecond, Version: version, Status: status, Cache: c})
	}
	add(40*time.Hour, 1, 200, cache.Hit) // too long ago for either
	add(22*time.Hour, 1, 200, cache.Hit)
	add(3*time.Hour, 1, 200, cache.Miss)
	add(3*time.Hour, 1, 500, cache.Miss)
	add(56*time.Minute, 1, 200, cache.Stale) // 11:11
	add(8*time.Minute, 2, 200, cache.Miss)   // 11:59
	add(2*time.Minute, 2, 200, cache.Hit)    // 12:05
	add(time.Minute, 2, 429, 0)
	add(time.Minute, 0, 400, 0)
	u := log.Usage(now)
	want := []shown{
		{[6]int64{5, 3, 2, 1, 0, 1}, []int64{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3}},
		{[6]int64{8, 5, 3, 1, 1, 1}, []int64{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 3}},
	}
	if diff := cmp.Diff(want, []shown{show(&u.Hour), show(&u.Day)}); diff != "" {
		t.Errorf("hour and day (-want +got):\n%s", diff)
	}
	if from := began.Add(-50 * time.Minute); !u.Hour.From.Equal(from) || !u.Day.From.Equal(began.Add(-23*time.Hour)) || !u.Last.Equal(now.Add(-time.Minute)) {
		t.Errorf("hour from %s, day from %s, last %s", u.Hour.From, u.Day.From, u.Last)
	}
	if len(u.Versions) != 2 || u.Versions[0].Version != 2 || u.Versions[0].Day.Calls() != 3 || u.Versions[1].Day.Calls() != 4 || u.Versions[1].Hour.Calls() != 1 {
		t.Errorf("by version: %+v", u.Versions)
	}
	if n := log.Day(now); n.Calls() != 8 || n.RateLimited != 1 {
		t.Errorf("Day() counts %d", n.Calls())
	}
}

// TestUsageOfADay counts a run per minute for two days: five minutes that pass are added to their hour, and nothing is lost.
func TestUsageOfADay(t *testing.T) {
	var log Log
	end := began.Add(48 * time.Hour)
	for at := began; !at.After(end); at = at.Add(time.Minute) {
		log.Add(Run{At: at, Version: 1, Status: 200})
	}
	u := log.Usage(end.Add(30 * time.Second))
	if got, want := u.Hour.Calls(), int64(55+1); got != want {
		t.Errorf("the hour has %d runs, want %d", got, want)
	}
	if got, want := u.Day.Calls(), int64(23*60+1); got != want {
		t.Errorf("the day has %d runs, want %d", got, want)
	}
	for i, n := range u.Day.Steps[:23] {
		if n.Calls() != 60 {
			t.Errorf("hour %d has %d runs", i, n.Calls())
		}
	}
	if later := log.Windows(end.Add(30 * time.Hour)); later.Day.Calls() != 0 || !later.Last.Equal(end) {
		t.Errorf("a day later there are %d runs, the last at %s", later.Day.Calls(), later.Last)
	}
	log.Add(Run{At: began, Version: 1, Status: 200}) // a run that took two days to end is not counted
	if u := log.Usage(end); u.Day.Calls() != 23*60+1 {
		t.Errorf("a late run counts: %d", u.Day.Calls())
	}
}

func TestUsageOfManyVersions(t *testing.T) {
	var log Log
	for v := 1; v <= 10; v++ {
		log.Add(Run{At: began, Version: v, Status: 200})
	}
	u := log.Usage(began)
	if len(u.Versions) != versionsCounted || u.Day.Calls() != 10 {
		t.Errorf("%d versions are counted, %d runs", len(u.Versions), u.Day.Calls())
	}
	next := began.Add(25 * time.Hour)
	log.Add(Run{At: next, Version: 11, Status: 200})
	if u := log.Usage(next); len(u.Versions) != 1 || u.Versions[0].Version != 11 || u.Day.Calls() != 1 {
		t.Errorf("a day later: %d runs, versions %+v", u.Day.Calls(), u.Versions)
	}
}

func TestQuantiles(t *testing.T) {
	var n Counts
	if _, ok := n.Quantile(.5); ok {
		t.Error("no runs have a median")
	}
	for d := time.Microsecond; d < 200*time.Second; d = d*21/20 + 1 {
		var n Counts
		n.took[durationIndex(d)], n.Answered = 1, 1
		got, ok := n.Quantile(.5)
		if low, high := d*2/3-16*time.Microsecond, d*3/2+16*time.Microsecond; !ok || d < 100*time.Second && (got < low || got > high) {
			t.Errorf("%s is counted as %s", d, got)
		}
	}
	for range 90 {
		n.took[durationIndex(time.Millisecond)]++
		n.Answered++
	}
	for range 10 {
		n.took[durationIndex(time.Second)]++
		n.Answered++
	}
	p50, _ := n.Quantile(.5)
	p95, _ := n.Quantile(.95)
	if p50 < 700*time.Microsecond || p50 > 1500*time.Microsecond || p95 < 700*time.Millisecond || p95 > 1500*time.Millisecond {
		t.Errorf("p50 is %s, p95 %s", p50, p95)
	}
}

// TestUsageIsCountedByMany: runs counted at the same time are all counted.
func TestUsageIsCountedByMany(t *testing.T) {
	var log Log
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 5000 {
				log.Add(Run{At: began.Add(time.Duration(i) * 100 * time.Millisecond), Version: w % 6, Status: 200, Cache: cache.Hit})
			}
		})
	}
	all.Wait()
	if u := log.Usage(began.Add(10 * time.Minute)); u.Hour.Calls() != 40_000 || u.Hour.Cached != 40_000 || u.Day.Calls() != 40_000 {
		t.Errorf("%d runs are counted in the hour, %d in the day, %d as cached", u.Hour.Calls(), u.Day.Calls(), u.Hour.Cached)
	}
}

func TestSinceWhenRunsAreCounted(t *testing.T) {
	logs := New(began)
	if log, since := logs.Find("new"); log != nil || !since.Equal(began) {
		t.Errorf("an endpoint without runs: %v, %s", log, since)
	}
	for i := range endpointsKept + endpointsOver + 1 {
		logs.Of(1, string(rune('a'+i))).Add(Run{At: began.Add(time.Duration(i+1) * time.Second)})
	}
	if _, since := logs.Find("a"); !since.Equal(began.Add((endpointsOver + 1) * time.Second)) {
		t.Errorf("of one that was forgotten: since %s", since)
	}
	if _, since := logs.Find(string(rune('a' + endpointsOver + 1))); !since.Equal(began) {
		t.Errorf("of one that was not: since %s", since)
	}
}

func BenchmarkAdd(b *testing.B) {
	var log Log
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			log.Add(Run{At: began, Took: time.Millisecond, Version: 3, Status: 200, Cache: cache.Hit})
		}
	})
}
