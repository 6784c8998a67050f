package registrytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// wholeJSON compares JSON at once, where cmp would look at one byte after the other.
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

// settled checks that the registry shows what the store has, and that the other one comes to the same by reading what changed. It
// returns what a registry shows that reads the store whole.
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
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// refused checks that do fails with want, or with a mistake of its code, and changes nothing.
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

func testProjects(t exam) {
	p := newPair(t)
	first, second := p.project(), p.project()
	if first.ID != 1 || second.ID != 2 {
		t.Errorf("projects got the numbers %d and %d, want 1 and 2", first.ID, second.ID)
	}
	var want []project
	for id := range int64(2) {
		shop := registry.Project{ID: id + 1, Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1, CreatedAt: at}
		want = append(want, project{Project: shop, Captures: p.Snapshot().CaptureTokens(shop.ID)})
	}
	same(t, "projects", want, p.settled())
	change := registry.ProjectChange{
		Name: new("Other"), Timezone: new("UTC"), WeekStart: new(0), TestAccountFilters: new(`[{"key": "email", "value": "' \" ; --", "type": "person"}]`),
		PathCleaningFilters: new(`[{"regex": "/\\d+", "alias": "/:id"}]`), At: at.Add(time.Hour),
	}
	changed := *must(p.UpdateProject(t.Context(), 2, change))(t)
	want[1].Project = registry.Project{
		ID: 2, Name: "Other", Timezone: "UTC", CreatedAt: at, UpdatedAt: at.Add(time.Hour), TestAccountFilters: *change.TestAccountFilters, PathCleaningFilters: *change.PathCleaningFilters,
	}
	same(t, "the change", want[1].Project, changed)
	same(t, "projects", want, p.settled())
}

func testUnknownProject(t exam) {
	p := newPair(t)
	p.project()
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"a key": func() error {
			_, _, err := p.CreateKey(ctx, registry.NewKey{Project: 9, Scopes: []string{"*"}}, at)
			return err
		},
		"an endpoint": func() error {
			_, err := p.CreateEndpoint(ctx, registry.NewEndpoint{Project: 9, Name: "e", Query: odd("")}, at)
			return err
		},
		"a cohort": func() error {
			_, err := p.CreateCohort(ctx, registry.NewCohort{Project: 9, CohortFields: staticCohort("c")}, at)
			return err
		},
		"an action": func() error { _, err := p.CreateAction(ctx, 9, registry.ActionFields{}, "key", at); return err },
		"a variable": func() error {
			_, err := p.CreateVariable(ctx, registry.NewVariable{Project: 9, Name: "v", Type: registry.VariableList}, at)
			return err
		},
		"an insight":      func() error { _, err := p.CreateInsight(ctx, 9, named("i"), "key", at); return err },
		"a dashboard":     func() error { _, err := p.CreateDashboard(ctx, 9, registry.DashboardFields{}, "key", at); return err },
		"a capture token": func() error { _, err := p.RotateCaptureToken(ctx, 9, at); return err },
		"a secret":        func() error { _, err := p.TokenSecret(ctx, 9, at); return err },
		"a rotation":      func() error { _, err := p.RotateTokenSecret(ctx, 9, false, at); return err },
		"a property": func() error {
			return p.SetProperty(ctx, 9, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyNumeric})
		},
		"a group type":       func() error { return p.Learn(ctx, 9, nil, []registry.GroupType{{Name: "x"}}) },
		"a batch":            func() error { return p.Apply(ctx, 9, registry.Batch{}, at) },
		"a purge":            func() error { _, err := p.Purge(ctx, 9, at); return err },
		"a project's change": func() error { _, err := p.UpdateProject(ctx, 9, registry.ProjectChange{}); return err },
	} {
		p.refused(name, registry.ErrNotFound, do)
	}
}

