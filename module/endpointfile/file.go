// Package endpointfile reads and writes endpoints as YAML files, one endpoint per file, with the fields of PostHog's command line tool and a few more.
package endpointfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// File is one endpoint as its file describes it. What the file leaves out has its default.
type File struct {
	Path               string
	Name               string
	Description        string
	Query              json.RawMessage // the query's node, without variables
	Variables          []Variable
	Freshness          time.Duration // in whole seconds
	Active             bool
	Tags               []string
	RateLimit          registry.Rate // for the queries that runs cause; zero for the server's default
	OptionalBreakdowns []string      // breakdown properties that runs of a materialized version may leave out
	Materialized       bool
	Buckets            map[string]string // of a materialized version: column → length; nil for none

	at   map[string]int // field → line
	text textPlace
}

// Variable is an insight variable that a file defines for its project: contract api.md, section 4.6.
type Variable struct {
	Name    string // the x of {variables.x}
	Type    registry.VariableType
	Default json.RawMessage // JSON; nil for none
	Values  json.RawMessage // a JSON array, for a List; nil for none
	Multi   bool
	// The value for runs that give none, instead of the variable's default; nil for none, null for NULL.
	Value json.RawMessage
	Line  int
}

// same reports whether two files define a variable in the same way; the value belongs to the endpoint.
func (v *Variable) same(as *Variable) bool {
	return v.Type == as.Type && v.Multi == as.Multi && sameJSON(v.Default, as.Default) && sameJSON(v.Values, as.Values)
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	equal, err := query.Equal(a, b)
	return err == nil && equal
}

// Error is a mistake in a file.
type Error struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1; 0 if the mistake has no line
	Text string `json:"text"`
}

// Error formats the mistake like a compiler: path:line: text.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
}

// textPlace is where the text of a HogQL query is in its file.
type textPlace struct {
	line  int  // of the first line of the text
	block bool // each line of the text is one line of the file
}

// Mistake returns a mistake in a field of the file; the empty field stands for the file itself.
func (f *File) Mistake(field, format string, args ...any) *Error {
	return &Error{Path: f.Path, Line: cmp.Or(f.at[field], f.at["name"]), Text: fmt.Sprintf(format, args...)}
}

// QueryMistake returns a mistake in the query; line counts within the query's text, from 1; 0 if unknown.
func (f *File) QueryMistake(line int, text string) *Error {
	if f.text.block && line > 0 {
		return &Error{Path: f.Path, Line: f.text.line + line - 1, Text: text}
	}
	return &Error{Path: f.Path, Line: cmp.Or(f.text.line, f.at["query"], f.at["query_definition"]), Text: text}
}

// Source is the text of a file.
type Source struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// maxSource is the largest file in bytes.
const maxSource = 1 << 20

// ReadDir reads the files of a folder whose names end in .yaml or .yml, sorted by name; it skips subfolders.
func ReadDir(dir string) ([]Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of endpoints: %w", err)
	}
	sources := []Source{}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		text, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
		if err != nil {
			return nil, fmt.Errorf("reading an endpoint: %w", err)
		}
		sources = append(sources, Source{Path: path, Text: string(text)})
	}
	return sources, nil
}

// ParseAll reads files that belong together: each endpoint name may be in only one of them, and a variable that several define must be the same in
// all. The error joins all mistakes; each is an *Error.
func ParseAll(sources []Source) ([]*File, error) {
	var mistakes []error
	var files []*File
	names := make(map[string]*File)
	variables := make(map[string]*Variable)
	definedIn := make(map[string]*File)
	for _, source := range sources {
		f, err := Parse(source.Path, []byte(source.Text))
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		files = append(files, f)
		if other := names[f.Name]; other != nil {
			mistakes = append(mistakes, f.Mistake("name", "the endpoint %s stands in %s too", f.Name, other.Path))
		}
		names[f.Name] = f
		for i := range f.Variables {
			v := &f.Variables[i]
			if other := variables[v.Name]; other != nil && !v.same(other) {
				mistakes = append(mistakes, &Error{Path: f.Path, Line: v.Line, Text: fmt.Sprintf(
					"the variable %s is another one in %s:%d; a project has one of a name", v.Name, definedIn[v.Name].Path, other.Line)})
				continue
			}
			variables[v.Name], definedIn[v.Name] = v, f
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(files, func(a, b *File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

// Mistakes returns the mistakes that err joins; none if it contains any other error.
func Mistakes(err error) []*Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, part := range joined.Unwrap() {
			found := Mistakes(part)
			if found == nil {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	if one, ok := err.(*Error); ok { //nolint:errorlint // one that is wrapped is another error
		return []*Error{one}
	}
	return nil
}
