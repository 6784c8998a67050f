package query

import (
	"encoding/json"
	"strconv"
)

// Actors lists people, or the groups that an insight counts (contract: api.md, section 1.6).
type Actors struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Source says who is listed; nil for all people.
	Source ActorsSource `json:"-"`
	// Select are HogQL expressions, columns of the source, or person, group, actor; nil for the default.
	Select []string `json:"select,omitempty"`
	// Search is a part of an id, a name or an email address; empty for all.
	Search string `json:"search,omitempty"`
	// Properties and Fixed are two conditions on people, which both count; nil for none.
	Properties *Condition `json:"properties,omitempty"`
	Fixed      *Condition `json:"fixedProperties,omitempty"`
	// OrderBy are HogQL expressions, each with ASC or DESC behind it; nil for the default order.
	OrderBy   []string       `json:"orderBy,omitempty"`
	Limit     int            `json:"limit,omitempty"` // 0 for the default
	Offset    int            `json:"offset,omitempty"`
	Modifiers map[string]any `json:"modifiers,omitempty"`
}

// ActorsSource is a query that says who an ActorsQuery lists: a PeopleSource, or a HogQL with a column of ids.
type ActorsSource interface {
	Node
	actorsSource()
}

// PeopleSource is an ActorsSource that asks an insight for the actors behind one of its numbers: InsightActors,
// StickinessActors or FunnelsActors.
type PeopleSource interface {
	ActorsSource
	// Behind is the insight.
	Behind() Insight
	// OwnModifiers are those of the node itself, which those of the insight go before.
	OwnModifiers() map[string]any
}

// drill is what the nodes that ask for the actors behind an insight have in common.
type drill struct {
	// At is the place of the node in the JSON, such as source.
	At string `json:"-"`
	// Recordings asks for the events of each actor that count, as a column matching_events.
	Recordings bool           `json:"includeRecordings,omitempty"`
	Modifiers  map[string]any `json:"modifiers,omitempty"`
}

// OwnModifiers are those of the node itself.
func (d *drill) OwnModifiers() map[string]any { return d.Modifiers }

// Text returns nothing: the node holds no text that positions could point into.
func (*drill) Text() string { return "" }

func (*drill) node() {}

func (*drill) actorsSource() {}

// Field gives the dotted path of a field of the node, for the attr of a mistake.
func (d *drill) Field(name string) string { return (&Common{At: d.At}).Field(name) }

// InsightActors asks for the actors behind a number of an insight. Which fields count is up to the kind of the source
// (contract: trends.md, lifecycle.md section 7, retention.md section 12, paths.md section 9).
type InsightActors struct {
	drill
	Source Insight `json:"-"`
	// Day is the start of a bucket as the insight writes it, or any time inside; nil when none is given.
	Day *string `json:"day,omitempty"`
	// Status is that of a lifecycle; empty for any.
	Status string `json:"status,omitempty"`
	// Interval is the row of a retention, from 0; nil when none is given.
	Interval *int `json:"interval,omitempty"`
	// Series is the index of a series; nil for the first.
	Series *int `json:"series,omitempty"`
	// Breakdown is a value of the insight's breakdown: a string, a json.Number, or a []any of these; nil for any.
	Breakdown any `json:"breakdown,omitempty"`
	// Compare is "current" or "previous"; nil for the current period.
	Compare *string `json:"compare,omitempty"`
}

// StickinessActors asks for the actors of a stickiness that were active in so many intervals (contract: stickiness.md,
// section 9).
type StickinessActors struct {
	drill
	Source *Stickiness `json:"-"`
	// Day is the number of intervals; 0 for any.
	Day int `json:"day,omitempty"`
	// Operator compares with Day; empty for what the source counts: Exactly, or AtLeast when it is cumulative.
	Operator CriteriaOperator `json:"operator,omitempty"`
	// Series is the index of a series; nil for the first.
	Series *int `json:"series,omitempty"`
	// Compare is "current" or "previous"; nil for the current period.
	Compare *string `json:"compare,omitempty"`
}

// FunnelsActors asks for the actors of a step of a funnel.
type FunnelsActors struct {
	drill
	Source *Funnels `json:"-"`
	// FunnelStep is the step that actors reached, from 1; negative for those who left before it; nil when none is given.
	FunnelStep *int `json:"funnelStep,omitempty"`
	// FunnelCustomSteps are steps that actors reached; they go before FunnelStep.
	FunnelCustomSteps []int `json:"funnelCustomSteps,omitempty"`
	// FunnelStepBreakdown is a value of the breakdown: a string, a json.Number, or a []any of these; nil for any.
	FunnelStepBreakdown any `json:"funnelStepBreakdown,omitempty"`
	// FunnelTrendsDropOff tells those who left from those who converted, in a funnel over time; nil when it is not given.
	FunnelTrendsDropOff *bool `json:"funnelTrendsDropOff,omitempty"`
	// FunnelTrendsEntrancePeriodStart is the start of the bucket in which the actors entered a funnel over time.
	FunnelTrendsEntrancePeriodStart *string `json:"funnelTrendsEntrancePeriodStart,omitempty"`
}