func testMissing(t exam) {
	p := newPair(t)
	mine, other := p.project(), p.project()
	ctx := t.Context()
	i := p.insight(other.ID, named("i"))
	d := p.dashboard(other.ID, registry.DashboardFields{})
	must(p.CreateCohort(ctx, registry.NewCohort{Project: other.ID, ID: 5, CohortFields: staticCohort("theirs")}, at))(t)
	a := must(p.CreateAction(ctx, other.ID, registry.ActionFields{}, "key", at))(t)
	p.endpoint(other.ID, "theirs")
	v := must(p.CreateVariable(ctx, registry.NewVariable{Project: other.ID, Name: "v", Type: registry.VariableString}, at))(t)
	p.endpoint(mine.ID, "gone")
	if err := p.DeleteEndpoint(ctx, mine.ID, "gone", at); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"rolling a key":  func() error { _, _, err := p.RollKey(ctx, "k", nil, at); return err },
		"revoking a key": func() error { _, err := p.RevokeKey(ctx, "k", at); return err },
		"changing a key": func() error { _, err := p.UpdateKey(ctx, "k", registry.KeyUpdate{}, at); return err },
		"changing an endpoint of another project": func() error {
			_, err := p.UpdateEndpoint(ctx, mine.ID, "theirs", registry.EndpointUpdate{}, at)
			return err
		},
		"changing an endpoint that is deleted": func() error {
			_, err := p.UpdateEndpoint(ctx, mine.ID, "gone", registry.EndpointUpdate{}, at)
			return err
		},
		"promoting an endpoint that is deleted":   func() error { _, err := p.Promote(ctx, mine.ID, "gone", 1, nil, at); return err },
		"deleting an endpoint of another project": func() error { return p.DeleteEndpoint(ctx, mine.ID, "theirs", at) },
		"deleting an endpoint that is deleted":    func() error { return p.DeleteEndpoint(ctx, mine.ID, "gone", at) },
		"changing a variable of another project":  func() error { _, err := p.UpdateVariable(ctx, mine.ID, v.ID, registry.VariableUpdate{}); return err },
		"deleting a variable of another project":  func() error { return p.DeleteVariable(ctx, mine.ID, v.ID) },
		"renaming a cohort of another project":    func() error { _, err := p.UpdateCohort(ctx, mine.ID, 5, staticCohort("mine"), at); return err },
		"computing a cohort of another project":   func() error { _, err := p.AwaitCohort(ctx, mine.ID, 5); return err },
		"filling a cohort of another project":     func() error { _, err := p.SetCohortMembers(ctx, mine.ID, 5, 1, at); return err },
		"changing an action of another project": func() error {
			_, err := p.UpdateAction(ctx, mine.ID, a.ID, registry.ActionFields{}, at)
			return err
		},
		"changing an insight of another project": func() error {
			_, err := p.UpdateInsight(ctx, mine.ID, i.ID, named("mine"), true, "key", at)
			return err
		},
		"changing a dashboard of another project": func() error {
			_, err := p.UpdateDashboard(ctx, mine.ID, d.ID, registry.DashboardFields{}, "key", at)
			return err
		},
	} {
		p.refused(name, registry.ErrNotFound, do)
	}
	p.refused("an insight on another project's dashboard", &registry.FieldError{Field: "dashboards", Code: registry.CodeNoObject}, func() error {
		_, err := p.CreateInsight(ctx, mine.ID, registry.InsightFields{Dashboards: registry.To([]int64{d.ID})}, "key", at)
		return err
	})
	p.refused("another project's insight on a dashboard", &registry.FieldError{Field: "tiles.0.insight", Code: registry.CodeNoObject}, func() error {
		_, err := p.CreateDashboard(ctx, mine.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}}, "key", at)
		return err
	})
	p.refused("a tile that is not there", &registry.FieldError{Field: "tiles.0.id", Code: registry.CodeNoObject}, func() error {
		_, err := p.UpdateDashboard(ctx, other.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: 9}}}, "key", at)
		return err
	})
	p.refused("a version that is not there", &registry.FieldError{Field: "version", Code: registry.CodeInvalid}, func() error {
		_, err := p.UpdateEndpoint(ctx, other.ID, "theirs", registry.EndpointUpdate{Version: 2}, at)
		return err
	})
}

