package projects

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// projectKeyRecord is a personal key in the list of those of its project: the record of contract section 6.2, and what is special here.
type projectKeyRecord struct {
	personalKeyRecord

	ExpiresAt *time.Time `json:"expires_at"`
	CreatedBy *api.User  `json:"created_by"`
	Parent    *string    `json:"parent"` // the id of the key that it ends with
	IsCurrent bool       `json:"is_current"`
	IsSession bool       `json:"is_session"`
	IsExpired bool       `json:"is_expired"`

	Fixed     json.RawMessage `json:"fixed"`
	Endpoints []string        `json:"endpoints"`
	// Can is what the caller may do with the key.
	Can []string `json:"can"`
}

func recordProjectKey(c *api.Caller, k *registry.Key, value string) projectKeyRecord {
	record := projectKeyRecord{
		personalKeyRecord: recordPersonalKey(k), ExpiresAt: api.OrNil(k.ExpiresAt), CreatedBy: c.User(k.CreatedBy), Parent: api.OrNull(k.Parent),
		IsCurrent: k.ID == c.Key.ID, IsSession: k.Session, IsExpired: k.Expired(c.Start), Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
		Can: powersOver(c, k),
	}
	if value != "" {
		record.Value = &value
	}
	return record
}

// powersOver says what the caller may do with a personal key.
func powersOver(c *api.Caller, k *registry.Key) []string {
	can := []string{}
	if !c.Key.Allows(writeProject) || !c.Key.Covers(k) {
		return can
	}
	can = append(can, "change", "revoke")
	if c.Key.Rules(k) {
		can = append(can, "roll")
	}
	return can
}

// projectKeyFields are the fields of a record, which a body may have. Those that cannot be written are ignored.
var projectKeyFields = []string{
	"id", "label", "value", "mask_value", "created_at", "last_used_at", "last_rolled_at", "user_id", "scopes", "scoped_teams", "scoped_organizations",
	"expires_at", "expires_in", "created_by", "parent", "is_current", "is_session", "is_expired", "fixed", "endpoints", "can",
}

// personalKey returns the personal key that the path names, unless it is revoked.
func personalKey(c *api.Caller, in api.Input) (*registry.Key, error) {
	if in.At.Name == api.CurrentAlias {
		return c.Key, nil
	}
	k := c.Snapshot.KeyByID(c.Project.ID, in.At.Name)
	if k == nil || k.Kind != registry.Personal || !k.RevokedAt.IsZero() {
		return nil, api.NotFound("Not found.")
	}
	return k, nil
}

// coveredKey is personalKey for a key that the caller may write: one whose scopes it has.
func coveredKey(c *api.Caller, in api.Input) (*registry.Key, error) {
	k, err := personalKey(c, in)
	if err == nil && !c.Key.Covers(k) {
		return nil, api.Forbidden("This key has scopes that yours lacks.")
	}
	return k, err
}

// listPersonalKeys answers GET personal_api_keys/, newest first. PostHog has this list outside of projects, for people who are signed in.
func listPersonalKeys(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	keys := slices.DeleteFunc(c.Snapshot.Keys(c.Project.ID), func(k *registry.Key) bool { return k.Kind != registry.Personal || !k.RevokedAt.IsZero() })
	return api.PageBy(in, keys, func(k *registry.Key) projectKeyRecord { return recordProjectKey(&c, k, "") })
}

func getPersonalKey(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := personalKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordProjectKey(&c, k, "")), nil
}

func (p *Projects) createPersonalKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	fields, update, err := readPersonalKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	switch {
	case update.Label == nil || *update.Label == "":
		return api.Response{}, api.Invalid("label", "required", "This field is required.")
	case update.Scopes == nil:
		return api.Response{}, api.Invalid("scopes", "required", "This field is required.")
	}
	n := registry.NewKey{Project: c.Project.ID, Label: *update.Label, Scopes: update.Scopes, CreatedBy: c.Key.ID, Grantor: c.Key}
	if n.ExpiresAt, err = readExpiry(&c, fields); err != nil {
		return api.Response{}, err
	}
	if n.Fixed, n.Endpoints, err = readBinding(&c, fields); err != nil {
		return api.Response{}, err
	}
	k, value, err := p.Registry.CreateKey(ctx, n, c.Start)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusCreated, recordProjectKey(&c, k, value)), nil
}

