// Package actors answers ActorsQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ rows (contract: api.md, section 1.6).
package actors

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// builder builds the parts of one query.
//
// If the query shows actors as objects, it has two levels: a page of rows, with its conditions, order and limit; and around it the joins
// with everything that is known of the actors of the page, and of no others.
type builder struct {
	query  *Query
	world  *insight.World
	people *insight.People // nil for all people
	kind   kind
	// known reports whether the page reads the table of people or groups, not just the source.
	known bool
	cells []cell
}

// cell is one column of the answer.
type cell struct {
	text   string
	x      hogql.Expr // in the page; nil for an object, for which the page has the actor's id
	name   string     // of the column in the page
	object insight.Object
}

// Build returns the query for a list of actors. people are those of its source, nil for all people; most is the maximum limit. The error is
// a *diag.Error.
func Build(q *Query, people *insight.People, w *insight.World, most int) (*insight.Listing, error) {
	b := &builder{query: q, world: w, people: people, kind: personKind}
	if people != nil && people.Group != nil {
		b.kind = groupKind
	}
	if err := b.readColumns(); err != nil {
		return nil, err
	}
	limit := min(cmp.Or(q.Limit, bind.DefaultRows), most)
	page, err := b.page(limit)
	if err != nil {
		return nil, err
	}
	out := &insight.Listing{Query: page, Limit: limit, Offset: q.Offset, Columns: b.names()}
	b.shape(out)
	if out.Missing != nil {
		out.Query = b.over(page)
	}
	return out, nil
}

// names returns the names of the answer's columns.
func (b *builder) names() []string {
	out := make([]string, len(b.cells))
	for i, c := range b.cells {
		out[i] = c.text
	}
	return out
}

// columns returns the columns that the query selects, or the default ones, and those that are always shown.
func (b *builder) columns() []string {
	list := b.query.Select
	switch {
	case len(list) > 0:
	case b.kind.group:
		list = []string{"group"}
	default:
		list = []string{"person", "id", deleteButton}
	}
	if b.people != nil {
		for _, name := range b.people.Always {
			if !slices.Contains(list, name) {
				list = append(slices.Clip(list), name)
			}
		}
	}
	return list
}

// deleteButton is a column that only makes PostHog's own pages show a button. Its value is always 1.
const deleteButton = "person.$delete"

func (b *builder) readColumns() error {
	list := b.columns()
	for i, text := range list {
		c := cell{text: text, name: "column_" + strconv.Itoa(i+1)}
		switch label, _, _ := strings.Cut(text, "--"); strings.TrimSpace(label) {
		case b.kind.object, "actor":
			c.object = b.object
		case deleteButton:
			c.x = insight.Const(int64(1))
		case insight.DisplayName:
			if b.kind.group {
				return diag.Field(diag.QueryError, b.query.Field("select."+strconv.Itoa(i)), "Only people have a %s", insight.DisplayName)
			}
			c.x, c.object = b.displayTuple(), insight.ObjectOf([]insight.Member{{Name: "display_name"}, {Name: "id"}})
		case "matched_recordings":
			c.x = &hogql.Array{} // sessions are not recorded, so there are none
		default:
			var err error
			if c.x, err = b.expr(text, "select", i); err != nil {
				return err
			}
		}
		if named, ok := c.x.(*hogql.Alias); ok {
			c.x = named.X
			if !b.named(named.Name.Text) {
				c.name = named.Name.Text
			}
		}
		b.cells = append(b.cells, c)
	}
	return nil
}

// named reports whether a column of the page already has this name, or could get it.
func (b *builder) named(name string) bool {
	for _, c := range b.cells {
		if c.name == name {
			return true
		}
	}
	return strings.HasPrefix(name, "column_") || strings.HasPrefix(name, "order_") || name == insight.ActorID
}

func (b *builder) displayTuple() hogql.Expr {
	id := insight.Call("toString", b.of("id"))
	name := b.world.PersonName(func(property string) hogql.Expr { return b.of("properties", property) }, id)
	return &hogql.Tuple{Items: []hogql.Expr{name, id}}
}

// expr parses an expression of one of the node's lists.
func (b *builder) expr(text, field string, i int) (hogql.Expr, error) {
	return b.world.UserExpr(text, b.query.Field(field+"."+strconv.Itoa(i)))
}

// page builds the query for the rows, with the actor's id in place of objects.
func (b *builder) page(limit int) (*hogql.Select, error) {
	conditions, err := b.conditions()
	if err != nil {
		return nil, err
	}
	order, err := b.order()
	if err != nil {
		return nil, err
	}
	used := append([]hogql.Expr{conditions}, expressions(order)...)
	for _, c := range b.cells {
		used = append(used, c.x)
	}
	b.known = b.people == nil || !b.covers(used)
	s := &hogql.Select{From: b.from(), Where: conditions}
	if b.people != nil && b.known {
		s.With = []*hogql.CTE{{Name: hogql.Name{Text: behindName}, Query: b.people.Query}}
	}
	if b.people != nil && b.known && !b.people.Shaky { // look up only these
		s.Where = insight.And(s.Where, insight.Compare(b.id(), hogql.In, &hogql.Subquery{Query: insight.Template("select actor_id from behind", nil)}))
	}
	objects, aggregates := false, false
	var keys []hogql.Expr // identify a row
	for _, c := range b.cells {
		x := c.x
		if x == nil {
			objects, x = true, b.id()
		}
		s.Columns = append(s.Columns, insight.As(x, c.name))
		if _, constant := x.(*hogql.Const); insight.Aggregates(x) {
			aggregates = true
		} else if !constant {
			keys = append(keys, x)
		}
	}
	if aggregates {
		s.GroupBy = insight.GroupBy(keys...)
	} else {
		keys = []hogql.Expr{b.id()}
	}
	s.OrderBy = b.total(insight.Unplaced(order, s.Columns), keys)
	if objects {
		s.Columns = append(s.Columns, insight.As(b.id(), insight.ActorID))
		for i, o := range s.OrderBy {
			s.Columns = append(s.Columns, insight.As(o.X, orderName(i)))
		}
	}
	s.Limit = &hogql.Limit{N: insight.Const(int64(limit) + 1)}
	if b.query.Offset > 0 {
		s.Limit.Offset = insight.Const(int64(b.query.Offset))
	}
	return s, nil
}

// total adds missing keys to an order. A row of somebody may be ordered by the name of its id.
func (b *builder) total(order []*hogql.Order, keys []hogql.Expr) []*hogql.Order {
	id := hogql.PrintExpr(b.id())
	named := slices.ContainsFunc(order, func(o *hogql.Order) bool { return hogql.PrintExpr(o.X) == b.kind.id })
	for _, key := range keys {
		if !named || hogql.PrintExpr(key) != id {
			order = insight.Total(order, &hogql.Order{X: key})
		}
	}
	return order
}

func orderName(i int) string { return "order_" + strconv.Itoa(i+1) }

func expressions(order []*hogql.Order) []hogql.Expr {
	out := make([]hogql.Expr, len(order))
	for i, o := range order {
		out[i] = o.X
	}
	return out
}
