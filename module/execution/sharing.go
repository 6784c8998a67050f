package execution

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Sharing divides allowances among all nodes. A node takes slices of them ahead of need, so that no query has to ask another server, and gives back
// what it does not use. While the store that the nodes share is away, each node gives out its own part of the rate. A nil Sharing shares nothing:
// each allowance belongs to this process alone.
type Sharing struct {
	sharer registry.Sharer
	count  func() int
	now    func() time.Time // this node's clock
	away   atomic.Bool      // the store did not answer

	wait, timeout time.Duration // sliceWait and sliceTimeout

	ctx  context.Context // of background requests
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	holding map[*stock]struct{} // those that may have something to give back
}

const (
	// sliceWait is the longest that a query waits for the store to answer. After that the node gives out its own part.
	sliceWait = 200 * time.Millisecond
	// sliceTimeout is the longest that the store may take to give a slice.
	sliceTimeout = time.Second
	// sliceIdle is how long an unused slice is held.
	sliceIdle = time.Second
	// sliceRest is the shortest time between two requests for an allowance that is spent.
	sliceRest = 20 * time.Millisecond
	// awayRest is the time between two requests while the store is away.
	awayRest = time.Second
	// sliceParts is the least number of slices per node that an allowance is divided into: at most a tenth of it is held in advance.
	sliceParts = 10
)

// NewSharing returns a Sharing with the nodes that share a store. count returns how many there are, as far as is known.
func NewSharing(sharer registry.Sharer, count func() int) *Sharing {
	return newSharing(sharer, count, time.Now)
}

func newSharing(sharer registry.Sharer, count func() int, now func() time.Time) *Sharing {
	s := &Sharing{sharer: sharer, count: count, now: now, wait: sliceWait, timeout: sliceTimeout, holding: make(map[*stock]struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.done.Go(s.upkeep)
	return s
}

// Close gives back everything held and ends the background work.
func (s *Sharing) Close() error {
	if s == nil {
		return nil
	}
	s.stop()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	s.giveBack(ctx, time.Time{})
	return nil
}

// upkeep gives back what is not used, until the Sharing is closed.
func (s *Sharing) upkeep() {
	idle := time.NewTicker(sliceIdle / 2)
	defer idle.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-idle.C:
			s.giveBack(s.ctx, s.now().Add(-sliceIdle))
		}
	}
}

// nodes returns how many nodes share the allowances.
func (s *Sharing) nodes() int { return max(1, s.count()) }

// giveBack gives back what has not been used since a time; everything for the zero time.
func (s *Sharing) giveBack(ctx context.Context, since time.Time) {
	s.mu.Lock()
	all := s.holding
	s.holding = make(map[*stock]struct{})
	s.mu.Unlock()
	var idle []*stock
	for held := range all {
		if since.IsZero() || held.idleSince(since) { // it locks the allowance, whose holder may wait for mu
			idle = append(idle, held)
			continue
		}
		s.mu.Lock()
		s.holding[held] = struct{}{}
		s.mu.Unlock()
	}
	for _, held := range idle {
		if n := held.empty(); n > 0 {
			_, _, _ = s.sharer.Take(ctx, held.name, held.of.rate, -n) // what can't be given back comes back with time
		}
	}
}

// NewShare returns a share of a key's rate for a token.
func (s *Sharing) NewShare(token string, r registry.Rate) *Share {
	return &Share{token, s.allowance("token-"+token, r)}
}

// allowance returns a new allowance with a name.
func (s *Sharing) allowance(name string, r registry.Rate) *allowance {
	a := newAllowance(r)
	if s != nil {
		a.shared = &stock{sharing: s, of: a, name: name + "-" + r.String()}
	}
	return a
}

// stock is what this node holds of an allowance. The allowance's mu guards it.
type stock struct {
	sharing *Sharing
	of      *allowance
	name    string

	hand    int           // queries in hand; if negative, this many ran without cover and are deducted first
	spent   time.Time     // until when no node has any
	own     time.Time     // when this node's own part is whole again, like allowance.whole
	asking  chan struct{} // closed when the store has answered; nil if no request is in flight
	asked   time.Time     // when the store was last asked
	used    time.Time     // when a query was last spent
	demand  int           // queries spent since the store was asked
	waiting int           // queries waiting for the answer
	unpaid  int           // queries of this node's own part that the store does not know of
}

// part returns how many queries this node gives out by itself, and the time in which one of them comes back.
func (h *stock) part() (most int, every time.Duration) {
	nodes := h.sharing.nodes()
	return max(1, h.of.rate.Queries/nodes), h.of.every * time.Duration(nodes)
}

// ownLeft returns how many queries of this node's own part may run.
func (h *stock) ownLeft(now time.Time) int {
	most, every := h.part()
	return max(0, most-int((max(0, h.own.Sub(now))+every-1)/every))
}

