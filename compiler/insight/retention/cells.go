package retention

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// earliestRow marks, in place of a row's number, the row with the time of the earliest event.
const earliestRow = -1

// final returns the whole query. Its rows are cells:
//
//	row, column, actors[, amount]                 without a breakdown
//	place, value, row, column, actors[, amount]   with one
//
// place is the rank of the value, from 1; one past the limit is the rest. If the range begins with the earliest event, a row with the
// number earliestRow has its time in place of the column.
func (b *builder) final() hogql.Query {
	var cells hogql.Query = b.cells()
	if b.value != nil {
		cells = b.ranked(b.cells())
	}
	if b.dates.All {
		return insight.Union(cells, b.earliest())
	}
	return cells
}

// cells returns a row for each cell that is not empty.
func (b *builder) cells() *hogql.Select {
	h := b.history()
	if h.values {
		return b.valued(h)
	}
	alike := stage("select {starts} as starts, count() as actors from {source} group by starts", map[string]any{
		"starts": h.starts.key(), "source": insight.From(h.query),
	}, b.kept())
	patterns := history{query: alike, starts: h.starts.in("starts"), returns: h.returns.in("returns")}
	if same(h.starts.expr, h.returns.expr) {
		patterns.returns = patterns.starts
	} else {
		alike.Columns = append(alike.Columns, insight.As(h.returns.key(), "returns"))
		alike.GroupBy.Keys = append(alike.GroupBy.Keys, insight.Field("returns"))
	}
	rows := b.rows(patterns)
	rows.Columns = append(rows.Columns, insight.Field("actors"))
	columns := stage("select row, arrayJoin({columns}) as column, actors from {rows}", map[string]any{
		"columns": b.columns(), "rows": insight.From(rows),
	}, b.kept())
	return stage("select row, column, sum(actors) as actors from {source} group by row, column", map[string]any{"source": insight.From(columns)}, b.kept())
}

// rows returns a row for each actor, or group of similar actors, and each row of the answer that it is in. Its columns are row, base, the
// period that returns are counted from, and returned, the array of periods with a return.
func (b *builder) rows(h history) *hogql.Select {
	row, base := insight.Call("arrayJoin", h.starts.array()), insight.Field("row")
	switch {
	case h.starts.form == single:
		row = h.starts.expr
	case b.q.Brackets != nil:
		base = insight.Call("arrayMin", h.starts.array())
	}
	return stage("select {row} as row, {base} as base, {returns} as returned from {source}", map[string]any{
		"row": row, "base": base, "returns": h.returns.array(), "source": insight.From(h.query),
	}, b.kept())
}

// columns returns the array of the columns that an actor is in, from the columns of rows.
func (b *builder) columns() hogql.Expr {
	later := b.laterColumns(insight.Field("returned"))
	if b.q.Cumulative {
		return insight.TemplateExpr("range(arrayMax(arrayConcat([0], {later})) + 1)", map[string]any{"later": later})
	}
	return insight.TemplateExpr("arrayConcat([0], {later})", map[string]any{"later": later})
}

// laterColumns returns the array of the columns after the first that an array of periods is in.
func (b *builder) laterColumns(returned hogql.Expr) hogql.Expr {
	values := map[string]any{"returned": returned, "columns": int64(b.q.Columns())}
	if b.q.Brackets == nil {
		return insight.TemplateExpr("arrayMap(p -> p - base, arrayFilter(p -> p > base and p < base + {columns}, {returned}))", values)
	}
	values["column"] = b.bracket(insight.TemplateExpr("p - base", nil))
	return insight.TemplateExpr("arrayFilter(c -> c > 0, arrayDistinct(arrayMap(p -> {column}, {returned})))", values)
}

// bracket returns the column of a distance in periods; 0 for none.
func (b *builder) bracket(distance hogql.Expr) hogql.Expr {
	ends, end := &hogql.Array{}, 0
	for _, size := range b.q.Brackets {
		end += size
		ends.Items = append(ends.Items, insight.Const(int64(end)))
	}
	return insight.TemplateExpr("if({distance} > 0, arrayFirstIndex(e -> {distance} <= e, {ends}), 0)", map[string]any{"distance": distance, "ends": ends})
}

