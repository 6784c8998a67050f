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

// parseTime reads an ISO 8601 time, with a blank or a T before the hour. Without offset it is UTC. Years before
// 1900 and after 2261 do not fit the driver's times.
func parseTime(s string) (time.Time, bool) {
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
		t = t.UTC().Truncate(time.Microsecond)
		return t, t.Year() >= 1900 && t.Year() <= 2261
	}
	return time.Time{}, false
}
