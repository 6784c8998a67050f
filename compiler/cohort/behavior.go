package cohort

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
)

// behavior reads a condition on events (contract: cohorts.md, section 3).
func (r *reader) behavior(o *object) Node {
	o.begin("behavioral", []string{"key", "value", "event_type"}, []string{
		"time_value", "time_interval", "explicit_datetime", "explicit_datetime_to", "event_filters", "operator", "operator_value",
		"seq_event", "seq_event_type", "seq_time_value", "seq_time_interval", "total_periods", "min_periods",
	})
	if r.mistake != nil {
		return nil
	}
	b := &Behavior{
		Leaf: o.base(), Kind: Kind(o.text("value")), Event: o.entity("key", "event_type"), Filters: o.eventFilters(),
		Window:   Window{Span: o.span("time_value", "time_interval"), From: o.date("explicit_datetime"), To: o.date("explicit_datetime_to")},
		Operator: o.operator(), Times: o.number("operator_value"),
		Recent: o.span("seq_time_value", "seq_time_interval"), Periods: o.number("total_periods"), Enough: o.number("min_periods"),
	}
	if b.Kind == Sequence {
		o.need(b.Kind, "seq_event", "seq_event_type")
		b.Then = o.entity("seq_event", "seq_event_type")
	}
	o.check(b)
	return b
}

// needs maps kinds of behavior to the fields they require in addition to the window of time_value and time_interval.
var needs = map[Kind][]string{
	Performed: nil, FirstTime: nil,
	Multiple:  {"operator_value"},
	Sequence:  {"seq_time_value", "seq_time_interval"},
	Stopped:   {"seq_time_value", "seq_time_interval"},
	Restarted: {"seq_time_value", "seq_time_interval"},
	Regularly: {"operator_value", "min_periods", "total_periods"},
}

// kinds lists the kinds for messages.
const kinds = "performed_event, performed_event_multiple, performed_event_first_time, performed_event_sequence, " +
	"stopped_performing_event, restarted_performing_event or performed_event_regularly"

// check refuses invalid behaviors.
func (o *object) check(b *Behavior) {
	more, known := needs[b.Kind]
	if !known {
		o.r.refuse(o.field("value"), "Unknown behavior '%s': use %s", diag.Shown(o.fields["value"]), kinds)
		return
	}
	if b.Window.From == "" || b.Kind == Restarted || b.Kind == Regularly { // without an explicit window
		o.need(b.Kind, "time_value", "time_interval")
	}
	o.need(b.Kind, more...)
	if b.Window.To != "" && b.Window.From == "" {
		o.r.refuse(o.field("explicit_datetime_to"), "The field explicit_datetime_to needs explicit_datetime too")
	}
	recent := slices.Contains(more, "seq_time_value") && (b.Window.From == "" || b.Kind == Restarted)
	if recent && b.Recent.Seconds() > b.Window.Span.Seconds() {
		o.r.refuse(o.field("seq_time_value"), "The window of seq_time_value cannot be longer than that of time_value")
	}
	if b.Kind == Regularly && b.Enough > b.Periods {
		o.r.refuse(o.field("min_periods"), "min_periods (%d) cannot be greater than total_periods (%d)", b.Enough, b.Periods)
	}
	switch b.Kind {
	case Multiple, Regularly:
	default:
		b.Operator, b.Times = "", 0
	}
}

// need refuses a behavior that lacks one of the named fields.
func (o *object) need(kind Kind, names ...string) {
	var missing []string
	for _, name := range names {
		if o.fields[name] == nil || o.fields[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		o.r.refuse(o.at, "Missing required keys for behavioral filter: %s (of %s)", strings.Join(missing, ", "), kind)
	}
}

// entity reads an event or an action from two fields.
func (o *object) entity(name, typeName string) Entity {
	value := o.fields[name]
	switch o.fields[typeName] {
	case "events":
		if n, ok := value.(json.Number); ok {
			return Entity{Event: n.String()}
		}
		return Entity{Event: o.text(name)}
	case "actions":
		n, ok := id(value)
		if !ok {
			o.r.refuse(o.field(name), "The key of an action is its number, not '%s'", diag.Shown(value))
		}
		return Entity{Action: n}
	}
	o.r.refuse(o.field(typeName), "Event type must be 'events' or 'actions'")
	return Entity{}
}

// span reads a length of time from two fields.
func (o *object) span(count, unit string) Span {
	s := Span{Count: o.number(count), Unit: Unit(o.text(unit))}
	if _, known := seconds[s.Unit]; !known && s.Unit != "" {
		o.r.refuse(o.field(unit), "Invalid interval: '%s'. It is minute, hour, day, week, month or year", diag.Shown(s.Unit))
	}
	return s
}

// date reads a date; empty if there is none.
func (o *object) date(name string) string {
	text := o.text(name)
	if text == "" {
		return ""
	}
	if !isDate(text) {
		o.r.refuse(o.field(name), "Invalid date '%s'. Expected a relative date (e.g., '-7d', '-3m') or an ISO 8601 date (e.g., '2024-01-15').", diag.Shown(text))
	}
	return text
}

// operator reads how the number of events is compared. Kinds that do not count accept any operator.
func (o *object) operator() string {
	kind := o.fields["value"]
	operator, ok := filter.BehaviorOperator(o.text("operator"))
	if !ok && (kind == string(Multiple) || kind == string(Regularly)) {
		o.r.refuse(o.field("operator"), "Input should be 'gte', 'lte', 'gt', 'lt', 'eq' or 'exact'")
	}
	return operator
}
