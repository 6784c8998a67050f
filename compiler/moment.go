package compiler

import (
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// moments evaluates times written with constants and the current time, as ClickHouse does.
type moments struct{ world *insight.World }

// moment is a time, or a date: the midnight at its start.
type moment struct {
	time.Time

	date bool
}

// Moments are computed from firstYear up to, but not including, lastYear.
const firstYear, lastYear = 1980, 2200

// of evaluates an expression. It returns false if the result might differ from ClickHouse's.
func (m moments) of(e hogql.Expr) (moment, bool) {
	out, ok := m.any(e)
	return out, ok && out.Year() >= firstYear && out.Year() < lastYear
}

func (m moments) any(e hogql.Expr) (moment, bool) {
	if c, ok := e.(*hogql.Const); ok {
		return m.constant(c.Value)
	}
	if c, ok := e.(*hogql.Call); ok {
		return m.call(c)
	}
	if e, ok := e.(*hogql.Binary); ok {
		if e.Op != hogql.Plus && e.Op != hogql.Minus {
			return moment{}, false
		}
		of, ok := m.of(e.Left)
		if days, whole := integer(e.Right); ok && whole && of.date {
			return m.shift(of, days, "day", e.Op == hogql.Minus)
		}
		n, unit, known := interval(e.Right)
		if !ok || !known {
			return moment{}, false
		}
		return m.shift(of, n, unit, e.Op == hogql.Minus)
	}
	return moment{}, false
}

func (m moments) constant(v any) (moment, bool) {
	switch v := v.(type) {
	case time.Time:
		return moment{Time: v.In(m.world.Zone())}, true
	case string:
		for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02 15:04:05.000000"} {
			if wall, err := time.Parse(layout, v); err == nil && wall.Format(layout) == v {
				at, ok := m.inZone(wall)
				return moment{Time: at}, ok
			}
		}
	}
	return moment{}, false
}

// inZone returns the time at which a wall clock shows wall. It returns false if there is no such time, or if there are two.
func (m moments) inZone(wall time.Time) (time.Time, bool) {
	zone := m.world.Zone()
	var found time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(time.DateTime) != wall.Format(time.DateTime) {
			continue
		}
		if !found.IsZero() && !found.Equal(at) {
			return found, false
		}
		found = at
	}
	return found, !found.IsZero()
}

func (m moments) call(c *hogql.Call) (moment, bool) {
	f, ok := schema.LookupFunction(c.Name)
	if !ok || c.Over != nil || c.Filter != nil || c.Params != nil || c.Distinct {
		return moment{}, false
	}
	switch {
	case len(c.Args) == 0 && (f.Name == "now" || f.Name == "current_timestamp"):
		return moment{Time: m.world.Now.In(m.world.Zone()).Truncate(time.Microsecond)}, true
	case len(c.Args) == 0 && (f.Name == "today" || f.Name == "current_date" || f.Name == "yesterday"):
		day := insight.Wall(m.world.Now.UTC()).Truncate(24 * time.Hour) // of a session, which is in UTC
		if f.Name == "yesterday" {
			day = day.AddDate(0, 0, -1)
		}
		at, ok := m.inZone(day)
		return moment{Time: at, date: true}, ok
	case f.Name == "toDateTime64" && len(c.Args) == 2:
		scale, whole := integer(c.Args[1])
		at, ok := m.converted(f.Name, c.Args[0])
		return at, ok && whole && scale == 6
	case len(c.Args) == 1 && (f.Name == "toDateTime" || f.Name == "toDateTime64" || f.Name == "toDate" || f.Name == "to_date"):
		return m.converted(f.Name, c.Args[0])
	case strings.HasPrefix(f.Name, "add"), strings.HasPrefix(f.Name, "subtract"):
		return m.added(f.Name, c.Args)
	case f.Name == "dateAdd" || f.Name == "dateSub" || f.Name == "date_add" || f.Name == "date_subtract":
		return m.moved(c.Args, strings.Contains(strings.ToLower(f.Name), "sub"))
	}
	start, isStart := startOf(c, func(e hogql.Expr) bool { _, ok := m.of(e); return ok })
	if !isStart {
		return moment{}, false
	}
	of, ok := m.of(start.x)
	if of.date && !start.date { // the same
		return moment{}, false
	}
	r := insight.SpanOf(m.world, start.interval, m.weekStart(start), of.Time, of.Time)
	floor := r.Floor(of.Time)
	if start.interval.Clock() == 0 {
		var exact bool
		if floor, exact = m.inZone(insight.Wall(floor)); !exact || floor.Hour() != 0 {
			return moment{}, false
		}
	}
	return moment{floor, start.date}, ok
}

func (m moments) weekStart(s start) int {
	if s.monday {
		return 1
	}
	return m.world.Database.WeekStart
}

// converted converts a text to a time or a date, or a time to a date.
func (m moments) converted(function string, x hogql.Expr) (moment, bool) {
	_, constant := x.(*hogql.Const)
	of, ok := m.of(x)
	if !strings.HasSuffix(strings.ToLower(function), "date") {
		return moment{Time: of.Time}, ok && (constant || of.date || function == "toDateTime64")
	}
	day, exact := m.inZone(insight.Wall(of.Time).Truncate(24 * time.Hour))
	return moment{Time: day, date: true}, ok && exact
}

// added evaluates addDays(x, n), subtractHours(x, n) and so on.
func (m moments) added(function string, args []hogql.Expr) (moment, bool) {
	back := strings.HasPrefix(function, "subtract")
	unit := strings.TrimPrefix(strings.TrimPrefix(function, "add"), "subtract")
	if len(args) != 2 {
		return moment{}, false
	}
	of, ok := m.of(args[0])
	n, whole := integer(args[1])
	if !ok || !whole {
		return moment{}, false
	}
	return m.shift(of, n, strings.ToLower(strings.TrimSuffix(unit, "s")), back)
}

