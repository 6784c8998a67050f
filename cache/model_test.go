package cache_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// model is the cache as documented, one step at a time and without concurrency.
type model struct {
	keys    []*modelKey
	loads   []*modelFlight // with those that have ended
	callers []*modelCaller
	stats   cache.Stats
}

type modelKey struct {
	letter  string
	begun   int // loads
	project int64
	stored  *modelEntry
	running *modelFlight
	next    []*modelCaller
}

type modelEntry struct {
	load    string
	began   time.Time
	expires time.Time // when the store forgets it
	quiet   time.Time // when a refresh may begin
}

type modelFlight struct {
	name       string
	key        *modelKey
	began      time.Time
	fresh      time.Duration
	waiters    []*modelCaller
	refreshing *modelEntry
	claimed    time.Time
	ended      bool
}

type modelCaller struct {
	policy cache.Policy
	status cache.Status // what it will be if the load succeeds
	told   string
}

func (m *model) start(k *modelKey, fresh time.Duration, waiters ...*modelCaller) *modelFlight {
	k.begun++
	f := &modelFlight{name: k.letter + strconv.Itoa(k.begun), key: k, began: time.Now(), fresh: fresh, waiters: waiters}
	m.loads = append(m.loads, f)
	k.running = f
	return f
}

// landed starts the next flight of f's key.
func (m *model) landed(f *modelFlight) {
	if f.key.running != f {
		return
	}
	f.key.running = nil
	if next := f.key.next; len(next) > 0 {
		f.key.next = nil
		m.start(f.key, next[0].policy.Fresh, next...)
	}
}

func (m *model) call(k *modelKey, p cache.Policy) {
	c := &modelCaller{policy: p, told: "waits"}
	m.callers = append(m.callers, c)
	now := time.Now()
	if k.stored != nil && now.After(k.stored.expires) {
		k.stored = nil
	}
	if k.stored != nil && p.Mode != cache.Recompute {
		age := now.Sub(k.stored.began)
		if age < p.Fresh {
			c.tell(k.stored.load, cache.Hit, age)
			m.stats.Hits++
			return
		}
		if p.Mode == cache.Use && age < p.Fresh+stale {
			c.tell(k.stored.load, cache.Stale, age)
			m.stats.Stale++
			if k.running == nil && !now.Before(k.stored.quiet) {
				f := m.start(k, p.Fresh)
				f.refreshing, f.claimed = k.stored, now
				k.stored.quiet = now.Add(refreshTimeout)
				m.stats.Refreshes++
			}
			return
		}
	}
	first := func(wanted *uint64, status cache.Status) {
		c.status = status
		*wanted++
	}
	switch {
	case k.running != nil && p.Mode != cache.Recompute:
		k.running.waiters = append(k.running.waiters, c)
		first(&m.stats.Coalesced, cache.Coalesced)
	case k.running != nil:
		k.next = append(k.next, c)
		if len(k.next) == 1 {
			first(&m.stats.Recomputed, cache.Refreshed)
		} else {
			first(&m.stats.Coalesced, cache.Coalesced)
		}
	case p.Mode == cache.Recompute:
		first(&m.stats.Recomputed, cache.Refreshed)
		m.start(k, p.Fresh, c)
	default:
		first(&m.stats.Misses, cache.Miss)
		m.start(k, p.Fresh, c)
	}
}

func (c *modelCaller) tell(load string, s cache.Status, age time.Duration) {
	c.told = fmt.Sprintf("load %s, %s, age %s, fresh for %s", load, s, age, max(0, c.policy.Fresh-age))
}

func (m *model) leave(c *modelCaller) {
	if c.told != "waits" {
		return
	}
	c.told = "waiting for a result: context canceled"
	is := func(other *modelCaller) bool { return other == c }
	for _, k := range m.keys {
		k.next = slices.DeleteFunc(k.next, is)
	}
	for _, f := range slices.Clone(m.loads) {
		if f.ended || !slices.Contains(f.waiters, c) {
			continue
		}
		f.waiters = slices.DeleteFunc(f.waiters, is)
		if len(f.waiters) == 0 && f.refreshing == nil {
			f.ended = true
			m.landed(f)
		}
	}
}

