package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file tells in plain Go who is in a cohort, from the JSON of its filters and as slowly as it likes.

type plainMembers struct {
	*memberWorld

	now time.Time // in the project's zone
}

// holds reports whether somebody is in the set of a filter or group. Nobody of whom anything is known has an empty name.
func (p *plainMembers) holds(filter map[string]any, name string) bool {
	values, _ := filter["values"].([]any)
	switch filter["type"] {
	case "AND":
		return !slices.ContainsFunc(values, func(v any) bool { return !p.holds(v.(map[string]any), name) })
	case "OR":
		return slices.ContainsFunc(values, func(v any) bool { return p.holds(v.(map[string]any), name) })
	}
	return p.leaf(filter, name) != (filter["negation"] == true)
}

func (p *plainMembers) leaf(leaf map[string]any, name string) bool {
	switch leaf["type"] {
	case "cohort":
		return slices.Contains(p.cohorts[leaf["value"].(int)], name)
	case "behavioral":
		return p.behaves(leaf, name)
	}
	for _, person := range p.people {
		if person.name == name && person.known {
			if leaf["type"] == "person_metadata" {
				border := p.date(leaf["value"].(string))
				return leaf["operator"] == "is_date_before" && person.created.Before(border) || leaf["operator"] == "is_date_after" && person.created.After(border)
			}
			text, number, set := plainProperty(person.plan)
			return plainCompare(leaf, text, number, set)
		}
	}
	return false
}

// plainProperty is a property as text and, if it is one, as a number.
func plainProperty(v any) (text string, number *float64, set bool) {
	switch v := v.(type) {
	case nil:
		return "", nil, false
	case string:
		return v, nil, v != "-"
	case int:
		f := float64(v)
		return strconv.Itoa(v), &f, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), &v, true
	}
	return fmt.Sprint(v), nil, true
}

func plainCompare(filter map[string]any, text string, number *float64, set bool) bool {
	value, isText := filter["value"].(string)
	list, _ := filter["value"].([]any)
	if isText {
		list = []any{value}
	}
	switch filter["operator"] {
	case "exact":
		return set && slices.Contains(list, any(text))
	case "is_not":
		return !set || !slices.Contains(list, any(text))
	case "icontains":
		return set && strings.Contains(strings.ToLower(text), strings.ToLower(value))
	case "not_icontains":
		return !set || !strings.Contains(strings.ToLower(text), strings.ToLower(value))
	case "is_set":
		return set
	case "is_not_set":
		return !set
	case "gte":
		return number != nil && *number >= 6
	case "lt":
		return number != nil && *number < 6
	}
	panic("no operator")
}

// passes reports whether the filters on events hold for one.
func (p *plainMembers) passes(leaf map[string]any, e *memberEvent) bool {
	filters, _ := leaf["event_filters"].([]any)
	for _, f := range filters {
		filter := f.(map[string]any)
		switch {
		case filter["type"] == "event" && !plainCompare(filter, e.browser, nil, e.browser != "-"):
			return false
		case filter["key"] == "properties.browser = 'Chrome'" && e.browser != "Chrome":
			return false
		case strings.HasPrefix(filter["key"].(string), "not ") && p.matches(2, e) && !slices.Contains(p.cohorts[6], e.person):
			return false
		}
	}
	return true
}

// matches reports whether an event matches an action.
func (p *plainMembers) matches(action int, e *memberEvent) bool {
	switch action {
	case 1:
		return e.name == memberEvents[0] && e.browser == "Chrome"
	case 2:
		return e.name == memberEvents[1] || e.name == memberEvents[2]
	case 3:
		return slices.Contains(p.cohorts[5], e.person)
	}
	return true
}

// is reports whether an event is what a leaf asks for in two of its fields.
func (p *plainMembers) is(e *memberEvent, key, typ any) bool {
	if typ == "events" {
		return e.name == key
	}
	n, err := strconv.Atoi(fmt.Sprint(key))
	if err != nil {
		panic(err)
	}
	return p.matches(n, e)
}

