package warehouse

import "sync"

// PerShard does work for shards in the background, one thing at a time for each, so that none waits for what another one takes. The zero
// value is ready.
type PerShard struct {
	mu   sync.Mutex
	busy map[string]*again // by the name of the shard
	done sync.WaitGroup
}

// again is what is to be done next for a shard; nil for nothing.
type again struct{ do func() }

// Begin does something for a shard, and returns at once. What is under way for the shard is waited for. Of several that wait, the last one
// alone is done.
func (p *PerShard) Begin(shard string, do func()) {
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
			do()
			p.mu.Lock()
			do, next.do = next.do, nil
			if do == nil {
				delete(p.busy, shard)
			}
			p.mu.Unlock()
		}
	})
}

// Wait waits until nothing is under way. Begin must not be called any more.
func (p *PerShard) Wait() { p.done.Wait() }
