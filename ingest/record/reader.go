package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Reader reads JSON from start to end, and writes values in canonical form: see Value. It never builds a tree, so its memory grows with one value and not with
// the whole text.
type Reader struct {
	in    []byte
	pos   int
	out   []byte
	depth int
	start int // of the object that is read
	names int // how many more are read without counting the different ones
	most  int // how many different ones are allowed

	shared  bool              // values are parts of out, valid until the next Event
	texts   bool              // U+0000 becomes U+FFFD in values too
	exact   bool              // numbers of the outermost object keep all their digits
	keys    map[string]string // keys seen before
	scratch []byte
	spans   []span // members of the open objects
}

// span is the position of a member in the output.
type span struct{ key, keyEnd, value, valueEnd int }

// maxKeys is how many keys a reader of events remembers, and maxKeyBytes the longest of them.
const (
	maxKeys     = 1024
	maxKeyBytes = 128
)

// NewReader returns a reader of events as clients send them: in texts, U+0000 becomes U+FFFD, and numbers among an event's own fields keep all their digits.
func NewReader(in []byte) *Reader {
	return &Reader{in: in, most: maxRecordNames, shared: true, texts: true, exact: true, keys: map[string]string{}}
}

// Kind returns the first byte of the next value; 0 at the end.
func (r *Reader) Kind() byte {
	r.space()
	return r.peek()
}

// Pos returns how many bytes were read.
func (r *Reader) Pos() int { return r.pos }

// Seek continues reading at a position that Pos returned.
func (r *Reader) Seek(pos int) { r.pos = pos }

// End checks that there is nothing left to read.
func (r *Reader) End() error {
	if r.space(); r.pos != len(r.in) {
		return fmt.Errorf("there is more after its JSON object, at byte %d", r.pos+1)
	}
	return nil
}

