package actors

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// sourceName is the name of the source's table, as in PostHog; behindName is the name of the query behind it if it is read twice.
const (
	sourceName = "source"
	behindName = "behind"
)

// of refers to a field of the table of people or groups. It names the table, so that no column of the query or the source hides the field.
func (b *builder) of(chain ...string) hogql.Expr {
	return insight.Field(append([]string{b.kind.table}, chain...)...)
}

// id returns the id of a row's actor.
func (b *builder) id() hogql.Expr {
	if b.known {
		return b.of(b.kind.id)
	}
	return insight.Field(sourceName, insight.ActorID)
}

// from builds the table that the page reads: the source, the table of people or groups, or both.
func (b *builder) from() hogql.Table {
	known := &hogql.TableName{Chain: []hogql.Name{{Text: b.kind.table}}}
	if b.people == nil {
		return known
	}
	if !b.known {
		id := insight.As(insight.Field(insight.ActorID), b.kind.id)
		return &hogql.Derived{Query: b.sourceWith(id), Alias: hogql.Name{Text: sourceName}}
	}
	on := insight.Eq(b.id(), insight.Field(sourceName, insight.ActorID))
	if b.people.Group != nil {
		on = insight.And(on, insight.Eq(insight.Field(b.kind.table, "index"), insight.Const(int64(*b.people.Group))))
	}
	return &hogql.Join{
		Kind: hogql.InnerJoin, Right: known, On: on,
		Left: &hogql.TableName{Chain: []hogql.Name{{Text: behindName}}, Alias: hogql.Name{Text: sourceName}},
	}
}

// sourceWith returns the source with one more column.
func (b *builder) sourceWith(column hogql.Expr) hogql.Query {
	s := &hogql.Select{From: insight.From(b.people.Query)}
	for _, name := range append([]string{insight.ActorID}, b.people.Extra...) {
		s.Columns = append(s.Columns, insight.Field(name))
	}
	s.Columns = append(s.Columns, column)
	return s
}

// covers reports whether the source alone has everything that the expressions name.
func (b *builder) covers(expressions []hogql.Expr) bool {
	names := append([]string{insight.ActorID, b.kind.id, sourceName}, b.people.Extra...)
	for _, c := range b.cells {
		names = append(names, c.name)
	}
	covered := true
	for _, e := range expressions {
		if e == nil {
			continue
		}
		hogql.WalkExpr(e, func(e hogql.Expr) bool {
			if f, ok := e.(*hogql.Field); ok {
				covered = covered && slices.Contains(names, f.Chain[0].Text)
			}
			return covered
		})
	}
	return covered
}

// conditions returns what the actors of the page must satisfy; nil for nothing.
func (b *builder) conditions() (hogql.Expr, error) {
	q := b.query
	if b.kind.group && (q.Properties != nil || q.Fixed != nil) {
		field := "properties"
		if q.Properties == nil {
			field = "fixedProperties"
		}
		return nil, diag.Field(diag.InvalidInput, q.Field(field), "Groups cannot be filtered by properties here: put the filters into the insight")
	}
	own, err := b.world.PersonCondition(q.Properties, b.kind.table)
	if err != nil {
		return nil, err
	}
	fixed, err := b.world.PersonCondition(q.Fixed, b.kind.table)
	if err != nil {
		return nil, err
	}
	return insight.And(own, fixed, b.search()), nil
}

// search returns the condition that a part of an actor's id, name or email address matches the search; nil for all actors.
func (b *builder) search() hogql.Expr {
	if b.query.Search == "" {
		return nil
	}
	pattern := insight.Const(filter.Containing(b.query.Search))
	like := func(x hogql.Expr) hogql.Expr {
		return insight.Compare(insight.Call("toString", x), hogql.ILike, pattern)
	}
	if b.kind.group {
		return insight.Or(like(b.of("properties", "name")), like(b.of("key")))
	}
	distinct := insight.Template("select person_id from person_distinct_ids where {condition}", map[string]any{"condition": like(insight.Field("distinct_id"))})
	return insight.Or(
		like(b.of("properties", "email")), like(b.of("properties", "name")), like(b.of("id")),
		insight.Compare(b.of("id"), hogql.In, &hogql.Subquery{Query: distinct}),
	)
}

