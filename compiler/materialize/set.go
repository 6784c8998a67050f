package materialize

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// union plans queries joined by set operators. The table has the rows that the query route returns, since that route limits the members.
// Exports have no limit, so they do not read it.
func (p *Plan) union(q *query.HogQL, tree *hogql.SetQuery, env compiler.Env, o Options) error {
	limited, cut, err := bind.Limit(tree, bind.Limits{Max: env.MaxRows, Mode: bind.QueryRoute})
	if err != nil {
		return err
	}
	b := &builder{plan: p, node: q, env: env, sel: &hogql.Select{}, taken: map[string]bool{}}
	r := &reader{builder: b}
	if err := r.set(limited); err != nil {
		return err
	}
	for _, order := range tree.OrderBy {
		place, err := r.placeOf(order)
		if err != nil {
			return err
		}
		p.read.OrderBy = append(p.read.OrderBy, &hogql.Order{X: place, Desc: order.Desc, Nulls: order.Nulls})
	}
	p.read.Limit = &hogql.Limit{N: &hogql.Const{Value: int64(cut.Limit)}}
	p.cut = &cut
	p.show(o)
	return nil
}

// placeOf returns the number of the column that a set is sorted by.
func (r *reader) placeOf(order *hogql.Order) (hogql.Expr, error) {
	if c, ok := order.X.(*hogql.Const); ok && order.Fill == nil {
		return c, nil
	}
	if f, ok := order.X.(*hogql.Field); ok && len(f.Chain) == 1 && order.Fill == nil {
		if i := slices.Index(r.names, f.Chain[0].Text); i >= 0 {
			return &hogql.Const{Value: int64(i + 1)}, nil
		}
	}
	return nil, refuse("UNION, INTERSECT and EXCEPT can only be sorted by their columns to be materialized, not by '%s'", hogql.ShortText(order.X))
}

// asSet marks a read as that of a set query.
func asSet(c *compiler.Compiled, cut *bind.Cut) {
	c.Limit, c.Probe, c.DefaultLimit, c.SetQuery = cut.Limit, cut.Probe, cut.Default, cut.Set
}
