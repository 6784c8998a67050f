package stickiness

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(q *Query) form.Form {
	return form.List(form.Compared(form.Members{
		"action": form.Action(insight.CountedForm(q.Series), nil), "label": form.Text(), "count": form.Number(),
		"data": form.List(form.Number()).Says("data[i] people were active in i+1 intervals."),
		"days": form.List(form.Integer()), "labels": form.Texts(),
	}).As("StickinessItem"))
}
