package query

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Metadata asks what is right and wrong with a HogQL text, without running it (contract: api.md, section 1.6).
type Metadata struct {
	Language Language
	// Query is the text to check.
	Query string
	// Source is the query that an expression would be a column of; nil for an expression over events, and for a whole query.
	Source *HogQL
	// Globals are the constants for {name} placeholders, like HogQL.Values, and for names that have no other meaning.
	Globals map[string]any
	// Variables, Filters and Modifiers are as in HogQL.
	Variables map[string]Variable
	Filters   *Filters
	Modifiers Modifiers
	// Debug asks for more notices: how a property is stored.
	Debug bool
}

// Language is the language of the text in a Metadata.
type Language string

// The supported languages.
const (
	LanguageHogQL Language = "hogQL"     // one SELECT
	LanguageExpr  Language = "hogQLExpr" // one expression
)

// languages are PostHog's languages.
var languages = []string{"hog", "hogJson", "hogQL", "hogQLExpr", "hogTemplate", "liquid"}

// Kind returns HogQLMetadata.
func (*Metadata) Kind() string { return "HogQLMetadata" }

// Text returns the text to check.
func (q *Metadata) Text() string { return q.Query }

// HogQL returns the text as a query, if it is a whole one.
func (q *Metadata) HogQL() *HogQL {
	return &HogQL{Query: q.Query, Values: q.Globals, Variables: q.Variables, Filters: q.Filters, Modifiers: q.Modifiers}
}

// Canonical leaves out null fields.
func (q *Metadata) Canonical() []byte {
	asked := q.HogQL()
	var source json.RawMessage
	if q.Source != nil {
		source = q.Source.Canonical()
	}
	out, err := json.Marshal(struct {
		Kind     string          `json:"kind"`
		Language Language        `json:"language"`
		Query    json.RawMessage `json:"query"`
		Source   json.RawMessage `json:"sourceQuery,omitempty"`
		Debug    bool            `json:"debug,omitempty"`
	}{q.Kind(), q.Language, asked.Canonical(), source, q.Debug})
	if err != nil {
		panic(fmt.Sprintf("BUG: a parsed query cannot be written as JSON: %v", err))
	}
	return out
}

// ReadMetadata reads a HogQLMetadata.
func ReadMetadata(r *Reader, o *Object) Node {
	q := &Metadata{
		Language:  Language(o.Need("language")),
		Query:     o.Need("query"),
		Globals:   o.Dict("globals"),
		Variables: r.variables(o),
		Filters:   r.filters(o),
		Modifiers: r.Modifiers(o),
		Debug:     o.Flag("debug"),
	}
	r.Tags(o)
	r.noConnection(o, "connectionId")
	o.Flag("indexUsage")
	if given, ok := o.Take("sourceQuery"); ok {
		source := r.node(given, o.Field("sourceQuery"))
		if q.Source, ok = source.(*HogQL); !ok && source != nil {
			r.Add(o.Field("sourceQuery"), "value_error", "Input should be a HogQLQuery")
		}
	}
	o.Close()
	switch language := string(q.Language); {
	case language == "", q.Language == LanguageHogQL, q.Language == LanguageExpr:
	case slices.Contains(languages, language):
		r.unsupported(o.Field("language"), "Unsupported language: %s. There are hogQL, a query, and hogQLExpr, an expression", language)
	default:
		r.Add(o.Field("language"), "enum", "Input should be "+oneOf(languages))
	}
	return q
}
