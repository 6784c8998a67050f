// Package actions answers the routes of actions: contract actions.md section 1.
package actions

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Actions handles the routes of actions.
type Actions struct {
	Executor   *execution.Executor
	Registry   *registry.Registry
	References *references.Index
}

// Routes returns the routes of actions. There is no DELETE: an action is deleted with PATCH, so that it can be restored.
func (s *Actions) Routes() []api.Route {
	const read, write = "action:read", "action:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "actions", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "actions", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "actions/:name", Scope: read, Handler: s.get},
		{Method: http.MethodGet, Pattern: "actions/:name/references", Scope: read, Handler: s.references},
		{Method: http.MethodPut, Pattern: "actions/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "actions/:name", Scope: write, Handler: s.update},
	}
}

// find finds the action named in the path, deleted or not.
func find(c *api.Caller, in *api.Input) (*registry.Action, error) {
	id, err := in.ID()
	if err != nil {
		return nil, err
	}
	if a := c.Snapshot.AnyAction(c.Project.ID, id); a != nil {
		return a, nil
	}
	return nil, api.NotFound("Not found.")
}

func (s *Actions) get(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	a, err := find(c, in)
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusOK, c, c.Snapshot, a), nil
}

func (s *Actions) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, err := s.read(ctx, c, in)
	if err != nil {
		return nil, err
	}
	a, err := s.Registry.CreateAction(ctx, c.Project.ID, fields, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusCreated, c, s.Registry.Snapshot(), a), nil
}

// update answers PUT and PATCH: no field is required, so both change the fields given.
func (s *Actions) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	a, err := find(c, in)
	if err != nil {
		return nil, err
	}
	fields, err := s.read(ctx, c, in)
	if err != nil {
		return nil, err
	}
	fields.Check = s.checkLoop
	if a, err = s.Registry.UpdateAction(ctx, c.Project.ID, a.ID, fields, c.Start); err != nil {
		return nil, err
	}
	return s.answer(http.StatusOK, c, s.Registry.Snapshot(), a), nil
}

// read reads the fields of a body and checks the steps. The registry checks the rest.
func (s *Actions) read(ctx context.Context, c *api.Caller, in *api.Input) (registry.ActionFields, error) {
	fields, err := readFields(in)
	if err != nil {
		return fields, err
	}
	return fields, s.checkSteps(ctx, c, fields.Steps.Value)
}

// answer returns an action, with its uses in a snapshot.
func (s *Actions) answer(status int, c *api.Caller, snap *registry.Snapshot, a *registry.Action) *api.Response {
	return api.Raw(status, recordOf(c, a, s.References.Of(snap, c.Project.ID)).json())
}

// references answers GET actions/:id/references/: the uses of the action, as a plain array.
func (s *Actions) references(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	a, err := find(c, in)
	if err != nil {
		return nil, err
	}
	found := s.References.Of(c.Snapshot, c.Project.ID).OfAction(a.ID)
	return api.JSON(http.StatusOK, references.Records(c, found)), nil
}
