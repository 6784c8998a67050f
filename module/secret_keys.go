package module

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// secretKeyRecord is a project secret key on the wire: contract section 6.3, and what it is bound to.
type secretKeyRecord struct {
	ID           string     `json:"id"`
	Label        string     `json:"label"`
	Value        *string    `json:"value"` // only right after it was made or rolled
	Mask         string     `json:"mask_value"`
	CreatedAt    time.Time  `json:"created_at"`
	CreatedBy    *user      `json:"created_by"`
	LastUsedAt   *time.Time `json:"last_used_at"`
	LastRolledAt *time.Time `json:"last_rolled_at"`
	Scopes       []string   `json:"scopes"`

	Fixed     json.RawMessage `json:"fixed"`
	Endpoints []string        `json:"endpoints"`
}

func (rq *request) recordSecretKey(k *registry.Key, value string) secretKeyRecord {
	record := secretKeyRecord{
		ID: k.ID, Label: k.Label, Mask: k.Mask, CreatedAt: k.CreatedAt, CreatedBy: rq.user(k.CreatedBy), LastUsedAt: orNil(k.LastUsedAt),
		LastRolledAt: orNil(k.LastRolledAt), Scopes: k.Scopes, Fixed: orNone(k.Fixed), Endpoints: k.Endpoints,
	}
	if value != "" {
		record.Value = &value
	}
	return record
}

// secretKeyFields are the fields of a record. Of these, the writable ones are read; what is fixed can be given when a key is made alone.
var secretKeyFields = []string{
	"id", "label", "value", "mask_value", "created_at", "created_by", "last_used_at", "last_rolled_at", "scopes", "fixed", "endpoints",
}

// secretKeyRoutes manage the secret keys of a project: contract section 6.3.
func secretKeyRoutes() map[address]methods {
	const resource, read, write = "project_secret_api_keys", "project:read", "project:write"
	return map[address]methods{
		{resource: resource}: {
			http.MethodGet:  {scope: read, serve: (*request).listSecretKeys},
			http.MethodPost: {scope: write, serve: (*request).createSecretKey},
		},
		{resource: resource, name: ":name"}: {
			http.MethodGet:    {scope: read, serve: (*request).getSecretKey},
			http.MethodPut:    {scope: write, serve: (*request).updateSecretKey},
			http.MethodPatch:  {scope: write, serve: (*request).updateSecretKey},
			http.MethodDelete: {scope: write, serve: (*request).deleteSecretKey},
		},
		{resource: resource, name: ":name", action: "roll"}: {
			http.MethodPost: {scope: write, serve: (*request).rollSecretKey},
		},
	}
}

// secretKey is the key that the address names. One that was revoked is gone, and personal keys are not looked at here.
func (rq *request) secretKey() (*registry.Key, error) {
	k := rq.Snapshot.KeyByID(rq.Project.ID, rq.at.Name)
	if k == nil || k.Kind != registry.Secret || !k.RevokedAt.IsZero() {
		return nil, api.NotFound("Not found.")
	}
	return k, nil
}

func (rq *request) listSecretKeys() error {
	records := []secretKeyRecord{}
	for _, k := range rq.Snapshot.Keys(rq.Project.ID) {
		if k.Kind == registry.Secret && k.RevokedAt.IsZero() {
			records = append(records, rq.recordSecretKey(k, ""))
		}
	}
	return writePage(rq, records)
}

func (rq *request) getSecretKey() error {
	k, err := rq.secretKey()
	if err != nil {
		return err
	}
	rq.reply(http.StatusOK, rq.recordSecretKey(k, ""))
	return nil
}

func (rq *request) createSecretKey() error {
	fields, update, err := rq.readSecretKey()
	if err != nil {
		return err
	}
	for name, given := range map[string]bool{"label": update.Label != nil && *update.Label != "", "scopes": update.Scopes != nil} {
		if !given {
			return api.Invalid(name, "required", "This field is required.")
		}
	}
	n := registry.NewKey{Project: rq.Project.ID, Kind: registry.Secret, Label: *update.Label, Scopes: update.Scopes, CreatedBy: rq.Key.ID, Grantor: rq.Key}
	var fix map[string]json.RawMessage
	if _, err := api.Field(fields, "fixed", &fix); err != nil {
		return err
	}
	if _, err := api.Field(fields, "endpoints", &n.Endpoints); err != nil {
		return err
	}
	if n.Fixed, err = bindKey(rq.Snapshot, rq.Project.ID, fix, n.Endpoints); err != nil {
		return api.Invalid("fixed", "invalid_input", "%s", err.Error())
	}
	k, value, err := rq.rt.registry.CreateKey(rq.r.Context(), n, rq.Start)
	if err != nil {
		return err // it says what was being done
	}
	rq.reply(http.StatusCreated, rq.recordSecretKey(k, value))
	return nil
}

func (rq *request) updateSecretKey() error {
	k, err := rq.secretKey()
	if err != nil {
		return err
	}
	fields, update, err := rq.readSecretKey()
	if err != nil {
		return err
	}
	if err := checkBindingStays(k, fields); err != nil {
		return err
	}
	if k, err = rq.rt.registry.UpdateKey(rq.r.Context(), k.ID, update); err != nil {
		return err // it says what was being done
	}
	rq.reply(http.StatusOK, rq.recordSecretKey(k, ""))
	return nil
}

// checkBindingStays refuses fields that would change what a key is bound to. A record can be sent back as it was read.
func checkBindingStays(k *registry.Key, fields map[string]json.RawMessage) error {
	var fixed json.RawMessage
	var endpoints []string
	if given, err := api.Field(fields, "fixed", &fixed); err != nil {
		return err
	} else if given && (k.Fixed == "" || string(api.CompactJSON(fixed)) != string(api.CompactJSON(orNone(k.Fixed)))) {
		return api.Invalid("fixed", "invalid_input", "What a key is bound to cannot change. Make another key.")
	}
	if given, err := api.Field(fields, "endpoints", &endpoints); err != nil {
		return err
	} else if given && !slices.Equal(endpoints, k.Endpoints) {
		return api.Invalid("endpoints", "invalid_input", "What a key is bound to cannot change. Make another key.")
	}
	return nil
}

func (rq *request) deleteSecretKey() error {
	k, err := rq.secretKey()
	if err != nil {
		return err
	}
	if _, err := rq.rt.registry.RevokeKey(rq.r.Context(), k.ID, rq.Start); err != nil {
		return err // it says what was being done
	}
	rq.replyNothing()
	return nil
}

func (rq *request) rollSecretKey() error {
	k, err := rq.secretKey()
	if err != nil {
		return err
	}
	rolled, value, err := rq.rt.registry.RollKey(rq.r.Context(), k.ID, rq.Key, rq.Start)
	if err != nil {
		return err // it says what was being done
	}
	rq.reply(http.StatusOK, rq.recordSecretKey(rolled, value))
	return nil
}

// readSecretKey reads the body of a write: its fields, and what of them can change.
func (rq *request) readSecretKey() (map[string]json.RawMessage, registry.KeyUpdate, error) {
	update := registry.KeyUpdate{Grantor: rq.Key}
	fields, err := rq.readFields(secretKeyFields...)
	if err != nil {
		return nil, update, err
	}
	if err := optional(fields, "label", &update.Label); err != nil {
		return nil, update, err
	}
	_, err = api.Field(fields, "scopes", &update.Scopes)
	return fields, update, err
}
