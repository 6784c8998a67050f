// Package warehouse is ClickHouse as the API uses it: whatever runs there for a project needs one of the project's places, so no caller can bypass
// the limits. Only discovery and pings, which do no project's work and run once at a time, need none.
package warehouse

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Warehouse is the connection to ClickHouse and what is known of its tables. It is safe for concurrent use.
type Warehouse struct {
	client *clickhouse.Client
	ingest *ingest.Ingester
	logger *zap.Logger
	shared Shared // nil: nobody else writes
	holder string // the name under which it takes locks

	*common

	caughtUp *caughtUp
	prober   *prober // nil: nobody else writes, or that is not known

	known    atomic.Pointer[schema.Layout]
	lookTime time.Duration
	looks    singleflight.Group // one discovery at a time
	failed   error              // of the last discovery; like failedAt only used by find
	failedAt time.Time
	said     atomic.Value // the last failure logged, a string

	trials singleflight.Group    // one attempt to create a table at a time
	trial  atomic.Pointer[trial] // nil before the first

	open  context.Context // ends with Close
	end   context.CancelFunc
	ended chan struct{} // closed when follow has returned
}

// Shared is what the servers of one registry share; these servers also write to the same ClickHouse.
type Shared interface {
	// Lock takes a lock that has one holder at a time. others reports whether another holder may have had it since this one.
	Lock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	// CheckLocks returns an error if another holder may have got one of the locks since they were taken here.
	CheckLocks(ctx context.Context, names []string) error
	// Keep stores data under a name, and Kept returns it.
	Keep(ctx context.Context, name string, data []byte) error
	Kept(ctx context.Context, name string) ([]byte, error)
}

// people returns the name of a project's people in Shared.
func people(project int64) string { return "people-" + strconv.FormatInt(project, 10) }

// intents stores the batch being written to a project where the next server that writes there finds it.
type intents struct{ Shared }

// Save implements ingest.Intents.
func (i intents) Save(ctx context.Context, project int64, batch []byte) error {
	return i.Keep(ctx, people(project), batch)
}

// Load implements ingest.Intents.
func (i intents) Load(ctx context.Context, project int64) ([]byte, error) {
	return i.Kept(ctx, people(project))
}

// Open prepares a warehouse and begins to look for ClickHouse in the background. It does not wait for an answer.
func Open(config clickhouse.Config, shared Shared, logger *zap.Logger) (*Warehouse, error) {
	return open(config, shared, newCommon(), logger)
}

func open(config clickhouse.Config, shared Shared, with *common, logger *zap.Logger) (*Warehouse, error) {
	client, err := clickhouse.Open(config, logger)
	if err != nil {
		return nil, fmt.Errorf("connecting to ClickHouse: %w", err)
	}
	w := prepare(client, with, logger)
	w.shared, w.ingest.Intents = shared, intents{shared}
	w.ingest.Alone = config.Embedded // others may write to a server
	if config.Cluster != "" {
		w.lookTime = clusterLookTime
	}
	if !config.Embedded {
		w.prober = newProber(client)
	}
	go w.follow()
	return w, nil
}

// With returns a warehouse on a client, which it closes. If a layout is given it is used without looking. ClickHouse is only asked what callers ask.
func With(client *clickhouse.Client, layout *schema.Layout) *Warehouse {
	w := prepare(client, newCommon(), zap.NewNop())
	w.known.Store(layout)
	close(w.ended)
	return w
}

func prepare(client *clickhouse.Client, with *common, logger *zap.Logger) *Warehouse {
	w := &Warehouse{
		client: client, ingest: ingest.New(client), logger: logger, holder: uuid.NewString(), common: with,
		caughtUp: &caughtUp{replicas: client}, lookTime: lookTime, ended: make(chan struct{}),
	}
	w.ingest.Writes = w.changes
	w.open, w.end = context.WithCancel(context.Background())
	return w
}

// Close closes the connections. Queries that still run are stopped.
func (w *Warehouse) Close() error {
	w.end()
	err := w.client.Close()
	<-w.ended
	return err
}

// Alone reports whether only this server and those that share its registry write properties to ClickHouse.
func (w *Warehouse) Alone() bool { return w.ingest.Alone }

// Reachable reports whether ClickHouse answered when it was last asked.
func (w *Warehouse) Reachable() bool {
	ok, _ := w.client.Reachable()
	return ok
}

// Hosts returns the state of each host of ClickHouse.
func (w *Warehouse) Hosts() []clickhouse.HostState { return w.client.Hosts() }

// Moved returns how many queries and statements went to another host because one could not be used.
func (w *Warehouse) Moved() uint64 { return w.client.Moved() }

// ServerVersion returns the version of ClickHouse; empty if it has not answered yet.
func (w *Warehouse) ServerVersion() string { return w.client.ServerVersion() }

// Deadline returns when a query that begins now is ended, whatever ClickHouse does.
func (w *Warehouse) Deadline(ctx context.Context) time.Time { return w.client.Deadline(ctx) }

// Ping checks that ClickHouse answers. It needs no place; the caller makes sure that it is not called too often.
func (w *Warehouse) Ping(ctx context.Context) error { return w.client.Ping(ctx) }

// Query runs q in the place at, which must cover q.Project. See [clickhouse.Client.Query].
func (w *Warehouse) Query(ctx context.Context, at *admission.Place, q clickhouse.Query, sink clickhouse.Sink) (clickhouse.Stats, error) {
	if err := check(at, q.Project); err != nil {
		return clickhouse.Stats{}, err
	}
	q.Yields, q.Spread, q.Lingers = at.Yields(), true, at.Keep
	return w.client.Query(ctx, q, sink)
}