// order returns the order that the query asks for; an empty list means none. By default the greatest count or other aggregate comes first.
// Without aggregates the latest created_at does, if it is a column. Otherwise rows are ordered by their first column.
func (b *builder) order() ([]*hogql.Order, error) {
	var out []*hogql.Order
	for i, text := range b.query.OrderBy {
		text, desc := insight.Direction(text)
		label, _, _ := strings.Cut(text, "--")
		switch name := strings.TrimSpace(label); {
		case name == b.kind.object, name == "actor":
			out = append(out, &hogql.Order{X: b.of("properties", b.kind.orderBy), Desc: desc})
			continue
		case name == insight.DisplayName && !b.kind.group: // whether or not it is a column of the page
			out = append(out, &hogql.Order{X: b.displayTuple(), Desc: desc})
			continue
		}
		e, err := b.expr(text, "orderBy", i)
		if err != nil {
			return nil, err
		}
		out = append(out, &hogql.Order{X: b.inPage(e), Desc: desc})
	}
	if b.query.OrderBy != nil {
		return out, nil
	}
	counted := slices.IndexFunc(b.cells, func(c cell) bool { return c.text == "count()" })
	for i, c := range b.cells {
		if i == counted || counted < 0 && c.x != nil && insight.Aggregates(c.x) {
			return []*hogql.Order{{X: c.x, Desc: true}}, nil
		}
	}
	for _, c := range b.cells {
		if c.text == "created_at" {
			return []*hogql.Order{{X: c.x, Desc: true}}, nil
		}
	}
	if first := b.cells[0].x; first != nil {
		return []*hogql.Order{{X: first}}, nil
	}
	return nil, nil // by id, as always
}

// inPage replaces an expression to order by with the column of the page that has its name or the same text.
func (b *builder) inPage(e hogql.Expr) hogql.Expr {
	text := hogql.PrintExpr(e)
	for _, c := range b.cells {
		if name, _, _ := strings.Cut(c.text, "--"); c.x != nil && (c.name == text || strings.TrimSpace(name) == text) {
			return c.x
		}
	}
	return e
}

// over joins a page with what is known of its actors.
func (b *builder) over(page *hogql.Select) hogql.Query {
	values := map[string]any{"index": int64(0)}
	if b.people != nil && b.people.Group != nil {
		values["index"] = int64(*b.people.Group)
	}
	s, ok := insight.Template(b.kind.known, values).(*hogql.Select)
	if !ok {
		panic("BUG: what is known of actors is not a SELECT")
	}
	s.With = []*hogql.CTE{{Name: hogql.Name{Text: pageName}, Query: insight.Once(page)}}
	s.Columns = nil
	for _, c := range b.cells {
		if c.x == nil {
			s.Columns = append(s.Columns, insight.As(b.tuple(), c.name))
			continue
		}
		s.Columns = append(s.Columns, insight.As(insight.Field(pageName, c.name), c.name))
	}
	for i, o := range page.OrderBy {
		s.OrderBy = append(s.OrderBy, &hogql.Order{X: insight.Field(pageName, orderName(i)), Desc: o.Desc})
	}
	return s
}

// tuple returns everything that an object is made of. The distinct ids of the events come last, if the query shows them.
func (b *builder) tuple() hogql.Expr {
	t := &hogql.Tuple{Items: []hogql.Expr{insight.Field(pageName, insight.ActorID)}}
	for _, column := range b.kind.columns {
		t.Items = append(t.Items, insight.Field(column[0], column[1]))
	}
	for _, c := range b.cells {
		if c.text == insight.EventDistinctIDs {
			t.Items = append(t.Items, insight.Field(pageName, c.name))
			break
		}
	}
	return t
}

const pageName = "page"
