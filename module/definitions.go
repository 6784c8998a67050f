package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Clients ask what events, properties and groups a project has before they write a query. Events are those that are in the
// data; properties and group types those that the registry knows, from imports and from operators.

const (
	eventDefinitions    = "event_definitions"
	propertyDefinitions = "property_definitions"
	groupTypeList       = "groups_types"
)

// definitionRoutes are the routes that list what is in a project's data.
func definitionRoutes() map[address]methods {
	return map[address]methods{
		{resource: eventDefinitions}:    {http.MethodGet: {scope: "event_definition:read", serve: (*request).listEventDefinitions}},
		{resource: propertyDefinitions}: {http.MethodGet: {scope: "property_definition:read", serve: (*request).listPropertyDefinitions}},
		{resource: groupTypeList}:       {http.MethodGet: {scope: "group:read", serve: (*request).listGroupTypes}},
	}
}

// described is what all definitions have on the wire. Nobody describes, owns, verifies or hides them here.
type described struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description *string    `json:"description"`
	Tags        []string   `json:"tags"`
	UpdatedAt   *time.Time `json:"updated_at"`
	UpdatedBy   *user      `json:"updated_by"`
	Verified    bool       `json:"verified"`
	VerifiedAt  *time.Time `json:"verified_at"`
	VerifiedBy  *user      `json:"verified_by"`
	Hidden      bool       `json:"hidden"`
}

func (rq *request) described(kind, name string) described {
	return described{ID: derivedID(kind, fmt.Sprintf("%d %s", rq.Project.ID, name)), Name: name, Tags: []string{}}
}

// eventRecord is an event on the wire. It counts as created when it was first seen.
type eventRecord struct {
	described
	Owner          *user     `json:"owner"`
	CreatedAt      time.Time `json:"created_at"`
	LastSeenAt     time.Time `json:"last_seen_at"`
	IsAction       bool      `json:"is_action"`
	PostToSlack    bool      `json:"post_to_slack"`
	DefaultColumns []string  `json:"default_columns"`
}

// listEventDefinitions answers GET event_definitions/: the events that were seen, the latest first.
func (rq *request) listEventDefinitions() error {
	order := rq.r.URL.Query().Get("ordering")
	by, ok := eventOrders[strings.TrimPrefix(order, "-")]
	if !ok {
		return api.Invalid("ordering", "invalid_choice", "%q is not a valid choice.", order)
	}
	records, err := rq.events()
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r eventRecord) bool { return !rq.searched(r.Name) })
	slices.SortStableFunc(records, func(a, b eventRecord) int {
		if strings.HasPrefix(order, "-") {
			return by(b, a)
		}
		return by(a, b)
	})
	return writePage(rq, records)
}

// events gives the events that were seen, by name.
func (rq *request) events() ([]eventRecord, error) {
	rows, err := rq.ask(taxonomy.Events())
	if err != nil {
		return nil, err
	}
	records := []eventRecord{}
	for row := range rows.Rows() {
		var name string
		record := eventRecord{DefaultColumns: []string{}}
		if err := json.Unmarshal(row, &[]any{&name, &record.CreatedAt, &record.LastSeenAt}); err != nil {
			return nil, fmt.Errorf("reading an event: %w", err)
		}
		record.described = rq.described("event", name)
		records = append(records, record)
	}
	return records, nil
}

// eventOrders are the orders of events; without one it is by the day they were last seen, then by name.
var eventOrders = map[string]func(a, b eventRecord) int{
	"": func(a, b eventRecord) int {
		const day = 24 * time.Hour
		return b.LastSeenAt.Truncate(day).Compare(a.LastSeenAt.Truncate(day))
	},
	"name":         func(a, b eventRecord) int { return strings.Compare(a.Name, b.Name) },
	"last_seen_at": func(a, b eventRecord) int { return a.LastSeenAt.Compare(b.LastSeenAt) },
}

