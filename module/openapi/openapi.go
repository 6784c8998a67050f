// Package openapi describes endpoints as OpenAPI 3.0.3 documents (contract: api.md, section 5.6), for people and for client generators. All it knows
// of an endpoint is in Endpoint.
package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Endpoint is one version of an endpoint, as its document shows it.
type Endpoint struct {
	Project     int64
	Name        string
	Version     int
	Description string
	// Pinned reports whether this is not the current version, so that runs have to name it.
	Pinned bool
	// Deprecated reports whether callers should leave this version.
	Deprecated bool
	// Results is the form of an insight's results; nil for SQL.
	Results *form.Form
	// HasMore reports whether the answers of an insight say if values were cut off.
	HasMore bool
	// Columns are the columns of a HogQLQuery, in order; nil if unknown.
	Columns []Column
	// Materialized reports whether runs read a table, and may ask not to.
	Materialized bool
	// Variables are the names that a run may give values for, sorted.
	Variables []Variable
	// Example is the body of a run; nil for one made up from the types of the columns.
	Example json.RawMessage
}

// The sizes that Size assumes, in bytes.
const (
	schemaSize = 4 << 10 // of what describes an endpoint, a variable or a column, as a document and as JSON
	textCopies = 4       // a text is in the document, in JSON as it is put together, and in the answer
)

// Size returns about how many bytes of memory it takes to describe the endpoint in a document, and to write that as JSON.
func (e *Endpoint) Size() int64 {
	texts := len(e.Description) + len(e.Example)
	for _, c := range e.Columns {
		texts += len(c.Name) + len(c.Type)
	}
	for i := range e.Variables {
		v := &e.Variables[i]
		texts += len(v.Name) + len(v.Description) + sizeOf(v.Default) + sizeOf(v.Values)
	}
	return int64(schemaSize*(1+len(e.Columns)+len(e.Variables)) + textCopies*texts)
}

// sizeOf returns about how many bytes a value takes in JSON.
func sizeOf(value any) int {
	switch value := value.(type) {
	case string:
		return len(value) + len(`"",`)
	case []any:
		size := len(`[]`)
		for _, item := range value {
			size += sizeOf(item)
		}
		return size
	}
	return len(`0.1234,`)
}

// ValuesRoom is how many more bytes of values of variables a document may list.
type ValuesRoom int

// Fit leaves out the values of those variables for which there is no more room: any values are allowed then.
func (r *ValuesRoom) Fit(e *Endpoint) {
	for i := range e.Variables {
		v := &e.Variables[i]
		if size := sizeOf(v.Values); size <= int(*r) {
			*r -= ValuesRoom(size)
		} else {
			v.Values = nil
		}
	}
}

// Column is a column of an answer.
type Column struct {
	Name string
	// Type is the ClickHouse type, such as Array(Nullable(UInt64)); empty if unknown.
	Type string
	// Wire is the type that records use, such as integer; it is used if Type is empty.
	Wire string
}

// Site is where the endpoints are, and how clients read numbers.
type Site struct {
	// URL is the address of the site, such as https://api.example.com.
	URL string
	// WideAsText makes clients request integers of more than 53 bits as strings: runs with int64=string.
	WideAsText bool
}

// One returns the document of one endpoint on a site.
func One(e *Endpoint, site Site) *openapi3.T {
	description := e.Description
	if description == "" {
		description = "PostHog Endpoint: " + e.Name // the contract's words
	}
	doc := newDocument(site.URL, &openapi3.Info{Title: e.Name, Description: description, Version: strconv.Itoa(e.Version)})
	w := writer{
		doc: doc, e: e, site: site, id: identifier(e.Name), row: pascal(e.Name), request: "EndpointRunRequest", variables: "Variables",
	}
	w.write()
	return doc
}

