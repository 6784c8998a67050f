package runlog

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// collected are the counts of logs, by what is counted.
func collected(logs *Logs, now time.Time) map[string]int64 {
	got := map[string]int64{}
	logs.Collect(now, func(what Counted, calls int64) {
		got[fmt.Sprintf("%d %s v%d %s %s %s %s", what.Project, what.Endpoint, what.Version, what.Key, what.Customer,
			time.Unix(what.From, 0).UTC().Format(time.TimeOnly), what.Outcome)] += calls
	})
	return got
}

func TestCollect(t *testing.T) {
	logs := New(began)
	log := logs.Of(7, "e")
	add := func(at time.Time, version, status int, key, customer string) {
		log.Add(Run{At: at, Took: time.Millisecond, Version: version, Status: status, Cache: cache.Hit, Key: key, Customer: customer})
	}
	add(began, 1, 200, "k", "")
	add(began.Add(time.Minute), 1, 200, "k", "")
	add(began.Add(6*time.Minute), 1, 200, "k", "")
	add(began, 1, 200, "k", "acme")
	add(began, 2, 400, "k", "")
	add(began, 2, 429, "other", "")
	add(began, 0, 503, "", "")
	want := map[string]int64{
		"7 e v1 k  12:00:00 answered": 2, "7 e v1 k  12:00:00 cached": 2, "7 e v1 k  12:05:00 answered": 1, "7 e v1 k  12:05:00 cached": 1,
		"7 e v1 k acme 12:00:00 answered": 1, "7 e v1 k acme 12:00:00 cached": 1, "7 e v2 k  12:00:00 client_error": 1,
		"7 e v2 other  12:00:00 rate_limited": 1, "7 e v0   12:00:00 server_error": 1,
	}
	if diff := cmp.Diff(want, collected(logs, began.Add(7*time.Minute))); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if got := collected(logs, began.Add(8*time.Minute)); len(got) != 0 {
		t.Errorf("counted again: %v", got)
	}
	if u := log.Usage(began.Add(8 * time.Minute)); u.Day.Calls() != 7 {
		t.Errorf("what was collected is not remembered: %d calls", u.Day.Calls())
	}
}

// TestCollectLosesNothing: counts are taken while other goroutines count.
func TestCollectLosesNothing(t *testing.T) {
	logs := New(began)
	const writers, each = 4, 20_000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				at := began.Add(time.Duration(i) * 10 * time.Millisecond)
				logs.Of(1, "e").Add(Run{At: at, Version: i % 3, Status: 200, Key: fmt.Sprint(w)})
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var sum int64
	take := func() {
		logs.Collect(began, func(what Counted, calls int64) {
			if what.Outcome == Answered {
				sum += calls
			}
		})
	}
	for counting := true; counting; {
		select {
		case <-done:
			counting = false
		default:
		}
		take()
	}
	take()
	if sum != writers*each {
		t.Errorf("%d runs are counted, want %d", sum, writers*each)
	}
}

func TestTalliesAreBounded(t *testing.T) {
	logs := New(began)
	log := logs.Of(1, "e")
	for i := range talliesKept + 100 {
		log.Add(Run{At: began, Version: 1, Status: 200, Customer: fmt.Sprint(i)})
	}
	rest := int64(0)
	logs.Collect(began, func(what Counted, calls int64) {
		if what.Who == (Who{}) {
			rest += calls
		}
	})
	if rest != 100 || log.tallied.Load() > talliesKept+1 {
		t.Errorf("%d runs count for no customer, and there are %d tallies", rest, log.tallied.Load())
	}
	known := log.Tally(Who{Version: 1, Customer: "1"})
	logs.Collect(began.Add(2*tallyIdle), func(Counted, int64) {})
	if n, all := log.tallied.Load(), logs.tallied.Load(); n != 0 || all != 0 || !known.Gone() {
		t.Errorf("%d tallies of %d are there after an hour without runs; known is gone: %t", n, all, known.Gone())
	}
	fresh := log.Tally(Who{Version: 2}) // a run is about to be counted
	logs.Collect(began.Add(2*tallyIdle), func(Counted, int64) {})
	if fresh.Gone() {
		t.Error("a tally is forgotten before it counted its first run")
	}
	logs.Collect(began.Add(4*tallyIdle), func(Counted, int64) {})
	if !fresh.Gone() {
		t.Error("a tally that counts nothing stays")
	}
	logs.Of(1, "f").Add(Run{At: began, Status: 200})
	if logs.Forget("f"); logs.tallied.Load() != 0 {
		t.Errorf("%d tallies are counted of a log that was forgotten", logs.tallied.Load())
	}
}

