package module

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// runQuery answers POST query/: contract section 1.
func (rq *request) runQuery() error {
	if err := checkMediaType(rq.r); err != nil {
		return err
	}
	body, err := readBody(rq.r)
	if err != nil {
		return err
	}
	defer returnBody(body)
	memo := rq.memoKey("", body.Bytes())
	p, ok := rq.rt.plans.Get(memo)
	if !ok {
		if p, err = rq.planQuery(body.Bytes()); err != nil {
			return err
		}
		rq.rt.plans.Put(memo, p)
	}
	got, err := rq.answer(p)
	if err != nil {
		return err
	}
	return rq.writeAnswer(p, got, rq.renderQuery)
}

// runQueryOfKind answers POST query/{Kind}/, where the kind in the path must be the body's.
func (rq *request) runQueryOfKind() error {
	body, err := readBody(rq.r)
	if err != nil {
		return err
	}
	defer returnBody(body)
	if err := checkJSON(body.Bytes()); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body.Bytes(), &fields) != nil || fields == nil {
		return validation("", "invalid_input", "Query body must be a JSON object.")
	}
	var node struct {
		Kind string `json:"kind"`
	}
	if raw := fields["query"]; len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &node) != nil {
		return validation("", "invalid_input", "Query must be a JSON object.")
	}
	if node.Kind != rq.at.name {
		return validation("", "invalid_input", "Query kind mismatch: path kind %q does not match body kind %q.", rq.at.name, node.Kind)
	}
	rq.r.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	return rq.runQuery()
}

// queryFields are the fields of QueryRequest: contract section 1.2.
var queryFields = []string{
	"query", "refresh", "async", "client_query_id", "name", "variables_override", "limit_context", "filters_override",
}

// maxQueryName is the most characters of a query's label.
const maxQueryName = 128

// planQuery understands a query request that was not seen before.
func (rq *request) planQuery(body []byte) (*plan, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, requestMistake("", "Input should be a valid dictionary or instance of QueryRequest", "model_type")
	}
	for _, name := range sortedNames(fields) {
		if !slices.Contains(queryFields, name) {
			return nil, requestMistake(name, "Extra inputs are not permitted", "extra_forbidden")
		}
	}
	raw, ok := fields["query"]
	if !ok || isNull(raw) {
		return nil, requestMistake("query", "Field required", "missing")
	}
	mode, err := refreshOfQuery(fields)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(fields); err != nil {
		return nil, err
	}
	node, err := query.Parse(raw)
	if err != nil {
		return nil, err
	}
	if node, err = overrideVariables(node, fields["variables_override"]); err != nil {
		return nil, err
	}
	p := &plan{
		node: node, text: node.Text(), rows: compiler.QueryRoute, mode: mode, fresh: rq.rt.queryFresh, limit: -1,
		key: cache.KeyParts{
			Project: rq.project.ID, Query: string(node.Canonical()), Variables: rq.variableMarks(node), Zone: rq.project.Timezone,
			Extra: schemaMark(rq.snap.Schema(rq.project.ID)),
		}.Key(),
	}
	p.setPage()
	return p, nil
}

// requestMistake words a mistake around a query as the peer's validator does.
func requestMistake(field, words, typ string) *apiError {
	return parseError(fmt.Sprintf("JSON parse error - 1 validation error for QueryRequest\n%s\n  %s [type=%s]", field, words, typ))
}

// refreshOfQuery maps the seven modes of contract section 1.3. Those that would answer later answer at once here: a
// client that gets a complete answer does not poll.
func refreshOfQuery(fields map[string]json.RawMessage) (cache.Mode, error) {
	refresh := "blocking"
	if raw, ok := fields["refresh"]; ok && !isNull(raw) {
		if err := json.Unmarshal(raw, &refresh); err != nil {
			return 0, requestMistake("refresh", "Input should be a valid string", "string_type")
		}
	}
	switch refresh {
	case "blocking", "force_cache":
		return cache.NoStale, nil
	case "async", "lazy_async", "async_except_on_cache_miss":
		return cache.Use, nil
	case "force_blocking", "force_async":
		return cache.Recompute, nil
	}
	return 0, requestMistake("refresh", "Input should be 'async', 'async_except_on_cache_miss', 'blocking', 'force_async', "+
		"'force_blocking', 'force_cache' or 'lazy_async'", "enum")
}

// checkLabels checks the fields that change nothing in the answer.
func checkLabels(fields map[string]json.RawMessage) error {
	for _, name := range []string{"name", "client_query_id"} {
		raw, ok := fields[name]
		if !ok || isNull(raw) {
			continue
		}
		var label string
		if json.Unmarshal(raw, &label) != nil {
			return requestMistake(name, "Input should be a valid string", "string_type")
		}
		if name == "name" && utf8.RuneCountInString(label) > maxQueryName {
			return requestMistake(name, fmt.Sprintf("String should have at most %d characters", maxQueryName), "string_too_long")
		}
	}
	if raw, ok := fields["limit_context"]; ok && !isNull(raw) && string(bytes.TrimSpace(raw)) != `"posthog_ai"` {
		return requestMistake("limit_context", "Input should be 'posthog_ai'", "literal_error")
	}
	if raw, ok := fields["filters_override"]; ok && !isNull(raw) {
		return validation("filters_override", "invalid_input", "filters_override is not supported here; put filters into the query.")
	}
	return nil
}

// renderQuery writes the body of an answer of the query route: contract section 1.5.
func (rq *request) renderQuery(dst []byte, p *plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*outcome)
	result := got.Entry.Result
	dst = append(dst, `{"results":`...)
	dst = result.AppendRows(dst, 0, -1)
	dst = append(dst, ',')
	dst = append(dst, done.head...)
	if done.ownLimit {
		dst = append(dst, `,"hasMore":null,"limit":null,"offset":null`...)
	} else {
		dst = append(dst, `,"hasMore":`...)
		dst = appendBool(dst, result.More())
		dst = append(dst, `,"limit":`...)
		dst = appendInt(dst, done.limit)
		dst = append(dst, `,"offset":0`...)
	}
	dst = rq.appendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null`...)
	dst = appendDebug(dst, p, done)
	return append(dst, '}')
}
