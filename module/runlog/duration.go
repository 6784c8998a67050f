package runlog

import (
	"math"
	"math/bits"
	"time"
)

// Durations are counted in ranges: one below 16 µs, then two for each doubling. The last range has no end.
const (
	durations     = 48
	shortestPower = 4 // 2^4 µs
)

// durationIndex returns the range of a duration.
func durationIndex(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	power := bits.Len64(us) - 1
	if power < shortestPower {
		return 0
	}
	half := int(us >> (power - 1) & 1)
	return min(durations-1, 1+2*(power-shortestPower)+half)
}

// durationFrom returns where a range begins, in microseconds.
func durationFrom(index int) float64 {
	if index == 0 {
		return 0
	}
	power, half := shortestPower+(index-1)/2, (index-1)%2
	return math.Ldexp(float64(2+half), power-1)
}

// Quantile returns approximately the duration that the share q of the answered runs did not exceed: a range is up to half as wide as its start. ok is
// false if there are no runs.
func (n *Counts) Quantile(q float64) (took time.Duration, ok bool) {
	if n.Answered == 0 {
		return 0, false
	}
	rank := max(1, math.Ceil(q*float64(n.Answered)))
	var below float64
	for i, in := range n.took {
		if below += float64(in); below >= rank {
			from, to := durationFrom(i), durationFrom(i+1)
			return time.Duration((to - (to-from)*(below-rank)/float64(in)) * float64(time.Microsecond)), true
		}
	}
	return 0, false // every run is in some range
}