func (p *Projects) updatePersonalKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := coveredKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	fields, update, err := readPersonalKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	if err := checkBindingStays(k, fields); err != nil {
		return api.Response{}, err
	}
	if err := checkExpiryStays(&c, k, fields); err != nil {
		return api.Response{}, err
	}
	if k, err = p.Registry.UpdateKey(ctx, k.ID, update, c.Start); err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordProjectKey(&c, k, "")), nil
}

func (p *Projects) deletePersonalKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := coveredKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := p.Registry.RevokeKey(ctx, k.ID, c.Start); err != nil {
		return api.Response{}, err
	}
	return api.NoContent(), nil
}

func (p *Projects) rollPersonalKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := personalKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	rolled, value, err := p.Registry.RollKey(ctx, k.ID, c.Key, c.Start)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordProjectKey(&c, rolled, value)), nil
}

// readPersonalKey reads the body of a write: its fields, and the changes that they ask for.
func readPersonalKey(c *api.Caller, in api.Input) (map[string]json.RawMessage, registry.KeyUpdate, error) {
	update := registry.KeyUpdate{Grantor: c.Key}
	fields, err := in.ReadFields(projectKeyFields...)
	if err != nil {
		return nil, update, err
	}
	if err := api.Optional(fields, "label", &update.Label); err != nil {
		return nil, update, err
	}
	if _, err := api.Field(fields, "scopes", &update.Scopes); err != nil {
		return nil, update, err
	}
	return fields, update, checkScoped(c, fields)
}

// checkScoped refuses a key for more, or for others, than its project.
func checkScoped(c *api.Caller, fields map[string]json.RawMessage) error {
	var teams []int64
	var organizations []string
	f := api.Fields{All: fields}
	f.Read("scoped_teams", &teams)
	f.Read("scoped_organizations", &organizations)
	switch {
	case f.Err != nil:
		return f.Err
	case slices.ContainsFunc(teams, func(id int64) bool { return id != c.Project.ID }):
		return api.Invalid("scoped_teams", "invalid_input", "A key opens the project that it is made in, and no other.")
	case slices.ContainsFunc(organizations, func(id string) bool { return id != organizationID(c.Project.ID) }):
		return api.Invalid("scoped_organizations", "invalid_input", "A key opens the project that it is made in, and no other.")
	}
	return nil
}

// maxKeyLife is the most seconds from now after which a key that is to expire may do so.
const maxKeyLife = 100 * 365 * 24 * 60 * 60

// readExpiry reads when a key is to expire: a time, or seconds from now. It is zero for never.
func readExpiry(c *api.Caller, fields map[string]json.RawMessage) (time.Time, error) {
	var text string
	var seconds int
	f := api.Fields{All: fields}
	timed, counted := f.Read("expires_at", &text), f.Read("expires_in", &seconds)
	switch {
	case f.Err != nil:
		return time.Time{}, f.Err
	case timed && counted:
		return time.Time{}, api.Invalid("expires_in", "invalid_input", "Give expires_at or expires_in, not both.")
	case counted && (seconds < 1 || seconds > maxKeyLife):
		return time.Time{}, api.Invalid("expires_in", "invalid_input", "Input should be from 1 to %d seconds", maxKeyLife)
	case counted:
		return c.Start.Add(time.Duration(seconds) * time.Second), nil
	case !timed:
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.UTC().Year() > 9999 {
		return time.Time{}, api.Invalid("expires_at", "invalid_input", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z.")
	}
	return at, nil
}

// checkExpiryStays refuses fields that would change when a key expires. A client may send back a record as it read it.
func checkExpiryStays(c *api.Caller, k *registry.Key, fields map[string]json.RawMessage) error {
	raw, timed := fields["expires_at"]
	_, counted := fields["expires_in"]
	at, err := readExpiry(c, fields)
	switch {
	case err != nil:
		return err
	case counted, timed && api.IsNull(raw) != k.ExpiresAt.IsZero(), !at.Equal(k.ExpiresAt) && !at.IsZero():
		return api.Invalid("expires_at", "invalid_input", "When a key expires cannot change. Make another key.")
	}
	return nil
}
