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
			all = joined(all, r.ofStep(steps[i].Properties))
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

// reach follows uses through existing actions and cohorts. Deleted ones lead nowhere.
func (r *reader) reach(snap *registry.Snapshot, project int64, next compiler.Uses) Reached {
	actions, cohorts := make(map[int64]bool), make(map[int64]bool)
	for len(next.Actions)+len(next.Cohorts) > 0 {
		var after compiler.Uses
		for _, id := range next.Actions {
			if a := snap.AnyAction(project, id); !actions[id] && a != nil && !a.Deleted {
				for i := range a.Steps {
					after = joined(after, r.ofStep(a.Steps[i].Properties))
				}
			}
			actions[id] = true
		}
		for _, id := range next.Cohorts {
			if c := snap.Cohort(project, id); !cohorts[id] && c != nil {
				after = joined(after, r.ofCohort(c))
			}
			cohorts[id] = true
		}
		next = after
	}
	return Reached{slices.Sorted(maps.Keys(actions)), slices.Sorted(maps.Keys(cohorts))}
}

func joined(a, b compiler.Uses) compiler.Uses {
	return compiler.Uses{Actions: append(slices.Clip(a.Actions), b.Actions...), Cohorts: append(slices.Clip(a.Cohorts), b.Cohorts...)}
}
