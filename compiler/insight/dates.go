package insight

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// MaxBuckets is the maximum number of buckets of a range.
const MaxBuckets = 10_000

// Range is the span of time that an insight covers, cut into buckets (contract: trends.md, sections 2 and 3). All its times are in the
// project's zone.
type Range struct {
	Span
	// Lower is the earliest time of events that count; To is the latest.
	Lower    time.Time
	Interval query.Interval
	// All reports whether the range begins with the earliest event, which only the rows show: see Since.
	All bool
	// DaysOfWeek are the ISO weekdays whose events count; empty for all.
	DaysOfWeek []int
	// Ends leaves only the first and the last bucket of the range.
	Ends bool

	weekStart int
	attr      string // of the interval, for error messages
	from, to  filter.Moment
	toGiven   bool // date_to is a relative date, not just the present
	explicit  bool // neither end is moved
	now       time.Time
	wholeOnly bool
	uncut     bool // it has no buckets
}

// Resolve reads the date range of an insight and moves its ends as its interval requires. The error is a *diag.Error that names the field.
func Resolve(w *World, c *query.Common, interval query.Interval) (Range, error) {
	return resolve(w, c, interval, false)
}

// SpanOf returns the range between two moments, cut into buckets; neither end is moved. weekStart is the first day of a week, 0 for Sunday.
func SpanOf(w *World, interval query.Interval, weekStart int, from, to time.Time) Range {
	return Range{
		Span: Span{from.In(w.Zone()), to.In(w.Zone())}, Lower: from.In(w.Zone()), Interval: interval, weekStart: weekStart, explicit: true, now: w.Now.In(w.Zone()),
	}
}

// ResolveUncut is like Resolve, for insights without buckets: the interval only moves the ends of the range, whose length is not limited.
func ResolveUncut(w *World, c *query.Common, interval query.Interval) (Range, error) {
	return resolve(w, c, interval, true)
}

// PreviousDays is like Previous, for a range of days that is shown as one number. If it ends relative to the present, the ends of what it
// is compared with depend on the query's interval, as for a chart. Otherwise both have the same length.
func (r *Range) PreviousDays(w *World, c *query.Common, interval query.Interval, compare *query.Compare) (Range, error) {
	of := *r
	if r.to.Relative() && !r.wholeOnly {
		var err error
		if of, err = resolve(w, c, interval, true); err != nil {
			return of, err
		}
	}
	p, err := of.Previous(compare)
	p.Interval = r.Interval
	return p, err
}

func resolve(w *World, c *query.Common, interval query.Interval, uncut bool) (Range, error) {
	r := Range{
		uncut:    uncut,
		Interval: interval, DaysOfWeek: c.DateRange.DaysOfWeek, weekStart: w.Database.WeekStart, attr: c.Field("interval"),
		now: w.Now.In(w.Zone()), explicit: c.DateRange.Explicit, wholeOnly: c.DateRange.ExcludeIncomplete,
	}
	now := r.now
	var err error
	r.to = filter.Moment{Time: now, Unit: 's'}
	if to := c.DateRange.To; to != "" {
		if r.to, err = r.read(w, to, c.ToField()); err != nil {
			return r, err
		}
		r.toGiven = r.to.Relative()
	}
	from := c.DateRange.From
	switch from {
	case "all":
		r.All = true
	case "":
		r.from = filter.Moment{Time: filter.StartOfDay(now, -7), Unit: 'd', Count: 7}
	default:
		if r.from, err = r.read(w, from, c.FromField()); err != nil {
			return r, err
		}
	}
	r.To, r.From = r.to.Time, r.from.Time
	if r.explicit {
		r.Lower = r.From
	} else {
		r.To, r.From = r.movedTo(), r.movedFrom()
		r.Lower = r.lower()
	}
	if r.All {
		r.Lower = FirstTime
		r.From = r.Lower
		r.clip()
		return r, nil
	}
	r.clip()
	return r, r.check()
}

// If the query asks for whole buckets only, clip cuts off the bucket that is still running and a partial bucket at the start. It leaves an
// end as it is if nothing would remain.
func (r *Range) clip() {
	if !r.wholeOnly {
		return
	}
	if over := r.Floor(r.now).Add(-time.Microsecond); r.To.After(over) && !over.Before(r.From) {
		r.To = over
	}
	if r.All { // the start is not known yet
		return
	}
	if start := r.Floor(r.From); start.Before(r.From) {
		if next := r.Next(start); !next.After(r.To) {
			r.From, r.Lower = next, next
		}
	}
}

// FirstTime is the earliest time that is believed to be the true time of an event.
var FirstTime = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// firstEver is the start of the range of all time if there are no events.
var firstEver = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)

func (r *Range) read(w *World, text, attr string) (filter.Moment, error) {
	m, ok := filter.ReadDate(text, w.Now, w.Zone(), w.Database.WeekStart)
	if !ok {
		return m, diag.Field(diag.InvalidInput, attr, "The date '%s' is neither ISO 8601 nor relative, such as -7d", diag.Shown(text))
	}
	return m, nil
}

