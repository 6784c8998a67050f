package retention

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.Object(form.Members{
		"values": form.List(form.Object(form.Members{"count": form.Number(), "label": form.Text(), "aggregation_value?": form.Number().OrNull()})),
		"label":  form.Text(), "date": form.Moment(), "breakdown_value": form.Text().OrNull(),
	}).As("RetentionItem"))
}

// Table formats the results as a table with a line for each cohort.
func Table(_ *Query, results []byte) ([][]string, error) {
	var cohorts []struct {
		Date      string          `json:"date"`
		Breakdown json.RawMessage `json:"breakdown_value"`
		Values    []struct {
			Label string          `json:"label"`
			Count json.RawMessage `json:"count"`
		} `json:"values"`
	}
	if err := json.Unmarshal(results, &cohorts); err != nil {
		return nil, err // the caller wraps it
	}
	names := []string{"date", "breakdown"}
	if len(cohorts) > 0 {
		for _, v := range cohorts[0].Values {
			names = append(names, v.Label)
		}
	}
	out := [][]string{names}
	for _, c := range cohorts {
		cells := []string{c.Date, insight.Cell(c.Breakdown)}
		for _, v := range c.Values {
			cells = append(cells, insight.Cell(v.Count))
		}
		out = append(out, cells)
	}
	return out, nil
}
