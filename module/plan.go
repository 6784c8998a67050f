package module

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
)

// plan is a request that was understood: which result it wants, how fresh, and how to show it. Plans are immutable and shared by
// all requests that look the same.
type plan struct {
	*execution.Query
	execution.Freshness
	view

	fixed  string                     // the variables that the key of the run fixes
	logged atomic.Pointer[runlog.Log] // see logRun
	next   atomic.Pointer[nextHeader] // see setFileHeaders
}

// view is how a result is shown.
type view struct {
	// The page that is wanted; limit is negative for all rows of the result.
	offset, limit int
	debug         bool
	format        format
	page          cache.PageKey
	ref           cache.Ref // the snapshot that a cursor names; zero for the result as it stands
	example       bool      // for a document: whatever would let the reader go on leads nowhere
	attachment    []string  // of a file: its Content-Disposition
	shows         shown     // of the query route: what its answers have beside the rows
	notices       *notices  // nil for a version that nothing is announced of
}

// isPage reports whether a part of the rows is shown.
func (v *view) isPage() bool { return v.limit >= 0 }

// size is about what a plan takes in memory, in bytes.
func (p *plan) size() int { return p.Size() + len(p.shows.modifiers) + 512 }

// setPage fixes which page of the result the plan shows, and in what form: all that a body depends on beside the result.
func (p *plan) setPage() {
	form := "query"
	if p.Endpoint != nil {
		form = fmt.Sprintf("run paged=%t debug=%t format=%s", p.isPage(), p.debug, p.format)
	}
	p.page = cache.PageKey{Offset: p.offset, Limit: p.limit, Variant: fmt.Sprintf("%s fresh=%s", form, p.Fresh)}
}

// planMemory is what the memo of plans may hold, in bytes of requests.
const planMemory = 16 << 20

// answer gets the result of a run's plan, from the cache or by running it while the caller waits.
func (rq *request) answer(p *plan) (cache.Answer, error) {
	if p.ref != (cache.Ref{}) {
		got, err := rq.rt.Pinned(p.Query, p.Freshness, p.ref, rq.Start)
		return got, cursorError(err)
	}
	got, err := rq.rt.Answer(rq.r.Context(), rq.Caller.Caller, p.Query, p.Freshness)
	rq.showQuotas(got.Quotas)
	return got.Answer, err
}

// refresh answers a plan in its refresh mode.
func (rq *request) refresh(p *plan, from execution.Origin) (execution.Result, error) {
	got, err := rq.rt.Refresh(rq.r.Context(), rq.Caller.Caller, p.Query, p.Freshness, from, p)
	rq.showQuotas(got.Quotas)
	return got, err
}

// showQuotas tells in the answer's headers what is left to its caller.
func (rq *request) showQuotas(qs execution.Quotas) {
	if qs == nil {
		return
	}
	policy, left := qs.Fields(time.Now())
	h := rq.w.Header()
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{left}
}
