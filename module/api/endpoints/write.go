package endpoints

import (
	"context"
	"net/http"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/publish"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *Endpoints) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	f, err := readFields(in)
	if err != nil {
		return nil, err
	}
	wanted, err := f.newEndpoint(c)
	if err != nil {
		return nil, err
	}
	checked, quotas, err := publish.Check(ctx, s.Executor, c, f.query)
	if err == nil {
		err = publish.CheckOptionalBreakdowns(checked.Node, wanted.OptionalBreakdowns)
	}
	if err == nil && wanted.Table.On != nil && *wanted.Table.On {
		err = s.mayMaterialize(ctx, c, execution.Subject{
			Endpoint: wanted.Name, Version: 1, Node: checked.Node, Buckets: wanted.Table.Buckets, Optional: wanted.OptionalBreakdowns,
		})
	}
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	wanted.Query, wanted.Columns = checked.Raw, checked.Columns
	e, err := s.Registry.CreateEndpoint(ctx, wanted, c.Start)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	s.Fill()
	res := api.JSON(http.StatusCreated, s.recordOf(ctx, c, in, e))
	res.Quotas = quotas
	return res, nil
}

// newEndpoint returns the endpoint that the fields describe, without its query.
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
	if err := f.checkActive(f.active == nil || *f.active); err != nil {
		return wanted, err
	}
	wanted = registry.NewEndpoint{
		Project: c.Project.ID, Name: *f.name, Description: api.Deref(f.description), FreshnessSeconds: api.Deref(f.freshness),
		Inactive: f.active != nil && !*f.active, DerivedFromInsight: api.Deref(f.derivedFrom), Tags: api.Deref(f.tags),
		OptionalBreakdowns: api.Deref(f.optionalBreakdowns), DeprecatedAt: api.Deref(f.deprecatedAt), SunsetAt: api.Deref(f.sunsetAt),
		RateLimit: api.Deref(f.rateLimit), CreatedBy: c.Key.ID, Table: registry.TableUpdate{On: f.materialized, Buckets: f.buckets},
	}
	if f.materialized == nil && len(f.buckets) > 0 {
		return wanted, errBuckets
	}
	if f.freshness != nil && *f.freshness == 0 {
		wanted.FreshnessSeconds = -1 // 0 would mean the default
	}
	return wanted, nil
}

func (s *Endpoints) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	f, err := readFields(in)
	if err != nil {
		return nil, err
	}
	if api.Deref(f.deleted) {
		if err := s.drop(ctx, c, e); err != nil {
			return nil, err
		}
		return api.JSON(http.StatusOK, map[string]bool{"success": true}), nil
	}
	if err := f.target(in, e); err != nil {
		return nil, err
	}
	if err := f.checkActive(f.leavesActive(e)); err != nil {
		return nil, err
	}
	shown, quotas, err := s.change(ctx, c, in, e, &f)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	res := api.JSON(http.StatusOK, shown)
	res.Quotas = quotas
	return res, nil
}

// change applies the fields to an endpoint.
func (s *Endpoints) change(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint, f *fields) (record, execution.Quotas, error) {
	draft := api.Deref(f.draft)
	update := registry.EndpointUpdate{
		Version: api.Deref(f.version), Draft: draft, Description: f.description, FreshnessSeconds: f.freshness,
		Active: f.active, Tags: f.tags, DeprecatedAt: f.deprecatedAt, SunsetAt: f.sunsetAt,
		OptionalBreakdowns: f.optionalBreakdowns, RateLimit: f.rateLimit, By: c.Key.ID,
		Table: registry.TableUpdate{On: f.materialized, Buckets: f.buckets},
	}
	node, quotas, err := s.setQuery(ctx, c, e, f, &update)
	var impossible *api.Error
	if err == nil {
		impossible, err = s.setTable(ctx, c, e, node, &update)
	}
	if err != nil {
		return record{}, quotas, err
	}
	comparison := publish.Comparison{Snapshot: c.Snapshot, References: s.References, Project: c.Project.ID, RefuseBreaking: api.Deref(f.refuseBreaking), Attr: "query"}
	update.Check = comparison.Check
	updated, err := s.Registry.UpdateEndpoint(ctx, c.Project.ID, e.Name, update, c.Start)
	if err != nil {
		return record{}, quotas, err
	}
	s.Fill()
	var shown record
	switch {
	case draft:
		added := updated.Version(len(updated.Versions))
		shown = s.recordOfVersion(ctx, c, in, updated, added)
		comparison.Compare(updated.Current(), added)
	case f.version != nil:
		shown = s.recordOfVersion(ctx, c, in, updated, updated.Version(update.Version))
	default:
		shown = s.recordOf(ctx, c, in, updated)
	}
	shown.Changes = comparison.Found
	if impossible != nil {
		shown.MaterializationError = impossible.Detail
	}
	return shown, quotas, nil
}

// target finds the version that an update applies to: that of the body, else that of the query string.
func (f *fields) target(in *api.Input, e *registry.Endpoint) error {
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
	case *f.version == 0 || e.Version(*f.version) == nil: // Version(0) is the current one
		return api.Invalid("version", "invalid_input", "Version %d not found", *f.version)
	}
	return nil
}

