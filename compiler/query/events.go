package query

import (
	"fmt"
	"strconv"
)

// Events lists events, or groups of them (contract: api.md, section 1.6).
type Events struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Source says whose events are listed: those of the actors behind a number of an insight; nil for everybody's.
	Source PeopleSource `json:"-"`
	// Select are HogQL expressions, *, or person. There is at least one; an empty list stands for *.
	Select []string `json:"select"`
	// Where are HogQL conditions; all must hold.
	Where []string `json:"where,omitempty"`
	// Properties and Fixed are two conditions, which both count; nil for none.
	Properties         *Condition `json:"properties,omitempty"`
	Fixed              *Condition `json:"fixedProperties,omitempty"`
	FilterTestAccounts bool       `json:"filterTestAccounts,omitempty"`
	// Event is the name of the events; nil for any.
	Event *string `json:"event,omitempty"`
	// Action is the id of an action whose events are listed; nil for none.
	Action *int `json:"actionId,omitempty"`
	// Person is the id of the only person whose events are listed; empty for all.
	Person string `json:"personId,omitempty"`
	// After and Before are dates as in a DateRange, both excluded; empty for the last day and for now.
	After  string `json:"after,omitempty"`
	Before string `json:"before,omitempty"`
	// OrderBy are HogQL expressions, each with ASC or DESC behind it; nil for the default order.
	OrderBy   []string       `json:"orderBy,omitempty"`
	Limit     int            `json:"limit,omitempty"` // 0 for the default
	Offset    int            `json:"offset,omitempty"`
	Modifiers map[string]any `json:"modifiers,omitempty"`
}

// Kind returns EventsQuery.
func (*Events) Kind() string { return "EventsQuery" }

// Text returns nothing: the node holds several texts, and mistakes name the field.
func (*Events) Text() string { return "" }

func (*Events) node() {}

// Canonical leaves out what only labels the query.
func (q *Events) Canonical() []byte {
	if q.Source == nil {
		return canonical(q.Kind(), q)
	}
	return canonicalOver(q.Kind(), q.Source, q)
}

// Field gives the dotted path of a field of the node, for the attr of a mistake.
func (q *Events) Field(name string) string { return (&Common{At: q.At}).Field(name) }

// maxExpressions bounds the lists of expressions of a node.
const maxExpressions = 100

func (r *reader) events(m map[string]any, at place) Node {
	o := r.object(m, at)
	o.required("select")
	q := &Events{
		At: o.at.attr, Select: r.texts(o, "select"), Where: r.texts(o, "where"), OrderBy: r.texts(o, "orderBy"),
		Properties: r.properties(o, "properties"), Fixed: r.properties(o, "fixedProperties"),
		FilterTestAccounts: o.flag("filterTestAccounts"), Person: o.text("personId"),
		After: o.text("after"), Before: o.text("before"), Modifiers: r.modifiers(o),
	}
	if len(q.Select) == 0 {
		q.Select = []string{"*"}
	}
	if event, ok := take[string](o, "event", "string_type", "Input should be a valid string"); ok {
		q.Event = &event
	}
	q.Limit, q.Offset = o.atLeast("limit", 1), o.atLeast("offset", 0)
	if action, ok := o.integer("actionId"); ok {
		q.Action = &action
	}
	if source := r.source(o, "InsightActorsQuery", "FunnelsActorsQuery", "StickinessActorsQuery"); source != nil {
		q.Source, _ = r.insightActors(source.kind, source.m, source.at).(PeopleSource)
	}
	r.tags(o)
	o.ignore(labels...)
	o.close()
	return q
}

// texts reads a list of strings, nil when there is none.
func (r *reader) texts(o *object, name string) []string {
	list := o.list(name)
	if len(list) > maxExpressions {
		r.add(o.field(name), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxExpressions, len(list)))
		return nil
	}
	var out []string
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			r.add(o.field(name).below(strconv.Itoa(i), true), "string_type", "Input should be a valid string")
		}
		out = append(out, text)
	}
	return out
}

// atLeast reads a number that is not below least, 0 when there is none.
func (o *object) atLeast(name string, least int) int {
	n, ok := o.integer(name)
	if ok && n < least {
		o.r.add(o.field(name), "greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", least))
	}
	return n
}
