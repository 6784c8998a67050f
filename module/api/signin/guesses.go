package signin

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A client may send a wrong code now and then: somebody opens an old link. The limit is meant for guessing, and counts only wrong codes.
const (
	guessEvery = 6 * time.Second
	guessBurst = 10
	// guessers is how many limiters there are: addresses with the same hash share one.
	guessers = 1024
)

// guesses counts wrong codes by client address.
type guesses struct {
	mu    sync.Mutex
	seed  maphash.Seed // set with the first code
	from  [guessers]*rate.Limiter
	ready bool
}

// wrong counts a wrong code. It returns how long the address has to wait before it may send another; 0 if this one was within the limit.
func (g *guesses) wrong(address string, now time.Time) (wait time.Duration) {
	taken := g.limiter(address).ReserveN(now, 1)
	if wait = taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

func (g *guesses) limiter(address string) *rate.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ready {
		g.seed, g.ready = maphash.MakeSeed(), true
	}
	place := &g.from[maphash.Comparable(g.seed, guesser(address))%guessers]
	if *place == nil {
		*place = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
	}
	return *place
}

// guesser returns what an address is counted as: an IPv6 network of 64 bits counts as one household. All invalid addresses count as one.
func guesser(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
