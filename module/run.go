package module

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// runEndpoint answers a run: contract section 5.4.
func (rt *runtime) runEndpoint(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	rq := &request{r: in.Request, rt: rt, Caller: c, at: in.At}
	e, err := rq.endpoint()
	if err != nil {
		return api.Response{}, err
	}
	if !e.Active {
		return api.Response{}, api.NotFound("Not found.")
	}
	res, err := rq.runActive(ctx, e)
	if err != nil {
		err = rq.failure(e, err)
	}
	return res, err
}

// failure is what the caller of an endpoint is told of an error. It is remembered among the runs.
func (rq *request) failure(e *registry.Endpoint, err error) error {
	err = api.RunFailure(rq.fenceError(err))
	rq.logRefusal(e, err)
	return err
}

// runActive runs an endpoint that is switched on. A request whose bytes were seen before is not parsed again.
func (rq *request) runActive(ctx context.Context, e *registry.Endpoint) (api.Response, error) {
	body, err := api.ReadBody(rq.r)
	if err != nil {
		return api.Response{}, err
	}
	defer api.ReturnBody(body)
	memo := rq.memoKey(e.ID, body.Bytes())
	p, ok := result.Recall(rq.rt.plans, memo, &rq.Caller.Caller)
	if !ok {
		if p, err = rq.planRun(e, body.Bytes()); err != nil {
			return api.Response{}, err
		}
		rq.rt.plans.Put(memo, p)
	}
	if p.Version.Draft() && (rq.Key.Kind == registry.Secret || rq.Key.Bound()) {
		return api.Response{}, noSuchVersion(e, p.Version.Number) // drafts are for their authors, not for customers
	}
	if p.Streams() {
		return api.Response{Header: p.Notices, Stream: func(w http.ResponseWriter) error {
			rq.w = w
			if err := rq.export(p); err != nil {
				return rq.failure(e, err)
			}
			return nil
		}}, nil
	}
	got, err := rq.runResult(ctx, p)
	if err == nil {
		err = checkPage(p, got.Answer.Entry)
	}
	if err != nil {
		return api.Response{Header: p.Notices, Quotas: got.Quotas}, err
	}
	rq.rt.registry.Executed(e, p.Version.Number, rq.Start)
	rq.logRun(p, got.Answer)
	page, ok := result.Stored(rq.rt.Cache, rq.input(), p, &got)
	if !ok {
		render := rq.renderRun
		if p.Format.IsFile() {
			render = rq.renderFile
		}
		page = result.Render(rq.rt.Cache, rq.input(), p, got, render)
	}
	res := result.Respond(p, &got, page)
	if res.Header = p.Notices; p.Format.IsFile() {
		res.Header = rq.fileHeaders(p, got.Answer)
	}
	return res, nil
}

// runResult gets the result of a run: the snapshot that a cursor names, or that of the query.
func (rq *request) runResult(ctx context.Context, p *result.Plan) (execution.Result, error) {
	if p.Ref == (cache.Ref{}) {
		return rq.rt.Answer(ctx, rq.Caller.Caller, p.Query, p.Freshness)
	}
	got, err := rq.rt.Pinned(p.Query, p.Freshness, p.Ref, rq.Start)
	return execution.Result{Answer: got}, cursorError(err)
}

// runFields are what a run may be given.
var runFields = []string{"variables", "limit", "offset", "version", "refresh", "client_query_id", "debug", "filters_override", "format", "cursor"}

