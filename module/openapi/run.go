package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// writer writes one endpoint into a document.
type writer struct {
	doc  *openapi3.T
	e    *Endpoint
	site Site
	// id ends the ids of the endpoint's operations; row, request and variables are the names of its schemas.
	id, row, request, variables string
	tags                        []string
}

// format is one way to request the rows. Each has its own address and operation, so that each operation has one type of answer: for a body that
// depends on the request, generators produce a union, or nothing.
type format struct{ suffix, operation, summary, media, description string }

var forms = []format{
	{"objects", "rows", "Execute %s, rows as objects", "application/json", "The answer of a run, with each row as an object."},
	{"csv", "csv", "Export %s as CSV", "text/csv", "All rows, in CSV (RFC 4180) with a header line; with limit or cursor a page of them."},
	{"ndjson", "ndjson", "Export %s as NDJSON", "application/x-ndjson", "All rows, one object a line; with limit or cursor a page of them."},
	{"parquet", "parquet", "Export %s as Parquet", "application/vnd.apache.parquet", "All rows, in Parquet."},
	{"arrow", "arrow", "Export %s as Arrow", "application/vnd.apache.arrow.stream", "All rows, as a stream of Arrow's IPC format."},
}

const exportNotice = " Without limit an export gives every row of the query. An export that fails on its way ends with a broken connection, never short."

// write adds the endpoint's operations and schemas.
func (w *writer) write() {
	schemas := w.doc.Components.Schemas
	body := w.requestBody()
	path := fmt.Sprintf("/api/environments/%d/endpoints/%s/run", w.e.Project, w.e.Name)
	if w.e.Results != nil {
		w.operation(path, "run_"+w.id, "Execute "+w.e.Name, "The answer of the insight.", body, w.answer(w.formRef(*w.e.Results)), "application/json")
		if w.e.Example != nil {
			w.successOf(path).Example = w.e.Example
		}
		return
	}
	cells := make([]cell, len(w.e.Columns))
	names := make([]string, len(w.e.Columns))
	for i, c := range w.e.Columns {
		cells[i], names[i] = w.cellOf(c), c.Name
	}
	schemas[w.row+"Cells"] = inline(w.rowOfCells(cells))
	w.operation(path, "run_"+w.id, "Execute "+w.e.Name, "The rows as arrays.", body, w.answer(inline(listOf(refTo(w.row+"Cells")))), "application/json")
	w.example(path, cells, nil)
	schemas[w.row+"Row"] = inline(w.rowOfMembers(cells, rows.Keys(names)))
	for _, f := range forms {
		at := path + "." + f.suffix
		summary := fmt.Sprintf(f.summary, w.e.Name)
		if f.suffix == "objects" {
			w.operation(at, "rows_"+w.id, summary, f.description, body, w.answer(inline(listOf(refTo(w.row+"Row")))), f.media)
			w.example(at, cells, rows.NewObjects(names))
			continue
		}
		file := described(text().WithFormat("binary"), f.description+exportNotice)
		if f.suffix == "csv" || f.suffix == "ndjson" {
			file.Format = ""
		}
		w.operation(at, f.operation+"_"+w.id, summary, f.description+exportNotice, body, file, f.media)
	}
}

// rowOfCells returns the schema of a row as an array.
func (w *writer) rowOfCells(cells []cell) *openapi3.Schema {
	if len(cells) == 0 {
		return described(listOf(inline(anything())), "A row; its columns are not known.")
	}
	columns := make([]string, len(cells))
	for i, c := range w.e.Columns {
		columns[i] = fmt.Sprintf("%d. %s (%s)", i+1, c.Name, cmp.Or(c.Type, c.Wire))
	}
	return described(places(cells).schema, "A row; its cells: "+strings.Join(columns, ", "))
}

// rowOfMembers returns the schema of a row as an object. x-order preserves the order of the columns.
func (w *writer) rowOfMembers(cells []cell, keys []string) *openapi3.Schema {
	if len(cells) == 0 {
		return openapi3.NewObjectSchema().WithAnyAdditionalProperties()
	}
	s := openapi3.NewObjectSchema()
	for i, key := range keys {
		member := *cells[i].schema
		member.Extensions = map[string]any{"x-order": i + 1}
		s.WithProperty(key, &member)
	}
	s.Required = keys
	return s
}

