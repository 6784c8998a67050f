package correlation

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query asks what the actors of a funnel that took the last step have more often, or less often, than those that did not (contract:
// clients-queries.md, section 8).
type Query struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Source says which actors are compared.
	Source *funnels.ActorsQuery `json:"-"`
	Type   Type                 `json:"type"`
	// ActorProperties are the properties of actors that count, except for ExcludeActorProperties. All stands for all properties.
	ActorProperties        []string `json:"actor_properties,omitempty"`
	ExcludeActorProperties []string `json:"exclude_actor_properties,omitempty"`
	// ExcludeEvents are the events that do not count.
	ExcludeEvents []string `json:"exclude_events,omitempty"`
	// EventNames are the events whose properties count, except for ExcludeEventProperties.
	EventNames             []string        `json:"event_names,omitempty"`
	ExcludeEventProperties []string        `json:"exclude_event_properties,omitempty"`
	Modifiers              query.Modifiers `json:"modifiers,omitzero"`
}

// Type says what to compare.
type Type string

// The types: the events between the first step and the last, the properties of actors, or the properties of those events.
const (
	Events          Type = "events"
	Properties      Type = "properties"
	EventProperties Type = "event_with_properties"
)

// All stands for all properties in ActorProperties.
const All = "$all"

// Kind returns FunnelCorrelationQuery.
func (*Query) Kind() string { return "FunnelCorrelationQuery" }

// Text returns nothing: the node has no text that positions could refer to.
func (*Query) Text() string { return "" }

// Canonical leaves out what only labels the query.
func (q *Query) Canonical() []byte { return query.CanonicalOver(q.Kind(), q.Source, q) }

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (q *Query) Field(name string) string { return (&query.Common{At: q.At}).Field(name) }

// Around returns the modifiers of the node itself, and the query inside it.
func (q *Query) Around() (query.Modifiers, query.Node) { return q.Modifiers, q.Source }

// Overridden applies the overrides to the funnel.
func (q *Query) Overridden(ov *query.Overrides) (query.Node, error) {
	source, err := q.Source.Overridden(ov)
	if err != nil {
		return nil, err
	}
	out := *q
	out.Source = source.(*funnels.ActorsQuery)
	return &out, nil
}

// Names returns the events and the properties of actors that the query asks for.
func (q Query) Names() []query.Named {
	var out []query.Named
	switch q.Type {
	case EventProperties:
		for i, name := range q.EventNames {
			out = append(out, query.Named{Name: name, Attr: q.Field("funnelCorrelationEventNames." + strconv.Itoa(i))})
		}
	case Properties:
		of := query.Named{Type: "person"}
		if group := q.Source.Source.Group; group != nil {
			of = query.Named{Type: "group", Group: *group}
		}
		for i, name := range q.ActorProperties {
			if name != All {
				of.Name, of.Attr = name, q.Field("funnelCorrelationNames."+strconv.Itoa(i))
				out = append(out, of)
			}
		}
	case Events:
	}
	return out
}

// Read reads a FunnelCorrelationQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	o.Required("source", "funnelCorrelationType")
	q := &Query{
		At: o.At.Attr, Type: Type(o.Choice("funnelCorrelationType", "", string(Events), string(Properties), string(EventProperties))),
		ActorProperties: r.Texts(o, "funnelCorrelationNames"), ExcludeActorProperties: r.Texts(o, "funnelCorrelationExcludeNames"),
		ExcludeEvents: r.Texts(o, "funnelCorrelationExcludeEventNames"), EventNames: r.Texts(o, "funnelCorrelationEventNames"),
		ExcludeEventProperties: r.Texts(o, "funnelCorrelationEventExcludePropertyNames"), Modifiers: r.Modifiers(o),
	}
	source, ok := r.EndWithSource(o, "FunnelsActorsQuery").(*funnels.ActorsQuery)
	if !ok {
		return nil
	}
	q.Source = source
	return q
}
