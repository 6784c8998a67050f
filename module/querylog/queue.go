package querylog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// queue holds what is to be written to one shard. The log's mu guards the fields after turn.
type queue struct {
	log    *Log
	wh     *warehouse.Warehouse
	logger *zap.Logger
	woken  chan struct{} // has an element while there may be something to write
	turn   chan struct{} // has an element while somebody writes

	waiting   *batch
	writing   *batch // being written, or could not be written yet; the holder of the turn may read it
	confirmed int64  // batches up to this one are in ClickHouse or were dropped
	offUntil  time.Time
	failing   bool      // the last batch could not be written
	warned    time.Time // when dropped rows were last logged
}

// batch is a set of rows written together.
type batch struct {
	number  int64
	queries []*Query
	texts   int // bytes
	runs    []runlog.Taken
	counts  map[runlog.Counted]int64
}

func newBatch() *batch { return &batch{counts: map[runlog.Counted]int64{}} }

func (b *batch) rows() int { return len(b.queries) + len(b.runs) + len(b.counts) }

func newQueue(l *Log, wh *warehouse.Warehouse, logger *zap.Logger) *queue {
	return &queue{log: l, wh: wh, logger: logger, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1), waiting: newBatch()}
}

// wake makes the queue write what is waiting.
func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

func (q *queue) work() {
	for {
		select {
		case <-q.log.open.Done():
			return
		case <-q.woken:
		}
		_ = q.flush(q.log.open) // ended has logged it
	}
}

// close writes what is waiting for the last time.
func (q *queue) close(ctx context.Context) {
	err := q.flush(ctx)
	if err == nil {
		return
	}
	q.log.mu.Lock()
	lost := q.waiting.rows()
	if q.writing != nil {
		lost += q.writing.rows()
	}
	q.log.mu.Unlock()
	q.logger.Warn("the last rows of the log of queries and runs could not be written", zap.Int("rows", lost), clickhouse.Logged(err))
}

// off reports whether nothing is written because ClickHouse refused the rows.
func (q *queue) off() bool { return time.Now().Before(q.offUntil) }

// addQuery adds a query to those that wait. The caller holds mu.
func (q *queue) addQuery(one *Query) {
	size := len(one.Text) + len(one.Label) + len(one.Customer)
	if q.off() || !q.log.fits(q, 1, maxWaiting, func(b *batch) int { return len(b.queries) }) || !q.log.fits(q, size, maxTexts, func(b *batch) int { return b.texts }) {
		q.drop()
		return
	}
	q.waiting.queries, q.waiting.texts = append(q.waiting.queries, one), q.waiting.texts+size
}

// addRun adds a run to those that wait. The caller holds mu.
func (q *queue) addRun(r runlog.Taken) {
	if q.off() || !q.log.fits(q, 1, maxWaiting, func(b *batch) int { return len(b.runs) }) {
		q.drop()
		return
	}
	q.waiting.runs = append(q.waiting.runs, r)
}

// count adds runs to the waiting counts. If there are many counts, new ones are recorded without key and customer; if there are too many of these as
// well, they are dropped. The caller holds mu.
func (q *queue) count(what runlog.Counted, calls int64) {
	counts, has := q.waiting.counts, func(b *batch) int { return len(b.counts) }
	if _, known := counts[what]; !known && !q.log.fits(q, 1, maxWaiting, has) {
		what.Who = runlog.Who{Version: what.Version}
		if _, known = counts[what]; !known && !q.log.fits(q, 1, maxCounts, has) {
			q.drop()
			return
		}
	}
	counts[what] += calls
}

// drop counts a row that is not written. The caller holds mu.
func (q *queue) drop() {
	dropped := q.log.dropped.Add(1)
	if now := time.Now(); !q.off() && now.Sub(q.warned) > warnEvery {
		q.warned = now
		q.logger.Warn("too many rows of the log of queries and runs are waiting; some are dropped", zap.Int64("dropped_in_all", dropped))
	}
}

// dropCounts removes the counts from before a time, and returns how many there were.
func (b *batch) dropCounts(before time.Time) (dropped int64) {
	tooOld, all := before.Unix(), len(b.counts)
	maps.DeleteFunc(b.counts, func(what runlog.Counted, _ int64) bool { return what.From < tooOld })
	return int64(all - len(b.counts))
}