// left returns how many queries may run now.
func (h *stock) left(now time.Time) int {
	left := max(0, h.hand)
	if h.sharing.away.Load() {
		left += h.ownLeft(now)
	}
	return left
}

// shown returns what callers are told is left, as far as this node knows.
func (h *stock) shown(now time.Time) int {
	if left := h.left(now); left > 0 && !h.sharing.away.Load() && now.After(h.spent) {
		return max(left, h.of.ownSpendingLeft(now))
	}
	return h.left(now)
}

// next returns how long it takes until one more query may run.
func (h *stock) next(now time.Time) time.Duration {
	if h.sharing.away.Load() {
		most, every := h.part()
		if spent := max(0, h.own.Sub(now)); spent > 0 {
			return spent - time.Duration(most-h.ownLeft(now)-1)*every
		}
		return 0
	}
	return cmp.Or(max(0, h.spent.Sub(now)), h.of.every)
}

// take spends one query, and asks for more before none are left.
func (h *stock) take(now time.Time) {
	most, every := h.part()
	h.own = now.Add(min(time.Duration(most)*every, max(0, h.own.Sub(now))+every)) // it may have spent more than its own part
	if h.hand > 0 || !h.sharing.away.Load() {
		h.hand = max(h.hand-1, -h.of.rate.Queries)
	} else {
		h.unpaid++
	}
	h.demand++
	h.used = now
	if 2*h.hand <= min(h.demand, h.maxAhead()) {
		h.ask()
	}
}

func (h *stock) giveBack() {
	_, every := h.part()
	h.own = h.own.Add(-every)
	if h.sharing.away.Load() {
		return
	}
	h.hand++
	s := h.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.holding[h] = struct{}{}
	}
}

// maxAhead returns how many queries are requested ahead of need at most.
func (h *stock) maxAhead() int {
	return h.of.rate.Queries / (sliceParts * h.sharing.nodes())
}

// ask requests a slice in the background, unless a request is in flight or the answer is known. The caller holds the allowance's mu.
func (h *stock) ask() {
	now := h.sharing.now()
	rest := time.Duration(0)
	if h.sharing.away.Load() {
		rest = awayRest
	}
	if h.asking != nil || now.Before(h.spent) || now.Sub(h.asked) < rest {
		return
	}
	most, _ := h.part()
	if h.hand < 0 {
		h.hand = max(h.hand, -int((h.of.spent(now)+h.of.every-1)/h.of.every)) // the rest has come back since
	}
	owed := h.unpaid
	unpaid := min(owed, most-h.ownLeft(now)) // as above
	want := unpaid + max(0, h.waiting+min(h.demand, h.maxAhead())-h.hand)
	if want == 0 {
		return
	}
	s := h.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.holding[h] = struct{}{}
	h.asking, h.asked, h.demand = make(chan struct{}), now, 0
	s.done.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
		defer cancel()
		got, again, err := s.sharer.Take(ctx, h.name, h.of.rate, want)
		s.away.Store(err != nil)
		h.answered(got-unpaid, owed, again, err)
	})
}

// answered records what the store gave. owed is how many unpaid queries the request reported.
func (h *stock) answered(got, owed int, again time.Duration, err error) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if err == nil {
		h.hand += got
		h.unpaid -= owed // more may have run since
		if again > 0 {
			h.spent = h.sharing.now().Add(max(again, sliceRest))
		}
	}
	close(h.asking)
	h.asking = nil
}

// prepare waits until this node has some of the allowance in hand or knows that there is none: for the first query in a while, or for more queries at
// once than expected.
func (h *stock) prepare(ctx context.Context) {
	began := h.sharing.now()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.waiting++
	defer func() { h.waiting-- }()
	for h.hand < h.waiting && ctx.Err() == nil && h.sharing.now().Sub(began) < h.sharing.wait {
		h.ask()
		answer := h.asking
		if answer == nil || h.sharing.away.Load() { // what is left is known
			return
		}
		silent := h.asked.Add(h.sharing.wait)
		h.of.mu.Unlock()
		select {
		case <-answer:
		case <-ctx.Done():
		case <-time.After(silent.Sub(h.sharing.now())):
		}
		h.of.mu.Lock()
		if h.asking == answer && !h.sharing.now().Before(silent) {
			h.sharing.away.Store(true) // until it answers
		}
	}
}

// idleSince reports whether nothing was spent since a time.
func (h *stock) idleSince(since time.Time) bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.asking == nil && h.used.Before(since) && h.asked.Before(since)
}

// empty removes and returns what is in hand.
func (h *stock) empty() int {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	n := max(0, h.hand)
	h.hand -= n
	return n
}

// isKnown reports whether the store has nothing new to say about how many queries may run.
func (h *stock) isKnown() bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.hand > 0 || h.sharing.away.Load() || h.sharing.now().Before(h.spent)
}
