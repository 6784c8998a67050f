package funnels

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(q *Query) form.Form {
	switch {
	case q.Viz == VizTrends:
		return form.List(form.Object(form.Members{
			"count": form.Number(), "data": form.Numbers().Says("Per cent that converted."), "days": form.Texts(), "labels": form.Texts(),
			"breakdown_value?": form.BreakdownValue(),
		}).As("FunnelTrendsItem"))
	case q.Viz == VizTimeToConvert:
		bin := form.Numbers()
		bin.Size = 2
		return form.Object(form.Members{
			"bins":                    form.List(bin).Says("From how many seconds on, and how many people."),
			"average_conversion_time": form.Number().OrNull(), "median_conversion_time?": form.Number().OrNull(),
		}).As("FunnelTimes")
	case q.Breakdowns == nil:
		return form.List(stepForm(q, form.BreakdownValue()))
	case len(q.Breakdowns.Fields) == 1 && len(q.Breakdowns.Fields[0].Cohorts) > 0:
		id := form.Integer().Says("The id of the cohort, 0 for all people.")
		if len(q.Breakdowns.Fields[0].Cohorts) == 1 {
			id = form.Integer().Says("The id of the cohort, 0 for all people, " + outsiderValue + " for all who are not in the cohort.")
			id.Format = "int64"
		}
		return form.List(form.List(stepForm(q, id)))
	}
	return form.List(form.List(stepForm(q, form.BreakdownValue())))
}

func stepForm(q *Query, value form.Form) form.Form {
	return form.Object(form.Members{
		"action_id": insight.CountedForm(q.Series).OrNull(), "name": form.Text().OrNull(), "custom_name": form.Text().OrNull(), "order": form.Integer(),
		"people": form.List(form.Form{}), "count": form.Number().Says("Actors that reached at least this step."), "type": form.Text(),
		"average_conversion_time": form.Number().OrNull().Says("Seconds from the step before."), "median_conversion_time": form.Number().OrNull(),
		"breakdown?": form.BreakdownValue(), "breakdown_value?": value,
	}).As("FunnelStep")
}

// Table formats the results as a table.
func Table(q *Query, results []byte) ([][]string, error) {
	switch q.Viz {
	case VizTrends:
		return insight.SeriesTable(results)
	case VizTimeToConvert:
		return binsTable(results)
	case VizSteps, VizFlow:
	}
	return stepsTable(results)
}

// stepsTable has a line for each step, and each value of a breakdown.
func stepsTable(results []byte) ([][]string, error) {
	type step struct {
		Name      string          `json:"name"`
		Custom    string          `json:"custom_name"`
		Order     json.RawMessage `json:"order"`
		Count     json.RawMessage `json:"count"`
		Average   json.RawMessage `json:"average_conversion_time"`
		Median    json.RawMessage `json:"median_conversion_time"`
		Breakdown json.RawMessage `json:"breakdown"`
	}
	var funnels [][]step
	if !bytes.HasPrefix(bytes.TrimSpace(results), []byte("[[")) {
		results = slices.Concat([]byte("["), results, []byte("]"))
	}
	if err := json.Unmarshal(results, &funnels); err != nil {
		return nil, err // the caller wraps it
	}
	out := [][]string{{"step", "name", "count", "average_conversion_seconds", "median_conversion_seconds", "breakdown"}}
	for _, steps := range funnels {
		for _, s := range steps {
			name := s.Name
			if s.Custom != "" {
				name = s.Custom
			}
			out = append(out, []string{
				insight.Cell(s.Order), name, insight.Cell(s.Count), insight.Cell(s.Average), insight.Cell(s.Median), insight.Cell(s.Breakdown),
			})
		}
	}
	return out, nil
}

// binsTable lists how many converted in which time.
func binsTable(results []byte) ([][]string, error) {
	var times struct {
		Bins [][2]json.RawMessage `json:"bins"`
	}
	if err := json.Unmarshal(results, &times); err != nil {
		return nil, err // the caller wraps it
	}
	out := [][]string{{"from_seconds", "people"}}
	for _, bin := range times.Bins {
		out = append(out, []string{insight.Cell(bin[0]), insight.Cell(bin[1])})
	}
	return out, nil
}
