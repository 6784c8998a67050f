// Package execution gets results: from the cache, or by compiling a query and running it on ClickHouse. It admits queries, counts them against rates,
// runs them in the background, and logs what ran. It knows neither HTTP nor Caddy.
package execution

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/internal/panics"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Executor gets results: from the cache, or else from ClickHouse. Everything it works with outlives a config, except its settings.
type Executor struct {
	*Compiler
	Peering
	Settings

	Cache   *cache.Cache
	Places  *admission.Scheduler
	Limits  *Limiter
	Runs    *Runs
	Metrics *Metrics
	Names   *Sightings
	Cohorts Cohorts // nil: the members of cohorts are used as they are
	// Log stores the queries that ran in ClickHouse. Nil: they are only in memory.
	Log *querylog.Log
	// Retain takes shares of everything the executor works with, for a run that may outlive its config. ok is false if any of it is closed already.
	Retain  func() (release func(), ok bool)
	Reports Reports
}

// Peering is how results are shared with other servers.
type Peering struct {
	// Peers are the other servers that results are asked of; nil for none. Hops tracks the requests in flight.
	Peers Peers
	Hops  *Hops
	// Source identifies what results depend on besides the registry: the available rows and the program that reads them. A result of another server
	// is only used if its source is the same.
	Source string
}

// Settings are those of a config.
type Settings struct {
	QueryFresh   time.Duration // how long an answer of the query route is fresh
	EndpointRate registry.Rate // what runs of an endpoint without a rate of its own may cause; zero: no limit
	// WholeOnly makes every query run in one piece. Otherwise, where possible, a query is put together from pieces of time, and computed pieces are
	// kept.
	WholeOnly bool
}

// Reports log what callers are not told of.
type Reports struct {
	// Run logs the failure of a background run that is not its caller's fault. It is never nil.
	Run func(key cache.Key, err error)
	// Table logs that a run could not read the table of its version; nil: it is not logged.
	Table func(q *Query, err error)
	// Pieces logs that a query could not be put together from pieces and ran in one piece; nil: it is not logged.
	Pieces func(q *Query, err error)
}

// Caller is for whom a query is executed. It is immutable.
type Caller struct {
	Project  *registry.Project
	Key      *registry.Key      // nil: nobody asked, and the computation counts on no rate
	Share    *Share             // of the key's rate; nil for all of it
	Snapshot *registry.Snapshot // the registry when the request arrived
	Start    time.Time          // when the request arrived
	// TokenSecret is the id of the secret that signed the request's token; empty for a request with a key.
	TokenSecret string
}

// Share is a part of a key's rate that is reserved for a token.
type Share struct {
	id string // of the token
	*allowance
}

// Result is what a request is answered with.
type Result struct {
	// The answer to show; its Entry is nil when there is none yet.
	Answer cache.Answer
	// The background run for this answer that is in progress; nil when there is none.
	Run *Run
	// The quotas that the query counted on or was refused by, also if there is an error; nil for a stored answer.
	Quotas Quotas
}

// Answer gets a result, from the cache or by computing it while the caller waits.
func (e *Executor) Answer(ctx context.Context, c *Caller, q *Query, f *Freshness) (Result, error) {
	policy := f.Policy(c.Start)
	if got, ok := e.Cache.Get(q.Key, policy); ok {
		q.meter(e.Metrics).answer(got.Status)
		return Result{Answer: got}, nil
	}
	return e.await(ctx, c, q, f)
}

// InBackground gets a result that nobody waits for: its query runs after those of the project that somebody waits for.
func (e *Executor) InBackground(ctx context.Context, c *Caller, q *Query, f *Freshness) (cache.Answer, error) {
	policy := f.Policy(c.Start)
	policy.Background = true
	x := e.NewComputation(c, q)
	x.patience, x.renews = runPatience, false
	return x.answer(ctx, policy)
}

// Pinned returns the snapshot of a result that a cursor names. The error is ErrSnapshotGone.
func (e *Executor) Pinned(q *Query, f *Freshness, ref cache.Ref, now time.Time) (cache.Answer, error) {
	_, got, ok := e.Cache.Snapshot(ref, f.Policy(now))
	if !ok {
		return cache.Answer{}, ErrSnapshotGone
	}
	q.meter(e.Metrics).answer(got.Status)
	return got, nil
}

// Peek returns a result if the cache holds one that may still be served. It computes and counts nothing.
func (e *Executor) Peek(q *Query, f *Freshness, now time.Time) (cache.Answer, bool) {
	return e.Cache.Peek(q.Key, f.Policy(now))
}

// ErrSnapshotGone reports that the snapshot a cursor names is no longer kept.
var ErrSnapshotGone = errors.New("the snapshot is no longer kept")

