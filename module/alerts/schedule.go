package alerts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// NextCheck returns when an alert is checked next after now. Checks that are daily or rarer take their minute and second from now, so that not all
// alerts are due at once: daily ones after one o'clock on the next day in the project's zone, weekly ones after three o'clock on Monday, monthly ones
// after four o'clock on the first. The others keep their rhythm. A start time sets another time of the day for daily and rarer checks, and the one that the
// rhythm of the others starts from.
func NextCheck(a *registry.Alert, now time.Time, zone *time.Location) time.Time {
	return afterQuietHours(a.QuietHours, nominalCheck(a, now, zone), zone)
}

// steps are the intervals with a fixed duration.
var steps = map[registry.AlertInterval]time.Duration{
	registry.AlertRealTime: 2 * time.Minute, registry.AlertQuarterly: 15 * time.Minute, registry.AlertHourly: time.Hour,
}

func nominalCheck(a *registry.Alert, now time.Time, zone *time.Location) time.Time {
	if a.StartTime != nil {
		return nextStart(a, *a.StartTime, now, zone)
	}
	if step := steps[a.Interval]; step > 0 {
		if a.NextCheckAt.IsZero() || a.NextCheckAt.After(now) {
			return now.Add(step)
		}
		missed := now.Sub(a.NextCheckAt) / step
		return a.NextCheckAt.Add((missed + 1) * step)
	}
	local := now.In(zone)
	year, month, day := local.Date()
	at := func(month time.Month, day, hour int) time.Time {
		return time.Date(year, month, day, hour, local.Minute(), local.Second(), 0, zone).UTC()
	}
	switch a.Interval { //nolint:exhaustive // the others are above
	case registry.AlertWeekly:
		return at(month, day+1+(7-int(local.Weekday()))%7, 3)
	case registry.AlertMonthly:
		return at(month+1, 1, 4)
	}
	return at(month, day+1, 1)
}

// nextStart returns the next check of an alert whose checks start at a minute of the day. Frequent checks wait for that minute only before the first one.
func nextStart(a *registry.Alert, minute int, now time.Time, zone *time.Location) time.Time {
	year, month, day := now.In(zone).Date()
	at := func(month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, minute, 0, 0, zone).UTC()
	}
	start := at(month, day)
	if step := steps[a.Interval]; step > 0 {
		if start.After(now) && a.NextCheckAt.IsZero() && a.LastCheckedAt.IsZero() {
			return start
		}
		next := start.Add(now.Sub(start) / step * step)
		if !next.After(now) {
			next = next.Add(step)
		}
		return next
	}
	following := at(month, day+1)
	switch a.Interval { //nolint:exhaustive // the others are above
	case registry.AlertWeekly:
		monday := day + (8-int(now.In(zone).Weekday()))%7
		start, following = at(month, monday), at(month, monday+7)
	case registry.AlertMonthly:
		start, following = at(month, 1), at(month+1, 1)
	}
	if start.After(now) {
		return start
	}
	return following
}

// cadence returns the approximate time between two checks of an alert.
func cadence(i registry.AlertInterval) time.Duration {
	switch i { //nolint:exhaustive // the others are steps
	case registry.AlertDaily:
		return day
	case registry.AlertWeekly:
		return 7 * day
	case registry.AlertMonthly:
		return 30 * day
	}
	return steps[i]
}

const day = 24 * time.Hour

// longestWait returns how far away the next check of an alert can be, and at most some days more.
func longestWait(a *registry.Alert) time.Duration {
	wait := cadence(a.Interval)
	if wait >= day || a.StartTime != nil || len(a.QuietHours) > 0 {
		wait += 3 * day // the rest of a day, quiet hours and the longest month
	}
	return wait + background.ClockSkew
}

// isWeekend reports whether a day is one on which alerts may rest.
func isWeekend(now time.Time, zone *time.Location) bool {
	day := now.In(zone).Weekday()
	return day == time.Saturday || day == time.Sunday
}

const dayMinutes = 24 * 60

// isQuiet reports whether a minute of a day is in quiet hours, and until when.
func isQuiet(hours []registry.QuietHours, minute int) (until int, quiet bool) {
	for _, q := range hours {
		switch {
		case q.Start < q.End && minute >= q.Start && minute < q.End:
			return q.End, true
		case q.Start > q.End && minute >= q.Start:
			return dayMinutes + q.End, true
		case q.Start > q.End && minute < q.End:
			return q.End, true
		}
	}
	return 0, false
}

