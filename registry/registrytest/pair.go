package registrytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// pair is a registry, and another one on the same data, as in another process.
type pair struct {
	exam
	*registry.Registry

	other *registry.Registry
}

// wholeJSON compares JSON as a whole, where cmp would compare it byte by byte.
var wholeJSON = cmp.FilterValues(func(a, b json.RawMessage) bool { return len(a) > 0 && len(b) > 0 }, cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))

// quiet leaves the background work to other tests.
var quiet = registry.Options{Poll: time.Hour, Gather: time.Hour, Uses: time.Hour, Purge: time.Hour}

func newPair(t exam) pair { return pair{t, openRegistry(t), openRegistry(t)} }

func openRegistry(t exam) *registry.Registry {
	t.Helper()
	r, err := registry.Open(t.Context(), t.place(t.T), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return r
}

// project is all that a snapshot shows of a project.
type project struct {
	Project     registry.Project
	Keys        []registry.Key // newest first
	Secrets     []registry.TokenSecret
	Captures    []registry.CaptureToken
	Endpoints   []registry.Endpoint // newest first
	Variables   []registry.Variable // oldest first
	Insights    []registry.Insight  // deleted ones too
	Listed      []int64
	Dashboards  []registry.Dashboard // deleted ones too
	Tiles       map[int64][]registry.Tile
	Properties  []registry.PropertyDefinition
	Values      map[registry.PropertyDefinition]physical.Kinds
	GroupTypes  []registry.GroupType
	Cohorts     []registry.Cohort // deleted ones too
	Schema      []registry.SchemaCohort
	Actions     []registry.Action           // deleted ones too
	Newest      []int64                     // actions in the order of a list
	Defined     []registry.ActionDefinition // what queries follow from them
	Alerts      []registry.Alert            // in the order of a list
	Definitions []registry.Definition       // in the order of a list
	Annotations []registry.Annotation       // in the order of a list
	Deletions   []registry.Deletion         // in the order of a list
}

// someNumbers is more than the numbers of insights and dashboards in these tests.
const someNumbers = 20

func contents(s *registry.Snapshot) []project {
	var all []project
	for _, p := range s.Projects() {
		out := project{
			Project: *p, Secrets: s.TokenSecrets(p.ID), Captures: s.CaptureTokens(p.ID), Properties: s.PropertyDefinitions(p.ID), Values: s.Schema(p.ID).Values, GroupTypes: s.GroupTypes(p.ID), Schema: s.Schema(p.ID).Cohorts,
			Keys: values(s.Keys(p.ID)), Endpoints: values(s.Endpoints(p.ID)), Variables: values(s.Variables(p.ID)), Tiles: make(map[int64][]registry.Tile),
			Alerts: values(s.Alerts(p.ID)), Definitions: values(s.Definitions(p.ID)), Annotations: values(s.Annotations(p.ID)),
			Deletions: values(s.Deletions(p.ID)),
		}
		listed, _ := s.InsightPage(p.ID, 0, someNumbers)
		for _, i := range listed {
			out.Listed = append(out.Listed, i.ID)
		}
		for _, a := range s.Actions(p.ID) {
			out.Newest = append(out.Newest, a.ID)
		}
		out.Defined = s.Schema(p.ID).Actions
		for n := range int64(someNumbers) {
			if i := s.AnyInsight(p.ID, n); i != nil {
				out.Insights = append(out.Insights, *i)
			}
			if d := s.AnyDashboard(p.ID, n); d != nil {
				out.Dashboards = append(out.Dashboards, *d)
			}
			if a := s.AnyAction(p.ID, n); a != nil {
				out.Actions = append(out.Actions, *a)
			}
			if tiles := s.TilesOf(p.ID, n); len(tiles) > 0 {
				out.Tiles[n] = values(tiles)
			}
		}
		for _, c := range out.Schema {
			out.Cohorts = append(out.Cohorts, *s.AnyCohort(p.ID, c.ID))
		}
		all = append(all, out)
	}
	return all
}

func values[T any](list []*T) (out []T) {
	for _, v := range list {
		out = append(out, *v)
	}
	return out
}

// settled checks that the registry shows what the store has, and that the other one gets there by reading what changed. It returns what a registry shows that
// reads the whole store.
func (p pair) settled() []project {
	p.Helper()
	if err := p.other.Refresh(p.Context()); err != nil {
		p.Fatal(err)
	}
	fresh := openRegistry(p.exam)
	for name, r := range map[string]*registry.Registry{"the registry that wrote": p.Registry, "the other registry": p.other} {
		if diff := cmp.Diff(contents(fresh.Snapshot()), contents(r.Snapshot()), cmpopts.EquateEmpty(), wholeJSON); diff != "" {
			p.Errorf("%s is not what the store has (-store +snapshot):\n%s", name, diff)
		}
	}
	return contents(fresh.Snapshot())
}

// same compares a part of what the store has.
func same(t exam, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeJSON); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// refused checks that do fails with want, or with a mistake that has its code, and changes nothing.
func (p pair) refused(what string, want error, do func() error) {
	p.Helper()
	before := contents(p.Snapshot())
	err := do()
	if mistake, ok := errors.AsType[*registry.FieldError](want); ok {
		got, _ := errors.AsType[*registry.FieldError](err)
		if got == nil || got.Code != mistake.Code || got.Field != mistake.Field {
			p.Errorf("%s: %v, want %v", what, err, want)
		}
	} else if !errors.Is(err, want) {
		p.Errorf("%s: %v, want %v", what, err, want)
	}
	same(p.exam, "after "+what, before, p.settled())
}

// must returns a result that can't fail.
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func (p pair) project() *registry.Project {
	p.Helper()
	return must(p.CreateProject(p.Context(), registry.NewProject{Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1}, at))(p)
}

func (p pair) key(n registry.NewKey) registry.Key {
	p.Helper()
	if n.Scopes == nil {
		n.Scopes = []string{"endpoint:read", "query:read"}
	}
	k, _, err := p.CreateKey(p.Context(), n, at)
	if err != nil {
		p.Fatal(err)
	}
	return *k
}

func (p pair) endpoint(project int64, name string) {
	p.Helper()
	must(p.CreateEndpoint(p.Context(), registry.NewEndpoint{Project: project, Name: name, Query: odd("0")}, at))(p)
}

func (p pair) insight(project int64, f registry.InsightFields) registry.Insight {
	p.Helper()
	return *must(p.CreateInsight(p.Context(), project, f, "key", at))(p)
}

func (p pair) dashboard(project int64, f registry.DashboardFields) registry.Dashboard {
	p.Helper()
	return *must(p.CreateDashboard(p.Context(), project, f, "key", at))(p)
}

// odd is a query with all that could go wrong on its way to a store and back.
func odd(sql string) json.RawMessage {
	return json.RawMessage(`{"kind":"HogQLQuery","query":"select 'ä\u0000\n <b>&' -- ` + sql + `","n":1.0,"big":123456789012345678901234567890}`)
}

func named(name string) registry.InsightFields {
	return registry.InsightFields{Name: registry.To(&name)}
}

func staticCohort(name string) registry.CohortFields {
	return registry.CohortFields{Name: registry.To(&name), Static: registry.To(true)}
}
