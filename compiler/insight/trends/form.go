package trends

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Form is the form of the results.
func Form(q *Query) form.Form {
	if q.Display == BoxPlot {
		return boxForm()
	}
	value := form.BreakdownValue()
	if q.Breakdowns != nil && slices.ContainsFunc(q.Breakdowns.Fields, func(f query.Breakdown) bool { return len(f.Cohorts) > 0 }) {
		id, text := form.Integer(), form.Text().OrNull()
		value = form.Either(id, text, form.List(form.Either(id, text))).
			Says("The value, of a cohort its id, or all; null where it is missing. A list where there are several breakdowns.")
	}
	members := form.Members{
		"data": form.Numbers().Says("One number a bucket; none where one number stands for the whole range."),
		"days": form.Texts(), "labels?": form.Texts(), "count": form.Number().OrNull(), "aggregated_value?": form.Number().OrNull(), "label": form.Text(),
		"action": form.Action(insight.CountedForm(q.Series), form.Members{
			"days": form.List(form.Moment()), "math": form.Text().OrNull(), "math_property": form.Text().OrNull(), "math_hogql": form.Text().OrNull(),
			"math_group_type_index": form.Integer().OrNull(), "properties": form.Open(),
		}).OrNull(),
		"filter": form.Open(), "order": form.Integer(), "breakdown_value?": value,
	}
	if q.Display == Slope {
		members["incomplete_end"] = form.Bool().Says("Whether the last bucket is still running.")
	}
	name := "TrendsItem"
	if len(q.Formulas) > 0 && q.Display.Total() { // its items have a name of their own, since a document may describe others too
		name, members["data"] = "TrendsFormulaTotal", form.Numbers().OrNull().Says("Always null: one number stands for the whole range.")
	}
	return form.List(form.Compared(members).As(name))
}
