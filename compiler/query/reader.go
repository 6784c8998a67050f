package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The bounds on a query's JSON. A decoded object can take 50 times its text in memory, so objects are bounded apart from other values.
const (
	MaxDepth   = 64
	MaxValues  = 1_000_000
	MaxObjects = 100_000
)

// decode parses JSON to maps, slices, strings, bools, nils and json.Numbers.
func decode(raw []byte) (any, error) {
	if err := checkBounds(raw); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, malformed(raw, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, malformedAt(raw, "extra data", int(d.InputOffset()))
	}
	return v, nil
}

// checkBounds refuses JSON that is nested too deeply, or has too many values, before anything recurses into it or takes memory for it.
func checkBounds(raw []byte) error {
	depth, values, objects := 0, 1, 0
	for i, c := range structure(raw) {
		switch c {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return malformedAt(raw, "nested too deeply", i)
			}
			if c == '{' {
				objects++
			} else {
				values++
			}
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if values > MaxValues || objects > MaxObjects {
			return malformedAt(raw, fmt.Sprintf("more than %d values or %d objects", MaxValues, MaxObjects), i)
		}
	}
	return nil
}

// structure yields the brackets, braces and commas of JSON that are not in strings, with their offsets.
func structure(raw []byte) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		inString := false
		for i := 0; i < len(raw); i++ {
			c := raw[i]
			switch {
			case inString && c == '\\':
				i++
			case c == '"':
				inString = !inString
			case inString:
			case c == '{' || c == '[' || c == '}' || c == ']' || c == ',':
				if !yield(i, c) {
					return
				}
			}
		}
	}
}

// About how many bytes of memory a decoded value takes besides its text, and how many more an object does.
const (
	valueSize  = 32
	objectSize = 128
)

