package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
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
	Action   int64           `json:"action_id"`
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
	case "action_properties":
		if q.Action == 0 {
			return answer("", nil, api.Invalid("args.query.action_id", "invalid_input", "action_properties needs an action_id."))
		}
		rows, quotas, err = t.actionProperties(ctx, c, q.Action)
	case "action_property_values":
		if q.Action == 0 || q.Property == "" {
			return answer("", nil, api.Invalid("args.query", "invalid_input", "action_property_values needs an action_id and a property_name."))
		}
		rows, quotas, err = t.values(ctx, c, "events", taxonomy.ActionValues(q.Property, q.Action))
	case "entity_properties":
		rows, err = entityProperties(c, q.Entity)
	case "entity_property_values":
		rows, quotas, err = t.entityValues(ctx, c, q)
	default:
		return answer("", nil, api.Invalid("args.query.kind", "invalid_choice", "There is no %q here: read events, event_properties, event_property_values, "+
			"action_properties, action_property_values, entity_properties or entity_property_values.", q.Kind))
	}
	if err != nil {
		return answer("", quotas, err)
	}
	page, next := q.page(rows)
	text := texttable.Texts(page, cellsOf(args.Truncate))
	if next > 0 {
		text += fmt.Sprintf("\n\nThere are more rows than these %d: go on with the offset %d.", len(page)-1, next)
	}
	return answer(text, quotas, nil)
}

// maxEvents is the most events on a page, and how many there are without a limit.
const maxEvents = 500

// page returns the requested rows below the names of the columns, which are the first row, and the offset of the next page; 0 if there is none. Without a
// limit, that is a page of events, and all rows of other kinds.
func (q *taxonomyQuery) page(rows [][]string) (page [][]string, next int) {
	names, found := rows[:1:1], rows[1:]
	offset := min(max(q.Offset, 0), len(found))
	end := len(found)
	limit := q.Limit
	if q.Kind == "events" && (limit <= 0 || limit > maxEvents) {
		limit = maxEvents
	}
	if limit > 0 && limit < end-offset {
		end = offset + limit
		next = end
	}
	return append(names, found[offset:end]...), next
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

// actionProperties lists the properties of the latest events that match an action.
func (t *Tools) actionProperties(ctx context.Context, c *api.Caller, action int64) ([][]string, execution.Quotas, error) {
	seen, quotas, err := contents.PropertiesOfAction(ctx, t.Executor, c, action)
	rows := propertyRows(c, func(d registry.PropertyDefinition) bool { return d.Scope == registry.EventProperty && seen[d.Name] })
	return rows, quotas, err
}

// values lists the values of a property that a query finds, and how many events or entities have each.
func (t *Tools) values(ctx context.Context, c *api.Caller, counted string, q *query.HogQL) ([][]string, execution.Quotas, error) {
	rows := [][]string{{"value", counted}}
	var value string
	var count json.Number
	quotas, err := contents.Rows(ctx, t.Executor, c, q, []any{&value, &count}, func() { rows = append(rows, []string{value, count.String()}) })
	return rows, quotas, err
}

// entityProperties lists the properties of people, of sessions, or of groups of one type.
func entityProperties(c *api.Caller, entity string) ([][]string, error) {
	switch singular(entity) {
	case "person":
		return propertyRows(c, func(d registry.PropertyDefinition) bool { return d.Scope == registry.PersonProperty }), nil
	case "session":
		rows := [][]string{{"property", "type"}}
		for _, f := range taxonomy.SessionFields() {
			rows = append(rows, []string{f.Name, string(propertyType(f.Type.Kind))})
		}
		return rows, nil
	}
	index, err := groupIndex(c, entity)
	if err != nil {
		return nil, err
	}
	return propertyRows(c, func(d registry.PropertyDefinition) bool {
		return d.Scope == registry.GroupProperty && d.GroupTypeIndex == index
	}), nil
}

// propertyType returns the type of property that has the values of a kind of field.
func propertyType(kind hogql.Kind) registry.PropertyType {
	switch kind {
	case hogql.Int, hogql.Float, hogql.Decimal:
		return registry.PropertyNumeric
	case hogql.Bool:
		return registry.PropertyBoolean
	case hogql.DateTime, hogql.Date:
		return registry.PropertyDateTime
	default:
		return registry.PropertyString
	}
}

// entityValues lists the values of a property of people, of sessions, or of groups of one type.
func (t *Tools) entityValues(ctx context.Context, c *api.Caller, q *taxonomyQuery) ([][]string, execution.Quotas, error) {
	if q.Property == "" {
		return nil, nil, api.Invalid("args.query", "invalid_input", "entity_property_values needs an entity and a property_name.")
	}
	switch singular(q.Entity) {
	case "person":
		return t.values(ctx, c, "persons", taxonomy.PersonValues(q.Property))
	case "session":
		if !slices.ContainsFunc(taxonomy.SessionFields(), func(f schema.Field) bool { return f.Name == q.Property }) {
			return nil, nil, api.Invalid("args.query.property_name", "invalid_choice", "Sessions have no property %q.", q.Property)
		}
		return t.values(ctx, c, "sessions", taxonomy.SessionValues(q.Property))
	}
	index, err := groupIndex(c, q.Entity)
	if err != nil {
		return nil, nil, err
	}
	return t.values(ctx, c, "groups", taxonomy.GroupValues(q.Property, index))
}

// groupIndex returns the index of a group type.
func groupIndex(c *api.Caller, entity string) (int, error) {
	for _, g := range c.Snapshot.GroupTypes(c.Project.ID) {
		if g.Name == entity || g.Name == singular(entity) {
			return g.Index, nil
		}
	}
	return 0, api.Invalid("args.query.entity", "invalid_choice", "There is no entity %q here.", entity)
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
