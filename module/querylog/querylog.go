// Package querylog records which queries ran on ClickHouse, and which runs of endpoints there were, in ClickHouse tables that all servers write to,
// and reads them back.
package querylog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

const (
	// flushEvery is how often new rows are written, and countEvery after how many flushes the counts of runs are.
	flushEvery = time.Second
	countEvery = 10
	// runsOfEach is how many runs of an endpoint are written at a time. All are counted.
	runsOfEach = 64
	// maxWaiting is how many queries and how many runs may wait to be written, and how many counts that distinguish keys and customers. maxCounts is
	// how many counts may wait in total, and maxTexts how many bytes of query texts. These limits hold for all shards together; see [Log.fits]. What
	// exceeds them is dropped and counted.
	maxWaiting = 16_384
	maxCounts  = 2 * maxWaiting
	maxTexts   = 16 << 20
	// writeTime is how long writing a batch may take, and closeTime how long the last one may.
	writeTime = 20 * time.Second
	closeTime = 5 * time.Second
	// refusedPause is how long nothing is written to a shard after ClickHouse refused the rows.
	refusedPause = 10 * time.Minute
	// countsWait is how long counts are kept in that time, and while ClickHouse is unavailable.
	countsWait = 25 * time.Hour
	// warnEvery is the shortest time between two warnings about dropped rows.
	warnEvery = time.Minute
)

// Config configures a Log.
type Config struct {
	Shards *warehouse.Shards
	Runs   *runlog.Logs
	Logger *zap.Logger
}

// Log writes queries and runs in batches in the background, to each shard independently: a shard that is away or refuses rows does not hold up the
// others. Its methods are safe for concurrent use. A nil Log ignores everything added, and is empty.
type Log struct {
	Config

	origin uuid.UUID // of the counts that this process writes
	queues map[*warehouse.Warehouse]*queue

	gathering sync.Mutex // taken before mu
	mu        sync.Mutex // also guards the mutable fields of the queues
	last      int64      // the number of the last batch
	deleted   map[int64]bool

	written, dropped atomic.Int64

	open context.Context
	end  context.CancelFunc
	done sync.WaitGroup
}

// New returns a Log, which begins to write.
func New(config Config) *Log {
	l := prepare(config)
	l.done.Go(l.work)
	for _, q := range l.queues {
		l.done.Go(q.work)
	}
	return l
}

func prepare(config Config) *Log {
	l := &Log{Config: config, origin: uuid.New(), queues: map[*warehouse.Warehouse]*queue{}, deleted: map[int64]bool{}}
	for name, wh := range config.Shards.ByName() {
		logger := config.Logger
		if name != "" {
			logger = logger.With(zap.String("shard", name))
		}
		l.queues[wh] = newQueue(l, wh, logger)
	}
	l.open, l.end = context.WithCancel(context.Background())
	return l
}

// Close writes what is waiting, if ClickHouse accepts it soon, and stops.
func (l *Log) Close() error {
	l.end()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	l.gather(true)
	var closing sync.WaitGroup
	for _, q := range l.queues {
		closing.Go(func() { q.close(ctx) })
	}
	closing.Wait()
	return nil
}

// Stats returns how many rows were written, and how many were dropped because too many were waiting, ClickHouse refused them, or the config does not
// name their shard.
func (l *Log) Stats() (written, dropped int64) {
	if l == nil {
		return 0, 0
	}
	return l.written.Load(), l.dropped.Load() + l.Runs.Dropped()
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
		l.gather(n%countEvery == 0)
		for _, q := range l.queues {
			q.wake()
		}
	}
}

// of returns the queue of a project's shard; nil if the config does not name the shard.
func (l *Log) of(project int64) *queue { return l.queues[l.Shards.Of(project)] }

// Add queues a query to be written soon. It never waits for ClickHouse.
func (l *Log) Add(q *Query) {
	if l == nil {
		return
	}
	to := l.of(q.Project)
	l.mu.Lock()
	defer l.mu.Unlock()
	if to == nil {
		l.dropped.Add(1)
		return
	}
	to.addQuery(q)
}

// fits reports whether a queue may take more of something. All queues together hold at most most of it; in returns how much of it is in a batch. Half
// of the room is divided evenly, so that a shard that is away leaves the others their part. The other half is for any of them. The caller holds mu.
func (l *Log) fits(to *queue, more, most int, in func(*batch) int) bool {
	own := most / 2 / len(l.queues)
	common := most - own*len(l.queues)
	for _, q := range l.queues {
		has := in(q.waiting)
		if q.writing != nil {
			has += in(q.writing)
		}
		if q == to {
			if has += more; has <= own {
				return true
			}
		}
		common -= max(0, has-own)
	}
	return common >= 0
}

// Sync writes what is waiting for a project's shard, so that the project's queries find it.
func (l *Log) Sync(ctx context.Context, project int64) error {
	if l == nil {
		return nil
	}
	l.gather(false)
	q := l.of(project)
	if q == nil {
		return nil
	}
	return q.flush(ctx)
}

// Forget drops rows of a deleted project, those waiting and those that come later. Restored ends that.
func (l *Log) Forget(project int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[project] = true
}

// Restored accepts queries and runs of a project again, after it came back from a backup.
func (l *Log) Restored(project int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.deleted, project)
}

// gather takes the new runs, and their counts if counts is set. Looking through all logs takes long, so it holds mu for a few rows at a time; the
// caller must not hold mu.
func (l *Log) gather(counts bool) {
	l.gathering.Lock()
	defer l.gathering.Unlock()
	runs := inParts(&l.mu, func(r runlog.Taken) {
		if q := l.of(r.Project); q != nil {
			q.addRun(r)
		} else {
			l.dropped.Add(1)
		}
	})
	l.Runs.Take(runsOfEach, runs.add)
	runs.end()
	if !counts {
		return
	}
	now := time.Now()
	counted := inParts(&l.mu, func(c count) {
		if q := l.of(c.what.Project); q != nil {
			q.count(c.what, c.calls)
		} else {
			l.dropped.Add(1)
		}
	})
	l.Runs.Collect(now, func(what runlog.Counted, calls int64) { counted.add(count{what, calls}) })
	counted.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		if q.failing {
			l.dropped.Add(q.waiting.dropCounts(now.Add(-countsWait)))
		}
	}
}

// parted calls do for each added value, holding mu for up to 256 at a time.
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