// Kind returns ActorsQuery.
func (*Actors) Kind() string { return "ActorsQuery" }

// Text is that of a HogQL source; mistakes in the other texts name the field.
func (q *Actors) Text() string {
	if source, ok := q.Source.(*HogQL); ok {
		return source.Text()
	}
	return ""
}

func (*Actors) node() {}

// Canonical leaves out what only labels the query.
func (q *Actors) Canonical() []byte {
	if q.Source == nil {
		return canonical(q.Kind(), q)
	}
	return canonicalOver(q.Kind(), q.Source, q)
}

// Field gives the dotted path of a field of the node, for the attr of a mistake.
func (q *Actors) Field(name string) string { return (&Common{At: q.At}).Field(name) }

// Kind returns InsightActorsQuery.
func (*InsightActors) Kind() string { return "InsightActorsQuery" }

// Behind is the insight.
func (q *InsightActors) Behind() Insight { return q.Source }

// Canonical leaves out what only changes how the insight is shown.
func (q *InsightActors) Canonical() []byte { return canonicalOver(q.Kind(), q.Source, q) }

// Kind returns StickinessActorsQuery.
func (*StickinessActors) Kind() string { return "StickinessActorsQuery" }

// Behind is the insight.
func (q *StickinessActors) Behind() Insight { return q.Source }

// Canonical leaves out what only changes how the insight is shown.
func (q *StickinessActors) Canonical() []byte { return canonicalOver(q.Kind(), q.Source, q) }

// Kind returns FunnelsActorsQuery.
func (*FunnelsActors) Kind() string { return "FunnelsActorsQuery" }

// Behind is the insight.
func (q *FunnelsActors) Behind() Insight { return q.Source }

// Canonical leaves out what only changes how the insight is shown.
func (q *FunnelsActors) Canonical() []byte { return canonicalOver(q.Kind(), q.Source, q) }

func (*HogQL) actorsSource() {}

// canonicalOver is canonical for a node over another one.
func canonicalOver(kind string, source Node, node any) []byte {
	out := canonical(kind, node)
	out = append(out[:len(out)-1], `,"source":`...)
	return append(append(out, source.Canonical()...), '}')
}

func (r *reader) actors(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Actors{
		At: o.at.attr, Select: r.texts(o, "select"), Search: o.text("search"), OrderBy: r.texts(o, "orderBy"),
		Properties: r.properties(o, "properties"), Fixed: r.properties(o, "fixedProperties"), Modifiers: r.modifiers(o),
	}
	q.Limit, q.Offset = o.atLeast("limit", 1), o.atLeast("offset", 0)
	if source := r.source(o, "InsightActorsQuery", "FunnelsActorsQuery", "FunnelCorrelationActorsQuery", "StickinessActorsQuery", "HogQLQuery"); source != nil {
		switch source.kind {
		case "HogQLQuery":
			q.Source, _ = r.hogql(source.m, source.at).(*HogQL)
		case "FunnelCorrelationActorsQuery":
			r.add(source.at, "value_error", "Unsupported query kind: FunnelCorrelationActorsQuery")
		default:
			q.Source, _ = r.insightActors(source.kind, source.m, source.at).(ActorsSource)
		}
	}
	r.tags(o)
	o.ignore(labels...)
	o.close()
	return q
}

// found is the node in a field source, of a kind that can stand there.
type found struct {
	kind string
	m    map[string]any
	at   place
}

