package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The addresses that clients ask before they work with a project lie beside the projects. Their resources have a slash in
// front, which no part of a path has.

// discoveryRoutes are the routes beside the projects. Every key may ask about itself.
func discoveryRoutes() map[address]methods {
	get := func(scope string, serve func(*request) error) methods {
		return methods{http.MethodGet: {scope: scope, serve: serve}}
	}
	return map[address]methods{
		{resource: api.ProjectsResource}: get("project:read", (*request).listProjects),
		{resource: api.ProjectResource}:  get("project:read", (*request).getProject),

		{resource: api.UsersResource, name: ":name"}: get("user:read", (*request).getUser),
		{resource: api.KeysResource, name: ":name"}:  get(api.AnyScope, (*request).getKey),

		{resource: api.OrganizationsResource}:                                    get("organization:read", (*request).listOrganizations),
		{resource: api.OrganizationsResource, name: ":name"}:                     get("organization:read", (*request).getOrganization),
		{resource: api.OrganizationsResource, name: ":name", action: "projects"}: get("project:read", (*request).listOrganizationProjects),
		{resource: api.OrganizationsResource, name: ":name", action: "project"}:  get("project:read", (*request).getOrganizationProject),
	}
}

// teamRecord is a project on the wire, which the peer calls a team in some places: what clients read of it. There is no key for
// capturing events, since they are imported.
type teamRecord struct {
	ID                       int64             `json:"id"`
	UUID                     string            `json:"uuid"`
	Organization             string            `json:"organization"`
	ProjectID                int64             `json:"project_id"`
	APIToken                 *string           `json:"api_token"`
	Name                     string            `json:"name"`
	Timezone                 string            `json:"timezone"`
	WeekStartDay             int               `json:"week_start_day"`
	CreatedAt                time.Time         `json:"created_at"`
	IsDemo                   bool              `json:"is_demo"`
	AccessControl            bool              `json:"access_control"`
	EffectiveMembershipLevel int               `json:"effective_membership_level"`
	UserAccessLevel          string            `json:"user_access_level"`
	HasGroupTypes            bool              `json:"has_group_types"`
	GroupTypes               []groupTypeRecord `json:"group_types"`
	TestAccountFilters       json.RawMessage   `json:"test_account_filters"`
	PathCleaningFilters      json.RawMessage   `json:"path_cleaning_filters"`
}

type groupTypeRecord struct {
	GroupType      string  `json:"group_type"`
	GroupTypeIndex int     `json:"group_type_index"`
	NameSingular   *string `json:"name_singular"`
	NamePlural     *string `json:"name_plural"`
}

// member is the peer's level of membership of those who may use a project but not manage it.
const member = 1

func (rq *request) recordTeam() teamRecord {
	p := rq.Project
	record := teamRecord{
		ID: p.ID, UUID: derivedID("project", strconv.FormatInt(p.ID, 10)), Organization: organizationID(p.ID), ProjectID: p.ID, Name: p.Name,
		Timezone: p.Timezone, WeekStartDay: p.WeekStart, CreatedAt: p.CreatedAt, EffectiveMembershipLevel: member, UserAccessLevel: "member",
		GroupTypes: []groupTypeRecord{}, TestAccountFilters: json.RawMessage(cmp.Or(p.TestAccountFilters, "[]")),
		PathCleaningFilters: json.RawMessage(cmp.Or(p.PathCleaningFilters, "[]")),
	}
	for _, g := range rq.Snapshot.GroupTypes(p.ID) {
		record.HasGroupTypes = true
		record.GroupTypes = append(record.GroupTypes, groupTypeRecord{GroupType: g.Name, GroupTypeIndex: g.Index})
	}
	return record
}

// listProjects answers GET /api/projects/: a key has one project.
func (rq *request) listProjects() error { return writePage(rq, []teamRecord{rq.recordTeam()}) }

// getProject answers GET /api/projects/{id}/ and its older alias below environments/.
func (rq *request) getProject() error {
	rq.reply(http.StatusOK, rq.recordTeam())
	return nil
}

// organizationRecord is an organization on the wire. Projects share nothing here, so each is in one of its own.
type organizationRecord struct {
	ID                           string    `json:"id"`
	Name                         string    `json:"name"`
	Slug                         string    `json:"slug"`
	LogoMediaID                  *string   `json:"logo_media_id"`
	MembershipLevel              int       `json:"membership_level"`
	MembersCanUsePersonalAPIKeys bool      `json:"members_can_use_personal_api_keys"`
	IsActive                     bool      `json:"is_active"`
	IsNotActiveReason            *string   `json:"is_not_active_reason"`
	IsPendingDeletion            bool      `json:"is_pending_deletion"`
	CreatedAt                    time.Time `json:"created_at"`
	AvailableProductFeatures     []any     `json:"available_product_features"`
	IsAIDataProcessingApproved   bool      `json:"is_ai_data_processing_approved"`
	Projects                     []named   `json:"projects"`
	Teams                        []named   `json:"teams"`
	MemberCount                  int       `json:"member_count"`
}

