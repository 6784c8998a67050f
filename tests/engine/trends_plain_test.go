package engine_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file answers trends in plain Go, straight from the definitions and as slowly as it likes: it goes through all events
// for each point.

const (
	plainNull  = "$$_posthog_breakdown_null_$$"
	plainOther = "$$_posthog_breakdown_other_$$"
)

// plainRange is a period: what counts, and its buckets.
type plainRange struct {
	lower, from, to time.Time
	starts          []time.Time
}

func (q *trendQuery) location() *time.Location {
	zone, err := time.LoadLocation(q.zone)
	if err != nil {
		panic(err)
	}
	return zone
}

func (q *trendQuery) total() bool { return q.display == "BoldNumber" }

// bucketOf is the start of the bucket of a time.
func (q *trendQuery) bucketOf(t time.Time) time.Time {
	t = t.In(q.location())
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
	switch q.unit() {
	case "hour":
		return t.Truncate(time.Minute).Add(-time.Duration(t.Minute()) * time.Minute)
	case "week":
		for int(midnight.Weekday()) != q.weekStart {
			midnight = midnight.AddDate(0, 0, -1)
		}
	case "month":
		midnight = midnight.AddDate(0, 0, 1-midnight.Day())
	}
	return midnight
}

func (q *trendQuery) unit() string {
	if q.total() {
		return "day"
	}
	return q.interval
}

func (q *trendQuery) following(t time.Time) time.Time {
	switch q.unit() {
	case "hour":
		return t.Add(time.Hour)
	case "week":
		return t.AddDate(0, 0, 7)
	case "month":
		return t.AddDate(0, 1, 0)
	}
	return t.AddDate(0, 0, 1)
}

func (q *trendQuery) ranges() []plainRange {
	zone := q.location()
	from, err := time.ParseInLocation(time.DateOnly, q.from, zone)
	if err != nil {
		panic(err)
	}
	last, err := time.ParseInLocation(time.DateOnly, q.to, zone)
	if err != nil {
		panic(err)
	}
	days := int(math.Round(last.Sub(from).Hours() / 24))
	to := last.AddDate(0, 0, 1).Add(-time.Microsecond)
	if q.unit() == "hour" {
		to = last
	}
	out := []plainRange{{from: from, to: to}}
	switch q.compareTo {
	case "":
	case "before":
		switch {
		case q.unit() == "hour" && days == 0: // the same moment of the day before
			begin := from.AddDate(0, 0, -1)
			out = append(out, plainRange{from: begin, to: begin})
		case q.unit() == "hour": // the same hours, so many days before; the last one, which the range begins with, to its end
			begin := from.AddDate(0, 0, -days)
			out = append(out, plainRange{from: begin, to: begin.AddDate(0, 0, days).Add(time.Hour - time.Microsecond)})
		default:
			begin := from.AddDate(0, 0, -days-1)
			out = append(out, plainRange{from: begin, to: begin.AddDate(0, 0, days+1).Add(-time.Microsecond)})
		}
	default:
		back := map[string]int{"-3d": 3, "-1w": 7}[q.compareTo]
		begin := from.AddDate(0, 0, -back)
		end := to.AddDate(0, 0, -back)
		out = append(out, plainRange{from: begin, to: end})
	}
	for i := range out {
		out[i].lower = out[i].from
		for t := q.bucketOf(out[i].from); !t.After(out[i].to); t = q.following(t) {
			out[i].starts = append(out[i].starts, t)
		}
	}
	return out
}

func (s *trendSeries) named(e *trendEvent) bool { return s.event == "" || s.event == e.Event }

func (s *trendSeries) passes(e *trendEvent) bool {
	browser, _ := e.Properties["browser"].(string)
	switch s.filter {
	case "chrome":
		return browser == "Chrome" || browser == "Opera"
	case "not_chrome":
		return browser != "Chrome"
	case "large":
		n, ok := e.number()
		return ok && n >= 5
	case "pro":
		plan, _ := e.plan.(string)
		return strings.Contains(strings.ToLower(plan), "pr")
	}
	return true
}

func (e *trendEvent) number() (float64, bool) {
	switch n := e.Properties["n"].(type) {
	case int:
		return float64(n), true
	case string:
		f, err := strconv.ParseFloat(n, 64)
		return f, err == nil
	}
	return 0, false
}

func (q *trendQuery) valuesOf(e *trendEvent) string {
	var parts []string
	for _, name := range q.breakdown {
		value := ""
		switch name {
		case "browser":
			value, _ = e.Properties["browser"].(string)
		case "plan":
			value, _ = e.plan.(string)
		case "parity":
			value = "odd"
			if n, ok := e.number(); ok && int(n)%2 == 0 {
				value = "even"
			}
		}
		if value == "" {
			value = plainNull
		}
		parts = append(parts, value)
	}
	return strings.Join(parts, "\x00")
}