func TestTake(t *testing.T) {
	logs := New(began)
	take := func(most int) (numbers []uint64) {
		logs.Take(most, func(r Taken) {
			if r.Endpoint != "e" || r.Project != 3 {
				t.Errorf("a run of %s in project %d", r.Endpoint, r.Project)
			}
			numbers = append(numbers, r.Number)
		})
		return numbers
	}
	add := func(runs int) {
		for range runs {
			logs.Of(3, "e").Add(Run{At: began, Status: 200})
		}
	}
	add(3)
	if diff := cmp.Diff([]uint64{1, 2, 3}, take(5)); diff != "" {
		t.Errorf("the first runs (-want +got):\n%s", diff)
	}
	if got := take(5); got != nil {
		t.Errorf("taken again: %v", got)
	}
	add(9)
	if diff := cmp.Diff([]uint64{11, 12}, take(2)); diff != "" {
		t.Errorf("the newest two (-want +got):\n%s", diff)
	}
	add(2 * runsKept)
	if got := take(10 * runsKept); len(got) != runsKept {
		t.Errorf("%d runs are taken, want %d", len(got), runsKept)
	}
}

// TestForgottenForOthers: the runs and counts of logs forgotten in favor of others are still taken, once, but not those of a deleted endpoint.
func TestForgottenForOthers(t *testing.T) {
	logs := New(began)
	add := func(runs int) {
		for i := range runs {
			logs.Of(1, fmt.Sprint("e", i)).Add(Run{At: began.Add(time.Duration(i+1) * time.Millisecond), Status: 429})
		}
	}
	check := func(want int64) {
		t.Helper()
		var runs, counts int64
		logs.Take(10, func(Taken) { runs++ })
		logs.Collect(began, func(_ Counted, calls int64) { counts += calls })
		if runs != want || counts != want || logs.Dropped() != 0 {
			t.Errorf("%d runs are taken and %d counted, want %d; %d are dropped", runs, counts, want, logs.Dropped())
		}
		if all := logs.tallied.Load(); all != int64(logs.count) {
			t.Errorf("%d tallies are counted of %d logs", all, logs.count)
		}
	}
	add(endpointsKept + endpointsOver + 1)
	check(endpointsKept + endpointsOver + 1)
	check(0)
	for range 2 {
		add(10_000)
	}
	check(20_000)
	check(0)
	logs.Collect(began, func(Counted, int64) {}) // what has left since Take is still there for it
	logs = New(began)
	add(5000)
	logs.Collect(began, func(Counted, int64) {})
	logs.Forget("e4999")
	taken := 0
	logs.Take(10, func(Taken) { taken++ })
	if taken != 4999 {
		t.Errorf("%d runs are taken after the counts were, want 4999", taken)
	}
}

// TestForgottenForOthersIsBounded: of too many endpoints, the rest is dropped and counted.
func TestForgottenForOthersIsBounded(t *testing.T) {
	logs := New(began)
	const endpoints = 50_000
	for i := range endpoints {
		logs.Of(1, fmt.Sprint("e", i)).Add(Run{At: began.Add(time.Duration(i+1) * time.Millisecond), Status: 429})
	}
	runs, counts := 0, 0
	logs.Take(10, func(Taken) { runs++ })
	logs.Collect(began, func(Counted, int64) { counts++ })
	there := logs.count + leavingKept // in logs
	if runs != runsWaiting+there || counts != countsWaiting+there {
		t.Errorf("%d runs are taken and %d counts, want %d and %d", runs, counts, runsWaiting+there, countsWaiting+there)
	}
	if got, want := int(logs.Dropped()), 2*endpoints-runs-counts; got != want {
		t.Errorf("%d are counted as dropped, want %d", got, want)
	}
}

// TestCountsOfManyEndpoints: no run is lost if more endpoints than are kept run while counts are collected.
func TestCountsOfManyEndpoints(t *testing.T) {
	logs := New(began)
	const rounds, writers, each, endpoints = 10, 4, 1000, 3000
	sum := int64(0)
	collect := func() { logs.Collect(began, func(_ Counted, calls int64) { sum += calls }) }
	for round := range rounds {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					n := ((round*each+i)*7 + w*1000) % endpoints
					logs.Of(1, fmt.Sprint("e", n)).Add(Run{At: began.Add(time.Duration(round*each+i+1) * time.Microsecond), Status: 429})
				}
			})
		}
		collect()
		all.Wait()
	}
	for range 2 {
		collect()
	}
	if sum != rounds*writers*each {
		t.Errorf("%d runs are counted, want %d", sum, rounds*writers*each)
	}
}

func BenchmarkAddToTally(b *testing.B) {
	tally := New(began).Of(1, "e").Tally(Who{3, "key", ""})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tally.Add(Run{At: began, Took: time.Millisecond, Version: 3, Status: 200, Cache: cache.Hit})
		}
	})
}
