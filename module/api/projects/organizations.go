package projects

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// organizationRecord is an organization in JSON. Projects share nothing here, so each has its own organization.
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

// named is a project in an organization's list.
type named struct {
	ID             int64  `json:"id"`
	UUID           string `json:"uuid"`
	Organization   string `json:"organization"`
	OrganizationID string `json:"organization_id"`
	ProjectID      int64  `json:"project_id"`
	Name           string `json:"name"`
	Timezone       string `json:"timezone"`
}

// organizationID returns the id of a project's organization.
func organizationID(project int64) string {
	return api.DerivedID("organization", strconv.FormatInt(project, 10))
}

func recordOrganization(c *api.Caller) organizationRecord {
	p := recordProject(c)
	own := []named{{ID: p.ID, UUID: p.UUID, Organization: p.Organization, OrganizationID: p.Organization, ProjectID: p.ID, Name: p.Name, Timezone: p.Timezone}}
	return organizationRecord{
		ID: p.Organization, Name: p.Name, Slug: fmt.Sprintf("project-%d", p.ID), MembershipLevel: member, MembersCanUsePersonalAPIKeys: true,
		IsActive: true, CreatedAt: p.CreatedAt, AvailableProductFeatures: []any{}, Projects: own, Teams: own, MemberCount: members(c),
	}
}

// members counts the users of the project: its valid personal keys.
func members(c *api.Caller) int {
	n := 0
	for _, k := range c.Snapshot.Keys(c.Project.ID) {
		if k.User != 0 && k.RevokedAt.IsZero() && !k.Expired(c.Start) {
			n++
		}
	}
	return n
}

// ofOrganization wraps a handler to refuse callers whose key does not belong to the organization in the path.
func ofOrganization(handle api.Handler) api.Handler {
	return func(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
		if err := checkOrganization(c, in.At.Name); err != nil {
			return nil, err
		}
		return handle(ctx, c, in)
	}
}

// checkOrganization checks that id is the organization of the caller's key.
func checkOrganization(c *api.Caller, id string) error {
	if id == api.CurrentAlias || id == organizationID(c.Key.Project) {
		return nil
	}
	for _, p := range c.Snapshot.Projects() {
		if id == organizationID(p.ID) {
			return api.Forbidden("API key does not have access to the requested organization: ID %s.", id)
		}
	}
	return api.NotFound("Not found.")
}

func listOrganizations(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return api.PageOf(in, []organizationRecord{recordOrganization(c)})
}

func getOrganization(_ context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	return api.JSON(http.StatusOK, recordOrganization(c)), nil
}
