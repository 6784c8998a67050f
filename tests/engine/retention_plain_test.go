package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// This file answers retentions in plain Go, straight from the definitions and as slowly as it likes.

// retentionMember is an actor in a row, with the columns that it is in and what its events add up to there.
type retentionMember struct {
	actor, value string
	row          int
	amounts      map[int]float64
}

// retentionRow is what is compared of a row of the answer.
type retentionRow struct {
	Values []retentionCell `json:"values"`
	Label  string          `json:"label"`
	Date   string          `json:"date"`
	Value  *string         `json:"breakdown_value"`
}

type retentionCell struct {
	Count  float64  `json:"count"`
	Label  string   `json:"label"`
	Amount *float64 `json:"aggregation_value"`
}

// starts are the beginnings of the rows, and last that of the period behind them.
func (q *retentionQuery) starts() (starts []time.Time, last time.Time) {
	read := func(text string) time.Time {
		form := time.DateOnly
		if strings.Contains(text, "T") {
			form = "2006-01-02T15:04:05"
		}
		t, err := time.ParseInLocation(form, text, q.location())
		if err != nil {
			panic(err)
		}
		return t
	}
	last = q.following(q.bucketOf(read(q.to)))
	first := last
	switch q.from {
	case "all":
		first = q.bucketOf(q.earliest)
	case "":
		for range q.columns {
			switch q.interval {
			case "hour":
				first = first.Add(-time.Hour)
			case "day":
				first = first.AddDate(0, 0, -1)
			case "week":
				first = first.AddDate(0, 0, -7)
			case "month":
				first = first.AddDate(0, -1, 0)
			}
		}
	default:
		first = q.bucketOf(read(q.from))
	}
	for t := first; t.Before(last); t = q.following(t) {
		starts = append(starts, t)
	}
	return starts, last
}

func (q *retentionQuery) actorOf(e *trendEvent) string {
	if q.groups {
		return e.group
	}
	return e.person
}

// valueOf is an event's value of the breakdown; that of people is the one of now.
func (q *retentionQuery) valueOf(e *trendEvent) string {
	switch q.breakdown {
	case "browser":
		text, _ := e.Properties["browser"].(string)
		return text
	case "plan":
		return q.plans[e.person]
	case "event":
		return e.Event
	case "parity":
		if n, ok := e.number(); ok && int(n)%2 == 0 {
			return "even"
		}
		return "odd"
	}
	return ""
}

func (q *retentionQuery) matches(s *trendSeries, e *trendEvent) bool {
	return s.named(e) && s.passes(e)
}

// counts reports whether an event counts at all.
func (q *retentionQuery) counts(e *trendEvent, last time.Time) bool {
	common := trendSeries{filter: q.filter}
	day := e.Timestamp.In(q.location()).Weekday()
	return e.Timestamp.Before(last) && common.passes(e) && q.actorOf(e) != "" &&
		(len(q.weekdays) == 0 || slices.ContainsFunc(q.weekdays, func(n int) bool { return n%7 == int(day) }))
}

// earliest is the time of the first event that a condition holds for; zero for none.
func earliest(events []*trendEvent, holds func(*trendEvent) bool) time.Time {
	var out time.Time
	for _, e := range events {
		if holds(e) && (out.IsZero() || e.Timestamp.Before(out)) {
			out = e.Timestamp
		}
	}
	return out
}

// anchor is the time of the event that makes an actor's only cohort; zero for none.
func (q *retentionQuery) anchor(events []*trendEvent, first time.Time) time.Time {
	isStart := func(e *trendEvent) bool { return q.matches(&q.start, e) }
	var at time.Time
	switch q.kind {
	case "retention_recurring": // of windows only
		at = earliest(events, func(e *trendEvent) bool { return isStart(e) && !e.Timestamp.Before(first) })
	case "retention_first_time":
		at = earliest(events, isStart)
	case "retention_first_ever_occurrence":
		at = earliest(events, isStart)
		if !at.Equal(earliest(events, q.start.named)) {
			return time.Time{}
		}
	}
	if at.Before(first) {
		return time.Time{}
	}
	return at
}

// column is that of a distance in periods; -1 for none.
func (q *retentionQuery) column(distance int) int {
	if len(q.brackets) == 0 {
		if distance < q.columns {
			return distance
		}
		return -1
	}
	covered := 0
	for i, size := range q.brackets {
		if covered += size; distance <= covered {
			return i + 1
		}
	}
	return -1
}