func testEndpoints(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	full := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{
		Project: shop.ID, Name: "daily", Query: odd("1"), Description: "Größe — ≤ 1", FreshnessSeconds: 900, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"},
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, Columns: []registry.Column{{Name: "n", Type: "integer", ClickHouse: "UInt8"}},
		OptionalBreakdowns: []string{"plan", "a"}, DeprecatedAt: at.Add(time.Minute), SunsetAt: at.Add(time.Hour), CreatedBy: "key",
	}, at.Add(time.Second)))(t)
	same(t, "a new endpoint", registry.Endpoint{
		ID: full.ID, Project: shop.ID, Name: "daily", Active: true, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"}, CurrentVersion: 1,
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, CreatedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Second), CreatedBy: "key",
		Versions: []registry.Version{{
			ID: full.Versions[0].ID, Number: 1, Query: odd("1"), Description: "Größe — ≤ 1", FreshnessSeconds: 900, Active: true,
			Columns:   []registry.Column{{Name: "n", Type: "integer", ClickHouse: "UInt8"}},
			CreatedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Second), CreatedBy: "key", PublishedAt: at.Add(time.Second),
			DeprecatedAt: at.Add(time.Minute), SunsetAt: at.Add(time.Hour), OptionalBreakdowns: []string{"plan", "a"},
		}},
	}, full)
	bare := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "Bare", Query: odd("1"), Inactive: true}, at))(t)
	same(t, "endpoints", []registry.Endpoint{full, bare}, p.settled()[0].Endpoints)
	if bare.Versions[0].Columns != nil || p.other.Snapshot().Endpoint(shop.ID, "Bare").Versions[0].Columns != nil {
		t.Error("columns that are not known have become none")
	}

	later := at.Add(time.Hour)
	full = *must(p.UpdateEndpoint(ctx, shop.ID, "daily", registry.EndpointUpdate{
		Version: 1, Description: new(""), FreshnessSeconds: new(1), Active: new(false), Columns: []registry.Column{}, DeprecatedAt: &time.Time{}, SunsetAt: &later,
		OptionalBreakdowns: &[]string{}, Tags: &[]string{"c"}, RateLimit: &registry.Rate{},
	}, later))(t)
	for n := 2; n <= 11; n++ { // ten and more sort as numbers
		full = *must(p.UpdateEndpoint(ctx, shop.ID, "daily", registry.EndpointUpdate{Query: odd(strconv.Itoa(n)), Draft: n == 7, By: "another"}, later))(t)
	}
	full = *must(p.Promote(ctx, shop.ID, "daily", 3, nil, later))(t)
	if len(full.Versions) != 11 || full.CurrentVersion != 3 || !full.Versions[6].Draft() || full.Versions[0].Active || string(full.Versions[10].Query) != string(odd("11")) {
		t.Errorf("the endpoint is %+v", full)
	}
	same(t, "endpoints", []registry.Endpoint{full, bare}, p.settled()[0].Endpoints)

	if err := p.DeleteEndpoint(ctx, shop.ID, "daily", later); err != nil {
		t.Fatal(err)
	}
	again := *must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("1")}, later))(t)
	same(t, "endpoints", []registry.Endpoint{again, bare}, p.settled()[0].Endpoints)
}

// testTables: the tables of materialized versions, their fills, and what takes them away.
func testTables(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	on, off := registry.TableUpdate{On: new(true)}, registry.TableUpdate{On: new(false)}
	tables := func() (all []*registry.Table) {
		t.Helper()
		for _, v := range p.settled()[0].Endpoints[0].Versions {
			all = append(all, v.Table)
		}
		if shown := p.Snapshot().Endpoint(shop.ID, "daily"); shown != nil && len(shown.Versions) != len(all) {
			t.Errorf("the endpoint has %d versions, and %d in the store", len(shown.Versions), len(all))
		}
		return all
	}
	update := func(u registry.EndpointUpdate, when time.Time) {
		t.Helper()
		must(p.UpdateEndpoint(ctx, shop.ID, "daily", u, when))(t)
	}
	buckets := map[string]string{"timestamp": "hour"}
	e := must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("1"), Table: registry.TableUpdate{On: new(true), Buckets: buckets}}, at))(t)
	made := tables()[0]
	same(t, "a new table", &registry.Table{ID: made.ID, Buckets: buckets, Pending: at.UnixMilli()}, made)

	begun := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	if !begun.Running || begun.Pending <= made.Pending {
		t.Errorf("the fill that was begun is %+v", begun)
	}
	if must(p.SwapFill(ctx, shop.ID, e.ID, 1, made.Pending, registry.Table{}))(t) {
		t.Error("a fill that was given up is read")
	}
	if !must(p.SwapFill(ctx, shop.ID, e.ID, 1, begun.Pending, registry.Table{AsOf: at, Took: time.Second, Rows: 3, Of: "x"}))(t) {
		t.Error("a fill is not read")
	}
	filled := &registry.Table{ID: made.ID, Buckets: buckets, Fill: begun.Pending, AsOf: at, Took: time.Second, Rows: 3, Of: "x"}
	same(t, "a table that was filled", filled, tables()[0])

	update(registry.EndpointUpdate{Description: new("other"), Table: registry.TableUpdate{On: new(true)}}, at)
	same(t, "a table after another description", filled, tables()[0])
	again := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	if !must(p.FailFill(ctx, shop.ID, e.ID, 1, again.Pending, "no room", at.Add(time.Second)))(t) {
		t.Error("a fill did not fail")
	}
	failed := *filled
	failed.Errors, failed.LastError, failed.LastErrorAt = 1, "no room", at.Add(time.Second)
	same(t, "a table whose fill failed", &failed, tables()[0])

	later := at.Add(time.Hour)
	update(registry.EndpointUpdate{Table: registry.TableUpdate{Buckets: map[string]string{"timestamp": "week"}}}, later)
	same(t, "a table with other buckets", &registry.Table{ID: made.ID, Buckets: map[string]string{"timestamp": "week"}, Pending: later.UnixMilli()}, tables()[0])
	update(registry.EndpointUpdate{Query: odd("2")}, later)
	all := tables()
	if all[0] == nil || all[1] == nil || all[1].ID == made.ID {
		t.Fatalf("a new version and the old one have the tables %+v", all)
	}
	same(t, "the buckets of a new version", map[string]string{"timestamp": "week"}, all[1].Buckets)
	update(registry.EndpointUpdate{Query: odd("3"), Draft: true}, later)
	update(registry.EndpointUpdate{Query: odd("4"), Table: registry.TableUpdate{Impossible: true}}, later)
	update(registry.EndpointUpdate{Version: 3, Table: on}, later)
	if all = tables(); all[2] == nil || all[3] != nil {
		t.Errorf("a draft that is to be materialized, and a version that can't be, have the tables %+v", all[2:])
	}
	update(registry.EndpointUpdate{Version: 3, Table: off}, later)
	update(registry.EndpointUpdate{Version: 2, Active: new(false), Table: on}, later)
	if all = tables(); all[0] == nil || all[1] != nil || all[2] != nil {
		t.Errorf("after versions were switched off there are the tables %+v", all)
	}
	if got := p.Snapshot().Materialized(shop.ID); len(got) != 1 || got[0].Number != 1 {
		t.Errorf("materialized are %+v", got)
	}
	update(registry.EndpointUpdate{Active: new(false), Table: on}, later)
	if all = tables(); slices.ContainsFunc(all, func(t *registry.Table) bool { return t != nil }) {
		t.Errorf("after the endpoint was switched off there are the tables %+v", all)
	}
	p.refused("a fill of a version without a table", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 1, later); return err })
	p.refused("a fill of no version", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 9, later); return err })

	update(registry.EndpointUpdate{Version: 1, Active: new(true)}, later)
	update(registry.EndpointUpdate{Active: new(true)}, later)
	update(registry.EndpointUpdate{Version: 1, Table: on}, later)
	if table := tables()[0]; table == nil || table.Pending <= again.Pending {
		t.Errorf("a version that is materialized again has the table %+v", table)
	}
	if err := p.DeleteEndpoint(ctx, shop.ID, "daily", later); err != nil {
		t.Fatal(err)
	}
	p.refused("a fill of an endpoint that is deleted", registry.ErrNotFound, func() error { _, err := p.BeginFill(ctx, shop.ID, e.ID, 1, later); return err })
	if got := p.Snapshot().Materialized(shop.ID); len(got) != 0 || !p.Snapshot().KnowsEndpoint(shop.ID, e.ID) || p.Snapshot().KnowsEndpoint(shop.ID, "x") {
		t.Errorf("after the endpoint was deleted, materialized are %+v", got)
	}
}

