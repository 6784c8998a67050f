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

// secretKeyRecord is a project secret key in an answer: contract section 6.3, and what it is bound to.
type secretKeyRecord struct {
	ID           string     `json:"id"`
	Label        string     `json:"label"`
	Value        *string    `json:"value"` // only when it is made or rolled
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
		ID: k.ID, Label: k.Label, Mask: k.Mask, CreatedAt: k.CreatedAt, CreatedBy: c.User(k.CreatedBy), LastUsedAt: api.OrNil(k.LastUsedAt),
		LastRolledAt: api.OrNil(k.LastRolledAt), Scopes: k.Scopes, Fixed: api.OrNone(k.Fixed), Endpoints: k.Endpoints,
	}
	if value != "" {
		record.Value = &value
	}
	return record
}

// secretKeyFields are the fields of a record, which a body may have. Those that cannot be written are ignored; fixed and endpoints can only be
// given when a key is made.
var secretKeyFields = []string{
	"id", "label", "value", "mask_value", "created_at", "created_by", "last_used_at", "last_rolled_at", "scopes", "fixed", "endpoints",
}

// secretKey returns the secret key that the path names, unless it is revoked.
func secretKey(c *api.Caller, in api.Input) (*registry.Key, error) {
	k := c.Snapshot.KeyByID(c.Project.ID, in.At.Name)
	if k == nil || k.Kind != registry.Secret || !k.RevokedAt.IsZero() {
		return nil, api.NotFound("Not found.")
	}
	return k, nil
}

func listSecretKeys(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	records := []secretKeyRecord{}
	for _, k := range c.Snapshot.SecretKeys(c.Project.ID) {
		records = append(records, recordSecretKey(&c, k, ""))
	}
	return api.PageOf(in, records)
}

func getSecretKey(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := secretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordSecretKey(&c, k, "")), nil
}

func (p *Projects) createSecretKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	fields, update, err := readSecretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	switch {
	case update.Label == nil || *update.Label == "":
		return api.Response{}, api.Invalid("label", "required", "This field is required.")
	case update.Scopes == nil:
		return api.Response{}, api.Invalid("scopes", "required", "This field is required.")
	}
	n := registry.NewKey{Project: c.Project.ID, Kind: registry.Secret, Label: *update.Label, Scopes: update.Scopes, CreatedBy: c.Key.ID, Grantor: c.Key}
	if n.Fixed, n.Endpoints, err = readBinding(&c, fields); err != nil {
		return api.Response{}, err
	}
	k, value, err := p.Registry.CreateKey(ctx, n, c.Start)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusCreated, recordSecretKey(&c, k, value)), nil
}

// readBinding reads the variables and endpoints that a new key is to be bound to.
func readBinding(c *api.Caller, fields map[string]json.RawMessage) (fixed map[string]any, endpoints []string, err error) {
	var fix map[string]json.RawMessage
	f := api.Fields{All: fields}
	f.Read("fixed", &fix)
	f.Read("endpoints", &endpoints)
	if f.Err != nil {
		return nil, nil, f.Err
	}
	if fixed, err = BindKey(c.Snapshot, c.Project.ID, fix, endpoints); err != nil {
		return nil, nil, api.Invalid("fixed", "invalid_input", "%s", err.Error())
	}
	return fixed, endpoints, nil
}

func (p *Projects) updateSecretKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := secretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	fields, update, err := readSecretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	if err := checkBindingStays(k, fields); err != nil {
		return api.Response{}, err
	}
	if k, err = p.Registry.UpdateKey(ctx, k.ID, update, c.Start); err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordSecretKey(&c, k, "")), nil
}

// checkBindingStays refuses fields that would change what a key is bound to. A client may send back a record as it read it.
func checkBindingStays(k *registry.Key, fields map[string]json.RawMessage) error {
	var fixed json.RawMessage
	var endpoints []string
	f := api.Fields{All: fields}
	if f.Read("fixed", &fixed) && (k.Fixed == "" || string(api.CompactJSON(fixed)) != string(api.CompactJSON(api.OrNone(k.Fixed)))) {
		return api.Invalid("fixed", "invalid_input", "What a key is bound to cannot change. Make another key.")
	}
	if f.Read("endpoints", &endpoints) && !slices.Equal(endpoints, k.Endpoints) {
		return api.Invalid("endpoints", "invalid_input", "What a key is bound to cannot change. Make another key.")
	}
	return f.Err
}

func (p *Projects) deleteSecretKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := secretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := p.Registry.RevokeKey(ctx, k.ID, c.Start); err != nil {
		return api.Response{}, err
	}
	return api.NoContent(), nil
}

func (p *Projects) rollSecretKey(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	k, err := secretKey(&c, in)
	if err != nil {
		return api.Response{}, err
	}
	rolled, value, err := p.Registry.RollKey(ctx, k.ID, c.Key, c.Start)
	if err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, recordSecretKey(&c, rolled, value)), nil
}

// readSecretKey reads the body of a write: its fields, and the changes that they ask for.
func readSecretKey(c *api.Caller, in api.Input) (map[string]json.RawMessage, registry.KeyUpdate, error) {
	update := registry.KeyUpdate{Grantor: c.Key}
	fields, err := in.ReadFields(secretKeyFields...)
	if err != nil {
		return nil, update, err
	}
	if err := api.Optional(fields, "label", &update.Label); err != nil {
		return nil, update, err
	}
	_, err = api.Field(fields, "scopes", &update.Scopes)
	return fields, update, err
}
