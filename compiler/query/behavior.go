package query

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
)

// The behaviors that a filter can ask for. Cohorts have more.
const (
	performed         = "performed_event"
	performedMultiple = "performed_event_multiple"
)

// maxBehaviorNumber bounds the numbers in a behavioral filter, so that computing with them stays in range.
const maxBehaviorNumber = 100_000

// maxBehaviorFilters bounds the filters on the events of a behavioral filter.
const maxBehaviorFilters = 50

// behavior reads a property filter of the type behavioral.
func (r *Reader) behavior(o *Object) Property {
	b := &filter.Behavior{
		Negated: o.Flag("negation"), Count: r.behaviorNumber(o, "time_value"), Unit: o.Text("time_interval"),
		From: o.Text("explicit_datetime"), To: o.Text("explicit_datetime_to"),
	}
	kind, operator, times := o.Text("value"), o.Text("operator"), r.behaviorNumber(o, "operator_value")
	switch kind {
	case performed:
	case performedMultiple:
		if operator == "" && times == 0 {
			operator = "gte"
		}
		var ok bool
		if b.Operator, ok = filter.BehaviorOperator(operator); !ok {
			r.Add(o.Field("operator"), "enum", "Input should be 'gte', 'lte', 'gt', 'lt', 'eq' or 'exact'")
		}
		b.Times = max(times, 1)
	default:
		r.Add(o.Field("value"), "value_error", "The behavior '"+diag.Shown(kind)+"' cannot be asked for by a filter: use "+performed+" or "+performedMultiple+
			", or make a cohort with this behavior and filter by it")
	}
	r.behaviorEntity(o, b)
	switch {
	case b.From != "":
	case b.To != "" || b.Count == 0 || b.Unit == "":
		r.Add(o.At, "value_error", "A behavioral filter needs a time: time_value and time_interval, or explicit_datetime")
	case !filter.IsBehaviorUnit(b.Unit):
		r.Add(o.Field("time_interval"), "enum", "Input should be 'day', 'week', 'month' or 'year'")
	}
	if list := o.List("event_filters"); len(list) > maxBehaviorFilters {
		r.Add(o.Field("event_filters"), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxBehaviorFilters, len(list)))
	} else {
		b.Filters = r.behaviorFilters(list, o.Field("event_filters"))
	}
	o.Ignore("label")
	o.Close()
	return Property{Type: filter.BehavioralType, Value: kind, Behavior: b}
}

// behaviorEntity reads which events count: an event by its name, or an action by its number.
func (r *Reader) behaviorEntity(o *Object, b *filter.Behavior) {
	key, given := o.Take("key")
	text, ok := key.(string)
	if number, isNumber := key.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	switch typ := o.Text("event_type"); {
	case !given:
		r.Add(o.Field("key"), "missing", "Field required")
	case !ok:
		r.Add(o.Field("key"), "string_type", "Input should be a valid string")
	case typ == "events":
		b.Event = text
	case typ == "actions":
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			r.Add(o.Field("key"), "int_parsing", "The key of an action is its number")
		}
		b.Action = id
	default:
		r.Add(o.Field("event_type"), "enum", "Input should be 'events' or 'actions'")
	}
}

// behaviorNumber reads a number above 0; 0 if there is none.
func (r *Reader) behaviorNumber(o *Object, name string) int {
	n, ok := o.Integer(name)
	if ok && (n < 1 || n > maxBehaviorNumber) {
		r.Add(o.Field(name), "value_error", fmt.Sprintf("Input should be an integer from 1 to %d", maxBehaviorNumber))
		return 1
	}
	return n
}

// behaviorFilters reads the filters on the events. They cannot be behavioral themselves.
func (r *Reader) behaviorFilters(list []any, at Place) []Property {
	var out []Property
	for i, item := range list {
		at := at.Below(strconv.Itoa(i), true)
		if fields, ok := item.(map[string]any); ok && fields["type"] == filter.BehavioralType {
			r.Add(at.Below("type", true), "value_error", "The events of a behavioral filter cannot be filtered by behavior")
			continue
		}
		p, ok := r.property(item, at)
		if !ok {
			continue
		}
		r.checkOperator(&p, at)
		out = append(out, p)
	}
	return out
}

// echoBehavior returns the fields of a behavioral filter as in the API.
func echoBehavior(p *Property) map[string]any {
	b := p.Behavior
	out := map[string]any{"type": p.Type, "value": p.Value, "key": b.Event, "event_type": "events"}
	if b.Action != 0 {
		out["key"], out["event_type"] = strconv.FormatInt(b.Action, 10), "actions"
	}
	if b.Operator != "" {
		out["operator"], out["operator_value"] = b.Operator, b.Times
	}
	if b.Count > 0 {
		out["time_value"], out["time_interval"] = b.Count, b.Unit
	}
	for name, text := range map[string]string{"explicit_datetime": b.From, "explicit_datetime_to": b.To} {
		if text != "" {
			out[name] = text
		}
	}
	if b.Negated {
		out["negation"] = true
	}
	if len(b.Filters) > 0 {
		filters := make([]any, len(b.Filters))
		for i := range b.Filters {
			filters[i] = (&Condition{Filter: &b.Filters[i]}).Echo()
		}
		out["event_filters"] = filters
	}
	return out
}
