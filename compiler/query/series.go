package query

import "strconv"

// Series is what one series, step or entity of an insight counts (contract: api.md, section 2.3).
type Series struct {
	// At is the place of the node in the JSON, such as series.0.
	At   string     `json:"-"`
	Kind SeriesKind `json:"kind"`
	// Event is the name of the event; nil for all events. Only in an EventsNode.
	Event *string `json:"event,omitempty"`
	// EventField is the field with that name; empty for event.
	EventField string `json:"-"`
	// Action is the number of the action. Only in an ActionsNode.
	Action int64 `json:"action,omitempty"`
	// Members are the nodes of a GroupNode. An event that matches several of them counts once.
	Members []Series `json:"members,omitempty"`

	Name       string `json:"name,omitempty"`
	CustomName string `json:"custom_name,omitempty"`
	// Properties and Fixed are two conditions on the series' events; both must hold. nil for none.
	Properties *Condition `json:"properties,omitempty"`
	Fixed      *Condition `json:"fixedProperties,omitempty"`
	Math       Math       `json:"math,omitzero"`
	// Optional reports whether a funnel can be completed without this step.
	Optional bool `json:"optionalInFunnel,omitempty"`
}

// SeriesKind is the kind of a series node.
type SeriesKind string

// The kinds of series. Data warehouse tables are not supported.
const (
	EventsNode  SeriesKind = "EventsNode"
	ActionsNode SeriesKind = "ActionsNode"
	GroupNode   SeriesKind = "GroupNode"
)

// Math says how a number is computed from the events of a series (contract: api.md, section 2.3).
type Math struct {
	// Kind is the API's word, such as dau; empty for the default of the insight's kind.
	Kind string `json:"math,omitempty"`
	// Property is what sums and quantiles are computed over, and PropertyType what it is a property of: event_properties, person_properties,
	// session_properties, or empty.
	Property     string `json:"math_property,omitempty"`
	PropertyType string `json:"math_property_type,omitempty"`
	// Multiplier scales a property's values; nil for 1.
	Multiplier *float64 `json:"math_multiplier,omitempty"`
	// HogQL is an aggregate expression.
	HogQL string `json:"math_hogql,omitempty"`
	// Group is the group type that is counted; nil if not given.
	Group *int `json:"math_group_type_index,omitempty"`
}

// maths are the words for math (contract: api.md, section 2.3, and trends.md, section 5).
var maths = []string{
	"total", "dau", "weekly_active", "monthly_active", "unique_session", "first_time_for_user", "first_matching_event_for_user",
	"first_time_for_user_with_filters", "first_time_for_group", "first_matching_event_for_group",
	"avg", "sum", "min", "max", "median", "p75", "p90", "p95", "p99",
	"avg_count_per_actor", "min_count_per_actor", "max_count_per_actor", "median_count_per_actor",
	"p75_count_per_actor", "p90_count_per_actor", "p95_count_per_actor", "p99_count_per_actor",
	"unique_group", "hogql",
}

// MaxSeries bounds the series of an insight.
const MaxSeries = 100

// Series reads the required field series.
func (r *Reader) Series(o *Object) []Series {
	o.Required("series")
	return r.seriesList(o.List("series"), o.Field("series"))
}

func (r *Reader) seriesList(list []any, at Place) []Series {
	if len(list) > MaxSeries {
		r.Add(at, "too_long", "List should have at most "+strconv.Itoa(MaxSeries)+" items after validation, not "+strconv.Itoa(len(list)))
		return nil
	}
	out := make([]Series, len(list))
	for i, item := range list {
		out[i] = r.SeriesNode(item, at.Below(strconv.Itoa(i), true), true)
	}
	return out
}

// SeriesNode reads one node. Groups cannot contain groups.
func (r *Reader) SeriesNode(v any, at Place, groups bool) Series {
	o := r.Object(v, at)
	s := Series{
		At: at.Attr, Kind: SeriesKind(o.Choice("kind", string(EventsNode), string(EventsNode), string(ActionsNode), string(GroupNode))),
	}
	switch s.Kind {
	case EventsNode:
		if event, ok := Take[string](o, "event", "string_type", "Input should be a valid string"); ok {
			s.Event = &event
		}
		o.Ignore("limit", "orderBy")
	case ActionsNode:
		o.Required("id")
		s.Action, _ = o.ActionID("id")
	case GroupNode:
		o.Ignore("limit", "orderBy")
		if !groups {
			r.Add(o.Field("kind"), "value_error", "A GroupNode cannot hold another one")
		} else {
			if o.Choice("operator", "OR", "AND", "OR") == "AND" {
				r.Add(o.Field("operator"), "value_error", "Groups of events with the operator AND are not supported")
			}
			for i, item := range o.List("nodes") {
				s.Members = append(s.Members, r.SeriesNode(item, o.Field("nodes").Below(strconv.Itoa(i), true), false))
			}
			if len(s.Members) == 0 {
				r.Add(o.Field("nodes"), "too_short", "List should have at least 1 item after validation, not 0")
			}
		}
	default: // noted by choice
		return s
	}
	r.seriesFields(o, &s)
	o.Close()
	return s
}

// seriesFields reads the fields of all series nodes.
func (r *Reader) seriesFields(o *Object, s *Series) {
	s.Name, s.CustomName = o.Text("name"), o.Text("custom_name")
	s.Properties, s.Fixed = r.Properties(o, "properties"), r.Properties(o, "fixedProperties")
	s.Optional = o.Flag("optionalInFunnel")
	s.Math = Math{
		Kind: o.Choice("math", "", maths...), Property: o.Text("math_property"), PropertyType: o.Text("math_property_type"),
		HogQL: o.Text("math_hogql"), Group: r.GroupType(o, "math_group_type_index"),
	}
	if f, ok := o.Number("math_multiplier"); ok {
		s.Math.Multiplier = &f
	}
	if given, ok := o.Take("math_property_revenue_currency"); ok {
		c := r.Object(given, o.Field("math_property_revenue_currency"))
		c.Ignore("property", "static")
		c.Close()
		if s.Math.Property != "" { // otherwise there is no amount to convert
			r.Refuse(o.Field("math_property_revenue_currency"), "Conversion of currencies is not supported")
		}
	}
	o.Ignore(labels...)
}