// Refresh answers a query according to its refresh mode: from the cache, by computing while the caller waits, or with a background run. shows says
// how to present the answer; it is kept with the run for those who ask for it later.
func (e *Executor) Refresh(ctx context.Context, c *Caller, q *Query, f *Freshness, from Origin, shows any) (Result, error) {
	policy := f.Policy(c.Start)
	if got, ok := e.Cache.Get(q.Key, policy); ok {
		q.meter(e.Metrics).answer(got.Status)
		return Result{Answer: got, Run: e.Runs.inProgress(q.Key)}, nil
	}
	switch f.Refresh {
	case RefreshForceBlocking:
		return e.await(ctx, c, q, f)
	case RefreshForceAsync:
		return e.begin(ctx, c, q, f, from, shows, cache.Answer{})
	case RefreshBlocking, RefreshAsync, RefreshLazyAsync, RefreshAsyncExceptOnMiss, RefreshForceCache:
	}
	stored, ok := e.Cache.Peek(q.Key, policy)
	if ok && stored.Status == cache.Stale && e.isPast(ctx, c, q, stored.Entry) {
		stored.Status = cache.Hit
	}
	if f.Refresh == RefreshBlocking && stored.Status != cache.Hit {
		return e.await(ctx, c, q, f)
	}
	if ok {
		q.meter(e.Metrics).answer(stored.Status)
	}
	switch {
	case f.Refresh == RefreshForceCache, stored.Status == cache.Hit, ok && f.Refresh == RefreshLazyAsync && stored.Age < f.Lazy:
		return Result{Answer: stored, Run: e.Runs.inProgress(q.Key)}, nil
	case !ok && f.Refresh == RefreshAsyncExceptOnMiss:
		return e.await(ctx, c, q, f)
	}
	return e.begin(ctx, c, q, f, from, shows, stored)
}

// Following returns a context for work that the caller waits for. If the caller has named the query, the context also ends when the query is
// canceled by that name, until done is called.
func (e *Executor) Following(ctx context.Context, q *Query) (following context.Context, done func()) {
	if q.ClientID == "" {
		return ctx, func() {}
	}
	return e.Runs.follow(ctx, q)
}

// await computes while the caller waits.
func (e *Executor) await(ctx context.Context, c *Caller, q *Query, f *Freshness) (Result, error) {
	ctx, done := e.Following(ctx, q)
	defer done()
	x := e.NewComputation(c, q)
	got, err := x.answer(ctx, f.Policy(c.Start))
	return Result{Answer: got, Quotas: x.ShownQuotas(got.Status, err)}, err
}

// begin starts a background run, and returns it with the stored answer, if there is one.
func (e *Executor) begin(ctx context.Context, c *Caller, q *Query, f *Freshness, from Origin, shows any, stored cache.Answer) (Result, error) {
	x := e.NewComputation(c, q)
	if err := e.ready(ctx, x.quotas(), admission.Request{Project: c.Project.ID}, c.Start); err != nil {
		q.refused(e.Metrics, err)
		return Result{Quotas: x.ShownQuotas(0, err)}, err
	}
	release, ok := e.Retain()
	if !ok {
		return Result{}, ErrStopped
	}
	x.id, x.patience = cmp.Or(q.ClientID, newRunID()), runPatience
	r, err := e.Runs.Begin(NewRun{
		id: x.id, Query: q, from: from, Shows: shows, force: f.Mode == cache.Recompute, Most: e.mostRuns(), Picked: &x.picked, Release: release,
		Answer: func(ctx context.Context) (got cache.Answer, err error) {
			policy := f.Policy(time.Now())
			policy.Background = true
			err = panics.Try(func() error {
				got, err = x.answer(ctx, policy)
				return err
			})
			if err != nil && ctx.Err() == nil {
				e.Reports.Run(q.Key, err)
			}
			return got, err
		},
	})
	if errors.Is(err, errTooManyRuns) {
		err = e.TooMany(c.Project.ID)
		q.refused(e.Metrics, err)
		return Result{Answer: stored, Quotas: x.ShownQuotas(0, err)}, err
	}
	return Result{Answer: stored, Run: r}, err
}

// runPatience is how long a background run waits for its turn.
const runPatience = 10 * time.Minute

// isPast reports whether an insight's date range, resolved now, had already ended when an entry was computed. For a range that ends at a fixed date
// this is known without resolving it: see lasts.
func (e *Executor) isPast(ctx context.Context, c *Caller, q *Query, entry *cache.Entry) bool {
	n, ok := q.Node.(query.Insight)
	if !ok || n.Parts().DateRange.To == "" {
		return false
	}
	db, err := e.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return false
	}
	now, err := insight.Resolve(&insight.World{Database: db, Now: c.Start}, &query.Common{DateRange: n.Parts().DateRange}, query.IntervalOf(n))
	return err == nil && now.To.Before(entry.ComputedAt.Add(-overMargin))
}

// Forget drops the counters and the allowance of a deleted endpoint.
func (e *Executor) Forget(endpoint *registry.Endpoint) {
	e.Metrics.forget(endpoint.Project, endpoint.Name)
	e.Limits.Forget(endpoint.ID)
}

// ForgetProject drops the counters of a deleted project, and what is cached about its schema.
func (e *Executor) ForgetProject(project int64) {
	e.Metrics.forgetProject(project)
	e.Compiler.ForgetProject(project)
}
