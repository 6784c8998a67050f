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

// queue is what is written to one shard. The log's mu guards what comes after turn.
type queue struct {
	log    *Log
	house  *warehouse.Warehouse
	logger *zap.Logger
	woken  chan struct{} // has an element while there may be something to write
	turn   chan struct{} // has an element while somebody writes

	waiting   *batch
	writing   *batch // that could not be written yet, or is being written; who has the turn may read it
	confirmed int64  // batches up to this one are in ClickHouse, or dropped
	offUntil  time.Time
	failing   bool      // the last batch could not be written
	warned    time.Time // when dropped rows were logged last
}

// batch is what is written together.
type batch struct {
	number  int64
	queries []*Query
	texts   int // bytes
	runs    []runlog.Taken
	counts  map[runlog.Counted]int64
}

func newBatch() *batch { return &batch{counts: map[runlog.Counted]int64{}} }

func (b *batch) rows() int { return len(b.queries) + len(b.runs) + len(b.counts) }

func newQueue(l *Log, house *warehouse.Warehouse, logger *zap.Logger) *queue {
	return &queue{log: l, house: house, logger: logger, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1), waiting: newBatch()}
}

// wake has what is waiting written.
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
	q.logger.Warn("the end of the log of queries and runs is not written", zap.Int("rows", lost), clickhouse.Logged(err))
}

// off reports whether nothing is written, since ClickHouse refused it.
func (q *queue) off() bool { return time.Now().Before(q.offUntil) }

// addQuery has a query wait. The caller holds mu.
func (q *queue) addQuery(one *Query) {
	size := len(one.Text) + len(one.Label) + len(one.Customer)
	if q.off() || !q.log.fits(q, 1, maxWaiting, func(b *batch) int { return len(b.queries) }) || !q.log.fits(q, size, maxTexts, func(b *batch) int { return b.texts }) {
		q.drop()
		return
	}
	q.waiting.queries, q.waiting.texts = append(q.waiting.queries, one), q.waiting.texts+size
}

// addRun has a run wait. The caller holds mu.
func (q *queue) addRun(r runlog.Taken) {
	if q.off() || !q.log.fits(q, 1, maxWaiting, func(b *batch) int { return len(b.runs) }) {
		q.drop()
		return
	}
	q.waiting.runs = append(q.waiting.runs, r)
}

// count adds runs to the counts that wait. When there are many, those that are not there yet are counted without key and customer; when there
// are too many of these as well, not at all. The caller holds mu.
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

// dropCounts takes out the counts of before a time, and returns how many these were.
func (b *batch) dropCounts(before time.Time) (dropped int64) {
	tooOld, all := before.Unix(), len(b.counts)
	maps.DeleteFunc(b.counts, func(what runlog.Counted, _ int64) bool { return what.From < tooOld })
	return int64(all - len(b.counts))
}

// without takes the rows of projects out.
func (b *batch) without(projects map[int64]bool) {
	if len(projects) == 0 {
		return
	}
	b.queries = slices.DeleteFunc(b.queries, func(q *Query) bool { return projects[q.Project] })
	b.runs = slices.DeleteFunc(b.runs, func(r runlog.Taken) bool { return projects[r.Project] })
	maps.DeleteFunc(b.counts, func(what runlog.Counted, _ int64) bool { return projects[what.Project] })
}

// next is the batch to write; nil for none. It is not fresh if it could not be written before. The caller has the turn.
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

// flush writes what is waiting. What ClickHouse does not take stays for the next time.
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

// errNoTables says that ClickHouse has no tables for the log, or others.
var errNoTables = errors.New("ClickHouse does not have the tables " + physical.QueryLog + " and " + physical.RunLog + " of this program")

// write writes a batch. Writing it again adds no row twice: ClickHouse knows it by its token.
func (q *queue) write(ctx context.Context, b *batch) error {
	if b.rows() == 0 { // a project was deleted that had them all
		return nil
	}
	if has, err := q.house.HasLogs(ctx); err != nil {
		return err
	} else if !has {
		return errNoTables
	}
	token := fmt.Sprintf("%s-%d", q.log.origin, b.number)
	if len(b.queries) > 0 {
		if err := q.house.WriteLog(ctx, queryBatch(b, token)); err != nil {
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
	return q.house.WriteLog(ctx, runBatch(b, q.log.origin, token))
}

// ended notes how the writing of a batch ended. It returns the error of a batch that is written later.
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
			q.logger.Warn("the log of queries and runs can't be written; it is in memory alone, and ends with this process", clickhouse.Logged(err))
		}
		q.offUntil, q.failing = time.Now().Add(offFor), true
		l.dropped.Add(int64(len(b.queries) + len(b.runs)))
		b.queries, b.texts, b.runs = nil, 0, nil
		if len(b.counts) > 0 { // which this process still shows, and writes under the same token: an earlier attempt may have succeeded
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
