// Package diag describes mistakes that the author of a query can mend: what is wrong, where, and what was probably meant.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// Span is a half-open range of bytes in the text of a query. The zero Span means no place: the node was made by the compiler, or the query
// came as JSON.
type Span struct{ Start, End int }

// IsZero reports whether the span points nowhere.
func (s Span) IsZero() bool { return s == Span{} }

// To returns the span from the start of s to the end of end.
func (s Span) To(end Span) Span {
	if s.IsZero() {
		return end
	}
	if end.IsZero() {
		return s
	}
	return Span{s.Start, end.End}
}

// Code identifies a family of mistakes for programs. Codes are part of the API: add some, but never rename one.
type Code string

// The codes of contract hogql.md, section 16.
const (
	// SyntaxError occurs when the text does not parse, is empty, or names a reserved alias.
	SyntaxError Code = "hogql_syntax_error"
	// QueryError occurs when a query parses but is invalid: an unknown name, a wrong number of arguments, a misplaced clause.
	QueryError Code = "hogql_query_error"
	// TableAccessDenied occurs when a query names a table that its author may not read.
	TableAccessDenied Code = "table_access_denied"
	// IllegalType occurs when a function does not accept a value of this type. The name is ClickHouse's.
	IllegalType Code = "illegal_type_of_argument"
	// HogQLError occurs for other mistakes in a query that its author may see.
	HogQLError Code = "hogql_error"
	// ParseError occurs when the JSON around a query has the wrong shape.
	ParseError Code = "parse_error"
	// InvalidInput occurs when a JSON field has an invalid value.
	InvalidInput Code = "invalid_input"
)

// Error is a mistake that the author of a query can mend (contract: hogql.md, section 16). Any other error is a bug or an outage, whose text is
// only for the server log.
type Error struct {
	Code   Code
	Detail string // for people, in PostHog's words where it has them
	Span   Span   // bytes of the query text; zero when the query came as JSON
	Attr   string // dotted field of the JSON body, such as series.1.math
	Hint   string // the nearest valid name; empty if none is near
	Fix    string // the text to put in place of Span; empty if it is the Hint, or unknown
	Advice string // a sentence on what to write instead, if a Hint is not enough; may be empty
}

// Error returns the detail, preceded by the place if there is one: "start:end: detail".
func (e *Error) Error() string {
	switch {
	case !e.Span.IsZero():
		return fmt.Sprintf("%d:%d: %s", e.Span.Start, e.Span.End, e.Detail)
	case e.Attr != "":
		return e.Attr + ": " + e.Detail
	}
	return e.Detail
}

// Shown formats a value of a request for messages: its first 60 characters.
func Shown(v any) string {
	const most = 60
	s, n := fmt.Sprint(v), 0
	for i := range s {
		if n == most {
			s = s[:i] + "…"
			break
		}
		n++
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// New returns a single mistake with a place.
func New(code Code, at Span, format string, args ...any) *Error {
	return &Error{Code: code, Span: at, Detail: fmt.Sprintf(format, args...)}
}

// Field returns a single mistake in a field of a JSON body; attr is its dotted path.
func Field(code Code, attr, format string, args ...any) *Error {
	return &Error{Code: code, Attr: attr, Detail: fmt.Sprintf(format, args...)}
}

// Errors are all mistakes of a query, in text order.
type Errors []*Error

// Error joins the mistakes, one per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As access to each mistake.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// List collects the mistakes that a stage finds. Its zero value is ready to use; it drops mistakes after the first hundred.
type List struct{ found Errors }

const maxMistakes = 100

// maxDetail bounds the detail of a mistake, in bytes: it may quote names and values of a request, and a hundred mistakes may quote the same.
const maxDetail = 4096

// Add notes one mistake. Of a very long detail, it keeps the start.
func (l *List) Add(e *Error) {
	if len(l.found) == maxMistakes {
		return
	}
	if len(e.Detail) > maxDetail {
		short := *e
		short.Detail = shorten.Text(e.Detail, maxDetail)
		e = &short
	}
	l.found = append(l.found, e)
}

// Full reports whether further mistakes would be dropped, so that looking for their hints is not worth it.
func (l *List) Full() bool { return len(l.found) == maxMistakes }

// Any reports whether a mistake was noted.
func (l *List) Any() bool { return len(l.found) > 0 }

// Addf notes one mistake at a place.
func (l *List) Addf(code Code, at Span, format string, args ...any) {
	l.Add(New(code, at, format, args...))
}

// Err returns nil if nothing was added, otherwise all mistakes sorted by place.
func (l *List) Err() error {
	if len(l.found) == 0 {
		return nil
	}
	out := slices.Clone(l.found)
	slices.SortStableFunc(out, func(a, b *Error) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return out
}

// Position is a place for people to read: lines and columns count from 1, columns in characters.
type Position struct{ Line, Column int }

// Locate finds the line and column of a byte offset in text.
func Locate(text string, offset int) Position {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	line := strings.Count(before, "\n")
	return Position{Line: line + 1, Column: len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1}
}
