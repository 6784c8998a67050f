package webstats

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The queries for pages. Pages have their own visitors and views, the bounce rate of the sessions that began with them, and their scroll
// depth, which comes with the event after them. Only sessions that began in a period count, even without a comparison.
const (
	entered = `SELECT counts.value AS value FROM {counts} AS counts LEFT JOIN {entries} AS entries ON counts.value = entries.value`
	left    = entered + ` LEFT JOIN {leaving} AS leaving ON counts.value = leaving.value`
	// scrolls has the sessions of the events after pages. The percentages are numbers from 0 to 1. A page counts as read if more than deep
	// of it was seen.
	scrolls = `SELECT {value} AS value, session.session_id AS visit, min(session.$start_timestamp) AS started,
		sum(toFloat(properties.$prev_pageview_max_scroll_percentage)) AS depth, count(toFloat(properties.$prev_pageview_max_scroll_percentage)) AS depths,
		countIf(toFloat(properties.$prev_pageview_max_content_percentage) > {deep}) AS reads,
		count(toFloat(properties.$prev_pageview_max_content_percentage)) AS contents
		FROM {events} WHERE {condition} GROUP BY value, visit`
	leaves = `event IN ('$pageview', '$pageleave', '$screen')`
	mean   = `if(sumIf({count}, {period}) = 0, NULL, sumIf({sum}, {period}) / sumIf({count}, {period}))`
)

// deep is the share of a page above which it counts as read.
const deep = 0.8

// pages is like rows, for pages with a bounce rate.
func (b *builder) pages() (hogql.Query, error) {
	filters, err := b.world.Conditions(&b.query.Common)
	if err != nil {
		return nil, err
	}
	entering, err := b.conditions(withoutPage)
	if err != nil {
		return nil, err
	}
	text, values := entered, map[string]any{
		"counts":  b.byPage(b.sessions(visits, b.value(b.by), filters), b.counted(visitors), b.counted(views)),
		"entries": b.byPage(b.sessions(bounces, b.value(breakdowns["InitialPage"]), entering), b.average(bounceRate)),
	}
	if b.query.Scrolls {
		leaving, err := b.leaving()
		if err != nil {
			return nil, err
		}
		text, values["leaving"] = left, leaving
	}
	s, ok := insight.Template(text, values).(*hogql.Select)
	if !ok {
		panic("BUG: the rows of pages are not a SELECT")
	}
	for _, c := range b.query.columns() {
		table := "counts"
		switch c {
		case bounceRate:
			table = "entries"
		case scrollDepth, scrolledDeep:
			table = "leaving"
		}
		s.Columns = append(s.Columns, insight.As(insight.Field(table, c.name), c.name), insight.As(insight.Field(table, c.previous()), c.previous()))
	}
	return s, nil
}

// pair has the numbers of a column in the current and in the previous period.
type pair struct {
	column
	now, before hogql.Expr
}

// counted returns the numbers of a column. A missing previous period has 0.
func (b *builder) counted(c column) pair {
	return pair{
		c, insight.Call(c.function+"If", insight.Field(c.of), b.periods.Now()), insight.Call(c.function+"If", insight.Field(c.of), b.periods.Before()),
	}
}

// average is like counted, but a missing previous period has null.
func (b *builder) average(c column) pair {
	out := b.counted(c)
	if b.periods.Previous == nil {
		out.before = insight.Const(nil)
	}
	return out
}

// ratio returns the sum of one column divided by that of another, null if that is 0.
func (b *builder) ratio(c column, sum, count string) pair {
	part := func(period hogql.Expr) hogql.Expr {
		return insight.TemplateExpr(mean, map[string]any{"sum": insight.Field(sum), "count": insight.Field(count), "period": period})
	}
	out := pair{c, part(b.periods.Now()), insight.Const(nil)}
	if b.periods.Previous != nil {
		out.before = part(b.periods.Before())
	}
	return out
}

// byPage returns numbers of sessions, grouped by the column value.
func (b *builder) byPage(sessions hogql.Table, numbers ...pair) hogql.Query {
	value := insight.Field("value")
	s := &hogql.Select{Columns: []hogql.Expr{value}, From: sessions, Where: insight.TemplateExpr(notNull, nil), GroupBy: insight.GroupBy(value)}
	for _, n := range numbers {
		s.Columns = append(s.Columns, insight.As(n.now, n.name), insight.As(n.before, n.previous()))
	}
	return s
}

// leaving returns the query for how far pages were scrolled.
func (b *builder) leaving() (hogql.Query, error) {
	filters, err := b.conditions(pageBefore)
	if err != nil {
		return nil, err
	}
	sessions := insight.Template(scrolls, map[string]any{
		"value": b.value(path("properties.$prev_pageview_pathname", "properties.$host")), "deep": deep, "events": insight.Events(&b.query.Common),
		"condition": insight.And(b.periods.Events(), insight.TemplateExpr(leaves, nil), b.query.Sampled(), filters),
	})
	return b.byPage(insight.From(sessions), b.ratio(scrollDepth, "depth", "depths"), b.ratio(scrolledDeep, "reads", "contents")), nil
}

// conditions returns the condition of the query and the one against test accounts, with change applied to the filters on the path of a
// page. The error is a *diag.Error.
func (b *builder) conditions(change func(query.Property) *query.Property) (hogql.Expr, error) {
	common, world := b.query.Common, *b.world
	common.Properties = changed(common.Properties, change)
	world.TestAccounts = changed(world.TestAccounts, change)
	return world.Conditions(&common)
}

// withoutPage removes a filter.
func withoutPage(query.Property) *query.Property { return nil }

// pageBefore turns a filter into one on the page before.
func pageBefore(p query.Property) *query.Property {
	p.Key = "$prev_pageview_pathname"
	return &p
}

// changed returns a condition with change applied to its filters on the path of a page; nil for no condition. An OR group with a member
// that is removed has no condition.
func changed(c *query.Condition, change func(query.Property) *query.Property) *query.Condition {
	if c == nil {
		return nil
	}
	out := *c
	if c.Filter != nil {
		if c.Filter.Type == "event" && c.Filter.Key == "$pathname" {
			out.Filter = change(*c.Filter)
		}
		if out.Filter == nil {
			return nil
		}
		return &out
	}
	out.All = nil
	for i := range c.All {
		member := changed(&c.All[i], change)
		if member != nil {
			out.All = append(out.All, *member)
		} else if c.Or {
			return nil
		}
	}
	if len(out.All) == 0 {
		return nil
	}
	return &out
}
