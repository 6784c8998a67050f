// Package retention answers RetentionQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract: retention.md).
//
// One scan of the events finds, for each actor, the set of periods with a start and the set of periods with a return. Actors with the same
// two sets are counted together, and only then are the sets expanded into cells. The steps are
//
//	history.go, rolling.go, values.go   events ─▶ a row for each actor, with its two sets
//	cells.go                            actors ─▶ a row for each cell
//	shape.go                            cells  ─▶ results
//
// Periods are counted from the first row of the answer, from 0.
package retention

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The default and the maximum number of breakdown values.
const (
	defaultValues = 25
	maxValues     = 1000
)

// The codes of retentions that are refused, which are PostHog's.
const (
	cumulativeCode diag.Code = "retention_cumulative_24_hour_windows_unsupported"
	amountsCode    diag.Code = "retention_24_hour_windows_property_aggregation_unsupported"
	cellsCode      diag.Code = "retention_too_many_intervals"
)

// builder holds what the parts of one query share.
type builder struct {
	q     *Query
	w     *insight.World
	dates dates

	// The conditions on events; nil for none. start and comeback are those of the two entities, named is start without its own filters, and
	// common is the condition on all events.
	start, comeback, named, common hogql.Expr
	// alike reports whether the two entities have the same condition.
	alike bool
	actor hogql.Expr
	// value is the breakdown value; nil for none, and for the cohort of all people.
	value hogql.Expr
	limit int
	// cohort is the breakdown if it is by cohort; nil otherwise.
	cohort *query.Breakdown
}

// Build returns the query of a retention, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	answer := shape{q: q, dates: b.dates, limit: b.limit, split: b.value != nil, plain: w.PlainValues}
	return &insight.Built{Query: b.final(), Shape: answer.answer}, nil
}

func newBuilder(q *Query, w *insight.World) (*builder, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	b := &builder{q: q, w: w}
	var err error
	if b.dates, err = resolveDates(q, w); err != nil {
		return nil, err
	}
	if err := b.conditions(); err != nil {
		return nil, err
	}
	return b, b.breakdown()
}

// check refuses options that cannot be combined.
func check(q *Query) error {
	refuse := func(code diag.Code, field, detail string) error {
		return diag.Field(code, q.Field("retentionFilter."+field), "%s", detail)
	}
	switch {
	case q.Rolling && q.Cumulative:
		return refuse(cumulativeCode, "cumulative", "Cumulative retention is not supported for 24 hour windows.")
	case q.Rolling && q.Values != nil:
		return refuse(amountsCode, "aggregationType", "Sum and average aggregation are not supported for 24 hour windows.")
	case q.Cumulative && q.Values != nil:
		return refuse(diag.InvalidInput, "aggregationType", "Sum and average aggregation are not supported for cumulative retention.")
	}
	return nil
}

// conditions reads the entities and the filters.
func (b *builder) conditions() error {
	var err error
	if b.start, err = b.w.Series(&b.q.Start); err != nil {
		return err
	}
	if b.comeback, err = b.w.Series(&b.q.Return); err != nil {
		return err
	}
	if b.named, err = b.w.Named(&b.q.Start); err != nil {
		return err
	}
	b.alike = same(b.start, b.comeback)
	filters, err := b.w.Conditions(&b.q.Common)
	if err != nil {
		return err
	}
	actor, present := insight.Actor(b.q.Group)
	b.actor, b.common = actor, insight.And(b.dates.upper(), filters, present)
	if b.dates.All {
		b.dates.since = b.dates.floor(b.firstEvent())
	}
	return nil
}

// same reports whether two conditions have the same text.
func same(x, y hogql.Expr) bool {
	return hogql.PrintExpr(insight.OrTrue(x)) == hogql.PrintExpr(insight.OrTrue(y))
}

// breakdown reads the property that splits the query. Only the first one counts, or all cohorts if that is one (contract: retention.md,
// section 10).
func (b *builder) breakdown() error {
	split := b.q.Breakdowns
	if split == nil {
		return nil
	}
	b.limit = split.Limit
	if b.limit == 0 {
		b.limit = defaultValues
	}
	b.limit = min(b.limit, maxValues)
	field := split.Fields[0]
	if field.Type == query.CohortType {
		field.Cohorts = cohortsOf(split)
		return b.cohorts(&field)
	}
	if cells := b.cellsEach(); cells*(b.limit+1) > maxShown {
		return diag.Field(cellsCode, split.At+".breakdown_limit",
			"%d values and the rest, with %d cells each, are more than %d. Ask for fewer values, fewer intervals or a shorter range.", b.limit, cells, maxShown)
	}
	field.Bins = 0 // values are texts here
	if field.Type == "event_metadata" && !b.column(field.Property) {
		field.Type = "event"
	}
	var err error
	if field.Type == "person" {
		b.value = b.w.BreakdownText(insight.Field(currentPerson, "properties", field.Property), &field)
	} else {
		b.value, err = b.w.Breakdown(&field)
	}
	return err
}

