package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// VariableNames returns the names of the variables that an insight takes when it is run as an endpoint (contract: api.md, section 5.5): its
// breakdown properties, and the ends of its date range.
func VariableNames(n Insight) []string {
	names := []string{"date_from", "date_to"}
	parts := n.Parts()
	if parts.Breakdowns == nil || *parts.Breakdowns == nil {
		return names
	}
	for _, f := range (*parts.Breakdowns).Fields {
		if f.Type != "cohort" && !slices.Contains(names, f.Property) {
			names = append(names, f.Property)
		}
	}
	return names
}

// Bind returns a copy of an insight with the values of variables applied: a date replaces its end of the range, and "" or null keeps it; the value of a
// breakdown property restricts the events to those with that value, and "" or null to those without any. Each name must be one of VariableNames.
// The error is a *diag.Error.
func Bind(n Insight, values map[string]any) (Insight, error) {
	out := n.Clone()
	parts := out.Parts()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if name == "date_from" || name == "date_to" {
			text, ok := value.(string)
			if !ok && value != nil {
				return nil, diag.Field(diag.InvalidInput, "variables."+name, "Input should be a valid string")
			}
			switch {
			case text == "":
			case name == "date_from":
				parts.DateRange.From, parts.DateRange.FromAt = text, "variables.date_from"
			default:
				parts.DateRange.To, parts.DateRange.ToAt = text, "variables.date_to"
			}
			continue
		}
		for _, f := range (*parts.Breakdowns).Fields {
			if f.Property != name {
				continue
			}
			if !plainValue(value) {
				return nil, diag.Field(diag.InvalidInput, "variables."+diag.Shown(name), "Input should be a string, a number, a boolean or a list of them")
			}
			filter, err := f.filter(value)
			if err != nil {
				return nil, diag.Field(diag.InvalidInput, "variables."+diag.Shown(name), "%v", err)
			}
			filter.At = "variables." + diag.Shown(name)
			parts.Properties = Both(parts.Properties, filter)
		}
	}
	return out, nil
}

// filter returns the condition that an event has a value for a breakdown.
func (b *Breakdown) filter(value any) (*Condition, error) {
	p := Property{Type: b.Type, Key: b.Property, Operator: "exact", Value: value, Group: b.Group}
	if value == nil || value == "" {
		p.Operator, p.Value = "is_not_set", nil
	}
	var x hogql.Expr
	switch b.Type {
	case "hogql":
		var err error
		if x, err = hogql.ParseExpr(b.Property); err != nil {
			return nil, fmt.Errorf("its expression cannot be read: %w", err)
		}
	case "element": // filters of this type look at all elements
		if x = filter.Clicked(b.Property, filter.Subject{}); x == nil {
			return &Condition{Filter: &p}, nil // compiling reports what is wrong with it
		}
		x = &hogql.Call{Name: "nullIf", Args: []hogql.Expr{x, &hogql.Const{Value: ""}}}
	default:
		return &Condition{Filter: &p}, nil
	}
	p = Property{Type: "hogql", Key: hogql.PrintExpr(equals(&hogql.Call{Name: "toString", Args: []hogql.Expr{x}}, value))}
	return &Condition{Filter: &p}, nil
}

// equals returns the condition that a text is a value, or one of a list of values.
func equals(x hogql.Expr, value any) hogql.Expr {
	list, ok := value.([]any)
	if !ok {
		return &hogql.Compare{Op: hogql.Equals, Left: x, Right: &hogql.Const{Value: textOf(value)}}
	}
	texts, none := new(hogql.Tuple), false
	for _, item := range list {
		if text := textOf(item); text != nil {
			texts.Items = append(texts.Items, &hogql.Const{Value: text})
		} else {
			none = true
		}
	}
	var is []hogql.Expr
	if len(texts.Items) > 0 {
		is = append(is, &hogql.Compare{Op: hogql.In, Left: x, Right: texts})
	}
	if none {
		is = append(is, &hogql.Compare{Op: hogql.Equals, Left: x, Right: &hogql.Const{}})
	}
	switch len(is) {
	case 0:
		return &hogql.Const{Value: false}
	case 1:
		return is[0]
	}
	return &hogql.Logic{Or: true, Args: is}
}

// textOf returns a plain value in the form of breakdown values; nil for none.
func textOf(value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		if value == "" {
			return nil
		}
		return value
	case json.Number:
		return value.String()
	}
	return fmt.Sprint(value)
}
