package definitions

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// eventRecord is an event in JSON. It was created when it was defined or, if it was not, when it was first seen.
type eventRecord struct {
	described
	Owner            *api.User  `json:"owner"`
	CreatedAt        time.Time  `json:"created_at"`
	CreatedBy        *api.User  `json:"created_by"`
	LastSeenAt       *time.Time `json:"last_seen_at"`
	LastUpdatedAt    *time.Time `json:"last_updated_at"`
	IsAction         bool       `json:"is_action"`
	ActionID         *int64     `json:"action_id"`
	IsCalculating    bool       `json:"is_calculating"`
	LastCalculatedAt *time.Time `json:"last_calculated_at"`
	PostToSlack      bool       `json:"post_to_slack"`
	DefaultColumns   []string   `json:"default_columns"`
}

// eventKind is the kind from which the ids of events are derived, together with their names.
const eventKind = "event"

func recordEvent(c *api.Caller, e contents.Event) eventRecord {
	known, written := describe(c, eventKind, e.Name)
	r := eventRecord{described: known, CreatedAt: e.FirstSeen, LastSeenAt: api.OrNil(e.LastSeen), LastUpdatedAt: known.UpdatedAt, DefaultColumns: []string{}}
	if written != nil && !written.CreatedAt.IsZero() {
		r.CreatedAt, r.CreatedBy = written.CreatedAt, c.User(written.CreatedBy)
	}
	return r
}

// withDefined adds the events that were defined but never seen.
func withDefined(c *api.Caller, seen []contents.Event) []contents.Event {
	names := make(map[string]bool, len(seen))
	for _, e := range seen {
		names[e.Name] = true
	}
	for _, d := range c.Snapshot.Definitions(c.Project.ID) {
		if d.Event != "" && !names[d.Event] {
			seen = append(seen, contents.Event{Name: d.Event})
		}
	}
	return seen
}

// listEvents answers GET event_definitions/: events that were seen, the latest first, then the others.
func (d *Definitions) listEvents(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	order := in.URL.Query().Get("ordering")
	by, ok := eventOrders[strings.TrimPrefix(order, "-")]
	if !ok {
		return nil, api.Invalid("ordering", "invalid_choice", "%q is not a valid choice.", order)
	}
	events, quotas, err := contents.Events(ctx, d.Executor, c)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	events = withDefined(c, events)
	slices.SortStableFunc(events, func(a, b contents.Event) int {
		if strings.HasPrefix(order, "-") {
			return by(b, a)
		}
		return by(a, b)
	})
	records := []eventRecord{}
	for _, e := range events {
		if !searched(in, e.Name) {
			continue
		}
		if r := recordEvent(c, e); !r.leftOut(in) {
			records = append(records, r)
		}
	}
	return pageOf(in, records, quotas)
}

// eventOrders are the orders of events. The default is contents.LatestFirst, then by name.
var eventOrders = map[string]func(a, b contents.Event) int{
	"":             contents.LatestFirst,
	"name":         func(a, b contents.Event) int { return strings.Compare(a.Name, b.Name) },
	"last_seen_at": func(a, b contents.Event) int { return a.LastSeen.Compare(b.LastSeen) },
}

// find finds an event that was seen or defined. If the cached list lacks it, it queries the current data.
func (d *Definitions) find(ctx context.Context, c *api.Caller, is func(name string) bool) (contents.Event, execution.Quotas, error) {
	var quotas execution.Quotas
	for _, list := range []func(context.Context, *execution.Executor, *api.Caller) ([]contents.Event, execution.Quotas, error){contents.Events, contents.EventsNow} {
		events, counted, err := list(ctx, d.Executor, c)
		if counted != nil {
			quotas = counted
		}
		if err != nil {
			return contents.Event{}, quotas, err
		}
		events = withDefined(c, events)
		if i := slices.IndexFunc(events, func(e contents.Event) bool { return is(e.Name) }); i >= 0 {
			return events[i], quotas, nil
		}
	}
	return contents.Event{}, quotas, api.NotFound("Not found.")
}

// hasID returns a function that reports whether an event has the id in the path.
func hasID(c *api.Caller, in *api.Input) func(name string) bool {
	id := api.CanonicalID(in.At.Name)
	return func(name string) bool { return idOf(c, eventKind, name) == id }
}

// eventByName answers GET event_definitions/by_name/.
func (d *Definitions) eventByName(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	wanted := in.URL.Query().Get("name")
	if wanted == "" {
		return nil, api.Invalid("name", "required", "This field is required.")
	}
	return d.answerEvent(ctx, c, func(name string) bool { return name == wanted })
}

func (d *Definitions) getEvent(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	return d.answerEvent(ctx, c, hasID(c, in))
}

func (d *Definitions) answerEvent(ctx context.Context, c *api.Caller, is func(name string) bool) (*api.Response, error) {
	e, quotas, err := d.find(ctx, c, is)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	return api.JSON(http.StatusOK, recordEvent(c, e)).With(quotas), nil
}

// createEvent answers POST event_definitions/: it defines an event that was never seen.
func (d *Definitions) createEvent(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	all, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	f := &api.Fields{All: all}
	name, fields := api.Change[string](f, "name"), readDefinition(f)
	if f.Err != nil {
		return nil, f.Err
	}
	var quotas execution.Quotas
	if name.Value != "" {
		var seen []contents.Event
		if seen, quotas, err = contents.Events(ctx, d.Executor, c); err != nil {
			return &api.Response{Quotas: quotas}, err
		}
		if slices.ContainsFunc(seen, func(e contents.Event) bool { return e.Name == name.Value }) {
			return &api.Response{Quotas: quotas}, api.Invalid("name", "unique", "Event definition with this name already exists.")
		}
	}
	made := registry.Definition{ID: idOf(c, eventKind, name.Value), Project: c.Project.ID, Event: name.Value}
	if _, err := d.Registry.CreateEvent(ctx, made, fields, c.Key.ID, c.Start); err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	c = c.Now(d.Registry)
	return api.JSON(http.StatusCreated, recordEvent(c, contents.Event{Name: name.Value})).With(quotas), nil
}

// updateEvent answers PATCH event_definitions/:id/.
func (d *Definitions) updateEvent(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	all, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	f := &api.Fields{All: all}
	fields := readDefinition(f)
	if f.Err != nil {
		return nil, f.Err
	}
	e, quotas, err := d.find(ctx, c, hasID(c, in))
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	about := registry.Definition{ID: idOf(c, eventKind, e.Name), Project: c.Project.ID, Event: e.Name}
	if _, err := d.Registry.Define(ctx, about, fields, c.Key.ID, c.Start); err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	c = c.Now(d.Registry)
	return api.JSON(http.StatusOK, recordEvent(c, e)).With(quotas), nil
}
