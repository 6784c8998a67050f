package retention

import (
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// maxCells is the maximum number of cells of one matrix, maxShown that of all breakdown values together.
const (
	maxCells = 100_000
	maxShown = 1_000_000
)

// dates are the periods of the rows (contract: retention.md, section 2).
type dates struct {
	insight.Range
	// first is the start of the first row, end the start of the period after the last one.
	first, end time.Time
	rows       int
	columns    int
	attr       string // of the number of columns, or of the start of the range
	// attrs of the length of a period: of retention's own field, and of the one that all insights have
	lengthAttr, intervalAttr string
	// since is the start of the first row if only the events show it; nil otherwise.
	since hogql.Expr
}

// resolveDates reads the range of the rows. The error is a *diag.Error.
func resolveDates(q *Query, w *insight.World) (dates, error) {
	d := dates{columns: q.Columns(), attr: q.Field("retentionFilter.totalIntervals"), lengthAttr: q.Field("retentionFilter.period"), intervalAttr: q.Field("interval")}
	r, err := insight.Resolve(w, &q.Common, q.Period)
	if err != nil {
		return d, d.refused(err)
	}
	d.Range = r
	whole := r.Next(r.Floor(r.To))
	d.end = whole
	if now := w.Now.In(w.Zone()); q.DateRange.ExcludeIncomplete && d.end.After(now) {
		d.end = r.Floor(now)
	}
	switch {
	case r.All:
		d.first = r.Lower.In(w.Zone())
		return d, nil
	case q.DateRange.From == "":
		d.first = r.Floor(r.Step(d.end, -q.Intervals))
	default:
		d.first, d.attr = r.Floor(r.From), q.FromField()
		if !d.first.Before(d.end) { // a range within the period that has not ended shows it
			d.end = whole
		}
	}
	return d.counted()
}

// refused returns the error for a range that could not be resolved. Retention has a field of its own for the length of its periods.
func (d *dates) refused(err error) error {
	if mistake, ok := errors.AsType[*diag.Error](err); ok && mistake.Attr == d.intervalAttr {
		return diag.Field(cellsCode, d.lengthAttr, "%s", mistake.Detail)
	}
	return err
}

// counted returns the dates with the number of their rows.
func (d dates) counted() (dates, error) {
	d.rows = 0
	for t := d.first; t.Before(d.end); t = d.Next(t) {
		if d.rows++; d.rows*d.columns > maxCells {
			return d, diag.Field(cellsCode, d.attr,
				"The cells of this retention, its rows times its columns, are more than %d. Ask for fewer intervals, a longer period or a shorter range.", maxCells)
		}
	}
	return d, nil
}

// from returns the dates of all time, which begin with the earliest event.
func (d dates) from(earliest time.Time) (dates, error) {
	r, err := d.Since(earliest)
	if err != nil {
		return d, d.refused(err)
	}
	d.Range, d.first = r, r.Floor(r.From)
	if first := earliest.In(r.To.Location()); !earliest.Before(insight.FirstTime) {
		d.first = r.Floor(first) // as the rows are counted: all that there is of this period counts, even if only whole periods do
	}
	return d.counted()
}

// span returns the time that the rows cover.
func (d *dates) span() *insight.Span {
	return &insight.Span{From: d.first, To: d.end.Add(-time.Microsecond)}
}

// upper returns the condition that an event is not after the rows, and on a day that counts.
func (d *dates) upper() hogql.Expr {
	moment := insight.Field("timestamp")
	return insight.And(insight.Compare(moment, hogql.Less, insight.Const(d.end)), d.Weekdays(moment))
}

// lower returns the condition that a time is not before the rows.
func (d *dates) lower(moment hogql.Expr) hogql.Expr {
	return insight.Compare(moment, hogql.GreaterOrEquals, insight.Const(d.first))
}

// period returns the number of the period that contains a time, counted from the first row.
func (d *dates) period(moment hogql.Expr) hogql.Expr {
	switch d.Interval {
	case query.Week:
		return d.units(days, moment, 7)
	case query.Month:
		return d.units(months, moment, 1)
	case query.Hour:
		return d.units(hours, moment, 1)
	case query.Day, query.Second, query.Minute, query.Quarter, query.Year:
	}
	return d.units(days, moment, 1)
}

// floor returns the start of the period that contains a time.
func (d *dates) floor(moment hogql.Expr) hogql.Expr {
	functions := map[query.Interval]string{
		query.Hour: "toStartOfHour", query.Day: "toStartOfDay", query.Week: "toStartOfWeek", query.Month: "toStartOfMonth",
	}
	return insight.Call(functions[d.Interval], moment)
}

// unit is the unit in which time is counted.
type unit uint8

const (
	hours unit = iota
	days
	months
)

// units returns the number of units between the start of the rows and a time, divided by size. It counts the borders of units that the
// clock passed. It is negative, or 0, for a time before the rows.
func (d *dates) units(u unit, moment hogql.Expr, size int) hogql.Expr {
	count := &hogql.Binary{Op: hogql.Minus, Left: u.number(moment), Right: d.origin(u)}
	if u == hours {
		size *= 3600
	}
	if size == 1 {
		return count
	}
	return insight.Call("intDiv", count, insight.Const(int64(size)))
}

// number returns the number of a time's unit; for hours it is the number of the second.
func (u unit) number(moment hogql.Expr) hogql.Expr {
	switch u {
	case days:
		return insight.Call("_toInt32", insight.Call("toDate", moment))
	case months:
		return insight.TemplateExpr("toYear({moment}) * 12 + toMonth({moment})", map[string]any{"moment": moment})
	case hours:
	}
	return insight.Call("toUnixTimestamp", moment)
}

// origin returns the number of the unit that the rows begin with.
func (d *dates) origin(u unit) hogql.Expr {
	if d.since != nil {
		return u.number(d.since)
	}
	switch u {
	case days:
		midnight := time.Date(d.first.Year(), d.first.Month(), d.first.Day(), 0, 0, 0, 0, time.UTC)
		return insight.Const(midnight.Unix() / (24 * 60 * 60))
	case months:
		return insight.Const(int64(d.first.Year()*12 + int(d.first.Month())))
	case hours:
	}
	return insight.Const(d.first.Unix())
}
