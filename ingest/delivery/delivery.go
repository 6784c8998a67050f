// Package delivery takes captured events from the journal to ClickHouse: in order, each once, however often ClickHouse is unavailable or the process is killed
// in between. The journal forgets an entry only when it is in ClickHouse; one that is delivered again after a crash adds nothing, because ingestion skips
// events that are already there. A project that is slow to deliver to holds up the others only for a moment.
package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

// Target is where events are delivered to.
type Target interface {
	// Deliver writes the records of a project that are not there yet, in order. Records whose data ClickHouse refuses are in the report, by their line, and do not
	// block the others. After an error all of the records are delivered again, unless the error is a *RefusedError.
	Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error)
}

// RefusedError says that records can't be delivered, now or later.
type RefusedError struct{ Reason error }

func (e *RefusedError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

const (
	// interval is the least time between the starts of two deliveries: each writes a part to several tables, and ClickHouse merges parts at a cost.
	interval = 500 * time.Millisecond
	// batchBytes is how much of the journal is delivered at once.
	batchBytes = 16 << 20
	// firstPause is how long to wait after a failure, lastPause after many.
	firstPause, lastPause = 500 * time.Millisecond, 15 * time.Second
	// lateAfter is how long events wait before a log line says so.
	lateAfter = 30 * time.Second
)

// Delivery empties a journal into the newest of its targets.
type Delivery struct {
	*targets

	journal *journal.Journal
	logger  *zap.Logger

	delivered, setAside atomic.Int64
	failing             atomic.Pointer[string]
	projects            sync.Map // project → *projectCounts

	stop context.CancelFunc
	done sync.WaitGroup
}

// New starts to deliver the events of a journal as soon as there is a target.
func New(j *journal.Journal, logger *zap.Logger) *Delivery { return begin(j, newTargets(), logger) }

func begin(j *journal.Journal, to *targets, logger *zap.Logger) *Delivery {
	d := &Delivery{targets: to, journal: j, logger: logger}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.done.Go(func() { d.run(ctx) })
	d.done.Go(func() { d.watchLag(ctx) })
	return d
}

// Close ends the delivery. What is not delivered stays in the journal.
func (d *Delivery) Close() error {
	d.stop()
	d.done.Wait()
	return nil
}

// run delivers until ctx ends.
func (d *Delivery) run(ctx context.Context) {
	w := newWork(d)
	for ctx.Err() == nil {
		target, changed := d.target()
		if target == nil {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		done, ok := d.hold(target)
		if !ok {
			continue
		}
		d.until(ctx, changed, func(ctx context.Context) { w.deliver(ctx, target) })
		done()
	}
}

// until calls do with a context that also ends when changed is closed.
func (d *Delivery) until(ctx context.Context, changed <-chan struct{}, do func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-changed:
			cancel()
		case <-stop:
		}
	}()
	do(ctx)
}

// Status describes how a delivery is doing.
type Status struct {
	Delivered int64         // events, since the process started
	SetAside  int64         // events that can't be delivered, since the process started
	Lag       time.Duration // how long the oldest event has been waiting; 0 for none
	Failing   string        // why events can't be delivered now; empty when they can
}

// Status reports how the delivery is doing now.
func (d *Delivery) Status() Status {
	s := Status{Delivered: d.delivered.Load(), SetAside: d.setAside.Load()}
	if oldest := d.journal.Stats().Oldest; !oldest.IsZero() {
		s.Lag = max(time.Since(oldest), 0)
	}
	if why := d.failing.Load(); why != nil {
		s.Failing = *why
	}
	return s
}

// projectCounts are the events of one project.
type projectCounts struct{ delivered, setAside atomic.Int64 }

func (d *Delivery) of(project int64) *projectCounts {
	found, ok := d.projects.Load(project)
	if !ok {
		found, _ = d.projects.LoadOrStore(project, new(projectCounts))
	}
	counts, _ := found.(*projectCounts)
	return counts
}

// StatusOf reports how the delivery of a project's events is doing now. Failing stays empty, because the reason may mention other projects.
func (d *Delivery) StatusOf(project int64) Status {
	var s Status
	if found, ok := d.projects.Load(project); ok {
		counts, _ := found.(*projectCounts)
		s.Delivered, s.SetAside = counts.delivered.Load(), counts.setAside.Load()
	}
	if oldest := d.journal.Waiting(project).Oldest; !oldest.IsZero() {
		s.Lag = max(time.Since(oldest), 0)
	}
	return s
}

// Forget removes the counts of a project that is gone.
func (d *Delivery) Forget(project int64) { d.projects.Delete(project) }

// watchLag logs when events begin to wait for long, and when they no longer do.
func (d *Delivery) watchLag(ctx context.Context) {
	late := false
	for pause.For(ctx, time.Second) == nil {
		switch s := d.Status(); {
		case !late && s.Lag > lateAfter:
			late = true
			stats := d.journal.Stats()
			d.logger.Warn("captured events are waiting for ClickHouse", zap.Duration("lag", s.Lag), zap.Int64("events", stats.Events),
				zap.Int64("bytes", stats.Bytes), zap.String("reason", s.Failing))
		case late && s.Lag <= lateAfter:
			late = false
			d.logger.Info("captured events are delivered in time again", zap.Duration("lag", s.Lag))
		}
	}
}
