package ingest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// gatherFor is how long a block waits at most for those of other projects.
const gatherFor = 100 * time.Millisecond

// gathering has the projects that are delivered to at the same time share statements: each costs ClickHouse about the same, however few
// rows it has. A block waits until all deliveries that are under way wait too, and is then inserted with those for the same table. The
// same goes for what is looked up.
type gathering struct {
	run func(ctx context.Context, blocks []*gathered) error
	// How long a block waits at most; gatherFor by default.
	patience time.Duration

	mu        sync.Mutex
	active    int // deliveries under way
	inserting int // of these, those whose block is being inserted, or who look something up
	waiting   []*gathered
}

// gathered is a block that waits to be inserted, or a question that waits to be asked.
type gathered struct {
	block

	asked *question // if it is one
	store *store
	ctx   context.Context //nolint:containedctx // of the delivery that waits
	done  chan error
}

// errAlone says that a block has to be tried by itself: another one may be what ClickHouse refuses.
var errAlone = errors.New("to be tried alone")

// enter says that a delivery begins, and leave that it has ended.
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

// insert inserts a block with those of others. It returns errAlone if it has to be tried alone.
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

// begin begins to insert all that wait. The caller holds mu.
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

// count is how many rows it has, or things that it asks for.
func (one *gathered) count() int {
	if one.asked != nil {
		return one.asked.count()
	}
	return len(one.rows)
}

// fits reports whether two can be one.
func (one *gathered) fits(other *gathered) bool {
	if one.asked != nil || other.asked != nil {
		return one.asked != nil && other.asked != nil && one.asked.sql == other.asked.sql
	}
	return one.table == other.table && slices.Equal(one.columns, other.columns) && maps.Equal(one.store.layout[one.table], other.store.layout[other.table])
}

// insertAll inserts blocks as one. That ends early when nobody waits any more.
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
	err := g.run(ctx, blocks)
	if refused, ok := errors.AsType[*clickhouse.Error](err); ok && refused.ByData() && len(blocks) > 1 {
		err = errAlone
	}
	g.mu.Lock()
	g.inserting -= len(blocks)
	g.mu.Unlock()
	for _, one := range blocks {
		one.done <- err
	}
}
