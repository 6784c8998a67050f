package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// runFields are the fields that a run can have.
var runFields = []string{"variables", "limit", "offset", "version", "refresh", "client_query_id", "debug", "filters_override", "format", "cursor"}

// planner makes the plan of one run that was not seen before.
type planner struct {
	*result.Plan
	exec   *execution.Executor
	c      *api.Caller
	in     *api.Input
	fields map[string]json.RawMessage
	direct bool // the run bypasses the version's table
}

// Plan returns the plan of a run that was not seen before.
func (s *Runs) Plan(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint, body []byte) (*result.Plan, error) {
	fields, err := api.DecodeObject(body)
	if err != nil {
		return nil, err
	}
	if _, ok := fields["query_override"]; ok {
		return nil, api.Invalid("query_override", "invalid_input", "Not allowed. Use variables instead.")
	}
	if err := api.CheckFields(fields, runFields...); err != nil {
		return nil, err
	}
	plan := &result.Plan{
		Query: &execution.Query{Endpoint: e, Rows: compiler.QueryRoute}, View: result.View{Limit: -1},
		Fixed: c.Key.Fixed, Serial: c.Snapshot.QuerySerial(c.Project.ID),
	}
	p := planner{Plan: plan, exec: s.Executor, c: c, in: in, fields: fields}
	text, given, err := p.cursor()
	switch {
	case err != nil:
		return nil, err
	case given:
		err = p.follow(ctx, s.Executor.Cache, text)
	default:
		err = p.plan(ctx)
	}
	if err != nil {
		return nil, err
	}
	plan.SetPage()
	return plan, nil
}

// plan fills in the plan of a run without a cursor.
func (p *planner) plan(ctx context.Context) (err error) {
	if p.Version, err = p.version(); err != nil {
		return err
	}
	if err := p.options(); err != nil {
		return err
	}
	node, err := api.StoredQuery(p.Endpoint, p.Version)
	if err != nil {
		return err
	}
	if err := p.page(node); err != nil {
		return err
	}
	if err := p.format(node); err != nil {
		return err
	}
	if p.Streams() {
		p.Rows = compiler.Whole
	}
	bound, err := p.bind(node)
	if err != nil {
		return err
	}
	p.Until = p.c.Snapshot.Schema(p.c.Project.ID).EventsUntil(p.c.Start)
	if p.Stored, err = p.stored(ctx, node, &bound); err != nil {
		return err
	}
	want(p.exec, p.Query, p.c, bound)
	p.Recipe = p.recipe()
	return nil
}

// want completes a query that has its version, table and rows with the variables and overrides of a run, and sets its cache key.
func want(e *execution.Executor, q *execution.Query, c *api.Caller, bound binding) {
	q.Node, q.Marks, q.Text = bound.node, bound.marks, bound.node.Text()
	extra := fmt.Sprintf("%d %s", q.Rows, e.Mark(c.Snapshot, c.Project.ID, q.Node))
	if q.Stored != nil {
		extra = fmt.Sprintf("%d table %s", q.Rows, q.Stored.Mark())
	}
	q.Key = cache.KeyParts{
		Project: c.Project.ID, RowFilter: c.Key.Fixed, Endpoint: q.Endpoint.ID, Version: q.Version.Number, Query: q.Version.ID, Variables: q.Marks,
		Zone: c.Project.Timezone, Extra: extra,
	}.Key()
}

// freshness returns the maximum age of a version's result.
func freshness(v *registry.Version) time.Duration {
	return time.Duration(v.FreshnessSeconds) * time.Second
}

// options reads the options of a run other than those for its rows.
func (p *planner) options() (err error) {
	if p.Debug, err = api.BoolField(p.fields, "debug"); err != nil {
		return err
	}
	p.Debug = p.Debug && !p.c.Key.Bound() // only the authors of an endpoint see its SQL
	if p.ClientID, err = p.clientID(); err != nil {
		return err
	}
	if p.Mode, err = p.refresh(); err != nil {
		return err
	}
	p.Notices = noticesOf(p.Version, p.fields)
	p.Fresh = freshness(p.Version)
	return nil
}

// version finds the version to run: that of the body, else of the query string, else the current one.
func (p *planner) version() (*registry.Version, error) {
	number, given, err := p.integer("version")
	if err != nil {
		return nil, err
	}
	if given && number == 0 { // Version(0) is the current one
		return nil, noSuchVersion(p.Endpoint, number)
	}
	return p.activeVersion(number)
}

// activeVersion returns a version that the caller can run; 0 means the current one.
func (p *planner) activeVersion(number int) (*registry.Version, error) {
	v := p.Endpoint.Version(number)
	if v == nil || hidden(p.c, v) {
		return nil, noSuchVersion(p.Endpoint, number)
	}
	if !v.Active {
		return nil, api.Invalid("", "invalid_input", "Version %d is inactive and cannot be executed.", v.Number)
	}
	return v, nil
}

// hidden reports whether a version does not exist for a caller: drafts are for the endpoint's authors, not for customers.
func hidden(c *api.Caller, v *registry.Version) bool {
	return v.Draft() && (c.Key.Kind == registry.Secret || c.Key.Bound())
}

func noSuchVersion(e *registry.Endpoint, number int) error {
	missing := api.NewRunError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found for endpoint '%s'", number, e.Name))
	missing.Run.CurrentVersion = e.CurrentVersion
	return missing
}

// integer reads a number from the body or, if it is not there, from the query string.
func (p *planner) integer(name string) (n int, given bool, err error) {
	if given, err = api.Field(p.fields, name, &n); given || err != nil {
		return n, given, err
	}
	return p.in.QueryInt(name)
}

// page reads limit and offset.
func (p *planner) page(node query.Node) error {
	limit, limited, err := p.integer("limit")
	if err != nil {
		return err
	}
	offset, moved, err := p.integer("offset")
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

// badPage refuses a limit or an offset that is too small: contract api.md, section 5.7.
func badPage(name string, value int) error {
	refused := api.NewRunError(http.StatusBadRequest, "validation_error", "invalid_input", fmt.Sprintf("Invalid %s parameter: %d", name, value))
	refused.Attr = name
	return refused
}

// clientID returns the name by which the caller can cancel the run. A run may carry any text; one that can't be part of a path is ignored.
func (p *planner) clientID() (id string, err error) {
	if _, err = api.Field(p.fields, "client_query_id", &id); err != nil || !result.ValidQueryID(id) {
		return "", err
	}
	return id, nil
}

func (p *planner) refresh() (cache.Mode, error) {
	refresh := "cache"
	if _, err := api.Field(p.fields, "refresh", &refresh); err != nil {
		return cache.Use, err
	}
	switch refresh {
	case "cache":
		return cache.Use, nil
	case "force":
		return cache.Recompute, nil
	case "direct":
		if p.Version.Table == nil {
			return cache.Use, api.Invalid("refresh", "invalid_input",
				"'direct' refresh mode is only valid for materialized endpoints. Use 'cache' or 'force' instead, or enable materialization on this endpoint.")
		}
		p.direct = true
		return cache.Recompute, nil
	}
	return cache.Use, api.Invalid("refresh", "invalid_input", "Input should be 'cache', 'force' or 'direct'")
}
