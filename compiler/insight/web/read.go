package web

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// readGoal reads a goal: the number of an action, or the name of an event.
func readGoal(r *query.Reader, given any, at query.Place) *query.Goal {
	o := r.Object(given, at)
	goal := &query.Goal{At: at.Attr}
	if action, ok := o.ActionID("actionId"); ok {
		goal.Action = &action
	}
	if event, ok := query.Take[string](o, "customEventName", "string_type", "Input should be a valid string"); ok {
		goal.Event = &event
	}
	action, event := o.Given["actionId"] != nil, o.Given["customEventName"] != nil
	switch {
	case action && event:
		r.Add(at, "value_error", "Input should have actionId or customEventName, not both")
	case o.Given != nil && !action && !event:
		r.Add(o.Field("actionId"), "missing", "Field required")
	}
	o.Close()
	return goal
}

// readSampling reads the share of people asked for; nil for all people.
func readSampling(r *query.Reader, given any, at query.Place) *Rate {
	o := r.Object(given, at)
	enabled := o.Flag("enabled")
	defer o.Close()
	forced, ok := o.Take("forceSamplingRate")
	if !ok {
		return nil
	}
	f := r.Object(forced, o.Field("forceSamplingRate"))
	f.Required("numerator")
	var rate Rate
	rate.Numerator, ok = f.Number("numerator")
	if of, given := f.Number("denominator"); given {
		rate.Denominator = &of
	}
	f.Close()
	if !ok {
		return nil
	}
	if rate.Numerator <= 0 || rate.Denominator != nil && *rate.Denominator <= 0 || rate.share() > 1 {
		r.Add(f.At, "value_error", "Input should be greater than 0 and at most 1")
		return nil
	}
	if !enabled {
		return nil
	}
	return &rate
}

// checkTypes refuses types of filters that web analytics does not have.
func checkTypes(o *query.Object, given any, at query.Place) {
	switch v := given.(type) {
	case []any:
		for i, item := range v {
			checkTypes(o, item, at.Below(strconv.Itoa(i), true))
		}
	case map[string]any:
		if values, group := v["values"]; group {
			checkTypes(o, values, at.Below("values", true))
			return
		}
		if word, ok := v["type"].(string); ok && !slices.Contains(propertyTypes, word) {
			o.Word(word, at.Below("type", true), propertyTypes...)
		}
	}
}

// Order is the column by which rows are ordered; the zero value is none.
type Order struct {
	// By is the API's word for the column, such as Visitors.
	By string `json:"by,omitempty"`
	// Ascending puts the smallest first.
	Ascending bool `json:"ascending,omitempty"`
}

// orders are the API's words for columns to order by.
var orders = strings.Fields(`Visitors Views Clicks BounceRate AverageScrollPercentage ScrollGt80Percentage TotalConversions
UniqueConversions ConversionRate ConvertingUsers RageClicks DeadClicks Errors`)

// ReadOrder reads the field orderBy: a word for a column, and ASC or DESC, which is the default.
func ReadOrder(r *query.Reader, o *query.Object) Order {
	list, at := o.List("orderBy"), o.Field("orderBy")
	if list == nil {
		return Order{}
	}
	if len(list) == 0 || len(list) > 2 {
		r.Add(at, "value_error", "Input should be a column and 'ASC' or 'DESC'")
		return Order{}
	}
	out := Order{By: o.Word(list[0], at.Below("0", true), orders...)}
	if len(list) > 1 {
		out.Ascending = o.Word(list[1], at.Below("1", true), "ASC", "DESC") == "ASC"
	}
	return out
}