func (q *retentionQuery) width() int {
	if len(q.brackets) > 0 {
		return len(q.brackets) + 1
	}
	return q.columns
}

// firstValue is the value of the first event of the start's name, the least of several at that time.
func (q *retentionQuery) firstValue(own []*trendEvent) string {
	at := earliest(own, q.start.named)
	var values []string
	for _, e := range own {
		if q.start.named(e) && e.Timestamp.Equal(at) {
			values = append(values, q.valueOf(e))
		}
	}
	if len(values) == 0 {
		return ""
	}
	return slices.Min(values)
}

// members finds who is in which rows and columns.
func (q *retentionQuery) members(events []trendEvent) []retentionMember {
	starts, last := q.starts()
	if len(starts) == 0 {
		return nil
	}
	all, byValue := map[string][]*trendEvent{}, map[[2]string][]*trendEvent{}
	for i := range events {
		if e := &events[i]; q.counts(e, last) {
			actor := q.actorOf(e)
			all[actor] = append(all[actor], e)
			byValue[[2]string{actor, q.valueOf(e)}] = append(byValue[[2]string{actor, q.valueOf(e)}], e)
		}
	}
	if q.kind == "retention_first_ever_occurrence" { // each actor has one value: that of the first event of the name
		clear(byValue)
		for actor, own := range all {
			byValue[[2]string{actor, q.firstValue(own)}] = own
		}
	}
	var out []retentionMember
	for key, own := range byValue {
		var found []retentionMember
		if q.rolling {
			found = q.windows(all[key[0]], own, starts)
		} else {
			found = q.calendar(own, starts, last)
		}
		for _, m := range found {
			m.actor, m.value = key[0], key[1]
			out = append(out, m)
		}
	}
	return out
}

// calendar finds the rows of one actor with one value.
func (q *retentionQuery) calendar(own []*trendEvent, starts []time.Time, last time.Time) []retentionMember {
	in := func(e *trendEvent, period int) bool {
		end := last
		if period+1 < len(starts) {
			end = starts[period+1]
		}
		return !e.Timestamp.Before(starts[period]) && e.Timestamp.Before(end)
	}
	var rows []int
	for period := range starts {
		switch q.kind {
		case "retention_recurring":
			if slices.ContainsFunc(own, func(e *trendEvent) bool { return in(e, period) && q.matches(&q.start, e) }) {
				rows = append(rows, period)
			}
		default:
			if at := q.anchor(own, starts[0]); !at.IsZero() && in(&trendEvent{Timestamp: at}, period) {
				rows = append(rows, period)
			}
		}
	}
	var out []retentionMember
	for _, row := range rows {
		m := retentionMember{row: row, amounts: map[int]float64{0: q.startAmount(own, func(e *trendEvent) bool { return in(e, row) })}}
		base := row
		if len(q.brackets) > 0 {
			base = rows[0]
		}
		for period := base + 1; period < len(starts); period++ {
			count, amount := 0, 0.0
			for _, e := range own {
				if in(e, period) && q.matches(&q.back, e) {
					count++
					amount += q.amount(e)
				}
			}
			least := q.minimum
			if q.aggregation != "" {
				least = 1
			}
			if column := q.column(period - base); column > 0 && count >= least {
				m.amounts[column] += amount
			}
		}
		if q.cumulative {
			for column := range slices.Max(slices.Collect(maps.Keys(m.amounts))) {
				m.amounts[column] += 0
			}
		}
		out = append(out, m)
	}
	return out
}

func (q *retentionQuery) amount(e *trendEvent) float64 {
	if q.ofPeople {
		return q.seats[e.person]
	}
	n, _ := e.number()
	return n
}

// startAmount is what the events of a cohort add up to in its own period.
func (q *retentionQuery) startAmount(own []*trendEvent, in func(*trendEvent) bool) float64 {
	total := 0.0
	begin := earliest(own, func(e *trendEvent) bool { return in(e) && q.matches(&q.start, e) })
	for _, e := range own {
		if in(e) && q.matches(&q.start, e) {
			total += q.amount(e)
		}
		if q.start.event != q.back.event && in(e) && q.matches(&q.back, e) && e.Timestamp.After(begin) {
			total += q.amount(e)
		}
	}
	return total
}

