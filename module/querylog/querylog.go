// Package querylog keeps which queries ran on ClickHouse, and which runs of endpoints there were, in tables of ClickHouse that all servers
// write to, and reads them again.
package querylog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

const (
	// flushEvery is how often what there is new is written, and countEvery after how many of these times the counts of runs are.
	flushEvery = time.Second
	countEvery = 10
	// runsOfEach is how many runs of an endpoint are written at a time. All are counted.
	runsOfEach = 64
	// maxWaiting is how many queries and runs each wait to be written, and how many counts that tell keys and customers apart; maxCounts is how
	// many counts wait in all, and maxTexts what the texts of the queries take, in bytes. What is more is dropped, and counted.
	maxWaiting = 16_384
	maxCounts  = 2 * maxWaiting
	maxTexts   = 16 << 20
	// writeTime is how long writing a batch may take, and closeTime how long the last one may.
	writeTime = 20 * time.Second
	closeTime = 5 * time.Second
	// offFor is for how long nothing is written after ClickHouse refused it.
	offFor = 10 * time.Minute
	// countsWait is for how long counts are kept meanwhile, and while ClickHouse is away.
	countsWait = 25 * time.Hour
	// warnEvery is how often dropped rows are logged at most.
	warnEvery = time.Minute
)

// Config is what a Log works with.
type Config struct {
	Shards *warehouse.Shards
	Runs   *runlog.Logs
	Logger *zap.Logger
}

// Log writes what happens in batches, in the background. Its methods may be called from several goroutines at once. A nil Log takes
// nothing, and has nothing.
type Log struct {
	Config

	origin uuid.UUID // of the counts that this process writes

	gathering sync.Mutex // is taken before mu
	mu        sync.Mutex
	waiting   *batch
	writing   *batch // that could not be written yet, or is being written
	last      int64  // the number of the last batch
	confirmed int64  // batches up to this one are in ClickHouse, or dropped
	off       bool
	offUntil  time.Time
	warned    time.Time // when dropped rows were logged last
	failing   bool      // the last batch could not be written
	deleted   map[int64]bool

	written, dropped atomic.Int64

	turn chan struct{} // has an element while somebody writes
	open context.Context
	end  context.CancelFunc
	done sync.WaitGroup
}

// batch is what is written together.
type batch struct {
	number  int64
	queries []*Query
	texts   int // bytes
	runs    []runlog.Taken
	counts  map[runlog.Counted]int64
	written map[destination]bool // where its rows are
}

// destination is a table of a shard.
type destination struct {
	house *warehouse.Warehouse
	table string
}

func newBatch() *batch {
	return &batch{counts: map[runlog.Counted]int64{}, written: map[destination]bool{}}
}

func (b *batch) rows() int { return len(b.queries) + len(b.runs) + len(b.counts) }

// New returns a log, which begins to write.
func New(config Config) *Log {
	l := prepare(config)
	l.done.Go(l.work)
	return l
}

func prepare(config Config) *Log {
	l := &Log{Config: config, origin: uuid.New(), waiting: newBatch(), turn: make(chan struct{}, 1), deleted: map[int64]bool{}}
	l.open, l.end = context.WithCancel(context.Background())
	return l
}

// Close writes what is waiting, if ClickHouse takes it soon, and stops.
func (l *Log) Close() error {
	l.end()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := l.flush(ctx, true); err != nil {
		l.mu.Lock()
		lost := l.waiting.rows()
		if l.writing != nil {
			lost += l.writing.rows()
		}
		l.mu.Unlock()
		l.Logger.Warn("the end of the log of queries and runs is not written", zap.Int("rows", lost), clickhouse.Logged(err))
	}
	return nil
}

// Stats are how many rows were written, and how many were dropped because too many were waiting, or ClickHouse refused them.
func (l *Log) Stats() (written, dropped int64) {
	if l == nil {
		return 0, 0
	}
	return l.written.Load(), l.dropped.Load()
}