// of are the events of somebody that two fields of a leaf ask for, in order. Filtered leaves out those for which the filters do not hold.
func (p *plainMembers) of(leaf map[string]any, name, key string, filtered bool) []*memberEvent {
	var out []*memberEvent
	typ := map[string]string{"key": "event_type", "seq_event": "seq_event_type"}[key]
	for i := range p.events {
		if e := &p.events[i]; e.person == name && p.is(e, leaf[key], leaf[typ]) && (!filtered || p.passes(leaf, e)) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *memberEvent) int { return a.at.Compare(b.at) })
	return out
}

func between(events []*memberEvent, from, to time.Time) []*memberEvent {
	var out []*memberEvent
	for _, e := range events {
		if !e.at.Before(from) && !e.at.After(to) {
			out = append(out, e)
		}
	}
	return out
}

func plainMidnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

func plainLast(t time.Time) time.Time {
	return plainMidnight(t).AddDate(0, 0, 1).Add(-time.Microsecond)
}

// plainBack goes back on the same clock. A month that is too short gives its last day.
func plainBack(t time.Time, n int, unit string) time.Time {
	switch unit {
	case "minute":
		return t.Add(-time.Duration(n) * time.Minute)
	case "hour":
		return t.Add(-time.Duration(n) * time.Hour)
	case "day":
		return t.AddDate(0, 0, -n)
	case "week":
		return t.AddDate(0, 0, -7*n)
	case "year":
		n *= 12
	}
	for day := t.Day(); ; day-- {
		out := time.Date(t.Year(), t.Month()-time.Month(n), day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
		if out.Day() == day {
			return out
		}
	}
}

func plainBegin(t time.Time, n int, unit string) time.Time {
	back := plainBack(t, n, unit)
	switch unit {
	case "minute":
		return back
	case "hour":
		return back.Add(-time.Duration(back.Minute())*time.Minute - time.Duration(back.Second())*time.Second - time.Duration(back.Nanosecond()))
	}
	return plainMidnight(back)
}

// date reads a date of a filter.
func (p *plainMembers) date(text string) time.Time {
	if n, ok := strings.CutPrefix(text, "-"); ok {
		count, err := strconv.Atoi(n[:len(n)-1])
		if err != nil {
			panic(err)
		}
		return plainBack(p.now, count, map[string]string{"d": "day", "h": "hour"}[n[len(n)-1:]])
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, p.now.Location()); err == nil {
			return t
		}
	}
	panic("no date: " + text)
}

// window is the window of a leaf.
func (p *plainMembers) window(leaf map[string]any) (from, to time.Time) {
	to = plainLast(p.now)
	explicit, _ := leaf["explicit_datetime"].(string)
	if explicit == "" {
		return plainBegin(p.now, leaf["time_value"].(int), leaf["time_interval"].(string)), to
	}
	from = p.date(explicit)
	if strings.HasSuffix(explicit, "h") {
		from = plainBegin(from, 0, "hour")
	} else {
		from = plainMidnight(from)
	}
	if end, _ := leaf["explicit_datetime_to"].(string); end != "" {
		to = plainLast(p.date(end))
	}
	return from, to
}

// recent is where the window of seq_time_value begins.
func (p *plainMembers) recent(leaf map[string]any) (from time.Time) {
	return plainBegin(p.now, leaf["seq_time_value"].(int), leaf["seq_time_interval"].(string))
}

