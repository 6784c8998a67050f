package references

import (
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// finder collects the references of a project.
type finder struct {
	*reader

	snap    *registry.Snapshot
	project int64
	found   *Uses
}

// find finds the references of a project. Deleted objects use nothing.
func find(snap *registry.Snapshot, project int64, r *reader) *Uses {
	f := finder{r, snap, project, &Uses{actions: make(map[int64][]Reference), cohorts: make(map[int64][]Reference)}}
	f.insights()
	f.dashboards()
	f.endpoints()
	f.cohorts()
	f.actions()
	f.testAccounts()
	r.before, r.done = nil, true
	return f.found
}

// note records what something uses. A query that reads the members of all cohorts does not count as using any of them: it works without them.
func (f *finder) note(uses compiler.Uses, ref Reference) {
	add := func(to map[int64][]Reference, ids []int64) {
		for _, id := range ids {
			list := to[id]
			last := len(list) - 1
			if last < 0 || list[last].Type != ref.Type || list[last].ID != ref.ID || list[last].UUID != ref.UUID {
				to[id] = append(list, ref)
				continue
			}
			list[last].Versions = append(list[last].Versions, ref.Versions...) // another part of the same
		}
	}
	add(f.found.actions, uses.Actions)
	add(f.found.cohorts, uses.Cohorts)
}

func (f *finder) insights() {
	for _, i := range f.snap.Insights(f.project) {
		if uses := f.ofQuery(i.Query); !uses.IsZero() {
			title := i.Title()
			f.note(uses, Reference{Type: Insight, ID: i.ID, Name: api.OrNull(title), CreatedAt: i.CreatedAt, CreatedBy: i.CreatedBy})
		}
	}
}

func (f *finder) dashboards() {
	for _, d := range f.snap.Dashboards(f.project) {
		ref := Reference{Type: Dashboard, ID: d.ID, Name: d.Name, CreatedAt: d.CreatedAt, CreatedBy: d.CreatedBy}
		f.note(f.ofOverrides(d.Filters), ref)
		for i := range d.Tiles {
			if !d.Tiles[i].Deleted {
				f.note(f.ofOverrides(d.Tiles[i].FilterOverrides), ref)
			}
		}
	}
}

// endpoints records the uses of versions that can run.
func (f *finder) endpoints() {
	for _, e := range f.snap.Endpoints(f.project) {
		for i := range e.Versions {
			v := &e.Versions[i]
			if !v.Active {
				continue
			}
			f.note(f.ofQuery(v.Query), Reference{
				Type: Endpoint, UUID: e.ID, Name: &e.Name, Versions: []int{v.Number}, CreatedAt: e.CreatedAt, CreatedBy: e.CreatedBy,
			})
		}
	}
}

// cohorts records the uses of dynamic cohorts. The query of a static one ran when its members were added.
func (f *finder) cohorts() {
	for _, c := range f.snap.Cohorts(f.project) {
		if uses := f.ofCohort(c); !uses.IsZero() {
			f.note(uses, Reference{Type: Cohort, ID: c.ID, Name: c.Name, CreatedAt: c.CreatedAt, CreatedBy: c.CreatedBy})
		}
	}
}

func (f *finder) actions() {
	for _, a := range f.snap.Actions(f.project) {
		for i := range a.Steps {
			f.note(f.ofStep(a.Steps[i].Properties), Reference{Type: Action, ID: a.ID, Name: a.Name, CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy})
		}
	}
}

func (f *finder) testAccounts() {
	of := f.snap.Schema(f.project)
	if of.TestAccounts == nil {
		return
	}
	name := "Filters against test accounts"
	f.note(compiler.UsesOfCondition(of.TestAccounts, f.env), Reference{Type: TestAccounts, ID: f.project, Name: &name, CreatedAt: of.Project.CreatedAt})
}
