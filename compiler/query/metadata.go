package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// Metadata asks what is right and what is wrong with a HogQL text, which is not run (contract: api.md, section 1.6).
type Metadata struct {
	Language Language
	// Query is the text to look at.
	Query string
	// Source is the query to whose columns an expression would be added; nil for an expression over events. A whole
	// query has none.
	Source *HogQL
	// Globals are the constants of {name} placeholders, as HogQL.Values.
	Globals map[string]any
	// Variables, Filters and Modifiers are those of HogQL.
	Variables map[string]Variable
	Filters   *Filters
	Modifiers map[string]any
	// Debug asks for more in the notices: how a property is stored.
	Debug bool
}

// Language is what the text of a Metadata is written in.
type Language string

// The languages that are understood.
const (
	LanguageHogQL Language = "hogQL"     // one SELECT
	LanguageExpr  Language = "hogQLExpr" // one expression
)

// languages are those of the peer.
var languages = []string{"hog", "hogJson", "hogQL", "hogQLExpr", "hogTemplate", "liquid"}

// Kind returns HogQLMetadata.
func (*Metadata) Kind() string { return "HogQLMetadata" }

// Text returns the text to look at.
func (q *Metadata) Text() string { return q.Query }

func (*Metadata) node() {}

// Canonical leaves out what is null.
func (q *Metadata) Canonical() []byte {
	asked := &HogQL{Query: q.Query, Values: q.Globals, Variables: q.Variables, Filters: q.Filters, Modifiers: q.Modifiers}
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

// metadata reads a HogQLMetadata. Its error is that of a language of the peer that is not offered.
func (r *reader) metadata(m map[string]any, at place, depth int) (Node, error) {
	o := r.object(m, at)
	q := &Metadata{
		Language:  Language(o.need("language")),
		Query:     o.need("query"),
		Globals:   o.dict("globals"),
		Variables: r.variables(o),
		Filters:   r.filters(o),
		Modifiers: r.modifiers(o),
		Debug:     o.flag("debug"),
	}
	r.tags(o)
	r.noConnection(o, "connectionId")
	o.flag("indexUsage")
	if given, ok := o.take("sourceQuery"); ok {
		source, err := r.node(given, o.field("sourceQuery"), depth+1)
		if err != nil {
			return nil, err
		}
		if q.Source, ok = source.(*HogQL); !ok && source != nil {
			r.add(o.field("sourceQuery"), "value_error", "Input should be a HogQLQuery")
		}
	}
	o.ignore(labels...)
	o.close()
	switch language := string(q.Language); {
	case language == "", q.Language == LanguageHogQL, q.Language == LanguageExpr:
	case slices.Contains(languages, language):
		return nil, diag.Field(diag.InvalidInput, o.field("language").attr,
			"Unsupported language: %s. There are hogQL, a query, and hogQLExpr, an expression", language)
	default:
		r.add(o.field("language"), "enum", "Input should be '"+strings.Join(languages[:len(languages)-1], "', '")+"' or '"+languages[len(languages)-1]+"'")
	}
	return q, nil
}