// planRun understands a run that was not seen before.
func (rq *request) planRun(e *registry.Endpoint, body []byte) (*result.Plan, error) {
	fields, err := api.DecodeObject(body)
	if err != nil {
		return nil, err
	}
	if _, ok := fields["query_override"]; ok {
		return nil, api.Invalid("query_override", "invalid_input", "Not allowed. Use variables instead.")
	}
	for _, name := range api.SortedNames(fields) {
		if !slices.Contains(runFields, name) {
			return nil, api.Invalid(name, "invalid_input", "Extra inputs are not permitted")
		}
	}
	if text, given, err := rq.readCursor(fields); err != nil {
		return nil, err
	} else if given {
		return rq.planCursor(e, fields, text)
	}
	p := &result.Plan{Query: &execution.Query{Endpoint: e, Rows: compiler.QueryRoute}, View: result.View{Limit: -1}, Fixed: rq.Key.Fixed}
	if p.Version, err = rq.runVersion(e, fields); err != nil {
		return nil, err
	}
	if err := rq.readOptions(p, fields); err != nil {
		return nil, err
	}
	node, err := api.StoredQuery(e, p.Version)
	if err != nil {
		return nil, err
	}
	if err := rq.readPage(p, node, fields); err != nil {
		return nil, err
	}
	if err := rq.readFormat(p, node, fields); err != nil {
		return nil, err
	}
	if p.Streams() {
		p.Rows = compiler.Whole
	}
	given, err := api.VariablesField(fields)
	if err != nil {
		return nil, err
	}
	if p.Node, p.Marks, err = rq.bindRun(node, given, fields["filters_override"]); err != nil {
		return nil, err
	}
	p.Text = p.Node.Text()
	p.Key = cache.KeyParts{
		Project: rq.Project.ID, RowFilter: p.Fixed, Endpoint: e.ID, Version: p.Version.Number, Query: p.Version.ID, Variables: p.Marks,
		Zone: rq.Project.Timezone, Extra: fmt.Sprintf("%d %s", p.Rows, execution.SchemaMark(rq.Snapshot.Schema(rq.Project.ID))),
	}.Key()
	p.SetPage()
	return p, nil
}

// readOptions reads what a run is given beside its rows: how it answers.
func (rq *request) readOptions(p *result.Plan, fields map[string]json.RawMessage) (err error) {
	if p.Debug, err = api.BoolField(fields, "debug"); err != nil {
		return err
	}
	p.Debug = p.Debug && !rq.Key.Bound() // SQL is for the authors of an endpoint
	if p.ClientID, err = clientIDOfRun(fields); err != nil {
		return err
	}
	if p.Mode, err = refreshOfRun(fields); err != nil {
		return err
	}
	p.Notices = noticesOf(p.Version, fields)
	p.Fresh = time.Duration(p.Version.FreshnessSeconds) * time.Second
	return nil
}

// bindRun puts the variables of a run into the stored query, those that the key fixes too, and the overrides. The marks tell runs with
// different ones apart.
func (rq *request) bindRun(node query.Node, given map[string]json.RawMessage, overrides json.RawMessage) (bound query.Node, marks string, err error) {
	if given, err = rq.fence(node, given, overrides); err != nil {
		return nil, "", err
	}
	bound, marks, err = rq.bindVariables(node, given)
	if err != nil {
		return nil, "", err
	}
	if err := rq.mayOverride(overrides); err != nil {
		return nil, "", err
	}
	bound, overridden, err := overrideRun(bound, overrides) // these win over variables
	return bound, marks + overridden, err
}

// runVersion finds the version to run: from the body, else from the query string, else the current one.
func (rq *request) runVersion(e *registry.Endpoint, fields map[string]json.RawMessage) (*registry.Version, error) {
	number, given, err := rq.runInt(fields, "version")
	if err != nil {
		return nil, err
	}
	if given && number == 0 { // it would stand for the current one
		return nil, noSuchVersion(e, number)
	}
	return activeVersion(e, number)
}

// activeVersion is a version of an endpoint that can be run; 0 stands for the current one.
func activeVersion(e *registry.Endpoint, number int) (*registry.Version, error) {
	v := e.Version(number)
	if v == nil {
		return nil, noSuchVersion(e, number)
	}
	if !v.Active {
		return nil, api.Invalid("", "invalid_input", "Version %d is inactive and cannot be executed.", v.Number)
	}
	return v, nil
}

func noSuchVersion(e *registry.Endpoint, number int) error {
	missing := api.NewRunError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found for endpoint '%s'", number, e.Name))
	missing.Run.CurrentVersion = e.CurrentVersion
	return missing
}

// runInt reads a number from the body, or from the query string where the body lacks it.
func (rq *request) runInt(fields map[string]json.RawMessage, name string) (n int, given bool, err error) {
	if given, err = api.Field(fields, name, &n); given || err != nil {
		return n, given, err
	}
	return rq.queryInt(name)
}

