package projects

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// userRecord is the user that a key stands for, and what the user has access to.
type userRecord struct {
	api.User

	DateJoined    time.Time            `json:"date_joined"`
	IsStaff       bool                 `json:"is_staff"`
	HasPassword   bool                 `json:"has_password"`
	Team          projectRecord        `json:"team"`
	Organization  organizationRecord   `json:"organization"`
	Organizations []organizationRecord `json:"organizations"`
}

// getUser answers GET /api/users/@me/.
func getUser(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	me := api.UserOf(c.Key)
	if name := in.At.Name; name != meAlias && name != me.UUID {
		return nil, api.NotFound("Not found.")
	}
	own := recordOrganization(c)
	return api.JSON(http.StatusOK, userRecord{
		User: *me, DateJoined: c.Key.CreatedAt, Team: recordProject(c), Organization: own, Organizations: []organizationRecord{own},
	}), nil
}

// personalKeyRecord is a personal key in JSON: contract api.md, section 6.2.
type personalKeyRecord struct {
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

func recordPersonalKey(c *api.Caller, k *registry.Key) personalKeyRecord {
	return personalKeyRecord{
		ID: k.ID, Label: cmp.Or(k.Label, k.Mask), MaskValue: k.Mask, CreatedAt: k.CreatedAt, LastUsedAt: api.OrNil(c.Snapshot.LastUsed(k)),
		LastRolledAt: api.OrNil(k.LastRolledAt), UserID: k.User, Scopes: k.Scopes, ScopedTeams: []int64{}, ScopedOrganizations: []string{organizationID(k.Project)},
	}
}

// errOtherKey refuses a request about another key.
var errOtherKey = api.Forbidden("This action does not support personal API key access")

// getKey answers GET /api/personal_api_keys/@current/. A key can read only itself.
func getKey(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if in.At.Name != api.CurrentAlias {
		return nil, errOtherKey
	}
	return api.JSON(http.StatusOK, recordPersonalKey(c, c.Key)), nil
}

// revokeOwnKey answers DELETE /api/personal_api_keys/@current/. A key can revoke only itself here.
func (p *Projects) revokeOwnKey(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if in.At.Name != api.CurrentAlias {
		return nil, errOtherKey
	}
	if _, err := p.Registry.RevokeKey(ctx, c.Key.ID, c.Start); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}
