// Package definitions lists what queries of a project can refer to: its events, properties, group types and insight variables.
package definitions

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Definitions handles the routes of definitions. Events are those in the data, and those defined before they were seen. Properties and group types are
// those that the registry knows from imports and from operators. Their descriptions are in the registry.
type Definitions struct {
	Executor *execution.Executor
	Registry *registry.Registry
}

// Routes returns the routes of definitions.
func (d *Definitions) Routes() []api.Route {
	const readVariables, writeVariables = "insight_variable:read", "insight_variable:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "event_definitions", Scope: "event_definition:read", Handler: d.listEvents},
		{Method: http.MethodPost, Pattern: "event_definitions", Scope: "event_definition:write", Handler: d.createEvent},
		{Method: http.MethodGet, Pattern: "event_definitions/by_name", Scope: "event_definition:read", Handler: d.eventByName},
		{Method: http.MethodGet, Pattern: "event_definitions/typescript", Scope: "event_definition:read", Handler: d.writeCode},
		{Method: http.MethodGet, Pattern: "event_definitions/golang", Scope: "event_definition:read", Handler: d.writeCode},
		{Method: http.MethodGet, Pattern: "event_definitions/python", Scope: "event_definition:read", Handler: d.writeCode},
		{Method: http.MethodGet, Pattern: "event_definitions/:name", Scope: "event_definition:read", Handler: d.getEvent},
		{Method: http.MethodPatch, Pattern: "event_definitions/:name", Scope: "event_definition:write", Handler: d.updateEvent},
		{Method: http.MethodGet, Pattern: "property_definitions", Scope: "property_definition:read", Handler: d.listProperties},
		{Method: http.MethodGet, Pattern: "property_definitions/:name", Scope: "property_definition:read", Handler: d.getProperty},
		{Method: http.MethodPatch, Pattern: "property_definitions/:name", Scope: "property_definition:write", Handler: d.updateProperty},
		{Method: http.MethodGet, Pattern: "groups_types", Scope: "group:read", Handler: d.listGroupTypes},
		{Method: http.MethodGet, Pattern: api.FlagsResource + "/local_evaluation", Scope: "feature_flag:read", Handler: flagDefinitions},

		{Method: http.MethodGet, Pattern: "insight_variables", Scope: readVariables, Handler: d.listVariables},
		{Method: http.MethodPost, Pattern: "insight_variables", Scope: writeVariables, Handler: d.createVariable},
		{Method: http.MethodGet, Pattern: "insight_variables/:name", Scope: readVariables, Handler: d.getVariable},
		{Method: http.MethodPut, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.updateVariable},
		{Method: http.MethodPatch, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.updateVariable},
		{Method: http.MethodDelete, Pattern: "insight_variables/:name", Scope: writeVariables, Handler: d.deleteVariable},
	}
}

// described holds the fields that all definitions have in JSON.
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

// describe returns what is known about a definition besides the data, and its description in the registry; nil if there is none.
func describe(c *api.Caller, kind, name string) (described, *registry.Definition) {
	out := described{ID: idOf(c, kind, name), Name: name, Tags: []string{}}
	d := c.Snapshot.Definition(c.Project.ID, out.ID)
	if d == nil {
		return out, nil
	}
	out.Description, out.Tags, out.Hidden = d.Description, api.OrEmpty(d.Tags), d.Hidden
	out.UpdatedAt, out.UpdatedBy = api.OrNil(d.UpdatedAt), c.User(d.UpdatedBy)
	out.Verified, out.VerifiedAt, out.VerifiedBy = d.Verified, api.OrNil(d.VerifiedAt), c.User(d.VerifiedBy)
	return out, d
}

// idOf returns the id of a definition, which is the same each time.
func idOf(c *api.Caller, kind, name string) string {
	return api.DerivedID(kind, fmt.Sprintf("%d %s", c.Project.ID, name))
}

// readDefinition reads the writable fields of a definition. Like PostHog, it ignores others.
func readDefinition(f *api.Fields) registry.DefinitionFields {
	var out registry.DefinitionFields
	out.Description, out.Tags = api.TextOrNull(f, "description"), api.Change[[]string](f, "tags")
	out.Hidden, out.Verified = api.Change[bool](f, "hidden"), api.Change[bool](f, "verified")
	return out
}

// shown says which definitions a list has, by the parameters that all lists of definitions take.
type shown struct {
	words         api.Words
	excludeHidden bool
	verified      *bool // nil for both
}

func readShown(in *api.Input) (f shown, err error) {
	given := in.URL.Query()
	f.excludeHidden = api.IsTrue(given.Get("exclude_hidden"))
	if verified := given.Get("verified"); verified != "" {
		f.verified = new(api.IsTrue(verified))
	}
	f.words, err = api.SearchWords(in)
	return f, err
}

func (f *shown) has(d *described) bool {
	return f.words.In(d.Name) && (!f.excludeHidden || !d.Hidden) && (f.verified == nil || *f.verified == d.Verified)
}

// pageOf is api.PageOf for the result of a query.
func pageOf[T any](in *api.Input, all []T, quotas execution.Quotas) (*api.Response, error) {
	res, err := api.PageOf(in, all)
	return res.With(quotas), err
}

// flagDefinitions answers GET /api/feature_flag/local_evaluation/ and /flags/definitions/, which server SDKs with a personal key request every half minute:
// there are no flags.
func flagDefinitions(_ context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	types := map[string]string{}
	for _, g := range c.GroupTypes() {
		types[strconv.Itoa(g.GroupTypeIndex)] = g.GroupType
	}
	return api.JSON(http.StatusOK, map[string]any{"flags": []struct{}{}, "group_type_mapping": types, "cohorts": struct{}{}}), nil
}

// listGroupTypes answers GET groups_types/, which has no pages.
func (d *Definitions) listGroupTypes(_ context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	types := c.GroupTypes()
	slices.SortFunc(types, func(a, b api.GroupType) int { return cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex) })
	return api.JSON(http.StatusOK, types), nil
}
