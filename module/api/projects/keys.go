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

// keyRoutes manages the keys of one kind of a project.
type keyRoutes struct {
	registry *registry.Registry
	kind     registry.KeyKind
	fields   []string // allowed in a body

	list        func(*api.Caller) []*registry.Key
	find        func(*api.Caller, *api.Input) (*registry.Key, error)               // the key named in the path
	findToWrite func(*api.Caller, *api.Input) (*registry.Key, error)               // the same, for a key to be changed or revoked
	record      func(c *api.Caller, k *registry.Key, value string) any             // value is the key's text when it is created or rolled
	check       func(*api.Caller, map[string]json.RawMessage) error                // further checks of a body; nil for none
	expiry      func(*api.Caller, map[string]json.RawMessage) (time.Time, error)   // when a new key expires; nil for never
	checkStays  func(*api.Caller, *registry.Key, map[string]json.RawMessage) error // refuses changes to immutable fields; nil for none
}

// routes returns the routes below a path, such as project_secret_api_keys.
func (s *keyRoutes) routes(path string) []api.Route {
	const read, write = "project:read", writeProject
	one := path + "/:name"
	return []api.Route{
		{Method: http.MethodGet, Pattern: path, Scope: read, Handler: s.listKeys},
		{Method: http.MethodPost, Pattern: path, Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: one, Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: one, Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: one, Scope: write, Handler: s.update},
		{Method: http.MethodDelete, Pattern: one, Scope: write, Handler: s.revoke},
		{Method: http.MethodPost, Pattern: one + "/roll", Scope: write, Handler: s.roll},
	}
}

func (s *keyRoutes) listKeys(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return api.PageBy(in, s.list(c), func(k *registry.Key) any { return s.record(c, k, "") })
}

func (s *keyRoutes) get(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	k, err := s.find(c, in)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, s.record(c, k, "")), nil
}

func (s *keyRoutes) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, update, err := s.read(c, in)
	if err != nil {
		return nil, err
	}
	switch {
	case update.Label == nil:
		return nil, api.Invalid("label", "required", "This field is required.")
	case *update.Label == "":
		return nil, blankLabel()
	case update.Scopes == nil:
		return nil, api.Invalid("scopes", "required", "This field is required.")
	}
	n := registry.NewKey{Project: c.Project.ID, Kind: s.kind, Label: *update.Label, Scopes: update.Scopes, CreatedBy: c.Key.ID, Grantor: c.Key}
	if s.expiry != nil {
		if n.ExpiresAt, err = s.expiry(c, fields); err != nil {
			return nil, err
		}
	}
	if n.Fixed, n.Endpoints, err = readBinding(c, fields); err != nil {
		return nil, err
	}
	k, value, err := s.registry.CreateKey(ctx, n, c.Start)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusCreated, s.record(c, k, value)), nil
}

func (s *keyRoutes) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	k, err := s.findToWrite(c, in)
	if err != nil {
		return nil, err
	}
	fields, update, err := s.read(c, in)
	if err != nil {
		return nil, err
	}
	if update.Label != nil && *update.Label == "" && k.Label != "" { // keys that the command made can have none
		return nil, blankLabel()
	}
	if err := checkBindingStays(k, fields); err != nil {
		return nil, err
	}
	if s.checkStays != nil {
		if err := s.checkStays(c, k, fields); err != nil {
			return nil, err
		}
	}
	if k, err = s.registry.UpdateKey(ctx, k.ID, update, c.Start); err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, s.record(c, k, "")), nil
}

func (s *keyRoutes) revoke(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	k, err := s.findToWrite(c, in)
	if err != nil {
		return nil, err
	}
	if _, err := s.registry.RevokeKey(ctx, k.ID, c.Start); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

func (s *keyRoutes) roll(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	k, err := s.find(c, in)
	if err != nil {
		return nil, err
	}
	rolled, value, err := s.registry.RollKey(ctx, k.ID, c.Key, c.Start)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, s.record(c, rolled, value)), nil
}

// read reads the body of a write: its fields, and the changes that they request.
func (s *keyRoutes) read(c *api.Caller, in *api.Input) (map[string]json.RawMessage, registry.KeyUpdate, error) {
	update := registry.KeyUpdate{Grantor: c.Key}
	fields, err := in.ReadFields(s.fields...)
	if err != nil {
		return nil, update, err
	}
	f := api.Fields{All: fields}
	if label := api.Text(&f, "label"); label.Given {
		update.Label = &label.Value
	}
	update.Scopes = api.Change[[]string](&f, "scopes").Value
	if f.Err != nil || s.check == nil {
		return fields, update, f.Err
	}
	return fields, update, s.check(c, fields)
}

func blankLabel() error { return api.Invalid("label", "blank", "This field may not be blank.") }

// readBinding reads the variables and endpoints that a new key is bound to.
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

// checkBindingStays refuses fields that would change what a key is bound to. Clients may send back a record unchanged.
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
