package module

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// queriesOf are the quotas of queries of a key, and of an endpoint if its rate is not zero.
func queriesOf(l *limiter, key string, endpoint Rate) quotas {
	qs := quotas{{l.ofKey(key), limitKey, key, ""}}
	if !endpoint.IsZero() {
		qs = append(quotas{{l.ofEndpoint("e", endpoint), limitEndpoint, "e", "orders"}}, qs...)
	}
	return qs
}

// gatekeeper is a runtime that does nothing but admit.
func gatekeeper(concurrency int, r Rate) *runtime {
	return &runtime{limits: newLimiter(r), places: admission.New(placesFor(concurrency))}
}

// awaitedBy is what a query of a project asks for whose caller waits.
func awaitedBy(project int64) admission.Request {
	return admission.Request{Project: project, Awaited: admission.Awaited, Wait: 30 * time.Second}
}

// run lets a query of a project in and ends it at once.
func (rt *runtime) run(ctx context.Context, project int64, qs quotas, now time.Time) error {
	place, err := rt.admit(ctx, qs, awaitedBy(project), now)
	if err == nil {
		place.Leave()
	}
	return err
}

// plenty is a rate that no test spends.
var plenty = Rate{Queries: 1_000_000, Per: time.Second}

func TestRate(t *testing.T) {
	l := gatekeeper(10, Rate{Queries: 2, Per: time.Minute})
	key, other := queriesOf(l.limits, "a", Rate{}), queriesOf(l.limits, "b", Rate{})
	for range 2 {
		if err := l.ready(key, awaitedBy(1), began); err != nil {
			t.Fatalf("asking before: %v", err)
		}
		if err := l.run(t.Context(), 1, key, began); err != nil {
			t.Fatalf("within the rate: %v", err)
		}
	}
	err := l.run(t.Context(), 1, key, began)
	var refused *rateError
	if !errors.As(err, &refused) || refused.owner != "a" || refused.limit != limitKey {
		t.Fatalf("above the rate: %v", err)
	}
	answer := toAPIError(err, "")
	if answer.Status != 429 || answer.RetryAfter != 30*time.Second || answer.Detail != "Request was throttled. Expected available in 30 seconds." {
		t.Errorf("above the rate: %d, retry after %s: %s", answer.Status, answer.RetryAfter, answer.Detail)
	}
	if err := l.run(t.Context(), 1, other, began); err != nil {
		t.Errorf("another key shares the rate: %v", err)
	}
	if err := l.run(t.Context(), 1, key, began.Add(29*time.Second)); err == nil {
		t.Error("a place too early")
	}
	if err := l.run(t.Context(), 1, key, began.Add(30*time.Second)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// TestRefusedTakesNothing: what one limit refuses takes nothing from the others.
func TestRefusedTakesNothing(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context // of one call
		busy bool            // all places of the project are taken
		full bool            // so is its queue
		rate Rate            // of the endpoint
		want string
	}{
		{"by the endpoint's rate", t.Context(), false, false, Rate{Queries: 1, Per: time.Hour}, "429 throttled: Request was throttled. Expected available in 3600 seconds."},
		{"by the queue", t.Context(), true, true, plenty, "429 throttled: Exceeded maximum concurrency limit: 1 for key: project_1 and task: query. " +
			"Too many concurrent requests. Please try again later."},
		{"by its own end while it waited", gone, true, false, plenty, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := gatekeeper(1, Rate{Queries: 5, Per: time.Hour})
			qs := queriesOf(l.limits, "a", tt.rate)
			if err := l.run(t.Context(), 1, qs, began); err != nil {
				t.Fatal(err)
			}
			if tt.busy {
				if _, err := l.places.Enter(t.Context(), awaitedBy(1)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.full {
				l.places.SetLimits(admission.Limits{Places: 4, Project: 1})
			}
			want := []int{qs[0].left(began), qs[1].left(began)}
			for range 10 {
				if err := l.run(tt.ctx, 1, qs, began); err == nil || err.Error() != tt.want {
					t.Fatalf("it is refused by %v, want %s", err, tt.want)
				}
			}
			if diff := cmp.Diff(want, []int{qs[0].left(began), qs[1].left(began)}); diff != "" {
				t.Errorf("what is left of both (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRefusalNamesTheNarrowest: a refusal that other callers share must not come from what is one caller's own.
func TestRefusalNamesTheNarrowest(t *testing.T) {
	hourly, daily := Rate{Queries: 2, Per: time.Hour}, Rate{Queries: 1, Per: time.Minute}
	l := gatekeeper(1, hourly)
	qs := append(queriesOf(l.limits, "a", daily), quota{newAllowance(Rate{Queries: 3, Per: time.Minute}), limitToken, "t", ""})
	for i, want := range []struct {
		owner string
		wait  time.Duration
	}{{"e", 60 * time.Second}, {"a", 1800 * time.Second}, {"t", 1800 * time.Second}} {
		qs[i].mu.Lock()
		for qs[i].left(began) > 0 {
			qs[i].take(began)
		}
		qs[i].mu.Unlock()
		var refused *rateError
		if err := qs.take(began); !errors.As(err, &refused) || refused.owner != want.owner || refused.err.RetryAfter != want.wait {
			t.Errorf("with %d of them spent: %+v, want %+v", i+1, refused, want)
		}
	}
}

// TestSharedEndpointRate takes from an endpoint with two keys at once: together they get what it has, and their own keep the rest.
func TestSharedEndpointRate(t *testing.T) {
	l := gatekeeper(1000, Rate{Queries: 40, Per: time.Hour})
	rate := Rate{Queries: 50, Per: time.Hour}
	var all sync.WaitGroup
	for range 100 {
		for _, key := range []string{"a", "b"} {
			all.Go(func() {
				if err := l.run(t.Context(), 1, queriesOf(l.limits, key, rate), began); err != nil && !isRefusal(err) {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	endpoint, a, b := l.limits.ofEndpoint("e", rate).left(began), l.limits.ofKey("a").left(began), l.limits.ofKey("b").left(began)
	if endpoint != 0 || a+b != 2*40-50 || a < 0 || b < 0 {
		t.Errorf("the endpoint has %d left, the keys %d and %d", endpoint, a, b)
	}
}

// TestEndpointRateChanges: another rate begins anew, the same one goes on.
func TestEndpointRateChanges(t *testing.T) {
	l := gatekeeper(1, plenty)
	first, second := Rate{Queries: 5, Per: time.Hour}, Rate{Queries: 7, Per: time.Hour}
	for i, tt := range []struct {
		rate Rate
		want int
	}{{first, 4}, {first, 3}, {second, 6}, {second, 5}, {first, 4}} {
		if err := l.run(t.Context(), 1, queriesOf(l.limits, "a", tt.rate), began); err != nil {
			t.Fatal(err)
		}
		if left := l.limits.ofEndpoint("e", tt.rate).left(began); left != tt.want {
			t.Errorf("run %d: %d are left, want %d", i+1, left, tt.want)
		}
	}
	l.limits.forget("e")
	if left := l.limits.ofEndpoint("e", first).left(began); left != 5 {
		t.Errorf("of an endpoint that was deleted %d are left", left)
	}
}

// TestQueue fills a project's queue: who comes then hears so at once, who leaves makes room, and all others get their turn.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gatekeeper(1, plenty)
		key := queriesOf(l.limits, "a", Rate{})
		place, err := l.admit(t.Context(), key, awaitedBy(1), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.run(t.Context(), 2, key, time.Now()); err != nil {
			t.Errorf("a project takes another's place: %v", err)
		}
		results := make(chan error, 2*queueFactor)
		gone, leave := context.WithCancel(t.Context())
		wait := func(ctx context.Context) {
			go func() { results <- l.run(ctx, 1, key, time.Now()) }()
			synctest.Wait()
		}
		wait(gone)
		for range queueFactor - 1 {
			wait(t.Context())
		}
		overflow := func() {
			t.Helper()
			asked := time.Now()
			answer := toAPIError(l.run(t.Context(), 1, key, time.Now()), "")
			if answer.Status != http.StatusTooManyRequests || answer.RetryAfter != time.Second || time.Since(asked) != 0 {
				t.Errorf("beyond the queue: %d after %s, retry after %s", answer.Status, time.Since(asked), answer.RetryAfter)
			}
			if err := l.ready(key, awaitedBy(1), time.Now()); !isRefusal(err) {
				t.Errorf("beyond the queue a background run could begin: %v", err)
			}
		}
		overflow()
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went away gets %v", err)
		}
		if err := l.ready(key, awaitedBy(1), time.Now()); err != nil {
			t.Errorf("after one went away: %v", err)
		}
		wait(t.Context())
		overflow()
		place.Leave()
		for range queueFactor {
			if err := <-results; err != nil {
				t.Errorf("in the queue: %v", err)
			}
		}
		l.places.Each(func(project int64, running, waiting int) {
			if running != 0 || waiting != 0 {
				t.Errorf("of project %d %d run and %d wait at the end", project, running, waiting)
			}
		})
	})
}

func TestQueueWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gatekeeper(1, plenty)
		key := queriesOf(l.limits, "a", Rate{})
		if _, err := l.admit(t.Context(), key, awaitedBy(1), time.Now()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := l.run(t.Context(), 1, key, time.Now())
		if waited := time.Since(began); toAPIError(err, "").Status != http.StatusTooManyRequests || waited != 30*time.Second {
			t.Errorf("after %s: %v", waited, err)
		}
	})
}

func TestShowQuotas(t *testing.T) {
	l := gatekeeper(1, Rate{Queries: 240, Per: time.Minute})
	qs := append(queriesOf(l.limits, "a", Rate{Queries: 2, Per: time.Hour}), quota{newAllowance(Rate{Queries: 3, Per: time.Second}), limitToken, "t", ""})
	show := func(qs quotas, at time.Duration) [2]string {
		h := http.Header{}
		qs.show(h, began.Add(at))
		return [2]string{h.Get("RateLimit-Policy"), h.Get("RateLimit")}
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
		_ = qs.take(began) // the third is refused
	}
	late := [2]string{policy, `"endpoint";r=0;t=1799;pk=:b3JkZXJz:, "key";r=240, "token";r=3`}
	if diff := cmp.Diff(late, show(qs, 1001*time.Millisecond)); diff != "" {
		t.Errorf("a second later (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([2]string{`"key";q=240;w=60`, `"key";r=240`}, show(qs[1:2], math.MaxInt32*time.Second)); diff != "" {
		t.Errorf("of a key alone (-want +got):\n%s", diff)
	}
}
