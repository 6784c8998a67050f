package insight

import (
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Bucket gives the key of the bucket that holds a time: a date for days and longer intervals, which no change of the clock can
// move, and the second of the start since 1970 for hours and shorter ones.
func (r *Range) Bucket(timestamp hogql.Expr) hogql.Expr {
	switch r.Interval {
	case query.Second:
		return Call("toUnixTimestamp", timestamp)
	case query.Minute:
		return Call("toUnixTimestamp", Call("toStartOfMinute", timestamp))
	case query.Hour:
		return Call("toUnixTimestamp", Call("toStartOfHour", timestamp))
	case query.Week:
		return Call("toStartOfWeek", timestamp)
	case query.Month:
		return Call("toStartOfMonth", timestamp)
	case query.Quarter:
		return Call("toStartOfQuarter", timestamp)
	case query.Year:
		return Call("toStartOfYear", timestamp)
	case query.Day:
	}
	return Call("toDate", timestamp)
}

// Key is the key of the bucket that starts at a time as a row's JSON holds it, without quotes.
func (r *Range) Key(start time.Time) string { return keyOf(r.Interval, start) }

func keyOf(interval query.Interval, start time.Time) string {
	if interval.Clock() > 0 {
		return strconv.FormatInt(start.Unix(), 10)
	}
	return start.Format(time.DateOnly)
}

// KeyExpr is the key of the bucket that starts at a time, in a query.
func (r *Range) KeyExpr(start time.Time) hogql.Expr {
	if r.Interval.Clock() > 0 {
		return Const(start.Unix())
	}
	return Call("toDate", Const(start.Format(time.DateOnly)))
}

// Bounds is the condition that an event lies in the range, on one of its days of the week.
func (r *Range) Bounds() hogql.Expr { return r.BoundsFrom(r.Lower) }

// BoundsFrom is Bounds with another beginning.
func (r *Range) BoundsFrom(lower time.Time) hogql.Expr { return r.bounds(Field("timestamp"), lower) }

func (r *Range) bounds(moment hogql.Expr, lower time.Time) hogql.Expr {
	return And(
		Compare(moment, hogql.GreaterOrEquals, Const(lower)),
		Compare(moment, hogql.LessOrEquals, Const(r.To)),
		r.Weekdays(moment),
	)
}

// Weekdays is the condition that a time is on one of the days of the week that count; nil when all do.
func (r *Range) Weekdays(moment hogql.Expr) hogql.Expr {
	if n := len(r.DaysOfWeek); n == 0 || n == 7 {
		return nil
	}
	set := &hogql.Tuple{}
	for _, day := range r.DaysOfWeek {
		set.Items = append(set.Items, Const(int64(day)))
	}
	return Compare(Call("toDayOfWeek", moment), hogql.In, set)
}

// Whole reports whether the buckets of the range hold no events but those in its bounds, so that the buckets alone decide which
// events count.
func (r *Range) Whole() bool {
	if r.All {
		return true
	}
	end := r.Next(r.Floor(r.To)).Add(-time.Microsecond)
	return r.Lower.Equal(r.Floor(r.From)) && r.To.Equal(end)
}

// BoundsOf is Bounds for another time than that of the event itself.
func (r *Range) BoundsOf(moment hogql.Expr) hogql.Expr { return r.bounds(moment, r.Lower) }
