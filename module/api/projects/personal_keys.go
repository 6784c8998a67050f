package projects

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// projectKeyRecord is a personal key in the list of its project's keys: the record of contract api.md, section 6.2, and the fields that only this server has.
type projectKeyRecord struct {
	personalKeyRecord

	ExpiresAt *time.Time `json:"expires_at"`
	CreatedBy *api.User  `json:"created_by"`
	Parent    *string    `json:"parent"` // id of the key with which it ends
	IsCurrent bool       `json:"is_current"`
	IsSession bool       `json:"is_session"`
	IsExpired bool       `json:"is_expired"`

	Fixed     json.RawMessage `json:"fixed"`
	Endpoints []string        `json:"endpoints"`
	// Can lists what the caller may do with the key.
	Can []string `json:"can"`
}

func recordProjectKey(c *api.Caller, k *registry.Key, value string) projectKeyRecord {
	record := projectKeyRecord{
		personalKeyRecord: recordPersonalKey(c, k), ExpiresAt: api.OrNil(k.ExpiresAt), CreatedBy: c.User(k.CreatedBy), Parent: api.OrNull(k.Parent),
		IsCurrent: k.ID == c.Key.ID, IsSession: k.Session, IsExpired: k.Expired(c.Start), Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
		Can: powersOver(c, k),
	}
	if value != "" {
		record.Value = &value
	}
	return record
}

// powersOver lists what the caller may do with a personal key.
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

// personalKeys returns the routes of the personal keys of a project. In PostHog they are outside of projects, for users who are signed in.
func (p *Projects) personalKeys() *keyRoutes {
	return &keyRoutes{
		registry: p.Registry, kind: registry.Personal, fields: projectKeyFields, find: personalKey, findToWrite: coveredKey,
		list: func(c *api.Caller) []*registry.Key {
			return slices.DeleteFunc(c.Snapshot.Keys(c.Project.ID), func(k *registry.Key) bool { return k.Kind != registry.Personal || !k.RevokedAt.IsZero() })
		},
		record: func(c *api.Caller, k *registry.Key, value string) any { return recordProjectKey(c, k, value) },
		check:  checkScoped, expiry: readExpiry, checkStays: checkExpiryStays,
	}
}

// projectKeyFields are the fields of a record, which a body may contain. Read-only fields are ignored.
var projectKeyFields = []string{
	"id", "label", "value", "mask_value", "created_at", "last_used_at", "last_rolled_at", "user_id", "scopes", "scoped_teams", "scoped_organizations",
	"expires_at", "expires_in", "created_by", "parent", "is_current", "is_session", "is_expired", "fixed", "endpoints", "can",
}

// personalKey returns the personal key named in the path, unless it is revoked.
func personalKey(c *api.Caller, in *api.Input) (*registry.Key, error) {
	if in.At.Name == api.CurrentAlias {
		return c.Key, nil
	}
	k := c.Snapshot.KeyByID(c.Project.ID, in.At.Name)
	if k == nil || k.Kind != registry.Personal || !k.RevokedAt.IsZero() {
		return nil, api.NotFound("Not found.")
	}
	return k, nil
}

// coveredKey is personalKey for a key that the caller may write: one whose scopes the caller has too.
func coveredKey(c *api.Caller, in *api.Input) (*registry.Key, error) {
	k, err := personalKey(c, in)
	if err == nil && !c.Key.Covers(k) {
		return nil, api.Forbidden("This key has scopes that yours lacks.")
	}
	return k, err
}

// checkScoped refuses a key that is scoped to anything but its project.
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
		return api.Invalid("scoped_teams", "invalid_input", "A key works in the project that it is made in, and in no other.")
	case slices.ContainsFunc(organizations, func(id string) bool { return id != organizationID(c.Project.ID) }):
		return api.Invalid("scoped_organizations", "invalid_input", "A key works in the project that it is made in, and in no other.")
	}
	return nil
}

// maxKeyLife is the longest time until a key expires, in seconds.
const maxKeyLife = 100 * 365 * 24 * 60 * 60

// readExpiry reads when a key expires: a time, or seconds from now. It is zero for never.
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
	return api.TimeField("expires_at", text)
}

// checkExpiryStays refuses fields that would change when a key expires. Clients may send back a record unchanged.
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