// named is a project as an organization lists it.
type named struct {
	ID             int64  `json:"id"`
	UUID           string `json:"uuid"`
	Organization   string `json:"organization"`
	OrganizationID string `json:"organization_id"`
	ProjectID      int64  `json:"project_id"`
	Name           string `json:"name"`
	Timezone       string `json:"timezone"`
}

// organizationID is the id of a project's organization.
func organizationID(project int64) string {
	return derivedID("organization", strconv.FormatInt(project, 10))
}

func (rq *request) recordOrganization() organizationRecord {
	p := rq.recordTeam()
	own := []named{{ID: p.ID, UUID: p.UUID, Organization: p.Organization, OrganizationID: p.Organization, ProjectID: p.ID, Name: p.Name, Timezone: p.Timezone}}
	return organizationRecord{
		ID: p.Organization, Name: p.Name, Slug: fmt.Sprintf("project-%d", p.ID), MembershipLevel: member, MembersCanUsePersonalAPIKeys: true,
		IsActive: true, CreatedAt: p.CreatedAt, AvailableProductFeatures: []any{}, Projects: own, Teams: own, MemberCount: rq.members(),
	}
}

// members counts the users of the project: its personal keys that are not revoked.
func (rq *request) members() int {
	n := 0
	for _, k := range rq.Snapshot.Keys(rq.Project.ID) {
		if k.User != 0 && k.RevokedAt.IsZero() {
			n++
		}
	}
	return n
}

// organization checks that the address names the organization of the key.
func (rq *request) organization() error {
	if rq.at.Name == api.CurrentAlias || rq.at.Name == organizationID(rq.Key.Project) {
		return nil
	}
	for _, p := range rq.Snapshot.Projects() {
		if rq.at.Name == organizationID(p.ID) {
			return api.Forbidden("API key does not have access to the requested organization: ID %s.", rq.at.Name)
		}
	}
	return api.NotFound("Not found.")
}

func (rq *request) listOrganizations() error {
	return writePage(rq, []organizationRecord{rq.recordOrganization()})
}

func (rq *request) getOrganization() error {
	if err := rq.organization(); err != nil {
		return err
	}
	rq.reply(http.StatusOK, rq.recordOrganization())
	return nil
}

func (rq *request) listOrganizationProjects() error {
	if err := rq.organization(); err != nil {
		return err
	}
	return rq.listProjects()
}

func (rq *request) getOrganizationProject() error {
	if err := rq.organization(); err != nil {
		return err
	}
	return rq.getProject()
}

// userRecord is the user that a key is, with what it can reach.
type userRecord struct {
	user
	DateJoined    time.Time            `json:"date_joined"`
	IsStaff       bool                 `json:"is_staff"`
	HasPassword   bool                 `json:"has_password"`
	Team          teamRecord           `json:"team"`
	Organization  organizationRecord   `json:"organization"`
	Organizations []organizationRecord `json:"organizations"`
}

// getUser answers GET /api/users/@me/.
func (rq *request) getUser() error {
	me := recordUser(rq.Key)
	if name := rq.at.Name; name != "@me" && name != me.UUID {
		return api.NotFound("Not found.")
	}
	own := rq.recordOrganization()
	rq.reply(http.StatusOK, userRecord{
		user: *me, DateJoined: rq.Key.CreatedAt, Team: rq.recordTeam(), Organization: own, Organizations: []organizationRecord{own},
	})
	return nil
}

// ownKeyRecord is a personal key on the wire: contract section 6.2.
type ownKeyRecord struct {
	ID                  string     `json:"id"`
	Label               string     `json:"label"`
	Value               *string    `json:"value"`
	MaskValue           string     `json:"mask_value"`
	CreatedAt           time.Time  `json:"created_at"`
	LastUsedAt          *time.Time `json:"last_used_at"`
	LastRolledAt        *time.Time `json:"last_rolled_at"`
	UserID              int64      `json:"user_id"`
	Scopes              []string   `json:"scopes"`
	ScopedTeams         []int64    `json:"scoped_teams"`
	ScopedOrganizations []string   `json:"scoped_organizations"`
}

func recordOwnKey(k *registry.Key) ownKeyRecord {
	return ownKeyRecord{
		ID: k.ID, Label: cmp.Or(k.Label, k.Mask), MaskValue: k.Mask, CreatedAt: k.CreatedAt, LastUsedAt: orNil(k.LastUsedAt),
		LastRolledAt: orNil(k.LastRolledAt), UserID: k.User, Scopes: k.Scopes, ScopedTeams: []int64{}, ScopedOrganizations: []string{organizationID(k.Project)},
	}
}

// getKey answers GET /api/personal_api_keys/@current/. A key is told of itself alone.
func (rq *request) getKey() error {
	if rq.at.Name != api.CurrentAlias {
		return api.Forbidden("This action does not support personal API key access")
	}
	rq.reply(http.StatusOK, recordOwnKey(rq.Key))
	return nil
}