// valued returns a row for each cell, with the sum or mean of its actors' values.
func (b *builder) valued(h history) *hogql.Select {
	rows := b.valuedRows(h)
	column := insight.TemplateExpr("p - base", nil)
	if b.q.Brackets != nil {
		column = b.bracket(column)
	}
	parts := stage(`select row, arrayJoin(arrayConcat([tuple(0, own)], arrayMap(c -> tuple(c, arraySum(
		arrayMap((p, v) -> if(has([{column}], c), v, 0), returned, return_values))), {later}))) as part from {rows}`, map[string]any{
		"column": column, "later": b.laterColumns(insight.Field("returned")), "rows": insight.From(rows),
	}, b.kept())
	total := "sum(part.2)"
	if b.q.Values.Mean {
		total = "sum(part.2) / count()"
	}
	return stage("select row, part.1 as column, count() as actors, "+total+" as amount from {parts} group by row, column", map[string]any{
		"parts": insight.From(parts),
	}, b.kept())
}

// valuedRows is like rows, with the columns own, the sum of the start events' values, and return_values.
func (b *builder) valuedRows(h history) *hogql.Select {
	pairs := stage("select arrayJoin(arrayZip({starts}, start_values)) as pair, {starts} as started, {returns} as returned, return_values from {source}",
		map[string]any{"starts": h.starts.array(), "returns": h.returns.expr, "source": insight.From(h.query)}, b.kept())
	base := insight.Field("row")
	if b.q.Brackets != nil {
		base = insight.TemplateExpr("arrayMin(started)", nil)
	}
	return stage("select pair.1 as row, {base} as base, pair.2 as own, returned, return_values from {pairs}", map[string]any{
		"base": base, "pairs": insight.From(pairs),
	}, b.kept())
}

// ranked ranks the values of a breakdown by the sizes of their cohorts, and merges those past the limit.
func (b *builder) ranked(cells *hogql.Select) *hogql.Select {
	const columns = "value, row, column, actors"
	amounts := func(text string) string {
		if b.q.Values != nil {
			return text
		}
		return ""
	}
	sized := stage("select "+columns+amounts(", amount")+", sum(if(column = 0, actors, 0)) over (partition by value) as size from {cells}",
		map[string]any{"cells": insight.From(cells)}, nil)
	places := stage("select "+columns+amounts(", amount")+", least(dense_rank() over (order by size desc, value), {rest}) as place from {sized}",
		map[string]any{"sized": insight.From(sized), "rest": int64(b.limit + 1)}, nil)
	return stage("select place, any(value) as value, row, column, sum(actors) as actors"+amounts(", sum(amount) as amount")+
		" from {places} group by place, row, column", map[string]any{"places": insight.From(places)}, nil)
}

// earliest returns the row of the earliest event.
func (b *builder) earliest() hogql.Query {
	s := stage("select {row} as row, toUnixTimestamp({first}) as column, 0 as actors", map[string]any{"row": int64(earliestRow), "first": b.firstEvent()}, nil)
	if b.q.Values != nil {
		s.Columns = append(s.Columns, insight.As(insight.Const(0.0), "amount"))
	}
	if b.value != nil {
		s.Columns = append([]hogql.Expr{insight.As(insight.Const(int64(0)), "place"), insight.As(insight.Const(""), valueName)}, s.Columns...)
	}
	return s
}

// firstEvent returns the time of the earliest start or return.
func (b *builder) firstEvent() hogql.Expr {
	return &hogql.Subquery{Query: insight.Template("select min(timestamp) from {events} where {condition}", map[string]any{
		"events":    b.events(),
		"condition": insight.And(b.dates.lower(insight.Field("timestamp")), b.common, either(b.start, b.comeback)),
	})}
}
