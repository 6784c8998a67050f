package retention

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// result is one row of the answer (contract: retention.md, section 11).
type result struct {
	Values    []cell `json:"values"`
	Label     string `json:"label"`
	Date      string `json:"date"`
	Breakdown any    `json:"breakdown_value"`
}

// cell is one column of a row.
type cell struct {
	Count  float64  `json:"count"`
	Label  string   `json:"label"`
	Amount *float64 `json:"aggregation_value,omitempty"`
}

// shape turns rows into answers.
type shape struct {
	q     *Query
	dates dates
	limit int
	split bool // the rows have breakdown values
	plain bool // see insight.World.PlainValues
}

// found is a cell in a row of the query.
type found struct {
	row, column   int64
	count, amount float64
}

// matrix has the cells of one breakdown value.
type matrix struct {
	value string
	cells []found
}

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var all []matrix
	if !s.split {
		all = []matrix{{}}
	}
	earliest := time.Unix(0, 0)
	for raw := range rows {
		place, value, f, err := s.read(raw)
		switch {
		case err != nil:
			return nil, err
		case f.row == earliestRow && s.dates.All:
			earliest = time.Unix(f.column, 0)
			continue
		case f.row < 0 || f.column < 0 || f.column >= int64(s.dates.columns):
			return nil, fmt.Errorf("reading a row of a retention: there is no cell %d in row %d", f.column, f.row)
		}
		for int64(len(all)) < place {
			all = append(all, matrix{})
		}
		m := &all[place-1]
		m.value, m.cells = value, append(m.cells, f)
	}
	if s.q.Breakdowns != nil && !s.split && len(all[0].cells) == 0 {
		all = nil // a breakdown by the cohort of everybody has no values without data
	}
	dates := s.dates
	if dates.All {
		var err error
		if dates, err = dates.from(earliest); err != nil {
			return nil, err
		}
		if cells := dates.rows * dates.columns * len(all); s.split && cells > maxShown {
			return nil, diag.Field(cellsCode, s.q.Breakdowns.At+".breakdown_limit",
				"The answer has %d cells; it may have %d. Ask for fewer values, fewer intervals or a shorter range.", cells, maxShown)
		}
	}
	results, err := s.results(dates, all)
	if err != nil {
		return nil, err
	}
	out, err := insight.Encode(slices.Values(results))
	if err != nil {
		return nil, fmt.Errorf("encoding a retention: %w", err)
	}
	return &insight.Answer{Results: out, Range: dates.span()}, nil
}

// read parses a row of the query. Without a breakdown the place is 1.
func (s shape) read(raw []byte) (place int64, value string, f found, err error) {
	var fields []json.RawMessage
	targets := []any{&f.row, &f.column, &f.count}
	place = 1
	if s.split {
		targets = append([]any{&place, &value}, targets...)
	}
	if s.q.Values != nil {
		targets = append(targets, &f.amount)
	}
	err = json.Unmarshal(raw, &fields)
	if err == nil && len(fields) != len(targets) {
		err = fmt.Errorf("%d fields in place of %d", len(fields), len(targets))
	}
	for i := 0; err == nil && i < len(targets); i++ {
		err = json.Unmarshal(fields[i], targets[i])
	}
	if err == nil && f.row != earliestRow && (place < 1 || s.split && place > int64(s.limit)+1) {
		err = fmt.Errorf("there is no place %d", place)
	}
	if err != nil {
		return 0, "", f, fmt.Errorf("reading a row of a retention: %w", err)
	}
	return place, value, f, nil
}

// results returns all rows of all breakdown values. Cells without a count are 0.
func (s shape) results(dates dates, all []matrix) ([]result, error) {
	columns := s.columnLabels()
	scale := insight.Scale(&s.q.Common)
	out := make([]result, 0, dates.rows*len(all))
	for place, m := range all {
		value := s.value(place, m)
		begin, start := len(out), dates.first
		for row := range dates.rows {
			out = append(out, result{
				Values: s.zeros(columns), Label: s.period() + " " + strconv.Itoa(row), Date: start.Format(time.RFC3339), Breakdown: value,
			})
			start = dates.Next(start)
		}
		for _, f := range m.cells {
			if f.row >= int64(dates.rows) {
				if s.dates.All { // windows of 24 hours go on after the last period
					continue
				}
				return nil, fmt.Errorf("reading a row of a retention: there is no row %d", f.row)
			}
			c := &out[begin+int(f.row)].Values[f.column]
			c.Count = insight.Scaled(f.count, scale)
			if c.Amount != nil {
				*c.Amount = insight.Scaled(f.amount, scale) // rounded too: contract retention.md, section 10
			}
		}
	}
	return out, nil
}

// value returns a breakdown value as the answer has it; nil without a breakdown.
func (s shape) value(place int, m matrix) any {
	value := m.value
	switch {
	case s.q.Breakdowns == nil:
		return nil
	case !s.split:
		value = insight.Everybody
	case place == s.limit:
		value = insight.OtherValue
	}
	if s.plain {
		return insight.PlainValue(value)
	}
	return value
}

func (s shape) zeros(labels []string) []cell {
	out := make([]cell, len(labels))
	for i, label := range labels {
		out[i].Label = label
		if s.q.Values != nil {
			out[i].Amount = new(float64)
		}
	}
	return out
}

// period returns the name of a period.
func (s shape) period() string {
	switch s.q.Period {
	case query.Hour:
		return "Hour"
	case query.Week:
		return "Week"
	case query.Month:
		return "Month"
	case query.Day, query.Second, query.Minute, query.Quarter, query.Year:
	}
	return "Day"
}

func (s shape) columnLabels() []string {
	out := make([]string, 0, s.dates.columns)
	if s.q.Brackets == nil {
		for i := range s.dates.columns {
			out = append(out, s.period()+" "+strconv.Itoa(i))
		}
		return out
	}
	out = append(out, s.period()+" 0")
	next := 1
	for _, size := range s.q.Brackets {
		label := s.period() + " " + strconv.Itoa(next)
		if size > 1 {
			label += "-" + strconv.Itoa(next+size-1)
		}
		out, next = append(out, label), next+size
	}
	return out
}
