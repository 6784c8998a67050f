package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/ingest"
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

// part is the part of a batch that belongs to one project.
type part struct {
	project int64
	entries []journal.Entry
	records []record.Record
	ends    []int // by entry, the number of records up to its end
	refused error // why it can't be delivered
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
	var parser record.Parser
	for _, entry := range entries {
		w.add(entry, &parser)
	}
	return true
}

// add puts an entry into the part of its project.
func (w *work) add(entry journal.Entry, parser *record.Parser) {
	records, err := decode(&entry, parser)
	if err != nil {
		w.parts = append(w.parts, &part{project: entry.Project, entries: []journal.Entry{entry}, refused: err})
		return
	}
	at := slices.IndexFunc(w.parts, func(p *part) bool { return p.project == entry.Project && p.refused == nil })
	if at < 0 {
		at = len(w.parts)
		w.parts = append(w.parts, &part{project: entry.Project})
	}
	p := w.parts[at]
	p.entries, p.records = append(p.entries, entry), append(p.records, records...)
	p.ends = append(p.ends, len(p.records))
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
	if p.refused == nil {
		for i := range p.records {
			p.records[i].Line = i + 1
		}
		report, err := target.Deliver(ctx, p.project, slices.Clone(p.records))
		if err == nil {
			w.delivered.Add(int64(report.Events))
			w.of(p.project).delivered.Add(int64(report.Events))
			return w.setAsideRefused(ctx, p, report.BadLines)
		}
		if !errors.As(err, new(*RefusedError)) {
			return err
		}
		p.refused = err
	}
	for len(p.entries) > 0 {
		if err := w.aside(ctx, p.entries[0], p.refused); err != nil {
			return err
		}
		p.entries = p.entries[1:]
	}
	return nil
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

// setAsideRefused sets aside the records that ClickHouse refuses, those of an entry together.
func (w *work) setAsideRefused(ctx context.Context, p *part, lines []ingest.BadLine) error {
	bad := make(map[int]error, len(lines)) // by place
	for _, line := range lines {
		bad[line.Line-1] = errors.New(line.Reason)
	}
	from := 0
	for n, entry := range p.entries {
		refused := entry
		refused.Events, refused.Data = 0, nil
		var reasons []error
		for at := from; at < p.ends[n]; at++ {
			reason := bad[at]
			if reason == nil {
				continue
			}
			refused.Events++
			refused.Data = append(record.Append(refused.Data, &p.records[at]), '\n')
			reasons = append(reasons, reason)
		}
		from = p.ends[n]
		if refused.Events == 0 {
			continue
		}
		if err := w.aside(ctx, refused, joinDistinct(reasons)); err != nil {
			return err
		}
	}
	return nil
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
