package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxDepth bounds how deeply the JSON of a query may be nested.
const maxDepth = 64

// decode reads JSON as maps, slices, strings, bools, nils and json.Numbers.
func decode(raw []byte) (any, error) {
	if err := checkDepth(raw); err != nil {
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

// checkDepth refuses JSON that is nested too deeply, before anything recurses into it.
func checkDepth(raw []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return malformedAt(raw, "nested too deeply", i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
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

// place is where a value stands: for people, with the kinds of nodes between the fields, and for programs, without them.
type place struct{ path, attr string }

// below is the place of a part. field tells that it is a field of the JSON, not the kind of a node.
func (p place) below(name string, field bool) place {
	p.path += "." + name
	if field {
		if p.attr != "" {
			p.attr += "."
		}
		p.attr += name
	}
	return p
}

// problem is one thing that is wrong with a query's JSON.
type problem struct {
	at         place
	typ, words string
	meant      string // what the author probably meant; empty when nothing is near
}

// maxProblems bounds the list that is shown.
const maxProblems = 20

// reader collects what is wrong while it reads closed models.
type reader struct {
	model    string // what is read; empty for a QueryRequest
	problems []problem
	count    int
	refused  *diag.Error // see refuse
}

func (r *reader) add(at place, typ, words string) { r.near(at, typ, words, "", nil) }

// near adds a problem with a word that should have been one of some others.
func (r *reader) near(at place, typ, words, word string, others []string) {
	if r.count++; r.count <= maxProblems {
		r.problems = append(r.problems, problem{at, typ, words, schema.Nearest(word, slices.Values(others))})
	}
}

// refuse notes a value that has the right form and makes no sense, in words that stand for themselves. It is told when nothing
// has a wrong form.
func (r *reader) refuse(at place, words string) {
	if r.refused == nil {
		r.refused = diag.Field(diag.InvalidInput, at.attr, "%s", words)
	}
}

// err gives all problems as one mistake in the words of the contract, nil when there are none.
func (r *reader) err() error {
	switch {
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
	return &diag.Error{Code: diag.ParseError, Detail: b.String(), Attr: r.problems[0].at.attr}
}

// firstErr gives the first problem alone, as a mistake in its field; nil when there are none.
func (r *reader) firstErr() error {
	if r.count == 0 {
		return nil
	}
	first := r.problems[0]
	return diag.Field(diag.InvalidInput, first.at.attr, "%s", first.words)
}

// object reads the fields of one closed model. A field that is null counts as absent.
type object struct {
	r    *reader
	at   place
	m    map[string]any
	seen []string
}

func (r *reader) object(v any, at place) *object {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(at, "model_type", "Input should be a valid dictionary")
		m = nil
	}
	return &object{r: r, at: at, m: m}
}

// take gives a field that is there and not null.
func (o *object) take(name string) (any, bool) {
	o.seen = append(o.seen, name)
	v, ok := o.m[name]
	return v, ok && v != nil
}

// has tells whether a field is there, even as null.
func (o *object) has(name string) bool {
	_, ok := o.m[name]
	return ok
}

// ignore names fields that may be there and mean nothing to us.
func (o *object) ignore(names ...string) { o.seen = append(o.seen, names...) }

func (o *object) field(name string) place { return o.at.below(name, true) }

// take reads a field of one type; words says what it should have been.
func take[T any](o *object, name, typ, words string) (T, bool) {
	var zero T
	v, ok := o.take(name)
	if !ok {
		return zero, false
	}
	t, ok := v.(T)
	if !ok {
		o.r.add(o.field(name), typ, words)
	}
	return t, ok
}

func (o *object) text(name string) string {
	s, _ := take[string](o, name, "string_type", "Input should be a valid string")
	return s
}

func (o *object) flag(name string) bool {
	b, _ := take[bool](o, name, "bool_type", "Input should be a valid boolean")
	return b
}

// integer reads a whole number, which may be written as a text too, as PostHog's own models have it.
func (o *object) integer(name string) (int, bool) {
	v, ok := o.take(name)
	if !ok {
		return 0, false
	}
	if text, ok := v.(string); ok {
		v = json.Number(text)
	}
	n, ok := v.(json.Number)
	i, isWhole := whole(n)
	if !ok || !isWhole {
		o.r.add(o.field(name), "int_type", "Input should be a valid integer")
		return 0, false
	}
	return int(i), true
}

// whole reads an integer, which may be written as 7.0 or 1e3, as some languages do.
func whole(n json.Number) (int64, bool) {
	const exact = 1 << 53 // up to here every integer is a number of its own
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact {
		return 0, false
	}
	return int64(f), true
}

func (o *object) dict(name string) map[string]any {
	m, _ := take[map[string]any](o, name, "dict_type", "Input should be a valid dictionary")
	return m
}

func (o *object) list(name string) []any {
	l, _ := take[[]any](o, name, "list_type", "Input should be a valid list")
	return l
}

// need reads a field that must be a string.
func (o *object) need(name string) string {
	if !o.has(name) {
		o.seen = append(o.seen, name)
		if o.m != nil {
			o.r.add(o.field(name), "missing", "Field required")
		}
		return ""
	}
	if o.m[name] == nil {
		o.seen = append(o.seen, name)
		o.r.add(o.field(name), "string_type", "Input should be a valid string")
		return ""
	}
	return o.text(name)
}

// close notes every field that the model does not have, in the order of their names.
func (o *object) close() {
	var extra []string
	for name := range o.m {
		if !slices.Contains(o.seen, name) {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	for _, name := range extra {
		o.r.near(o.field(shown(name)), "extra_forbidden", "Extra inputs are not permitted", name, o.seen)
	}
}

// shown gives a value of the request as a message shows it: short.
func shown(v any) string {
	const most = 60
	s := fmt.Sprint(v)
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
