// Package events answers EventsQuery: node ─▶ [build] ─▶ tree, and row ─▶ [shape] ─▶ row (contract: api.md, section 1.6).
package events

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// builder builds the parts of one query.
type builder struct {
	query  *Query
	people *insight.People // people whose events are listed; nil for everybody
	world  *insight.World
	table  []string // the name of the table of events in the query; empty if it has none
}

// of refers to a field of events. It names the table, so that no column of the query hides the field.
func (b builder) of(chain ...string) hogql.Expr {
	return insight.Field(slices.Concat(b.table, chain)...)
}

// Build returns the query for a list of events. people are those of its source, nil for everybody: it lists the events behind their number,
// or, if these are not known, all events of the people. most is the maximum limit. The error is a *diag.Error.
func Build(q *Query, people *insight.People, w *insight.World, most int) (*insight.Listing, error) {
	b := builder{query: q, people: people, world: w}
	s := &hogql.Select{From: insight.Events(&query.Common{})}
	if people != nil && people.Events != nil {
		s.From = people.Events.From
	}
	if t, ok := s.From.(*hogql.TableName); ok {
		b.table = []string{cmp.Or(t.Alias.Text, t.Chain[len(t.Chain)-1].Text)}
	}
	var err error
	if s.Columns, err = b.columns(); err != nil {
		return nil, err
	}
	where, having, err := b.conditions(s.Columns)
	if err != nil {
		return nil, err
	}
	s.Where, s.Having = where, having
	if s.OrderBy, err = b.order(s.Columns); err != nil {
		return nil, err
	}
	built := &insight.Listing{Types: map[int]string{}, Limit: min(cmp.Or(q.Limit, bind.DefaultRows), most), Offset: q.Offset, Columns: b.names(s.Columns), Row: b.shapes()}
	insight.Page(s, &hogql.Order{X: b.of("uuid"), Desc: s.OrderBy[0].Desc}, built.Limit, q.Offset)
	for i, column := range q.Select {
		if titled(column) == personColumn {
			built.Types[i] = "String" // as in PostHog, where it is a distinct id before people are looked up
		}
	}
	built.Query = b.withPeople(s)
	return built, nil
}

