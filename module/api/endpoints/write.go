package endpoints

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/publish"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *Endpoints) create(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	f, err := readFields(in)
	if err != nil {
		return api.Response{}, err
	}
	wanted, err := f.newEndpoint(&c)
	if err != nil {
		return api.Response{}, err
	}
	checked, quotas, err := publish.Check(ctx, s.Executor, &c, f.query)
	if err == nil {
		err = publish.CheckOptionalBreakdowns(checked.Node, wanted.OptionalBreakdowns)
	}
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	wanted.Query, wanted.Columns = checked.Raw, checked.Columns
	e, err := s.Registry.CreateEndpoint(ctx, wanted, c.Start)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	res := api.JSON(http.StatusCreated, recordOf(&c, in, e))
	res.Quotas = quotas
	return res, nil
}

// newEndpoint is the endpoint that the fields describe, without its query.
func (f *fields) newEndpoint(c *api.Caller) (registry.NewEndpoint, error) {
	var wanted registry.NewEndpoint
	switch {
	case api.Deref(f.name) == "":
		return wanted, api.Invalid("name", "required", "This field is required.")
	case f.query == nil:
		return wanted, api.Invalid("query", "required", "This field is required.")
	case api.Deref(f.draft):
		return wanted, api.Invalid("draft", "invalid_input", "The first version of an endpoint is its current one; is_active keeps it from being run.")
	}
	if err := f.refuseMaterialization(f.active == nil || *f.active); err != nil {
		return wanted, err
	}
	wanted = registry.NewEndpoint{
		Project: c.Project.ID, Name: *f.name, Description: api.Deref(f.description), FreshnessSeconds: api.Deref(f.freshness),
		Inactive: f.active != nil && !*f.active, DerivedFromInsight: api.Deref(f.derivedFrom), Tags: api.Deref(f.tags),
		OptionalBreakdowns: api.Deref(f.optionalBreakdowns), DeprecatedAt: api.Deref(f.deprecatedAt), SunsetAt: api.Deref(f.sunsetAt),
		RateLimit: api.Deref(f.rateLimit), CreatedBy: c.Key.ID,
	}
	if f.freshness != nil && *f.freshness == 0 {
		wanted.FreshnessSeconds = -1 // 0 would stand for the default
	}
	return wanted, nil
}

func (s *Endpoints) update(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	e, err := find(&c, in.At.Name)
	if err != nil {
		return api.Response{}, err
	}
	f, err := readFields(in)
	if err != nil {
		return api.Response{}, err
	}
	if api.Deref(f.deleted) {
		if err := s.drop(ctx, &c, e); err != nil {
			return api.Response{}, err
		}
		return api.JSON(http.StatusOK, map[string]bool{"success": true}), nil
	}
	active := e.Active
	if f.active != nil && f.version == nil {
		active = *f.active
	}
	if err := f.refuseMaterialization(active); err != nil {
		return api.Response{}, err
	}
	if err := f.target(in, e); err != nil {
		return api.Response{}, err
	}
	shown, quotas, err := s.change(ctx, &c, in, e, &f)
	if err != nil {
		return api.Response{Quotas: quotas}, err
	}
	res := api.JSON(http.StatusOK, shown)
	res.Quotas = quotas
	return res, nil
}

// change makes the changes that the fields say.
func (s *Endpoints) change(ctx context.Context, c *api.Caller, in api.Input, e *registry.Endpoint, f *fields) (record, execution.Quotas, error) {
	draft := api.Deref(f.draft)
	update := registry.EndpointUpdate{
		Version: api.Deref(f.version), Draft: draft, Description: f.description, FreshnessSeconds: f.freshness,
		Active: f.active, Tags: f.tags, DeprecatedAt: f.deprecatedAt, SunsetAt: f.sunsetAt,
		OptionalBreakdowns: f.optionalBreakdowns, RateLimit: f.rateLimit, By: c.Key.ID,
	}
	quotas, err := s.setQuery(ctx, c, e, f, &update)
	if err != nil {
		return record{}, quotas, err
	}
	comparison := publish.Comparison{Snapshot: c.Snapshot, References: s.References, Project: c.Project.ID, RefuseBreaking: api.Deref(f.refuseBreaking), Attr: "query"}
	update.Check = comparison.Check
	updated, err := s.Registry.UpdateEndpoint(ctx, c.Project.ID, e.Name, update, c.Start)
	if err != nil {
		return record{}, quotas, err
	}
	var shown record
	switch {
	case draft:
		added := updated.Version(len(updated.Versions))
		shown = recordOfVersion(c, in, updated, added)
		comparison.Compare(updated.Current(), added)
	case f.version != nil:
		shown = recordOfVersion(c, in, updated, updated.Version(update.Version))
	default:
		shown = recordOf(c, in, updated)
	}
	shown.Changes = comparison.Found
	return shown, quotas, nil
}

// target finds the version that an update is about: the body's, else the query string's.
func (f *fields) target(in api.Input, e *registry.Endpoint) error {
	if f.version == nil {
		number, asked, err := in.QueryInt("version")
		if err != nil {
			return err
		}
		if asked {
			f.version = &number
		}
	}
	switch {
	case f.version == nil:
		return nil
	case f.query != nil:
		return api.Invalid("query", "invalid_input", "Cannot change query when targeting a specific version. Query changes create a new version.")
	case *f.version == 0 || e.Version(*f.version) == nil: // 0 would stand for the current one
		return api.Invalid("version", "invalid_input", "Version %d not found", *f.version)
	}
	return nil
}

// setQuery checks the query of an update, and the fields whose meaning depends on it.
func (s *Endpoints) setQuery(
	ctx context.Context, c *api.Caller, e *registry.Endpoint, f *fields, update *registry.EndpointUpdate,
) (execution.Quotas, error) {
	if f.query != nil {
		checked, quotas, err := publish.Check(ctx, s.Executor, c, f.query)
		if err != nil {
			return quotas, err
		}
		update.Query, update.Columns, update.SameQuery = checked.Raw, checked.Columns, checked.Same
		return quotas, publish.CheckOptionalBreakdowns(checked.Node, api.Deref(f.optionalBreakdowns))
	}
	if len(api.Deref(f.optionalBreakdowns)) == 0 {
		return nil, nil
	}
	node, err := api.StoredQuery(e, e.Version(update.Version))
	if err != nil {
		return nil, err
	}
	return nil, publish.CheckOptionalBreakdowns(node, *f.optionalBreakdowns)
}

func (s *Endpoints) delete(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	e, err := find(&c, in.At.Name)
	if err != nil {
		return api.Response{}, err
	}
	if err := s.drop(ctx, &c, e); err != nil {
		return api.Response{}, err
	}
	return api.NoContent(), nil
}

// drop deletes an endpoint and what was counted of it.
func (s *Endpoints) drop(ctx context.Context, c *api.Caller, e *registry.Endpoint) error {
	if err := s.Registry.DeleteEndpoint(ctx, c.Project.ID, e.Name, c.Start); err != nil {
		return err
	}
	s.Forget(e)
	return nil
}
