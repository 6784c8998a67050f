// Package definitions shows what queries of a project can name: its events, properties, group types and insight variables.
package definitions

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Definitions are the handlers of the topic. Events are those that are in the data; properties and group types are those that the
// registry knows, from imports and from operators.
type Definitions struct {
	Executor *execution.Executor
	Registry *registry.Registry
}

// Routes are the routes of the topic.
func (d *Definitions) Routes() []api.Route {
	const readVariables, writeVariables = "insight_variable:read", "insight_variable:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "event_definitions", Scope: "event_definition:read", Handler: d.listEvents},
		{Method: http.MethodGet, Pattern: "property_definitions", Scope: "property_definition:read", Handler: d.listProperties},
		{Method: http.MethodGet, Pattern: "groups_types", Scope: "group:read", Handler: d.listGroupTypes},


		{Method: http.MethodGet, Pattern: "insight_variables", Scope: readVariables, Handler: d.listVariables},
		{Method: http.MethodPost, Pattern: "insight_variables", Scope: writeVariables, Handler: d.createVariable},
		{Method: http.MethodGet, Pattern: "insight_variables/:name", Scope: readVariables, Handler: d.getVariable},
		{Method: http.MethodPut, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.updateVariable},
		{Method: http.MethodPatch, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.updateVariable},
		{Method: http.MethodDelete, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.deleteVariable},
	}
}

// described is what all definitions have in JSON. Nobody describes, owns, verifies or hides them here.
type described struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description *string    `json:"description"`
	Tags        []string   `json:"tags"`
	UpdatedAt   *time.Time `json:"updated_at"`
	UpdatedBy   *api.User  `json:"updated_by"`
	Verified    bool       `json:"verified"`
	VerifiedAt  *time.Time `json:"verified_at"`
	VerifiedBy  *api.User  `json:"verified_by"`
	Hidden      bool       `json:"hidden"`
}

func describe(c *api.Caller, kind, name string) described {
	return described{ID: api.DerivedID(kind, fmt.Sprintf("%d %s", c.Project.ID, name)), Name: name, Tags: []string{}}
}

// pageOf is api.PageOf of what a query found.
func pageOf[T any](in api.Input, all []T, quotas execution.Quotas) (api.Response, error) {
	res, err := api.PageOf(in, all)
	return res.With(quotas), err
}

// searched reports whether a name has each word of the parameter search.
func searched(in api.Input, name string) bool {
	name = strings.ToLower(name)
	for word := range strings.FieldsSeq(strings.ToLower(in.URL.Query().Get("search"))) {
		if !strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// listGroupTypes answers GET groups_types/, which is no page.
func (d *Definitions) listGroupTypes(_ context.Context, c api.Caller, _ api.Input) (api.Response, error) {
	types := c.GroupTypes()
	slices.SortFunc(types, func(a, b api.GroupType) int { return cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex) })
	return api.JSON(http.StatusOK, types), nil
}