// counted is an event, and when it counts.
type counted struct {
	e    *trendEvent
	when time.Time
}

// matching are the events of a series in a range, by breakdown value; those of windows may lie before it.
func (q *trendQuery) matching(s *trendSeries, r plainRange, events []trendEvent) map[string][]counted {
	out := map[string][]counted{}
	lower := r.lower
	switch {
	case q.windowed(s) && q.total():
		lower = r.to.AddDate(0, 0, -s.active())
	case q.windowed(s):
		lower = r.starts[0].AddDate(0, 0, -s.active()-1)
	}
	for _, person := range firstEvents(s, r, events) {
		if person.ok {
			key := q.valuesOf(person.first)
			out[key] = append(out[key], counted{person.first, person.first.Timestamp})
		}
	}
	if strings.HasPrefix(s.math, "first") {
		return out
	}
	for i := range events {
		e := &events[i]
		if !s.named(e) || !s.passes(e) || e.Timestamp.Before(lower) || e.Timestamp.After(r.to) || s.math == "unique_group" && e.group == "" {
			continue
		}
		key := q.valuesOf(e)
		out[key] = append(out[key], counted{e, e.Timestamp})
	}
	return out
}

type firstEvent struct {
	first *trendEvent
	ok    bool
}

func firstEvents(s *trendSeries, r plainRange, events []trendEvent) map[string]firstEvent {
	out := map[string]firstEvent{}
	if !strings.HasPrefix(s.math, "first") {
		return out
	}
	for i := range events {
		e := &events[i]
		if !s.named(e) || e.Timestamp.After(r.to) || s.math == "first_matching_event_for_user" && !s.passes(e) {
			continue
		}
		if known, ok := out[e.person]; !ok || e.Timestamp.Before(known.first.Timestamp) {
			out[e.person] = firstEvent{first: e}
		}
	}
	for person, f := range out {
		for i := range events {
			e := &events[i]
			if e.person == person && s.named(e) && s.passes(e) && e.Timestamp.Equal(f.first.Timestamp) {
				f.ok = !e.Timestamp.Before(r.lower)
			}
		}
		out[person] = f
	}
	return out
}

// active is the length of a window in days; 0 for other maths.
func (s *trendSeries) active() int {
	return map[string]int{"weekly_active": 7, "monthly_active": 30}[s.math]
}

// windowed reports whether a series of active users does not count as that of the buckets alone.
func (q *trendQuery) windowed(s *trendSeries) bool {
	return s.active() == 7 && (q.interval == "day" || q.interval == "hour") || s.active() == 30 && q.interval != "month"
}

// numberOf is the math of a series over events.
func numberOf(math string, all []counted) float64 {
	people, sessions, groups := map[string]float64{}, map[any]bool{}, map[string]bool{}
	var numbers, counts []float64
	for _, c := range all {
		people[c.e.person]++
		sessions[c.e.Properties["$session_id"]] = true
		groups[c.e.group] = true
		if n, ok := c.e.number(); ok {
			numbers = append(numbers, n)
		}
	}
	counts = slices.Collect(maps.Values(people))
	switch math {
	case "dau", "weekly_active", "monthly_active", "first_time_for_user", "first_matching_event_for_user":
		return float64(len(people))
	case "unique_session":
		return float64(len(sessions))
	case "unique_group":
		return float64(len(groups))
	case "hogql":
		return 2 * float64(len(all))
	case "total":
		return float64(len(all))
	case "avg_count_per_actor":
		return plainStatistic("avg", counts)
	case "max_count_per_actor":
		return plainStatistic("max", counts)
	}
	return plainStatistic(math, numbers)
}

func plainStatistic(name string, x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	total := 0.0
	for _, v := range x {
		total += v
	}
	quantile := func(q float64) float64 {
		at := q * float64(len(x)-1)
		low := int(at)
		high := min(low+1, len(x)-1)
		return x[low] + (at-float64(low))*(x[high]-x[low])
	}
	switch name {
	case "sum":
		return total
	case "avg":
		return total / float64(len(x))
	case "min":
		return x[0]
	case "max":
		return x[len(x)-1]
	case "median":
		return quantile(0.5)
	case "p25":
		return quantile(0.25)
	case "p75":
		return quantile(0.75)
	case "p90":
		return quantile(0.9)
	}
	panic("no statistic " + name)
}