func testEndpointConflicts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	p.endpoint(shop.ID, "daily")
	p.endpoint(shop.ID, "Daily") // another name
	p.endpoint(other.ID, "daily")
	taken := &registry.FieldError{Field: "name", Code: registry.CodeUnique}
	p.refused("a taken name", taken, func() error {
		_, err := p.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("")}, at)
		return err
	})
	p.refused("a batch with a taken name", taken, func() error {
		return p.Apply(t.Context(), shop.ID, registry.Batch{
			NewEndpoints: []registry.NewEndpoint{{Name: "fresh", Query: odd("")}, {Name: "fresh", Query: odd("")}}, Deleted: []string{"daily"},
		}, at)
	})
	p.endpoint(shop.ID, "late")
	if _, err := p.other.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: shop.ID, Name: "late", Query: odd("")}, at); err == nil {
		t.Error("two processes gave the same name")
	}
	// Each makes a version on top of the other's, whatever it has seen.
	for n, r := range []*registry.Registry{p.Registry, p.other, p.Registry, p.other} {
		e := must(r.UpdateEndpoint(t.Context(), shop.ID, "late", registry.EndpointUpdate{Query: odd(fmt.Sprint("v", n))}, at))(t)
		if e.CurrentVersion != n+2 {
			t.Errorf("update %d made version %d", n, e.CurrentVersion)
		}
	}
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.settled()
}

