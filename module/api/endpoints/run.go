package endpoints

import (
	"context"
	"net/http"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Runs runs endpoints, lists their recent runs, and counts them.
type Runs struct {
	Executor *execution.Executor
	Registry *registry.Registry
	Plans    *cache.Memo[*result.Plan] // plans of earlier requests
	Logs     *runlog.Logs
	Logger   *zap.Logger
}

// Routes returns the routes of runs, one for each format, and those of the log of runs and of usage.
func (s *Runs) Routes() []api.Route {
	all := []api.Route{
		{Method: http.MethodGet, Pattern: "endpoints/:name/logs", Scope: readScope, Handler: s.list},
		{Method: http.MethodGet, Pattern: "endpoints/:name/usage", Scope: readScope, Handler: s.getUsage},
		{Method: http.MethodGet, Pattern: "endpoint_usage", Scope: readScope, Handler: s.listUsage},
	}
	for f, names := range result.Formats {
		pattern := "endpoints/:name/run"
		if result.Format(f) != result.AsArrays {
			pattern += "." + names.Name
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			all = append(all, api.Route{Method: method, Pattern: pattern, Scope: readScope, SecretKeys: true, Handler: s.run})
		}
	}
	return all
}

// run answers a run: contract api.md, section 5.4.
func (s *Runs) run(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	if !e.Active {
		return nil, api.NotFound("Not found.")
	}
	p, err := s.planOf(ctx, c, in, e)
	if err != nil {
		return nil, s.failure(ctx, c, e, 0, err)
	}
	res, err := s.answer(ctx, c, in, p)
	if err != nil {
		err = s.failure(ctx, c, e, p.Version.Number, err)
	}
	return res, err
}

// failure returns the error that the caller of an endpoint sees, and records it in the log of runs.
func (s *Runs) failure(ctx context.Context, c *api.Caller, e *registry.Endpoint, version int, err error) error {
	err = api.RunFailure(fenceError(c, err))
	s.logRefusal(ctx, c, e, version, err)
	return err
}

// planOf returns the plan of a run of an active endpoint. It does not parse a request again that it has seen before, byte for byte.
func (s *Runs) planOf(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint) (*result.Plan, error) {
	body, err := api.ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	p, err := s.planOfBody(ctx, c, in, e, body.Bytes())
	api.ReturnBody(body)
	return p, err
}

func (s *Runs) planOfBody(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint, body []byte) (*result.Plan, error) {
	form, exact := askedFormat(in)
	memo := result.MemoKey(&c.Caller, e.ID, in.URL.RawQuery, form, exact, body)
	p, ok := result.Recall(s.Plans, memo, &c.Caller, e)
	if !ok {
		var err error
		if p, err = s.Plan(ctx, c, in, e, body); err != nil {
			return nil, err
		}
		if p.Cut == nil {
			s.Plans.Put(memo, p)
		}
	}
	if hidden(c, p.Version) { // the plan may have been made for another caller
		return nil, noSuchVersion(e, p.Version.Number)
	}
	return p, nil
}

// answer answers a run.
func (s *Runs) answer(ctx context.Context, c *api.Caller, in *api.Input, p *result.Plan) (*api.Response, error) {
	if p.Streams() {
		return s.export(ctx, c, in, p), nil
	}
	got, err := s.Result(ctx, c, p)
	if err == nil {
		got.Answer = p.Bounded(got.Answer, c.Start)
		err = checkPage(p, got.Answer.Entry)
	}
	if err != nil {
		return &api.Response{Header: p.Notices, Quotas: got.Quotas}, err
	}
	page := result.Stored(s.Executor.Cache, in, p, &got)
	if page == nil {
		page, err = result.Render(ctx, s.Executor.Cache, in, p, &got, s.Writer(c.Project, p.Format))
		if err != nil {
			return &api.Response{Header: p.Notices, Quotas: got.Quotas}, err
		}
	}
	s.Registry.Executed(p.Endpoint, p.Version.Number, c.Start)
	s.log(c, p, got.Answer)
	res := result.Respond(p, &got, page)
	if res.Header = p.Notices; p.Format.IsFile() {
		res.Header = s.fileHeaders(p, got.Answer)
	}
	return res, nil
}

// Result returns the result of a run: the snapshot that a cursor refers to, or the result of the query.
func (s *Runs) Result(ctx context.Context, c *api.Caller, p *result.Plan) (execution.Result, error) {
	if p.Cut != nil || p.Ref != (cache.Ref{}) {
		return s.snapshot(c, p)
	}
	return s.Executor.Answer(ctx, &c.Caller, p.Query, &p.Freshness)
}

// snapshot returns the snapshot that a cursor refers to.
func (s *Runs) snapshot(c *api.Caller, p *result.Plan) (execution.Result, error) {
	if p.Cut != nil {
		return execution.Result{Answer: p.Cut.Answer}, nil
	}
	got, err := s.Executor.Pinned(p.Query, &p.Freshness, p.Ref, c.Start)
	return execution.Result{Answer: got}, cursorError(err)
}

// maxNameBytes is how many bytes the names of columns may take in all rows of a page together.
const maxNameBytes = 2 * execution.MaxResultBytes

// checkPage refuses a page beyond the rows that a result can hold, since an empty page would mean that there are no more, and one whose rows repeat long names.
func checkPage(p *result.Plan, e *cache.Entry) error {
	if p.IsPage() && e.Result.More() && p.Offset >= e.Result.Len() {
		attr := "offset"
		if p.Ref != (cache.Ref{}) {
			attr = "cursor"
		}
		return api.Invalid(attr, "invalid_input", "A run gives pages of its first %d rows; narrow the query to see the rest.", e.Result.Len())
	}
	if p.Format != result.AsObjects && p.Format != result.AsNDJSON {
		return nil
	}
	done, ok := e.Meta.(*execution.Details)
	if !ok {
		return nil
	}
	names, n := 0, e.Result.PageLen(p.Offset, p.Limit)
	for _, name := range done.Columns {
		names += len(name)
	}
	if n*names > maxNameBytes/6 { // a character takes up to six
		names = rows.NewObjects(done.Columns).NameBytes()
	}
	if n*names > maxNameBytes {
		return api.Invalid("limit", "query_too_large", "The names of the columns take %d bytes in each of the %d rows, and may take %s in a page. "+
			"Ask for fewer rows, or give the columns shorter names.", names, n, humanize.IBytes(maxNameBytes))
	}
	return nil
}