// requestBody adds the schemas of a run's input, and returns its body.
func (w *writer) requestBody() *openapi3.RequestBodyRef {
	schemas := w.doc.Components.Schemas
	version := described(openapi3.NewIntegerSchema(), "Default: the current version.")
	if w.e.Pinned {
		version = described(openapi3.NewIntegerSchema().WithEnum(w.e.Version), "This document is that of a version that is not the current one.")
	}
	s := openapi3.NewObjectSchema().WithoutAdditionalProperties().WithProperties(map[string]*openapi3.Schema{
		"client_query_id": text(),
		"debug":           described(boolean(), "Adds the compiled query and other fields to an answer."),
		"refresh":         w.refresh(),
		"version":         version,
	})
	if w.e.Results == nil {
		s.WithProperty("limit", described(openapi3.NewIntegerSchema().WithMin(1), "How many rows. The LIMIT of the query is a ceiling over all pages."))
		s.WithProperty("offset", described(openapi3.NewIntegerSchema().WithMin(0), "How many rows to pass over; needs limit."))
		s.WithProperty("cursor", described(text(), "The next_cursor of an answer, for the page after it. variables and version need not be repeated; "+
			"offset, and a refresh that is force, are refused beside it."))
	}
	if w.e.Results != nil {
		s.WithPropertyRef("filters_override", refTo("DashboardFilter"))
		schemas["DashboardFilter"] = inline(dashboardFilter())
		schemas["PropertyFilter"] = inline(propertyFilter())
	}
	required := w.e.Pinned
	if w.e.Pinned {
		s.Required = append(s.Required, "version")
	}
	if len(w.e.Variables) > 0 {
		variables := variablesSchema(w.e.Variables)
		schemas[w.variables] = inline(variables)
		s.WithPropertyRef("variables", refTo(w.variables))
		if len(variables.Required) > 0 {
			s.Required = append(s.Required, "variables")
			required = true
		}
	}
	schemas[w.request] = inline(s)
	body := openapi3.NewRequestBody().WithRequired(required).WithContent(openapi3.Content{
		"application/json": openapi3.NewMediaType().WithSchemaRef(refTo(w.request)),
	})
	return &openapi3.RequestBodyRef{Value: body}
}

// refresh returns the schema of how a run may be answered.
func (w *writer) refresh() *openapi3.Schema {
	s := text().WithEnum("cache", "force").WithDefault("cache")
	s.Description = "cache serves a fresh answer, force computes a new one."
	if w.e.Materialized {
		s.Enum = append(s.Enum, "direct")
		s.Description += " direct does not read the materialized table."
	}
	return s
}

func dashboardFilter() *openapi3.Schema {
	s := described(object(members{"date_from?": orNull(text()), "date_to?": orNull(text())}),
		"Replaces an insight's dates, and adds to its property filters: use variables. A 403 for keys and tokens that are limited to endpoints.")
	s.Deprecated = true
	return s.WithPropertyRef("properties", inline(listOf(refTo("PropertyFilter"))))
}

func propertyFilter() *openapi3.Schema {
	return object(members{"key": text(), "value?": anything(), "operator?": text(), "type?": text()})
}

// answer returns the schema of a run's body: contract api.md, section 5.4.
func (w *writer) answer(results *openapi3.SchemaRef) *openapi3.Schema {
	all := members{
		"name": text(), "endpoint_version": int32s(), "endpoint_version_created_at": moment(), "execution_id": openapi3.NewUUIDSchema(),
		"is_cached": boolean(), "last_refresh": moment(), "next_allowed_client_refresh": moment(), "cache_target_age": moment(), "timezone": text(),
		"warnings?": described(listOf(inline(object(members{
			"message": text(), "start": orNull(int32s()), "end": orNull(int32s()), "fix": orNull(text()), "attr": orNull(text()),
		}))), "What is probably wrong with the query though it ran, such as a limit that was lowered."),
		"endpoint_materialized?":    described(boolean(), "True if the rows come from the table of a materialized version."),
		"endpoint_materialized_at?": described(moment(), "When the table that the rows come from was filled."),
		"hogql?":                    orNull(text()), "clickhouse?": orNull(text()), "cache_key?": orNull(text()),
	}
	if w.e.Results != nil {
		all["error?"] = described(orNull(text()), "What is wrong with the results, though there are some; empty or null if nothing is.")
		all["query_metadata?"], all["query_status?"] = orNull(openapi3.NewObjectSchema()), orNull(openapi3.NewObjectSchema())
	} else {
		pair := texts()
		two := uint64(2)
		pair.MinItems, pair.MaxItems = two, &two
		all["columns"], all["types"] = texts(), described(listOf(inline(pair)), "Each column and its ClickHouse type.")
		all["hasMore"] = described(boolean(), "Whether there are rows after these.")
		all["limit"], all["offset"] = orNull(openapi3.NewIntegerSchema()), orNull(openapi3.NewIntegerSchema())
		all["next_cursor"] = described(orNull(text()), "Of a run with limit: the cursor for the next page of the same rows; null if there is none.")
	}
	if w.e.HasMore {
		all["hasMore?"] = described(boolean(), "Whether the breakdown has more values than these.")
	}
	s := object(all)
	s.WithPropertyRef("results", results)
	s.Required = append(s.Required, "results")
	slices.Sort(s.Required)
	return s
}

