package warehouse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

const (
	// followEvery is how often a ClickHouse that does not answer is asked again. One that answers is only asked by queries, unless it has several hosts.
	followEvery = 5 * time.Second
	// retryDiscovery is how long after a failed discovery no new one is tried: callers in between get its error.
	retryDiscovery = time.Second
	// lookTime is how long a discovery may take, including the creation of tables. On a cluster it waits for servers that are away.
	lookTime        = time.Minute
	clusterLookTime = 5 * time.Minute
	// lookWait is how long a caller waits for the discovery.
	lookWait = 12 * time.Second
)

// ErrStillLooking is the error of callers that do not wait for the discovery to end.
var ErrStillLooking error = &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse has not answered yet"}

var errNoTables = &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "the tables on ClickHouse cannot be prepared"}

// Known returns the layout that was found, or nil.
func (w *Warehouse) Known() *schema.Layout { return w.known.Load() }

// Layout returns how the physical tables store properties. The first call that reaches ClickHouse creates missing tables and looks at them; other
// callers wait for it, but not for long. The error is a *clickhouse.Error or that of ctx.
func (w *Warehouse) Layout(ctx context.Context) (*schema.Layout, error) {
	if l := w.known.Load(); l != nil {
		return l, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookWait, ErrStillLooking)
	defer cancel()
	return w.Prepare(ctx)
}

// Prepare is Layout for a caller that waits as long as a discovery may take.
func (w *Warehouse) Prepare(ctx context.Context) (*schema.Layout, error) {
	found := w.looks.DoChan("", func() (any, error) { return w.find() })
	select {
	case f := <-found:
		l, _ := f.Val.(*schema.Layout)
		return l, f.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("inspecting the tables: %w", context.Cause(ctx))
	}
}

// find runs only once at a time.
func (w *Warehouse) find() (*schema.Layout, error) {
	if l := w.known.Load(); l != nil {
		return l, nil
	}
	if w.failed != nil && time.Since(w.failedAt) < retryDiscovery {
		return nil, w.failed
	}
	l, err := w.look()
	if err != nil {
		w.failed, w.failedAt = err, time.Now()
		return nil, err
	}
	w.failed = nil
	w.known.Store(l)
	return l, nil
}

func (w *Warehouse) look() (*schema.Layout, error) {
	ctx, cancel := context.WithTimeoutCause(w.open, w.lookTime, ErrStillLooking)
	defer cancel()
	if err := w.client.Migrate(ctx); err != nil {
		return nil, w.unprepared(fmt.Errorf("creating tables: %w", err))
	}
	columns, err := w.client.PhysicalColumns(ctx)
	if err != nil {
		return nil, w.unprepared(fmt.Errorf("inspecting the tables: %w", err))
	}
	return schema.NewLayout(columns), nil
}

// unprepared returns the error that callers get if the tables can't be prepared: whatever ClickHouse says, it is not their mistake. What the client
// has not logged is logged once.
func (w *Warehouse) unprepared(err error) error {
	var e *clickhouse.Error
	switch {
	case w.open.Err() != nil:
		return err
	case errors.Is(err, ErrStillLooking): // ClickHouse may answer, but slowly
	case errors.As(err, &e) && e.Kind == clickhouse.Unavailable:
		return err
	}
	if text := err.Error(); w.said.Swap(text) != any(text) {
		w.logger.Warn("the tables cannot be prepared; queries get 503 until they can", clickhouse.Logged(err))
	}
	return errNoTables
}

// follow looks at the tables as soon as ClickHouse answers, and notices the end of an outage without a query.
func (w *Warehouse) follow() {
	defer close(w.ended)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		reachable, _ := w.client.Reachable()
		switch {
		case w.known.Load() == nil:
			_, _ = w.Layout(w.open) // failures are logged where they occur
		case !reachable:
			_ = w.client.Ping(w.open) // as above
		default:
			w.client.LookAround(w.open)
		}
		select {
		case <-w.open.Done():
			return
		case <-tick.C:
		}
	}
}
