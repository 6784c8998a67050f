package runlog

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

var began = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func TestLogKeepsTheLastRuns(t *testing.T) {
	var log Log
	if got := log.All(); len(got) != 0 {
		t.Errorf("an empty log has %d runs", len(got))
	}
	code := "query_timeout"
	run := func(i int) Run {
		r := Run{
			At: began.Add(time.Duration(i) * time.Second), Took: time.Duration(i), Execution: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i)),
			Version: i, Rows: i - 1, Status: 200, Cache: cache.Stale,
		}
		if i%2 == 0 {
			r.Code, r.Status = &code, 504
			r.Key, r.Customer = "key", `{"customer":"acme"}`
		}
		return r
	}
	const runs = 2*runsKept + 10
	for i := range runs {
		log.Add(run(i))
	}
	var want []Run
	for i := runs - 1; i >= runs-runsKept; i-- {
		r := run(i)
		r.Number = uint64(i + 1)
		want = append(want, r)
	}
	if diff := cmp.Diff(want, log.All()); diff != "" {
		t.Errorf("All() (-want +got):\n%s", diff)
	}
	if got := testing.AllocsPerRun(100, func() { log.Add(want[0]) }); got != 0 {
		t.Errorf("adding a run allocates %v times", got)
	}
}

// TestLogIsReadWhileItIsWritten: each run that is read is complete and consistent.
func TestLogIsReadWhileItIsWritten(t *testing.T) {
	var log Log
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 20_000 {
				n := w*20_000 + i
				log.Add(Run{At: began.Add(time.Duration(n) * time.Microsecond), Took: time.Duration(n), Version: n, Rows: n, Status: 200})
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		for _, r := range log.All() {
			if n := r.Version; r.Rows != n || r.Took != time.Duration(n) || !r.At.Equal(began.Add(time.Duration(n)*time.Microsecond)) {
				t.Fatalf("a run was read in parts: %+v", r)
			}
		}
	}
	if got := len(log.All()); got < runsKept-8 { // a run is dropped when another sleeps on its slot for a whole round
		t.Errorf("%d runs are kept, want about %d", got, runsKept)
	}
}

func TestLogsForgetTheOldest(t *testing.T) {
	logs := New(began)
	const many = endpointsKept + endpointsOver + 1
	for i := range many {
		logs.Of(1, fmt.Sprint(i)).Add(Run{At: began.Add(time.Duration(i) * time.Second)})
		if i == 0 {
			logs.Of(1, "0").Add(Run{At: began.Add(time.Hour * 24)}) // run again later
		}
	}
	if logs.count != endpointsKept {
		t.Errorf("%d endpoints are kept, want %d", logs.count, endpointsKept)
	}
	oldest := many - endpointsKept + 1 // of those that are kept, without endpoint 0
	for id, want := range map[string]int{"0": 2, "1": 0, fmt.Sprint(oldest - 1): 0, fmt.Sprint(oldest): 1, fmt.Sprint(many - 1): 1} {
		found, _ := logs.byEndpoint.Load(id)
		got := 0
		if log, ok := found.(*Log); ok {
			got = len(log.All())
		}
		if got != want {
			t.Errorf("endpoint %s has %d runs, want %d", id, got, want)
		}
	}
	logs.Forget(fmt.Sprint(oldest))
	logs.Forget(fmt.Sprint(oldest))
	if logs.count != endpointsKept-1 {
		t.Errorf("%d endpoints are kept after one was forgotten, want %d", logs.count, endpointsKept-1)
	}
}

// BenchmarkOf runs endpoints in turn, more and fewer than are kept.
func BenchmarkOf(b *testing.B) {
	for _, endpoints := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(endpoints), func(b *testing.B) {
			logs := New(began)
			ids := make([]string, endpoints)
			for i := range ids {
				ids[i] = fmt.Sprint("e", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				logs.Of(1, ids[i%endpoints]).Tally(Who{3, "key", ""}).Add(Run{At: began.Add(time.Duration(i) * time.Microsecond), Version: 3, Status: 200})
			}
		})
	}
}
