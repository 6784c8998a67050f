package signin

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// An address may send a wrong code now and then: somebody opens an old link. The limit is for those that guess, and counts wrong codes alone.
const (
	guessEvery = 6 * time.Second
	guessBurst = 10
	// guessers is how many limits there are: addresses that fall on the same share it.
	guessers = 1024
)

// guesses counts wrong codes by the address that they come from.
type guesses struct {
	mu    sync.Mutex
	seed  maphash.Seed // set with the first
	from  [guessers]*rate.Limiter
	ready bool
}

// wrong counts a wrong code. It returns how long the address has to wait until it may send another; 0 if it may have sent this one.
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

// guesser is what an address is counted as: an IPv6 network of 64 bits is one household. Texts that are no address are one too.
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
