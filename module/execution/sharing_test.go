package execution

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shop is a registry.Sharer in memory that takes a while to answer.
type shop struct {
	nodes int
	away  atomic.Bool
	pause atomic.Int64 // additional time, in nanoseconds

	mu         sync.Mutex
	allowances map[string]*allowance
	asked      int
}

func (s *shop) KeptAll(context.Context, string) (map[string][]byte, error) { return nil, nil }

func (s *shop) Take(_ context.Context, name string, rate registry.Rate, want int) (got int, again time.Duration, err error) {
	time.Sleep(time.Millisecond + time.Duration(s.pause.Load()))
	if s.away.Load() {
		return 0, 0, registry.ErrUnavailable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.allowances == nil {
		s.allowances = make(map[string]*allowance)
	}
	a := s.allowances[name]
	if a == nil {
		a = newAllowance(rate)
		s.allowances[name] = a
	}
	now := time.Now()
	if want < 0 {
		a.whole = a.whole.Add(time.Duration(want) * a.every)
		return want, 0, nil
	}
	got = min(want, a.Left(now))
	a.whole = now.Add(a.spent(now) + time.Duration(got)*a.every)
	if got < want {
		again = a.next(now)
	}
	return got, again, nil
}

// fleet are nodes that share a key's rate.
type fleet struct {
	*shop

	executors []*Executor
	quotas    []Quotas
	now       []func() time.Time // the nodes' clocks

	admitted, refused atomic.Int64
}

// newFleet returns nodes whose clocks differ by the given times.
func newFleet(t *testing.T, nodes int, rate registry.Rate, apart ...time.Duration) *fleet {
	t.Helper()
	f := &fleet{shop: &shop{nodes: nodes}}
	for n := range nodes {
		now := time.Now
		if len(apart) > 0 {
			now = func() time.Time { return time.Now().Add(apart[n]) }
		}
		f.add(t, f.shop, rate, func() int { return nodes }, now)
	}
	return f
}

// add adds a node that counts on a key's rate.
func (f *fleet) add(t *testing.T, sharer registry.Sharer, rate registry.Rate, count func() int, now func() time.Time) {
	t.Helper()
	e := &Executor{Limits: NewLimiter(rate), Places: admission.New(testPlaces(10_000))}
	e.Limits.Sharing = newSharing(sharer, count, now)
	t.Cleanup(func() { _ = e.Limits.Sharing.Close() })
	f.executors, f.quotas, f.now = append(f.executors, e), append(f.quotas, queriesOf(e.Limits, "a", registry.Rate{})), append(f.now, now)
}

// ask sends queries to each node for a time, at a rate per second and node, at random times that are the same in each run.
func (f *fleet) ask(t *testing.T, perSecond float64, lasts time.Duration) {
	t.Helper()
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	for n := range f.executors {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		all.Go(func() {
			for {
				time.Sleep(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
				if !time.Now().Before(end) {
					return
				}
				all.Go(func() { f.one(t, n) })
			}
		})
	}
	all.Wait()
}

func (f *fleet) one(t *testing.T, node int) {
	t.Helper()
	f.admits(t, node)
}

// admits sends a query to a node and reports whether it was admitted.
func (f *fleet) admits(t *testing.T, node int) bool {
	t.Helper()
	err := f.executors[node].run(t.Context(), 1, f.quotas[node], f.now[node]())
	switch {
	case err == nil:
		f.admitted.Add(1)
	case IsRefusal(err):
		f.refused.Add(1)
	default:
		t.Error(err)
	}
	return err == nil
}

// per returns a rate of queries per period.
func per(queries int, period time.Duration) registry.Rate {
	return registry.Rate{Queries: queries, Per: period}
}

// expect compares how many were admitted with what the rate allows: everything at first, and what has come back.
func (f *fleet) expect(t *testing.T, rate registry.Rate, lasts time.Duration, beyond int) {
	t.Helper()
	want := float64(rate.Queries) * (1 + lasts.Seconds()/rate.Per.Seconds())
	if got := float64(f.admitted.Load()); got < 0.9*want-1 || got > 1.1*want+float64(beyond) {
		t.Errorf("%d nodes admitted %.0f queries of %s in %s, and refused %d; the rate allows %.0f", f.nodes, got, rate, lasts, f.refused.Load(), want)
	}
	f.mu.Lock()
	questions := f.asked
	f.mu.Unlock()
	t.Logf("%d nodes, %s, %s: %d admitted of %.0f, %d refused, %d questions", f.nodes, rate, lasts, f.admitted.Load(), want, f.refused.Load(), questions)
}

// TestSharedRates: any number of nodes admit what the rate allows, and no more.
func TestSharedRates(t *testing.T) {
	for _, nodes := range []int{1, 3, 8} {
		for _, tt := range []struct {
			rate  registry.Rate
			asked float64 // queries a second, of all nodes
			lasts time.Duration
		}{
			{per(5, time.Minute), 2, 10 * time.Minute},
			{per(240, time.Minute), 20, 5 * time.Minute},
			{per(20, time.Second), 60, time.Minute},
			{per(1000, time.Second), 3000, 5 * time.Second},
		} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, tt.rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, nodes, tt.rate)
					f.ask(t, tt.asked/float64(nodes), tt.lasts)
					f.expect(t, tt.rate, tt.lasts, 0)
				})
			})
		}
	}
}

