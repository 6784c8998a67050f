package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// gatherFor is how long a block waits at most for blocks of other projects.
const gatherFor = 100 * time.Millisecond

// gathering lets projects that are delivered to at the same time share statements, because a statement costs ClickHouse about the same, however few its rows. A
// block waits until all running deliveries wait too, and is then inserted together with the others for the same table. Lookups are shared in the same way.
type gathering struct {
	run func(ctx context.Context, blocks []*gathered) error
	// How long a block waits at most; gatherFor by default.
	patience time.Duration

	mu        sync.Mutex
	active    int // running deliveries
	inserting int // of these, those whose block is being inserted or that look something up
	waiting   []*gathered
}

// gathered is a block that waits to be inserted, or a question that waits to be asked.
type gathered struct {
	block

	asked *question // set for a question
	store *store
	ctx   context.Context // of the waiting delivery
	done  chan error
}

// errAlone says that a block must be tried by itself: ClickHouse may have refused another one that was inserted with it. A question is asked by itself if it
// and the others find too much.
var errAlone = errors.New("the block has to be inserted alone")

// enter marks the start of a delivery, leave its end.
func (g *gathering) enter() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.active--
		g.beginIfAll()
	}
}

// insert inserts a block together with others. It returns errAlone if the block must be tried alone.
func (g *gathering) insert(ctx context.Context, s *store, b block) error {
	return g.share(ctx, &gathered{block: b, store: s})
}

func (g *gathering) share(ctx context.Context, one *gathered) error {
	one.ctx, one.done = ctx, make(chan error, 1)
	g.add(one)
	timer := time.NewTimer(cmp.Or(g.patience, gatherFor))
	defer timer.Stop()
	for {
		select {
		case err := <-one.done:
			if crash, ok := errors.AsType[*panicError](err); ok {
				panic(crash.Error()) // of the delivery, which can give up what it delivers
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			g.mu.Lock()
			g.begin()
			g.mu.Unlock()
		}
	}
}

func (g *gathering) add(one *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, one)
	g.beginIfAll()
}

func (g *gathering) beginIfAll() {
	if len(g.waiting)+g.inserting >= g.active {
		g.begin()
	}
}

// begin starts to insert all waiting blocks. The caller holds mu.
func (g *gathering) begin() {
	waiting := g.waiting
	g.waiting = nil
	for len(waiting) > 0 {
		var together, rest []*gathered
		size, rows := 0, 0
		for _, one := range waiting {
			size, rows = size+one.size(), rows+one.count()
			switch {
			case one.ctx.Err() != nil: // nobody waits for it
			case len(together) == 0 || one.fits(together[0]) && size <= maxBlock && rows <= deliveredRecords:
				together = append(together, one)
			default:
				rest = append(rest, one)
				size, rows = size-one.size(), rows-one.count()
			}
		}
		waiting = rest
		if len(together) > 0 {
			g.inserting += len(together)
			go g.insertAll(together)
		}
	}
}

// count is the number of its rows, or of the things that it asks for.
func (one *gathered) count() int {
	if one.asked != nil {
		return one.asked.count()
	}
	return len(one.rows)
}

// fits reports whether two can be combined into one.
func (one *gathered) fits(other *gathered) bool {
	if one.asked != nil || other.asked != nil {
		return one.asked != nil && other.asked != nil && one.asked.sql == other.asked.sql
	}
	return one.table == other.table && slices.Equal(one.columns, other.columns) && maps.Equal(one.store.layout[one.table], other.store.layout[other.table])
}

// panicError is a panic in a goroutine that works for several deliveries.
type panicError struct {
	cause any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n%s", p.cause, p.stack) }

// tryRun is run. A panic is the error.
func (g *gathering) tryRun(ctx context.Context, blocks []*gathered) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &panicError{cause, debug.Stack()}
		}
	}()
	return g.run(ctx, blocks)
}

// insertAll inserts blocks as one. It is canceled when nobody waits for it any more.
func (g *gathering) insertAll(blocks []*gathered) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(blocks[0].ctx))
	defer cancel()
	var left atomic.Int64
	left.Store(int64(len(blocks)))
	for _, one := range blocks {
		defer context.AfterFunc(one.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	err := g.tryRun(ctx, blocks)
	if errors.As(err, new(*panicError)) && len(blocks) > 1 {
		err = errAlone
	}
	if refused, ok := errors.AsType[*clickhouse.Error](err); ok && refused.ByData() && len(blocks) > 1 || blocks[0].asked != nil && tooLarge(err) {
		err = errAlone
	}
	g.mu.Lock()
	g.inserting -= len(blocks)
	g.mu.Unlock()
	for _, one := range blocks {
		one.done <- err
	}
}