// Count returns about how many values are in JSON, how many objects, and how deep they are nested. It takes no memory.
func Count(raw []byte) (values, objects, deepest int) {
	values = 1
	depth := 0
	for _, c := range structure(raw) {
		switch c {
		case ',':
			values++
		case '[':
			values++
			depth++
		case '{':
			objects++
			depth++
		case '}', ']':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return values, objects, deepest
}

// DecodedSize returns about how many bytes of memory the values in JSON take once they are decoded, besides their texts.
func DecodedSize(raw []byte) int {
	values, objects, _ := Count(raw)
	return values*valueSize + objects*objectSize
}

func malformed(raw []byte, err error) error {
	offset := len(raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = max(int(syntax.Offset)-1, 0)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformedAt(raw, "unexpected end of JSON input", offset)
	}
	return malformedAt(raw, err.Error(), offset)
}

func malformedAt(raw []byte, what string, offset int) error {
	at := diag.Locate(string(raw), offset)
	return diag.New(diag.ParseError, diag.Span{}, "JSON parse error - %s: line %d column %d (char %d)", what, at.Line, at.Column, offset)
}

// Place is the location of a value: for people with the kinds of nodes between the fields, for programs without.
type Place struct {
	path string
	// Attr is the dotted path of the field, such as series.0.math; empty for the whole query.
	Attr string
}

// Below returns the place of a part. field reports whether it is a field of the JSON rather than the kind of a node.
func (p Place) Below(name string, field bool) Place {
	p.path += "." + name
	if field {
		if p.Attr != "" {
			p.Attr += "."
		}
		p.Attr += name
	}
	return p
}

// problem is one mistake in a query's JSON.
type problem struct {
	at         Place
	typ, words string
	meant      string // what the author probably meant; empty if unknown
}

// maxProblems bounds the problems in a message.
const maxProblems = 20

// Reader reads closed models, and collects what is wrong with them.
type Reader struct {
	kinds    Kinds
	depth    int    // of nested nodes
	model    string // the model being read; empty for a QueryRequest
	problems []problem
	count    int
	refused  *diag.Error // see Refuse
	ended    *diag.Error // see unsupported
}

// Add notes an invalid value: typ is PostHog's word for the mistake, words describes it for people.
func (r *Reader) Add(at Place, typ, words string) { r.Near(at, typ, words, "", nil) }

// Near is Add for a word that should have been one of others.
func (r *Reader) Near(at Place, typ, words, word string, others []string) {
	if r.count++; r.count <= maxProblems {
		r.problems = append(r.problems, problem{at, typ, words, schema.Nearest(word, slices.Values(others))})
	}
}

// Refuse notes a value that has the right form but makes no sense, in words that need no explanation. It is reported only if every value has the
// right form.
func (r *Reader) Refuse(at Place, words string) {
	if r.refused == nil {
		r.refused = diag.Field(diag.InvalidInput, at.Attr, "%s", words)
	}
}

// unsupported notes a node that is not supported. It takes precedence over other mistakes.
func (r *Reader) unsupported(at Place, words, what string) {
	if r.ended == nil {
		r.ended = diag.Field(diag.InvalidInput, at.Attr, words, what)
	}
}

// err returns all problems as one mistake in PostHog's words; nil if there are none.
func (r *Reader) err() error {
	switch {
	case r.ended != nil:
		return r.ended
	case r.count == 0 && r.refused != nil:
		return r.refused
	case r.count == 0:
		return nil
	}
	var b strings.Builder
	plural := "s"
	if r.count == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "JSON parse error - %d validation error%s for %s", r.count, plural, cmp.Or(r.model, "QueryRequest"))
	for _, p := range r.problems {
		fmt.Fprintf(&b, "\n%s\n  %s [type=%s]", p.at.path, p.words, p.typ)
		if p.meant != "" {
			fmt.Fprintf(&b, ": did you mean '%s'?", p.meant)
		}
	}
	return &diag.Error{Code: diag.ParseError, Detail: b.String(), Attr: r.problems[0].at.Attr}
}

// firstErr returns only the first problem, as a mistake in its field; nil if there are none.
func (r *Reader) firstErr() error {
	if r.count == 0 {
		return nil
	}
	first := r.problems[0]
	return diag.Field(diag.InvalidInput, first.at.Attr, "%s", first.words)
}

// Object reads the fields of one closed model. A null field counts as absent.
type Object struct {
	// At is the place of the object in the JSON.
	At Place
	// Given are its fields as decoded, numbers as json.Number; nil for a value that is not an object.
	Given map[string]any
	r     *Reader
	seen  []string
}

// Object starts reading an object.
func (r *Reader) Object(v any, at Place) *Object {
	m, ok := v.(map[string]any)
	if !ok {
		r.Add(at, "model_type", "Input should be a valid dictionary")
		m = nil
	}
	return &Object{r: r, At: at, Given: m}
}

// Take returns a field that is present and not null.
func (o *Object) Take(name string) (any, bool) {
	o.seen = append(o.seen, name)
	v, ok := o.Given[name]
	return v, ok && v != nil
}

// Has reports whether a field is present, even as null.
func (o *Object) Has(name string) bool {
	_, ok := o.Given[name]
	return ok
}

// Ignore names fields that are allowed but have no effect here.
func (o *Object) Ignore(names ...string) { o.seen = append(o.seen, names...) }

func (o *Object) Field(name string) Place { return o.At.Below(name, true) }

// Take reads a field of one type; words describes the expected value.
func Take[T any](o *Object, name, typ, words string) (T, bool) {
	var zero T
	v, ok := o.Take(name)
	if !ok {
		return zero, false
	}
	t, ok := v.(T)
	if !ok {
		o.r.Add(o.Field(name), typ, words)
	}
	return t, ok
}

func (o *Object) Text(name string) string {
	s, _ := Take[string](o, name, "string_type", "Input should be a valid string")
	return s
}

// TextOrNil reads a text; nil if there is none.
func (o *Object) TextOrNil(name string) *string {
	s, ok := Take[string](o, name, "string_type", "Input should be a valid string")
	if !ok {
		return nil
	}
	return &s
}

func (o *Object) Flag(name string) bool {
	b, _ := Take[bool](o, name, "bool_type", "Input should be a valid boolean")
	return b
}

// Integer reads a whole number, which may also be text, as in PostHog's own models.
func (o *Object) Integer(name string) (int, bool) {
	v, ok := o.Take(name)
	if !ok {
		return 0, false
	}
	if text, ok := v.(string); ok {
		v = json.Number(text)
	}
	n, ok := v.(json.Number)
	i, isWhole := Whole(n)
	if !ok || !isWhole {
		o.r.Add(o.Field(name), "int_type", "Input should be a valid integer")
		return 0, false
	}
	return int(i), true
}

// Whole converts an integer, which some languages write as 7.0 or 1e3.
func Whole(n json.Number) (int64, bool) {
	const exact = 1 << 53 // up to here, every integer has its own float64
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact {
		return 0, false
	}
	return int64(f), true
}

// Number reads a field that may be a fraction.
func (o *Object) Number(name string) (float64, bool) {
	n, ok := Take[json.Number](o, name, "float_type", "Input should be a valid number")
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	if err != nil {
		o.r.Add(o.Field(name), "float_type", "Input should be a valid number")
		return 0, false
	}
	return f, true
}

// AtLeast reads a number that must not be below least; 0 if there is none.
func (o *Object) AtLeast(name string, least int) int {
	n, ok := o.Integer(name)
	if ok && n < least {
		o.r.Add(o.Field(name), "greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", least))
	}
	return n
}