// All returns one document for several endpoints of a project. The names of their schemas begin with the endpoint's name; if two are the same, the
// later endpoint gets a number.
func All(endpoints []*Endpoint, title, version string, site Site) *openapi3.T {
	doc := newDocument(site.URL, &openapi3.Info{
		Title: title, Description: "The endpoints that are active, in their current versions.", Version: version,
	})
	taken := map[string]bool{}
	for _, e := range endpoints {
		name := e.Name
		for n := 2; taken[strings.ToLower(pascal(name))]; n++ {
			name = fmt.Sprintf("%s_%d", e.Name, n)
		}
		taken[strings.ToLower(pascal(name))] = true
		doc.Tags = append(doc.Tags, &openapi3.Tag{Name: e.Name, Description: cmp.Or(e.Description, "Version "+strconv.Itoa(e.Version))})
		prefix := pascal(name)
		w := writer{
			doc: doc, e: e, site: site, id: identifier(name), row: prefix, request: prefix + "RunRequest", variables: prefix + "Variables", tags: []string{e.Name},
		}
		w.write()
	}
	return doc
}

// identifier returns the part of an operation's id that names the endpoint.
func identifier(name string) string { return strings.ReplaceAll(name, "-", "_") }

// pascal returns a name as generators write types: orders-by-day becomes OrdersByDay.
func pascal(name string) string {
	var b strings.Builder
	upper := true
	for _, c := range name {
		switch {
		case c == '-' || c == '_':
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(c))
			upper = false
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// newDocument returns what all documents have in common: the key, the bodies of errors, and the headers of answers.
func newDocument(site string, info *openapi3.Info) *openapi3.T {
	// Linters ask for a license. What callers may do with the answers is between them and the operator of the site.
	info.License = &openapi3.License{Name: "Terms of the site", URL: site}
	bearer := openapi3.NewSecurityScheme().WithType("http").WithScheme("bearer")
	bearer.Description = "A personal API key with the scope endpoint:read, or a project secret key."
	return &openapi3.T{
		OpenAPI: "3.0.3", Info: info, Paths: openapi3.NewPathsWithCapacity(0),
		Servers: openapi3.Servers{{URL: site}},
		Components: &openapi3.Components{
			SecuritySchemes: openapi3.SecuritySchemes{"PersonalAPIKey": {Value: bearer}},
			Schemas:         errorSchemas(),
			Responses:       errorResponses(),
			Headers:         errorHeaders(),
		},
	}
}

// refTo returns a reference to a schema of the document.
func refTo(name string) *openapi3.SchemaRef {
	return &openapi3.SchemaRef{Ref: "#/components/schemas/" + name}
}

// inline returns a schema for use in place.
func inline(s *openapi3.Schema) *openapi3.SchemaRef { return &openapi3.SchemaRef{Value: s} }

// described gives s a description.
func described(s *openapi3.Schema, text string) *openapi3.Schema {
	s.Description = text
	return s
}

func listOf(items *openapi3.SchemaRef) *openapi3.Schema {
	s := openapi3.NewArraySchema()
	s.Items = items
	return s
}

func text() *openapi3.Schema     { return openapi3.NewStringSchema() }
func moment() *openapi3.Schema   { return openapi3.NewDateTimeSchema() }
func boolean() *openapi3.Schema  { return openapi3.NewBoolSchema() }
func int32s() *openapi3.Schema   { return openapi3.NewIntegerSchema().WithFormat("int32") }
func number() *openapi3.Schema   { return openapi3.NewFloat64Schema().WithFormat("double") }
func anything() *openapi3.Schema { return openapi3.NewSchema() }

func orNull(s *openapi3.Schema) *openapi3.Schema { return s.WithNullable() }

// object returns an object schema whose properties are required unless their names end in a question mark.
func object(properties map[string]*openapi3.Schema) *openapi3.Schema {
	s := openapi3.NewObjectSchema()
	for _, name := range sorted(properties) {
		bare, optional := strings.CutSuffix(name, "?")
		s.WithProperty(bare, properties[name])
		if !optional {
			s.Required = append(s.Required, bare)
		}
	}
	return s
}
