package events

import (
	"cmp"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query lists events, or groups of them (contract: api.md, section 1.6).
type Query struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Source says whose events are listed: those of the actors behind a number of an insight; nil for everybody's.
	Source query.PeopleSource `json:"-"`
	// Select are HogQL expressions, *, or person. There is at least one; an empty list stands for *.
	Select []string `json:"select"`
	// Where are HogQL conditions; all must hold.
	Where []string `json:"where,omitempty"`
	// Properties and Fixed are two conditions, both of which must hold; nil for none.
	Properties         *query.Condition `json:"properties,omitempty"`
	Fixed              *query.Condition `json:"fixedProperties,omitempty"`
	FilterTestAccounts bool             `json:"filterTestAccounts,omitempty"`
	// Event is the name of the events; nil for any.
	Event *string `json:"event,omitempty"`
	// Events are more such names; those that are empty do not count.
	Events []string `json:"events,omitempty"`
	// Action is the number of an action whose events are listed; nil for none.
	Action *int64 `json:"actionId,omitempty"`
	// Steps are those of an action that is not stored, whose events are listed; nil for none. There are none next to Action.
	Steps []query.ActionStep `json:"actionSteps,omitempty"`
	// Person is the id of the only person whose events are listed; empty for all.
	Person string `json:"personId,omitempty"`
	// After and Before are dates as in a DateRange, both exclusive; empty for one day ago and for now.
	After  string `json:"after,omitempty"`
	Before string `json:"before,omitempty"`
	// AfterAt and BeforeAt are the fields that the dates come from, if those are not after and before.
	AfterAt  string `json:"-"`
	BeforeAt string `json:"-"`
	// OrderBy are HogQL expressions, optionally followed by ASC or DESC; nil for the default order.
	OrderBy   []string        `json:"orderBy,omitempty"`
	Limit     int             `json:"limit,omitempty"` // 0 for the default
	Offset    int             `json:"offset,omitempty"`
	Modifiers query.Modifiers `json:"modifiers,omitzero"`
}

// Kind returns EventsQuery.
func (*Query) Kind() string { return "EventsQuery" }

// Text returns nothing: the node has several texts, and mistakes name the field.
func (*Query) Text() string { return "" }

// Canonical leaves out what only labels the query.
func (q *Query) Canonical() []byte {
	if q.Source == nil {
		return query.Canonical(q.Kind(), q)
	}
	return query.CanonicalOver(q.Kind(), q.Source, q)
}

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (q *Query) Field(name string) string { return (&query.Common{At: q.At}).Field(name) }

// Around returns the modifiers of the node itself, and the query inside it; nil for none.
func (q *Query) Around() (query.Modifiers, query.Node) { return q.Modifiers, q.Source }

// Names returns the names of the events, one of which an event must have; none for any.
func (q Query) Names() []query.Named {
	out := query.EventNames(q.Event, q.Field("event"))
	for i, name := range q.Events {
		if name != "" {
			out = append(out, query.Named{Name: name, Attr: q.Field("events." + strconv.Itoa(i))})
		}
	}
	return out
}

// ActionID returns the number of the action.
func (q Query) ActionID() (id int64, ok bool) {
	if q.Action == nil {
		return 0, false
	}
	return *q.Action, true
}

// Rows returns the limit asked for, 0 for none, and its field.
func (q *Query) Rows() (limit int, field string) { return q.Limit, q.Field("limit") }

// Between returns the ends of the range of time asked for, and the field of the second.
func (q *Query) Between() (from, to, field string) { return q.After, q.Before, q.beforeField() }

func (q *Query) afterField() string  { return cmp.Or(q.AfterAt, q.Field("after")) }
func (q *Query) beforeField() string { return cmp.Or(q.BeforeAt, q.Field("before")) }

// Filters returns the condition in the field properties.
func (q *Query) Filters() *query.Condition { return q.Properties }

// Overridden applies the overrides to the events: either date replaces both, and properties are added. They do not apply to the insight
// that the source asks for actors of.
func (q *Query) Overridden(ov *query.Overrides) (query.Node, error) {
	out := *q
	if ov.DateFrom != "" || ov.DateTo != "" {
		out.After, out.Before = ov.DateFrom, ov.DateTo
		out.AfterAt, out.BeforeAt = "filters_override.date_from", "filters_override.date_to"
	}
	out.Properties = query.Both(q.Properties, ov.Properties)
	if ov.FilterTestAccounts != nil {
		out.FilterTestAccounts = *ov.FilterTestAccounts
	}
	return &out, nil
}

// Read reads an EventsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	o.Required("select")
	q := &Query{
		At: o.At.Attr, Select: r.Texts(o, "select"), Where: r.Texts(o, "where"), OrderBy: r.Texts(o, "orderBy"), Events: r.Texts(o, "events"),
		Properties: r.Properties(o, "properties"), Fixed: r.Properties(o, "fixedProperties"),
		FilterTestAccounts: o.Flag("filterTestAccounts"), Person: o.Text("personId"),
		After: o.Text("after"), Before: o.Text("before"), Modifiers: r.Modifiers(o), Steps: r.ActionSteps(o, "actionSteps"),
	}
	if len(q.Select) == 0 {
		q.Select = []string{"*"}
	}
	if event := o.Text("event"); event != "" {
		q.Event = &event
	}
	q.Limit, q.Offset = o.OrZero("limit"), o.OrZero("offset")
	if action, ok := o.ActionID("actionId"); ok {
		q.Action, q.Steps = &action, nil
	}
	q.Source, _ = r.EndWithSource(o, r.Drills()...).(query.PeopleSource)
	return q
}
