package formats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// fields holds the fields of a line. A field that was asked for counts as known.
type fields struct {
	all        record.Object
	properties record.Object // members of the field properties, if that is an object
	known      []string
	room       [48]string
	err        error // the first mistake
}

// get returns a field; nil if it is not there or null.
func (f *fields) get(name string) record.Value {
	f.known = append(f.known, name)
	if v := f.all.Get(name); v.Given() {
		return v
	}
	return nil
}

// ignore marks fields as known that become nothing.
func (f *fields) ignore(names ...string) { f.known = append(f.known, names...) }

// rest calls each for the fields that were not asked for.
func (f *fields) rest(each func(name string)) {
	for _, m := range f.all {
		if !slices.Contains(f.known, m.Key) {
			each(m.Key)
		}
	}
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// text returns a field that is a string or number; empty if there is none.
func (f *fields) text(name string) string {
	v := f.get(name)
	if v == nil {
		return ""
	}
	text, ok := v.Text()
	if !ok {
		f.fail("its %s is not a string", name)
	}
	return text
}

// need returns a text that must be there.
func (f *fields) need(name string) string {
	text := f.text(name)
	if text == "" {
		f.fail("it has no %s", name)
	}
	return text
}

// object returns a field that is an object, or the text of one; nil if there is none.
func (f *fields) object(name string) record.Object {
	v := f.get(name)
	if v == nil {
		return nil
	}
	o := f.properties
	switch {
	case v[0] == '"':
		text, _ := v.Text()
		if text == "" {
			return nil
		}
		var err error
		if o, err = record.ParseObject([]byte(text)); err != nil {
			f.fail("its %s: %w", name, err)
		}
		return o
	case v[0] != '{':
		f.fail("its %s are not a JSON object", name)
		return nil
	case name != "properties":
		o = v.Object()
	}
	if o.ManyNames() {
		f.fail("it has more than %d property names", record.MaxNames)
	}
	return o
}

// time returns a field that is an ISO 8601 time, or a number as numberTime reads it; zero if there is none.
func (f *fields) time(name string) time.Time {
	text := f.text(name)
	if text == "" {
		return time.Time{}
	}
	at, ok := timeOf(text)
	if !ok {
		f.fail("its %s %s is not an ISO 8601 time between 1900 and 2261", name, record.Quoted(text))
	}
	return at
}

func timeOf(text string) (time.Time, bool) {
	at, ok := record.ParseTime(text)
	if !ok {
		at, ok = numberTime(text)
	}
	return at, ok && !at.Before(record.Earliest) && !at.After(record.Latest)
}

// numberTime reads a day as YYYYMMDD, or else a number of seconds, milliseconds or microseconds since 1970, whichever gives a plausible time: 12 digits of
// seconds are the year 5138.
func numberTime(text string) (time.Time, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 {
		return time.Time{}, false
	}
	if day, ok := numberDay(n); ok {
		return day, true
	}
	switch {
	case n >= 1e17:
		return time.Time{}, false
	case n >= 1e14:
		return time.UnixMicro(int64(n)).UTC(), true
	case n >= 1e11:
		return time.UnixMicro(int64(n * 1e3)).UTC(), true
	}
	return time.UnixMicro(int64(n * 1e6)).UTC(), true
}

// numberDay reads a day of 1970 to 2100 as YYYYMMDD, such as 20240115. As seconds, all of these are in August or September 1970.
func numberDay(n float64) (time.Time, bool) {
	if n < 1970_01_01 || n > 2100_12_31 || n != math.Trunc(n) {
		return time.Time{}, false
	}
	day, err := time.Parse("20060102", strconv.Itoa(int(n)))
	return day, err == nil
}

// needTime returns a time that must be there.
func (f *fields) needTime(name string) time.Time {
	at := f.time(name)
	if at.IsZero() {
		f.fail("it has no %s", name)
	}
	return at
}

// uuid returns a field that is a UUID; uuid.Nil if there is none.
func (f *fields) uuid(name string) uuid.UUID {
	text := f.text(name)
	if text == "" {
		return uuid.Nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		f.fail("its %s %s is not a UUID", name, record.Quoted(text))
	}
	return id
}

// flag reports whether a field is true, or 1.
func (f *fields) flag(name string) bool {
	v := f.get(name)
	text, _ := v.Text()
	return string(v) == "true" || text == "1" || text == "true"
}

// namespace is for ids derived from those of other products. It must never change: repeated imports rely on it.
var namespace = uuid.MustParse("3c1c9b0e-94d5-5f0a-8f5c-0d7f5a2b7b44")

// idOf derives the uuid of an event from its id in another product. An id that is a UUID stays.
func idOf(product, id string) uuid.UUID {
	if parsed, err := uuid.Parse(id); err == nil && len(id) == len(parsed.String()) {
		return parsed
	}
	return uuid.NewSHA1(namespace, []byte(product+" "+id))
}

var errNoIDs = errors.New("it has no distinct id")

// event starts the record of an event.
func event() record.Record { return record.Record{Kind: record.Event, GroupIndex: -1} }

// addMissing adds a member to an object that does not have it.
func addMissing(o *record.Object, name string, v record.Value) {
	if v != nil && o.Get(name) == nil {
		*o = append(*o, record.Member{Key: name, Value: v})
	}
}
