package cohort

import (
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// interval is the time in which events count.
type interval struct {
	from, to time.Time
	after    bool // an event at from itself does not count
}

// holds returns the condition that an event lies in the interval.
func (i interval) holds() hogql.Expr {
	begin := hogql.GreaterOrEquals
	if i.after {
		begin = hogql.Greater
	}
	return insight.And(at(begin, i.from), at(hogql.LessOrEquals, i.to))
}

// at compares the timestamp of an event with t.
func at(op hogql.CompareOp, t time.Time) hogql.Expr {
	return insight.Compare(insight.Field("timestamp"), op, insight.Const(t))
}

// letters are the unit letters of relative dates.
var letters = map[Unit]string{Minute: "M", Hour: "h", Day: "d", Week: "w", Month: "m", Year: "y"}

// before returns the time s before t on the wall clock of t's zone, but no earlier than the first time that can be asked for.
func before(t time.Time, s Span) time.Time {
	out, ok := filter.Date("-"+strconv.Itoa(s.Count)+letters[s.Unit], t, t.Location(), 0)
	if !ok {
		return time.Date(filter.FirstYear, time.January, 1, 0, 0, 0, 0, t.Location())
	}
	return out
}

// back returns the time s before now.
func (b *builder) back(s Span) time.Time { return before(b.today(), s) }

// begin returns the start of a window of length s: hours begin on the hour, and longer units at the start of a day.
func (b *builder) begin(s Span) time.Time {
	t := b.back(s)
	switch s.Unit {
	case Minute:
		return t
	case Hour:
		r := insight.Range{Interval: query.Hour}
		return r.Floor(t)
	case Day, Week, Month, Year:
	}
	return filter.StartOfDay(t, 0)
}

// endOfDay returns the last microsecond of a day.
func endOfDay(t time.Time) time.Time { return filter.StartOfDay(t, 1).Add(-time.Microsecond) }

// today returns now, in the project's zone.
func (b *builder) today() time.Time { return b.world.Now.In(b.world.Zone()) }

// since returns the window of length s that ends with today.
func (b *builder) since(s Span) interval {
	return interval{from: b.begin(s), to: endOfDay(b.today())}
}

// window returns the time in which the events of a behavior count. The error is a *diag.Error.
func (b *builder) window(n *Behavior) (interval, error) {
	if n.Window.From == "" {
		return b.since(n.Window.Span), nil
	}
	r, err := b.explicit(n)
	return interval{from: r.Lower, to: r.To}, err
}

// exactly returns the window of a Multiple. It begins at a moment, not at the start of a day, and ends now. The error is a *diag.Error.
func (b *builder) exactly(n *Behavior) (interval, error) {
	out := interval{from: b.back(n.Window.Span), to: b.today(), after: true}
	if n.Window.From == "" {
		return out, nil
	}
	r, err := b.explicit(n)
	if err != nil {
		return out, err
	}
	out.from, _ = filter.Date(n.Window.From, b.world.Now, b.world.Zone(), b.world.Database.WeekStart)
	if n.Window.To != "" {
		out.to = r.To
	}
	return out, nil
}

// explicit reads the dates of a window, which may have become too early since. The error is a *diag.Error.
func (b *builder) explicit(n *Behavior) (insight.Range, error) {
	return insight.Resolve(b.world, &query.Common{DateRange: query.DateRange{
		From: n.Window.From, To: n.Window.To, FromAt: n.At + ".explicit_datetime", ToAt: n.At + ".explicit_datetime_to",
	}}, query.Day)
}
