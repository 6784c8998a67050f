package definitions

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// propertyRecord is a property in JSON.
type propertyRecord struct {
	described
	IsNumerical  bool                   `json:"is_numerical"`
	PropertyType *registry.PropertyType `json:"property_type"`
	// Seen reports whether the latest of the events named by the caller have the property; null if none is named.
	Seen *bool `json:"is_seen_on_filtered_events"`
}

func recordProperty(c *api.Caller, p registry.PropertyDefinition) propertyRecord {
	known, written := describe(c, fmt.Sprintf("property %s %d", p.Scope, p.GroupTypeIndex), p.Name)
	r := propertyRecord{described: known, IsNumerical: p.Type == registry.PropertyNumeric, PropertyType: &p.Type}
	if written == nil || p.Type != registry.PropertyString {
		return r
	}
	if written.ShownType == registry.NoType {
		r.PropertyType = nil
	}
	if written.ShownType == registry.PropertyDuration {
		r.PropertyType = &written.ShownType
	}
	return r
}

// findProperty finds the property with the id in the path.
func findProperty(c *api.Caller, in *api.Input) (registry.PropertyDefinition, propertyRecord, error) {
	id := api.CanonicalID(in.At.Name)
	for _, p := range c.Snapshot.PropertyDefinitions(c.Project.ID) {
		if r := recordProperty(c, p); r.ID == id {
			return p, r, nil
		}
	}
	return registry.PropertyDefinition{}, propertyRecord{}, api.NotFound("Not found.")
}

func (d *Definitions) getProperty(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	_, r, err := findProperty(c, in)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, r), nil
}

func (d *Definitions) updateProperty(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	p, r, err := findProperty(c, in)
	if err != nil {
		return nil, err
	}
	all, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	f := &api.Fields{All: all}
	fields := readDefinition(f)
	if typ := api.Change[*registry.PropertyType](f, "property_type"); typ.Given {
		if fields.Type = registry.To(registry.NoType); typ.Value != nil {
			fields.Type.Value = *typ.Value
		}
		if typ.Value != nil && *typ.Value == registry.NoType {
			f.Fail("property_type", "invalid_choice", "%q is not a valid choice.", *typ.Value)
		}
	}
	if f.Err != nil {
		return nil, f.Err
	}
	if _, err := d.Registry.Define(ctx, registry.Definition{ID: r.ID, Project: c.Project.ID, Property: p}, fields, c.Key.ID, c.Start); err != nil {
		return nil, err
	}
	c = c.Now(d.Registry)
	if _, r, err = findProperty(c, in); err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, r), nil
}

// propertyFilter says which properties a caller requests.
type propertyFilter struct {
	shown

	scope    registry.PropertyScope
	group    int
	names    []string // empty for all
	excluded []string
	events   []string // for Seen
	onlySeen bool
}

// definedScopes are the kinds of properties by PostHog's names. Session properties are computed and have no definitions.
var definedScopes = map[string]registry.PropertyScope{
	"": registry.EventProperty, "event": registry.EventProperty, "person": registry.PersonProperty, "group": registry.GroupProperty, "session": "",
}

func readPropertyFilter(in *api.Input) (f propertyFilter, err error) {
	if f.shown, err = readShown(in); err != nil {
		return f, err
	}
	given := in.URL.Query()
	kind, ok := given.Get("type"), false
	if f.scope, ok = definedScopes[kind]; !ok {
		return f, api.Invalid("type", "invalid_choice", "%q is not a valid choice.", kind)
	}
	index, named, err := in.QueryInt("group_type_index")
	switch {
	case err != nil:
		return f, err
	case f.scope == registry.GroupProperty && !named:
		return f, api.Invalid("group_type_index", "invalid_input", "`group_type_index` must be set for `group` type")
	case f.scope != registry.GroupProperty && named:
		return f, api.Invalid("group_type_index", "invalid_input", "`group_type_index` must be set only for `group` type")
	}
	f.group = index
	if names := given.Get("properties"); names != "" {
		f.names = strings.Split(names, ",")
	}
	if _, err := in.JSONParam("excluded_properties", &f.excluded); err != nil {
		return f, err
	}
	_, err = in.JSONParam("event_names", &f.events)
	f.onlySeen = api.IsTrue(given.Get("filter_by_event_names"))
	return f, err
}

// listProperties answers GET property_definitions/: those of the named events first, then verified ones, then by name, as in PostHog.
func (d *Definitions) listProperties(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	f, err := readPropertyFilter(in)
	if err != nil {
		return nil, err
	}
	var seen map[string]bool
	var quotas execution.Quotas
	if len(f.events) > 0 && f.scope == registry.EventProperty {
		if seen, quotas, err = contents.PropertiesOf(ctx, d.Executor, c, f.events); err != nil {
			return &api.Response{Quotas: quotas}, err
		}
	}
	given := in.URL.Query()
	flags := given.Get("is_feature_flag")
	names, excluded := api.SetOf(f.names), api.SetOf(f.excluded)
	records := []propertyRecord{}
	for _, p := range c.Snapshot.PropertyDefinitions(c.Project.ID) {
		record := recordProperty(c, p)
		if seen != nil {
			has := seen[p.Name]
			record.Seen = &has
		}
		switch {
		case p.Scope != f.scope, p.GroupTypeIndex != f.group, !f.has(&record.described),
			f.names != nil && !names[p.Name], excluded[p.Name],
			seen != nil && f.onlySeen && !seen[p.Name],
			f.scope == registry.EventProperty && api.IsTrue(given.Get("exclude_core_properties")) && strings.HasPrefix(p.Name, "$"),
			api.IsTrue(given.Get("is_numerical")) && !record.IsNumerical,
			flags != "" && api.IsTrue(flags) != strings.HasPrefix(p.Name, "$feature/"):
			continue
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b propertyRecord) int {
		return cmp.Or(api.CompareBools(api.Deref(b.Seen), api.Deref(a.Seen)), api.CompareBools(b.Verified, a.Verified), strings.Compare(a.Name, b.Name))
	})
	return pageOf(in, records, quotas)
}
