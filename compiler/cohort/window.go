package cohort

import (
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// interval is a time whose events count.
type interval struct {
	from, to time.Time
	after    bool // an event at from itself does not count
}

// holds is the condition that an event lies in the interval.
func (i interval) holds() hogql.Expr {
	begin := hogql.GreaterOrEquals
	if i.after {
		begin = hogql.Greater
	}
	return insight.And(at(begin, i.from), at(hogql.LessOrEquals, i.to))
}

// at compares the time of an event.
func at(op hogql.CompareOp, t time.Time) hogql.Expr {
	return insight.Compare(insight.Field("timestamp"), op, insight.Const(t))
}

// letters are those of the units in relative dates.
var letters = map[Unit]string{Minute: "M", Hour: "h", Day: "d", Week: "w", Month: "m", Year: "y"}

// before is the time that lies so long before another one, on the same clock, and not before the first that can be asked for.
func before(t time.Time, s Span) time.Time {
	out, ok := filter.Date("-"+strconv.Itoa(s.Count)+letters[s.Unit], t, t.Location())
	if !ok {
		return time.Date(filter.FirstYear, time.January, 1, 0, 0, 0, 0, t.Location())
	}
	return out
}

// back is the time that lies so long before now.
func (b *builder) back(s Span) time.Time { return before(b.today(), s) }

// begin is where the window of so long begins: hours with the hour, and all that is longer with the day.
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

// endOfDay is the last microsecond of a day.
func endOfDay(t time.Time) time.Time { return filter.StartOfDay(t, 1).Add(-time.Microsecond) }

// today is now, in the project's zone.
func (b *builder) today() time.Time { return b.world.Now.In(b.world.Zone()) }

// since is the window of so long, which ends with today.
func (b *builder) since(s Span) interval {
	return interval{from: b.begin(s), to: endOfDay(b.today())}
}

// window is the time in which the events of a behavior count. The error is a *diag.Error.
func (b *builder) window(n *Behavior) (interval, error) {
	if n.Window.From == "" {
		return b.since(n.Window.Span), nil
	}
	r, err := b.explicit(n)
	return interval{from: r.Lower, to: r.To}, err
}

// exactly is the window of a Multiple, which begins at a moment and not with a day, and ends now. The error is a *diag.Error.
func (b *builder) exactly(n *Behavior) (interval, error) {
	out := interval{from: b.back(n.Window.Span), to: b.today(), after: true}
	if n.Window.From == "" {
		return out, nil
	}
	r, err := b.explicit(n)
	if err != nil {
		return out, err
	}
	out.from, _ = filter.Date(n.Window.From, b.world.Now, b.world.Zone())
	if n.Window.To != "" {
		out.to = r.To
	}
	return out, nil
}

// explicit reads the dates of a window; they may have become too early. The error is a *diag.Error.
func (b *builder) explicit(n *Behavior) (insight.Range, error) {
	return insight.Resolve(b.world, &query.Common{DateRange: query.DateRange{
		From: n.Window.From, To: n.Window.To, FromAt: n.At + ".explicit_datetime", ToAt: n.At + ".explicit_datetime_to",
	}}, query.Day)
}
