package weboverview

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.Object(form.Members{
		"key": form.Text(), "kind": {Type: "string", Words: []string{unit, duration, percentage, currency}},
		"isIncreaseBad": form.Bool().OrNull(), "value": form.Number().OrNull(), "previous": form.Number().OrNull(),
		"changeFromPreviousPct": form.Number().OrNull(),
	}).As("WebOverviewItem"))
}

// Table formats the results as a table with a line for each number.
func Table(_ *Query, results []byte) ([][]string, error) {
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(results, &items); err != nil {
		return nil, err // the caller wraps it
	}
	names := []string{"key", "value", "previous", "changeFromPreviousPct"}
	out := [][]string{names}
	for _, i := range items {
		cells := make([]string, len(names))
		for k, name := range names {
			cells[k] = insight.Cell(i[name])
		}
		out = append(out, cells)
	}
	return out, nil
}
