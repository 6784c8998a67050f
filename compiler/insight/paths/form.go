package paths

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.Object(form.Members{
		"source": form.Text().Says("The step's number, an underscore, and the path."), "target": form.Text(), "value": form.Number(),
		"average_conversion_time": form.Number().OrNull().Says("Milliseconds."),
	}).As("PathsEdge"))
}

// Table formats the results as a table with a line for each edge.
func Table(_ *Query, results []byte) ([][]string, error) {
	var edges []map[string]json.RawMessage
	if err := json.Unmarshal(results, &edges); err != nil {
		return nil, err // the caller wraps it
	}
	names := []string{"source", "target", "value", "average_conversion_time"}
	out := [][]string{names}
	for _, e := range edges {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = insight.Cell(e[name])
		}
		out = append(out, cells)
	}
	return out, nil
}
