package warehouse

import (
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/rescue"
)

// PerShard does background work for shards, one thing at a time for each, so that no shard waits for another. The zero value is ready to use.
type PerShard struct {
	mu   sync.Mutex
	busy map[string]*again // by shard name
	done sync.WaitGroup
}

// again is what to do next for a shard; do is nil for nothing.
type again struct{ do func() }

// Begin starts work for a shard and returns at once. The work begins when that in progress for the shard has ended. If several are waiting, only the
// last is done. A panic goes to the log, and ends nothing but the work itself.
func (p *PerShard) Begin(log *zap.Logger, shard string, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running := p.busy[shard]; running != nil {
		running.do = do
		return
	}
	if p.busy == nil {
		p.busy = map[string]*again{}
	}
	next := new(again)
	p.busy[shard] = next
	p.done.Go(func() {
		for do != nil {
			_ = rescue.Do(log, func() error { do(); return nil }, zap.String("shard", shard)) // it is logged
			p.mu.Lock()
			do, next.do = next.do, nil
			if do == nil {
				delete(p.busy, shard)
			}
			p.mu.Unlock()
		}
	})
}

// Wait waits until no work is in progress. Begin must not be called any more.
func (p *PerShard) Wait() { p.done.Wait() }
