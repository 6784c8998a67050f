package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// taxonomyQuery requests one list of names or values.
type taxonomyQuery struct {
	Kind     string          `json:"kind"`
	Event    json.RawMessage `json:"event_name"` // one name or several
	Property string          `json:"property_name"`
	Entity   string          `json:"entity"`
	Limit    int             `json:"limit"`
	Offset   int             `json:"offset"`
}

// events returns the event names in the query.
func (q *taxonomyQuery) events() []string {
	var names []string
	if json.Unmarshal(q.Event, &names) == nil {
		return names
	}
	var name string
	if json.Unmarshal(q.Event, &name) == nil && name != "" {
		return []string{name}
	}
	return nil
}

// readTaxonomy lists events, properties or values.
func (t *Tools) readTaxonomy(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	var args struct {
		Query    taxonomyQuery `json:"query"`
		Truncate *bool         `json:"truncate"`
	}
	if err := readArgs(in, &args); err != nil {
		return nil, err
	}
	q := &args.Query
	var rows [][]string
	var quotas execution.Quotas
	var err error
	switch q.Kind {
	case "events":
		rows, quotas, err = t.events(ctx, c)
	case "event_properties":
		if len(q.events()) == 0 {
			return answer("", nil, api.Invalid("args.query.event_name", "invalid_input", "event_properties needs an event_name."))
		}
		rows, quotas, err = t.properties(ctx, c, q)
	case "event_property_values":
		if len(q.events()) == 0 || q.Property == "" {
			return answer("", nil, api.Invalid("args.query", "invalid_input", "event_property_values needs an event_name and a property_name."))
		}
		rows, quotas, err = t.values(ctx, c, "events", taxonomy.EventValues(q.Property, q.events()))
	case "entity_properties":
		rows, err = entityProperties(c, q.Entity)
	case "entity_property_values":
		if singular(q.Entity) != "person" || q.Property == "" {
			return answer("", nil, api.Invalid("args.query", "invalid_input", "Values are known of the properties of people alone: entity_property_values needs the entity person and a property_name."))
		}
		rows, quotas, err = t.values(ctx, c, "persons", taxonomy.PersonValues(q.Property))
	default:
		return answer("", nil, api.Invalid("args.query.kind", "invalid_choice", "There is no %q here: read events, event_properties, event_property_values, entity_properties or entity_property_values.", q.Kind))
	}
	if err != nil {
		return answer("", quotas, err)
	}
	return answer(texttable.Texts(q.page(rows), cellsOf(args.Truncate)), quotas, nil)
}

// page returns the requested rows below the names of the columns, which are the first row. Without a limit, that is a page of events, and all rows of
// other kinds.
func (q *taxonomyQuery) page(rows [][]string) [][]string {
	names, found := rows[:1:1], rows[1:]
	found = found[min(max(q.Offset, 0), len(found)):]
	limit := max(q.Limit, 0)
	if limit == 0 {
		limit = len(found)
		if q.Kind == "events" {
			limit = api.DefaultPage
		}
	}
	return append(names, found[:min(limit, len(found))]...)
}

func singular(entity string) string { return strings.TrimSuffix(entity, "s") }

// events lists the events, latest first.
func (t *Tools) events(ctx context.Context, c *api.Caller) ([][]string, execution.Quotas, error) {
	events, quotas, err := contents.Events(ctx, t.Executor, c)
	slices.SortStableFunc(events, func(a, b contents.Event) int { return contents.CompareDays(b.LastSeen, a.LastSeen) })
	rows := [][]string{{"event", "last_seen_at"}}
	for _, e := range events {
		rows = append(rows, []string{e.Name, e.LastSeen.Format(time.RFC3339)})
	}
	return rows, quotas, err
}

// properties lists the properties of the latest of the query's events.
func (t *Tools) properties(ctx context.Context, c *api.Caller, q *taxonomyQuery) ([][]string, execution.Quotas, error) {
	seen, quotas, err := contents.PropertiesOf(ctx, t.Executor, c, q.events())
	rows := propertyRows(c, func(d registry.PropertyDefinition) bool { return d.Scope == registry.EventProperty && seen[d.Name] })
	return rows, quotas, err
}

// values lists the values of a property that a query finds, and how many events or people have each.
func (t *Tools) values(ctx context.Context, c *api.Caller, counted string, q *query.HogQL) ([][]string, execution.Quotas, error) {
	rows := [][]string{{"value", counted}}
	var value string
	var count json.Number
	quotas, err := contents.Rows(ctx, t.Executor, c, q, []any{&value, &count}, func() { rows = append(rows, []string{value, count.String()}) })
	return rows, quotas, err
}

// entityProperties lists the properties of people, or of groups of one type.
func entityProperties(c *api.Caller, entity string) ([][]string, error) {
	if singular(entity) == "person" {
		return propertyRows(c, func(d registry.PropertyDefinition) bool { return d.Scope == registry.PersonProperty }), nil
	}
	for _, g := range c.Snapshot.GroupTypes(c.Project.ID) {
		if g.Name == entity || g.Name == singular(entity) {
			return propertyRows(c, func(d registry.PropertyDefinition) bool {
				return d.Scope == registry.GroupProperty && d.GroupTypeIndex == g.Index
			}), nil
		}
	}
	return nil, api.Invalid("args.query.entity", "invalid_choice", "There is no entity %q here.", entity)
}

func propertyRows(c *api.Caller, wanted func(registry.PropertyDefinition) bool) [][]string {
	rows := [][]string{{"property", "type"}}
	for _, d := range c.Snapshot.PropertyDefinitions(c.Project.ID) {
		if wanted(d) {
			rows = append(rows, []string{d.Name, string(d.Type)})
		}
	}
	return rows
}
