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
)

// maxPoints is the maximum number of points of a breakdown's series together (contract: funnels.md, section 11).
const maxPoints = 1000

// entries has a row for each actor, breakdown value and period that counts, with the furthest step.
func (b *builder) entries() stage {
	to := b.q.ToStep() + 1
	s := b.runs(b.journeys())
	if b.q.Order == Unordered {
		s = b.completions(s).each(expr("arrayDistinct(periods)", nil), periodName)
		s = s.then(column{levelName, expr("arrayMax(arrayMap((c, p) -> if(p = period, c, 0), completed, periods))", nil)})
		return s.where(expr("level > 0", nil))
	}
	s = b.outcome(b.slots(s, to), to)
	if !s.has(passedName) {
		return s // only actors that entered
	}
	// If a spoiled attempt went on, all periods of its actor that did not convert are lost.
	over := &hogql.Call{
		Name: "max", Args: []hogql.Expr{insight.Call("if", b.continued(to), insight.Const(int64(1)), insight.Const(int64(0)))}, Over: &hogql.Window{},
	}
	for _, name := range b.partition() {
		over.Over.PartitionBy = append(over.Over.PartitionBy, insight.Field(name))
	}
	s = s.then(column{"lost", over})
	return s.where(expr("level = {last} or level > 0 and began > 0 and lost = 0", values{"last": int64(to)}))
}

// continued returns the condition that the best attempt of a run went on after it was spoiled: it met a step that no other reached, or it
// replaced the best attempt at its own step, which was spoiled (contract: funnels.md, sections 3 and 11).
func (b *builder) continued(to int) hogql.Expr {
	further := expr("passed > level", nil)
	var replaced []hogql.Expr
	for k := 2; k < to; k++ {
		if b.guarded(k) && b.guarded(k+1) {
			replaced = append(replaced, insight.Eq(insight.Field(levelName), insight.Const(int64(k))), b.replaced(k))
		}
	}
	if len(replaced) == 0 {
		return further
	}
	replaced = append(replaced, insight.Const(int64(0)))
	return insight.Or(further, insight.And(expr("began = 0", nil), insight.Call("multiIf", replaced...)))
}

// replaced returns the condition that, if all attempts in slot k were spoiled, an event of step k met another attempt after the last of
// them. That attempt was spoiled too, since it did not fill the slot.
func (b *builder) replaced(k int) hogql.Expr {
	return expr(`arrayExists((x, e, own, s, i) -> s = 1 and bitAnd(x, {bit}) > 0 and e > own and x - e <= {window} and i > {filled},
		items, {before}, {entry}, {spoiled}, arrayEnumerate(items))`, values{
		"bit": b.marks.step(k), "window": b.marks.span(b.marks.window), "before": b.before(k - 1), "entry": fieldOf("entry", k),
		"spoiled": fieldOf("spoiled", k),
		"filled":  expr("arrayLastIndex((e, before) -> e > before and e > 0, {entry}, {before})", values{"entry": fieldOf("entry", k), "before": shifted(fieldOf("entry", k))}),
	})
}

// trends builds the query for rates over time: a row for each breakdown value, with its periods.
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
		q.OrderBy = []*hogql.Order{{X: expr("sum(reached)", nil), Desc: true}, {X: insight.Field(valueName), Desc: true}}
		q.Limit = &hogql.Limit{N: insight.Const(int64(b.mostSeries(&b.dates)))}
	}
	q.Columns = append(q.Columns, b.earliest()...)
	return &insight.Built{Query: q, Shape: b.shapeTrends, ByClock: b.q.HideIncomplete}, nil
}

// mostSeries returns how many values of the breakdown have a series over a range. A cohort and everybody else are always two, since neither
// means anything without the other.
func (b *builder) mostSeries(dates *insight.Range) int {
	limit := cmp.Or(b.q.Breakdowns.Limit, defaultValues)
	switch {
	case b.value.outsiders:
		return 2
	case b.value.cohort:
		limit = len(b.q.Breakdowns.Fields[0].Cohorts)
	}
	points := 1
	if !dates.All { // otherwise only the rows show how many periods there are
		points = max(1, len(periods(dates)))
	}
	return min(limit, max(1, maxPoints/points))
}

// curve is a series of rates (contract: funnels.md, section 11).
type curve struct {
	Count  int      `json:"count"`
	Data   []number `json:"data"`
	Days   []string `json:"days"`
	Labels []string `json:"labels"`

	BreakdownValue any `json:"breakdown_value,omitempty"`
}

// point is how many actors entered in a period, and how many of them converted.
type point struct{ reached, converted float64 }

// rate returns the conversion in percent with two decimals, halves rounded to the even one as ClickHouse's round does.
func (p point) rate() number {
	if p.reached == 0 {
		return 0
	}
	return number(math.RoundToEven(p.converted/p.reached*100*100) / 100)
}

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
	if b.value != nil { // those with most entrants come first
		all = all[:min(len(all), b.mostSeries(&dates))]
	}
	outside := func(s series) bool { return b.value != nil && b.value.outsiders && s.values[0] == outsiderValue }
	slices.SortStableFunc(all, func(x, y series) int {
		switch {
		case outside(x):
			return 1
		case outside(y):
			return -1
		}
		if b.value != nil && b.value.cohort {
			return cmp.Compare(b.cohortName(x.values[0]), b.cohortName(y.values[0]))
		}
		return slices.Compare(x.values, y.values)
	})
	if b.value != nil && b.value.outsiders && (len(all) == 0 || !outside(all[len(all)-1])) {
		all = append(all, series{values: []string{outsiderValue}})
	}
	starts := b.shownPeriods(&dates)
	keys, days, labels := make([]string, len(starts)), make([]string, len(starts)), make([]string, len(starts))
	for i, start := range starts {
		keys[i], days[i], labels[i] = dates.Key(start), dates.Day(start), dates.Label(start)
	}
	out, err := list(func(yield func(curve) bool) {
		for _, s := range all {
			c := curve{Count: len(starts), Data: make([]number, len(starts)), Days: days, Labels: labels}
			for i, key := range keys {
				p := s.points[key]
				c.Data[i] = p.rate()
			}
			if b.value != nil {
				c.BreakdownValue = b.shown(s.values)
			}
			if !yield(c) {
				return
			}
		}
	}, &dates)
	if err == nil && b.q.HideIncomplete {
		out.Until = b.closes(&dates, dates.Floor(dates.To))
	}
	return out, err
}

// periods returns the starts of all periods. Those of days on which nobody can enter are among them.
func periods(dates *insight.Range) []time.Time {
	all := *dates
	all.DaysOfWeek = nil
	return all.Buckets()
}

// shownPeriods returns the starts of the periods. If HideIncomplete is set, it leaves out those whose window is still open.
func (b *builder) shownPeriods(dates *insight.Range) []time.Time {
	starts := periods(dates)
	if !b.q.HideIncomplete {
		return starts
	}
	return slices.DeleteFunc(starts, func(start time.Time) bool {
		return b.closes(dates, start).After(b.w.Now)
	})
}

// closes returns the end of the window of the period that starts at a time.
func (b *builder) closes(dates *insight.Range, start time.Time) time.Time {
	return dates.Next(start).Add(b.q.Window.Duration())
}