// searched tells a name that has each word of the parameter search.
func (rq *request) searched(name string) bool {
	name = strings.ToLower(name)
	for word := range strings.FieldsSeq(strings.ToLower(rq.r.URL.Query().Get("search"))) {
		if !strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// definitionsAge is how old a list of names may be.
const definitionsAge = 5 * time.Minute

// ask runs a query of our own over the caller's project, through the cache.
func (rq *request) ask(q *query.HogQL) (*cache.Result, error) {
	entry, err := rq.runSQL(q, definitionsAge)
	if err != nil {
		return nil, err
	}
	return entry.Result, nil
}

// runSQL runs HogQL as the query route does, for an answer in another form. fresh is how old it may be; 0 leaves that to the
// refresh modes.
func (rq *request) runSQL(q *query.HogQL, fresh time.Duration) (*cache.Entry, error) {
	p, err := result.PlanNode(rq.rt.Executor, &rq.Caller.Caller, q, result.Overrides{}, execution.RefreshBlocking)
	if err != nil {
		return nil, err
	}
	if fresh > 0 {
		p.Fresh = fresh
	}
	got, err := rq.refresh(p, execution.Origin{})
	if err != nil {
		return nil, err
	}
	return got.Answer.Entry, nil
}

// propertyRecord is a property on the wire.
type propertyRecord struct {
	described
	IsNumerical  bool                  `json:"is_numerical"`
	PropertyType registry.PropertyType `json:"property_type"`
	// Seen reports whether the latest of the events that the caller names have it; null when none is named.
	Seen *bool `json:"is_seen_on_filtered_events"`
}

// propertyFilter is which properties a caller asks for.
type propertyFilter struct {
	scope    registry.PropertyScope
	group    int
	names    []string // empty for all
	excluded []string
	events   []string // for Seen
	onlySeen bool
}

// definedScopes are the kinds of properties by the peer's names. Those of sessions are computed, and defined nowhere.
var definedScopes = map[string]registry.PropertyScope{
	"": registry.EventProperty, "event": registry.EventProperty, "person": registry.PersonProperty, "group": registry.GroupProperty, "session": "",
}

func (rq *request) propertyFilter() (f propertyFilter, err error) {
	given := rq.r.URL.Query()
	kind, ok := given.Get("type"), false
	if f.scope, ok = definedScopes[kind]; !ok {
		return f, api.Invalid("type", "invalid_choice", "%q is not a valid choice.", kind)
	}
	index, named, err := rq.queryInt("group_type_index")
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
	if _, err := rq.jsonParam("excluded_properties", &f.excluded); err != nil {
		return f, err
	}
	_, err = rq.jsonParam("event_names", &f.events)
	f.onlySeen = isTrue(given.Get("filter_by_event_names"))
	return f, err
}

// listPropertyDefinitions answers GET property_definitions/, by name.
func (rq *request) listPropertyDefinitions() error {
	f, err := rq.propertyFilter()
	if err != nil {
		return err
	}
	var seen map[string]bool
	if len(f.events) > 0 && f.scope == registry.EventProperty {
		if seen, err = rq.propertiesOf(f.events); err != nil {
			return err
		}
	}
	given := rq.r.URL.Query()
	numerical, flags := given.Get("is_numerical"), given.Get("is_feature_flag")
	records := []propertyRecord{}
	for _, d := range rq.Snapshot.PropertyDefinitions(rq.Project.ID) {
		record := propertyRecord{described: rq.described(fmt.Sprintf("property %s %d", d.Scope, d.GroupTypeIndex), d.Name), IsNumerical: d.Type == registry.PropertyNumeric, PropertyType: d.Type}
		if seen != nil {
			has := seen[d.Name]
			record.Seen = &has
		}
		switch {
		case d.Scope != f.scope, d.GroupTypeIndex != f.group, !rq.searched(d.Name),
			f.names != nil && !slices.Contains(f.names, d.Name), slices.Contains(f.excluded, d.Name),
			seen != nil && f.onlySeen && !seen[d.Name],
			isTrue(given.Get("exclude_core_properties")) && strings.HasPrefix(d.Name, "$"),
			numerical != "" && isTrue(numerical) != record.IsNumerical,
			flags != "" && isTrue(flags) != strings.HasPrefix(d.Name, "$feature/"):
			continue
		}
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b propertyRecord) int { return strings.Compare(a.Name, b.Name) })
	return writePage(rq, records)
}

// propertiesOf gives the names of the properties of the latest events of some names.
func (rq *request) propertiesOf(events []string) (map[string]bool, error) {
	rows, err := rq.ask(taxonomy.Properties(events))
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for row := range rows.Rows() {
		var name [1]string
		if err := json.Unmarshal(row, &name); err != nil {
			return nil, fmt.Errorf("reading the name of a property: %w", err)
		}
		out[name[0]] = true
	}
	return out, nil
}

// listGroupTypes answers GET groups_types/, which is no page.
func (rq *request) listGroupTypes() error {
	records := rq.recordTeam().GroupTypes
	slices.SortFunc(records, func(a, b groupTypeRecord) int { return cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex) })
	rq.reply(http.StatusOK, records)
	return nil
}