// points are the plain points of one value.
func (q *trendQuery) points(s *trendSeries, r plainRange, all []counted) (out []float64, some []bool) {
	out, some = make([]float64, len(r.starts)), make([]bool, len(r.starts))
	running := q.display == "ActionsLineGraphCumulative"
	seen := map[string]bool{}
	slices.SortStableFunc(all, func(a, b counted) int { return a.when.Compare(b.when) })
	for i, start := range r.starts {
		var here []counted
		end := q.following(start)
		for _, c := range all {
			switch {
			case q.windowed(s) && !q.total():
				windowEnd, windowStart := start.AddDate(0, 0, 1), start.AddDate(0, 0, 1-s.active())
				if q.unit() == "hour" {
					windowEnd = end
					windowStart = end.Add(-time.Duration(s.active()) * 24 * time.Hour)
				}
				if c.when.Before(windowEnd) && !c.when.Before(windowStart) {
					here = append(here, c)
				}
			case !c.when.Before(start) && c.when.Before(end):
				if who := map[string]string{"dau": c.e.person, "unique_group": c.e.group, "weekly_active": c.e.person, "monthly_active": c.e.person}[s.math]; running && who != "" {
					if seen[who] {
						continue
					}
					seen[who] = true
				}
				here = append(here, c)
			}
		}
		out[i], some[i] = numberOf(s.math, here), len(here) > 0
	}
	return out, some
}

// plainLine is one value of a series.
type plainLine struct {
	values []string
	points []float64
	seen   []bool // whether a point is of any event
	number float64
	other  bool
}

func (l *plainLine) missing() int {
	switch {
	case l.other:
		return 2
	case slices.Contains(l.values, plainNull):
		return 1
	}
	return 0
}

func plainSum(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total += v
	}
	return total
}

func evaluate(q *trendQuery, events []trendEvent) []trendItem {
	var out []trendItem
	for p, r := range q.ranges() {
		for i := range q.series {
			s := &q.series[i]
			byValue := q.matching(s, r, events)
			if len(q.breakdown) == 0 && len(byValue) == 0 {
				byValue[""] = nil
			}
			var lines []plainLine
			for value, all := range byValue {
				l := plainLine{values: strings.Split(value, "\x00")}
				if q.total() {
					l.number = numberOf(s.math, all)
				} else {
					l.points, l.seen = q.points(s, r, all)
					if q.windowed(s) && plainSum(l.points) == 0 && len(q.breakdown) > 0 {
						continue
					}
				}
				lines = append(lines, l)
			}
			for _, l := range q.shown(s, lines) {
				item := trendItem{Series: i, Data: l.points, Aggregated: l.number}
				if len(q.breakdown) > 0 {
					item.Values = l.values
				}
				if q.compareTo != "" {
					item.Period = []string{"current", "previous"}[p]
				}
				if !q.total() {
					for _, start := range r.starts {
						form := time.DateOnly
						if q.unit() == "hour" {
							form = time.DateTime
						}
						item.Days = append(item.Days, start.Format(form))
					}
					item.Count = plainSum(l.points)
					if n := len(l.points); n > 0 && q.display == "ActionsLineGraphCumulative" {
						item.Count = l.points[n-1]
					}
				}
				out = append(out, item)
			}
		}
	}
	return out
}

// shown ranks lines, puts those past the limit together, and makes the final points.
func (q *trendQuery) shown(s *trendSeries, lines []plainLine) []plainLine {
	size := func(l plainLine) float64 {
		if q.total() {
			return l.number
		}
		return plainSum(l.points)
	}
	byRank := func(a, b plainLine) int {
		return cmp.Or(cmp.Compare(a.missing(), b.missing()), cmp.Compare(size(b), size(a)), slices.Compare(a.values, b.values))
	}
	slices.SortFunc(lines, func(a, b plainLine) int { return slices.Compare(a.values, b.values) })
	slices.SortStableFunc(lines, byRank)
	if len(q.breakdown) > 0 && len(lines) > q.limit && !q.total() {
		rest := plainLine{other: true, points: make([]float64, len(lines[0].points))}
		for range q.breakdown {
			rest.values = append(rest.values, plainOther)
		}
		for i := range rest.points {
			var all []float64
			for _, l := range lines[q.limit:] {
				if l.seen[i] {
					all = append(all, l.points[i])
				}
			}
			merge := "sum"
			if s.math == "min" || s.math == "max" || s.math == "avg" {
				merge = s.math
			}
			rest.points[i] = plainStatistic(merge, all)
		}
		lines = append(lines[:q.limit:q.limit], rest)
	}
	for i := range lines {
		l := &lines[i]
		if q.display == "ActionsLineGraphCumulative" {
			for k := 1; k < len(l.points); k++ {
				l.points[k] += l.points[k-1]
			}
		}
		if q.smoothing > 1 {
			smooth := make([]float64, len(l.points))
			for k := range l.points {
				part := l.points[max(0, k-q.smoothing+1) : k+1]
				smooth[k] = math.Floor(plainSum(part) / float64(len(part)))
			}
			l.points = smooth
		}
	}
	slices.SortStableFunc(lines, byRank)
	return lines
}
