// Package execution gets results: from the cache, or by compiling a query and running it on ClickHouse. It admits queries, counts them on
// rates, runs them in the background, and remembers what ran. It knows neither HTTP nor Caddy.
package execution

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Executor gets results: from the cache, else from ClickHouse. All that it works with outlives a config, but for its settings.
type Executor struct {
	Cache     *cache.Cache
	Shards    *warehouse.Shards
	Places    *admission.Scheduler
	Limits    *Limiter
	Runs      *Runs
	Metrics   *Metrics
	Databases *Databases
	Names     *Sightings
	Cohorts   Cohorts // nil: the members of cohorts are as they are
	// Peers are the other servers that results are asked of; nil for none. Hops are those that are under way.
	Peers Peers
	Hops  *Hops
	// Source names what results depend on besides the registry: the rows that there are, and the program that reads them. No result of another
	// server is taken whose source is another one.
	Source string
	// Registry says which kinds of values properties have had. Nil: they may have any.
	Registry *registry.Registry
	// Log keeps the queries that ran in ClickHouse. Nil: they are in memory alone.
	Log *querylog.Log

	QueryFresh   time.Duration // how long an answer of the query route is fresh
	EndpointRate registry.Rate // what the runs of an endpoint may cause that has no rate of its own; zero: any number
	// Retain takes shares of all that the executor works with, for a run that may outlive its config. It is false when one of
	// them is closed already.
	Retain func() (release func(), ok bool)
	// ReportTable logs that a run could not read the table of its version; nil: nobody does.
	ReportTable func(q *Query, err error)
	// WholeOnly has every query run as a whole; else those that can be are put together from pieces of time, of which computed ones are kept.
	WholeOnly bool
	// ReportPieces logs that a query could not be put together from pieces, and ran as a whole; nil: nobody does.
	ReportPieces func(q *Query, err error)
	// Report logs the failure of a background run that its caller did not make.
	Report func(key cache.Key, err error)
}

// Caller is for whom a query is executed. It never changes.
type Caller struct {
	Project  *registry.Project
	Key      *registry.Key      // nil: nobody asked, and what is executed counts on no rate
	Share    *Share             // of the key's rate; nil for all of it
	Snapshot *registry.Snapshot // what the registry held when the request came
	Start    time.Time          // when the request came
	// TokenSecret is the id of the secret that signed the token of the request; empty for one that came with a key.
	TokenSecret string
}

// Share is a part of a key's rate that a token has to itself.
type Share struct {
	id string // of the token
	*allowance
}

// Result is what there is to answer with.
type Result struct {
	// The answer to show; its Entry is nil when there is none yet.
	Answer cache.Answer
	// The background run for this answer that is in progress; nil when there is none.
	Run *Run
	// The quotas that the query was counted on or refused by, also when there is an error; nil for an answer that was stored.
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

// InBackground gets a result for which nobody waits: its query comes after those of the project that somebody waits for.
func (e *Executor) InBackground(ctx context.Context, c *Caller, q *Query, f *Freshness) (cache.Answer, error) {
	policy := f.Policy(c.Start)
	policy.Background = true
	x := e.Computation(c, q)
	x.patience, x.renews = runPatience, false
	return x.answer(ctx, policy)
}

// Pinned gets the snapshot of a result that a cursor names. The error is ErrSnapshotGone.
func (e *Executor) Pinned(q *Query, f *Freshness, ref cache.Ref, now time.Time) (cache.Answer, error) {
	_, got, ok := e.Cache.Snapshot(ref, f.Policy(now))
	if !ok {
		return cache.Answer{}, ErrSnapshotGone
	}
	q.meter(e.Metrics).answer(got.Status)
	return got, nil
}

// Peek gets a result if the cache holds one that may still be served. Nothing is computed for it, and nothing counted.
func (e *Executor) Peek(q *Query, f *Freshness, now time.Time) (cache.Answer, bool) {
	return e.Cache.Peek(q.Key, f.Policy(now))
}

// ErrSnapshotGone reports that the snapshot which a cursor names is no longer kept.
var ErrSnapshotGone = errors.New("the snapshot is no longer kept")

// Refresh answers a query in its refresh mode: from the cache, by computing while the caller waits, or by a background run. What
// shows says how to show the answer is kept with the run for whoever asks about it.
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

// Following gives the context of what the caller waits for. When the caller has named the query, it also ends when that is
// cancelled by its name, until done is called.
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
	x := e.Computation(c, q)
	got, err := x.answer(ctx, f.Policy(c.Start))
	return Result{Answer: got, Quotas: x.ShownQuotas(got.Status, err)}, err
}

// begin begins a background run, beside the stored answer if there is one.
func (e *Executor) begin(ctx context.Context, c *Caller, q *Query, f *Freshness, from Origin, shows any, stored cache.Answer) (Result, error) {
	x := e.Computation(c, q)
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
		Answer: func(ctx context.Context) (cache.Answer, error) {
			policy := f.Policy(time.Now())
			policy.Background = true
			got, err := x.answer(ctx, policy)
			if err != nil && ctx.Err() == nil {
				e.Report(q.Key, err)
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

// isPast reports whether the range of an insight, as it is now, was over when an entry was computed. That of a range that ends
// at a date is known without asking: see lasts.
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

// Forget drops what was counted of an endpoint that was deleted.
func (e *Executor) Forget(endpoint *registry.Endpoint) {
	e.Metrics.forget(endpoint.Project, endpoint.Name)
	e.Limits.Forget(endpoint.ID)
}

// IsRefusal reports whether an error is the refusal of a limit.
func IsRefusal(err error) bool {
	_, refused := refusedBy(err)
	return refused
}

// IsOutage reports the failures that are no fault of the query: a stale answer is better than these.
func IsOutage(err error) bool {
	var e *clickhouse.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case clickhouse.Unavailable, clickhouse.Busy, clickhouse.Timeout, clickhouse.Memory, clickhouse.Internal:
		return true
	case clickhouse.UserError, clickhouse.Unrunnable, clickhouse.TooSlow, clickhouse.TooLarge:
	}
	return false
}

// ForgetProject drops what was counted of a project that is gone, and what is known of its schema.
func (e *Executor) ForgetProject(project int64) {
	e.Metrics.forgetProject(project)
	e.Databases.byProject.Delete(project)
	e.Databases.schemas.Delete(project)
	e.Databases.values.Delete(project)
}
