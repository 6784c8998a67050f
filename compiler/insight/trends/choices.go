package trends

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// anyNumber is the value of a histogram's breakdown that stands for all numbers.
const anyNumber = `["",""]`

// Choices returns what a drill-down can ask for: days, series, periods and the values of breakdowns. The error is a *diag.Error.
func Choices(q *Query, w *insight.World) (*insight.Built, error) {
	b := &builder{q: q, w: w}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	fields := insight.Choices{Series: []insight.Choice{}}
	for i := range q.Series {
		fields.Series = append(fields.Series, insight.Choice{Label: w.Counted(&q.Series[i]).Name, Value: i})
	}
	if q.Compare != nil {
		fields.Compare = []insight.Choice{{Label: "Current", Value: "current"}, {Label: "Previous", Value: "previous"}}
	}
	of := func(dates *insight.Range) insight.Choices {
		c := fields
		if !b.total() {
			c.Day = insight.DayChoices(dates, time.Time{})
		}
		return c
	}
	switch {
	case !b.split(), q.Display == BoxPlot:
		return insight.ChoicesOf(b.periods[0], of), nil
	case !q.Breakdowns.Multiple && len(q.Breakdowns.Fields[0].Cohorts) > 0:
		for _, c := range q.Breakdowns.Fields[0].Cohorts {
			id := strconv.FormatInt(c.ID, 10)
			fields.Breakdown = append(fields.Breakdown, insight.Choice{Label: w.CohortName(id), Value: cohortValue(id)})
		}
		return insight.ChoicesOf(b.periods[0], of), nil
	}
	b, s, err := plan(q, w)
	if err != nil {
		return nil, err
	}
	return &insight.Built{Query: b.final(), Shape: func(rows iter.Seq[[]byte]) (*insight.Answer, error) {
		d, err := s.draw(rows)
		if err != nil {
			return nil, err
		}
		c := of(&d.periods[0])
		values := make([]insight.ChoicesOfBreakdown, len(q.Breakdowns.Fields))
		for k := range values {
			values[k].Values = s.choices(d.lines, k)
		}
		if len(values) > 1 || q.Breakdowns.Multiple {
			c.Breakdowns = values
		} else {
			c.Breakdown = values[0].Values
		}
		return c.Answer()
	}}, nil
}

// choices returns the values of a breakdown in the current period. Those of a histogram end with all numbers, the rest and the missing ones.
func (s *shaper) choices(lines []line, k int) []insight.Choice {
	out := []insight.Choice{}
	known := map[string]bool{}
	add := func(text string) {
		if known[text] {
			return
		}
		known[text] = true
		c := insight.Choice{Label: text, Value: text}
		switch {
		case text == insight.OtherValue:
			c.Label = insight.OtherName
		case text == insight.NullValue:
			c.Label = insight.NullName
		case len(s.q.Breakdowns.Fields[k].Cohorts) > 0:
			c.Label, c.Value = s.cohort(text), cohortValue(text)
		}
		out = append(out, c)
	}
	for i := range lines {
		if lines[i].lane.period == 0 {
			add(lines[i].values[k])
		}
	}
	if s.q.Breakdowns.Fields[k].Bins > 0 {
		add(anyNumber)
		slices.SortStableFunc(out, func(a, b insight.Choice) int { return last(a.Value) - last(b.Value) })
	}
	return out
}

// last ranks a value of a histogram's breakdown: the rest and the missing ones come last.
func last(value any) int { return slices.Index([]any{insight.OtherValue, insight.NullValue}, value) }