func testVariables(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	v := *must(p.CreateVariable(ctx, registry.NewVariable{
		Project: shop.ID, Name: "Customer", Type: registry.VariableList, Default: json.RawMessage(`{"a":[9007199254740993,1.5,null,true,"<x>",18446744073709551615]}`),
		Values: json.RawMessage(`["x",1,2.5,null]`), IsMulti: true, CreatedBy: "key",
	}, at))(t)
	same(t, "a new variable", registry.Variable{
		ID: v.ID, Project: shop.ID, Name: "Customer", CodeName: "customer", Type: registry.VariableList, IsMulti: true, CreatedAt: at, CreatedBy: "key",
		Default: map[string]any{"a": []any{int64(9007199254740993), 1.5, nil, true, "<x>", uint64(18446744073709551615)}}, Values: []any{"x", int64(1), 2.5, nil},
	}, v)
	bare := *must(p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "region", Type: registry.VariableString}, at.Add(time.Second)))(t)
	elsewhere := *must(p.CreateVariable(ctx, registry.NewVariable{Project: other.ID, Name: "customer", Type: registry.VariableString}, at))(t)
	are := func(want ...registry.Variable) {
		t.Helper()
		all := p.settled()
		same(t, "variables", [][]registry.Variable{want, {elsewhere}}, [][]registry.Variable{all[0].Variables, all[1].Variables})
	}
	are(v, bare)
	taken := &registry.FieldError{Field: "code_name", Code: registry.CodeUnique}
	p.refused("a taken code name", taken, func() error {
		_, err := p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "CUSTOMER", Type: registry.VariableString}, at)
		return err
	})
	v = *must(p.UpdateVariable(ctx, shop.ID, v.ID, registry.VariableUpdate{
		Name: new("Customer, renamed"), Type: new(registry.VariableNumber), Default: json.RawMessage(`7`), Values: json.RawMessage(`null`), IsMulti: new(false),
	}))(t)
	if v.CodeName != "customer" || v.Default != int64(7) || v.Values != nil {
		t.Errorf("the changed variable is %+v", v)
	}
	if err := p.DeleteVariable(ctx, shop.ID, bare.ID); err != nil {
		t.Fatal(err)
	}
	are(v)
	bare = *must(p.CreateVariable(ctx, registry.NewVariable{Project: shop.ID, Name: "region", Type: registry.VariableString}, at.Add(time.Minute)))(t)
	are(v, bare)
}

func deleteCohort(p pair, project, id int64, when time.Time) error {
	_, err := p.UpdateCohort(p.Context(), project, id, registry.CohortFields{Deleted: registry.To(true)}, when)
	return err
}

func testCohorts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	add := func(project, id int64, f registry.CohortFields) registry.Cohort {
		t.Helper()
		return *must(p.CreateCohort(ctx, registry.NewCohort{Project: project, ID: id, CohortFields: f, CreatedBy: "key"}, at))(t)
	}
	const odd = "paying ' \" ; -- \x00"
	paying, given, theirs, next := add(shop.ID, 0, staticCohort(odd)), add(shop.ID, 41, staticCohort("given")),
		add(other.ID, 41, staticCohort("given")), add(shop.ID, 0, staticCohort("given"))
	if got := [4]int64{paying.ID, given.ID, theirs.ID, next.ID}; got != [4]int64{1, 41, 41, 42} {
		t.Errorf("cohorts got the numbers %v, want 1, 41, 41 and 42", got)
	}
	are := func(want ...registry.Cohort) {
		t.Helper()
		all := p.settled()
		same(t, "cohorts", [][]registry.Cohort{want, {theirs}}, [][]registry.Cohort{all[0].Cohorts, all[1].Cohorts})
	}
	are(paying, given, next)
	p.refused("a taken id", &registry.FieldError{Field: "id", Code: registry.CodeUnique}, func() error {
		_, err := p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, ID: 41}, at)
		return err
	})
	given = *must(p.UpdateCohort(ctx, shop.ID, 41, registry.CohortFields{
		Name: registry.To[*string](nil), Description: registry.To(odd), Query: registry.To(json.RawMessage(`{"q": "' < é"}`)),
	}, at))(t)
	given = *must(p.SetCohortMembers(ctx, shop.ID, 41, 7, at))(t)
	if err := deleteCohort(p, shop.ID, next.ID, at); err != nil {
		t.Fatal(err)
	}
	next.Deleted, next.DeletedAt, next.ChangedAt = true, at, at
	are(paying, given, next)

	// The number of a deleted one is given again to those alone who ask for it.
	again := must(p.other.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: staticCohort("next"), CreatedBy: "key"}, at))(t)
	asked := add(shop.ID, next.ID, staticCohort("asked for"))
	if again.ID != 43 || asked.ID != 42 {
		t.Errorf("cohorts got the numbers %d and %d, want 43 and 42", again.ID, asked.ID)
	}
	are(paying, given, asked, *again)
}

