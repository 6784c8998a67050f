package engine_test

import (
	"math"
	"slices"
)

// queues is the state machine of unordered funnels (contract: funnels.md, section 8).
type queues struct {
	q      *funnelQuery
	r      *run
	queue  [][]*marked // by step, from 0
	record int
	fronts []int64
	// leaves is told of each event that leaves a queue, with the number of filled ones.
	leaves func(e *marked, filled int)
}

func (u *queues) filled() (n int, oldest int) {
	oldest = -1
	for k, of := range u.queue {
		if len(of) == 0 {
			continue
		}
		n++
		if oldest < 0 || of[0].at < u.queue[oldest][0].at {
			oldest = k
		}
	}
	return n, oldest
}

func (u *queues) note() {
	n, _ := u.filled()
	if n <= u.record {
		return
	}
	u.record, u.fronts = n, nil
	for _, of := range u.queue {
		if len(of) > 0 {
			u.fronts = append(u.fronts, of[0].at)
		}
	}
	slices.Sort(u.fronts)
}

func (u *queues) remove(k, filled int) {
	if u.leaves != nil {
		u.leaves(u.queue[k][0], filled)
	}
	u.queue[k] = u.queue[k][1:]
}

func (u *queues) walk() {
	u.queue = make([][]*marked, len(u.q.steps))
	for _, e := range u.r.events {
		for {
			n, oldest := u.filled()
			if oldest < 0 || n < len(u.queue) && u.queue[oldest][0].at+u.q.window >= e.at {
				break
			}
			u.note()
			if u.leaves == nil && u.record == len(u.queue) {
				return
			}
			u.remove(oldest, n)
		}
		if len(e.steps) == 0 {
			clear(u.queue)
			continue
		}
		if n, _ := u.filled(); n == 0 && u.r.by > 0 && e.value != u.r.only {
			continue
		}
		to := -1
		newest := func(k int) int64 {
			if of := u.queue[k]; len(of) > 0 {
				return of[len(of)-1].at
			}
			return math.MinInt64
		}
		for _, k := range e.steps {
			if to < 0 || newest(k-1) < newest(to) {
				to = k - 1
			}
		}
		u.queue[to] = append(u.queue[to], e)
	}
	u.note()
	for {
		n, oldest := u.filled()
		if oldest < 0 {
			return
		}
		u.remove(oldest, n)
	}
}
