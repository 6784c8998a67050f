package funnels

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// item is a step of the answer (contract: funnels.md, section 10).
type item struct {
	ActionID   any      `json:"action_id"`
	Name       *string  `json:"name"`
	CustomName *string  `json:"custom_name"`
	Order      int      `json:"order"`
	People     []string `json:"people"`
	Count      number   `json:"count"`
	Type       string   `json:"type"`
	Average    *number  `json:"average_conversion_time"`
	Median     *number  `json:"median_conversion_time"`

	Breakdown      any `json:"breakdown,omitempty"`
	BreakdownValue any `json:"breakdown_value,omitempty"`
}

// number is written without a fraction if it has none.
type number float64

// MarshalJSON writes the number.
func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'f', -1, 64), nil
}

// cells reads the cells of a row one after another; null and numbers that are not finite count as 0.
type cells struct {
	raw []json.RawMessage
	err error
}

// cells begins to read a row of want cells. If the range begins with the earliest event, one more cell has its time.
func (b *builder) cells(row []byte, want int) *cells {
	if b.dates.All {
		want++
	}
	c := &cells{}
	c.err = json.Unmarshal(row, &c.raw)
	if c.err == nil && len(c.raw) != want {
		c.err = fmt.Errorf("it has %d columns, not %d", len(c.raw), want)
	}
	return c
}

func (c *cells) read(into any) {
	if c.err != nil {
		return
	}
	c.err = json.Unmarshal(c.raw[0], into)
	c.raw = c.raw[1:]
}

func (c *cells) number() number {
	var f *float64
	c.read(&f)
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return 0
	}
	return number(*f)
}

// numbers reads an array of want numbers; an empty one counts as zeros.
func (c *cells) numbers(want int) []number {
	out := make([]number, want)
	var all []*float64
	c.read(&all)
	if c.err == nil && len(all) != want && len(all) > 0 {
		c.err = fmt.Errorf("it has %d numbers, not %d", len(all), want)
	}
	if c.err != nil {
		return out
	}
	for i, f := range all {
		if f != nil && !math.IsNaN(*f) && !math.IsInf(*f, 0) {
			out[i] = number(*f)
		}
	}
	return out
}

// texts reads a breakdown value: one text, or a list.
func (c *cells) texts() []string {
	if c.err != nil {
		return nil
	}
	if bytes.HasPrefix(c.raw[0], []byte("[")) {
		var list []string
		c.read(&list)
		return list
	}
	var one string
	c.read(&one)
	return []string{one}
}

// end returns the range of the rows, and the error of reading the row.
func (b *builder) end(c *cells) (insight.Range, error) {
	dates := b.dates
	if dates.All {
		if since := c.number(); c.err == nil {
			return dates.Since(time.Unix(int64(since), 0))
		}
	}
	if c.err != nil {
		return dates, fmt.Errorf("reading a row of a funnel: %w", c.err)
	}
	return dates, nil
}

// line has the steps of one breakdown value.
type line struct {
	counts            []number
	averages, medians []number // in microseconds
	values            []string
}

func (b *builder) shapeSteps(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	n := b.marks.steps
	width := 3
	if b.value != nil {
		width += 2
	}
	var lines []line
	dates := b.dates
	for row := range rows {
		var l line
		c := b.cells(row, width)
		if b.value != nil {
			l.values = c.texts()
			if c.number() > 0 {
				l.values = []string{other}
			}
		}
		l.counts, l.averages, l.medians = c.numbers(n), c.numbers(n), c.numbers(n)
		var err error
		if dates, err = b.end(c); err != nil {
			return nil, err
		}
		if l.counts[0] > 0 || slices.Max(l.counts) > 0 {
			lines = append(lines, l)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		for k := n - 1; k >= 0; k-- {
			if c := cmp.Compare(b.counts[k], a.counts[k]); c != 0 {
				return c
			}
		}
		return slices.Compare(a.values, b.values)
	})
	if b.value != nil && b.value.outsiders && !slices.ContainsFunc(lines, func(l line) bool { return l.values[0] == outsiderValue }) {
		none := make([]number, n)
		lines = append(lines, line{counts: none, averages: none, medians: none, values: []string{outsiderValue}})
	}
	if b.value != nil {
		return list(func(yield func([]item) bool) {
			for i := range lines {
				if !yield(b.items(&lines[i])) {
					return
				}
			}
		}, &dates)
	}
	var items []item
	if len(lines) > 0 {
		items = b.items(&lines[0])
	}
	return list(slices.Values(items), &dates)
}

// other is the value of the row that the values past the limit share.
const other = "Other"

// list returns the answer with these results.
func list[T any](results iter.Seq[T], dates *insight.Range) (*insight.Answer, error) {
	out, err := insight.Encode(results)
	if err != nil {
		return nil, fmt.Errorf("encoding a funnel: %w", err)
	}
	return &insight.Answer{Results: out, Range: &dates.Span}, nil
}

func (b *builder) items(l *line) []item {
	out := make([]item, b.marks.steps)
	for i := range out {
		s := &b.q.Series[i]
		it := item{
			Order: i, People: []string{}, Type: "events",
			Count: number(insight.Scaled(float64(l.counts[i]), insight.Scale(&b.q.Common))),
		}
		switch s.Kind {
		case query.GroupNode:
			it.Type = "group"
		case query.ActionsNode:
			it.Type = "actions"
		case query.EventsNode:
		}
		if b.q.Order == Unordered {
			name := "Completed " + strconv.Itoa(i+1) + " steps"
			if i == 0 {
				name = "Completed 1 step"
			}
			it.Name = &name
		} else {
			it.name(s, b.w)
		}
		if l.medians[i] > 0 {
			average, median := l.averages[i]/1e6, l.medians[i]/1e6
			it.Average, it.Median = &average, &median
		}
		if b.value != nil {
			it.Breakdown = b.shown(l.values)
			it.BreakdownValue = it.Breakdown
			if b.value.cohort {
				it.BreakdownValue = json.Number(l.values[0])
			}
		}
		out[i] = it
	}
	return out
}

func (it *item) name(s *query.Series, w *insight.World) {
	name := w.Label(s)
	switch s.Kind {
	case query.GroupNode:
		it.ActionID, it.Name = name, &name
	case query.ActionsNode:
		it.ActionID, it.Name = s.Action, &name
	case query.EventsNode:
		it.ActionID, it.Name = s.Event, s.Event
	}
	switch {
	case s.CustomName != "":
		it.CustomName = &s.CustomName
	case s.Kind == query.EventsNode && s.Name != "" && s.Name != name:
		it.CustomName = &s.Name
	}
}

// cohortName returns the name of a cohort of the breakdown, or of those outside of it.
func (b *builder) cohortName(value string) string {
	if b.value.outsiders && value == outsiderValue {
		return "Not in " + b.w.CohortName(strconv.FormatInt(b.q.Breakdowns.Fields[0].Cohorts[0].ID, 10))
	}
	return b.w.CohortName(value)
}

// shown returns a value as the answer has it: a cohort by its name.
func (b *builder) shown(values []string) any {
	var shown any = values[0]
	switch {
	case b.value.cohort:
		shown = b.cohortName(values[0])
	case b.value.list:
		shown = values
	}
	if b.w.PlainValues {
		return insight.PlainValue(shown)
	}
	return shown
}
