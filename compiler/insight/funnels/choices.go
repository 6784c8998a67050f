package funnels

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// baseline is the first choice of a breakdown: its value stands for no value, as does null.
var baseline = insight.Choice{Label: "Baseline", Value: "$$_posthog_breakdown_baseline_$$"}

// Choices returns the values of the breakdown that a drill-down can ask for; no choice if there is only the baseline. Times to convert offer
// cohorts, but no values of properties, since their results have none. The error is a *diag.Error.
func Choices(q *Query, w *insight.World) (*insight.Built, error) {
	b, err := newBuilder(q.listed(), w)
	if err != nil || b.value == nil {
		return insight.NoChoices(), err
	}
	if b.value.cohort {
		c := insight.Choices{Breakdown: []insight.Choice{baseline}}
		for _, cohort := range q.Breakdowns.Fields[0].Cohorts {
			c.Breakdown = append(c.Breakdown, insight.Choice{Label: w.CohortName(strconv.FormatInt(cohort.ID, 10)), Value: cohort.ID})
		}
		if b.value.outsiders {
			c.Breakdown = append(c.Breakdown, insight.Choice{Label: b.cohortName(outsiderValue), Value: outsider})
		}
		built := insight.NoChoices()
		built.Shape = func(iter.Seq[[]byte]) (*insight.Answer, error) { return c.Answer() }
		return built, nil
	}
	if q.Viz == VizTimeToConvert {
		return insight.NoChoices(), nil
	}
	built, err := Build(q, w)
	if err != nil {
		return nil, err
	}
	return &insight.Built{Query: built.Query, Shape: func(rows iter.Seq[[]byte]) (*insight.Answer, error) {
		answer, err := built.Shape(rows)
		if err != nil {
			return nil, err
		}
		c := insight.Choices{}
		if values, err := valuesOf(q, answer.Results); err != nil {
			return nil, err
		} else if len(values) > 0 {
			c.Breakdown = append([]insight.Choice{baseline}, values...)
		}
		return c.Answer()
	}}, nil
}

// valuesOf returns the breakdown values of some results, in their order.
func valuesOf(q *Query, results []byte) ([]insight.Choice, error) {
	type row struct {
		Value any `json:"breakdown_value"`
	}
	var rows []row
	var err error
	if q.Viz == VizTrends {
		err = json.Unmarshal(results, &rows)
	} else {
		var steps [][]row
		err = json.Unmarshal(results, &steps)
		for _, s := range steps {
			rows = append(rows, s[0])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results of a funnel: %w", err)
	}
	var out []insight.Choice
	for _, r := range rows {
		parts, several := r.Value.([]any)
		if !several {
			parts = []any{r.Value}
		}
		names := make([]string, len(parts))
		for i, part := range parts {
			if names[i], _ = part.(string); names[i] == "" {
				names[i] = insight.NullName
			}
		}
		c := insight.Choice{Label: strings.Join(names, ", "), Value: parts[0]}
		if len(parts) > 1 { // a choice is one text: FunnelsActorsQuery takes the list that it is the JSON of
			text, err := json.Marshal(parts)
			if err != nil {
				return nil, fmt.Errorf("encoding a value of a funnel's breakdown: %w", err)
			}
			c.Value = string(text)
		}
		out = append(out, c)
	}
	return out, nil
}
