package lifecycle

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// Choices returns the days and statuses that a drill-down can ask for (contract: lifecycle.md, section 7). The error is a *diag.Error.
func Choices(q *Query, w *insight.World) (*insight.Built, error) {
	dates, err := rangeOf(q, w)
	if err != nil {
		return nil, err
	}
	return insight.ChoicesOf(dates, func(dates *insight.Range) insight.Choices {
		var first time.Time
		if q.DateRange.Explicit {
			first = dates.From
		}
		return insight.Choices{Day: insight.DayChoices(dates, first), Status: []insight.Choice{
			{Label: "Dormant", Value: "dormant"}, {Label: "New", Value: "new"}, {Label: "Resurrecting", Value: "resurrecting"}, {Label: "Returning", Value: "returning"},
		}}
	}), nil
}
