package queries

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// queryFields are the fields of QueryRequest: contract api.md, section 1.2.
var queryFields = []string{
	"query", "refresh", "async", "client_query_id", "name", "variables_override", "limit_context", "filters_override",
}

// maxQueryName is the longest label of a query, in characters.
const maxQueryName = 128

// Plan returns the plan of a query request that was not seen before.
func (q *Queries) Plan(c *api.Caller, body []byte, variant string) (*result.Plan, error) {
	if err := api.CheckJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, requestMistake("", "Input should be a valid dictionary or instance of QueryRequest", "model_type")
	}
	for _, name := range api.SortedNames(fields) {
		if !slices.Contains(queryFields, name) {
			return nil, extraField(name, fields)
		}
	}
	if err := api.CheckDecoded(fields); err != nil {
		return nil, err
	}
	raw, ok := fields["query"]
	if !ok || api.IsNull(raw) {
		return nil, requestMistake("query", "Field required", "missing")
	}
	f := &api.Fields{All: fields, Wrong: wrongType}
	mode, label, clientID := refreshOfQuery(f), shortText(f, "name", maxQueryName), clientQueryID(f)
	if f.Err != nil {
		return nil, f.Err
	}
	if given, ok := fields["limit_context"]; ok && !api.IsNull(given) && string(bytes.TrimSpace(given)) != `"posthog_ai"` {
		return nil, requestMistake("limit_context", "Input should be 'posthog_ai'", "literal_error")
	}
	node, err := compiler.Parse(raw)
	if err != nil {
		return nil, err
	}
	if asked, ok := node.(*query.HogQL); ok { // a background run would fail, and keep it
		if err := hogql.CheckLength(asked.Query); err != nil {
			return nil, err // a mistake in the request, passed on as it is
		}
	}
	over := result.Overrides{Variables: fields["variables_override"], Filters: fields["filters_override"]}
	p, err := result.PlanHeld(q.Executor, c, node, over, mode)
	if err != nil {
		return nil, err
	}
	if q.Executor.Peers != nil && p.Held == nil {
		p.Recipe = &execution.Recipe{Query: bytes.Clone(raw), Variables: bytes.Clone(over.Variables), Filters: bytes.Clone(over.Filters)}
	}
	p.Label, p.ClientID, p.Shows = label, clientID, result.ReadShown(raw)
	p.Page.Variant += p.Shows.Variant() + variant
	return p, nil
}

// wrongType words the mistake of a field that has the wrong type.
func wrongType(name, want string) error {
	typ := map[string]string{"boolean": "bool_type", "string": "string_type"}[want]
	return requestMistake(name, "Input should be a valid "+want, typ)
}

// refreshOfQuery reads the mode of a query request. As in PostHog, the deprecated async takes precedence over refresh, and force_cache computes a missing
// result.
func refreshOfQuery(f *api.Fields) execution.RefreshMode {
	mode := execution.RefreshBlocking
	var name string
	if f.Read("refresh", &name) {
		var ok bool
		if mode, ok = execution.ParseRefresh(name); !ok {
			f.Err = requestMistake("refresh", "Input should be 'async', 'async_except_on_cache_miss', 'blocking', 'force_async', "+
				"'force_blocking', 'force_cache' or 'lazy_async'", "enum")
		}
	}
	var async bool
	if f.Read("async", &async) && async {
		mode = execution.RefreshAsync
	}
	if mode == execution.RefreshForceCache {
		mode = execution.RefreshBlocking
	}
	return mode
}

// shortText reads a text of at most most characters; it returns "" if not given.
func shortText(f *api.Fields, name string, most int) (text string) {
	if f.Read(name, &text) && utf8.RuneCountInString(text) > most {
		f.Err = requestMistake(name, fmt.Sprintf("String should have at most %d characters", most), "string_too_long")
	}
	return text
}

// clientQueryID reads the id that the caller chose for its query. It has to fit into a path, which names the query by it.
func clientQueryID(f *api.Fields) string {
	id := shortText(f, "client_query_id", result.MaxQueryID)
	if f.Err == nil && !result.ValidQueryID(id) {
		f.Err = requestMistake("client_query_id", "String should be usable as a part of a path: no slash, no control character, not . or ..", "string_pattern_mismatch")
	}
	return id
}

// upgrade answers POST query/upgrade/. Queries have one version here, so it returns a valid one unchanged.
func upgrade(in *api.Input) (*api.Response, error) {
	body, err := api.ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer api.ReturnBody(body)
	fields, err := queryObject(body.Bytes())
	if err != nil {
		return nil, err
	}
	raw, ok := fields["query"]
	if !ok || api.IsNull(raw) {
		return nil, requestMistake("query", "Field required", "missing")
	}
	for _, name := range api.SortedNames(fields) {
		if name != "query" {
			return nil, requestMistake(name, "Extra inputs are not permitted", "extra_forbidden")
		}
	}
	if _, err := compiler.Parse(raw); err != nil {
		return nil, err // a mistake in the request, passed on as it is
	}
	return api.JSON(http.StatusOK, map[string]json.RawMessage{"query": raw}), nil
}
