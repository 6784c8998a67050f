// Package endpoints serves saved queries: it runs them, shows and changes their records, and describes them in OpenAPI documents: contract api.md section
// 5.
package endpoints

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Endpoints handles the routes of endpoint records.
type Endpoints struct {
	Executor *execution.Executor
	Registry *registry.Registry
	Forget   func(*registry.Endpoint) // drops the counters of a deleted endpoint
	// References knows the actions and cohorts that queries use.
	References *references.Index
	Fill       func() // starts filling the tables that wait for it; returns at once
}

// Routes returns the routes of endpoint records.
func (s *Endpoints) Routes() []api.Route {
	const one = "endpoints/:name"
	all := []api.Route{
		{Method: http.MethodGet, Pattern: "endpoints", Scope: readScope, Handler: s.list},
		{Method: http.MethodPost, Pattern: "endpoints", Scope: writeScope, Handler: s.create},

		{Method: http.MethodGet, Pattern: one + "/versions", Scope: readScope, Handler: s.listVersions},
		{Method: http.MethodPost, Pattern: one + "/promote", Scope: writeScope, Handler: s.promote},
		{Method: http.MethodPost, Pattern: one + "/rollback", Scope: writeScope, Handler: s.rollBack},

		{Method: http.MethodGet, Pattern: one + "/materialization_status", Scope: readScope, Handler: s.getMaterialization},
		{Method: http.MethodPost, Pattern: one + "/materialization_preview", Scope: readScope, Handler: s.previewMaterialization},
		{Method: http.MethodPost, Pattern: one + "/materialization_suggestion", Scope: readScope, Handler: refuseSuggestion},
	}
	all = append(all, s.one(one)...)
	// With POST, these names are actions; an endpoint can still have such a name.
	for name, post := range map[string]api.Handler{"last_execution_times": lastExecutions, "bulk_update_tags": s.refuseBulkTags} {
		all = append(all, s.one("endpoints/"+name)...)
		all = append(all, api.Route{Method: http.MethodPost, Pattern: "endpoints/" + name, Scope: readScope, Handler: post})
	}
	const conditions = "endpoints/materialization_conditions" // with GET only
	all = append(all, s.one(conditions)[1:]...)
	return append(all, api.Route{Method: http.MethodGet, Pattern: conditions, Scope: readScope, Handler: getConditions})
}

// one returns the routes of one endpoint.
func (s *Endpoints) one(pattern string) []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: pattern, Scope: readScope, Handler: s.get},
		{Method: http.MethodPut, Pattern: pattern, Scope: writeScope, Handler: s.update},
		{Method: http.MethodPatch, Pattern: pattern, Scope: writeScope, Handler: s.update},
		{Method: http.MethodDelete, Pattern: pattern, Scope: writeScope, Handler: s.delete},
	}
}

func (s *Endpoints) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	params := in.URL.Query()
	active, filtered := params.Get("is_active"), params.Get("is_active") != ""
	wanted, err := strconv.ParseBool(active)
	if filtered && err != nil {
		return nil, api.Invalid("is_active", "invalid_input", "Must be a valid boolean.")
	}
	all, err := searchEndpoints(in, c.Snapshot.Endpoints(c.Project.ID))
	if err != nil {
		return nil, err
	}
	var found []*registry.Endpoint
	for _, e := range all {
		if filtered && e.Active != wanted {
			continue
		}
		if want := params.Get("created_by"); want != "" && want != e.CreatedBy && want != strconv.FormatInt(c.UserNumber(e.CreatedBy), 10) {
			continue
		}
		found = append(found, e)
	}
	return api.PageBy(in, found, func(e *registry.Endpoint) record { return s.current(c, s.recordOf(ctx, c, in, e), e.Current()) })
}

// current adds to a record the changes, since the version was published, to the actions and cohorts that it uses.
func (s *Endpoints) current(c *api.Caller, r record, v *registry.Version) record {
	found := changes.Since(changes.Side{Version: v, Uses: s.References.UsesOf(c.Snapshot, c.Project.ID, v.Query)})
	if found.Any() {
		r.Changes = found
	}
	return r
}

func (s *Endpoints) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	v, asked, err := askedVersion(in, e)
	switch {
	case err != nil:
		return nil, err
	case asked:
		return api.JSON(http.StatusOK, s.current(c, s.recordOfVersion(ctx, c, in, e, v), v)), nil
	}
	return api.JSON(http.StatusOK, s.current(c, s.recordOf(ctx, c, in, e), e.Current())), nil
}

func (s *Endpoints) listVersions(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	newest := make([]*registry.Version, 0, len(e.Versions))
	for i := range slices.Backward(e.Versions) {
		newest = append(newest, &e.Versions[i])
	}
	return api.PageBy(in, newest, func(v *registry.Version) record { return s.current(c, s.recordOfVersion(ctx, c, in, e, v), v) })
}
