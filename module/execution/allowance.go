package execution

import (
	"math"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// allowance is how many queries may run in a period: a store that is full at first, and fills up steadily.
type allowance struct {
	rate  registry.Rate
	every time.Duration // in which one query comes back

	mu     sync.Mutex // guards all below; what reads or moves it is called with mu held
	whole  time.Time  // when nothing that was spent here is spent any more; in the past when nothing is
	shared *stock     // what this node holds of it when nodes share it; else nil
}

func newAllowance(r registry.Rate) *allowance {
	return &allowance{rate: r, every: r.Per / time.Duration(r.Queries)}
}

// spent is the time in which what is spent comes back.
func (a *allowance) spent(now time.Time) time.Duration { return max(0, a.whole.Sub(now)) }

// Left is how many queries may run now.
func (a *allowance) Left(now time.Time) int {
	if a.shared != nil {
		return a.shared.left(now)
	}
	return a.ownSpendingLeft(now)
}

// shown is how many queries callers are told may run now.
func (a *allowance) shown(now time.Time) int {
	if a.shared != nil {
		return a.shared.shown(now)
	}
	return a.Left(now)
}

// ownSpendingLeft is how many queries there are if nobody else has spent any.
func (a *allowance) ownSpendingLeft(now time.Time) int {
	return max(0, a.rate.Queries-int((a.spent(now)+a.every-1)/a.every))
}

// next is how long it takes until one more query may run than now; zero when nothing is spent.
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

// giveBack takes back that a query was spent which did not run. It never makes more of the allowance than the whole.
func (a *allowance) giveBack() {
	a.whole = a.whole.Add(-a.every)
	if a.shared != nil {
		a.shared.giveBack()
	}
}

// inSeconds is a time as headers have it: never shorter.
func inSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
