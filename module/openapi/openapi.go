// Package openapi describes endpoints as OpenAPI 3.0.3 documents (contract: api.md, section 5.6), for people and for generators
// of clients. It knows an endpoint only by what Endpoint says; it asks nobody.
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
	// Pinned reports whether this is not the current version, which a run without a version gets, so that runs have to name it.
	Pinned bool
	// Deprecated reports whether callers should leave this version.
	Deprecated bool
	// Results is the form of the results of an insight; nil for SQL.
	Results *form.Form
	// HasMore reports whether the answers of an insight say whether values were cut off.
	HasMore bool
	// Columns are those of a HogQLQuery, in order; nil when they are not known.
	Columns []Column
	// Materialized reports whether runs read a table, and may say that they don't want to.
	Materialized bool
	// Variables are what a run may be given values for, sorted by name.
	Variables []Variable
	// Example is the body of a run, or nil for one that is made up from the types of the columns.
	Example json.RawMessage
}

// Column is a column of an answer.
type Column struct {
	Name string
	// Type is the ClickHouse type, such as Array(Nullable(UInt64)); empty when it is not known.
	Type string
	// Wire is the type as records name it, such as integer; it is used where Type is empty.
	Wire string
}

// Site is where the endpoints are, and how its clients read numbers.
type Site struct {
	// URL is the address of the site, such as https://api.example.com.
	URL string
	// WideAsText has clients ask for integers of more than 53 bits as strings: runs with int64=string.
	WideAsText bool
}

// One gives the document of one endpoint on a site.
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

// All gives one document for several endpoints of a project. The names of their schemas begin with the endpoint's name; where two
// would be the same, the endpoint that comes later gets a number.
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

// identifier is the part of an operation's id that names the endpoint.
func identifier(name string) string { return strings.ReplaceAll(name, "-", "_") }

// pascal is a name as generators call types: orders-by-day is OrdersByDay.
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

// newDocument has what all documents have in common: the key, the bodies of errors, and the headers of answers.
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

// refTo points at a schema of the document.
func refTo(name string) *openapi3.SchemaRef {
	return &openapi3.SchemaRef{Ref: "#/components/schemas/" + name}
}

// inline puts a schema where it is used.
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

// object has properties that are all required, but for those whose name ends in a question mark.
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