// Members calls each for the members of an object; each has to read the member's value.
func (r *Reader) Members(each func(key string) error) error {
	if r.Kind() != '{' {
		return r.unexpected()
	}
	r.pos++
	for first := true; r.Kind() != '}'; first = false {
		if err := r.comma(first); err != nil {
			return err
		}
		key, err := r.key()
		if err != nil {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
	r.pos++
	return nil
}

// Items calls each for the items of a list; each has to read the item.
func (r *Reader) Items(each func() error) error {
	if r.Kind() != '[' {
		return r.unexpected()
	}
	r.pos++
	for first := true; r.Kind() != ']'; first = false {
		if err := r.comma(first); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	r.pos++
	return nil
}

// Skip skips a value. Of objects and lists it only finds the end: it is for what is read in another way, or not at all.
func (r *Reader) Skip() error {
	switch r.Kind() {
	case '{', '[':
	default:
		start := len(r.out)
		defer func() { r.out = r.out[:start] }()
		return r.value()
	}
	for open := 0; ; {
		at := nextStructural(r.in[r.pos:])
		if r.pos += at; at < 0 {
			r.pos = len(r.in)
			return r.unexpected()
		}
		switch r.in[r.pos] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			if err := r.skipString(); err != nil {
				return err
			}
			continue
		}
		if r.pos++; open == 0 {
			return nil
		}
	}
}

func nextStructural(in []byte) int {
	for i, c := range in {
		switch c {
		case '"', '{', '}', '[', ']':
			return i
		}
	}
	return -1
}

func (r *Reader) skipString() error {
	end := stringEnd(r.in, r.pos+1)
	if end < 0 {
		r.pos = len(r.in)
		return r.unexpected()
	}
	r.pos = end
	return nil
}

// Value reads a value. It is valid until the next Event.
func (r *Reader) Value() (Value, error) {
	start := len(r.out)
	if err := r.value(); err != nil {
		return nil, err
	}
	return r.out[start:len(r.out):len(r.out)], nil
}

// Event reads an object of limited size, in bytes, into the fields and properties of an event, reusing the memory of those given. Properties that are not an
// object count as a field. Both are valid until the next call. After ErrLong or a *BoundError, the object has been skipped.
func (r *Reader) Event(fields, properties Object, most int) (Object, Object, error) {
	if r.Kind() != '{' {
		return nil, nil, r.unexpected()
	}
	r.out, r.spans = r.out[:0], r.spans[:0]
	r.start, r.names, r.depth = r.pos, maxRecordNames, 1 // one level is left for what moves from a field into the properties
	whole, start := r.in, r.pos
	if len(whole)-start > most {
		r.in = whole[:start+most]
	}
	fields, properties, err := r.members(fields[:0], propertiesField, properties[:0])
	cut := len(r.in) < len(whole)
	r.in = whole
	_, bound := err.(*BoundError) //nolint:errorlint // it is made here, and not wrapped
	if err == nil || !bound && !cut {
		return fields, properties, err
	}
	r.pos = start
	if skipped := r.Skip(); skipped != nil {
		return nil, nil, skipped
	}
	if r.pos-start > most {
		err = ErrLong
	}
	return fields, properties, err
}

// Field finds a short value in the object at a position, even in one that Event skipped. The path names the objects that lead to it.
func (r *Reader) Field(at int, path ...string) Value {
	in := NewReader(r.in)
	in.pos = at
	found, err := in.field(path)
	if err != nil {
		return nil
	}
	return found
}

// shortField is how long a value may be for Field to find it, in bytes.
const shortField = 1 << 10

func (r *Reader) field(path []string) (found Value, err error) {
	err = r.Members(func(key string) error {
		start := r.pos
		if err := r.Skip(); err != nil || key != path[0] {
			return err
		}
		end := r.pos
		r.pos = start
		switch {
		case len(path) > 1 && r.Kind() == '{':
			found, err = r.field(path[1:])
			return err
		case len(path) > 1 || end-start > shortField:
			r.pos = end
			return nil
		}
		r.names = maxRecordNames
		value, err := r.Value()
		found = bytes.Clone(value)
		r.out = r.out[:0]
		return err
	})
	return found, err
}

// ErrLong reports an event that is larger than allowed.
var ErrLong = errors.New("it is too long")

func (r *Reader) peek() byte {
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *Reader) space() {
	for r.pos < len(r.in) {
		switch r.in[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *Reader) unexpected() error {
	if r.pos >= len(r.in) {
		return errEndsEarly
	}
	return fmt.Errorf("it is not valid JSON: unexpected %q at byte %d", r.in[r.pos], r.pos+1)
}

func (r *Reader) enter() error {
	if r.depth++; r.depth > maxDepth {
		return errDeep
	}
	r.pos++
	return nil
}

// comma reads the comma before a member or an item, unless it is the first.
func (r *Reader) comma(first bool) error {
	if first {
		return nil
	}
	if r.peek() != ',' {
		return r.unexpected()
	}
	r.pos++
	r.space()
	return nil
}

// manyMembers is the number of members from which keys are looked up in a map.
const manyMembers = 100

// keyFilter tells for most keys that an object does not have them yet.
type keyFilter [4]uint64

// addKey adds a key, and reports whether it may have been there before.
func addKey[T string | []byte](f *keyFilter, key T) bool {
	hash := uint(len(key))
	if len(key) > 0 {
		hash = hash*31 ^ uint(key[len(key)-1]) ^ uint(key[len(key)/2])<<3
	}
	word, bit := &f[hash>>6&3], uint64(1)<<(hash&63)
	known := *word&bit != 0
	*word |= bit
	return known
}

// members reads an object, and its member sub, if that is an object, into inner. Of members with the same key, the last one wins.
func (r *Reader) members(o Object, sub string, inner Object) (Object, Object, error) {
	if err := r.enter(); err != nil {
		return nil, nil, err
	}
	var seen map[string]int
	var filter keyFilter
	for first := true; r.Kind() != '}'; first = false {
		if err := r.comma(first); err != nil {
			return nil, nil, err
		}
		key, err := r.key()
		if err != nil {
			return nil, nil, err
		}
		at := -1
		if addKey(&filter, key) {
			at = o.index(key, seen)
		}
		var value Value
		if key == sub && sub != "" && r.Kind() == '{' {
			if inner, _, err = r.members(inner[:0], "", nil); err != nil {
				return nil, nil, err
			}
			value = nested
		} else if value, err = r.kept(); err != nil {
			return nil, nil, err
		}
		if at >= 0 {
			o[at].Value = value
			continue
		}
		if r.names--; r.names < 0 && !r.repeatNames() {
			return nil, nil, errManyNames
		}
		if o = append(o, Member{key, value}); seen != nil {
			seen[key] = len(o) - 1
		} else if len(o) == manyMembers {
			seen = make(map[string]int, 2*manyMembers)
			for i := range o {
				seen[o[i].Key] = i
			}
		}
	}
	r.pos++
	r.depth--
	return o, inner, nil
}

// repeatNames reports whether the many names of an object are few different ones, as in a list of similar objects. Then they are no longer counted.
func (r *Reader) repeatNames() bool {
	c := nameCounter{most: r.most}
	r.names = math.MaxInt
	return c.count(r.in[r.start:], 0)
}

// nested stands for a field that was read as an object of its own.
var nested = Value("{}")

// index returns the position of a key, or -1. seen has the positions if there are many keys.
func (o Object) index(key string, seen map[string]int) int {
	if seen != nil {
		if at, ok := seen[key]; ok {
			return at
		}
		return -1
	}
	for i := range o {
		if o[i].Key == key {
			return i
		}
	}
	return -1
}

// kept reads the value of a member. Unless values are shared, it gets memory of its own, so that it keeps no others alive.
func (r *Reader) kept() (Value, error) {
	start := len(r.out)
	if err := r.value(); err != nil {
		return nil, err
	}
	value := r.out[start:len(r.out):len(r.out)]
	if !r.shared {
		value = bytes.Clone(value)
		r.out = r.out[:start]
	}
	return value, nil
}

// value reads any value and appends it to out.
func (r *Reader) value() error {
	switch c := r.Kind(); c {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.text()
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return r.number()
		}
		return r.unexpected()
	}
}

func (r *Reader) word(word string) error {
	if len(r.in)-r.pos < len(word) || string(r.in[r.pos:r.pos+len(word)]) != word {
		return r.unexpected()
	}
	r.pos += len(word)
	r.out = append(r.out, word...)
	return nil
}

// object reads an object within a value.
func (r *Reader) object() error {
	if err := r.enter(); err != nil {
		return err
	}
	start, outer := len(r.out), len(r.spans)
	var seen map[string]int
	var filter keyFilter
	repeated := false
	r.out = append(r.out, '{')
	for first := true; r.Kind() != '}'; first = false {
		if err := r.comma(first); err != nil {
			return err
		}
		if !first {
			r.out = append(r.out, ',')
		}
		if r.peek() != '"' {
			return r.unexpected()
		}
		s := span{key: len(r.out)}
		if err := r.memberKey(); err != nil {
			return err
		}
		s.keyEnd = len(r.out)
		at := -1
		if addKey(&filter, r.out[s.key:s.keyEnd]) {
			at = r.sameKey(outer, s, seen)
		}
		r.out = append(r.out, ':')
		s.value = len(r.out)
		if err := r.value(); err != nil {
			return err
		}
		s.valueEnd = len(r.out)
		if at >= 0 {
			repeated = true
			r.spans[at].value, r.spans[at].valueEnd = s.value, s.valueEnd
			continue
		}
		if r.names--; r.names < 0 && !r.repeatNames() {
			return errManyNames
		}
		if r.spans = append(r.spans, s); seen != nil {
			seen[string(r.out[s.key:s.keyEnd])] = len(r.spans) - 1
		} else if len(r.spans)-outer == manyMembers {
			seen = r.seenKeys(outer)
		}
	}
	r.pos++
	r.depth--
	r.out = append(r.out, '}')
	if repeated {
		r.rewrite(start, r.spans[outer:])
	}
	r.spans = r.spans[:outer]
	return nil
}

func (r *Reader) seenKeys(outer int) map[string]int {
	seen := make(map[string]int, 2*manyMembers)
	for i := outer; i < len(r.spans); i++ {
		seen[string(r.out[r.spans[i].key:r.spans[i].keyEnd])] = i
	}
	return seen
}

// sameKey returns the position of the member of the open object that has the key of s, or -1.
func (r *Reader) sameKey(outer int, s span, seen map[string]int) int {
	key := r.out[s.key:s.keyEnd]
	if seen != nil {
		if at, ok := seen[string(key)]; ok {
			return at
		}
		return -1
	}
	for i := outer; i < len(r.spans); i++ {
		if o := r.spans[i]; o.keyEnd-o.key == len(key) && bytes.Equal(r.out[o.key:o.keyEnd], key) {
			return i
		}
	}
	return -1
}

// rewrite writes an object in the output again, with these members.
func (r *Reader) rewrite(start int, members []span) {
	written := bytes.Clone(r.out[start:])
	r.out = append(r.out[:start], '{')
	for i, m := range members {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.out = append(r.out, written[m.key-start:m.keyEnd-start]...)
		r.out = append(r.out, ':')
		r.out = append(r.out, written[m.value-start:m.valueEnd-start]...)
	}
	r.out = append(r.out, '}')
}

func (r *Reader) array() error {
	if err := r.enter(); err != nil {
		return err
	}
	r.out = append(r.out, '[')
	for first := true; r.Kind() != ']'; first = false {
		if err := r.comma(first); err != nil {
			return err
		}
		if !first {
			r.out = append(r.out, ',')
		}
		if err := r.value(); err != nil {
			return err
		}
	}
	r.pos++
	r.depth--
	r.out = append(r.out, ']')
	return nil
}

// number reads a number. An integer that no column of ClickHouse can hold becomes a float.
func (r *Reader) number() error {
	start := r.pos
	integer, exponent := true, false
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
		integer, exponent = false, true
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		if !r.digits() {
			return r.unexpected()
		}
	}
	text := r.in[start:r.pos]
	const (
		fits   = 18  // digits of an integer that surely fits into 64 bits
		finite = 300 // digits of a float that surely is not too large
	)
	if integer && (len(text) <= fits || r.exact && r.depth == outermost || fits64(string(text))) || !integer && !exponent && len(text) <= finite {
		r.out = append(r.out, text...)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(f, 0) {
		return &BoundError{"the number " + Quoted(string(text)) + " is too large"}
	}
	if integer {
		r.out = strconv.AppendFloat(r.out, f, 'e', -1, 64)
		return nil
	}
	r.out = append(r.out, text...)
	return nil
}

// outermost is the depth of the fields that Event reads.
const outermost = 2

func fits64(text string) bool {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return true
	}
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func (r *Reader) digits() bool {
	start := r.pos
	for r.pos < len(r.in) && r.in[r.pos] >= '0' && r.in[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}

// key reads the key of a member and the colon after it. NUL, which no name in ClickHouse may hold, becomes U+FFFD.
func (r *Reader) key() (string, error) {
	raw, form, err := r.quoted()
	if err != nil {
		return "", err
	}
	if form != simpleText {
		if r.scratch, err = r.unescape(r.scratch[:0], raw, true); err != nil {
			return "", err
		}
		raw = r.scratch
	}
	key, ok := r.keys[string(raw)]
	if !ok {
		key = strings.ToValidUTF8(string(raw), "\uFFFD")
		if r.keys != nil && len(r.keys) < maxKeys && len(key) <= maxKeyBytes {
			r.keys[key] = key
		}
	}
	return key, r.colon()
}

// memberKey appends the key of a member, and reads the colon after it.
func (r *Reader) memberKey() error {
	texts := r.texts
	r.texts = true
	err := r.text()
	if r.texts = texts; err != nil {
		return err
	}
	return r.colon()
}

func (r *Reader) colon() error {
	if r.Kind() != ':' {
		return r.unexpected()
	}
	r.pos++
	return nil
}
