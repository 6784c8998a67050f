package execution

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// queriesOf returns the quotas of queries of a key, and of an endpoint if its rate is not zero.
func queriesOf(l *Limiter, key string, endpoint registry.Rate) Quotas {
	qs := Quotas{{l.OfKey(key), LimitKey, key, ""}}
	if !endpoint.IsZero() {
		qs = append(Quotas{{l.OfEndpoint("e", endpoint), LimitEndpoint, "e", "orders"}}, qs...)
	}
	return qs
}

// gatekeeper is a runtime that only admits.
func gatekeeper(concurrency int, r registry.Rate) *Executor {
	return &Executor{Limits: NewLimiter(r), Places: admission.New(testPlaces(concurrency))}
}

// awaitedBy returns the request of a project's query whose caller waits.
func awaitedBy(project int64) admission.Request {
	return admission.Request{Project: project, Awaited: admission.Awaited, Wait: 30 * time.Second}
}

// run admits a query of a project and ends it at once.
func (e *Executor) run(ctx context.Context, project int64, qs Quotas, now time.Time) error {
	place, err := e.admit(ctx, qs, awaitedBy(project), now)
	if err == nil {
		place.Leave()
	}
	return err
}

// plenty is a rate that no test spends.
var plenty = registry.Rate{Queries: 1_000_000, Per: time.Second}