// windows finds the row of one actor with one value, in windows from its start; all are its events of any value.
func (q *retentionQuery) windows(all, own []*trendEvent, starts []time.Time) []retentionMember {
	at := q.anchor(all, starts[0])
	if at.IsZero() {
		return nil
	}
	size := map[string]int{"hour": 1, "day": 24, "week": 7, "month": 30}[q.interval]
	m := retentionMember{row: q.borders(starts[0], at) / size, amounts: map[int]float64{0: 0}}
	there := false
	for _, e := range own {
		isStart := q.matches(&q.start, e) || q.kind == "retention_first_ever_occurrence" && q.start.named(e)
		if e.Timestamp.Before(at) || !isStart && !q.matches(&q.back, e) {
			continue
		}
		there = true
		if column := q.column(q.borders(at, e.Timestamp) / size); column >= 0 && q.matches(&q.back, e) && q.borders(at, e.Timestamp) >= size {
			m.amounts[column] = 0
		}
	}
	if !there || m.row >= len(starts) {
		return nil
	}
	return []retentionMember{m}
}

// borders is how many borders between hours, or between days, a clock passed from one time to a later one.
func (q *retentionQuery) borders(from, to time.Time) int {
	zone := q.location()
	if q.interval == "hour" || q.interval == "day" {
		floor := func(t time.Time) time.Time {
			t = t.In(zone)
			return t.Add(-time.Duration(t.Minute()) * time.Minute).Truncate(time.Minute)
		}
		return int(floor(to).Sub(floor(from)).Hours())
	}
	day := func(t time.Time) time.Time {
		t = t.In(zone)
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return int(day(to).Sub(day(from)).Hours() / 24)
}

// evaluate gives the rows of the answer.
func (q *retentionQuery) evaluate(events []trendEvent) []retentionRow {
	starts, _ := q.starts()
	matrices, sizes := map[string][][]retentionCell{}, map[string]float64{}
	if q.breakdown == "" {
		matrices[""] = q.empty(len(starts))
	}
	for _, m := range q.members(events) {
		if matrices[m.value] == nil {
			matrices[m.value] = q.empty(len(starts))
		}
		sizes[m.value]++
		for column, amount := range m.amounts {
			c := &matrices[m.value][m.row][column]
			c.Count++
			if c.Amount != nil {
				*c.Amount += amount
			}
		}
	}
	if q.aggregation == "avg" {
		for _, matrix := range matrices {
			for _, row := range matrix {
				for i := range row {
					if row[i].Count > 0 {
						*row[i].Amount /= row[i].Count
					}
				}
			}
		}
	}
	values := slices.SortedFunc(maps.Keys(matrices), func(x, y string) int { return cmp.Or(cmp.Compare(sizes[y], sizes[x]), cmp.Compare(x, y)) })
	if q.breakdown != "" && len(values) > q.limit {
		rest := q.empty(len(starts))
		for _, value := range values[q.limit:] {
			for i, row := range matrices[value] {
				for k, c := range row {
					rest[i][k].Count += c.Count
					if c.Amount != nil {
						*rest[i][k].Amount += *c.Amount
					}
				}
			}
		}
		matrices[plainOther], values = rest, append(values[:q.limit:q.limit], plainOther)
	}
	var out []retentionRow
	for _, value := range values {
		for i, start := range starts {
			row := retentionRow{Values: matrices[value][i], Label: fmt.Sprintf("%s %d", q.word(), i), Date: start.Format(time.RFC3339)}
			if q.breakdown != "" {
				row.Value = &value
			}
			out = append(out, row)
		}
	}
	return out
}

func (q *retentionQuery) word() string {
	return map[string]string{"hour": "Hour", "day": "Day", "week": "Week", "month": "Month"}[q.interval]
}

// empty gives so many rows of zeros.
func (q *retentionQuery) empty(rows int) [][]retentionCell {
	out := make([][]retentionCell, rows)
	for i := range out {
		next := 1
		for k := range q.width() {
			c := retentionCell{Label: fmt.Sprintf("%s %d", q.word(), k)}
			if len(q.brackets) > 0 && k > 0 {
				size := q.brackets[k-1]
				c.Label = fmt.Sprintf("%s %d-%d", q.word(), next, next+size-1)
				if size == 1 {
					c.Label = fmt.Sprintf("%s %d", q.word(), next)
				}
				next += size
			}
			if q.aggregation != "" {
				c.Amount = new(float64)
			}
			out[i] = append(out[i], c)
		}
	}
	return out
}