// readPage reads limit and offset.
func (rq *request) readPage(p *result.Plan, node query.Node, fields map[string]json.RawMessage) error {
	limit, limited, err := rq.runInt(fields, "limit")
	if err != nil {
		return err
	}
	offset, moved, err := rq.runInt(fields, "offset")
	if err != nil {
		return err
	}
	_, isHogQL := node.(*query.HogQL)
	switch {
	case limited && !isHogQL:
		return api.Invalid("limit", "invalid_input", "Limit/offset parameters are only supported for HogQLQuery, not %s", node.Kind())
	case moved && !isHogQL:
		return api.Invalid("offset", "invalid_input", "offset is only supported for HogQL endpoints")
	case limited && limit < 1:
		return badPage("limit", limit)
	case moved && offset < 0:
		return badPage("offset", offset)
	case moved && !limited:
		return api.NewRunError(http.StatusBadRequest, "validation_error", "invalid_input", "offset requires limit to be set")
	case limited:
		p.Limit, p.Offset, p.Paged, p.Refs, p.Rows = limit, offset, true, true, compiler.Pages
	}
	return nil
}

// badPage refuses a limit or an offset that is too small: contract section 5.7.
func badPage(name string, value int) error {
	refused := api.NewRunError(http.StatusBadRequest, "validation_error", "invalid_input", fmt.Sprintf("Invalid %s parameter: %d", name, value))
	refused.Attr = name
	return refused
}

// clientIDOfRun is the name that the caller gives the run, to cancel it by. A run may carry any text; one that cannot stand in an
// address names nothing.
func clientIDOfRun(fields map[string]json.RawMessage) (id string, err error) {
	if _, err = api.Field(fields, "client_query_id", &id); err != nil || len(id) > result.MaxQueryID || !result.ValidQueryID(id) {
		return "", err
	}
	return id, nil
}

func refreshOfRun(fields map[string]json.RawMessage) (cache.Mode, error) {
	refresh := "cache"
	if _, err := api.Field(fields, "refresh", &refresh); err != nil {
		return cache.Use, err
	}
	switch refresh {
	case "cache":
		return cache.Use, nil
	case "force":
		return cache.Recompute, nil
	case "direct":
		return cache.Use, api.Invalid("refresh", "invalid_input", "'direct' refresh mode is only valid for materialized endpoints. Use 'cache' or 'force'.")
	}
	return cache.Use, api.Invalid("refresh", "invalid_input", "Input should be 'cache', 'force' or 'direct'")
}

// checkPage refuses a page behind the rows that a result may hold: an empty one would say that there are no more.
func checkPage(p *result.Plan, e *cache.Entry) error {
	if p.IsPage() && e.Result.More() && p.Offset >= e.Result.Len() {
		attr := "offset"
		if p.Ref != (cache.Ref{}) {
			attr = "cursor"
		}
		return api.Invalid(attr, "invalid_input", "A run gives pages of its first %d rows; narrow the query to see the rest.", e.Result.Len())
	}
	return nil
}

// renderRun writes the body of a run: the contract's fields, those that only debugging shows left out.
func (rq *request) renderRun(dst []byte, p *result.Plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		more := done.Insight.HasMore != nil && *done.Insight.HasMore // of each run, also of kinds whose answers are never cut
		dst = result.RenderInsight(dst, done, &more)
		dst = rq.results().AppendFreshness(dst, p, got)
		dst = append(dst, `,"query_metadata":null,"query_status":null`...)
		return rq.appendRun(dst, p, done)
	}
	kept := got.Entry.Result
	more := kept.More()
	if p.IsPage() {
		more = kept.HasMore(p.Offset, p.Limit)
	}
	dst = append(dst, `{"results":`...)
	dst = p.AppendRows(dst, kept, done.Columns)
	dst = append(dst, ',')
	dst = append(dst, done.Head...)
	if p.IsPage() {
		dst = result.AppendWindow(dst, &more, &p.Limit, &p.Offset)
	} else {
		dst = result.AppendWindow(dst, &more, nil, nil)
	}
	dst = rq.appendCursorMember(dst, p, got)
	dst = rq.results().AppendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null`...)
	return rq.appendRun(dst, p, done)
}

// appendRun ends the body of a run with what tells runs apart.
func (rq *request) appendRun(dst []byte, p *result.Plan, done *execution.Details) []byte {
	if p.Debug {
		dst = rq.results().AppendDebug(dst, p, done)
	}
	dst = append(dst, `,"name":`...)
	dst = jsontext.Append(dst, p.Endpoint.Name)
	dst = append(dst, `,"execution_id":"`...)
	dst = append(dst, done.ExecutionID.String()...)
	dst = append(dst, `","endpoint_version":`...)
	dst = jsontext.AppendInt(dst, p.Version.Number)
	dst = append(dst, `,"endpoint_version_created_at":`...)
	dst = jsontext.AppendTime(dst, p.Version.CreatedAt)
	return append(dst, '}')
}
