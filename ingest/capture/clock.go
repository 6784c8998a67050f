package capture

import (
	"math"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// clock computes the times of a request's events: contract capture.md, section 6.
type clock struct {
	now    time.Time
	sentAt time.Time // zero for none
}

const (
	maxFuture = 23 * time.Hour // how far ahead of us an event may be
	firstYear = 2021           // a sent_at in milliseconds before this is in seconds
	maxTime   = 64             // bytes of a time
)

// setSentAt takes the sending time from the payload or, if it has none, from the query string.
func (c *clock) setSentAt(payload record.Value, query string) {
	if at, ok := record.ParseTime(textOf(payload)); ok {
		c.sentAt = at
		return
	}
	ms, err := strconv.ParseInt(query, 10, 64)
	if err != nil {
		return
	}
	if at := time.UnixMilli(ms).UTC(); at.Year() >= firstYear && at.Year() <= 9999 {
		c.sentAt = at
	}
}

// sentAtValue is the time of sending as a property; nil if it is not known.
func (c *clock) sentAtValue() record.Value {
	if c.sentAt.IsZero() {
		return nil
	}
	return record.TextValue(c.sentAt.Format("2006-01-02T15:04:05.999999Z07:00"))
}

// event returns when an event happened, given its text. A text that is not a time yields now.
func (c *clock) event(text string, ignoreSentAt bool) time.Time {
	at, ok := readTime(text)
	if !ok {
		return c.now
	}
	if ignoreSentAt {
		return c.bounded(at)
	}
	return c.corrected(at)
}

// corrected converts a time to our clock, if the client said what its own was when it sent the request.
func (c *clock) corrected(at time.Time) time.Time {
	if !c.sentAt.IsZero() {
		at = c.now.Add(at.Sub(c.sentAt))
	}
	return c.bounded(at)
}

// before returns the time ms milliseconds ago.
func (c *clock) before(ms int64) time.Time {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return c.bounded(c.now.Add(-time.Duration(min(max(ms, -most), most)) * time.Millisecond))
}

// bounded limits a time to what can be stored. A time too far in the future is a mistake of the client's clock.
func (c *clock) bounded(at time.Time) time.Time {
	switch {
	case at.Sub(c.now) > maxFuture:
		return c.now
	case at.Before(record.Earliest):
		return record.Earliest
	}
	return at.UTC().Truncate(time.Microsecond)
}

// readTime reads the times that clients send: ISO 8601, also with a blank before the zone, the epoch in seconds, with decimals or without, milliseconds or
// nanoseconds, or RFC 2822.
func readTime(text string) (time.Time, bool) {
	if len(text) > maxTime || text == "" {
		return time.Time{}, false
	}
	if at, ok := record.ParseTime(text); ok {
		return at, true
	}
	if date, zone, ok := cutZone(text); ok {
		return record.ParseTime(date + zone)
	}
	if whole, decimals, ok := strings.Cut(text, "."); ok && len(whole) == len("1717236000") && strings.Trim(whole+decimals, "0123456789") == "" {
		n, err := strconv.ParseUint(whole, 10, 64)
		part, partly := strconv.ParseFloat("0."+decimals, 64)
		return time.Unix(int64(n), int64(math.Round(part*1e9))), err == nil && partly == nil //nolint:gosec // ten digits
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '-' && text[0] != '+' {
		switch len(text) { // numbers of other lengths are not times of these years
		case 10:
			return time.Unix(n, 0), true
		case 13:
			return time.UnixMilli(n), true
		case 19:
			return time.Unix(0, n), true
		}
		return time.Time{}, false
	}
	if len(text) > 10 && (text[10] == 't' || text[len(text)-1] == 'z') { // RFC 3339 allows lower case
		return record.ParseTime(upper(text))
	}
	at, err := mail.ParseDate(text)
	return at, err == nil
}

// cutZone cuts a zone after a blank, as in 2024-06-01 10:00:00 +0200, from an ISO 8601 time, and returns it as ISO 8601 has it.
func cutZone(text string) (date, zone string, ok bool) {
	i := strings.LastIndexByte(text, ' ')
	if i <= len("2024-06-01") || text[len("2024")] != '-' {
		return "", "", false
	}
	date, zone = text[:i], text[i+1:]
	if zone == "GMT" {
		zone = "Z"
	}
	return date, zone, zone == "Z" || strings.HasPrefix(zone, "+") || strings.HasPrefix(zone, "-")
}

// upper turns the letters t and z of a time into capitals.
func upper(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c == 't' || c == 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
