// Package groups answers GroupsQuery: node ─▶ [build] ─▶ tree, and row ─▶ [shape] ─▶ row (contract: api.md, section 1.6).
package groups

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// table is the name of the table of groups, and nameColumn the column that shows a group's name and key, as an object.
const (
	table      = "groups"
	nameColumn = "group_name"
)

// of refers to a field of groups. It names the table, so that no column of the query hides the field.
func of(chain ...string) hogql.Expr { return insight.Field(append([]string{table}, chain...)...) }

// builder builds the parts of one query.
type builder struct {
	query *Query
	world *insight.World
}

// Build returns the query for a list of groups. most is the maximum limit. The error is a *diag.Error.
func Build(q *Query, w *insight.World, most int) (*insight.Listing, error) {
	b := builder{q, w}
	s := &hogql.Select{From: &hogql.TableName{Chain: []hogql.Name{{Text: table}}, Group: &q.Type}}
	filters, err := w.GroupCondition(q.Properties, q.Type, table)
	if err != nil {
		return nil, err
	}
	s.Where = insight.And(insight.Eq(of("index"), insight.Const(int64(q.Type))), filters, b.search())
	built := &insight.Listing{Query: s, Limit: min(cmp.Or(q.Limit, bind.DefaultRows), most), Offset: q.Offset, Columns: slices.Clone(q.Select)}
	objects := map[int]insight.Object{}
	for i, text := range q.Select {
		if text == nameColumn {
			objects[i] = insight.ObjectOf([]insight.Member{{Name: "display_name"}, {Name: "key"}})
			s.Columns = append(s.Columns, insight.As(&hogql.Tuple{Items: []hogql.Expr{b.name(), of("key")}}, "_column_"+strconv.Itoa(i+1)))
		} else {
			at := q.Field("select." + strconv.Itoa(i))
			column, err := w.UserExpr(text, at)
			if err != nil {
				return nil, err
			}
			if insight.Spreads(column) {
				return nil, diag.Field(diag.QueryError, at, "Columns are named one by one here")
			}
			s.Columns = append(s.Columns, column)
		}
	}
	built.Row = insight.Objects(len(q.Select), objects)
	if s.OrderBy, err = b.order(slices.ContainsFunc(s.Columns, func(x hogql.Expr) bool { return insight.Aggregates(x) })); err != nil {
		return nil, err
	}
	insight.Page(s, &hogql.Order{X: of("key")}, built.Limit, q.Offset)
	return built, nil
}

// name returns the name of a group, its key if it has none.
func (b builder) name() hogql.Expr {
	return insight.Call("coalesce", insight.Call("toString", of("properties", "name")), of("key"))
}

// search returns the condition that part of a group's name or key matches the search; nil for all groups.
func (b builder) search() hogql.Expr {
	if b.query.Search == "" {
		return nil
	}
	like := func(x hogql.Expr) hogql.Expr {
		return insight.Compare(x, hogql.ILike, insight.Const(filter.Containing(b.query.Search)))
	}
	return insight.Or(like(insight.Call("toString", of("properties", "name"))), like(of("key")))
}

// order returns what rows are ordered by before the keys that identify them. By default the groups that were created last come first. Those whose
// name is what is searched for, or begins with it, come before others: of all, or of those that are equal in the order asked for.
func (b builder) order(aggregates bool) ([]*hogql.Order, error) {
	var out []*hogql.Order
	for i, text := range b.query.OrderBy {
		text, desc := insight.Direction(text)
		if strings.TrimSpace(text) == nameColumn {
			out = append(out, &hogql.Order{X: b.name(), Desc: desc})
			continue
		}
		e, err := b.world.UserExpr(text, b.query.Field("orderBy."+strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		out = append(out, &hogql.Order{X: e, Desc: desc})
	}
	if aggregates {
		return out, nil
	}
	if search := b.query.Search; search != "" {
		out = append(out, &hogql.Order{X: insight.TemplateExpr("multiIf(lower({name}) = lower({search}), 0, startsWith(lower({name}), lower({search})), 1, 2)", map[string]any{
			"name": b.name(), "search": search,
		})})
	}
	if len(b.query.OrderBy) == 0 {
		out = append(out, &hogql.Order{X: of("created_at"), Desc: true})
	}
	return out, nil
}