// source finds the node in the field source; nil when there is none, or one of another kind, which is noted.
func (r *reader) source(o *object, kinds ...string) *found {
	given, ok := o.take("source")
	if !ok {
		return nil
	}
	at := o.field("source")
	m, ok := given.(map[string]any)
	if !ok {
		r.add(at, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from")
		return nil
	}
	for _, kind := range kinds {
		if m["kind"] == kind {
			return &found{kind, m, at.below(kind, false)}
		}
	}
	r.add(at, "union_tag_invalid", "Input tag '"+shown(m["kind"])+"' found using 'kind' does not match any of the expected tags: "+oneOf(kinds))
	return nil
}

// insightActors reads a node that asks for the actors behind a number. One over a stickiness or a funnel is that of its kind,
// whatever it is called. The node is nil when its source cannot be read.
func (r *reader) insightActors(kind string, m map[string]any, at place) Node {
	o := r.object(m, at)
	o.required("source")
	d := drill{At: o.at.attr, Recordings: o.flag("includeRecordings"), Modifiers: r.modifiers(o)}
	r.tags(o)
	o.ignore(labels...)
	behind := r.behind(kind, o)
	var out Node
	switch source := behind.(type) {
	case nil:
		return nil
	case *Funnels:
		out = r.funnelsActors(o, d, source)
	case *Stickiness:
		out = r.stickinessActors(o, d, source)
	default:
		out = r.numberActors(o, d, source)
	}
	o.close()
	return out
}

// behind reads the insight of a node that asks for its actors; nil for none that such a node can have.
func (r *reader) behind(kind string, o *object) Insight {
	kinds := []string{"TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery", "LifecycleQuery"}
	switch kind {
	case "StickinessActorsQuery":
		kinds = []string{"StickinessQuery"}
	case "FunnelsActorsQuery":
		kinds = []string{"FunnelsQuery"}
	}
	source := r.source(o, kinds...)
	if source == nil {
		return nil
	}
	read, ok := insights[source.kind]
	if !ok {
		r.add(source.at, "value_error", "Unsupported query kind: "+source.kind)
		return nil
	}
	out, _ := read(r, source.m, source.at).(Insight)
	return out
}

func (r *reader) numberActors(o *object, d drill, source Insight) Node {
	return &InsightActors{
		drill: d, Source: source, Day: r.day(o, "day"), Status: o.choice("status", "", Statuses...),
		Interval: r.index(o, "interval"), Series: r.index(o, "series"), Breakdown: r.breakdownValue(o, "breakdown"), Compare: o.period(),
	}
}

func (r *reader) stickinessActors(o *object, d drill, source *Stickiness) Node {
	q := &StickinessActors{
		drill: d, Source: source, Series: r.index(o, "series"), Compare: o.period(),
		Operator: CriteriaOperator(o.choice("operator", "", string(AtLeast), string(AtMost), string(Exactly))),
	}
	o.ignore("status", "interval", "breakdown")
	if day := r.day(o, "day"); day != nil {
		n, err := strconv.Atoi(*day)
		if err != nil || n < 1 {
			r.add(o.field("day"), "int_type", "Input should be a number of intervals, from 1")
		}
		q.Day = n
	}
	return q
}

func (r *reader) funnelsActors(o *object, d drill, source *Funnels) Node {
	q := &FunnelsActors{drill: d, Source: source, FunnelStepBreakdown: r.breakdownValue(o, "funnelStepBreakdown")}
	if n, ok := o.integer("funnelStep"); ok {
		q.FunnelStep = &n
	}
	for i, item := range o.list("funnelCustomSteps") {
		number, _ := item.(json.Number)
		n, ok := whole(number)
		if !ok {
			r.add(o.field("funnelCustomSteps").below(strconv.Itoa(i), true), "int_type", "Input should be a valid integer")
		}
		q.FunnelCustomSteps = append(q.FunnelCustomSteps, int(n))
	}
	q.FunnelTrendsDropOff = o.flagOrNil("funnelTrendsDropOff")
	if start := o.text("funnelTrendsEntrancePeriodStart"); start != "" {
		q.FunnelTrendsEntrancePeriodStart = &start
	}
	return q
}

// day reads a field that holds a text or a whole number, as text; nil when there is none.
func (r *reader) day(o *object, name string) *string {
	given, ok := o.take(name)
	if !ok {
		return nil
	}
	switch v := given.(type) {
	case string:
		return &v
	case json.Number:
		if n, ok := whole(v); ok {
			text := strconv.FormatInt(n, 10)
			return &text
		}
	}
	r.add(o.field(name), "string_type", "Input should be a valid string or integer")
	return nil
}

// index reads a position, from 0; nil when there is none.
func (r *reader) index(o *object, name string) *int {
	if _, ok := o.take(name); !ok {
		return nil
	}
	i := o.atLeast(name, 0)
	return &i
}

// breakdownValue reads a value of a breakdown: text, a number, or a list of these; nil when there is none.
func (r *reader) breakdownValue(o *object, name string) any {
	given, ok := o.take(name)
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
			r.add(o.field(name).below(strconv.Itoa(i), true), "string_type", "Input should be a valid string or integer")
		}
	}
	if !isList && !plain(given) {
		r.add(o.field(name), "string_type", "Input should be a valid string, integer or list")
		return nil
	}
	return given
}

// period reads which of two compared periods is meant; nil when that is not said.
func (o *object) period() *string {
	word := o.choice("compare", "", "current", "previous")
	if word == "" {
		return nil
	}
	return &word
}
