package webstats

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// column is a pair of numbers in a row: of the current period and of the previous one.
type column struct {
	// name is the name of the current number in the query, and of the pair in the answer.
	name string
	// function is the aggregate over the sessions' column that of names; empty for a rate, which is computed from two columns.
	function, of string
	// order is the API's word for ordering by the column.
	order string
	// counts reports whether the numbers are counts, which are scaled up if only a sample is read.
	counts bool
}

// before is the suffix of the name of a previous number.
const before = "_before"

func (c column) previous() string { return c.name + before }

// The columns.
var (
	visitors     = column{name: "visitors", function: "uniq", of: "visitor", order: "Visitors", counts: true}
	views        = column{name: "views", function: "sum", of: "seen", order: "Views", counts: true}
	bounceRate   = column{name: "bounce_rate", function: "avg", of: "bounced", order: "BounceRate"}
	scrollDepth  = column{name: "average_scroll_percentage", function: "avg", order: "AverageScrollPercentage"}
	scrolledDeep = column{name: "scroll_gt80_percentage", function: "avg", order: "ScrollGt80Percentage"}
	conversion   = column{name: "total_conversions", function: "sum", of: "conversions", order: "TotalConversions", counts: true}
	converted    = column{name: "unique_conversions", function: "uniq", of: "converted", order: "UniqueConversions", counts: true}
	converting   = column{name: "conversion_rate", order: "ConversionRate"}
)

// columns returns the columns of the answer, in order.
func (q *Query) columns() []column {
	switch {
	case q.Goal != nil:
		return []column{visitors, conversion, converted, converting}
	case q.pages() && q.Scrolls:
		return []column{visitors, views, bounceRate, scrollDepth, scrolledDeep}
	case q.Bounces:
		return []column{visitors, views, bounceRate}
	}
	return []column{visitors, views}
}

// pages reports whether the rows are pages with the bounce rate of the sessions that began with them.
func (q *Query) pages() bool { return q.Breakdown == "Page" && q.Goal == nil && q.Bounces }

// order returns the columns by which rows are ordered. There is at least one.
func (q *Query) order() []column {
	var out []column
	have := q.columns()
	for _, c := range have {
		if c.order == q.Order.By {
			out = append(out, c)
		}
	}
	for _, c := range []column{converted, conversion, visitors, views} {
		if c.order == q.Order.By {
			continue
		}
		for _, own := range have {
			if own.name == c.name {
				out = append(out, c)
			}
		}
	}
	return out
}

// value returns a number of the column in the answer.
func (c column) value(name, period string) hogql.Expr {
	if c.function != "" {
		return insight.As(insight.Field(name), name)
	}
	return insight.As(insight.TemplateExpr("if({all} = 0, NULL, {part} / {all})", map[string]any{
		"all": insight.Field(visitors.name + period), "part": insight.Field(converted.name + period),
	}), name)
}

// fill returns the share of the whole that a row has in the column; a number that is not a count is a share already.
func (c column) fill() hogql.Expr {
	own := insight.Field(c.name)
	if !c.counts {
		return own
	}
	return insight.TemplateExpr("{own} / sum({own}) OVER ()", map[string]any{"own": own})
}
