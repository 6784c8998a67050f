package module

import (
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
)

// fromMCP tells a request of PostHog's MCP server, which hands results to a language model. It is served a little differently,
// as by the peer: bare queries are saved in the node that shows them, and answers to queries carry formatted_results.
func (rq *request) fromMCP() bool { return rq.r.Header.Get("X-Posthog-Client") == "mcp" }

// renderForMCP writes an answer of the query route with formatted_results behind it: the results as a table of plain text.
func (rq *request) renderForMCP(dst []byte, p *result.Plan, got cache.Answer) []byte {
	dst = rq.results().RenderQuery(dst, p, got)
	text, err := formatResults(p, got)
	if err != nil { // our own results cannot be read
		rq.rt.logger.Error("writing results as text", zap.String("request", rq.RequestID), zap.Error(err))
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"formatted_results":`...)
	return append(jsontext.Append(dst, text), '}')
}

func formatResults(p *result.Plan, got cache.Answer) (string, error) {
	done, _ := got.Entry.Meta.(*execution.Details)
	if n, ok := p.Node.(query.Insight); ok && done.Insight != nil {
		return texttable.Insight(n, done.Insight.Results) // logged as it is
	}
	return texttable.Rows(done.Columns, got.Entry.Result.Rows(), 0) // logged as it is
}
