package insight

import (
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Bucket returns the key of the bucket that contains a time. For days and longer intervals the key is a date, which no clock change can
// move; for hours and shorter ones it is the start in Unix seconds.
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

// Key returns the key of the bucket that starts at a time, as the JSON of a row has it, without quotes.
func (r *Range) Key(start time.Time) string { return keyOf(r.Interval, start) }

func keyOf(interval query.Interval, start time.Time) string {
	if interval.Clock() > 0 {
		return strconv.FormatInt(start.Unix(), 10)
	}
	return start.Format(time.DateOnly)
}

// KeyExpr returns the key of the bucket that starts at a time, for use in a query.
func (r *Range) KeyExpr(start time.Time) hogql.Expr {
	if r.Interval.Clock() > 0 {
		return Const(start.Unix())
	}
	return Call("toDate", Const(start.Format(time.DateOnly)))
}

// Bounds returns the condition that an event is in the range, on one of its days of the week.
func (r *Range) Bounds() hogql.Expr { return r.BoundsOf(Field("timestamp")) }

// BoundsFrom is like Bounds, with a different beginning and all buckets from there on.
func (r *Range) BoundsFrom(lower time.Time) hogql.Expr { return r.bounds(Field("timestamp"), lower) }

func (r *Range) bounds(moment hogql.Expr, lower time.Time) hogql.Expr {
	return And(
		Compare(moment, hogql.GreaterOrEquals, Const(lower)),
		Compare(moment, hogql.LessOrEquals, Const(r.To)),
		r.Weekdays(moment),
	)
}

// Weekdays returns the condition that a time is on one of the days of the week that count; nil if all days count.
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

// Whole reports whether the buckets of the range contain only events within its bounds, so that the bucket of an event alone decides
// whether it counts.
func (r *Range) Whole() bool {
	if r.All {
		return true
	}
	end := r.Next(r.Floor(r.To)).Add(-time.Microsecond)
	return r.Lower.Equal(r.Floor(r.From)) && r.To.Equal(end)
}

// BoundsOf is like Bounds, for a time other than the event's own.
func (r *Range) BoundsOf(moment hogql.Expr) hogql.Expr {
	return And(r.bounds(moment, r.Lower), r.inEnds(moment))
}

// inEnds returns the condition that a time of the range is in its first or its last bucket; nil if all buckets count, or if the first one is
// not known.
func (r *Range) inEnds(moment hogql.Expr) hogql.Expr {
	if !r.Ends || r.All {
		return nil
	}
	starts := r.Buckets()
	if len(starts) < 2 || r.Next(starts[0]).Equal(starts[1]) {
		return nil
	}
	return Or(Compare(moment, hogql.Less, Const(r.Next(starts[0]))), Compare(moment, hogql.GreaterOrEquals, Const(starts[1])))
}
