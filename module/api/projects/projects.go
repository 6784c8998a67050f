// Package projects tells callers about themselves and their project: the project, its organization, the user and the key. It also manages the keys of a
// project, and issues tokens for browsers.
package projects

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Projects handles the routes of projects, organizations, users and keys.
type Projects struct {
	Registry *registry.Registry
}

// writeProject is the scope for managing keys.
const writeProject = "project:write"

// Routes returns the routes of projects, organizations, users and keys. Every personal key may read itself.
func (p *Projects) Routes() []api.Route {
	const (
		organizations, one = api.OrganizationsResource, api.OrganizationsResource + "/:name"
		readProject, write = "project:read", writeProject
		readOrganization   = "organization:read"
		readMembers        = "organization_member:read"
	)
	own := []api.Route{
		{Method: http.MethodGet, Pattern: api.ProjectsResource, Scope: readProject, Handler: listProjects},
		{Method: http.MethodGet, Pattern: api.ProjectResource, Scope: readProject, Handler: getProject},

		{Method: http.MethodPatch, Pattern: api.ProjectResource, Scope: write, Handler: p.updateProject},

		{Method: http.MethodGet, Pattern: api.UsersResource + "/:name", Scope: "user:read", Handler: getUser},
		{Method: http.MethodGet, Pattern: api.KeysResource + "/:name", Scope: api.AnyScope, Handler: getKey},
		{Method: http.MethodDelete, Pattern: api.KeysResource + "/:name", Scope: api.AnyScope, Handler: p.revokeOwnKey},

		{Method: http.MethodGet, Pattern: organizations, Scope: readOrganization, Handler: listOrganizations},
		{Method: http.MethodGet, Pattern: one, Scope: readOrganization, Handler: ofOrganization(getOrganization)},
		{Method: http.MethodGet, Pattern: one + "/projects", Scope: readProject, Handler: ofOrganization(listProjects)},
		{Method: http.MethodGet, Pattern: one + "/project", Scope: readProject, Handler: ofOrganization(getProject)},
		{Method: http.MethodPatch, Pattern: one + "/project", Scope: write, Handler: ofOrganization(p.updateProject)},
		{Method: http.MethodGet, Pattern: one + "/members", Scope: readMembers, Handler: ofOrganization(listMembers)},
		{Method: http.MethodGet, Pattern: one + "/member", Scope: readMembers, Handler: ofOrganization(getMember)},

		{Method: http.MethodPost, Pattern: "endpoint_tokens", Scope: "endpoint:read", SecretKeys: true, Handler: p.issueToken},
	}
	return slices.Concat(own, p.secretKeys().routes("project_secret_api_keys"), p.personalKeys().routes("personal_api_keys"))
}

// projectRecord is a project in JSON, which PostHog calls a team in some places.
type projectRecord struct {
	ID                       int64           `json:"id"`
	UUID                     string          `json:"uuid"`
	Organization             string          `json:"organization"`
	ProjectID                int64           `json:"project_id"`
	APIToken                 string          `json:"api_token"` // the capture token
	Name                     string          `json:"name"`
	Timezone                 string          `json:"timezone"`
	WeekStartDay             int             `json:"week_start_day"`
	CreatedAt                time.Time       `json:"created_at"`
	IsDemo                   bool            `json:"is_demo"`
	AccessControl            bool            `json:"access_control"`
	EffectiveMembershipLevel int             `json:"effective_membership_level"`
	UserAccessLevel          string          `json:"user_access_level"`
	HasGroupTypes            bool            `json:"has_group_types"`
	GroupTypes               []api.GroupType `json:"group_types"`
	TestAccountFilters       json.RawMessage `json:"test_account_filters"`
	PathCleaningFilters      json.RawMessage `json:"path_cleaning_filters"`
	DisplayNames             json.RawMessage `json:"person_display_name_properties"`
	AnonymizeIPs             bool            `json:"anonymize_ips"`
	kept
}

// member is PostHog's membership level for users who may use a project but not manage it.
const member = 1

func recordProject(c *api.Caller) projectRecord {
	p, groups := c.Project, c.GroupTypes()
	return projectRecord{
		ID: p.ID, UUID: api.DerivedID("project", strconv.FormatInt(p.ID, 10)), Organization: organizationID(p.ID), ProjectID: p.ID, APIToken: c.Snapshot.CaptureToken(p.ID), Name: p.Name,
		Timezone: p.Timezone, WeekStartDay: p.WeekStart, CreatedAt: p.CreatedAt, EffectiveMembershipLevel: member, UserAccessLevel: "member",
		HasGroupTypes: len(groups) > 0, GroupTypes: groups, TestAccountFilters: json.RawMessage(cmp.Or(p.TestAccountFilters, "[]")),
		PathCleaningFilters: json.RawMessage(cmp.Or(p.PathCleaningFilters, "[]")), DisplayNames: api.OrNone(p.DisplayNames), AnonymizeIPs: p.AnonymizeIPs, kept: keptOf(p),
	}
}

// listProjects answers GET /api/projects/: a key has one project.
func listProjects(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return api.PageOf(in, []projectRecord{recordProject(c)})
}

// getProject answers GET /api/projects/{id}/ and its older alias below environments/.
func getProject(_ context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	return api.JSON(http.StatusOK, recordProject(c)), nil
}
