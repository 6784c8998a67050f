package execution

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// store models an allowance independently: its content, as the time in which it refills.
type store struct {
	rate  registry.Rate
	every time.Duration
	in    time.Duration
	at    time.Time
}

func (s *store) size() time.Duration { return time.Duration(s.rate.Queries) * s.every }

func (s *store) left(now time.Time) int {
	s.in, s.at = min(s.size(), s.in+now.Sub(s.at)), now
	return int(s.in / s.every)
}

// TestAllowance compares an allowance with the store at random times. The time to wait has to be right to the nanosecond.
func TestAllowance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // the same in each run
	for _, text := range []string{"1/h", "2/m", "3/s", "7/s", "240/m", "999/h", "1000000000/s"} {
		r, err := registry.ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		a := newAllowance(r)
		now := noon
		model := &store{rate: r, every: a.every, in: time.Duration(r.Queries) * a.every, at: now}
		for step := range 2000 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(a.every) * random.Float64() * 3))
			left := model.left(now)
			if got := a.Left(now); got != left {
				t.Fatalf("%s, step %d: %d are left, want %d", text, step, got, left)
			}
			if next := a.next(now); next > 0 {
				if later := a.Left(now.Add(next)); later != left+1 {
					t.Fatalf("%s, step %d: %d are left after the wait of %s, want %d", text, step, later, next, left+1)
				}
				if early := a.Left(now.Add(next - 1)); early != left {
					t.Fatalf("%s, step %d: %d are left before the end of the wait, want %d", text, step, early, left)
				}
			} else if left != r.Queries {
				t.Fatalf("%s, step %d: no wait with %d of %d left", text, step, left, r.Queries)
			}
			if left == 0 {
				continue
			}
			a.take(now)
			if random.IntN(4) == 0 {
				a.giveBack()
				continue
			}
			model.in -= model.every
		}
	}
}

// TestAllowanceGivenBackLate: a query given back after the allowance is full again does not make it exceed its rate.
func TestAllowanceGivenBackLate(t *testing.T) {
	a := newAllowance(registry.Rate{Queries: 2, Per: time.Minute})
	a.take(noon)
	a.take(noon)
	a.giveBack()
	if left := a.Left(noon); left != 1 {
		t.Errorf("%d are left, want 1", left)
	}
	later := noon.Add(time.Hour)
	a.giveBack()
	a.giveBack()
	if left, next := a.Left(later), a.next(later); left != 2 || next != 0 {
		t.Errorf("%d are left, the next in %s", left, next)
	}
	if left := a.Left(noon.Add(-time.Hour)); left < 0 {
		t.Errorf("by a clock that goes wrong %d are left", left)
	}
}
