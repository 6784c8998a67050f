package insights

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// readInsight reads the writable fields of an insight. Like PostHog, it ignores others: clients send back what they received. It checks the query first.
func readInsight(c *api.Caller, in *api.Input, isNew bool) (registry.InsightFields, error) {
	var f registry.InsightFields
	r, err := readFields(in)
	if err != nil {
		return f, err
	}
	if f.Query, err = savedQuery(r.All, isNew, in.FromMCP()); err != nil {
		return f, err
	}
	f.NoQueryScope = !c.Key.Allows(result.QueryScope) && holdsHogQL(f.Query.Value)
	f.Name, f.DerivedName, f.Description = api.TextOrNull(r, "name"), api.TextOrNull(r, "derived_name"), api.TextOrNull(r, "description")
	f.Filters = object(r, "filters", "Filters must be a dictionary")
	f.Order = api.Change[*int](r, "order")
	f.Deleted, f.Favorited, f.Saved = flag(r, "deleted"), flag(r, "favorited"), flag(r, "saved")
	f.Tags = items[string](r, "tags")
	f.Dashboards = items[int64](r, "dashboards")
	api.TextOrNull(r, folderField)
	return f, r.Err
}

// folderField is the field for the folder of PostHog's project tree in which a new object is placed. There is no such tree here: the name is checked and
// then dropped, and neither PostHog nor this server returns it.
const folderField = "_create_in_folder"

// savedQuery reads and checks the query of an insight: contract api.md section 4.3. It is stored as sent, except for requests of PostHog's MCP server,
// whose bare queries are wrapped in the node that displays them.
func savedQuery(fields map[string]json.RawMessage, isNew, fromMCP bool) (registry.Field[json.RawMessage], error) {
	var none registry.Field[json.RawMessage]
	raw, given := fields["query"]
	switch {
	case !given && isNew && fromMCP:
		return none, api.Invalid("query", "required", "This field is required.")
	case !given:
		return none, nil
	case api.IsNull(raw):
		return registry.To[json.RawMessage](nil), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return none, api.Invalid("query", "invalid_input", "Query must be a valid JSON object")
	}
	if len(members) == 0 {
		return registry.To[json.RawMessage](nil), nil
	}
	node, err := compiler.Parse(raw)
	if err != nil {
		return none, err // a mistake in the request, passed on as it is
	}
	kind := compiler.KindOf(node)
	if !kind.HasRows() {
		return none, api.Invalid("query", "invalid_input", "Unsupported query kind: %s", kind.Name)
	}
	var outer string
	if err := json.Unmarshal(members["kind"], &outer); err != nil {
		return none, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	if fromMCP && outer == kind.Name && kind.Wrapper != "" {
		raw = wrapQuery(kind.Wrapper, raw)
	}
	return registry.To(raw), nil
}

// wrapQuery wraps a bare query in the node that displays it.
func wrapQuery(wrapper string, raw json.RawMessage) json.RawMessage {
	return jsontext.Append(nil, struct {
		Kind   string          `json:"kind"`
		Source json.RawMessage `json:"source"`
	}{wrapper, raw})
}

// readFields reads a body.
func readFields(in *api.Input) (*api.Fields, error) {
	fields, err := in.ReadObject()
	return &api.Fields{All: fields}, err
}

func flag(r *api.Fields, name string) registry.Field[bool] { return api.Change[bool](r, name) }

// object reads a JSON object; null counts as empty.
func object(r *api.Fields, name, words string) registry.Field[json.RawMessage] {
	raw, ok := r.Take(name, true)
	switch {
	case !ok:
		return registry.Field[json.RawMessage]{}
	case api.IsNull(raw):
		return registry.To(json.RawMessage(`{}`))
	case bytes.TrimSpace(raw)[0] != '{':
		r.Fail(name, "invalid_input", "%s", words)
		return registry.Field[json.RawMessage]{}
	}
	return registry.To(raw)
}

// list reads the items of a list.
func list(r *api.Fields, name string) ([]json.RawMessage, bool) {
	raw, ok := r.TakeList(name, false)
	if !ok {
		return nil, false
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		r.Fail(name, "not_a_list", "Expected a list of items but got type %q.", api.PythonType(raw))
		return nil, false
	}
	return all, true
}

// items reads a list of values.
func items[T any](r *api.Fields, name string) registry.Field[[]T] {
	all, ok := list(r, name)
	if !ok {
		return registry.Field[[]T]{}
	}
	values := make([]T, len(all))
	for i, item := range all {
		if r.Err != nil {
			break
		}
		if !api.IsNull(item) && api.Decode(item, &values[i]) {
			continue
		}
		at := fmt.Sprintf("%s__%d", name, i)
		one := api.Fields{All: map[string]json.RawMessage{at: item}, Prefix: r.Prefix}
		api.Change[T](&one, at)
		r.Err = one.Err
	}
	return registry.To(values)
}
