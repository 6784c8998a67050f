package query

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Autocomplete asks what can be typed at a place in a text (contract: clients-queries.md, section 8).
type Autocomplete struct {
	// Language is one of languages.
	Language Language
	Query    string
	// Start and End delimit the word being typed, in characters.
	Start, End int
	// Source is the query that an expression belongs to; nil if there is none, or an invalid one.
	Source Node
	// Globals are values that the text can name.
	Globals   map[string]any
	Modifiers Modifiers
}

// Kind returns HogQLAutocomplete.
func (*Autocomplete) Kind() string { return "HogQLAutocomplete" }

// Text returns the text to complete.
func (q *Autocomplete) Text() string { return q.Query }

// Canonical leaves out null fields.
func (q *Autocomplete) Canonical() []byte {
	asked := &HogQL{Query: q.Query, Values: q.Globals, Modifiers: q.Modifiers}
	var source json.RawMessage
	if q.Source != nil {
		source = q.Source.Canonical()
	}
	out, err := json.Marshal(struct {
		Kind     string          `json:"kind"`
		Language Language        `json:"language"`
		Query    json.RawMessage `json:"query"`
		Start    int             `json:"startPosition"`
		End      int             `json:"endPosition"`
		Source   json.RawMessage `json:"sourceQuery,omitempty"`
	}{q.Kind(), q.Language, asked.Canonical(), q.Start, q.End, source})
	if err != nil {
		panic(fmt.Sprintf("BUG: a parsed query cannot be written as JSON: %v", err))
	}
	return out
}

// ReadAutocomplete reads a HogQLAutocomplete.
func ReadAutocomplete(r *Reader, o *Object) Node {
	q := &Autocomplete{
		Language:  Language(o.Need("language")),
		Query:     o.Need("query"),
		Start:     o.needInteger("startPosition"),
		End:       o.needInteger("endPosition"),
		Globals:   o.Dict("globals"),
		Modifiers: r.Modifiers(o),
	}
	r.filters(o)
	r.Tags(o)
	r.noConnection(o, "connectionId")
	if given, ok := o.Take("sourceQuery"); ok {
		q.Source = r.apart(given, o.Field("sourceQuery"))
	}
	o.Close()
	if language := string(q.Language); language != "" && !slices.Contains(languages, language) {
		r.Add(o.Field("language"), "enum", "Input should be "+oneOf(languages))
	}
	return q
}

// needInteger reads a required whole number.
func (o *Object) needInteger(name string) int {
	n, ok := o.Integer(name)
	if !ok && o.Given != nil && o.Given[name] == nil {
		o.r.Add(o.Field(name), "missing", "Field required")
	}
	return n
}

// apart reads a node whose mistakes are ignored: the result is then nil.
func (r *Reader) apart(v any, at Place) Node {
	inner := &Reader{kinds: r.kinds, depth: r.depth}
	if n := inner.node(v, at); inner.err() == nil {
		return n
	}
	return nil
}