func (r *Range) movedTo() time.Time {
	t := r.to.Time
	if r.Interval.Clock() > 0 {
		if r.to.Relative() {
			return r.Next(r.Floor(t)).Add(-time.Microsecond)
		}
		return t
	}
	return filter.StartOfDay(t, 1).Add(-time.Microsecond)
}

func (r *Range) movedFrom() time.Time {
	t := r.from.Time
	if clock := r.Interval.Clock(); !r.from.Relative() || clock > 0 && clock < time.Hour {
		return t
	}
	switch r.from.Unit {
	case 's', 'M':
		return t
	case 'h':
		return filter.StartOfHour(t)
	}
	return filter.StartOfDay(t, 0)
}

func (r *Range) lower() time.Time {
	switch {
	case r.Interval.Clock() > 0 && r.from.Relative():
		return r.From
	case r.Interval.Clock() > 0:
		return r.Floor(r.From)
	case r.Interval == query.Day && r.from.Relative() && r.from.Unit == 'h':
		return r.From
	}
	return filter.StartOfDay(r.From, 0)
}

// Since returns the range of all time with its true start: the earliest event, or a fixed day if there is none. The error is a *diag.Error.
func (r Range) Since(earliest time.Time) (Range, error) {
	if earliest.Before(FirstTime) {
		earliest = firstEver
	}
	zone := r.To.Location()
	earliest = earliest.In(zone)
	if r.From = filter.StartOfDay(earliest, 0); r.Interval.Clock() > 0 {
		r.From = r.Floor(earliest)
	}
	r.All, r.Lower = false, r.From
	r.clip()
	return r, r.check()
}

// check refuses a range with too many buckets, before they are built.
func (r *Range) check() error {
	length := r.Interval.Clock()
	switch {
	case r.uncut:
		return nil
	case r.Interval == query.Day:
		length = 24 * time.Hour
	case length == 0:
		return nil // the longest range has fewer weeks than that
	}
	if n := int64(r.To.Sub(r.From)/length) + 1; n > MaxBuckets {
		return diag.Field(diag.InvalidInput, r.attr,
			"An interval of one %s cuts this date range into %d parts; there may be %d. Use a longer interval or a shorter range.", r.Interval, n, MaxBuckets)
	}
	return nil
}

// noon is an hour that no clock change skips.
const noon = 12

// Floor returns the start of the bucket that contains t.
func (r *Range) Floor(t time.Time) time.Time {
	switch r.Interval {
	case query.Second:
		return t.Add(-time.Duration(t.Nanosecond()))
	case query.Minute:
		return t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case query.Hour:
		return filter.StartOfHour(t)
	case query.Week:
		return filter.StartOfWeek(t, r.weekStart)
	case query.Month, query.Quarter, query.Year:
		month := int(t.Month()-time.January) / r.Interval.Months() * r.Interval.Months()
		return filter.StartOfDay(time.Date(t.Year(), time.January+time.Month(month), 1, noon, 0, 0, 0, t.Location()), 0)
	case query.Day:
	}
	return filter.StartOfDay(t, 0)
}

// Next returns the start of the bucket after the one that starts at t.
func (r *Range) Next(t time.Time) time.Time { return r.Step(t, 1) }

// Step moves n buckets forward, or back if n is negative, from the bucket that starts at t. A bucket of an hour is shorter where the clock
// was changed by part of an hour.
func (r *Range) Step(t time.Time, n int) time.Time {
	switch r.Interval {
	case query.Second, query.Minute:
		return t.Add(time.Duration(n) * r.Interval.Clock())
	case query.Hour:
		return filter.StartOfHour(t.Add(time.Duration(n) * time.Hour))
	case query.Week:
		return filter.StartOfDay(t, 7*n)
	case query.Month, query.Quarter, query.Year:
		return filter.StartOfDay(time.Date(t.Year(), t.Month()+time.Month(n*r.Interval.Months()), 1, noon, 0, 0, 0, t.Location()), 0)
	case query.Day:
	}
	return filter.StartOfDay(t, n)
}

// Buckets returns the starts of the buckets in order, from the one that contains From to the one that contains To, or only these two if
// Ends is set. It returns nil if the range ends before it begins.
func (r *Range) Buckets() []time.Time {
	first := r.Floor(r.From)
	if first.After(r.To) {
		return nil
	}
	out := make([]time.Time, 0, r.To.Sub(first)/r.longest()+1)
	for t := first; !t.After(r.To); t = r.Next(t) {
		if r.Interval != query.Day || len(r.DaysOfWeek) == 0 || r.onDay(t) {
			out = append(out, t)
		}
	}
	if r.Ends && len(out) > 2 {
		return []time.Time{out[0], out[len(out)-1]}
	}
	return out
}

