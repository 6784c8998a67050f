package delivery

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// work is the batch that is being delivered. It survives a change of the target.
type work struct {
	*Delivery

	parts []*part // what is still to be delivered
	last  uint64  // the last entry of the batch
	began time.Time
	pause time.Duration // before the next try; 0 after a success
}

// part is the part of a batch that belongs to one project, without what is delivered.
type part struct {
	project  int64
	entries  []journal.Entry
	at       int      // bytes of the first entry that are delivered
	rejected rejected // among these
	refused  error    // why it can't be delivered
}

// deliver delivers the next batch, or tries again what failed of the last one.
func (w *work) deliver(ctx context.Context, target *registered) {
	if len(w.parts) == 0 {
		if !w.next(ctx) {
			return
		}
	} else if !sleep(ctx, w.pause) {
		return
	}
	done, ok := w.hold(target)
	if !ok {
		return
	}
	defer done()
	err := w.deliverParts(ctx, target)
	if err == nil && len(w.parts) == 0 {
		err = w.journal.Forget(ctx, w.last)
	}
	w.report(ctx, err)
}

// next reads a batch. It reports whether there is one.
func (w *work) next(ctx context.Context) bool {
	if !sleep(ctx, w.pause) || !sleep(ctx, time.Until(w.began.Add(interval))) {
		return false
	}
	entries, err := w.journal.Read(ctx, w.last, batchBytes)
	if err != nil || len(entries) == 0 {
		w.report(ctx, err)
		return false
	}
	w.began = time.Now()
	w.last = entries[len(entries)-1].ID
	w.parts = w.parts[:0]
	for _, entry := range entries {
		w.add(entry)
	}
	return true
}

// add puts an entry into the part of its project.
func (w *work) add(entry journal.Entry) {
	at := slices.IndexFunc(w.parts, func(p *part) bool { return p.project == entry.Project })
	if at < 0 {
		at = len(w.parts)
		w.parts = append(w.parts, &part{project: entry.Project})
	}
	w.parts[at].entries = append(w.parts[at].entries, entry)
}

// projectsAtOnce is how many projects are delivered to at the same time. They share their inserts.
const projectsAtOnce = 64

// deliverParts delivers what is left. A project that can't be delivered to does not hold up the other projects of the batch, but it holds up the next batches.
func (w *work) deliverParts(ctx context.Context, target Target) error {
	failures := make([]error, len(w.parts))
	var all errgroup.Group
	all.SetLimit(projectsAtOnce)
	for i, p := range w.parts {
		all.Go(func() error {
			failures[i] = w.deliverPart(ctx, target, p)
			return nil
		})
	}
	_ = all.Wait() // the errors are in failures
	var left []*part
	for i, p := range w.parts {
		if failures[i] != nil {
			left = append(left, p)
		}
	}
	w.parts = left
	return joinDistinct(failures)
}

// joinDistinct joins errors. Those with the same text count once: an outage fails every project in the same way.
func joinDistinct(errs []error) error {
	var distinct []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(distinct, func(known error) bool { return known.Error() == err.Error() }) {
			distinct = append(distinct, err)
		}
	}
	return errors.Join(distinct...)
}

func (w *work) deliverPart(ctx context.Context, target Target, p *part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var parser record.Parser
	for p.refused == nil && len(p.entries) > 0 {
		err := try(func() error { return w.deliverSome(ctx, target, p, p.next(&parser)) })
		if errors.As(err, new(*RefusedError)) {
			p.refused = err
		} else if err != nil {
			return err
		}
	}
	for len(p.entries) > 0 {
		if err := w.aside(ctx, p.entries[0], p.refused); err != nil {
			return err
		}
		p.entries = p.entries[1:]
	}
	return nil
}

// deliverSome delivers the next records of a part, and takes them out of it.
func (w *work) deliverSome(ctx context.Context, target Target, p *part, next some) error {
	bad := map[int]error{} // by place
	if len(next.records) > 0 {
		report, err := target.Deliver(ctx, p.project, next.records)
		if errors.As(err, new(*RefusedError)) {
			p.refused = err
			return nil
		}
		if err != nil {
			return err
		}
		w.delivered.Add(int64(report.Events))
		w.of(p.project).delivered.Add(int64(report.Events))
		for _, line := range report.BadLines {
			bad[line.Line-1] = errors.New(line.Reason)
		}
	}
	from, rejects := 0, p.rejected
	for n, end := range next.ends {
		rejects.add(next.lines[from:end], bad, from)
		if err := w.asideRejected(ctx, p.entries[n], rejects); err != nil {
			return err
		}
		from, rejects = end, rejected{}
	}
	rejects.add(next.lines[from:], bad, from)
	done := len(next.ends)
	if next.unreadable != nil {
		if err := w.aside(ctx, p.entries[done], next.unreadable); err != nil {
			return err
		}
		done, rejects = done+1, rejected{}
	}
	p.entries, p.at, p.rejected = p.entries[done:], next.at, rejects
	return nil
}

// try delivers something. A panic refuses it: the next try, or the next start of the process, would end in the same way.
func try(deliver func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &RefusedError{fmt.Errorf("BUG: delivering them panics: %v\n%s", cause, debug.Stack())}
		}
	}()
	return deliver()
}

// aside writes what can't be delivered to a file, so that the rest can go on.
func (w *work) aside(ctx context.Context, entry journal.Entry, reason error) error {
	path, err := w.journal.SetAside(ctx, entry, reason.Error())
	if err != nil {
		return fmt.Errorf("setting aside what can't be delivered: %w", err)
	}
	w.setAside.Add(int64(entry.Events))
	w.of(entry.Project).setAside.Add(int64(entry.Events))
	w.logger.Error("captured events can't be delivered, and were set aside", zap.Int64("project", entry.Project), zap.Int("events", entry.Events),
		zap.Error(reason), zap.String("file", path))
	return nil
}

// rejected is the records of an entry that ClickHouse refuses.
type rejected struct {
	events  int
	data    []byte
	reasons []error
}

// add adds the bad ones of lines, the first of which has a place.
func (r *rejected) add(lines [][]byte, bad map[int]error, first int) {
	r.data, r.reasons = slices.Clip(r.data), slices.Clip(r.reasons) // what the part has stays, in case that it is delivered again
	for n, line := range lines {
		if reason := bad[first+n]; reason != nil {
			r.events++
			r.data = append(append(r.data, line...), '\n')
			r.reasons = append(r.reasons, reason)
		}
	}
}

// asideRejected sets aside the records of an entry that ClickHouse refuses, together.
func (w *work) asideRejected(ctx context.Context, entry journal.Entry, r rejected) error {
	if r.events == 0 {
		return nil
	}
	entry.Events, entry.Data = r.events, r.data
	return w.aside(ctx, entry, joinDistinct(r.reasons))
}

// report notes how an attempt ended, and how long to wait before the next.
func (w *work) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // stopped, or the target changed
		w.pause = 0
	case err == nil:
		w.pause = 0
		if w.failing.Swap(nil) != nil {
			w.logger.Info("captured events are delivered again")
		}
	default:
		w.pause = min(max(2*w.pause, firstPause), lastPause)
		why := err.Error()
		if was := w.failing.Swap(&why); was == nil {
			w.logger.Warn("captured events can't be delivered now; trying again", zap.Error(err))
		}
	}
}
