package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// marks describes how an event is packed into an integer, its item: the time in microseconds, and after it one bit for each step, one for
// each group of moves that the same exclusions guard, one for "held" (see runs.go) and one for "mixed" (see ties.go). Items sort by time,
// and at the same time by these bits.
type marks struct {
	steps int
	// guards is the number of bits for exclusions; guard[k] is the bit that guards the move into step k (from 1), 0 for none.
	guards int
	guard  []int64
	// shift is added to times, so that an item that is no attempt (0 or less) is always outside the window.
	shift int64
	// window is the conversion window in microseconds.
	window int64
	// wide reports whether items do not fit into 64 bits.
	wide bool
}

// width returns the number of bits after the time.
func (m *marks) width() int { return m.steps + m.guards + 2 }

func (m *marks) step(k int) int64 { return 1 << (k - 1) }
func (m *marks) allSteps() int64  { return 1<<m.steps - 1 }
func (m *marks) allGuards() int64 { return (1<<m.guards - 1) << m.steps }
func (m *marks) held() int64      { return 1 << (m.width() - 2) }
func (m *marks) mixed() int64     { return 1 << (m.width() - 1) }
func (m *marks) all() int64       { return 1<<m.width() - 1 }

// fit sets wide; span is the length of the date range in microseconds.
func (m *marks) fit(span int64) {
	free := 62 - m.width()
	m.wide = free <= 0 || span+2*m.window+2 >= 1<<free
}

// item packs the event of a row.
func (m *marks) item(mask hogql.Expr) hogql.Expr {
	return expr("bitShiftLeft({time}, {width}) + {mask}", values{"time": m.sized(expr("_toMicroseconds(timestamp) + {shift}", values{"shift": m.shift})), "width": int64(m.width()), "mask": mask})
}

// span returns a length of time, to compare with the difference between an item and the time of another one.
func (m *marks) span(microseconds int64) hogql.Expr {
	if !m.wide {
		return insight.Const(microseconds<<m.width() | m.all())
	}
	return expr("bitShiftLeft({time}, {width}) + {all}", values{"time": m.sized(insight.Const(microseconds)), "width": int64(m.width()), "all": m.all()})
}

func (m *marks) sized(x hogql.Expr) hogql.Expr {
	if m.wide {
		return insight.Call("_toInt128", x)
	}
	return x
}

// time returns the time of an item, in microseconds and with the shift.
func (m *marks) time(item hogql.Expr) hogql.Expr {
	t := expr("bitShiftRight({item}, {width})", values{"item": item, "width": int64(m.width())})
	if m.wide {
		return insight.Call("_toInt64", t)
	}
	return t
}
