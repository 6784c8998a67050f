package cohort

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// leaves visits the conditions below a node that are not groups.
func leaves(n Node, visit func(Node)) {
	switch n := n.(type) {
	case *Group:
		for _, member := range n.All {
			leaves(member, visit)
		}
	case *Person, *Created, *Member, *Behavior:
		visit(n)
	}
}

// behaviors visits the behaviors of a definition.
func (d *Definition) behaviors(visit func(*Behavior)) {
	if d.Root == nil {
		return
	}
	leaves(d.Root, func(n Node) {
		if b, ok := n.(*Behavior); ok {
			visit(b)
		}
	})
}

// Cohorts returns the sorted ids of the cohorts that a definition names itself, without those that these cohorts name.
func Cohorts(d *Definition) []int64 {
	var out []int64
	if d.Root != nil {
		leaves(d.Root, func(n Node) {
			if m, ok := n.(*Member); ok {
				out = append(out, m.Cohort)
			}
		})
	}
	d.behaviors(func(b *Behavior) {
		cohorts, _, _ := mentioned(b.Filters)
		out = append(out, cohorts...)
	})
	return sorted(out)
}

// Actions returns the sorted numbers of the actions that a definition names itself.
func Actions(d *Definition) []int64 {
	var out []int64
	d.behaviors(func(b *Behavior) {
		for _, e := range []Entity{b.Event, b.Then} {
			if e.Action != 0 {
				out = append(out, e.Action)
			}
		}
		_, actions, _ := mentioned(b.Filters)
		out = append(out, actions...)
	})
	return sorted(out)
}

func sorted(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// mentioned returns the numbers of the cohorts and actions in the HogQL of filters. named reports whether one is mentioned by name.
func mentioned(c *query.Condition) (cohorts, actions []int64, named bool) {
	if c == nil {
		return nil, nil, false
	}
	for i := range c.All {
		more, others, byName := mentioned(&c.All[i])
		cohorts, actions, named = append(cohorts, more...), append(actions, others...), named || byName
	}
	if c.Filter == nil || c.Filter.Type != "hogql" {
		return cohorts, actions, named
	}
	e, err := filter.UserExpr(c.Filter.Key, nil)
	if err != nil {
		return cohorts, actions, named // Read has refused it
	}
	number := func(e hogql.Expr) []int64 {
		if c, ok := e.(*hogql.Const); ok {
			if id, ok := c.Value.(int64); ok {
				return []int64{id}
			}
		}
		named = true
		return nil
	}
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if c, ok := e.(*hogql.Compare); ok && (c.Op == hogql.InCohort || c.Op == hogql.NotInCohort) {
			cohorts = append(cohorts, number(c.Right)...)
		}
		if c, ok := e.(*hogql.Call); ok && strings.EqualFold(c.Name, schema.MatchesAction) && len(c.Args) == 1 {
			actions = append(actions, number(c.Args[0])...)
		}
		return true
	})
	return cohorts, actions, named
}

// Behavioral reports whether membership depends on events.
func Behavioral(d *Definition) (found bool) {
	d.behaviors(func(*Behavior) { found = true })
	return found
}
