package module

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// warehouse is the connection to ClickHouse, and what is known of the tables there.
type warehouse struct {
	client *clickhouse.Client
	logger *zap.Logger
	known  atomic.Pointer[schema.Layout]
	looks  singleflight.Group // one discovery at a time
	said   atomic.Value       // the last failure that was logged, a string

	open  context.Context // ends with close
	end   context.CancelFunc
	ended chan struct{} // the task that follows an outage
}

func openWarehouse(config clickhouse.Config, logger *zap.Logger) (*warehouse, error) {
	client, err := clickhouse.Open(config, logger)
	if err != nil {
		return nil, fmt.Errorf("connecting to ClickHouse: %w", err)
	}
	w := &warehouse{client: client, logger: logger, ended: make(chan struct{})}
	w.open, w.end = context.WithCancel(context.Background())
	go w.follow()
	return w, nil
}

func (w *warehouse) close() error {
	w.end()
	err := w.client.Close()
	<-w.ended
	return err
}

const (
	// followEvery is how often a ClickHouse that does not answer is asked whether it does again. One that answers is asked by queries
	// alone.
	followEvery = 5 * time.Second
	// lookTime is how long a discovery may take, with the making of tables.
	lookTime = time.Minute
	// lookWait is how long a request waits for it.
	lookWait = 12 * time.Second
	// startWait is how long the start of the server waits for it where endpoint files are to be applied.
	startWait = time.Second
)

// follow looks at the tables as soon as ClickHouse answers, and sees to it that the end of an outage is noticed without a query.
func (w *warehouse) follow() {
	defer close(w.ended)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		reachable, _ := w.client.Reachable()
		switch {
		case w.known.Load() == nil:
			_, _ = w.layout(w.open) // what goes wrong is logged where it shows
		case !reachable:
			_ = w.client.Ping(w.open) // likewise
		}
		select {
		case <-w.open.Done():
			return
		case <-tick.C:
		}
	}
}

// layout returns how the physical tables store properties. The first call that reaches ClickHouse creates the tables that
// are missing and looks; all who ask meanwhile wait for it, but not for long. The error is a *clickhouse.Error or that of ctx.
func (w *warehouse) layout(ctx context.Context) (*schema.Layout, error) {
	if l := w.known.Load(); l != nil {
		return l, nil
	}
	found := w.looks.DoChan("", func() (any, error) {
		if l := w.known.Load(); l != nil {
			return l, nil
		}
		return w.look()
	})
	timer := time.NewTimer(lookWait)
	defer timer.Stop()
	select {
	case f := <-found:
		l, _ := f.Val.(*schema.Layout)
		return l, f.Err
	case <-timer.C:
		return nil, errStillLooking
	case <-ctx.Done():
		return nil, fmt.Errorf("looking at the tables: %w", context.Cause(ctx))
	}
}

var (
	errStillLooking = &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse has not answered yet"}
	errNoTables     = &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "the tables on ClickHouse cannot be prepared"}
)

func (w *warehouse) look() (*schema.Layout, error) {
	ctx, cancel := context.WithTimeoutCause(w.open, lookTime, errStillLooking)
	defer cancel()
	if err := w.client.Migrate(ctx); err != nil {
		return nil, w.unprepared(fmt.Errorf("creating tables: %w", err))
	}
	columns, err := w.client.PhysicalColumns(ctx)
	if err != nil {
		return nil, w.unprepared(fmt.Errorf("looking at the tables: %w", err))
	}
	l := layoutOf(columns)
	w.known.Store(l)
	return l, nil
}

// unprepared gives the error that callers get when the tables cannot be prepared: they made no mistake, whatever ClickHouse says.
// What the client has not logged is logged once.
func (w *warehouse) unprepared(err error) error {
	var e *clickhouse.Error
	switch {
	case w.open.Err() != nil:
		return err
	case errors.As(err, &e) && e.Kind == clickhouse.Unavailable:
		return err
	}
	text := err.Error()
	if e != nil {
		if cause := e.Unwrap(); cause != nil {
			text += ": " + w.client.Clean(cause.Error())
		}
	}
	if w.said.Swap(text) != any(text) {
		w.logger.Warn("the tables cannot be prepared; queries get 503 until they can", zap.String("error", text))
	}
	return errNoTables
}

// layoutOf is what the compiler has to know of the physical columns.
func layoutOf(columns []clickhouse.PhysicalColumn) *schema.Layout {
	physical := make([]schema.PhysicalColumn, len(columns))
	for i, c := range columns {
		physical[i] = schema.PhysicalColumn(c)
	}
	return schema.NewLayout(physical)
}
