package clickhouse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deeply the objects and arrays of a line may be nested.
const maxDepth = 64

// The bounds of names: each becomes a path of a JSON column, which ClickHouse keeps track of in every part and merge.
const (
	// MaxNames is how many names the properties of an event, a person or a group may have, those of nested objects too.
	MaxNames = 2000
	// maxLineNames leaves room for the names of a line itself.
	maxLineNames = MaxNames + 50
)

var errManyNames = fmt.Errorf("it has more than %d property names", MaxNames)

// object is a JSON object with its members in their order, each key once. The values are in canonical form.
type object []member

type member struct {
	key   string
	value []byte
}

// get gives the value of a key, or nil.
func (o object) get(key string) []byte {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// set puts a value in place of the key's old one, or behind the others.
func (o object) set(key string, value []byte) object {
	for i := range o {
		if o[i].key == key {
			o[i].value = value
			return o
		}
	}
	return append(o, member{key, value})
}

func (o object) without(key string) object {
	for i := range o {
		if o[i].key == key {
			return append(o[:i:i], o[i+1:]...)
		}
	}
	return o
}

// json is the object as JSON text.
func (o object) json() string {
	var b []byte
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, m.key)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return string(append(b, '}'))
}

// parseObject reads a JSON object and brings its values into a form that the engine's JSON columns take: valid
// UTF-8, each key once (the last one counts), integers beyond 64 bits as floats, bounded nesting.
func parseObject(text []byte) (object, error) { return parseNames(text, maxLineNames) }

// parseNames is parseObject for an object that may have so many names at all depths.
func parseNames(text []byte, most int) (object, error) {
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
		return nil, fmt.Errorf("it goes on behind its JSON object, at byte %d", r.pos+1)
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
func (r *jsonReader) members() (object, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	var o object
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
			o[at].value = value
			continue
		}
		if r.names--; r.names < 0 {
			return nil, errManyNames
		}
		seen[key] = len(o)
		o = append(o, member{key, value})
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
			r.out = append(r.out, o.json()...)
		}
		return err
	case c == '[':
		return r.array()
	case c == '"':
		s, err := r.string()
		if err == nil {
			r.out = appendString(r.out, s)
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
		return fmt.Errorf("the number %s is too large", quotedTrim(text))
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

// unquote gives the text of a canonical JSON string.
func unquote(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		panic("BUG: a canonical JSON string does not parse: " + err.Error())
	}
	return s, true
}
