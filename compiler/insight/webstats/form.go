package webstats

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// Form is the form of the results.
func Form(*Query) form.Form {
	return form.List(form.List(form.Form{}).Says("A value, pairs of a number and the one before, the share of the whole, and an empty text."))
}

// Table formats the results as a table with a line for each value.
func Table(q *Query, results []byte) ([][]string, error) {
	var rows [][]json.RawMessage
	if err := json.Unmarshal(results, &rows); err != nil {
		return nil, err // the caller wraps it
	}
	head := []string{q.Breakdown}
	for _, c := range q.columns() {
		head = append(head, c.name)
		if q.Compare != nil {
			head = append(head, c.previous())
		}
	}
	out := [][]string{head}
	for _, row := range rows {
		line, err := q.line(row)
		if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

func (q *Query) line(row []json.RawMessage) ([]string, error) {
	pairs := q.columns()
	if len(row) < 1+len(pairs) {
		return nil, fmt.Errorf("a row has %d cells", len(row))
	}
	var value bytes.Buffer
	if err := json.Compact(&value, row[0]); err != nil {
		return nil, err // the caller wraps it
	}
	out := []string{insight.Cell(value.Bytes())}
	for i := range pairs {
		numbers, err := insight.List(row[1+i], 2)
		if err != nil {
			return nil, err // the caller wraps it
		}
		out = append(out, insight.Cell(numbers[0]))
		if q.Compare != nil {
			out = append(out, insight.Cell(numbers[1]))
		}
	}
	return out, nil
}