// afterQuietHours returns the first time at or after t that is not in quiet hours.
func afterQuietHours(hours []registry.QuietHours, t time.Time, zone *time.Location) time.Time {
	for range 4 * len(hours) { // more than can follow one another, even when clocks are set back in between
		local := t.In(zone)
		until, quiet := isQuiet(hours, local.Hour()*60+local.Minute())
		if !quiet {
			break
		}
		year, month, day := local.Date()
		next := time.Date(year, month, day, 0, until, 0, 0, zone)
		if !next.After(t) { // the clock is set back
			next = t.Add(time.Hour)
		}
		t = next.UTC()
	}
	return t
}

// The bounds of quiet hours.
const (
	maxQuietHours  = 5
	minQuietLength = 30 // minutes
)

var errQuietHours = errors.New("these quiet hours are not valid")

// ReadQuietHours reads the JSON of quiet hours and merges overlapping ones; null, an empty object and an empty list of windows mean none.
func ReadQuietHours(raw json.RawMessage) ([]registry.QuietHours, error) {
	var given struct {
		Windows []struct {
			Start *string `json:"start"`
			End   *string `json:"end"`
		} `json:"blocked_windows"`
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	if !strictly(raw, &given) {
		return nil, errQuietHours
	}
	if len(given.Windows) == 0 {
		return nil, nil
	}
	if len(given.Windows) > maxQuietHours {
		return nil, errQuietHours
	}
	var spans []span
	for _, w := range given.Windows {
		if w.Start == nil || w.End == nil {
			return nil, errQuietHours
		}
		start, startOK := readClock(*w.Start)
		end, endOK := readClock(*w.End)
		length := (end - start + dayMinutes) % dayMinutes
		if !startOK || !endOK || length < minQuietLength {
			return nil, errQuietHours
		}
		spans = append(spans, span{start, min(start+length, dayMinutes)})
		if over := start + length - dayMinutes; over > 0 {
			spans = append(spans, span{0, over})
		}
	}
	spans = merged(spans)
	if spans[0] == (span{0, dayMinutes}) {
		return nil, errQuietHours
	}
	return fromSpans(spans), nil
}

// span is a part of a day in minutes; end is exclusive.
type span struct{ start, end int }

// merged joins spans that overlap or touch.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	out := spans[:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.start <= last.end {
			last.end = max(last.end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// fromSpans converts spans to quiet hours. Two spans that meet at midnight become one, provided that there are no others.
func fromSpans(spans []span) []registry.QuietHours {
	if len(spans) == 2 && spans[0].start == 0 && spans[1].end == dayMinutes {
		return []registry.QuietHours{{Start: spans[1].start, End: spans[0].end}}
	}
	out := make([]registry.QuietHours, len(spans))
	for i, s := range spans {
		out[i] = registry.QuietHours{Start: s.start, End: s.end % dayMinutes}
	}
	return out
}

// readClock reads a time of day such as 07:30, in minutes.
func readClock(text string) (minutes int, ok bool) {
	hours, rest, found := strings.Cut(strings.TrimSpace(text), ":")
	h, hoursErr := strconv.ParseUint(hours, 10, 8)
	m, minutesErr := strconv.ParseUint(rest, 10, 8)
	return int(h)*60 + int(m), found && hoursErr == nil && minutesErr == nil && h < 24 && m < 60
}

// ReadStartTime reads the JSON of a start time, such as "07:30".
func ReadStartTime(raw json.RawMessage) (minutes int, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return 0, false
	}
	return readClock(text)
}

// ShowStartTime returns a start time as text; nil for none.
func ShowStartTime(minutes *int) *string {
	if minutes == nil {
		return nil
	}
	return new(clock(*minutes))
}

// clock returns a minute of a day as text.
func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// ShowQuietHours returns the JSON of quiet hours; null for none.
func ShowQuietHours(hours []registry.QuietHours) any {
	if len(hours) == 0 {
		return nil
	}
	windows := make([]map[string]string, len(hours))
	for i, q := range hours {
		windows[i] = map[string]string{"start": clock(q.Start), "end": clock(q.End)}
	}
	return map[string]any{"blocked_windows": windows}
}