// Running reports whether the bucket that begins at start has begun and is not over.
func (r *Range) Running(start time.Time) bool {
	return !r.now.Before(start) && r.now.Before(r.Next(start))
}

func (r *Range) onDay(t time.Time) bool {
	for _, day := range r.DaysOfWeek {
		if day%7 == int(t.Weekday()) {
			return true
		}
	}
	return false
}

// Previous returns the range that this one is compared with (contract: trends.md, section 9). The error is a *diag.Error.
func (r *Range) Previous(compare *query.Compare) (Range, error) {
	p := *r
	length := Wall(r.To).Sub(Wall(r.From))
	if compare.To != "" {
		m, ok := filter.ReadDate(compare.To, r.From, r.From.Location(), r.weekStart)
		if !ok || !m.Relative() {
			return p, diag.Field(diag.InvalidInput, compare.At, "compare_to '%s' is not a relative date (want, for example, -1w)", diag.Shown(compare.To))
		}
		p.From = m.Time
		p.To = unwall(Wall(p.From).Add(length), r.To.Location())
		p.shiftLower(r)
		return p, nil
	}
	if r.unfinishedDay() {
		length = Wall(filter.StartOfDay(r.To, 1)).Add(-time.Microsecond).Sub(Wall(r.From))
	}
	zone := r.From.Location()
	from := Wall(r.From).Add(-length)
	if clock := r.Interval.Clock(); clock == 0 || clock == time.Hour { // both ends keep their time of day
		from = time.Date(from.Year(), from.Month(), from.Day(), r.From.Hour(), r.From.Minute(), r.From.Second(), r.From.Nanosecond(), time.UTC)
		if !from.Before(Wall(r.From)) { // the range is shorter than a day
			from = from.AddDate(0, 0, -1)
		}
	}
	if r.Interval == query.Day && r.from.Relative() && wholeWeeks(r.from) && !r.toGiven && !r.wholeOnly {
		from = from.AddDate(0, 0, 1)
	}
	p.From, p.To = unwall(from, zone), unwall(from.Add(length), zone)
	p.shiftLower(r)
	return p, nil
}

// Shifted returns the time that is as far from the start of r as t is from the start of other, in wall-clock time.
func (r *Range) Shifted(t time.Time, other *Range) time.Time {
	return unwall(Wall(r.From).Add(Wall(t).Sub(Wall(other.From))), r.From.Location())
}

// unfinishedDay reports whether a range of hours begins with the start of a day and ends with the present. Such a range is compared with
// whole days.
func (r *Range) unfinishedDay() bool {
	if r.Interval != query.Hour || r.explicit || r.wholeOnly || r.toGiven || !r.to.Relative() {
		return false
	}
	return r.from.Relative() && !strings.ContainsRune("sMh", rune(r.from.Unit))
}

func wholeWeeks(m filter.Moment) bool {
	return m.Count > 0 && m.Edge == "" && (m.Unit == 'w' || m.Unit == 'd' && m.Count%7 == 0)
}

// shiftLower sets p.Lower as far from the start of p as r.Lower is from the start of r.
func (p *Range) shiftLower(r *Range) {
	p.Lower = unwall(Wall(p.From).Add(Wall(r.Lower).Sub(Wall(r.From))), p.From.Location())
	if r.Lower.Before(r.From) {
		p.Lower = p.lower()
	}
}

// Wall returns the wall-clock time of t as if there were no zones, so that every day counts as 24 hours in differences.
func Wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

func unwall(t time.Time, zone *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

// Day formats the start of a bucket for the field days (contract: trends.md, section 3).
func (r *Range) Day(start time.Time) string {
	if r.Interval.Clock() > 0 {
		return start.Format(time.DateTime)
	}
	return start.Format(time.DateOnly)
}

// Label returns the name of a bucket for people.
func (r *Range) Label(start time.Time) string {
	switch r.Interval {
	case query.Second:
		return start.Format("2-Jan 15:04:05")
	case query.Minute, query.Hour:
		return start.Format("2-Jan 15:04")
	case query.Month:
		return start.Format("Jan 2006")
	case query.Week:
		return r.weekLabel(start)
	case query.Day, query.Quarter, query.Year:
	}
	return start.Format("2-Jan-2006")
}

// weekLabel names the days of a week that are in the range.
func (r *Range) weekLabel(start time.Time) string {
	first, last := start, start.AddDate(0, 0, 6)
	if from := filter.StartOfDay(r.From, 0); first.Before(from) {
		first = from
	}
	if to := filter.StartOfDay(r.To, 0); last.After(to) {
		last = to
	}
	switch {
	case first.Equal(last):
		return first.Format("2-Jan-2006")
	case first.Year() != last.Year():
		return first.Format("2-Jan-2006") + " – " + last.Format("2-Jan-2006")
	case first.Month() != last.Month():
		return first.Format("2-Jan") + " – " + last.Format("2-Jan")
	}
	return fmt.Sprintf("%d–%s", first.Day(), last.Format("2 Jan"))
}
