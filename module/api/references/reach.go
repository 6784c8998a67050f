package references

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Reached are the ids of the actions and cohorts that something depends on, sorted: those that it uses, those that these use, and so on.
type Reached struct{ Actions, Cohorts []int64 }

// OfQuery returns what a query of a project depends on. A query that reads the members of all cohorts does not count as depending on any of them.
func (x *Index) OfQuery(snap *registry.Snapshot, project int64, query json.RawMessage) Reached {
	of := snap.Schema(project)
	if of == nil || len(of.Actions)+len(of.Cohorts) == 0 {
		return Reached{}
	}
	return x.reach(snap, project, func(r *reader) compiler.Uses { return r.ofQuery(query) })
}

// OfSteps returns what the steps of an action depend on.
func (x *Index) OfSteps(snap *registry.Snapshot, project int64, steps []registry.ActionStep) Reached {
	return x.reach(snap, project, func(r *reader) (all compiler.Uses) {
		for i := range steps {
			uses := r.ofStep(steps[i].Properties)
			all.Actions, all.Cohorts = append(all.Actions, uses.Actions...), append(all.Cohorts, uses.Cohorts...)
		}
		return all
	})
}

// OfDefinition returns what the definition of a cohort depends on.
func (x *Index) OfDefinition(snap *registry.Snapshot, c *registry.Cohort) Reached {
	return x.reach(snap, c.Project, func(r *reader) compiler.Uses { return r.ofCohort(c) })
}

func (x *Index) reach(snap *registry.Snapshot, project int64, first func(*reader) compiler.Uses) Reached {
	k := x.known(project)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.update(snap, project)
	return k.reader.reach(snap, project, first(k.reader))
}

// reach follows uses through existing actions and cohorts, each once. Deleted ones lead nowhere.
func (r *reader) reach(snap *registry.Snapshot, project int64, first compiler.Uses) Reached {
	actions, cohorts := make(map[int64]bool), make(map[int64]bool)
	var left compiler.Uses
	add := func(found compiler.Uses) {
		left.Actions = addNew(left.Actions, actions, found.Actions)
		left.Cohorts = addNew(left.Cohorts, cohorts, found.Cohorts)
	}
	add(first)
	for {
		if n := len(left.Actions) - 1; n >= 0 {
			a := snap.AnyAction(project, left.Actions[n])
			left.Actions = left.Actions[:n]
			if a != nil && !a.Deleted {
				for i := range a.Steps {
					add(r.ofStep(a.Steps[i].Properties))
				}
			}
		} else if n := len(left.Cohorts) - 1; n >= 0 {
			c := snap.Cohort(project, left.Cohorts[n])
			left.Cohorts = left.Cohorts[:n]
			if c != nil {
				add(r.ofCohort(c))
			}
		} else {
			return Reached{slices.Sorted(maps.Keys(actions)), slices.Sorted(maps.Keys(cohorts))}
		}
	}
}

// addNew appends the ids that are not known, which they are then.
func addNew(to []int64, known map[int64]bool, ids []int64) []int64 {
	for _, id := range ids {
		if !known[id] {
			known[id] = true
			to = append(to, id)
		}
	}
	return to
}