// TestSharedRateOfOneNode: a caller that uses only one node gets the whole rate.
func TestSharedRateOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := per(240, time.Minute)
		f := newFleet(t, 8, rate)
		f.executors, f.quotas = f.executors[3:4], f.quotas[3:4]
		f.ask(t, 20, 5*time.Minute)
		f.expect(t, rate, 5*time.Minute, 0)
	})
}

// TestSharedRateIsEnough: a caller that stays below the rate is never refused, whichever nodes it uses.
func TestSharedRateIsEnough(t *testing.T) {
	for _, tt := range []struct {
		rate  registry.Rate
		asked float64
	}{{per(240, time.Minute), 2}, {per(20, time.Second), 12}, {per(60, time.Minute), 0.5}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 8, tt.rate)
			f.ask(t, tt.asked/8, 5*time.Minute)
			if f.refused.Load() > 0 || f.admitted.Load() == 0 {
				t.Errorf("of %s %d were admitted and %d refused", tt.rate, f.admitted.Load(), f.refused.Load())
			}
		})
	}
}

// TestSharedBurst: a page that asks for much at once gets it, from a node that has not seen the key before. Other nodes hold at most a tenth in advance.
func TestSharedBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8, per(240, time.Minute))
		for n := range 8 {
			var all sync.WaitGroup
			for range 27 {
				all.Go(func() { f.one(t, n) })
			}
			all.Wait()
		}
		if f.admitted.Load() != 8*27 || f.refused.Load() != 0 {
			t.Errorf("%d were admitted and %d refused, want %d and none", f.admitted.Load(), f.refused.Load(), 8*27)
		}
		for n := range 240 {
			f.one(t, n%8)
		}
		if got := f.admitted.Load(); got > 241 {
			t.Errorf("%d were admitted at once, want 240", got)
		}
	})
}

// TestUnusedSlicesGoBack: what a node took ahead of need is soon available to others.
func TestUnusedSlicesGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, per(100, 1000*time.Hour))
		f.ask(t, 20, time.Second)
		time.Sleep(5 * time.Second)
		before := f.admitted.Load()
		for range 100 {
			f.one(t, 1)
		}
		if f.admitted.Load() != 100 || before == 0 {
			t.Errorf("%d were admitted, %d of them at first, want 100", f.admitted.Load(), before)
		}
	})
}

// TestRatesWhileAway: while the store is away, each node gives out its part; when the store is back, nothing was gained by that.
func TestRatesWhileAway(t *testing.T) {
	for _, nodes := range []int{1, 3, 8} {
		for _, rate := range []registry.Rate{per(5, time.Minute), per(240, time.Minute), per(20, time.Second)} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, nodes, rate)
					times := 4.0
					if rate.Queries < 2*nodes {
						times = 40 // a part of one query fills up no further while nobody asks
					}
					asked := times * float64(rate.Queries) / rate.Per.Seconds() / float64(nodes)
					for i := range 3 {
						f.away.Store(i == 1)
						f.ask(t, asked, 5*time.Minute)
						f.expect(t, rate, time.Duration(i+1)*5*time.Minute, nodes)
					}
				})
			})
		}
	}
}

// TestAwayFromTheStart: a node that never heard of others gives out the whole rate.
func TestAwayFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := per(240, time.Minute)
		f := newFleet(t, 1, rate)
		f.away.Store(true)
		f.ask(t, 20, 5*time.Minute)
		f.expect(t, rate, 5*time.Minute, 0)
	})
}

// TestSharedRatesOfClocksApart: nodes whose clocks differ by a minute admit what the rate allows, also while the store is away.
func TestSharedRatesOfClocksApart(t *testing.T) {
	for _, rate := range []registry.Rate{per(20, time.Second), per(240, time.Minute), per(60, time.Minute)} {
		t.Run(rate.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3, rate, 0, time.Minute, -time.Minute)
				for i := range 3 {
					f.away.Store(i == 1)
					f.ask(t, float64(rate.Queries)/rate.Per.Seconds(), 5*time.Minute) // three times as much as it allows
					f.expect(t, rate, time.Duration(i+1)*5*time.Minute, 3)
				}
			})
		})
	}
}