// testCohortVersions has one process compute what another asks for.
func testCohortVersions(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	filters := json.RawMessage(`{"properties":{"type":"OR","values":[]}}`)
	c := must(p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: registry.CohortFields{Filters: registry.To(filters)}}, at))(t)
	if c.PendingVersion != 1 || c.Version != 0 {
		t.Errorf("a new cohort has version %d and waits for %d", c.Version, c.PendingVersion)
	}
	begun := must(p.other.BeginCohort(ctx, shop.ID, c.ID))(t)
	if begun.PendingVersion != 2 || string(begun.Filters) != string(filters) {
		t.Errorf("the other registry begins %+v", begun)
	}
	swap := func(r *registry.Registry, version uint64, want bool) {
		t.Helper()
		if done := must(r.SwapCohort(ctx, shop.ID, c.ID, version, 10, at))(t); done != want {
			t.Errorf("SwapCohort(%d) = %v, want %v", version, done, want)
		}
	}
	must(p.UpdateCohort(ctx, shop.ID, c.ID, registry.CohortFields{Filters: registry.To(filters)}, at))(t) // while it is being computed
	swap(p.other, begun.PendingVersion, false)
	begun = must(p.other.BeginCohort(ctx, shop.ID, c.ID))(t)
	if failed := must(p.other.FailCohort(ctx, shop.ID, c.ID, begun.PendingVersion, "odd '", at))(t); !failed {
		t.Error("FailCohort() = false")
	}
	if err := p.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	all := p.settled()
	failed := all[0].Cohorts[0]
	same(t, "a cohort that failed", registry.Cohort{
		ID: 1, Project: shop.ID, Filters: filters, LastVersion: 4, Errors: 1, LastError: "odd '", LastErrorAt: at, CreatedAt: at,
	}, failed)
	begun = must(p.AwaitCohort(ctx, shop.ID, c.ID))(t)
	swap(p.Registry, begun.PendingVersion, true)
	swap(p.other, begun.PendingVersion, false)
	all = p.settled()
	same(t, "a cohort that was computed", registry.Cohort{
		ID: 1, Project: shop.ID, Filters: filters, Version: 5, LastVersion: 5, Count: new(int64(10)), LastCalculation: at, CreatedAt: at,
	}, all[0].Cohorts[0])
	same(t, "what queries need of it", []registry.SchemaCohort{{ID: 1, Version: 5}}, all[0].Schema)
	p.refused("beginning what nobody waits for", registry.ErrNotFound, func() error { _, err := p.BeginCohort(ctx, shop.ID, c.ID); return err })
}