// setQuery checks the query of an update, and the fields that depend on it. It returns the query that the version has after the update.
func (s *Endpoints) setQuery(
	ctx context.Context, c *api.Caller, e *registry.Endpoint, f *fields, update *registry.EndpointUpdate,
) (query.Node, execution.Quotas, error) {
	if f.query != nil {
		checked, quotas, err := publish.Check(ctx, s.Executor, c, f.query)
		if err != nil {
			return nil, quotas, err
		}
		update.Query, update.Columns, update.SameQuery = checked.Raw, checked.Columns, checked.Same
		update.HasBreakdown = checked.HasBreakdown
		return checked.Node, quotas, publish.CheckOptionalBreakdowns(checked.Node, api.Deref(f.optionalBreakdowns))
	}
	node, err := api.StoredQuery(e, e.Version(update.Version))
	if err != nil || len(api.Deref(f.optionalBreakdowns)) == 0 {
		return node, nil, err
	}
	return node, nil, publish.CheckOptionalBreakdowns(node, *f.optionalBreakdowns)
}

// setTable refuses an update that requires an impossible table. A new version that would only inherit its table and can't have one gets none; impossible
// says why.
func (s *Endpoints) setTable(
	ctx context.Context, c *api.Caller, e *registry.Endpoint, node query.Node, update *registry.EndpointUpdate,
) (impossible *api.Error, err error) {
	before := e.Version(update.Version)
	renewed := update.Query != nil && (update.Draft || !update.SameQuery(before.Query))
	if update.Query != nil && !renewed && !before.Active && api.Deref(update.Table.On) {
		return nil, errInactive // the query is that of the version
	}
	of := execution.Subject{Endpoint: e.Name, Version: before.Number, Node: node, Buckets: update.Table.Buckets, Optional: before.OptionalBreakdowns}
	if renewed {
		of.Version = len(e.Versions) + 1
	}
	if of.Buckets == nil && before.Table != nil {
		of.Buckets = before.Table.Buckets
	}
	required := false // whether a breakdown that was optional no longer is
	if update.OptionalBreakdowns != nil {
		of.Optional = *update.OptionalBreakdowns
		required = slices.ContainsFunc(before.OptionalBreakdowns, func(name string) bool { return !slices.Contains(of.Optional, name) })
	}
	on := before.Table != nil
	if update.Table.On != nil {
		on = *update.Table.On
	}
	switch {
	case !on && update.Table.On == nil && len(update.Table.Buckets) > 0:
		return nil, errBuckets
	case !on, update.Draft && update.Table.On == nil, update.Table.On == nil && !renewed && update.Table.Buckets == nil && !required:
		return nil, nil
	}
	reason, err := s.whyImpossible(ctx, c, of)
	inherits := renewed && update.Table.On == nil
	switch {
	case err != nil && inherits && execution.StaleIsBetter(err):
		return nil, nil // the version before it has a table, so the new one gets one as soon as ClickHouse answers
	case err != nil:
		return nil, err
	case reason == "":
		return nil, nil
	case inherits:
		update.Table = registry.TableUpdate{Impossible: true}
		return refusal(reason), nil
	}
	return nil, refusal(reason)
}

var errBuckets = api.Invalid("bucket_overrides", "invalid_input", "bucket_overrides are for versions that are materialized: set is_materialized too.")

// mayMaterialize refuses a version that can't be materialized.
func (s *Endpoints) mayMaterialize(ctx context.Context, c *api.Caller, of execution.Subject) error {
	reason, err := s.whyImpossible(ctx, c, of)
	if err == nil && reason != "" {
		return refusal(reason)
	}
	return err
}

// whyImpossible returns the reason why a version can't be materialized; empty if it can be.
func (s *Endpoints) whyImpossible(ctx context.Context, c *api.Caller, of execution.Subject) (reason string, err error) {
	_, err = s.plan(ctx, c, of)
	return whyNot(ctx, err, s.Executor.Shards.Of(c.Project.ID).CanMaterialize)
}

// leavesActive reports whether an endpoint, and the version that the fields change, are active after the change. Without a number, is_active is that of
// the endpoint, and a query makes a new version, which is active.
func (f *fields) leavesActive(e *registry.Endpoint) bool {
	if f.version == nil {
		if f.active != nil && !*f.active || f.active == nil && !e.Active {
			return false
		}
		return f.query != nil || e.Current().Active
	}
	version := e.Version(*f.version).Active
	if f.active != nil {
		version = *f.active
	}
	return e.Active && version
}

// checkActive refuses to materialize an inactive endpoint.
func (f *fields) checkActive(active bool) error {
	if f.materialized != nil && *f.materialized && !active {
		return errInactive
	}
	return nil
}

var errInactive = api.Invalid("is_materialized", "invalid_input", "Cannot enable materialization on inactive endpoint.")

func (s *Endpoints) delete(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	if err := s.drop(ctx, c, e); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

// drop deletes an endpoint and its counters.
func (s *Endpoints) drop(ctx context.Context, c *api.Caller, e *registry.Endpoint) error {
	if err := s.Registry.DeleteEndpoint(ctx, c.Project.ID, e.Name, c.Start); err != nil {
		return err
	}
	s.Forget(e)
	return nil
}
