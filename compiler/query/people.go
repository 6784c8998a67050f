package query

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// PeopleSource is a query that asks an insight for the actors behind one of its numbers: InsightActors, or the ActorsQuery of funnels, stickiness
// or correlation.
type PeopleSource interface {
	Node
	// Behind returns the insight.
	Behind() Insight
	// OwnModifiers returns the node's own modifiers, which those of the insight override.
	OwnModifiers() Modifiers
}

// Drill has the common fields of the nodes that ask for the actors behind an insight.
type Drill struct {
	// At is the place of the node in the JSON, such as source.
	At string `json:"-"`
	// Recordings asks for each actor's counted events, as a column matching_events.
	Recordings bool      `json:"includeRecordings,omitempty"`
	Modifiers  Modifiers `json:"modifiers,omitzero"`
}

// OwnModifiers returns the node's own modifiers.
func (d *Drill) OwnModifiers() Modifiers { return d.Modifiers }

// Text returns an empty text: positions cannot point into the node.
func (*Drill) Text() string { return "" }

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (d *Drill) Field(name string) string { return (&Common{At: d.At}).Field(name) }

// Statuses are the statuses of a lifecycle, in the order of its answer.
var Statuses = []string{"new", "returning", "resurrecting", "dormant"}

// InsightActors asks for the actors behind a number of an insight. Which fields apply depends on the kind of the source (contract: trends.md,
// lifecycle.md section 7, retention.md section 12, paths.md section 9).
type InsightActors struct {
	Drill
	Source Insight `json:"-"`
	// Day is the start of a bucket as the insight writes it, or any time inside; nil if not given.
	Day *string `json:"day,omitempty"`
	// Status is a status of a lifecycle; empty for any.
	Status string `json:"status,omitempty"`
	// Interval is the row of a retention, from 0; nil if not given.
	Interval *int `json:"interval,omitempty"`
	// Series is the index of a series; nil for the first.
	Series *int `json:"series,omitempty"`
	// Breakdown is a value of the insight's breakdown: a string, a json.Number, or a []any of these; nil for any.
	Breakdown any `json:"breakdown,omitempty"`
	// Compare is "current" or "previous"; nil for the current period.
	Compare *string `json:"compare,omitempty"`
}

// Kind returns InsightActorsQuery.
func (*InsightActors) Kind() string { return "InsightActorsQuery" }

// Behind returns the insight.
func (q *InsightActors) Behind() Insight { return q.Source }

// Overridden applies the overrides to the insight.
func (q *InsightActors) Overridden(ov *Overrides) (Node, error) {
	out := *q
	out.Source = ov.Apply(q.Source)
	return &out, nil
}

// Canonical leaves out fields that only affect how the insight is displayed.
func (q *InsightActors) Canonical() []byte { return CanonicalOver(q.Kind(), q.Source, q) }

// CanonicalOver is Canonical for a node about another one.
func CanonicalOver(kind string, source Node, node any) []byte {
	out := Canonical(kind, node)
	out = append(out[:len(out)-1], `,"source":`...)
	return append(append(out, source.Canonical()...), '}')
}

// EndWithSource reads what is left of a node about another one: its labels, and the source, which must be of one of the given kinds. Any other
// field is a mistake from then on. It returns nil if there is no source, or one of another kind, which it notes.
func (r *Reader) EndWithSource(o *Object, kinds ...string) Node {
	source := r.source(o, kinds...)
	r.Tags(o)
	o.Close()
	return source
}