// testUsage fills a project to its limits: what counts in one process counts in another, deleted or not.
func testUsage(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	for _, r := range []*registry.Registry{p.Registry, p.other} {
		r.SetLimits(registry.Limits{Records: 2, Bytes: 1 << 20})
	}
	query := func(n int) registry.InsightFields {
		return registry.InsightFields{Query: registry.To(json.RawMessage(`{"kind":"` + strings.Repeat("x", n) + `"}`))}
	}
	i := p.insight(shop.ID, query(100_000))
	p.insight(shop.ID, named("second"))
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", at))(t)
	p.endpoint(shop.ID, "deleted")
	if err := p.DeleteEndpoint(ctx, shop.ID, "deleted", at); err != nil {
		t.Fatal(err)
	}
	p.endpoint(shop.ID, "second")
	full := &registry.FieldError{Code: registry.CodeLimit}
	again := openRegistry(t)
	again.SetLimits(registry.Limits{Records: 2, Bytes: 1 << 20})
	for name, r := range map[string]*registry.Registry{"the registry that wrote": p.Registry, "another": p.other, "one that reads all": again} {
		p.refused("a third insight by "+name, full, func() error { _, err := r.CreateInsight(ctx, shop.ID, named("third"), "key", at); return err })
		p.refused("a third endpoint by "+name, full, func() error {
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "third", Query: odd("")}, at)
			return err
		})
	}
	p.insight(other.ID, named("of another project"))
	d := p.dashboard(shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))})
	p.refused("too many bytes", full, func() error {
		_, err := p.other.CreateDashboard(ctx, shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))}, "key", at)
		return err
	})
	must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Description: registry.To("")}, "key", at))(t)
	must(p.other.CreateDashboard(ctx, shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))}, "key", at))(t)
	if err := p.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	must(p.Purge(ctx, shop.ID, at))(t)
	p.insight(shop.ID, named("in the place of what was purged"))
	p.endpoint(shop.ID, "third")
	p.settled()

	// What is purged with something else, versions and tiles, counts no longer either, in no process.
	fill := func(r *registry.Registry, n int) {
		t.Helper()
		name := fmt.Sprint("many", n)
		must(r.CreateEndpoint(ctx, registry.NewEndpoint{Project: other.ID, Name: name, Query: odd("0")}, at))(t)
		for v := range 5 {
			must(r.UpdateEndpoint(ctx, other.ID, name, registry.EndpointUpdate{Query: odd(fmt.Sprint("v", v))}, at))(t)
		}
		board := must(r.CreateDashboard(ctx, other.ID, registry.DashboardFields{Tiles: slices.Repeat([]registry.TileFields{{Text: registry.To(new("x"))}}, 6)}, "key", at))(t)
		if r == p.other {
			return
		}
		must(r.UpdateDashboard(ctx, other.ID, board.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", at))(t)
		if err := r.DeleteEndpoint(ctx, other.ID, name, at); err != nil {
			t.Fatal(err)
		}
		p.settled()
		must(r.Purge(ctx, other.ID, at))(t)
		p.settled()
	}
	for _, r := range []*registry.Registry{p.Registry, p.other} {
		r.SetLimits(registry.Limits{Records: 1}) // and ten versions and tiles
	}
	fill(p.Registry, 0)
	fill(p.other, 1)
}

// testPurge deletes one of each pair of records, and purges: first too early, then late enough.
func testPurge(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	fill := func(project int64, name string) (insight registry.Insight, board registry.Dashboard, key registry.Key) {
		t.Helper()
		insight = p.insight(project, named(name))
		board = p.dashboard(project, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: insight.ID}, {Text: registry.To(&name)}}})
		key = p.key(registry.NewKey{Project: project, Label: name})
		p.endpoint(project, name)
		must(p.UpdateEndpoint(ctx, project, name, registry.EndpointUpdate{Query: odd("2")}, at))(t)
		must(p.CreateVariable(ctx, registry.NewVariable{Project: project, Name: name, Type: registry.VariableString}, at))(t)
		must(p.CreateCohort(ctx, registry.NewCohort{Project: project, CohortFields: staticCohort(name)}, at))(t)
		must(p.CreateAction(ctx, project, registry.ActionFields{Name: registry.To(&name)}, key.ID, at))(t)
		if err := errors.Join(p.RecordViews(ctx, project, key.ID, []int64{insight.ID}, at), p.RecordViews(ctx, project, key.ID, []int64{1}, at)); err != nil {
			t.Fatal(err)
		}
		return insight, board, key
	}
	gone, goneBoard, goneKey := fill(shop.ID, "gone")
	kept, keptBoard, keptKey := fill(shop.ID, "kept")
	fill(other.ID, "they")
	late := p.key(registry.NewKey{Project: shop.ID, Label: "expired", ExpiresAt: time.Now().Add(time.Hour)})
	author := p.key(registry.NewKey{Project: shop.ID, Label: "named by an insight that stays"})
	logged := p.key(registry.NewKey{Project: shop.ID, Label: "named by the activity log"})
	last := p.key(registry.NewKey{Project: shop.ID, Label: "the last user"})
	secret := p.key(registry.NewKey{Project: shop.ID, Kind: registry.Secret, Label: "secret", Scopes: []string{"endpoint:read"}})
	must(p.UpdateInsight(ctx, shop.ID, kept.ID, named("kept by another"), false, author.ID, at))(t)
	must(p.UpdateInsight(ctx, shop.ID, gone.ID, registry.InsightFields{Tags: registry.To([]string{"x"})}, false, logged.ID, at))(t)
	end := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Microsecond) // when the key has expired too
	must(p.UpdateInsight(ctx, shop.ID, gone.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", end))(t)
	must(p.UpdateDashboard(ctx, shop.ID, goneBoard.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", end))(t)
	must(p.UpdateDashboard(ctx, shop.ID, keptBoard.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: keptBoard.Tiles[1].ID, Deleted: registry.To(true)}}}, "key", end))(t)
	must(p.UpdateAction(ctx, shop.ID, 1, registry.ActionFields{Deleted: registry.To(true)}, end))(t)
	for _, k := range []registry.Key{goneKey, author, logged, last, secret} {
		must(p.RevokeKey(ctx, k.ID, end))(t)
	}
	if err := errors.Join(p.DeleteEndpoint(ctx, shop.ID, "gone", end), deleteCohort(p, shop.ID, 1, end)); err != nil {
		t.Fatal(err)
	}

	before := p.settled()
	if early := must(p.Purge(ctx, shop.ID, at))(t); !early.Empty() {
		t.Errorf("a purge of what was deleted before removed %+v", early)
	}
	same(t, "after a purge that was too early", before, p.settled())
	out := must(p.Purge(ctx, shop.ID, end))(t)
	slices.Sort(out.Keys)
	slices.Sort(out.Tiles)
	wantKeys := []string{late.ID, goneKey.ID, last.ID, secret.ID}
	slices.Sort(wantKeys)
	wantTiles := []int64{goneBoard.Tiles[0].ID, goneBoard.Tiles[1].ID, keptBoard.Tiles[1].ID}
	same(t, "purged", registry.Purged{
		Insights: []int64{gone.ID}, Dashboards: []int64{goneBoard.ID}, Tiles: wantTiles, Endpoints: 1, Keys: wantKeys, Cohorts: 1, Actions: 1,
	}, out)
	after := p.settled()
	same(t, "another project", before[1], after[1])
	left := after[0]
	if len(left.Insights) != 1 || len(left.Dashboards) != 1 || len(left.Dashboards[0].Tiles) != 1 || len(left.Endpoints) != 1 || len(left.Endpoints[0].Versions) != 2 ||
		len(left.Variables) != 2 || len(left.Keys) != 3 || len(left.Cohorts) != 1 || left.Cohorts[0].ID != 2 || len(left.Actions) != 1 {
		t.Errorf("left is %+v", left)
	}
	for _, v := range must(p.Views(ctx, shop.ID, time.Time{}))(t) {
		if v.Insight == gone.ID || v.Viewer == goneKey.ID {
			t.Errorf("a view of what was purged is left: %+v", v)
		}
	}
	if views := must(p.ViewsOf(ctx, shop.ID, []int64{kept.ID}))(t); !slices.ContainsFunc(views, func(v registry.View) bool { return v.Viewer == keptKey.ID }) {
		t.Errorf("the views of what stays are %+v", views)
	}
	// No number is given again; short ids, names and labels are free.
	if k := p.key(registry.NewKey{Project: shop.ID}); k.User != last.User+1 {
		t.Errorf("the next user is %d, after %d", k.User, last.User)
	}
	if i := p.insight(shop.ID, named("next")); i.ID != 4 {
		t.Errorf("the next insight is %d", i.ID)
	}
	if c := must(p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: staticCohort("gone")}, at))(t); c.ID != 3 {
		t.Errorf("the next cohort is %d", c.ID)
	}
	if a := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{Name: registry.To(new("gone"))}, "key", at))(t); a.ID != 4 {
		t.Errorf("the next action is %d", a.ID)
	}
	p.endpoint(shop.ID, "gone")
	p.settled()
}

