package cohort

import (
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// pass selects people by their events.
const pass = `SELECT person_id FROM events WHERE {rows} GROUP BY person_id HAVING {condition}`

// tally is what a pass over events computes for one behavior.
type tally struct {
	// rows is the condition on the events that are read.
	rows hogql.Expr
	// names are the names of these events; nil for any. The events lie between from, which is zero for all of history, and to.
	names    []string
	from, to time.Time
	// holds returns the condition on a person's events; it returns nil if having one such event is enough.
	holds func(among) hogql.Expr
}

// among selects the events of one tally in a pass: those that satisfy rows, or all if rows is nil.
type among struct{ rows hogql.Expr }

// count counts the events that also satisfy condition; nil for all.
func (a among) count(condition hogql.Expr) hogql.Expr {
	if condition = insight.And(a.rows, condition); condition == nil {
		return insight.Call("count")
	}
	return insight.Call("countIf", condition)
}

// some returns the condition that there is such an event.
func (a among) some(condition hogql.Expr) hogql.Expr {
	return insight.Compare(a.count(condition), hogql.Greater, insight.Const(int64(0)))
}

// aggregate calls an aggregate function over a value of the events that also satisfy condition; nil for all.
func (a among) aggregate(name string, value, condition hogql.Expr) hogql.Expr {
	if condition = insight.And(a.rows, condition); condition == nil {
		return insight.Call(name, value)
	}
	return insight.Call(name+"If", value, condition)
}

// scan lists a set of people by one pass over events.
func (b *builder) scan(s set, condition conditions) (hogql.Query, error) {
	var all []tally
	byNode := map[Node]int{}
	if _, err := b.condition(s, func(n Node) (hogql.Expr, error) {
		t, err := b.tally(n.(*Behavior))
		byNode[n], all = len(all), append(all, t)
		return nil, err
	}); err != nil {
		return nil, err
	}
	rows := all[0].rows
	if len(all) > 1 {
		rows = insight.And(narrowest(all), anyRows(all))
	}
	having, err := b.condition(s, func(n Node) (hogql.Expr, error) {
		t := all[byNode[n]]
		if len(all) == 1 {
			return t.holds(among{}), nil
		}
		if holds := t.holds(among{t.rows}); holds != nil {
			return holds, nil
		}
		return among{t.rows}.some(nil), nil
	})
	if err != nil {
		return nil, err
	}
	q := insight.Template(pass, map[string]any{"rows": rows, "condition": insight.OrTrue(insight.And(having, condition.on(PersonID)))}).(*hogql.Select)
	if having == nil && len(condition) == 0 {
		q.Having = nil
	}
	return q, nil
}

// anyRows returns the condition that at least one of several tallies reads an event.
func anyRows(all []tally) hogql.Expr {
	rows := make([]hogql.Expr, len(all))
	for i, t := range all {
		rows[i] = t.rows
	}
	return insight.Or(rows...)
}

// narrowest returns a condition that holds for the events of all tallies and that ClickHouse can look up in its index; nil for none.
func narrowest(all []tally) hogql.Expr {
	var names []string
	from, to, named := all[0].from, all[0].to, true
	for _, t := range all {
		names, named = append(names, t.names...), named && t.names != nil
		if t.from.Before(from) {
			from = t.from
		}
		if t.to.After(to) {
			to = t.to
		}
	}
	conditions := []hogql.Expr{at(hogql.LessOrEquals, to)}
	if !from.IsZero() {
		conditions = append(conditions, at(hogql.GreaterOrEquals, from))
	}
	if named {
		slices.Sort(names)
		list := &hogql.Tuple{}
		for _, name := range slices.Compact(names) {
			list.Items = append(list.Items, insight.Const(name))
		}
		conditions = append(conditions, insight.Compare(insight.Field("event"), hogql.In, list))
	}
	return insight.And(conditions...)
}
