package people

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// maxUnset is how many properties one call can remove.
const maxUnset = 1000

// setProperties answers PATCH and PUT persons/:id/. Both set the properties given and keep the others.
func (s *People) setProperties(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	const field = "properties"
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	raw, err := needed(fields, field)
	if err != nil {
		return nil, err
	}
	set, err := propertiesOf(field, raw)
	if err != nil {
		return nil, err
	}
	return accepted(s.change(ctx, c, in, field, ingest.Change{Set: set}))
}

// setProperty answers POST persons/:id/update_property/.
func (s *People) setProperty(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	value, err := needed(fields, "value")
	if err != nil {
		return nil, err
	}
	if _, err := needed(fields, "key"); err != nil {
		return nil, err
	}
	var key string
	if _, err := api.Field(fields, "key", &key); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, api.Invalid("key", "invalid_input", "A property needs a name.")
	}
	one, err := json.Marshal(map[string]json.RawMessage{key: value})
	if err != nil {
		return nil, err
	}
	set, err := propertiesOf("value", one)
	if err != nil {
		return nil, err
	}
	return accepted(s.change(ctx, c, in, "value", ingest.Change{Set: set}))
}

// unsetProperties answers POST persons/:id/delete_property/.
func (s *People) unsetProperties(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	const field = "$unset"
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	raw, err := needed(fields, field)
	if err != nil {
		return nil, err
	}
	var keys []string
	var key string
	switch {
	case json.Unmarshal(raw, &key) == nil:
		keys = []string{key}
	case json.Unmarshal(raw, &keys) != nil || slices.Contains(keys, ""):
		return nil, api.Invalid(field, "invalid_input", "Expected the name of a property, or a list of names.")
	case len(keys) > maxUnset:
		return nil, api.Invalid(field, "invalid_input", "You can only delete %d properties in one call.", maxUnset)
	}
	if err := s.change(ctx, c, in, field, ingest.Change{Unset: keys}); err != nil {
		return nil, err
	}
	return api.JSON(http.StatusCreated, map[string]bool{"success": true}), nil
}

// needed returns a field that is given and not null.
func needed(fields map[string]json.RawMessage, name string) (json.RawMessage, error) {
	f := api.Fields{All: fields}
	raw, given := f.Take(name, true)
	if !given || api.IsNull(raw) {
		return nil, api.Invalid(name, "This field is required.", "required") // PostHog swaps the code and the detail of this error
	}
	return raw, nil
}

// propertiesOf reads the properties to set. A form sends them as a JSON text.
func propertiesOf(field string, raw json.RawMessage) (record.Object, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	set, err := record.Properties(raw)
	if err != nil {
		return nil, api.Invalid(field, "invalid_input", "These can't be properties of a person: %v.", err)
	}
	return set, nil
}

// change applies a change to the person in the path; field is named in mistakes.
func (s *People) change(ctx context.Context, c *api.Caller, in *api.Input, field string, change ingest.Change) error {
	id, err := personID(in.At.Name)
	if err != nil {
		return err
	}
	change.Person, err = uuid.Parse(id)
	if err != nil {
		return err
	}
	if err := s.writable(ctx, c.Project.ID); err != nil {
		return err
	}
	switch err := s.Change(ctx, c.Project.ID, change); {
	case errors.Is(err, ingest.ErrNoPerson):
		return api.NotFound("Not found.")
	case errors.Is(err, ingest.ErrNoRoom):
		return api.Invalid(field, "invalid_input", "The person has no room for these properties: it can have up to %d property names, "+
			"and %d MiB of properties.", record.MaxNames, ingest.MaxProfile>>20)
	case errors.Is(err, ingest.ErrRefused):
		return api.Invalid(field, "invalid_input", "ClickHouse refuses the data of these properties.")
	default:
		return err
	}
}

// writable refuses to change people in another product's tables, which writes them itself.
func (s *People) writable(ctx context.Context, project int64) error {
	layout, err := s.Executor.Shards.Of(project).Layout(ctx)
	if err != nil {
		return err
	}
	if layout.Foreign() {
		return api.Invalid("", "invalid_input", "These ClickHouse tables belong to another product: its people can be read here, but not changed.")
	}
	return nil
}

// accepted returns the response to a change.
func accepted(err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return &api.Response{Status: http.StatusAccepted}, nil
}