func (p *plainMembers) behaves(leaf map[string]any, name string) bool {
	all, passing := p.of(leaf, name, "key", false), p.of(leaf, name, "key", true)
	from, to := p.window(leaf)
	today := plainLast(p.now)
	switch leaf["value"] {
	case "performed_event":
		return len(between(passing, from, to)) > 0
	case "performed_event_multiple":
		return p.often(leaf, passing, to)
	case "performed_event_first_time":
		all, passing = between(all, time.Time{}, to), between(passing, time.Time{}, to)
		return len(passing) > 0 && !all[0].at.Before(from) && passing[0].at.Equal(all[0].at)
	case "performed_event_sequence":
		return p.inSequence(leaf, between(all, from, to), between(p.of(leaf, name, "seq_event", false), from, to))
	case "stopped_performing_event":
		return len(between(passing, from, to)) > 0 && len(between(passing, p.recent(leaf), today)) == 0
	case "restarted_performing_event":
		begin := p.recent(leaf)
		gap := plainLast(begin)
		if unit := leaf["seq_time_interval"]; unit == "minute" || unit == "hour" {
			gap = begin.Add(-time.Microsecond)
		}
		first := len(all) == 0 || !all[0].at.Before(begin)
		return len(between(all, begin, today)) > 0 && !first && len(between(all, from, gap)) == 0
	case "performed_event_regularly":
		return p.regular(leaf, passing)
	}
	panic("no behavior")
}

// often reports whether an event occurs as often as it should, from a moment on.
func (p *plainMembers) often(leaf map[string]any, events []*memberEvent, to time.Time) bool {
	from := plainBack(p.now, leaf["time_value"].(int), leaf["time_interval"].(string))
	if explicit, _ := leaf["explicit_datetime"].(string); explicit != "" {
		from = p.date(explicit)
	}
	if leaf["explicit_datetime_to"] == nil {
		to = p.now
	}
	return plainOften(leaf, len(between(events, from.Add(time.Microsecond), to)))
}

// plainOften compares a number of events; none are never enough.
func plainOften(leaf map[string]any, n int) bool {
	value := leaf["operator_value"].(int)
	if n == 0 {
		return false
	}
	switch leaf["operator"] {
	case "gte":
		return n >= value
	case "lte":
		return n <= value
	case "gt":
		return n > value
	case "lt":
		return n < value
	}
	return n == value
}

// inSequence looks for two different events, the second at most so much later.
func (p *plainMembers) inSequence(leaf map[string]any, first, second []*memberEvent) bool {
	unit := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[leaf["seq_time_interval"].(string)]
	most := time.Duration(leaf["seq_time_value"].(int)) * unit
	for _, a := range first {
		for _, b := range second {
			if later := b.at.Sub(a.at); a != b && later >= 0 && later <= most {
				return true
			}
		}
	}
	return false
}

// regular counts the periods before today in which an event occurs so often as it should.
func (p *plainMembers) regular(leaf map[string]any, events []*memberEvent) bool {
	end := plainMidnight(p.now).Add(-time.Microsecond)
	length, unit := leaf["time_value"].(int), leaf["time_interval"].(string)
	if unit == "year" {
		length, unit = 12*length, "month"
	}
	counts := map[int]int{}
	from := plainBack(plainMidnight(p.now), length*leaf["total_periods"].(int), unit)
	for _, e := range events {
		if !e.at.After(end) && !e.at.Before(from) {
			counts[plainUnits(e.at.In(end.Location()), end, unit)/length]++
		}
	}
	periods := 0
	for i := range leaf["total_periods"].(int) {
		if plainOften(leaf, counts[i]) {
			periods++
		}
	}
	return periods >= leaf["min_periods"].(int)
}

// plainUnits counts the whole units from a time to the end of a day.
func plainUnits(t, end time.Time, unit string) int {
	switch unit {
	case "minute":
		return int(end.Truncate(time.Minute).Sub(t.Truncate(time.Minute)) / time.Minute)
	case "hour":
		return int(plainBegin(end, 0, "hour").Sub(plainBegin(t, 0, "hour")) / time.Hour)
	case "month":
		n := 0
		for next := (end.Year()-t.Year())*12 + int(end.Month()-t.Month()); n < next; n++ {
			if n+1 == next && t.Day() > end.Day() {
				break
			}
		}
		return n
	}
	days := 0
	for day := plainMidnight(t); day.AddDate(0, 0, days+1).Before(end); days++ {
	}
	if unit == "week" {
		return days / 7
	}
	return days
}