// OrZero reads a whole number; 0 if there is none or it is negative.
func (o *Object) OrZero(name string) int {
	n, _ := o.Integer(name)
	return max(n, 0)
}

// IntegerOrNil reads a whole number; nil if there is none.
func (o *Object) IntegerOrNil(name string) *int {
	n, ok := o.Integer(name)
	if !ok {
		return nil
	}
	return &n
}

func (o *Object) Dict(name string) map[string]any {
	m, _ := Take[map[string]any](o, name, "dict_type", "Input should be a valid dictionary")
	return m
}

func (o *Object) List(name string) []any {
	l, _ := Take[[]any](o, name, "list_type", "Input should be a valid list")
	return l
}

// Need reads a required string.
func (o *Object) Need(name string) string {
	if !o.Has(name) {
		o.seen = append(o.seen, name)
		if o.Given != nil {
			o.r.Add(o.Field(name), "missing", "Field required")
		}
		return ""
	}
	if o.Given[name] == nil {
		o.seen = append(o.seen, name)
		o.r.Add(o.Field(name), "string_type", "Input should be a valid string")
		return ""
	}
	return o.Text(name)
}

// Required notes missing fields. It does not read them.
func (o *Object) Required(names ...string) {
	for _, name := range names {
		if v := o.Given[name]; v == nil && o.Given != nil {
			o.r.Add(o.Field(name), "missing", "Field required")
		}
	}
}

// Choice reads a field that has one of several words; without is used if it is absent.
func (o *Object) Choice(name, without string, words ...string) string {
	s, ok := Take[string](o, name, "enum", "Input should be "+oneOf(words))
	if !ok {
		return without
	}
	return o.Word(s, o.Field(name), words...)
}

// Word checks that a value is one of several words.
func (o *Object) Word(v any, at Place, words ...string) string {
	s, ok := v.(string)
	if !ok || !slices.Contains(words, s) {
		o.r.Near(at, "enum", "Input should be "+oneOf(words), s, words)
	}
	return s
}

// oneOf joins words like PostHog's validator.
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return "'" + words[0] + "'"
	}
	return "'" + strings.Join(words[:last], "', '") + "' or '" + words[last] + "'"
}

// Close notes every unknown field, sorted by name.
func (o *Object) Close() {
	var extra []string
	for name := range o.Given {
		if !slices.Contains(o.seen, name) {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	for _, name := range extra {
		o.r.Near(o.Field(diag.Shown(name)), "extra_forbidden", "Extra inputs are not permitted", name, o.seen)
	}
}