func (l *Log) work() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-l.open.Done():
			return
		case <-tick.C:
		}
		_ = l.flush(l.open, n%countEvery == 0) // write has logged it
	}
}

// Add has a query written soon. It never waits for ClickHouse.
func (l *Log) Add(q *Query) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	size := len(q.Text) + len(q.Label) + len(q.Customer)
	if l.off || len(l.waiting.queries) >= maxWaiting || l.waiting.texts+size > maxTexts {
		l.drop(1)
		return
	}
	l.waiting.queries, l.waiting.texts = append(l.waiting.queries, q), l.waiting.texts+size
}

// drop counts rows that are not written. The caller holds mu.
func (l *Log) drop(rows int64) {
	l.dropped.Add(rows)
	if now := time.Now(); !l.off && now.Sub(l.warned) > warnEvery {
		l.warned = now
		l.Logger.Warn("too many rows of the log of queries and runs are waiting; some are dropped", zap.Int64("dropped_in_all", l.dropped.Load()))
	}
}

// Sync writes what is waiting, so that queries find it.
func (l *Log) Sync(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return l.flush(ctx, false)
}

// Forget drops what is waiting of a project that was deleted, and what comes later. Restored ends that.
func (l *Log) Forget(project int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[project] = true
}

// Restored takes queries and runs of a project again, which came back from a backup.
func (l *Log) Restored(project int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.deleted, project)
}

// gather takes the new runs, and their counts if these are wanted. Looking through all logs takes long: mu is held for some rows at a time, and
// so nobody may hold it.
func (l *Log) gather(counts bool) {
	l.gathering.Lock()
	defer l.gathering.Unlock()
	runs := inParts(&l.mu, func(r runlog.Taken) {
		if l.off || len(l.waiting.runs) >= maxWaiting {
			l.drop(1)
			return
		}
		l.waiting.runs = append(l.waiting.runs, r)
	})
	l.Runs.Take(runsOfEach, runs.add)
	runs.end()
	if !counts {
		return
	}
	counted := inParts(&l.mu, func(c count) { l.count(c.what, c.calls) })
	l.Runs.Collect(time.Now(), func(what runlog.Counted, calls int64) { counted.add(count{what, calls}) })
	counted.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.off && !l.failing {
		return
	}
	tooOld, before := time.Now().Add(-countsWait).Unix(), len(l.waiting.counts)
	maps.DeleteFunc(l.waiting.counts, func(what runlog.Counted, _ int64) bool { return what.From < tooOld })
	l.dropped.Add(int64(before - len(l.waiting.counts)))
}

// parted calls do for what is added, holding mu for up to 256 at a time.
type parted[T any] struct {
	mu      *sync.Mutex
	do      func(T)
	waiting []T
}

func inParts[T any](mu *sync.Mutex, do func(T)) *parted[T] { return &parted[T]{mu: mu, do: do} }

func (p *parted[T]) add(one T) {
	if p.waiting = append(p.waiting, one); len(p.waiting) == 256 {
		p.end()
	}
}

func (p *parted[T]) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.waiting {
		p.do(one)
	}
	p.waiting = p.waiting[:0]
}

// count adds runs to the counts that wait. When there are many, those that are not there yet are counted without key and customer; when there
// are too many of these as well, not at all. The caller holds mu.
func (l *Log) count(what runlog.Counted, calls int64) {
	counts := l.waiting.counts
	if _, known := counts[what]; !known && len(counts) >= maxWaiting {
		what.Who = runlog.Who{Version: what.Version}
		if _, known = counts[what]; !known && len(counts) >= maxCounts {
			l.drop(1)
			return
		}
	}
	counts[what] += calls
}

// next is the batch to write; nil for none. It is not fresh if it could not be written before.
func (l *Log) next(counts bool) (b *batch, fresh bool) {
	l.tryAgain()
	l.gather(counts)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off {
		return nil, true
	}
	if fresh = l.writing == nil; fresh && l.waiting.rows() > 0 {
		l.last++
		l.writing, l.waiting = l.waiting, newBatch()
		l.writing.number = l.last
	}
	if l.writing != nil {
		l.writing.without(l.deleted)
	}
	return l.writing, fresh
}

