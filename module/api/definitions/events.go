package definitions

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

// listEvents answers GET event_definitions/.
func (d *Definitions) listEvents(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	filter, err := readEventFilter(c, in)
	if err != nil {
		return nil, err
	}
	events, quotas, err := contents.Events(ctx, d.Executor, c)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	events = withDefined(c, events)
	records := []eventRecord{}
	for _, e := range events {
		if !filter.keeps(e) {
			continue
		}
		if r := recordEvent(c, e); filter.has(&r.described) && filter.tagged(r.Tags) {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, filter.compare)
	return pageOf(in, records, quotas)
}

// eventFilter says which events a caller requests.
type eventFilter struct {
	shown

	kind            string
	names, leftOut  map[string]bool // names is nil for all
	tagged          func(tags []string) bool
	since           time.Time // events that were last seen before are left out; those that never were stay
	shortNamesFirst bool
	orders          []eventOrder
}

// staleAfter is how long ago an event was last seen that exclude_stale leaves out, as in PostHog.
const staleAfter = 30 * 24 * time.Hour

func readEventFilter(c *api.Caller, in *api.Input) (*eventFilter, error) {
	given, err := in.Params()
	if err != nil {
		return nil, err
	}
	f := &eventFilter{kind: given.Get("event_type"), tagged: func([]string) bool { return true }}
	if f.shown, err = readShown(in); err != nil {
		return nil, err
	}
	switch f.kind {
	case "", "event", "event_custom", "event_posthog":
	case "all", "action_event": // of the events alone, as in PostHog
	default:
		return nil, api.Invalid("event_type", "invalid_input", "Not a valid event type. Use one of: event, event_custom, event_posthog.")
	}
	if names := strings.FieldsFunc(strings.Join(given["names"], ","), isComma); len(names) > 0 {
		f.names = api.SetOf(names)
	}
	var names, tags []string
	if _, err := in.JSONParam("excluded_properties", &names); err != nil {
		return nil, err
	}
	f.leftOut = api.SetOf(names)
	if _, err := in.JSONParam("tags", &tags); err != nil {
		return nil, err
	}
	if len(tags) > 0 {
		f.tagged = registry.HasTag(tags)
	}
	if api.IsTrue(given.Get("exclude_stale")) {
		f.since = c.Start.Add(-staleAfter)
	}
	ordered := map[string]bool{}
	for name := range strings.FieldsFuncSeq(strings.Join(given["ordering"], ","), isComma) {
		column, descending := strings.CutPrefix(name, "-")
		if by := eventOrders[column]; by != nil && !ordered[column] { // like PostHog, others are ignored; a column counts once
			f.orders = append(f.orders, eventOrder{by, descending})
			ordered[column] = true
		}
	}
	f.shortNamesFirst = len(f.orders) == 0 && strings.TrimSpace(given.Get("search")) != ""
	return f, nil
}

func isComma(c rune) bool { return c == ',' }

// keeps reports whether the list has an event. Names of PostHog's own events begin with a dollar sign.
func (f *eventFilter) keeps(e contents.Event) bool {
	switch posthogs := strings.HasPrefix(e.Name, "$"); {
	case f.names != nil && !f.names[e.Name], f.leftOut[e.Name], f.kind == "event_custom" && posthogs, f.kind == "event_posthog" && !posthogs:
		return false
	}
	return e.LastSeen.IsZero() || !e.LastSeen.Before(f.since)
}

// compare orders events: as requested, or those seen last first; of the same place, by name.
func (f *eventFilter) compare(a, b eventRecord) int {
	for _, o := range f.orders {
		if n := o.by(&a, &b); n != 0 && o.descending {
			return -n
		} else if n != 0 {
			return n
		}
	}
	n := 0
	if f.shortNamesFirst {
		n = cmp.Compare(utf8.RuneCountInString(a.Name), utf8.RuneCountInString(b.Name))
	}
	if n == 0 && len(f.orders) == 0 {
		n = contents.CompareDays(b.seen(), a.seen())
	}
	return cmp.Or(n, strings.Compare(a.Name, b.Name))
}

type eventOrder struct {
	by         func(a, b *eventRecord) int
	descending bool
}

// eventOrders are the orders that callers can request.
var eventOrders = map[string]func(a, b *eventRecord) int{
	"name":               func(a, b *eventRecord) int { return strings.Compare(a.Name, b.Name) },
	"last_seen_at":       func(a, b *eventRecord) int { return a.seen().Compare(b.seen()) },
	"last_seen_at::date": func(a, b *eventRecord) int { return contents.CompareDays(a.seen(), b.seen()) },
	"created_at":         func(a, b *eventRecord) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"created_at::date":   func(a, b *eventRecord) int { return contents.CompareDays(a.CreatedAt, b.CreatedAt) },
}

// seen returns when the event was last seen; the zero time for never.
func (r *eventRecord) seen() time.Time { return api.Deref(r.LastSeenAt) }

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