func testActions(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	steps := []registry.ActionStep{{}, {
		Event: new("$autocapture "), Properties: json.RawMessage(`[ {"key": "ä\u0000", "value": [1.0, 123456789012345678901234567890]} ]`),
		Selector: new("a > [id='x']"), TagName: new("a"), Text: new("' \" ; -- <b>"), TextMatching: new(registry.MatchRegex), Href: new(""),
		HrefMatching: new(registry.MatchContains), URL: new("%_"), URLMatching: new(registry.MatchExact),
	}}
	stored := slices.Clone(steps)
	stored[1].Properties = json.RawMessage(`[{"key":"ä\u0000","value":[1.0,123456789012345678901234567890]}]`)
	full := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{
		Name: registry.To(new("Größe ≤ 1")), Description: registry.To("d"), Tags: registry.To([]string{"b", "a", "b"}), PostToSlack: registry.To(true),
		SlackMessageFormat: registry.To("[event]"), Steps: registry.To(steps), Pinned: registry.To(true),
	}, "key", at))(t)
	want := registry.Action{
		ActionDefinition: registry.ActionDefinition{ID: 1, Name: new("Größe ≤ 1"), Steps: stored}, Project: shop.ID, Description: "d", Tags: []string{"b", "a"},
		PostToSlack: true, SlackMessageFormat: "[event]", CreatedAt: at, CreatedBy: "key", ChangedAt: at, PinnedAt: new(at),
	}
	same(t, "a new action", want, *full)
	later := at.Add(time.Minute)
	empty := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{}, "key", later))(t)
	must(p.CreateAction(ctx, other.ID, registry.ActionFields{Name: registry.To(full.Name)}, "key", at))(t)
	got := p.settled()
	same(t, "actions", []registry.Action{want, *empty}, got[0].Actions)
	same(t, "the newest first", []int64{2, 1}, got[0].Newest)

	taken := &registry.FieldError{Field: "name", Code: registry.CodeUnique}
	p.refused("a name that is taken", taken, func() error {
		_, err := p.UpdateAction(ctx, shop.ID, empty.ID, registry.ActionFields{Name: registry.To(full.Name)}, later)
		return err
	})
	p.refused("a name that another registry gave", taken, func() error {
		_, err := p.other.CreateAction(ctx, shop.ID, registry.ActionFields{Name: registry.To(full.Name)}, "key", later)
		return err
	})
	gone := must(p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Deleted: registry.To(true), Pinned: registry.To(false)}, later))(t)
	want.Deleted, want.DeletedAt, want.ChangedAt, want.PinnedAt = true, later, later, nil
	same(t, "one that is deleted", want, *gone)
	must(p.UpdateAction(ctx, shop.ID, empty.ID, registry.ActionFields{Name: registry.To(full.Name)}, later))(t)
	p.refused("restoring one whose name is taken", taken, func() error {
		_, err := p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Deleted: registry.To(false)}, later)
		return err
	})
	same(t, "those that lists show", []int64{2}, p.settled()[0].Newest)
	back := must(p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Name: registry.To(new("x")), Deleted: registry.To(false)}, later.Add(1*time.Second)))(t)
	want.Name, want.Deleted, want.DeletedAt, want.ChangedAt = new("x"), false, time.Time{}, later.Add(time.Second)
	same(t, "one that is restored", want, *back)
	p.settled()
}
