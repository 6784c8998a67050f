package execution

import (
	"cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// actionsOf returns the actions that queries can refer to.
func actionsOf(list []registry.ActionDefinition) *query.Actions {
	out := make([]query.Action, len(list))
	for i := range list {
		out[i] = actionOf(&list[i])
	}
	return query.NewActions(out)
}

// actionOf converts an action to the form that queries use. A filter that cannot be read, or a regular expression that is too large, is reported to
// the queries that use the action.
func actionOf(d *registry.ActionDefinition) query.Action {
	out := query.Action{ID: d.ID, Name: valueOf(d.Name), Deleted: d.Deleted, Steps: make([]query.ActionStep, len(d.Steps))}
	for i := range d.Steps {
		step := &d.Steps[i]
		out.Steps[i] = query.ActionStep{
			Event: valueOf(step.Event), URL: valueOf(step.URL), URLMatching: query.Matching(valueOf(step.URLMatching)),
			Selector: valueOf(step.Selector), TagName: step.TagName,
			Text: step.Text, TextMatching: query.Matching(valueOf(step.TextMatching)),
			Href: step.Href, HrefMatching: query.Matching(valueOf(step.HrefMatching)),
		}
		out.Unreadable = cmp.Or(out.Unreadable, out.Steps[i].BadRegex())
		if len(step.Properties) == 0 {
			continue
		}
		var err error
		if out.Steps[i].Properties, err = query.ParseActionProperties(step.Properties); err != nil {
			out.Unreadable = cmp.Or(out.Unreadable, err.Error())
		}
	}
	return out
}

// valueOf returns the value behind a pointer; the zero value for nil.
func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
