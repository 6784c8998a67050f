package ingest

import (
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

// gathering has the projects that are delivered to at the same time share inserts: each insert costs ClickHouse a part, however few rows
// it has. A block waits until all deliveries that are under way wait too, and is then inserted with those for the same table.
type gathering struct {
	run func(ctx context.Context, blocks []*gathered) error

	mu        sync.Mutex
	active    int // deliveries under way
	inserting int // blocks that are being inserted
	waiting   []*gathered
}

// gathered is a block that waits to be inserted.
type gathered struct {
	block

	store *store
	ctx   context.Context //nolint:containedctx // of the delivery that waits
	done  chan error
}

// errAlone says that a block has to be inserted by itself: another one may be what ClickHouse refuses.
var errAlone = errors.New("to be inserted alone")

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
	one := &gathered{b, s, ctx, make(chan error, 1)}
	g.add(one)
	timer := time.NewTimer(gatherFor)
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
			size, rows = size+one.size(), rows+len(one.rows)
			switch {
			case one.ctx.Err() != nil: // nobody waits for it
			case len(together) == 0 || one.fits(together[0]) && size <= maxBlock && rows <= batchRecords:
				together = append(together, one)
			default:
				rest = append(rest, one)
				size, rows = size-one.size(), rows-len(one.rows)
			}
		}
		waiting = rest
		if len(together) > 0 {
			g.inserting += len(together)
			go g.insertAll(together)
		}
	}
}

// fits reports whether two blocks can be one.
func (one *gathered) fits(other *gathered) bool {
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