// columns builds the expressions to select. * becomes a tuple, which shape turns into an object, and person a distinct id.
func (b builder) columns() ([]hogql.Expr, error) {
	out := make([]hogql.Expr, len(b.query.Select))
	for i, text := range b.query.Select {
		if titled(text) == personColumn {
			out[i] = insight.As(b.of("distinct_id"), objectName(i))
			continue
		}
		if fields, ok := b.objectOf(text); ok {
			tuple := &hogql.Tuple{}
			for _, field := range fields {
				tuple.Items = append(tuple.Items, b.field(field))
			}
			out[i] = insight.As(tuple, objectName(i))
			continue
		}
		var err error
		if out[i], err = b.expr(text, "select", i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func objectName(i int) string { return "_object_" + strconv.Itoa(i+1) }

// names returns the names of the columns in the answer: their aliases, or else their texts as given.
func (b builder) names(columns []hogql.Expr) []string {
	out := slices.Clone(b.query.Select)
	for i, column := range columns {
		_, isObject := b.objectOf(out[i])
		if alias, ok := column.(*hogql.Alias); ok && !isObject && titled(out[i]) != personColumn {
			out[i] = alias.Name.Text
		}
	}
	return out
}

// expr parses an expression of one of the node's lists.
func (b builder) expr(text, field string, i int) (hogql.Expr, error) {
	return b.world.UserExpr(text, b.query.Field(field+"."+strconv.Itoa(i)))
}

// conditions returns what rows must satisfy: before they are grouped, and after.
func (b builder) conditions(columns []hogql.Expr) (where, having hogql.Expr, err error) {
	q, w := b.query, b.world
	common := query.Common{At: q.At, Properties: q.Properties, FilterTestAccounts: q.FilterTestAccounts}
	filters, err := w.Conditions(&common)
	if err != nil {
		return nil, nil, err
	}
	fixed, err := w.Condition(q.Fixed)
	if err != nil {
		return nil, nil, err
	}
	span, err := b.span()
	if err != nil {
		return nil, nil, err
	}
	where = insight.And(span, filters, fixed, b.named())
	switch {
	case b.people == nil:
	case b.people.Events != nil:
		where = insight.And(where, b.people.Events.Where)
	default:
		actor, named := insight.Actor(b.people.Group)
		behind := insight.Template("select actor_id from {people}", map[string]any{"people": insight.From(b.people.Query)})
		where = insight.And(where, named, insight.Compare(actor, hogql.In, &hogql.Subquery{Query: behind}))
	}
	if q.Action != nil {
		action, err := w.ActionWithSteps(*q.Action, q.Field("actionId"))
		if err != nil {
			return nil, nil, err
		}
		where = insight.And(where, action)
	}
	if q.Steps != nil {
		steps, err := w.Steps(q.Steps)
		if err != nil {
			return nil, nil, err
		}
		where = insight.And(where, steps)
	}
	if q.Person != "" {
		if !person.MatchString(q.Person) {
			return nil, nil, diag.Field(diag.InvalidInput, q.Field("personId"), "personId must be the UUID of a person.")
		}
		where = insight.And(where, insight.Eq(b.of("person_id"), insight.Const(q.Person)))
	}
	for i, text := range q.Where {
		condition, err := b.expr(text, "where", i)
		if err != nil {
			return nil, nil, err
		}
		if insight.Aggregates(condition, columns...) {
			having = insight.And(having, condition)
		} else {
			where = insight.And(where, condition)
		}
	}
	return where, having, nil
}

// named returns the condition on the names of events; nil for any.
func (b builder) named() hogql.Expr {
	names := b.query.Names()
	if len(names) == 0 {
		return nil
	}
	event, list := b.of("event"), &hogql.Tuple{}
	for _, n := range names {
		list.Items = append(list.Items, insight.Const(n.Name))
	}
	if len(names) == 1 {
		return insight.Eq(event, list.Items[0])
	}
	return insight.Compare(event, hogql.In, list)
}

// person is the format of a person's id.
var person = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// span returns the condition on the time of events. Without an end, events that are slightly ahead of our clock count, too.
func (b builder) span() (hogql.Expr, error) {
	const ahead = 5 * time.Second
	before, err := b.bound(b.query.Before, b.query.beforeField(), b.world.Now.Add(ahead))
	if err != nil {
		return nil, err
	}
	end := insight.Compare(b.of("timestamp"), hogql.Less, insight.Const(before))
	if b.query.After == "all" {
		return end, nil
	}
	after, err := b.bound(b.query.After, b.query.afterField(), b.world.Now.Add(-24*time.Hour))
	if err != nil {
		return nil, err
	}
	return insight.And(insight.Compare(b.of("timestamp"), hogql.Greater, insight.Const(after)), end), nil
}

func (b builder) bound(text, field string, without time.Time) (time.Time, error) {
	if text == "" {
		return without.In(b.world.Zone()), nil
	}
	t, ok := filter.Date(text, b.world.Now, b.world.Zone(), b.world.Database.WeekStart)
	if !ok {
		return t, diag.Field(diag.InvalidInput, field, "The date is neither ISO 8601 nor relative, such as -7d")
	}
	return t, nil
}

// order returns what rows are ordered by before the keys that identify them. By default the newest events come first if their time is selected,
// or the greatest groups, by count() if it is selected.
func (b builder) order(columns []hogql.Expr) ([]*hogql.Order, error) {
	if b.query.OrderBy != nil {
		out := make([]*hogql.Order, len(b.query.OrderBy))
		for i, text := range b.query.OrderBy {
			text, desc := insight.Direction(text)
			if titled(text) == insight.DisplayName {
				out[i] = &hogql.Order{X: b.calledBy(), Desc: desc}
				continue
			}
			e, err := b.expr(text, "orderBy", i)
			if err != nil {
				return nil, err
			}
			out[i] = &hogql.Order{X: e, Desc: desc}
		}
		return out, nil
	}
	counted := slices.Index(b.query.Select, "count()")
	for i, column := range columns {
		if i == counted || counted < 0 && insight.Aggregates(column) {
			return []*hogql.Order{{X: insight.Bare(column), Desc: true}}, nil
		}
	}
	for _, text := range b.query.Select {
		if name := titled(text); name == "timestamp" || name == eventColumn {
			return []*hogql.Order{{X: b.of("timestamp"), Desc: true}}, nil
		}
	}
	return []*hogql.Order{{X: insight.Bare(columns[0])}}, nil
}
