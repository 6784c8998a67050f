package module

import (
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// inspect finds out what the request asks to see beside the rows.
func (rq *request) inspect(p *result.Plan) error {
	if !p.Shows.Explain {
		return nil
	}
	var err error
	var shown execution.Quotas
	rq.inspected.Explain, shown, err = rq.rt.Explain(rq.r.Context(), rq.Caller.Caller, p.Query)
	rq.showQuotas(shown)
	if err != nil || !p.Shows.Debug {
		return err
	}
	rq.inspected.Metadata, err = rq.metadata(p)
	return err
}

// metadata is what HogQLMetadata says of a query's text; nil for insights, which have none.
func (rq *request) metadata(p *result.Plan) (*compiler.Metadata, error) {
	q, ok := p.Node.(*query.HogQL)
	if !ok {
		return nil, nil
	}
	about, err := rq.rt.Describe(rq.r.Context(), rq.Caller.Caller, &query.Metadata{
		Language: query.LanguageHogQL, Query: q.Query, Globals: q.Values, Variables: q.Variables, Filters: q.Filters, Modifiers: q.Modifiers,
	})
	if err != nil {
		return nil, &execution.QueryError{Text: p.Text, Err: err}
	}
	return about, nil
}

// writeMistake answers a HogQL query that is at fault and asks for debug: what would be the error of the answer is its member
// error, beside what HogQLMetadata says. Any other error is given back.
func (rq *request) writeMistake(p *result.Plan, err error) error {
	if _, ok := p.Node.(*query.HogQL); !ok || !p.Shows.Debug {
		return err
	}
	mistake := api.ErrorOf(err)
	if mistake.Status != http.StatusBadRequest {
		return err
	}
	if rq.inspected.Metadata, err = rq.metadata(p); err != nil {
		return err
	}
	now := cache.Answer{Entry: cache.NewEntry(&cache.Result{}, rq.Start, &execution.Details{}, 0)}
	body := result.AppendWindow([]byte(`{"results":[],"columns":[],"types":[]`), nil, nil, nil)
	body = rq.results().AppendFreshness(body, p, now)
	body = append(body, `,"query":null,"metadata":`...)
	body = jsontext.Append(body, rq.inspected.Metadata)
	body = append(body, `,"query_metadata":null,"error":`...)
	body = jsontext.Append(body, mistake.Detail)
	body = append(body, `,"query_status":null,"hogql":null,"clickhouse":null,"cache_key":"`...)
	body = append(append(body, p.Key.String()...), '"')
	body = rq.results().AppendShown(body, p, &execution.Details{})
	rq.write(api.Raw(http.StatusOK, append(body, `,"calculation_trigger":null,"resolved_date_range":null}`...)))
	return nil
}
