package clickhouse

import (
	"errors"
	"math"
	"time"
)

var errMalformedRow = errors.New("ClickHouse sent a malformed row")

// timeWriter converts the times in rows to PostHog's format. The engine prints them in UTC with all digits of
// their type; PostHog prints them in the column's zone, with microseconds only if they are not zero. Everything
// else is copied unchanged.
type timeWriter struct {
	columns []chType // up to the last column with a time
	changed []bool
	in, out []byte
	copied  int // the length of in that has been copied to out
	zone    zoneSpan
}

// newTimeWriter returns nil if no column has times to convert.
func newTimeWriter(columns []Column) *timeWriter {
	w := &timeWriter{}
	last := 0
	for i, c := range columns {
		w.columns = append(w.columns, parseType(c.Type))
		w.changed = append(w.changed, w.columns[i].hasTime())
		if w.changed[i] {
			last = i + 1
		}
	}
	if last == 0 {
		return nil
	}
	w.columns = w.columns[:last]
	return w
}

// row returns the row with its times converted. The result is valid until the next call, and no longer than row.
func (w *timeWriter) row(row []byte) ([]byte, error) {
	w.in, w.out, w.copied = row, w.out[:0], 0
	at := skip(row, 0, '[')
	for i := range w.columns {
		if i > 0 {
			at = skip(row, at, ',')
		}
		for at >= 0 && at < len(row) && row[at] == ' ' {
			at++
		}
		if w.changed[i] {
			at = w.value(&w.columns[i], at)
		} else {
			at = valueEnd(row, at)
		}
	}
	if at < 0 {
		return nil, errMalformedRow
	}
	if w.copied == 0 {
		return row, nil
	}
	w.out = append(w.out, row[w.copied:]...)
	return w.out, nil
}

// value scans one value of type t and converts its times.
func (w *timeWriter) value(t *chType, at int) int {
	if at < 0 || at >= len(w.in) || w.in[at] == 'n' {
		return valueEnd(w.in, at)
	}
	switch {
	case t.location != nil:
		return w.time(t.location, at)
	case !t.hasTime():
		return valueEnd(w.in, at)
	case t.name == "Array" && len(t.args) == 1:
		return listEnd(w.in, at, '[', ']', func(_, at int) int { return w.value(&t.args[0], at) })
	case t.name == "Tuple":
		return listEnd(w.in, at, '[', ']', func(i, at int) int {
			if i >= len(t.args) {
				return -1
			}
			return w.value(&t.args[i], at)
		})
	case t.name == "Map" && len(t.args) == 2:
		return listEnd(w.in, at, '{', '}', func(_, at int) int {
			return w.value(&t.args[1], skip(w.in, w.value(&t.args[0], at), ':'))
		})
	}
	return valueEnd(w.in, at)
}

// Offsets in a time as the engine prints it: YYYY-MM-DDThh:mm:ss[.fraction]Z.
const (
	secondsEnd = len("0000-00-00T00:00:00")
	microsEnd  = secondsEnd + len(".000000")
)

// time converts one quoted time.
func (w *timeWriter) time(location *time.Location, at int) int {
	behind := stringEnd(w.in, at)
	start, end := at+1, behind-len(`Z"`)
	if w.in[at] != '"' || end < start+secondsEnd || w.in[end] != 'Z' {
		return -1
	}
	fraction := w.in[start+secondsEnd : min(end, start+microsEnd)]
	if string(fraction) == ".000000"[:len(fraction)] {
		fraction = nil
	}
	if location != time.UTC {
		clock, ok := parseClock(w.in[start : start+secondsEnd])
		if !ok {
			return -1
		}
		offset := w.zone.offset(location, clock)
		w.out = append(w.out, w.in[w.copied:start]...)
		w.out = appendClock(w.out, clock.Add(time.Duration(offset)*time.Second))
		w.out = appendOffset(appendMicros(w.out, fraction), offset)
		w.copied = end + 1
		return behind
	}
	if end == start+secondsEnd || fraction != nil && end == start+microsEnd {
		return behind // unchanged
	}
	w.out = append(w.out, w.in[w.copied:start+secondsEnd]...)
	w.out = appendMicros(w.out, fraction)
	w.copied = end
	return behind
}

// zoneSpan is a span of time in which a zone has one offset. It caches the last lookup, which costs more than everything else about
// a time; the times in rows usually fall in few spans.
type zoneSpan struct {
	location    *time.Location
	from, until int64 // seconds since 1970; until is exclusive
	seconds     int   // east of UTC
}

// offset returns the offset of location east of UTC at t, in seconds.
func (z *zoneSpan) offset(location *time.Location, t time.Time) int {
	at := t.Unix()
	if z.location == location && z.from <= at && at < z.until {
		return z.seconds
	}
	local := t.In(location)
	*z = zoneSpan{location: location, from: math.MinInt64, until: math.MaxInt64}
	_, z.seconds = local.Zone()
	from, until := local.ZoneBounds()
	if !from.IsZero() {
		z.from = from.Unix()
	}
	if !until.IsZero() {
		z.until = until.Unix()
	}
	return z.seconds
}

// parseClock reads YYYY-MM-DDThh:mm:ss as a time in UTC.
func parseClock(b []byte) (time.Time, bool) {
	if len(b) != secondsEnd || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return time.Time{}, false
	}
	year, ok1 := digits(b[0:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	hour, ok4 := digits(b[11:13])
	minute, ok5 := digits(b[14:16])
	second, ok6 := digits(b[17:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC), true
}

func digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0
}

// appendTime appends t in its zone as ISO 8601: an offset of zero as Z, and microseconds only if they are not zero.
func appendTime(b []byte, t time.Time) []byte {
	b = appendClock(b, t)
	if micros := t.Nanosecond() / 1000; micros != 0 {
		b = append(b, '.')
		b = appendPair(b, micros/10_000)
		b = appendPair(b, micros/100%100)
		b = appendPair(b, micros%100)
	}
	_, offset := t.Zone()
	return appendOffset(b, offset)
}

// appendClock appends the date and the time of day of t in its zone: YYYY-MM-DDThh:mm:ss.
func appendClock(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendPair(appendPair(b, year/100), year%100)
	b = appendPair(append(b, '-'), int(month))
	b = appendPair(append(b, '-'), day)
	b = appendPair(append(b, 'T'), hour)
	b = appendPair(append(b, ':'), minute)
	return appendPair(append(b, ':'), second)
}

// appendMicros appends a fraction of at most six digits, with its point, padded to six digits. It omits an empty fraction.
func appendMicros(b, fraction []byte) []byte {
	if len(fraction) == 0 {
		return b
	}
	return append(append(b, fraction...), "000000"[:microsEnd-secondsEnd-len(fraction)]...)
}

// appendOffset appends an offset east of UTC, given in seconds.
func appendOffset(b []byte, offset int) []byte {
	if offset == 0 {
		return append(b, 'Z')
	}
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	b = appendPair(append(b, sign), offset/3600)
	b = appendPair(append(b, ':'), offset/60%60)
	if seconds := offset % 60; seconds != 0 { // local mean time, before time zones
		b = appendPair(append(b, ':'), seconds)
	}
	return b
}

// appendPair appends n, which is below 100, as two digits.
func appendPair(b []byte, n int) []byte {
	const digits = "0123456789"
	return append(b, digits[n/10], digits[n%10])
}
