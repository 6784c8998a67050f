package filter

import (
	"strconv"
	"strings"
	"time"
)

// dateLayouts are the accepted forms of ISO 8601 without an offset.
var dateLayouts = []string{"2006-1-2", "2006-1-2T15:04", "2006-1-2T15:04:05", "2006-1-2 15:04", "2006-1-2 15:04:05"}

var zonedLayouts = []string{
	"2006-1-2T15:04:05Z07:00", "2006-1-2T15:04Z07:00", "2006-1-2 15:04:05Z07:00", "2006-1-2 15:04Z07:00",
	"2006-1-2T15:04:05Z0700", "2006-1-2 15:04:05Z0700",
}

// Date parses a date bound (contract: api.md, section 2.2): ISO 8601, in zone unless it has its own offset, or a time relative to now such as -7d,
// -1mStart, dEnd or today. weekStart is the first day of the project's week, 0 for Sunday. It returns false for any other text, and for years
// outside of ClickHouse's range.
func Date(text string, now time.Time, zone *time.Location, weekStart int) (time.Time, bool) {
	m, ok := ReadDate(text, now, zone, weekStart)
	return m.Time, ok
}

// The years that ClickHouse's times can express.
const (
	FirstYear = 1900
	LastYear  = 2299
)

// Moment is the time that a date bound names, and the form it is named in.
type Moment struct {
	Time time.Time
	// Unit is the unit letter of a relative date; 0 for an absolute date.
	Unit byte
	// Count is how many units back a relative date is.
	Count int
	// Edge is Start or End if a relative date is an end of its unit.
	Edge string
}

// Relative reports whether a date counts from now.
func (m Moment) Relative() bool { return m.Unit != 0 }

// ReadDate is Date, and also returns how the text names its time.
func ReadDate(text string, now time.Time, zone *time.Location, weekStart int) (Moment, bool) {
	m, ok := AnyDate(text, now, zone, weekStart)
	return m, ok && m.Time.Year() >= FirstYear && m.Time.Year() <= LastYear
}

// AnyDate is ReadDate for times of any year, which no query compares with.
func AnyDate(text string, now time.Time, zone *time.Location, weekStart int) (Moment, bool) {
	text = strings.TrimSpace(text)
	for _, layout := range dateLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return Moment{Time: t}, true
		}
	}
	for _, layout := range zonedLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return Moment{Time: t.In(zone)}, true
		}
	}
	now = now.In(zone)
	if text == "today" || text == "now" {
		return Moment{Time: now, Unit: 'd'}, true
	}
	return relative(text, now, weekStart)
}

// maxUnits bounds the number in a relative date.
const maxUnits = 100_000

// relative parses an optional minus, optional digits, one unit letter and an optional Start or End.
func relative(text string, now time.Time, weekStart int) (Moment, bool) {
	rest, _ := strings.CutPrefix(text, "-")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	count := 0
	if digits > 0 {
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > maxUnits {
			return Moment{}, false
		}
		count = n
	}
	rest = rest[digits:]
	if rest == "" {
		return Moment{}, false
	}
	unit, edge := rest[0], rest[1:]
	if edge != "" && edge != "Start" && edge != "End" {
		return Moment{}, false
	}
	t, ok := back(now, count, unit)
	if !ok {
		return Moment{}, false
	}
	if unit == 'q' && edge != "" {
		t = months(now, 3*count) // a calendar quarter
	}
	return Moment{Time: atEdge(t, unit, edge, weekStart), Unit: unit, Count: count, Edge: edge}, true
}

// back goes back count units in the calendar of t's zone. Days keep their wall clock, and a day that the month lacks becomes its last.
func back(t time.Time, count int, unit byte) (time.Time, bool) {
	switch unit {
	case 's':
		return t.Add(-time.Duration(count) * time.Second), true
	case 'M':
		return t.Add(-time.Duration(count) * time.Minute), true
	case 'h':
		return t.Add(-time.Duration(count) * time.Hour), true
	case 'd':
		return t.AddDate(0, 0, -count), true
	case 'w':
		return t.AddDate(0, 0, -7*count), true
	case 'm':
		return months(t, count), true
	case 'q':
		return t.AddDate(0, 0, -7*13*count), true
	case 'y':
		return months(t, 12*count), true
	}
	return time.Time{}, false
}

func months(t time.Time, count int) time.Time {
	first := time.Date(t.Year(), t.Month()-time.Month(count), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	return first.AddDate(0, 0, min(t.Day(), lastDay(first))-1)
}

func lastDay(t time.Time) int {
	return time.Date(t.Year(), t.Month()+1, 0, 12, 0, 0, 0, t.Location()).Day()
}

// lastInstant is the last microsecond of a second.
const lastInstant = 999_999_000

func atEdge(t time.Time, unit byte, edge string, weekStart int) time.Time {
	zone := t.Location()
	year, month, day := t.Date()
	switch {
	case edge == "":
		return t
	case unit == 'h' && edge == "Start":
		return time.Date(year, month, day, t.Hour(), 0, 0, 0, zone)
	case unit == 'h':
		return time.Date(year, month, day, t.Hour(), 59, 59, lastInstant, zone)
	case unit == 'd' && edge == "Start":
		return StartOfDay(t, 0)
	case unit == 'd':
		return time.Date(year, month, day, 23, 59, 59, lastInstant, zone)
	case unit == 'w' && edge == "Start":
		return StartOfWeek(t, weekStart)
	case unit == 'w':
		return StartOfDay(StartOfWeek(t, weekStart), 7).Add(-time.Microsecond)
	case unit == 'q' && edge == "Start":
		return startOfQuarter(t, 0)
	case unit == 'q':
		return startOfQuarter(t, 1).Add(-time.Microsecond)
	case unit == 'm' && edge == "Start":
		return t.AddDate(0, 0, 1-day)
	case unit == 'm':
		return t.AddDate(0, 0, lastDay(t)-day)
	case unit == 'y' && edge == "Start":
		return time.Date(year, time.January, 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
	case unit == 'y':
		return t.AddDate(0, 0, lastDay(t)-day)
	}
	return t // seconds and minutes have no edges
}

// noon is an hour that no clock change skips.
const noon = 12

// startOfQuarter returns the start of the calendar quarter that is count quarters after the one of t.
func startOfQuarter(t time.Time, count int) time.Time {
	month := (int(t.Month()-time.January)/3 + count) * 3
	return StartOfDay(time.Date(t.Year(), time.January+time.Month(month), 1, noon, 0, 0, 0, t.Location()), 0)
}
