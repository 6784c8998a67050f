package background

import (
	"sync"

	"go.uber.org/zap"
)

// PerShard does a worker's work for shards, one thing at a time for each, so that no shard waits for another.
type PerShard struct {
	worker *Worker

	mu   sync.Mutex
	busy map[string]*again // by shard name
}

// again is what to do next for a shard; do is nil for nothing.
type again struct{ do func() }

// PerShard returns a part of a worker that does work for shards.
func (w *Worker) PerShard() *PerShard { return &PerShard{worker: w, busy: map[string]*again{}} }

// Begin starts work for a shard and returns at once. The work begins when that in progress for the shard has ended. If several are waiting, only the
// last is done. Nothing begins once the worker is closed.
func (p *PerShard) Begin(shard string, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running := p.busy[shard]; running != nil {
		running.do = do
		return
	}
	next := new(again)
	p.busy[shard] = next
	p.worker.Go(func() {
		for do != nil {
			p.worker.try(do, zap.String("shard", shard))
			p.mu.Lock()
			do, next.do = next.do, nil
			if do == nil {
				delete(p.busy, shard)
			}
			p.mu.Unlock()
		}
	})
}
