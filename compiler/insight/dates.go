package insight

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// MaxBuckets is the most buckets that one range may be cut into.
const MaxBuckets = 10_000

// Range is the span of time that an insight looks at, cut into buckets (contract: trends.md, sections 2 and 3). All of its
// times are in the project's zone.
type Range struct {
	Span
	// Lower is the time of the first event that counts; To is that of the last.
	Lower    time.Time
	Interval query.Interval
	// All reports whether the range begins with the earliest event, which only the rows show: see Since.
	All bool
	// DaysOfWeek are the ISO weekdays whose events count; empty for all.
	DaysOfWeek []int

	weekStart int
	attr      string // of the interval, for mistakes
	from, to  filter.Moment
	toGiven   bool // date_to is a relative date, not just the present
	explicit  bool // neither end is moved
	now       time.Time
	wholeOnly bool
	uncut     bool // it has no buckets
}

// Resolve reads the date range of an insight and moves its ends as its interval asks. The error is a *diag.Error that names
// the field.
func Resolve(w *World, c *query.Common, interval query.Interval) (Range, error) {
	return resolve(w, c, interval, false)
}

// SpanOf is the range between two moments, neither of which is moved, cut into buckets; weekStart is the day with which weeks begin, 0 for Sunday.
func SpanOf(w *World, interval query.Interval, weekStart int, from, to time.Time) Range {
	return Range{
		Span: Span{from.In(w.Zone()), to.In(w.Zone())}, Lower: from.In(w.Zone()), Interval: interval, weekStart: weekStart, explicit: true, now: w.Now.In(w.Zone()),
	}
}

// ResolveDays is Resolve for insights that look at whole days and have no buckets, so that there may be any number of days.
func ResolveDays(w *World, c *query.Common) (Range, error) { return resolve(w, c, query.Day, true) }

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

// clip takes away, where that is asked for, the bucket that is running and a part of a bucket at the start. An end at which that
// would leave nothing stays.
func (r *Range) clip() {
	if !r.wholeOnly {
		return
	}
	if over := r.Floor(r.now).Add(-time.Microsecond); r.To.After(over) && !over.Before(r.From) {
		r.To = over
	}
	if r.All { // where it starts is not known
		return
	}
	if start := r.Floor(r.From); start.Before(r.From) {
		if next := r.Next(start); !next.After(r.To) {
			r.From, r.Lower = next, next
		}
	}
}

// FirstTime is the earliest time that is taken for the true time of an event.
var FirstTime = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// firstEver is where the range of all time begins when there is no event.
var firstEver = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)

func (r *Range) read(w *World, text, attr string) (filter.Moment, error) {
	m, ok := filter.ReadDate(text, w.Now, w.Zone())
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

// Since gives the range of all time with its true beginning: the earliest event, or a fixed day where there is none. Its
// error is a *diag.Error.
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

// check refuses a range with too many buckets, before they are made.
func (r *Range) check() error {
	length := r.Interval.Clock()
	switch {
	case r.uncut:
		return nil
	case r.Interval == query.Day:
		length = 24 * time.Hour
	case length == 0:
		return nil // there are not that many weeks in the years that a range can reach over
	}
	if n := int64(r.To.Sub(r.From)/length) + 1; n > MaxBuckets {
		return diag.Field(diag.InvalidInput, r.attr,
			"An interval of one %s cuts this date range into %d parts; there may be %d. Use a longer interval or a shorter range.", r.Interval, n, MaxBuckets)
	}
	return nil
}

// noon is an hour that no clock leaves out.
const noon = 12

// Floor gives the start of the bucket that holds t.
func (r *Range) Floor(t time.Time) time.Time {
	switch r.Interval {
	case query.Second:
		return t.Add(-time.Duration(t.Nanosecond()))
	case query.Minute:
		return t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case query.Hour:
		return filter.StartOfHour(t)
	case query.Week:
		back := (int(t.Weekday()) - r.weekStart + 7) % 7
		return filter.StartOfDay(t, -back)
	case query.Month, query.Quarter, query.Year:
		month := int(t.Month()-time.January) / r.Interval.Months() * r.Interval.Months()
		return filter.StartOfDay(time.Date(t.Year(), time.January+time.Month(month), 1, noon, 0, 0, 0, t.Location()), 0)
	case query.Day:
	}
	return filter.StartOfDay(t, 0)
}

// Next gives the start of the bucket after the one that starts at t.
func (r *Range) Next(t time.Time) time.Time { return r.Step(t, 1) }

// Step goes n buckets on, or back, from the start of one. A bucket of an hour is shorter where a clock was moved by a part of
// one.
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

// Buckets gives the starts of the buckets in order, from the one that holds From to the one that holds To. It is empty
// when the range ends before it begins.
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
	return out
}

