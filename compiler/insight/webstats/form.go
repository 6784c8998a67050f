package webstats

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.List(form.Form{}).Says("A value, pairs of a number and the one before, the share of the whole, and an empty text."))
}

// Table writes the results as a table with a line for each value.
func Table(q *Query, results []byte) ([][]string, error) {
	var rows [][]json.RawMessage
	if err := json.Unmarshal(results, &rows); err != nil {
		return nil, err // the caller wraps it
	}
	head := []string{q.Breakdown}
	for _, c := range q.columns() {
		head = append(head, c.name)
	}
	out := [][]string{head}
	for _, row := range rows {
		line := make([]string, len(head))
		for i := range line {
			if i >= len(row) {
				continue
			}
			line[i] = insight.Cell(row[i])
			var numbers []json.RawMessage
			if i > 0 && q.Compare == nil && json.Unmarshal(row[i], &numbers) == nil && len(numbers) > 0 {
				line[i] = insight.Cell(numbers[0])
			}
		}
		out = append(out, line)
	}
	return out, nil
}