// moved evaluates dateAdd(x, interval) and dateAdd('unit', n, x).
func (m moments) moved(args []hogql.Expr, back bool) (moment, bool) {
	if len(args) == 2 {
		of, ok := m.of(args[0])
		n, unit, known := interval(args[1])
		if !ok || !known {
			return moment{}, false
		}
		return m.shift(of, n, unit, back)
	}
	if len(args) != 3 {
		return moment{}, false
	}
	of, ok := m.of(args[2])
	n, whole := integer(args[1])
	unit, known := unitOf(args[0])
	if !ok || !whole || !known {
		return moment{}, false
	}
	return m.shift(of, n, unit, back)
}

// maxMoved is the most units that a moment is moved by.
const maxMoved = 1_000_000

// shift moves a moment. Days and longer units keep the wall clock; a day that the month lacks becomes its last.
func (m moments) shift(of moment, n int64, unit string, back bool) (moment, bool) {
	if n < -maxMoved || n > maxMoved {
		return moment{}, false
	}
	if back {
		n = -n
	}
	clock := map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}
	if length, ok := clock[unit]; ok {
		if of.date { // a date becomes a time in the session's zone
			return moment{}, false
		}
		return moment{Time: of.Add(time.Duration(n) * length)}, true
	}
	wall := insight.Wall(of.Time)
	switch unit {
	case "day":
		wall = wall.AddDate(0, 0, int(n))
	case "week":
		wall = wall.AddDate(0, 0, int(7*n))
	case "month", "quarter", "year":
		months := int(n) * map[string]int{"month": 1, "quarter": 3, "year": 12}[unit]
		first := time.Date(wall.Year(), wall.Month(), 1, wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), time.UTC).AddDate(0, months, 0)
		wall = first.AddDate(0, 0, min(wall.Day(), first.AddDate(0, 1, -1).Day())-1)
	default:
		return moment{}, false
	}
	at, ok := m.inZone(wall)
	return moment{at, of.date}, ok
}

func integer(e hogql.Expr) (int64, bool) {
	if u, ok := e.(*hogql.Unary); ok && u.Op == hogql.Negate {
		n, whole := integer(u.X)
		return -n, whole
	}
	c, ok := e.(*hogql.Const)
	if !ok {
		return 0, false
	}
	n, whole := c.Value.(int64)
	return n, whole
}

// interval reads INTERVAL n unit, and toIntervalDay(n) and the like.
func interval(e hogql.Expr) (n int64, unit string, ok bool) {
	if i, written := e.(*hogql.Interval); written {
		n, ok = integer(i.N)
		return n, i.Unit, ok
	}
	if e, called := e.(*hogql.Call); called {
		f, known := schema.LookupFunction(e.Name)
		if !known || len(e.Args) != 1 || !strings.HasPrefix(f.Name, "toInterval") {
			return 0, "", false
		}
		n, ok = integer(e.Args[0])
		return n, strings.ToLower(strings.TrimPrefix(f.Name, "toInterval")), ok
	}
	return 0, "", false
}

func unitOf(e hogql.Expr) (string, bool) {
	c, ok := e.(*hogql.Const)
	if !ok {
		return "", false
	}
	text, ok := c.Value.(string)
	if !ok {
		return "", false
	}
	unit, known := schema.LookupUnit(text)
	return unit.Name, known
}

// start is a call that returns the start of a span of time, such as toStartOfDay(x).
type start struct {
	interval query.Interval
	monday   bool // weeks begin on Monday, whatever the project's setting
	date     bool // it returns a date
	x        hogql.Expr
}

var starts = map[string]start{
	"toDate": {interval: query.Day, date: true}, "to_date": {interval: query.Day, date: true},
	"toStartOfDay": {interval: query.Day}, "toStartOfHour": {interval: query.Hour}, "toStartOfMinute": {interval: query.Minute},
	"toStartOfWeek": {interval: query.Week, date: true}, "toMonday": {interval: query.Week, date: true, monday: true},
	"toStartOfMonth": {interval: query.Month, date: true}, "toStartOfQuarter": {interval: query.Quarter, date: true},
	"toStartOfYear": {interval: query.Year, date: true},
}

var startUnits = map[string]query.Interval{
	"day": query.Day, "week": query.Week, "month": query.Month, "quarter": query.Quarter, "year": query.Year,
}

// startOf reads a call that returns the start of the span around its argument, for which ok must be true.
func startOf(e hogql.Expr, ok func(hogql.Expr) bool) (start, bool) {
	c, isCall := e.(*hogql.Call)
	if !isCall || c.Over != nil || c.Filter != nil || c.Params != nil || c.Distinct {
		return start{}, false
	}
	f, known := schema.LookupFunction(c.Name)
	if !known {
		return start{}, false
	}
	if s, simple := starts[f.Name]; simple && len(c.Args) == 1 {
		s.x = c.Args[0]
		return s, ok(s.x)
	}
	if len(c.Args) != 2 {
		return start{}, false
	}
	s := start{monday: true} // as in these functions
	var unit string
	switch f.Name {
	case "dateTrunc", "date_trunc":
		unit, known = unitOf(c.Args[0])
		s.x = c.Args[1]
	case "toStartOfInterval":
		var n int64
		n, unit, known = interval(c.Args[1])
		known = known && n == 1
		s.x = c.Args[0]
	default:
		return start{}, false
	}
	s.interval = startUnits[unit]
	s.date = s.interval != query.Day
	return s, known && s.interval != "" && ok(s.x)
}
