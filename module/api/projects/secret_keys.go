package projects

import (
	"encoding/json"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// secretKeyRecord is a project secret key in JSON: contract api.md, section 6.3, and what it is bound to.
type secretKeyRecord struct {
	ID           string     `json:"id"`
	Label        string     `json:"label"`
	Value        *string    `json:"value"` // only when it is created or rolled
	Mask         string     `json:"mask_value"`
	CreatedAt    time.Time  `json:"created_at"`
	CreatedBy    *api.User  `json:"created_by"`
	LastUsedAt   *time.Time `json:"last_used_at"`
	LastRolledAt *time.Time `json:"last_rolled_at"`
	Scopes       []string   `json:"scopes"`

	Fixed     json.RawMessage `json:"fixed"`
	Endpoints []string        `json:"endpoints"`
}

func recordSecretKey(c *api.Caller, k *registry.Key, value string) secretKeyRecord {
	record := secretKeyRecord{
		ID: k.ID, Label: k.Label, Mask: k.Mask, CreatedAt: k.CreatedAt, CreatedBy: c.User(k.CreatedBy), LastUsedAt: api.OrNil(c.Snapshot.LastUsed(k)),
		LastRolledAt: api.OrNil(k.LastRolledAt), Scopes: k.Scopes, Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
	}
	if value != "" {
		record.Value = &value
	}
	return record
}

// secretKeys returns the routes of project secret keys: contract api.md, section 6.3.
func (p *Projects) secretKeys() *keyRoutes {
	return &keyRoutes{
		registry: p.Registry, kind: registry.Secret, fields: secretKeyFields, find: secretKey, findToWrite: secretKey,
		list:   func(c *api.Caller) []*registry.Key { return c.Snapshot.SecretKeys(c.Project.ID) },
		record: func(c *api.Caller, k *registry.Key, value string) any { return recordSecretKey(c, k, value) },
	}
}

// secretKeyFields are the fields of a record, which a body may contain. Read-only fields are ignored; fixed and endpoints can be set only when a key is
// created.
var secretKeyFields = []string{
	"id", "label", "value", "mask_value", "created_at", "created_by", "last_used_at", "last_rolled_at", "scopes", "fixed", "endpoints",
}

// secretKey returns the secret key named in the path, unless it is revoked.
func secretKey(c *api.Caller, in *api.Input) (*registry.Key, error) {
	k := c.Snapshot.KeyByID(c.Project.ID, in.At.Name)
	if k == nil || k.Kind != registry.Secret || !k.RevokedAt.IsZero() {
		return nil, api.NotFound("Not found.")
	}
	return k, nil
}