// end ends a load. expired reports whether it timed out.
func (m *model) end(f *modelFlight, o outcome, expired bool) {
	f.ended = true
	now, k := time.Now(), f.key
	text := map[outcome]string{
		fail:   fmt.Sprintf("load %s: %v", f.name, errOutage),
		refuse: fmt.Sprintf("load %s: %v", f.name, errMistake), turnAway: fmt.Sprintf("load %s: %v", f.name, errFull),
		crash:  "BUG: a panic: load " + f.name,
		vanish: "BUG: a panic: the load of a result exited its goroutine",
	}[o]
	if expired {
		text = fmt.Sprintf("load %s: context deadline exceeded", f.name)
	}
	if o == crash || o == vanish {
		m.stats.Panics++
	}
	joinable := k.running == f
	if o == succeed && joinable {
		k.stored = &modelEntry{load: f.name, began: f.began, expires: now.Add(f.fresh + stale)}
	}
	for _, c := range f.waiters {
		switch {
		case o == succeed:
			c.tell(f.name, c.status, now.Sub(f.began))
		case o == fail && k.stored != nil && !now.After(k.stored.expires) &&
			now.Sub(k.stored.began) < c.policy.Fresh+stale:
			c.tell(k.stored.load, cache.StaleError, now.Sub(k.stored.began))
			c.told += ", " + text
			m.stats.StaleErrors++
		default:
			c.told = text
		}
	}
	if f.refreshing != nil && o != succeed {
		m.stats.RefreshFailures++
		switch {
		case o == fail || o == turnAway:
			f.refreshing.quiet = f.claimed.Add(now.Sub(f.began) + refreshRetry)
		case k.stored == f.refreshing:
			k.stored = nil
		}
	}
	m.landed(f)
}

func (m *model) purge(project int64) {
	for _, k := range m.keys {
		if k.project != project {
			continue
		}
		k.stored = nil
		if k.running != nil {
			m.landed(k.running)
		}
	}
}

func (m *model) live() []string {
	var names []string
	for _, f := range m.loads {
		if !f.ended {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// TestCacheIsLikeModel applies random calls, departures, outcomes, purges and passing time to a cache and to
// the model, and after each step compares the answers of all callers and the running loads.
func TestCacheIsLikeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { rapid.SyncTest(rt, playModel) })
}

func playModel(rt *rapid.T) {
	w := newWorld(rt)
	names := []cache.Key{key(1, "a"), key(1, "b"), key(2, "a")}
	m := new(model)
	for _, name := range names {
		m.keys = append(m.keys, &modelKey{letter: w.letter(name), project: name.Project()})
	}
	var callers []*caller
	pickKey := rapid.IntRange(0, len(names)-1)

	rt.Repeat(map[string]func(*rapid.T){
		"call": func(rt *rapid.T) {
			k := pickKey.Draw(rt, "key")
			p := cache.Policy{
				Fresh: rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 30 * time.Second}).Draw(rt, "fresh"),
				Mode:  rapid.SampledFrom([]cache.Mode{cache.Use, cache.NoStale, cache.Recompute}).Draw(rt, "mode"),
			}
			m.call(m.keys[k], p)
			callers = append(callers, w.call(names[k], p))
		},
		"leave": func(rt *rapid.T) {
			var waiting []int
			for i, c := range m.callers {
				if c.told == "waits" {
					waiting = append(waiting, i)
				}
			}
			if len(waiting) == 0 {
				rt.Skip("nobody waits")
			}
			i := rapid.SampledFrom(waiting).Draw(rt, "caller")
			m.leave(m.callers[i])
			callers[i].leave()
		},
		"end a load": func(rt *rapid.T) {
			live := m.live()
			if len(live) == 0 {
				rt.Skip("no load runs")
			}
			name := rapid.SampledFrom(live).Draw(rt, "load")
			o := rapid.SampledFrom([]outcome{succeed, fail, refuse, turnAway, crash, vanish}).Draw(rt, "outcome")
			i := slices.IndexFunc(m.loads, func(f *modelFlight) bool { return f.name == name })
			m.end(m.loads[i], o, false)
			w.end(name, o)
		},
		"purge": func(rt *rapid.T) {
			project := int64(rapid.IntRange(1, 2).Draw(rt, "project"))
			m.purge(project)
			w.c.Purge(project)
			synctest.Wait()
		},
		"pass time": func(rt *rapid.T) {
			d := time.Duration(rapid.IntRange(1, 40_000).Draw(rt, "ms")) * time.Millisecond
			for _, f := range m.loads { // up to where the time of a refresh runs out
				if !f.ended && f.refreshing != nil {
					d = min(d, time.Until(f.began.Add(refreshTimeout)))
				}
			}
			time.Sleep(d)
			synctest.Wait()
			for _, f := range slices.Clone(m.loads) {
				if !f.ended && f.refreshing != nil && time.Since(f.began) >= refreshTimeout {
					m.end(f, fail, true)
				}
			}
		},
		"": func(rt *rapid.T) {
			for i, c := range callers {
				if diff := cmp.Diff(m.callers[i].told, c.String()); diff != "" {
					rt.Fatalf("caller %d (-want +got):\n%s", i, diff)
				}
			}
			if diff := cmp.Diff(m.live(), w.live()); diff != "" {
				rt.Fatalf("running loads (-want +got):\n%s", diff)
			}
			stats := w.c.Stats()
			want := m.stats
			want.Bytes, want.MaxBytes, want.Evicted = stats.Bytes, stats.MaxBytes, stats.Evicted
			if diff := cmp.Diff(want, stats); diff != "" {
				rt.Fatalf("stats (-want +got):\n%s", diff)
			}
		},
	})
}
