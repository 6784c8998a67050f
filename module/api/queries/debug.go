package queries

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// inspect computes what the request asks to see besides the rows.
func (q *Queries) inspect(ctx context.Context, c *api.Caller, p *result.Plan) (seen result.Inspection, shown execution.Quotas, err error) {
	seen.Explain, shown, err = q.Executor.Explain(ctx, &c.Caller, p.Query)
	if err != nil || !p.Shows.Debug {
		return seen, shown, err
	}
	seen.Metadata, err = q.metadata(ctx, c, p)
	return seen, shown, err
}

// metadata returns the HogQLMetadata of a query's text; nil for insights, which have none.
func (q *Queries) metadata(ctx context.Context, c *api.Caller, p *result.Plan) (*compiler.Metadata, error) {
	text, ok := p.Node.(*query.HogQL)
	if !ok {
		return nil, nil
	}
	about, err := q.Executor.Describe(ctx, &c.Caller, &query.Metadata{
		Language: query.LanguageHogQL, Query: text.Query, Globals: text.Values, Variables: text.Variables, Filters: text.Filters, Modifiers: text.Modifiers,
	}, denied(c))
	if err != nil {
		return nil, &execution.QueryError{Text: p.Text, Err: err}
	}
	return about, nil
}

// mistake answers a HogQL query that has a mistake and asks for debug: the response has the mistake in its member error, next to the HogQLMetadata. It
// returns any other error unchanged, and that the query was canceled.
func (q *Queries) mistake(ctx context.Context, c *api.Caller, p *result.Plan, err error) (*api.Response, error) {
	if _, ok := p.Node.(*query.HogQL); !ok || !p.Shows.Debug || errors.Is(err, execution.ErrCancelled) {
		return nil, err
	}
	found := api.ErrorOf(err)
	if found.Status != http.StatusBadRequest {
		return nil, err
	}
	w := q.writer(c, nil)
	if w.Inspected.Metadata, err = q.metadata(ctx, c, p); err != nil {
		return nil, err
	}
	now := cache.Answer{Entry: cache.NewEntry(&cache.Result{}, c.Start, &execution.Details{}, 0)}
	body := result.AppendWindow([]byte(`{"results":[],"columns":[],"types":[]`), nil, nil, nil)
	body = w.AppendFreshness(body, p, now)
	body = append(body, `,"query":null,"metadata":`...)
	body = jsontext.Append(body, w.Inspected.Metadata)
	body = append(body, `,"query_metadata":null,"error":`...)
	body = jsontext.Append(body, found.Detail)
	body = append(body, `,"query_status":null,"hogql":null,"clickhouse":null,"cache_key":"`...)
	body = append(append(body, p.Key.String()...), '"')
	body = w.AppendShown(body, p, &execution.Details{})
	return api.Raw(http.StatusOK, append(body, `,"calculation_trigger":null,"resolved_date_range":null}`...)), nil
}
