package heatmap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// cell is the number on a weekday, from 1 for Monday to 7, at an hour.
type cell struct {
	Row    int `json:"row"`
	Column int `json:"column"`
	Value  int `json:"value"`
}

// rowSum is the number on a weekday, columnSum the number at an hour.
type (
	rowSum struct {
		Row   int `json:"row"`
		Value int `json:"value"`
	}
	columnSum struct {
		Column int `json:"column"`
		Value  int `json:"value"`
	}
)

// results are the results of a heatmap, without zeros.
type results struct {
	Data    []cell      `json:"data"`
	Rows    []rowSum    `json:"rowAggregations"`
	Columns []columnSum `json:"columnAggregations"`
	All     int         `json:"allAggregations"`
}

// shape turns rows into answers.
type shape struct {
	query *Query
	dates insight.Range
}

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var cells []cell
	scale := insight.Scale(&s.query.Common)
	for row := range rows {
		var numbers [3]int
		if err := json.Unmarshal(row, &numbers); err != nil {
			return nil, fmt.Errorf("reading a row of a heatmap: %w", err)
		}
		c := cell{numbers[0], numbers[1], int(insight.Scaled(float64(numbers[2]), scale))}
		if c.Row < 0 || c.Row > 7 || c.Column < 0 || c.Column > allHours {
			return nil, fmt.Errorf("reading a row of a heatmap: there is no cell %d, %d", c.Row, c.Column)
		}
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column)) })
	if !s.query.people() {
		cells = append(cells, sums(cells)...)
	}
	out, err := json.Marshal(collect(cells))
	if err != nil {
		return nil, fmt.Errorf("encoding a heatmap: %w", err)
	}
	answer := &insight.Answer{Results: out}
	if !s.dates.All { // otherwise its start is not known
		answer.Range = &s.dates.Span
	}
	return answer, nil
}

// sums adds up cells, in the form of the sums of people.
func sums(cells []cell) []cell {
	var days, hours [allHours + 1]int
	all := cell{Column: allHours}
	for _, c := range cells {
		days[c.Row] += c.Value
		hours[c.Column] += c.Value
		all.Value += c.Value
	}
	out := []cell{all}
	for i := range allHours {
		out = append(out, cell{0, i, hours[i]}, cell{i, allHours, days[i]})
	}
	return slices.DeleteFunc(out, func(c cell) bool { return c.Value == 0 })
}

// collect separates the cells from the sums.
func collect(cells []cell) results {
	out := results{Data: []cell{}, Rows: []rowSum{}, Columns: []columnSum{}}
	for _, c := range cells {
		switch {
		case c.Row == 0 && c.Column == allHours:
			out.All = c.Value
		case c.Row == 0:
			out.Columns = append(out.Columns, columnSum{c.Column, c.Value})
		case c.Column == allHours:
			out.Rows = append(out.Rows, rowSum{c.Row, c.Value})
		default:
			out.Data = append(out.Data, c)
		}
	}
	return out
}

// Table formats the cells of a heatmap as a table, without the sums.
func Table(raw []byte) ([][]string, error) {
	var r results
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err // the caller wraps it
	}
	out := [][]string{{"weekday", "hour", "value"}}
	for _, c := range r.Data {
		out = append(out, []string{strconv.Itoa(c.Row), strconv.Itoa(c.Column), strconv.Itoa(c.Value)})
	}
	return out, nil
}