// Export writes the rows of q to out as a file, in the place at, which must cover q.Project. See [clickhouse.Client.Export].
func (w *Warehouse) Export(ctx context.Context, at *admission.Place, q clickhouse.Query, format clickhouse.FileFormat, out io.Writer) (clickhouse.Stats, error) {
	if err := check(at, q.Project); err != nil {
		return clickhouse.Stats{}, err
	}
	q.Yields, q.Spread, q.Lingers = at.Yields(), true, at.Keep
	return w.client.Export(ctx, q, format, out)
}

// Fill fills a table in the place at, which must cover f.Project. See [clickhouse.Client.Fill].
func (w *Warehouse) Fill(ctx context.Context, at *admission.Place, f clickhouse.Fill) error {
	if err := check(at, f.Project); err != nil {
		return err
	}
	f.Yields, f.Lingers = at.Yields(), at.Keep
	return w.changing(f.Project, f.Table, statement, func() error { return w.client.Fill(ctx, f) })
}

// Describe returns the columns of q, in the place at, which must cover q.Project. See [clickhouse.Client.Describe].
func (w *Warehouse) Describe(ctx context.Context, at *admission.Place, q clickhouse.Query) ([]clickhouse.Column, error) {
	if err := check(at, q.Project); err != nil {
		return nil, err
	}
	q.Lingers = at.Keep
	return w.client.Describe(ctx, q)
}

// Import is ingest.Ingester.Import. Each batch takes turns with other servers, and waits for one of the project's places, however many queries are waiting.
func (w *Warehouse) Import(ctx context.Context, places *admission.Scheduler, options ingest.Options, in ingest.Reader) (ingest.Report, error) {
	return w.ingest.Import(ctx, w.taking(places, options), in)
}

// Change is ingest.Ingester.Change. It takes turns with other servers and waits for one of the project's places, like a batch of an import.
func (w *Warehouse) Change(ctx context.Context, places *admission.Scheduler, options ingest.Options, c ingest.Change) (ingest.Report, error) {
	return w.ingest.Change(ctx, w.taking(places, options), c)
}

// taking lets batches wait for a place of their project, and then for their turn among those that write to it. A dry run takes no turn.
func (w *Warehouse) taking(places *admission.Scheduler, options ingest.Options) ingest.Options {
	options.Enter = func(ctx context.Context) (leave func(), err error) {
		place, err := places.Enter(ctx, admission.Request{Project: options.Project, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			return nil, err
		}
		return place.Leave, nil
	}
	if !options.DryRun {
		options.Turn = w.turnOf(options.Project)
	}
	return options
}

// turnOf returns a Turn that waits for its turn among those that write to a project.
func (w *Warehouse) turnOf(project int64) func(context.Context) (done func(), err error) {
	return func(ctx context.Context) (func(), error) { return w.lockCaughtUp(ctx, project) }
}

// Deliver is ingest.Ingester.Deliver. It takes turns with other servers and waits for no place: events come in no matter how many queries run.
func (w *Warehouse) Deliver(ctx context.Context, options ingest.Options, records []record.Record) (ingest.Report, error) {
	options.Turn = w.turnOf(options.Project)
	return w.ingest.Deliver(ctx, options, records)
}

// lockCaughtUp takes the lock of a project's people, and waits until ClickHouse has everything written about them: what one server reads about people must
// not change until it has written. It waits while Hold holds the writers, which may take minutes. The caller must not have the lock already.
func (w *Warehouse) lockCaughtUp(ctx context.Context, project int64) (release func(), err error) {
	if err := w.gate.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for a backup: %w", context.Cause(ctx))
	}
	if w.shared == nil {
		return func() { w.gate.Release(1) }, nil
	}
	unlock, err := w.lock(ctx, project)
	if err != nil {
		w.gate.Release(1)
		return nil, err
	}
	release = func() { unlock(); w.gate.Release(1) }
	missed, err := w.caughtUp.await(ctx, project)
	if err != nil {
		release()
		return nil, err
	}
	if missed {
		w.ingest.Forget(project)
	}
	return release, nil
}

// lock takes the lock of a project's people, and forgets what is known about them if another holder had it, which is only reported once.
func (w *Warehouse) lock(ctx context.Context, project int64) (unlock func(), err error) {
	others, unlock, err := w.shared.Lock(ctx, people(project), w.holder)
	if err == nil && others {
		w.ingest.Forget(project) // a probe finds changed data where there are other servers
		w.caughtUp.forget(project)
	}
	return unlock, err
}

// changing runs a change of the rows of a project's table.
func (w *Warehouse) changing(project int64, table string, kind changeKind, run func() error) error {
	end := w.changes.begin(project, &change{table: table, kind: kind})
	err := run()
	end(err)
	return err
}

// removing runs a removal of rows of a project's table, and reports whether there were any. If not, run must send no statement.
func (w *Warehouse) removing(project int64, table string, run func() (some bool, err error)) (some bool, err error) {
	end := w.changes.begin(project, &change{table: table, kind: mutation})
	if some, err = run(); some {
		end(err)
	} else {
		end(errUnchanged)
	}
	return some, err
}

// changingAll runs a change that may affect the rows of all projects.
func (w *Warehouse) changingAll(run func() error) error {
	end := w.changes.beginAll()
	err := run()
	end(err)
	return err
}

func check(at *admission.Place, project int64) error {
	if !at.Covers(project) {
		return fmt.Errorf("BUG: a query of project %d without a place", project)
	}
	return nil
}
