package record

import (
	"strings"
	"time"
)

var timeLayouts = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02",
}

// The range of times that records can hold: others do not fit the driver's times.
var (
	Earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	Latest   = time.Date(2261, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// parseTime reads a time as ParseTime does, if a record can hold it.
func parseTime(s string) (time.Time, bool) {
	t, ok := ParseTime(s)
	return t, ok && t.Year() >= Earliest.Year() && t.Year() <= Latest.Year()
}

// ParseTime reads an ISO 8601 time, with a blank or a T before the hour. Without an offset it is UTC. It may be a time that no record can hold.
func ParseTime(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02") || len(s) > 40 || s[4] != '-' || s[7] != '-' {
		return time.Time{}, false
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	if rest, ok := strings.CutSuffix(s, " UTC"); ok {
		s = rest + "Z"
	}
	for _, layout := range timeLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		return t.UTC().Truncate(time.Microsecond), true
	}
	return time.Time{}, false
}
