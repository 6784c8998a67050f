package retention

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// appearances is the name of the column with the sorted array of the columns that an actor is in.
const appearances = "appearances"

// Actors returns the query for the actors of a row of a retention, with the columns that they are in: as the array appearances, and as
// columns day_0, day_1 … (by the name of the period), each 1 or 0 (contract: retention.md, section 12). Without a row, the actors of all
// rows count. The error is a *diag.Error.
func Actors(q *Query, at *query.InsightActors, w *insight.World) (*insight.People, error) {
	if at.Compare != nil && *at.Compare == "previous" {
		return nil, diag.Field(diag.InvalidInput, at.Field("compare"), "A retention is not compared with a previous period")
	}
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	var where hogql.Expr
	if at.Interval != nil {
		if !b.dates.All && *at.Interval >= b.dates.rows {
			return nil, diag.Field(diag.InvalidInput, at.Field("interval"), "There is no row %d: the retention has %d", *at.Interval, b.dates.rows)
		}
		where = insight.Eq(insight.Field("row"), insight.Const(int64(*at.Interval)))
	}
	value, err := b.chosen(at)
	if err != nil {
		return nil, err
	}
	where = insight.And(where, value)
	rows := b.rows(b.history())
	rows.Columns = append(rows.Columns, insight.Field("actor"))
	columns := stage("select actor, {columns} as columns from {rows}", map[string]any{"columns": b.columns(), "rows": insight.From(rows)}, nil)
	columns.Where = where
	each := stage("select actor, arraySort(groupUniqArrayArray(columns)) as appearances from {columns} group by actor",
		map[string]any{"columns": insight.From(columns)}, nil)
	out := stage("select actor, appearances from {each}", map[string]any{"each": insight.From(each)}, nil)
	out.Columns[0] = insight.As(insight.Field("actor"), insight.ActorID)
	people := &insight.People{Query: out, Group: q.Group, Extra: []string{appearances}}
	word := string(q.Period)
	for i := range q.Columns() {
		name := word + "_" + strconv.Itoa(i)
		there := insight.TemplateExpr("if(has(appearances, {i}), 1, 0)", map[string]any{"i": int64(i)})
		out.Columns, people.Extra = append(out.Columns, insight.As(there, name)), append(people.Extra, name)
	}
	return people, nil
}

// chosen returns the condition on the breakdown value asked for; nil for any value.
func (b *builder) chosen(at *query.InsightActors) (hogql.Expr, error) {
	given := at.Breakdown
	if given == nil {
		return nil, nil
	}
	if b.q.Breakdowns == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("breakdown"), "The retention has no breakdown")
	}
	list, isList := given.([]any)
	if !isList {
		list = []any{given}
	}
	texts := make([]string, len(list))
	for i, item := range list {
		switch item := item.(type) {
		case string:
			texts[i] = item
		case json.Number:
			texts[i] = item.String()
		}
	}
	value := strings.Join(texts, "::")
	switch {
	case b.value == nil && insight.IsEverybody(value):
		return nil, nil
	case b.cohort != nil:
		cohort, err := insight.CohortValue(b.cohort, value, at.Field("breakdown"))
		if err != nil {
			return nil, err
		}
		return insight.Eq(insight.Field(valueName), insight.Const(cohort)), nil
	case value == insight.OtherValue:
		return b.other(), nil
	}
	return insight.Eq(insight.Field(valueName), insight.Const(value)), nil
}

// other returns the condition that a value is past the limit. It finds the values within the limit as ranked does.
func (b *builder) other() hogql.Expr {
	shown := stage("select value from {cells} where column = 0 group by value order by sum(actors) desc, value limit {most}",
		map[string]any{"cells": insight.From(b.cells()), "most": int64(b.limit)}, nil)
	return insight.TemplateExpr("value not in {shown}", map[string]any{"shown": &hogql.Subquery{Query: shown}})
}
