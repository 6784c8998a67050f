package execution

import (
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// RefreshMode says when the answer of a query or an insight is computed, and whether the caller waits for it: contract
// api.md, section 1.3.
type RefreshMode string

const (
	RefreshBlocking          RefreshMode = "blocking"
	RefreshAsync             RefreshMode = "async"
	RefreshLazyAsync         RefreshMode = "lazy_async"
	RefreshAsyncExceptOnMiss RefreshMode = "async_except_on_cache_miss"
	RefreshForceBlocking     RefreshMode = "force_blocking"
	RefreshForceAsync        RefreshMode = "force_async"
	RefreshForceCache        RefreshMode = "force_cache"
)

var refreshModes = []RefreshMode{
	RefreshBlocking, RefreshAsync, RefreshLazyAsync, RefreshAsyncExceptOnMiss, RefreshForceBlocking, RefreshForceAsync, RefreshForceCache,
}

// ParseRefresh reads the name of a mode.
func ParseRefresh(name string) (RefreshMode, bool) {
	mode := RefreshMode(name)
	return mode, slices.Contains(refreshModes, mode)
}

// cacheMode returns how the cache is used when the mode computes.
func (m RefreshMode) cacheMode() cache.Mode {
	if m == RefreshForceBlocking || m == RefreshForceAsync {
		return cache.Recompute
	}
	return cache.NoStale
}

// thresholds are the ages at which an answer is stale, and at which lazy_async computes it again.
type thresholds struct{ fresh, lazy time.Duration }

// thresholdsOf returns the thresholds of a node: insights have them by interval; other kinds have the operator's cache ttl, and twice that for lazy_async.
func (e *Executor) thresholdsOf(node query.Node) thresholds {
	if _, ok := node.(query.Insight); !ok {
		return thresholds{e.QueryFresh, 2 * e.QueryFresh}
	}
	const day = 24 * time.Hour
	switch query.IntervalOf(node) {
	case query.Second, query.Minute:
		return thresholds{5 * time.Minute, 15 * time.Minute}
	case query.Hour:
		return thresholds{time.Hour, 2 * time.Hour}
	case query.Week:
		return thresholds{day, day}
	case query.Month, query.Quarter, query.Year:
		return thresholds{2 * day, 2 * day}
	case query.Day:
	}
	return thresholds{6 * time.Hour, 12 * time.Hour}
}

// keepPast is how long an answer is kept whose range has ended: it does not become stale.
const keepPast = 7 * 24 * time.Hour

// Freshness says how fresh a result has to be, and how a request for a fresher one is handled.
type Freshness struct {
	Fresh time.Duration
	Mode  cache.Mode
	Refs  bool // cursors may name the result

	// For the query route and insights, see FreshnessOf; zero for endpoints.
	Refresh    RefreshMode
	Lazy, keep time.Duration
	lasting    func(*cache.Entry) bool
}

// Policy returns the cache policy for a request at now.
func (f *Freshness) Policy(now time.Time) cache.Policy {
	return cache.Policy{Fresh: f.Fresh, Mode: f.Mode, Now: now, Lasting: f.lasting, Keep: f.keep, Refs: f.Refs}
}

// FreshnessOf returns when a query of the query route or of an insight is computed.
func (e *Executor) FreshnessOf(node query.Node, mode RefreshMode) Freshness {
	ages := e.thresholdsOf(node)
	f := Freshness{Refresh: mode, Mode: mode.cacheMode(), Fresh: ages.fresh, Lazy: ages.lazy, keep: ages.lazy, lasting: lasts}
	if endsAtDate(node) {
		f.keep = keepPast
	}
	return f
}

// endsAtDate reports whether a node is an insight whose range ends at a fixed date, rather than at a time that moves with the clock, such as the end
// of the last whole bucket.
func endsAtDate(node query.Node) bool {
	n, ok := node.(query.Insight)
	if !ok || n.Parts().DateRange.ExcludeIncomplete {
		return false
	}
	to := n.Parts().DateRange.To
	return len(to) >= len("2006-01-02") && to[0] >= '0' && to[0] <= '9'
}

// lasts reports whether an entry's range had ended when it was computed: then it stays fresh.
func lasts(e *cache.Entry) bool {
	done, ok := e.Meta.(*Details)
	return ok && done.over
}

// isOver reports whether the range of an answer, with all that is counted of its last bucket, had ended when its computation began.
func (q *Query) isOver(answer *insightAnswer, began time.Time) bool {
	return endsAtDate(q.Node) && !answer.until.IsZero() && answer.until.Before(began.Add(-overMargin))
}

// overMargin is how long before the computation a range has to end for the answer to stay fresh.
const overMargin = 10 * time.Second
