package module

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// queryFields are the fields of QueryRequest: contract section 1.2.
var queryFields = []string{
	"query", "refresh", "async", "client_query_id", "name", "variables_override", "limit_context", "filters_override",
}

const (
	// maxQueryName is the most characters of a query's label.
	maxQueryName = 128
	// maxQueryID is the most characters of the id that a caller gives a query.
	maxQueryID = 128
)

// planQuery understands a query request that was not seen before.
func (rq *request) planQuery(body []byte) (*result.Plan, error) {
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
	raw, ok := fields["query"]
	if !ok || api.IsNull(raw) {
		return nil, requestMistake("query", "Field required", "missing")
	}
	mode, err := refreshOfQuery(fields)
	if err != nil {
		return nil, err
	}
	label, err := textField(fields, "name", maxQueryName)
	if err != nil {
		return nil, err
	}
	clientID, err := clientQueryID(fields)
	if err != nil {
		return nil, err
	}
	if given, ok := fields["limit_context"]; ok && !api.IsNull(given) && string(bytes.TrimSpace(given)) != `"posthog_ai"` {
		return nil, requestMistake("limit_context", "Input should be 'posthog_ai'", "literal_error")
	}
	node, err := query.Parse(raw)
	if err != nil {
		return nil, err
	}
	p, err := rq.planNode(node, overrides{variables: fields["variables_override"], filters: fields["filters_override"]}, mode)
	if err != nil {
		return nil, err
	}
	p.Label, p.ClientID, p.Shows = label, clientID, result.ReadShown(raw)
	p.Page.Variant += p.Shows.Variant()
	return p, nil
}

// overrides are what a request puts over a query before it runs: contract sections 1.2 and 4.4. Either may be empty.
type overrides struct{ variables, filters json.RawMessage }

// apply gives the node with the overrides put over it.
func (o overrides) apply(node query.Node) (query.Node, error) {
	q, isHogQL := node.(*query.HogQL)
	if len(o.variables) > 0 && !api.IsNull(o.variables) {
		variables, err := query.ParseVariables(o.variables)
		if err != nil {
			return nil, err // a mistake of the request, told as it is
		}
		if isHogQL {
			q = q.WithVariables(variables)
			node = q
		}
	}
	if len(o.filters) == 0 || api.IsNull(o.filters) || !isHogQL {
		return overrideFilters(node, o.filters)
	}
	filters, err := query.ParseOverrides(o.filters)
	if err != nil {
		return nil, err // a mistake of the request, told as it is
	}
	if q, err = filters.ApplyHogQL(q); err != nil {
		return nil, err // a mistake of the request, told as it is
	}
	return q, nil
}

// planNode plans a query of the query route, or that of a saved insight: both share their answers.
func (rq *request) planNode(node query.Node, over overrides, mode execution.RefreshMode) (*result.Plan, error) {
	node, err := over.apply(node)
	if err != nil {
		return nil, err
	}
	p := &result.Plan{Freshness: rq.rt.FreshnessOf(node, mode), View: result.View{Limit: -1}, Query: &execution.Query{
		Node: node, Text: node.Text(), Rows: compiler.QueryRoute,
		Key: cache.KeyParts{
			Project: rq.Project.ID, Query: string(node.Canonical()), Variables: rq.variableMarks(node), Zone: rq.Project.Timezone,
			Extra: execution.SchemaMark(rq.Snapshot.Schema(rq.Project.ID)),
		}.Key(),
	}}
	p.SetPage()
	return p, nil
}

// refreshOfQuery reads the mode of a query request. The deprecated async wins over refresh, and force_cache computes what
// is not there, both as in the peer.
func refreshOfQuery(fields map[string]json.RawMessage) (execution.RefreshMode, error) {
	mode := execution.RefreshBlocking
	if raw, ok := fields["refresh"]; ok && !api.IsNull(raw) {
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return "", requestMistake("refresh", "Input should be a valid string", "string_type")
		}
		if mode, ok = execution.ParseRefresh(name); !ok {
			return "", requestMistake("refresh", "Input should be 'async', 'async_except_on_cache_miss', 'blocking', 'force_async', "+
				"'force_blocking', 'force_cache' or 'lazy_async'", "enum")
		}
	}
	if raw, ok := fields["async"]; ok && !api.IsNull(raw) {
		var async bool
		if json.Unmarshal(raw, &async) != nil {
			return "", requestMistake("async", "Input should be a valid boolean", "bool_type")
		}
		if async {
			mode = execution.RefreshAsync
		}
	}
	if mode == execution.RefreshForceCache {
		mode = execution.RefreshBlocking
	}
	return mode, nil
}

// textField reads a text of at most so many characters; none gives "".
func textField(fields map[string]json.RawMessage, name string, most int) (string, error) {
	raw, ok := fields[name]
	if !ok || api.IsNull(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", requestMistake(name, "Input should be a valid string", "string_type")
	}
	if utf8.RuneCountInString(text) > most {
		return "", requestMistake(name, fmt.Sprintf("String should have at most %d characters", most), "string_too_long")
	}
	return text, nil
}

// clientQueryID reads the id that the caller gives its query. It has to fit into a path, where the query is asked about.
func clientQueryID(fields map[string]json.RawMessage) (string, error) {
	id, err := textField(fields, "client_query_id", maxQueryID)
	if err != nil {
		return "", err
	}
	if !validQueryID(id) {
		return "", requestMistake("client_query_id", "String should be usable as a part of a path: no slash, no control character, not . or ..", "string_pattern_mismatch")
	}
	return id, nil
}

// validQueryID tells whether an id can stand in a path; an empty one is none at all.
func validQueryID(id string) bool {
	return id != "." && id != ".." && !strings.ContainsFunc(id, func(r rune) bool { return r == '/' || unicode.IsControl(r) })
}

// upgradeQuery answers POST query/upgrade/. Queries have one version here, so a valid one is given back as it came.
func (rq *request) upgradeQuery() error {
	body, err := api.ReadBody(rq.r)
	if err != nil {
		return err
	}
	defer api.ReturnBody(body)
	fields, err := queryObject(body.Bytes())
	if err != nil {
		return err
	}
	raw, ok := fields["query"]
	if !ok || api.IsNull(raw) {
		return requestMistake("query", "Field required", "missing")
	}
	for _, name := range api.SortedNames(fields) {
		if name != "query" {
			return requestMistake(name, "Extra inputs are not permitted", "extra_forbidden")
		}
	}
	if _, err := query.Parse(raw); err != nil {
		return err // a mistake of the request, told as it is
	}
	rq.reply(http.StatusOK, map[string]json.RawMessage{"query": raw})
	return nil
}
