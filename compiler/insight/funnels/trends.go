package funnels

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// mostPoints is how many points the series of a breakdown have together (contract: section 11).
const mostPoints = 1000

// entries has a row for each actor, value and period that counts, with the furthest step.
func (b *builder) entries() stage {
	to := b.q.ToStep() + 1
	s := b.runs(b.journeys())
	if b.q.Order == query.Unordered {
		s = b.completions(s).each(expr("arrayDistinct(periods)", nil), periodName)
		s = s.then(column{levelName, expr("arrayMax(arrayMap((c, p) -> if(p = period, c, 0), completed, periods))", nil)})
		return s.where(expr("level > 0", nil))
	}
	s = b.outcome(b.slots(s, to), to)
	if !s.has(passedName) {
		return s.where(expr("level > 0", nil))
	}
	// A spoiled attempt that went on takes all periods of its actor with it that did not convert.
	over := &hogql.Call{Name: "max", Args: []hogql.Expr{expr("if(passed > level, 1, 0)", nil)}, Over: &hogql.Window{}}
	for _, name := range b.partition() {
		over.Over.PartitionBy = append(over.Over.PartitionBy, insight.Field(name))
	}
	s = s.then(column{"lost", over})
	return s.where(expr("level = {last} or level > 0 and began > 0 and lost = 0", values{"last": int64(to)}))
}

// trends makes the query of rates over time: a row for each value, with its periods.
func (b *builder) trends() (*insight.Built, error) {
	first, last := int64(b.q.FromStep()+1), int64(b.q.ToStep()+1)
	v := values{"first": first, "last": last}
	counted := &hogql.Select{
		From:    insight.From(b.entries().query),
		Columns: []hogql.Expr{insight.Field(periodName), insight.As(expr("countIf(level >= {first})", v), "reached"), insight.As(expr("countIf(level >= {last})", v), "converted")},
		GroupBy: insight.GroupBy(insight.Field(periodName)),
	}
	q := &hogql.Select{From: insight.From(counted), Columns: []hogql.Expr{insight.As(expr("groupArray((period, reached, converted))", nil), "points")}}
	if b.value != nil {
		counted.Columns = append(counted.Columns, insight.Field(valueName))
		counted.GroupBy.Keys = append(counted.GroupBy.Keys, insight.Field(valueName))
		q.Columns = append(q.Columns, insight.Field(valueName))
		q.GroupBy = insight.GroupBy(insight.Field(valueName))
		limit := cmp.Or(b.q.Breakdowns.Limit, defaultValues)
		if !b.dates.All {
			limit = min(limit, max(1, mostPoints/max(1, len(b.dates.Buckets()))))
		}
		q.OrderBy = []*hogql.Order{{X: expr("sum(reached)", nil), Desc: true}, {X: insight.Field(valueName), Desc: true}}
		q.Limit = &hogql.Limit{N: insight.Const(int64(min(limit, mostPoints)))}
	}
	q.Columns = append(q.Columns, b.earliest()...)
	return &insight.Built{Query: q, Shape: b.shapeTrends}, nil
}

// curve is a series of rates (contract: section 11).
type curve struct {
	Count  int      `json:"count"`
	Data   []number `json:"data"`
	Days   []string `json:"days"`
	Labels []string `json:"labels"`

	BreakdownValue any `json:"breakdown_value,omitempty"`
}

// point is how many actors entered in a period, and how many of them converted.
type point struct{ reached, converted float64 }

func (b *builder) shapeTrends(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	dates := b.dates
	type series struct {
		values []string
		points map[string]point
	}
	var all []series
	width := 1
	if b.value != nil {
		width = 2
	}
	for row := range rows {
		c := b.cells(row, width)
		var raw [][3]json.RawMessage
		c.read(&raw)
		one := series{points: map[string]point{}}
		for _, r := range raw {
			var p point
			c.err = errors.Join(c.err, json.Unmarshal(r[1], &p.reached), json.Unmarshal(r[2], &p.converted))
			one.points[strings.Trim(string(r[0]), `"`)] = p
		}
		if b.value != nil {
			one.values = c.texts()
		}
		var err error
		if dates, err = b.end(c); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b series) int { return slices.Compare(a.values, b.values) })
	starts := b.shownPeriods(&dates)
	results := make([]curve, 0, len(all))
	for _, s := range all {
		c := curve{Count: len(starts), Data: []number{}, Days: []string{}, Labels: []string{}}
		for _, start := range starts {
			p := s.points[dates.Key(start)]
			rate := number(0)
			if p.reached > 0 {
				rate = number(math.Round(10000*p.converted/p.reached) / 100)
			}
			c.Data, c.Days, c.Labels = append(c.Data, rate), append(c.Days, dates.Day(start)), append(c.Labels, dates.Label(start))
		}
		if b.value != nil {
			c.BreakdownValue = b.value.shown(s.values)
		}
		results = append(results, c)
	}
	return answer(results, &dates)
}

// shownPeriods are the starts of the periods, without those whose window is still open when these are to be hidden.
func (b *builder) shownPeriods(dates *insight.Range) []time.Time {
	starts := dates.Buckets()
	if !b.q.HideIncomplete {
		return starts
	}
	return slices.DeleteFunc(starts, func(start time.Time) bool {
		return dates.Next(start).Add(b.q.Window.Duration()).After(b.w.Now)
	})
}
