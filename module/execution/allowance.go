package execution

import (
	"math"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// allowance bounds how many queries may run in a period. It starts full and refills steadily.
type allowance struct {
	rate  registry.Rate
	every time.Duration // the time in which one query comes back

	mu     sync.Mutex // guards all below; methods that read or change it are called with mu held
	whole  time.Time  // when all that was spent here has come back; in the past if nothing is spent
	shared *stock     // this node's share when the nodes share the allowance; else nil
}

func newAllowance(r registry.Rate) *allowance {
	return &allowance{rate: r, every: r.Per / time.Duration(r.Queries)}
}

// spent returns how long it takes until everything spent has come back.
func (a *allowance) spent(now time.Time) time.Duration { return max(0, a.whole.Sub(now)) }

// Left returns how many queries may run now.
func (a *allowance) Left(now time.Time) int {
	if a.shared != nil {
		return a.shared.left(now)
	}
	return a.ownSpendingLeft(now)
}

// shown returns how many queries callers are told may run now.
func (a *allowance) shown(now time.Time) int {
	if a.shared != nil {
		return a.shared.shown(now)
	}
	return a.Left(now)
}

// ownSpendingLeft returns how many queries are left if only this process has spent any.
func (a *allowance) ownSpendingLeft(now time.Time) int {
	return max(0, a.rate.Queries-int((a.spent(now)+a.every-1)/a.every))
}

// next returns how long it takes until one more query may run than now; zero when nothing is spent.
func (a *allowance) next(now time.Time) time.Duration {
	if a.shared != nil {
		return a.shared.next(now)
	}
	spent := a.spent(now)
	if spent == 0 {
		return 0
	}
	return spent - time.Duration(a.rate.Queries-a.Left(now)-1)*a.every
}

// take spends one query.
func (a *allowance) take(now time.Time) {
	a.whole = now.Add(a.spent(now) + a.every)
	if a.shared != nil {
		a.shared.take(now)
	}
}

// giveBack returns one query that was spent but did not run. The allowance never exceeds its rate.
func (a *allowance) giveBack() {
	a.whole = a.whole.Add(-a.every)
	if a.shared != nil {
		a.shared.giveBack()
	}
}

// inSeconds rounds a duration up to whole seconds, for headers.
func inSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