// operation adds a POST operation.
func (w *writer) operation(path, id, summary, description string, body *openapi3.RequestBodyRef, answer *openapi3.Schema, media string) {
	op := openapi3.NewOperation()
	op.OperationID, op.Summary, op.Tags, op.RequestBody, op.Deprecated = id, summary, w.tags, body, w.e.Deprecated
	if w.site.WideAsText && (media == "application/json" && w.e.Results == nil || media == "application/x-ndjson") {
		op.AddParameter(openapi3.NewQueryParameter("int64").WithRequired(true).WithSchema(text().WithEnum("string")).
			WithDescription("Integers of more than 53 bits as strings."))
	}
	op.Security = openapi3.NewSecurityRequirements().With(openapi3.NewSecurityRequirement().Authenticate("PersonalAPIKey"))
	success := openapi3.NewResponse().WithDescription(description).WithContent(openapi3.Content{media: openapi3.NewMediaType().WithSchema(answer)})
	success.Headers = w.headers("Age", "Cache-Control", "Cache-Status", "ETag", "RateLimit", "RateLimit-Policy", "Server-Timing", "X-Request-Id")
	if media != "application/json" {
		success.Headers = w.headers("Cache-Control", "Content-Disposition", "RateLimit", "RateLimit-Policy", "X-Request-Id")
	}
	if media == "text/csv" || media == "application/x-ndjson" { // the files that can be split into pages
		maps.Copy(success.Headers, w.headers("Next-Cursor"))
	}
	op.Responses = openapi3.NewResponsesWithCapacity(len(failures) + 1)
	op.Responses.Set("200", &openapi3.ResponseRef{Value: success})
	for _, status := range sorted(failures) {
		op.Responses.Set(status, &openapi3.ResponseRef{Ref: "#/components/responses/" + failures[status]})
	}
	w.doc.Paths.Set(path, &openapi3.PathItem{Post: op})
}

// headers returns references to headers of answers, and adds these to the document.
func (w *writer) headers(names ...string) openapi3.Headers {
	all := answerHeaders()
	for _, name := range names {
		w.doc.Components.Headers[name] = all[name]
	}
	return headersOf(names...)
}

// successOf returns the JSON body of the answer at a path.
func (w *writer) successOf(path string) *openapi3.MediaType {
	return w.doc.Paths.Value(path).Post.Responses.Status(http.StatusOK).Value.Content.Get("application/json")
}

// example adds an example to the answer at a path: the body of a real run, or one made up from the types of the columns. objects writes the rows as
// objects; nil leaves them as arrays.
func (w *writer) example(path string, cells []cell, objects *rows.Objects) {
	media := w.successOf(path)
	if body, ok := w.realExample(objects); ok {
		media.Example = body
		return
	}
	row := make([]any, len(cells))
	names := make([]string, len(cells))
	types := make([][2]string, len(cells))
	for i, c := range w.e.Columns {
		row[i], names[i], types[i] = cells[i].sample, c.Name, [2]string{c.Name, c.Type}
	}
	const at = "2026-01-31T10:00:00Z"
	body := map[string]any{
		"results": []json.RawMessage{}, "columns": names, "types": types, "hasMore": false, "limit": nil, "offset": nil, "next_cursor": nil, "is_cached": true,
		"last_refresh": at, "next_allowed_client_refresh": at, "cache_target_age": at, "timezone": "UTC", "name": w.e.Name,
		"execution_id": "018f3a52-7c3e-7a41-9d2b-5e8c0f6a1b2d", "endpoint_version": w.e.Version, "endpoint_version_created_at": at,
	}
	if len(cells) > 0 {
		body["results"] = []json.RawMessage{inForm(encode(row), objects)}
	}
	media.Example = body
}

// realExample returns the body of a run, if there is one and its columns are still those of the document.
func (w *writer) realExample(objects *rows.Objects) (any, bool) {
	var head struct {
		Types   [][2]string       `json:"types"` // of columns, by name
		Results []json.RawMessage `json:"results"`
	}
	if json.Unmarshal(w.e.Example, &head) != nil || !slices.EqualFunc(head.Types, w.e.Columns, w.describes) {
		return nil, false
	}
	if objects == nil {
		return w.e.Example, true
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(w.e.Example, &body); err != nil {
		panic("BUG: reading the body of a run: " + err.Error())
	}
	for i := range head.Results {
		head.Results[i] = inForm(head.Results[i], objects)
	}
	body["results"] = encode(head.Results)
	return body, true
}

// describes reports whether a column's schema fits the values that a run has in that column, given by its name and type. A property may have got another type
// since the version was published; on the other hand, a column that is computed from a variable is described for all of the variable's values.
func (w *writer) describes(of [2]string, c Column) bool {
	given, wanted := w.cellOf(Column{Name: of[0], Type: of[1]}).schema, w.cellOf(c).schema
	switch {
	case of[0] != c.Name:
		return false
	case wanted.Type == nil:
		return true
	case given.Nullable && !wanted.Nullable:
		return false
	case given.Type.Is("integer") && wanted.Type.Is("number"), given.Type.Is("integer") && wanted.Type.Is("integer") && wanted.Format != "int32" && wanted.Min == nil:
		return true
	}
	given.Nullable = wanted.Nullable
	return bytes.Equal(encode(given), encode(wanted))
}

// inForm returns a row, converted to an object if objects is set.
func inForm(row json.RawMessage, objects *rows.Objects) json.RawMessage {
	if objects == nil {
		return row
	}
	object, err := objects.Append(nil, row)
	if err != nil {
		panic("BUG: a row of an example: " + err.Error())
	}
	return object
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("BUG: encoding an example: " + err.Error())
	}
	return raw
}