func TestRate(t *testing.T) {
	l := gatekeeper(10, registry.Rate{Queries: 2, Per: time.Minute})
	key, other := queriesOf(l.Limits, "a", registry.Rate{}), queriesOf(l.Limits, "b", registry.Rate{})
	for range 2 {
		if err := l.ready(t.Context(), key, awaitedBy(1), noon); err != nil {
			t.Fatalf("asking before: %v", err)
		}
		if err := l.run(t.Context(), 1, key, noon); err != nil {
			t.Fatalf("within the rate: %v", err)
		}
	}
	err := l.run(t.Context(), 1, key, noon)
	var refused *LimitError
	if !errors.As(err, &refused) || refused.Owner != "a" || refused.Limit != LimitKey {
		t.Fatalf("above the rate: %v", err)
	}
	if refused.Wait != 30*time.Second || refused.Detail != "Request was throttled. Expected available in 30 seconds." {
		t.Errorf("above the rate: retry after %s: %s", refused.Wait, refused.Detail)
	}
	if err := l.run(t.Context(), 1, other, noon); err != nil {
		t.Errorf("another key shares the rate: %v", err)
	}
	if err := l.run(t.Context(), 1, key, noon.Add(29*time.Second)); err == nil {
		t.Error("a place too early")
	}
	if err := l.run(t.Context(), 1, key, noon.Add(30*time.Second)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestRefusedTakesNothing: a query that one limit refuses takes nothing from the others.
func TestRefusedTakesNothing(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context // of one call
		busy bool            // all places of the project are taken
		full bool            // so is its queue
		rate registry.Rate   // of the endpoint
		want string
	}{
		{"by the endpoint's rate", t.Context(), false, false, registry.Rate{Queries: 1, Per: time.Hour}, "Request was throttled. Expected available in 3600 seconds."},
		{"by the queue", t.Context(), true, true, plenty, "Exceeded maximum concurrency limit: 1 for key: project_1 and task: query. " +
			"Too many concurrent requests. Please try again later."},
		{"by its own end while it waited", gone, true, false, plenty, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := gatekeeper(1, registry.Rate{Queries: 5, Per: time.Hour})
			qs := queriesOf(l.Limits, "a", tt.rate)
			if err := l.run(t.Context(), 1, qs, noon); err != nil {
				t.Fatal(err)
			}
			if tt.busy {
				if _, err := l.Places.Enter(t.Context(), awaitedBy(1)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.full {
				l.Places.SetLimits(admission.Limits{Places: 4, Project: 1})
			}
			want := []int{qs[0].Left(noon), qs[1].Left(noon)}
			for range 10 {
				if err := l.run(tt.ctx, 1, qs, noon); err == nil || err.Error() != tt.want {
					t.Fatalf("it is refused by %v, want %s", err, tt.want)
				}
			}
			if diff := cmp.Diff(want, []int{qs[0].Left(noon), qs[1].Left(noon)}); diff != "" {
				t.Errorf("what is left of both (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRefusalNamesTheNarrowest: a refusal that other callers share must not come from one caller's own limit.
func TestRefusalNamesTheNarrowest(t *testing.T) {
	hourly, daily := registry.Rate{Queries: 2, Per: time.Hour}, registry.Rate{Queries: 1, Per: time.Minute}
	l := gatekeeper(1, hourly)
	qs := append(queriesOf(l.Limits, "a", daily), quota{newAllowance(registry.Rate{Queries: 3, Per: time.Minute}), LimitToken, "t", ""})
	for i, want := range []struct {
		owner string
		wait  time.Duration
	}{{"e", 60 * time.Second}, {"a", 1800 * time.Second}, {"t", 1800 * time.Second}} {
		qs[i].mu.Lock()
		for qs[i].Left(noon) > 0 {
			qs[i].take(noon)
		}
		qs[i].mu.Unlock()
		var refused *LimitError
		if err := qs.Take(noon); !errors.As(err, &refused) || refused.Owner != want.owner || refused.Wait != want.wait {
			t.Errorf("with %d of them spent: %+v, want %+v", i+1, refused, want)
		}
	}
}

// TestSharedEndpointRate takes from an endpoint with two keys at once: together they get what the endpoint allows, and their own limits keep the rest.
func TestSharedEndpointRate(t *testing.T) {
	l := gatekeeper(1000, registry.Rate{Queries: 40, Per: time.Hour})
	rate := registry.Rate{Queries: 50, Per: time.Hour}
	var all sync.WaitGroup
	for range 100 {
		for _, key := range []string{"a", "b"} {
			all.Go(func() {
				if err := l.run(t.Context(), 1, queriesOf(l.Limits, key, rate), noon); err != nil && !IsRefusal(err) {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	endpoint, a, b := l.Limits.OfEndpoint("e", rate).Left(noon), l.Limits.OfKey("a").Left(noon), l.Limits.OfKey("b").Left(noon)
	if endpoint != 0 || a+b != 2*40-50 || a < 0 || b < 0 {
		t.Errorf("the endpoint has %d left, the keys %d and %d", endpoint, a, b)
	}
}

// TestEndpointRateChanges: a changed rate starts afresh, an unchanged one continues.
func TestEndpointRateChanges(t *testing.T) {
	l := gatekeeper(1, plenty)
	first, second := registry.Rate{Queries: 5, Per: time.Hour}, registry.Rate{Queries: 7, Per: time.Hour}
	for i, tt := range []struct {
		rate registry.Rate
		want int
	}{{first, 4}, {first, 3}, {second, 6}, {second, 5}, {first, 4}} {
		if err := l.run(t.Context(), 1, queriesOf(l.Limits, "a", tt.rate), noon); err != nil {
			t.Fatal(err)
		}
		if left := l.Limits.OfEndpoint("e", tt.rate).Left(noon); left != tt.want {
			t.Errorf("run %d: %d are left, want %d", i+1, left, tt.want)
		}
	}
	l.Limits.Forget("e")
	if left := l.Limits.OfEndpoint("e", first).Left(noon); left != 5 {
		t.Errorf("of an endpoint that was deleted %d are left", left)
	}
}

// TestQueue fills a project's queue: a further request is refused at once, one that leaves makes room, and all others get their turn.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gatekeeper(1, plenty)
		key := queriesOf(l.Limits, "a", registry.Rate{})
		place, err := l.admit(t.Context(), key, awaitedBy(1), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.run(t.Context(), 2, key, time.Now()); err != nil {
			t.Errorf("a project takes another's place: %v", err)
		}
		results := make(chan error, 2*QueueFactor)
		gone, leave := context.WithCancel(t.Context())
		wait := func(ctx context.Context) {
			go func() { results <- l.run(ctx, 1, key, time.Now()) }()
			synctest.Wait()
		}
		wait(gone)
		for range QueueFactor - 1 {
			wait(t.Context())
		}
		overflow := func() {
			t.Helper()
			asked := time.Now()
			var refused *LimitError
			if err := l.run(t.Context(), 1, key, time.Now()); !errors.As(err, &refused) || refused.Wait != time.Second || time.Since(asked) != 0 {
				t.Errorf("beyond the queue: %v after %s", err, time.Since(asked))
			}
			if err := l.ready(t.Context(), key, awaitedBy(1), time.Now()); !IsRefusal(err) {
				t.Errorf("beyond the queue a background run could begin: %v", err)
			}
		}
		overflow()
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went away gets %v", err)
		}
		if err := l.ready(t.Context(), key, awaitedBy(1), time.Now()); err != nil {
			t.Errorf("after one went away: %v", err)
		}
		wait(t.Context())
		overflow()
		place.Leave()
		for range QueueFactor {
			if err := <-results; err != nil {
				t.Errorf("in the queue: %v", err)
			}
		}
		l.Places.Each(func(project int64, running, waiting int) {
			if running != 0 || waiting != 0 {
				t.Errorf("of project %d %d run and %d wait at the end", project, running, waiting)
			}
		})
	})
}

func TestQueueWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gatekeeper(1, plenty)
		key := queriesOf(l.Limits, "a", registry.Rate{})
		if _, err := l.admit(t.Context(), key, awaitedBy(1), time.Now()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := l.run(t.Context(), 1, key, time.Now())
		if waited := time.Since(began); !IsRefusal(err) || waited != 30*time.Second {
			t.Errorf("after %s: %v", waited, err)
		}
	})
}

func TestShowQuotas(t *testing.T) {
	l := gatekeeper(1, registry.Rate{Queries: 240, Per: time.Minute})
	qs := append(queriesOf(l.Limits, "a", registry.Rate{Queries: 2, Per: time.Hour}), quota{newAllowance(registry.Rate{Queries: 3, Per: time.Second}), LimitToken, "t", ""})
	show := func(qs Quotas, at time.Duration) [2]string {
		policy, left := qs.Fields(noon.Add(at))
		return [2]string{policy, left}
	}
	const policy = `"endpoint";q=2;w=3600;pk=:b3JkZXJz:, "key";q=240;w=60, "token";q=3;w=1`
	for i, want := range []string{
		`"endpoint";r=2;pk=:b3JkZXJz:, "key";r=240, "token";r=3`,
		`"endpoint";r=1;t=1800;pk=:b3JkZXJz:, "key";r=239;t=1, "token";r=2;t=1`,
		`"endpoint";r=0;t=1800;pk=:b3JkZXJz:, "key";r=238;t=1, "token";r=1;t=1`,
		`"endpoint";r=0;t=1800;pk=:b3JkZXJz:, "key";r=238;t=1, "token";r=1;t=1`,
	} {
		if diff := cmp.Diff([2]string{policy, want}, show(qs, 0)); diff != "" {
			t.Errorf("after %d runs (-want +got):\n%s", i, diff)
		}
		_ = qs.Take(noon) // the third is refused
	}
	late := [2]string{policy, `"endpoint";r=0;t=1799;pk=:b3JkZXJz:, "key";r=240, "token";r=3`}
	if diff := cmp.Diff(late, show(qs, 1001*time.Millisecond)); diff != "" {
		t.Errorf("a second later (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([2]string{`"key";q=240;w=60`, `"key";r=240`}, show(qs[1:2], math.MaxInt32*time.Second)); diff != "" {
		t.Errorf("of a key alone (-want +got):\n%s", diff)
	}
}
