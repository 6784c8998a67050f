package lifecycle

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.Object(form.Members{
		"action": form.Action(form.Text().OrNull().Says("The event, or the number of the action; null for all events."), form.Members{"math": form.Text()}), "data": form.List(form.Number()), "count": form.Number(),
		"labels": form.Texts(), "days": form.Texts(), "label": form.Text(), "status": {Type: "string", Words: query.Statuses},
	}).As("LifecycleItem"))
}
