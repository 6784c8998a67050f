package execution

import (
	"sync"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// Hops keeps two servers from waiting for each other. For a moment, two servers may disagree about which of them owns a result. Each would then ask
// the other, and each request would wait for the other server's computation. So while a server asks for a result elsewhere, it computes that result
// for no other server; and while it computes the result for another server, it asks for it nowhere.
type Hops struct {
	mu      sync.Mutex
	asking  map[cache.Key]int
	serving map[cache.Key]int
}

// NewHops returns Hops with none in flight.
func NewHops() *Hops {
	return &Hops{asking: make(map[cache.Key]int), serving: make(map[cache.Key]int)}
}

// ask begins to ask another server for a result. ok is false while the result is computed for another server.
func (h *Hops) ask(key cache.Key) (end func(), ok bool) { return h.begin(key, h.asking, h.serving) }

// serve begins to compute a result for another server. ok is false while this server asks for the result elsewhere.
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
