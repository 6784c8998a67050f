package clickhouse

import (
	"bytes"
	"errors"
	"time"
)

var errMalformedRow = errors.New("ClickHouse sent a row that is not well formed")

// timeWriter puts the times of rows into the form of the contract: the engine prints them in UTC with all
// digits of their type; the contract wants the column's zone, and microseconds only when there are some.
// Everything else is copied as it is.
type timeWriter struct {
	columns []chType // up to the last one with a time
	changed []bool
	buf     []byte
}

// newTimeWriter returns nil when no column holds a time that needs a change.
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

// row gives the row with its times rewritten. The result is valid until the next call.
func (w *timeWriter) row(row []byte) ([]byte, error) {
	s := jsonScanner{in: row, out: w.buf[:0]}
	if !s.skip('[') {
		return nil, errMalformedRow
	}
	for i := range w.columns {
		if i > 0 && !s.skip(',') {
			return nil, errMalformedRow
		}
		for s.skip(' ') {
		}
		if w.changed[i] && !s.value(&w.columns[i]) || !w.changed[i] && !s.skipValue() {
			return nil, errMalformedRow
		}
	}
	s.out = append(s.out, row[s.copied:]...)
	w.buf = s.out
	return s.out, nil
}

// jsonScanner goes over JSON in in, and copies it to out with changes. It trusts that the engine writes
// well-formed JSON as far as no brackets or quotes are missing, and reports false when they are.
type jsonScanner struct {
	in     []byte
	pos    int
	out    []byte
	copied int // how much of in is in out
}

// skip goes over one byte, if it is c.
func (s *jsonScanner) skip(c byte) bool {
	if s.pos >= len(s.in) || s.in[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// value goes over one value of type t and rewrites its times.
func (s *jsonScanner) value(t *chType) bool {
	if s.pos >= len(s.in) {
		return false
	}
	switch {
	case s.in[s.pos] == 'n' || !t.hasTime():
		return s.skipValue()
	case t.location != nil:
		return s.time(t.location)
	case t.name == "Array" && len(t.args) == 1:
		return s.list('[', ']', func(int) bool { return s.value(&t.args[0]) })
	case t.name == "Tuple":
		return s.list('[', ']', func(i int) bool { return i < len(t.args) && s.value(&t.args[i]) })
	case t.name == "Map" && len(t.args) == 2:
		return s.list('{', '}', func(int) bool {
			return s.value(&t.args[0]) && s.skip(':') && s.value(&t.args[1])
		})
	}
	return s.skipValue()
}

// list goes over the items between two brackets.
func (s *jsonScanner) list(left, right byte, item func(i int) bool) bool {
	if !s.skip(left) {
		return false
	}
	if s.skip(right) {
		return true
	}
	for i := 0; ; i++ {
		if !item(i) {
			return false
		}
		if s.skip(right) {
			return true
		}
		if !s.skip(',') {
			return false
		}
	}
}

// The places of a time's parts as the engine prints it: YYYY-MM-DDThh:mm:ss[.fraction]Z.
const secondsEnd = len("0000-00-00T00:00:00")

// time rewrites one quoted time.
func (s *jsonScanner) time(location *time.Location) bool {
	start := s.pos + 1
	if !s.skipString() {
		return false
	}
	text := s.in[start : s.pos-1]
	if len(text) <= secondsEnd || text[len(text)-1] != 'Z' {
		return false
	}
	if location != time.UTC {
		t, ok := parseEngineTime(text)
		if !ok {
			return false
		}
		s.out = appendTime(append(s.out, s.in[s.copied:start]...), t.In(location))
		s.copied = s.pos - 1
		return true
	}
	fraction := text[secondsEnd : len(text)-1]
	s.out = append(s.out, s.in[s.copied:start+secondsEnd]...)
	s.copied = s.pos - len(`Z"`)
	if len(fraction) > 7 {
		fraction = fraction[:7]
	}
	if string(fraction) != ".000000"[:len(fraction)] {
		s.out = append(s.out, fraction...)
		s.out = append(s.out, "000000"[:7-len(fraction)]...)
	}
	return true
}

// skipValue goes over one value: a string, a list or object with all that is in it, or a word.
func (s *jsonScanner) skipValue() bool {
	depth := 0
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case '"':
			if !s.skipString() {
				return false
			}
		case '[', '{':
			depth++
			s.pos++
		case ']', '}':
			if depth--; depth < 0 {
				return false
			}
			s.pos++
		case ',', ':':
			if depth == 0 {
				return false
			}
			s.pos++
			continue
		default:
			s.skipWord()
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

// skipWord goes over a number, true, false or null.
func (s *jsonScanner) skipWord() {
	for s.pos++; s.pos < len(s.in); s.pos++ {
		switch s.in[s.pos] {
		case ',', ':', ']', '}', '[', '{', '"':
			return
		}
	}
}

func (s *jsonScanner) skipString() bool {
	if !s.skip('"') {
		return false
	}
	for {
		end := bytes.IndexByte(s.in[s.pos:], '"')
		if end < 0 {
			return false
		}
		escapes := 0
		for i := s.pos + end - 1; i >= s.pos && s.in[i] == '\\'; i-- {
			escapes++
		}
		s.pos += end + 1
		if escapes%2 == 0 {
			return true
		}
	}
}

// parseEngineTime reads YYYY-MM-DDThh:mm:ss[.fraction]Z.
func parseEngineTime(b []byte) (time.Time, bool) {
	if len(b) < len("0000-00-00T00:00:00Z") || b[len(b)-1] != 'Z' || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
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
	nanos := 0
	if fraction := b[19 : len(b)-1]; len(fraction) > 0 {
		n, ok := digits(fraction[1:])
		if fraction[0] != '.' || !ok || len(fraction) > 10 {
			return time.Time{}, false
		}
		for range 10 - len(fraction) {
			n *= 10
		}
		nanos = n
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC), true
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

// appendTime writes t in its zone as ISO 8601: an offset of zero as Z, and microseconds only when there are some.
func appendTime(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	for _, part := range [...]struct {
		before byte
		value  int
		width  int
	}{{0, year, 4}, {'-', int(month), 2}, {'-', day, 2}, {'T', hour, 2}, {':', minute, 2}, {':', second, 2}} {
		if part.before != 0 {
			b = append(b, part.before)
		}
		b = appendPadded(b, part.value, part.width)
	}
	if micros := t.Nanosecond() / 1000; micros != 0 {
		b = append(b, '.')
		b = appendPadded(b, micros, 6)
	}
	_, offset := t.Zone()
	if offset == 0 {
		return append(b, 'Z')
	}
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	b = append(b, sign)
	b = appendPadded(b, offset/3600, 2)
	b = append(b, ':')
	b = appendPadded(b, offset/60%60, 2)
	if seconds := offset % 60; seconds != 0 { // local mean time, before there were time zones
		b = append(b, ':')
		b = appendPadded(b, seconds, 2)
	}
	return b
}

func appendPadded(b []byte, n, width int) []byte {
	start := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := len(b) - 1; i >= start; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