func (r *Range) onDay(t time.Time) bool {
	for _, day := range r.DaysOfWeek {
		if day%7 == int(t.Weekday()) {
			return true
		}
	}
	return false
}

// Previous gives the range that this one is compared with (contract: trends.md, section 9). Attr is the place of compare_to;
// the error is a *diag.Error.
func (r *Range) Previous(compare *query.Compare, attr string) (Range, error) {
	p := *r
	length := wall(r.To).Sub(wall(r.From))
	if compare.To != "" {
		m, ok := filter.ReadDate(compare.To, r.From, r.From.Location())
		if !ok || !m.Relative() {
			return p, diag.Field(diag.InvalidInput, attr, "compare_to '%s' is not a relative date (want, for example, -1w)", diag.Shown(compare.To))
		}
		p.From = m.Time
		p.To = unwall(wall(p.From).Add(length), r.To.Location())
		p.shiftLower(r)
		return p, nil
	}
	if r.unfinishedDay() {
		length = wall(filter.StartOfDay(r.To, 1)).Add(-time.Microsecond).Sub(wall(r.From))
	}
	zone := r.From.Location()
	from := wall(r.From).Add(-length)
	if clock := r.Interval.Clock(); clock == 0 || clock == time.Hour { // at the same time of day, and so is the end
		from = time.Date(from.Year(), from.Month(), from.Day(), r.From.Hour(), r.From.Minute(), r.From.Second(), r.From.Nanosecond(), time.UTC)
		if !from.Before(wall(r.From)) { // the length is a part of a day
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

// Shifted gives the time that lies as far from the start of r as t does from the start of another range, on the clock on the wall.
func (r *Range) Shifted(t time.Time, other *Range) time.Time {
	return unwall(wall(r.From).Add(wall(t).Sub(wall(other.From))), r.From.Location())
}

// unfinishedDay reports whether a range of hours begins with a day and ends with the present: it is compared with all of the days
// before.
func (r *Range) unfinishedDay() bool {
	if r.Interval != query.Hour || r.explicit || r.wholeOnly || r.toGiven || !r.to.Relative() {
		return false
	}
	return r.from.Relative() && !strings.ContainsRune("sMh", rune(r.from.Unit))
}

func wholeWeeks(m filter.Moment) bool {
	return m.Count > 0 && (m.Unit == 'w' || m.Unit == 'd' && m.Count%7 == 0)
}

// shiftLower puts the first event that counts as far after the start of p as it is in r.
func (p *Range) shiftLower(r *Range) {
	p.Lower = unwall(wall(p.From).Add(wall(r.Lower).Sub(wall(r.From))), p.From.Location())
	if r.Lower.Before(r.From) {
		p.Lower = p.lower()
	}
}

// wall gives what a clock on the wall shows at t, as if there were no zones, so that differences count days as 24 hours.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

func unwall(t time.Time, zone *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
}

// Day is how the start of a bucket is written in days (contract: trends.md, section 3).
func (r *Range) Day(start time.Time) string {
	if r.Interval.Clock() > 0 {
		return start.Format(time.DateTime)
	}
	return start.Format(time.DateOnly)
}

// Label is what people call a bucket.
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

// weekLabel names the days of a week that lie in the range.
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
