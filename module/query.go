package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// runQuery answers POST query/: contract section 1.
func (rq *request) runQuery() error {
	body, err := api.ReadBody(rq.r)
	if err != nil {
		return err
	}
	defer api.ReturnBody(body)
	return rq.answerQuery(body.Bytes())
}

// answerQuery answers a query request. One whose bytes were seen before is not parsed again.
func (rq *request) answerQuery(body []byte) error {
	var place string // no name of an endpoint, so that a run's plan is never taken for it
	render := rq.renderQuery
	if rq.fromMCP() {
		place, render = " mcp", rq.renderForMCP
	}
	memo := rq.memoKey(place, body)
	p, ok := rq.recall(memo)
	if !ok {
		var err error
		if p, err = rq.planQuery(body); err != nil {
			return err
		}
		p.Page.Variant += place
		rq.rt.plans.Put(memo, p)
	}
	if described, err := rq.describeQuery(p.Node); described {
		return err
	}
	got, err := rq.refresh(p, execution.Origin{})
	if err != nil {
		return rq.writeMistake(p, err)
	}
	rq.run = got.Run
	if got.Answer.Entry == nil {
		rq.writeRunning(p)
		return nil
	}
	if err := rq.inspect(p); err != nil {
		return err
	}
	return rq.writeAnswer(p, got.Answer, render)
}

// writeRunning sends what there is to say before there is an answer: contract section 1.3.
func (rq *request) writeRunning(p *result.Plan) {
	body := []byte{'{'}
	if p.Refresh != execution.RefreshForceAsync {
		body = append(body, `"cache_key":"`...)
		body = append(body, p.Key.String()...)
		body = append(body, `",`...)
	}
	body = rq.results().AppendRunning(body)
	rq.write(api.Raw(rq.okStatus(), append(body, '}')))
}

// postNamedQuery answers POST query/{Kind}/, where the kind in the path must be the body's, and the two actions that stand
// beside the kinds.
func (rq *request) postNamedQuery() error {
	switch {
	case rq.at.Name == "check_auth_for_async":
		rq.reply(http.StatusOK, map[string]string{"user": "ok"})
		return nil
	case rq.at.Name == "upgrade":
		return rq.upgradeQuery()
	case !isKindName(rq.at.Name):
		return api.NotFound("Not found.")
	}
	body, err := api.ReadBody(rq.r)
	if err != nil {
		return err
	}
	defer api.ReturnBody(body)
	fields, err := queryObject(body.Bytes())
	if err != nil {
		return err
	}
	var node map[string]json.RawMessage
	if json.Unmarshal(fields["query"], &node) != nil || node == nil {
		return api.Invalid("", "invalid_input", "Query must be a JSON object.")
	}
	var kind string
	if raw, ok := node["kind"]; !ok || json.Unmarshal(raw, &kind) != nil || kind != rq.at.Name {
		return api.Invalid("", "invalid_input", "Query kind mismatch: path kind %q does not match body kind %q.", rq.at.Name, kind)
	}
	return rq.answerQuery(body.Bytes())
}

// queryObject reads the body of a route below query/, which has to be an object.
func queryObject(body []byte) (map[string]json.RawMessage, error) {
	if err := api.CheckJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, api.Invalid("", "invalid_input", "Query body must be a JSON object.")
	}
	return fields, nil
}

// isKindName tells the paths that name a kind, [A-Z][A-Za-z]*, from those that would name a query.
func isKindName(name string) bool {
	return name[0] >= 'A' && name[0] <= 'Z' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// requestMistake words a mistake around a query as the peer's validator does; an empty field stands for the whole.
func requestMistake(field, words, typ string) *api.Error {
	if field != "" {
		field += "\n"
	}
	return api.ParseError(fmt.Sprintf("JSON parse error - 1 validation error for QueryRequest\n%s  %s [type=%s]", field, words, typ))
}

// extraField refuses a field that a query request does not have, and says what was probably meant.
func extraField(name string, fields map[string]json.RawMessage) *api.Error {
	answer := requestMistake(name, "Extra inputs are not permitted", "extra_forbidden")
	_, wrapped := fields["query"]
	_, kind := fields["kind"]
	if near := schema.Nearest(name, slices.Values(queryFields)); kind && !wrapped {
		answer.Detail += `: put the query into the field query, as in {"query": {"kind": …}}`
	} else if near != "" {
		answer.Detail += fmt.Sprintf(": did you mean '%s'?", near)
	}
	return answer
}

func (rq *request) renderQuery(dst []byte, p *result.Plan, got cache.Answer) []byte {
	return rq.results().RenderQuery(dst, p, got)
}