// without removes the rows of projects.
func (b *batch) without(projects map[int64]bool) {
	if len(projects) == 0 {
		return
	}
	b.queries = slices.DeleteFunc(b.queries, func(q *Query) bool { return projects[q.Project] })
	b.runs = slices.DeleteFunc(b.runs, func(r runlog.Taken) bool { return projects[r.Project] })
	maps.DeleteFunc(b.counts, func(what runlog.Counted, _ int64) bool { return projects[what.Project] })
}

// next returns the batch to write; nil for none. fresh is false if it could not be written before. The caller has the turn.
func (q *queue) next() (b *batch, fresh bool) {
	q.log.mu.Lock()
	defer q.log.mu.Unlock()
	if q.off() {
		return nil, true
	}
	if fresh = q.writing == nil; fresh {
		if q.waiting.rows() == 0 {
			return nil, true
		}
		q.log.last++
		q.writing, q.waiting = q.waiting, newBatch()
		q.writing.number = q.log.last
	} else {
		q.log.dropped.Add(q.writing.dropCounts(time.Now().Add(-countsWait)))
	}
	q.writing.without(q.log.deleted)
	return q.writing, fresh
}

// flush writes what is waiting. What ClickHouse does not accept stays for the next time.
func (q *queue) flush(ctx context.Context) error {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		b, fresh := q.next()
		if b == nil {
			return nil
		}
		writing, cancel := context.WithTimeout(ctx, writeTime)
		err := q.write(writing, b)
		cancel()
		if err = q.ended(b, err); err != nil || fresh {
			return err
		}
	}
}

// errNoTables reports that ClickHouse has no tables for the log, or different ones.
var errNoTables = errors.New("ClickHouse does not have the tables " + physical.QueryLog + " and " + physical.RunLog + " of this program")

// write writes a batch. Writing it again does not duplicate rows: ClickHouse recognizes it by its token.
func (q *queue) write(ctx context.Context, b *batch) error {
	if b.rows() == 0 { // all its rows were of a deleted project
		return nil
	}
	if has, err := q.wh.HasLogs(ctx); err != nil {
		return err
	} else if !has {
		return errNoTables
	}
	token := fmt.Sprintf("%s-%d", q.log.origin, b.number)
	if len(b.queries) > 0 {
		if err := q.wh.WriteLog(ctx, queryBatch(b, token)); err != nil {
			return err
		}
		q.log.mu.Lock()
		q.log.written.Add(int64(len(b.queries)))
		b.queries, b.texts = nil, 0
		q.log.mu.Unlock()
	}
	if len(b.runs)+len(b.counts) == 0 {
		return nil
	}
	return q.wh.WriteLog(ctx, runBatch(b, q.log.origin, token))
}

// ended records how writing a batch ended. It returns an error if the batch is to be written later.
func (q *queue) ended(b *batch, err error) error {
	l := q.log
	l.mu.Lock()
	defer l.mu.Unlock()
	refused, answered := errors.AsType[*clickhouse.Error](err)
	switch {
	case err == nil:
		if q.failing {
			q.logger.Info("the log of queries and runs is written again")
		}
		q.failing = false
		l.written.Add(int64(b.rows()))
	case errors.Is(err, errNoTables), answered && (refused.Refused() || refused.ByQuery() || refused.ByData()):
		if !q.failing {
			q.logger.Warn("the log of queries and runs can't be written; it is kept only in memory and is lost when the process exits", clickhouse.Logged(err))
		}
		q.offUntil, q.failing = time.Now().Add(refusedPause), true
		l.dropped.Add(int64(len(b.queries) + len(b.runs)))
		b.queries, b.texts, b.runs = nil, 0, nil
		if len(b.counts) > 0 { // this process still shows the counts, and writes them with the same token: an earlier attempt may have succeeded
			return nil
		}
	default:
		if !q.failing && l.open.Err() == nil {
			q.logger.Warn("the log of queries and runs is not written yet; trying again", clickhouse.Logged(err))
		}
		q.failing = true
		return err
	}
	q.writing, q.confirmed = nil, b.number
	return nil
}
