package execution

import (
	"sync"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// Hops keeps two servers from waiting for each other. Which of them owns a result they may see differently for a moment: then each would ask the
// other, and their questions would wait for one another's computation. So a result that is being asked for elsewhere is computed for nobody else, and
// one that is being computed for another server is asked for nowhere.
type Hops struct {
	mu      sync.Mutex
	asking  map[cache.Key]int
	serving map[cache.Key]int
}

// NewHops returns hops of which none is under way.
func NewHops() *Hops {
	return &Hops{asking: make(map[cache.Key]int), serving: make(map[cache.Key]int)}
}

// ask begins to ask another server for a result. It is false while the result is computed for another one.
func (h *Hops) ask(key cache.Key) (end func(), ok bool) { return h.begin(key, h.asking, h.serving) }

// serve begins to compute a result for another server. It is false while it is asked for elsewhere.
func (h *Hops) serve(key cache.Key) (end func(), ok bool) { return h.begin(key, h.serving, h.asking) }

func (h *Hops) begin(key cache.Key, own, other map[cache.Key]int) (end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other[key] > 0 {
		return nil, false
	}
	own[key]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if own[key]--; own[key] == 0 {
			delete(own, key)
		}
	}, true
}