func (r *Reader) source(o *Object, kinds ...string) Node {
	given, ok := o.Take("source")
	if !ok {
		return nil
	}
	at := o.Field("source")
	m, ok := given.(map[string]any)
	if !ok {
		r.Add(at, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from")
		return nil
	}
	kind, _ := m["kind"].(string)
	if !slices.Contains(kinds, kind) {
		r.Add(at, "union_tag_invalid", "Input tag '"+diag.Shown(m["kind"])+"' found using 'kind' does not match any of the expected tags: "+oneOf(kinds))
		return nil
	}
	return r.kinds.find(kind).Read(r, r.Object(m, at.Below(kind, false)))
}

// Drills returns the names of the kinds that ask for the actors behind an insight.
func (r *Reader) Drills() []string { return r.kinds.names(func(k *Kind) bool { return k.Drills }) }

// ReadActorsOf returns the reader of a kind that asks for the actors behind an insight of one of the given kinds, or of any kind if none is given.
// The kind of the insight determines the resulting node.
func ReadActorsOf(kinds ...string) func(*Reader, *Object) Node {
	return func(r *Reader, o *Object) Node {
		o.Required("source")
		d := Drill{At: o.At.Attr, Recordings: o.Flag("includeRecordings"), Modifiers: r.Modifiers(o)}
		r.Tags(o)
		of := kinds
		if len(of) == 0 {
			of = r.kinds.names(func(k *Kind) bool { return k.Actors != nil })
		}
		behind, ok := r.source(o, of...).(Insight)
		if !ok {
			return nil
		}
		out := r.kinds.find(behind.Kind()).Actors(r, o, d, behind)
		o.Close()
		return out
	}
}

// ReadInsightActors reads an InsightActors.
func ReadInsightActors(r *Reader, o *Object, d Drill, behind Insight) PeopleSource {
	return &InsightActors{
		Drill: d, Source: behind, Day: r.Day(o, "day"), Status: o.Choice("status", "", Statuses...),
		Interval: r.Index(o, "interval"), Series: r.Index(o, "series"), Breakdown: r.BreakdownValue(o, "breakdown"), Compare: o.Period(),
	}
}

// ActorsOptions asks which values the fields of a drill-down can have.
type ActorsOptions struct {
	// Modifiers are the node's own, which those of the drill-down override.
	Modifiers Modifiers `json:"modifiers,omitzero"`
	// Source is the drill-down. Its own fields do not matter.
	Source PeopleSource `json:"-"`
}

// Kind returns InsightActorsQueryOptions.
func (*ActorsOptions) Kind() string { return "InsightActorsQueryOptions" }

// Text returns an empty text: positions cannot point into the node.
func (*ActorsOptions) Text() string { return "" }

// Around returns the modifiers of the node, and the drill-down.
func (q *ActorsOptions) Around() (Modifiers, Node) { return q.Modifiers, q.Source }

// Overridden applies the overrides to the insight.
func (q *ActorsOptions) Overridden(ov *Overrides) (Node, error) {
	source, err := ov.ApplyTo(q.Source)
	if err != nil {
		return nil, err
	}
	return &ActorsOptions{Modifiers: q.Modifiers, Source: source.(PeopleSource)}, nil
}

// Canonical leaves out what only labels the query.
func (q *ActorsOptions) Canonical() []byte { return CanonicalOver(q.Kind(), q.Source, q) }

// ReadActorsOptions reads an ActorsOptions.
func ReadActorsOptions(r *Reader, o *Object) Node {
	o.Required("source")
	q := &ActorsOptions{Modifiers: r.Modifiers(o)}
	source, ok := r.EndWithSource(o, r.Drills()...).(PeopleSource)
	if !ok {
		return nil
	}
	q.Source = source
	return q
}

// Day reads a text or a whole number, as text; nil if there is none.
func (r *Reader) Day(o *Object, name string) *string {
	given, ok := o.Take(name)
	if !ok {
		return nil
	}
	switch v := given.(type) {
	case string:
		return &v
	case json.Number:
		if n, ok := Whole(v); ok {
			text := strconv.FormatInt(n, 10)
			return &text
		}
	}
	r.Add(o.Field(name), "string_type", "Input should be a valid string or integer")
	return nil
}

// Index reads an index, from 0; nil if there is none.
func (r *Reader) Index(o *Object, name string) *int {
	if _, ok := o.Take(name); !ok {
		return nil
	}
	i := o.AtLeast(name, 0)
	return &i
}

// BreakdownValue reads a breakdown value: text, a number, or a list of these; nil if there is none.
func (r *Reader) BreakdownValue(o *Object, name string) any {
	given, ok := o.Take(name)
	if !ok {
		return nil
	}
	plain := func(v any) bool {
		switch v.(type) {
		case string, json.Number:
			return true
		}
		return false
	}
	list, isList := given.([]any)
	for i, item := range list {
		if !plain(item) {
			r.Add(o.Field(name).Below(strconv.Itoa(i), true), "string_type", "Input should be a valid string or integer")
		}
	}
	if !isList && !plain(given) {
		r.Add(o.Field(name), "string_type", "Input should be a valid string, integer or list")
		return nil
	}
	return given
}

// Period reads which of two compared periods is meant; nil if not given.
func (o *Object) Period() *string {
	word := o.Choice("compare", "", "current", "previous")
	if word == "" {
		return nil
	}
	return &word
}