// TestSharedRefusal: a refused caller is told when there is something again, whatever the node's clock says.
func TestSharedRefusal(t *testing.T) {
	for name, apart := range map[string][]time.Duration{"one clock": nil, "clocks a minute apart": {0, time.Minute, -time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3, per(6, time.Minute), apart...)
				for n := range 6 {
					f.one(t, n%3)
				}
				for again := range 3 {
					for n := range 3 {
						err := f.executors[n].run(t.Context(), 1, f.quotas[n], f.now[n]())
						refused, ok := errors.AsType[*LimitError](err)
						if !ok || refused.Wait != 10*time.Second || refused.Owner != "a" {
							t.Errorf("node %d: %+v", n, err)
						}
					}
					time.Sleep(10 * time.Second)
					f.one(t, again)
					if got := f.admitted.Load(); got != int64(7+again) {
						t.Errorf("after the wait node %d has admitted none: %d in all", again, got)
					}
				}
			})
		})
	}
}

// stock is what the first node holds of the key's rate.
func (f *fleet) stock() *stock { return f.executors[0].Limits.OfKey("a").shared }

// given is how many queries the shop has given out.
func (f *fleet) given(h *stock) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.of.rate.Queries - f.allowances[h.name].Left(time.Now())
}

// TestDebtAges: what ran beyond the rate comes back with time. A caller to whom others have left little does not pay for it again.
func TestDebtAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, per(60, time.Minute))
		h := f.stock()
		h.of.mu.Lock()
		h.hand = -50
		h.of.mu.Unlock()
		time.Sleep(time.Hour)
		if got, _, err := f.Take(t.Context(), h.name, h.of.rate, 59); got != 59 || err != nil {
			t.Fatalf("the others took %d: %v", got, err)
		}
		f.one(t, 0)
		if f.admitted.Load() != 1 {
			t.Error("after an hour a debt is still paid")
		}
	})
}

// TestOwnPartIsPaid: what runs on a node's own part while the store's answer is pending is paid too.
func TestOwnPartIsPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, per(100, 1000*time.Hour))
		f.executors[0].Limits.Sharing.away.Store(true)
		for range 3 { // the first one asks
			f.one(t, 0)
		}
		time.Sleep(10 * time.Millisecond)
		for range 5 {
			f.one(t, 0)
			time.Sleep(10 * time.Millisecond)
		}
		h := f.stock()
		if got, want := f.given(h), int(f.admitted.Load())+h.hand; got != want || f.admitted.Load() != 8 {
			t.Errorf("the store gave %d queries, but %d ran and %d are in hand", got, f.admitted.Load(), h.hand)
		}
	})
}

// TestAwayIsWhoIsSilent: a store is away if it is silent for long, not if those who wait for it have gone.
func TestAwayIsWhoIsSilent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		waits time.Duration
		away  bool
	}{{"a caller who goes away", sliceWait / 2, false}, {"a caller who stays", time.Hour, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, per(60, time.Minute))
				f.pause.Store(int64(2 * sliceWait))
				ctx, cancel := context.WithTimeout(t.Context(), tt.waits)
				defer cancel()
				f.stock().prepare(ctx)
				if got := f.executors[0].Limits.Sharing.away.Load(); got != tt.away {
					t.Errorf("the store counts as away: %t, want %t", got, tt.away)
				}
			})
		})
	}
}

// TestHolding: an unused allowance is no longer looked at, even if it has a debt; what is put back later is given back.
func TestHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, per(100, 1000*time.Hour))
		h, sharing := f.stock(), f.executors[0].Limits.Sharing
		f.one(t, 0)
		time.Sleep(10 * time.Millisecond)
		h.of.mu.Lock()
		kept := h.hand + 1
		h.hand = -1
		h.of.mu.Unlock()
		time.Sleep(5 * sliceIdle)
		sharing.mu.Lock()
		if len(sharing.holding) != 0 {
			t.Errorf("%d allowances that nobody uses are looked at", len(sharing.holding))
		}
		sharing.mu.Unlock()
		h.of.mu.Lock()
		h.hand += kept
		h.of.mu.Unlock()
		f.quotas[0].giveBack()
		time.Sleep(5 * sliceIdle)
		if got := f.given(h); got != 0 {
			t.Errorf("%d queries that did not run were not given back", got)
		}
	})
}
