// Package insights answers the routes of saved insights and dashboards: contract api.md section 4.
package insights

import (
	"context"
	"net/http"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Insights handles the routes of saved insights.
type Insights struct {
	Results  *Results
	Registry *registry.Registry
}

// Routes returns the routes of saved insights.
func (s *Insights) Routes() []api.Route {
	const read, write = "insight:read", "insight:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "insights", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "insights", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "insights/:name", Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: "insights/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "insights/:name", Scope: write, Handler: s.update},
		{Method: http.MethodDelete, Pattern: "insights/:name", Scope: write, Handler: s.remove},
	}
}

// find finds the insight named in the path by number or short id, unless it is deleted.
func find(c *api.Caller, in *api.Input) (*registry.Insight, error) {
	if i := findAny(c, in.At.Name, func(i *registry.Insight) bool { return !i.Deleted }); i != nil {
		return i, nil
	}
	return nil, api.NotFound("Not found.")
}

// findAny finds an insight that satisfies which. A number can be a short id too.
func findAny(c *api.Caller, name string, which func(*registry.Insight) bool) *registry.Insight {
	if id, ok := parseNumber(name); ok {
		if i := c.Snapshot.AnyInsight(c.Project.ID, id); i != nil && which(i) {
			return i
		}
	}
	if i := c.Snapshot.AnyInsightByShortID(c.Project.ID, name); i != nil && which(i) {
		return i
	}
	return nil
}

// parseNumber parses a number written in decimal digits.
func parseNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && text[0] >= '0' && text[0] <= '9'
}

func (s *Insights) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	i, err := find(c, in)
	if err != nil {
		return nil, err
	}
	if api.IsTrue(in.URL.Query().Get("basic")) {
		return api.JSON(http.StatusOK, basicOf(c, i)), nil
	}
	params, err := readParams(c, in)
	if err != nil {
		return nil, err
	}
	return s.Results.answer(ctx, c, in, params, http.StatusOK, i)
}

func (s *Insights) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, err := readInsight(c, in, true)
	if err != nil {
		return nil, err
	}
	params, err := showable(c, in, nil, fields)
	if err != nil {
		return nil, err
	}
	i, err := s.Registry.CreateInsight(ctx, c.Project.ID, fields, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.Results.answer(ctx, c, in, params.afterWrite(), http.StatusCreated, i)
}

// update answers PUT and PATCH: no field is required, so both change the fields given. A deleted insight is found only by a PATCH that restores it.
func (s *Insights) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	i := findAny(c, in.At.Name, func(*registry.Insight) bool { return true })
	if i == nil {
		return nil, api.NotFound("Not found.")
	}
	fields, err := readInsight(c, in, false)
	if err != nil {
		return nil, err
	}
	params, err := showable(c, in, i, fields)
	if err != nil {
		return nil, err
	}
	i, err = s.Registry.UpdateInsight(ctx, c.Project.ID, i.ID, fields, in.Method == http.MethodPatch, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.Results.answer(ctx, c, in, params.afterWrite(), http.StatusOK, i)
}

// remove answers DELETE. A PATCH can restore the insight.
func (s *Insights) remove(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	i, err := find(c, in)
	if err != nil {
		return nil, err
	}
	deleted := registry.InsightFields{Deleted: registry.To(true)}
	if _, err := s.Registry.UpdateInsight(ctx, c.Project.ID, i.ID, deleted, false, c.Key.ID, c.Start); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}