// cellsEach returns the number of cells of a matrix; 0 if only the rows show it, as for all time.
func (b *builder) cellsEach() int { return b.dates.rows * b.q.Columns() }

// column reports whether events have a column of that name. It takes precedence over a property if a breakdown could mean either.
func (b *builder) column(name string) bool {
	events, _ := b.w.Database.Table("events")
	field, ok := b.w.Database.Field(events, name)
	return ok && field.IsColumn() && !field.Hidden
}

// currentPerson is the person of an event with its current properties, so that no actor is split by different values.
const currentPerson = "_current_person"

// cohortsOf returns the cohorts of all breakdowns by cohort, each once.
func cohortsOf(split *query.Breakdowns) []query.Cohort {
	var out []query.Cohort
	for i := range split.Fields {
		for _, c := range split.Fields[i].Cohorts {
			if !slices.ContainsFunc(out, func(other query.Cohort) bool { return other.ID == c.ID }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// cohorts reads a breakdown by cohort. The cohort of all people alone is not a breakdown.
func (b *builder) cohorts(field *query.Breakdown) error {
	b.cohort = field
	if len(field.Cohorts) == 1 && field.Cohorts[0].ID == schema.Everybody {
		return nil
	}
	if n, cells := len(field.Cohorts), b.cellsEach(); n*cells > maxShown {
		return diag.Field(cellsCode, field.At,
			"%d cohorts, with %d cells each, are more than %d. Ask for fewer cohorts, fewer intervals or a shorter range.", n, cells, maxShown)
	}
	members, err := b.w.Cohorts(&query.Breakdowns{Fields: []query.Breakdown{*field}})
	if err != nil {
		return err
	}
	b.common, b.limit = insight.And(b.common, members), len(field.Cohorts)
	b.value, err = b.w.Breakdown(field)
	return err
}

// events is the table that the query reads.
func (b *builder) events() hogql.Table { return insight.Events(&b.q.Common) }

// grouped returns the value that splits an actor's events; nil for none. If the first event of a name decides the cohort, the value of that
// event is the actor's only one, so that no actor is in two cohorts: see anchors. A breakdown by cohorts of people always splits, since
// these belong to the actor and not to an event.
func (b *builder) grouped() hogql.Expr {
	if b.q.Type == FirstEver && b.cohort == nil {
		return nil
	}
	return b.value
}

// first reports whether an actor's first start event ever decides its cohort.
func (b *builder) first() bool { return b.q.Type != Recurring }

// stage parses a template that is a SELECT. of is the breakdown value: it becomes the column value, and one of the keys if the SELECT is
// grouped; nil without a breakdown.
func stage(text string, values map[string]any, of hogql.Expr) *hogql.Select {
	s, ok := insight.Template(text, values).(*hogql.Select)
	if !ok {
		panic("BUG: a stage that is not a SELECT: " + text)
	}
	if of == nil {
		return s
	}
	if named, ok := of.(*hogql.Field); !ok || named.Chain[0].Text != valueName {
		of = insight.As(of, valueName)
	}
	s.Columns = append(s.Columns, of)
	if s.GroupBy != nil {
		s.GroupBy.Keys = append(s.GroupBy.Keys, insight.Field(valueName))
	}
	return s
}

// valueName is the column of the breakdown value.
const valueName = "value"

// kept returns the column of the breakdown value in a step after the first; nil without a breakdown.
func (b *builder) kept() hogql.Expr {
	if b.value == nil {
		return nil
	}
	return insight.Field(valueName)
}

// aggregate calls an aggregate function over the rows that satisfy a condition; nil for all rows.
func aggregate(name string, condition hogql.Expr, args ...hogql.Expr) hogql.Expr {
	if condition != nil {
		return insight.Call(name+"If", append(args, condition)...)
	}
	return insight.Call(name, args...)
}