// tryAgain ends the time in which nothing is written.
func (l *Log) tryAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = l.off && !time.Now().After(l.offUntil)
}

// without takes the rows of projects out.
func (b *batch) without(projects map[int64]bool) {
	if len(projects) == 0 {
		return
	}
	var queries []*Query
	for _, q := range b.queries {
		if !projects[q.Project] {
			queries = append(queries, q)
		}
	}
	var runs []runlog.Taken
	for _, r := range b.runs {
		if !projects[r.Project] {
			runs = append(runs, r)
		}
	}
	b.queries, b.runs = queries, runs
	maps.DeleteFunc(b.counts, func(what runlog.Counted, _ int64) bool { return projects[what.Project] })
}

// flush writes what is waiting. What ClickHouse does not take stays for the next time.
func (l *Log) flush(ctx context.Context, counts bool) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		b, fresh := l.next(counts)
		if b == nil {
			return nil
		}
		writing, cancel := context.WithTimeout(ctx, writeTime)
		err := l.write(writing, b)
		cancel()
		if err = l.ended(b, err); err != nil || fresh {
			return err
		}
	}
}

// errNoTables says that ClickHouse has no tables for the log, or others.
var errNoTables = errors.New("ClickHouse does not have the tables " + physical.QueryLog + " and " + physical.RunLog + " of this program")

// write writes a batch. Writing it again adds no row twice: ClickHouse knows it by its token.
func (l *Log) write(ctx context.Context, b *batch) error {
	token := fmt.Sprintf("%s-%d", l.origin, b.number)
	var errs []error
	for _, house := range l.Shards.OfAll(slices.Concat(b.queryProjects(), b.runProjects())) {
		on := func(project int64) bool { return l.Shards.Of(project) == house }
		if has, err := house.HasLogs(ctx); err != nil {
			errs = append(errs, err)
			continue
		} else if !has {
			errs = append(errs, errNoTables)
			continue
		}
		if err := b.writeOnce(ctx, house, queryBatch(b, token, on)); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, b.writeOnce(ctx, house, runBatch(b, l.origin, token, on)))
	}
	return errors.Join(errs...)
}

// writeOnce writes the rows of a batch that are for one table of one shard, unless they are there or are none.
func (b *batch) writeOnce(ctx context.Context, house *warehouse.Warehouse, rows clickhouse.Batch) error {
	to := destination{house, rows.Table}
	if len(rows.Projects) == 0 || b.written[to] {
		return nil
	}
	if err := house.WriteLog(ctx, rows); err != nil {
		return err
	}
	b.written[to] = true
	return nil
}

// ended notes how the writing of a batch ended. It returns the error of a batch that is written later.
func (l *Log) ended(b *batch, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused, answered := errors.AsType[*clickhouse.Error](err)
	switch {
	case err == nil:
		if l.failing {
			l.Logger.Info("the log of queries and runs is written again")
		}
		l.failing = false
		l.written.Add(int64(b.rows()))
	case errors.Is(err, errNoTables), answered && (refused.Refused() || refused.ByQuery() || refused.ByData()):
		if !l.failing {
			l.Logger.Warn("the log of queries and runs can't be written; it is in memory alone, and ends with this process", clickhouse.Logged(err))
		}
		l.off, l.offUntil, l.failing = true, time.Now().Add(offFor), true
		l.dropped.Add(int64(len(b.queries) + len(b.runs)))
		for what, calls := range b.counts { // which this process still shows
			l.count(what, calls)
		}
	default:
		if !l.failing && l.open.Err() == nil {
			l.Logger.Warn("the log of queries and runs is not written yet; trying again", clickhouse.Logged(err))
		}
		l.failing = true
		return err
	}
	l.writing, l.confirmed = nil, b.number
	return nil
}
