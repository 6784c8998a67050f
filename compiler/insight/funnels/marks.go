package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// marks is how an event is packed into an integer, its item: the time in microseconds, and after it one bit for each
// step, one for each group of moves that exclusions guard alike, one that says "held" (see runs.go) and one that says
// "mixed" (see ties.go). Items sort by time, and at one time by these bits.
type marks struct {
	steps int
	// guards are the bits of exclusions; guard[k] is the bit that guards the move into step k (from 1), 0 for none.
	guards int
	guard  []int64
	// shift is added to times, so that an item that is not an attempt (0 or less) is always out of the window.
	shift int64
	// window is the conversion window in microseconds.
	window int64
	// wide reports whether items do not fit in 64 bits.
	wide bool
}

// width is how many bits come after the time.
func (m *marks) width() int { return m.steps + m.guards + 2 }

func (m *marks) step(k int) int64 { return 1 << (k - 1) }
func (m *marks) allSteps() int64  { return 1<<m.steps - 1 }
func (m *marks) allGuards() int64 { return (1<<m.guards - 1) << m.steps }
func (m *marks) held() int64      { return 1 << (m.width() - 2) }
func (m *marks) mixed() int64     { return 1 << (m.width() - 1) }
func (m *marks) all() int64       { return 1<<m.width() - 1 }

// fit decides how wide items are; span is the length of the date range in microseconds.
func (m *marks) fit(span int64) {
	free := 62 - m.width()
	m.wide = free <= 0 || span+2*m.window+2 >= 1<<free
}

// item packs the event of a row.
func (m *marks) item(mask hogql.Expr) hogql.Expr {
	return expr("bitShiftLeft({time}, {width}) + {mask}", values{"time": m.sized(expr("_toMicroseconds(timestamp) + {shift}", values{"shift": m.shift})), "width": int64(m.width()), "mask": mask})
}

// span is a length of time as the difference between an item and the time of another one.
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

// time is the time of an item, in microseconds and with the shift.
func (m *marks) time(item hogql.Expr) hogql.Expr {
	t := expr("bitShiftRight({item}, {width})", values{"item": item, "width": int64(m.width())})
	if m.wide {
		return insight.Call("_toInt64", t)
	}
	return t
}
