// Package record reads what comes in: events, and lines that describe persons, groups and members of cohorts.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/internal/jsontext"
)

// maxDepth is how deeply the objects and arrays of a record may be nested.
const maxDepth = 64

// The bounds of names: each becomes a path of a JSON column, which ClickHouse keeps track of in every part and merge.
const (
	// MaxNames is how many names the properties of an event, a person or a group may have, those of nested objects too.
	MaxNames = 2000
	// maxRecordNames leaves room for the names of a record itself.
	maxRecordNames = MaxNames + 50
)

var errManyNames = fmt.Errorf("it has more than %d property names", MaxNames)

// Object is a JSON object with its members in their order, each key once.
type Object []Member

// Member is a member of an object.
type Member struct {
	Key   string
	Value Value
}

// Get returns the value of a key, or nil.
func (o Object) Get(key string) Value {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Set puts a value in place of the key's old one, or after the others.
func (o Object) Set(key string, value Value) Object {
	for i := range o {
		if o[i].Key == key {
			o[i].Value = value
			return o
		}
	}
	return append(o, Member{key, value})
}

// Without returns the object without a key.
func (o Object) Without(key string) Object {
	for i := range o {
		if o[i].Key == key {
			return append(o[:i:i], o[i+1:]...)
		}
	}
	return o
}

// JSON returns the object as JSON text.
func (o Object) JSON() string {
	var b []byte
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, m.Key)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return string(append(b, '}'))
}

// Stored reads an object that was written before, however many names it has.
func Stored(text string) (Object, error) { return parseNames([]byte(text), math.MaxInt) }

// parseObject reads a JSON object and brings its values into a form that the engine's JSON columns take: valid
// UTF-8, each key once (the last one counts), integers beyond 64 bits as floats, bounded nesting.
func parseObject(text []byte) (Object, error) { return parseNames(text, maxRecordNames) }

// parseNames is parseObject for an object that may have so many names at all depths.
func parseNames(text []byte, most int) (Object, error) {
	r := jsonReader{in: text, out: make([]byte, 0, len(text)), names: most}
	r.space()
	if r.peek() != '{' {
		return nil, errors.New("it is not a JSON object")
	}
	o, err := r.members()
	if err != nil {
		return nil, err
	}
	r.space()
	if r.pos != len(r.in) {
		return nil, fmt.Errorf("there is more after its JSON object, at byte %d", r.pos+1)
	}
	return o, nil
}

// jsonReader reads JSON from in and writes it to out in canonical form.
type jsonReader struct {
	in    []byte
	pos   int
	out   []byte
	depth int
	names int // how many more there may be
}

func (r *jsonReader) peek() byte {
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *jsonReader) space() {
	for r.pos < len(r.in) {
		switch r.in[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *jsonReader) unexpected() error {
	if r.pos >= len(r.in) {
		return errors.New("it is not valid JSON: it ends too early")
	}
	return fmt.Errorf("it is not valid JSON: unexpected %q at byte %d", r.in[r.pos], r.pos+1)
}

// members reads an object. The values are slices of out.
func (r *jsonReader) members() (Object, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	var o Object
	seen := map[string]int{}
	for r.space(); r.peek() != '}'; r.space() {
		if len(o) > 0 {
			if r.peek() != ',' {
				return nil, r.unexpected()
			}
			r.pos++
			r.space()
		}
		key, err := r.string()
		if err != nil {
			return nil, err
		}
		key = strings.ReplaceAll(key, "\x00", "\uFFFD")
		r.space()
		if r.peek() != ':' {
			return nil, r.unexpected()
		}
		r.pos++
		start := len(r.out)
		if err := r.value(); err != nil {
			return nil, err
		}
		value := bytes.Clone(r.out[start:])
		r.out = r.out[:start]
		if at, ok := seen[key]; ok {
			o[at].Value = value
			continue
		}
		if r.names--; r.names < 0 {
			return nil, errManyNames
		}
		seen[key] = len(o)
		o = append(o, Member{key, value})
	}
	r.pos++
	r.depth--
	return o, nil
}

func (r *jsonReader) enter() error {
	if r.depth++; r.depth > maxDepth {
		return fmt.Errorf("its JSON is nested more than %d deep", maxDepth)
	}
	r.pos++
	return nil
}

// value reads any value and appends it to out.
func (r *jsonReader) value() error {
	r.space()
	switch c := r.peek(); {
	case c == '{':
		o, err := r.members()
		if err == nil {
			r.out = append(r.out, o.JSON()...)
		}
		return err
	case c == '[':
		return r.array()
	case c == '"':
		s, err := r.string()
		if err == nil {
			r.out = jsontext.AppendString(r.out, s)
		}
		return err
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(r.in[r.pos:], []byte(word)) {
			r.pos += len(word)
			r.out = append(r.out, word...)
			return nil
		}
	}
	return r.unexpected()
}

func (r *jsonReader) array() error {
	if err := r.enter(); err != nil {
		return err
	}
	r.out = append(r.out, '[')
	first := true
	for r.space(); r.peek() != ']'; r.space() {
		if !first {
			if r.peek() != ',' {
				return r.unexpected()
			}
			r.pos++
			r.out = append(r.out, ',')
		}
		first = false
		if err := r.value(); err != nil {
			return err
		}
	}
	r.pos++
	r.depth--
	r.out = append(r.out, ']')
	return nil
}

// string reads a string and undoes its escapes.
func (r *jsonReader) string() (string, error) {
	if r.peek() != '"' {
		return "", r.unexpected()
	}
	start := r.pos
	simple := true
	for r.pos++; ; r.pos++ {
		if r.pos >= len(r.in) {
			return "", r.unexpected()
		}
		switch c := r.in[r.pos]; {
		case c == '"':
			r.pos++
			text := r.in[start:r.pos]
			if simple {
				return strings.ToValidUTF8(string(text[1:len(text)-1]), "\uFFFD"), nil
			}
			var s string
			if err := json.Unmarshal(text, &s); err != nil {
				return "", fmt.Errorf("it is not valid JSON: the string at byte %d has a bad escape", start+1)
			}
			return s, nil
		case c == '\\':
			simple = false
			r.pos++
		case c < ' ':
			return "", r.unexpected()
		case c >= utf8.RuneSelf:
		}
	}
}

// number reads a number. An integer that no column of the engine can hold becomes a float.
func (r *jsonReader) number() error {
	start := r.pos
	integer := true
	if r.peek() == '-' {
		r.pos++
	}
	switch {
	case r.peek() == '0':
		r.pos++
	case !r.digits():
		return r.unexpected()
	}
	if r.peek() == '.' {
		integer = false
		r.pos++
		if !r.digits() {
			return r.unexpected()
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		integer = false
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		if !r.digits() {
			return r.unexpected()
		}
	}
	text := string(r.in[start:r.pos])
	if integer && fits64(text) {
		r.out = append(r.out, text...)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("the number %s is too large", Quoted(text))
	}
	if integer {
		r.out = strconv.AppendFloat(r.out, f, 'e', -1, 64)
		return nil
	}
	r.out = append(r.out, text...)
	return nil
}

func fits64(text string) bool {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return true
	}
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func (r *jsonReader) digits() bool {
	start := r.pos
	for r.peek() >= '0' && r.peek() <= '9' {
		r.pos++
	}
	return r.pos > start
}
