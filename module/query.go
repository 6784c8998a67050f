package module

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// runQuery answers POST query/: contract section 1.
func (rq *request) runQuery() error {
	body, err := readBody(rq.r)
	if err != nil {
		return err
	}
	defer returnBody(body)
	return rq.answerQuery(body.Bytes())
}

// answerQuery answers a query request. One whose bytes were seen before is not parsed again.
func (rq *request) answerQuery(body []byte) error {
	memo := rq.memoKey("", body)
	p, ok := rq.recall(memo)
	if !ok {
		var err error
		if p, err = rq.planQuery(body); err != nil {
			return err
		}
		rq.rt.plans.Put(memo, p)
	}
	if described, err := rq.describeQuery(p.node); described {
		return err
	}
	got, err := rq.answer(p)
	if err != nil {
		return err
	}
	return rq.writeAnswer(p, got, rq.renderQuery)
}

// runQueryOfKind answers POST query/{Kind}/, where the kind in the path must be the body's.
func (rq *request) runQueryOfKind() error {
	if !isKindName(rq.at.name) {
		return notFound("Not found.")
	}
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
	var node map[string]json.RawMessage
	if json.Unmarshal(fields["query"], &node) != nil || node == nil {
		return validation("", "invalid_input", "Query must be a JSON object.")
	}
	var kind string
	if raw, ok := node["kind"]; !ok || json.Unmarshal(raw, &kind) != nil || kind != rq.at.name {
		return validation("", "invalid_input", "Query kind mismatch: path kind %q does not match body kind %q.", rq.at.name, kind)
	}
	return rq.answerQuery(body.Bytes())
}

// isKindName tells the paths that name a kind, [A-Z][A-Za-z]*, from those that would name a query.
func isKindName(name string) bool {
	return name[0] >= 'A' && name[0] <= 'Z' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
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
	if node, _, err = overrideFilters(node, fields["filters_override"]); err != nil {
		return nil, err
	}
	p := &plan{
		node: node, text: node.Text(), rows: compiler.QueryRoute, mode: mode, fresh: rq.freshness(node), limit: -1,
		key: cache.KeyParts{
			Project: rq.project.ID, Query: string(node.Canonical()), Variables: rq.variableMarks(node), Zone: rq.project.Timezone,
			Extra: schemaMark(rq.snap.Schema(rq.project.ID)),
		}.Key(),
	}
	p.setPage()
	return p, nil
}

// requestMistake words a mistake around a query as the peer's validator does; an empty field stands for the whole.
func requestMistake(field, words, typ string) *apiError {
	if field != "" {
		field += "\n"
	}
	return parseError(fmt.Sprintf("JSON parse error - 1 validation error for QueryRequest\n%s  %s [type=%s]", field, words, typ))
}

// refreshOfQuery maps the seven modes of contract section 1.3. Those that would answer later answer at once here: a
// client that gets a complete answer does not poll.
func refreshOfQuery(fields map[string]json.RawMessage) (cache.Mode, error) {
	refresh := "blocking"
	if raw, ok := fields["async"]; ok && !isNull(raw) {
		var async bool
		if json.Unmarshal(raw, &async) != nil {
			return 0, requestMistake("async", "Input should be a valid boolean", "bool_type")
		}
		if async {
			refresh = "async"
		}
	}
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
	return nil
}

// renderQuery writes the body of an answer of the query route: contract section 1.5.
func (rq *request) renderQuery(dst []byte, p *plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*outcome)
	if done.insight != nil {
		dst = renderInsight(dst, done)
		dst = rq.appendFreshness(dst, p, got)
		dst = append(dst, `,"query_metadata":null,"error":"","query_status":null`...)
		return append(appendDebug(dst, p, done), '}')
	}
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
		dst = append(dst, `,"offset":`...)
		dst = appendInt(dst, done.offset)
	}
	dst = rq.appendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null`...)
	dst = appendDebug(dst, p, done)
	return append(dst, '}')
}
