package registrytest

import (
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

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// pair is a registry, and another one on the same data, as in another process.
type pair struct {
	exam
	*registry.Registry

	other *registry.Registry
}

// quiet leaves the background work to other tests.
var quiet = registry.Options{Poll: time.Hour, Gather: time.Hour, Purge: time.Hour}

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
	Project    registry.Project
	Keys       []registry.Key // newest first
	Secrets    []registry.TokenSecret
	Endpoints  []registry.Endpoint // newest first
	Variables  []registry.Variable // oldest first
	Insights   []registry.Insight  // deleted ones too
	Listed     []int64
	Dashboards []registry.Dashboard // deleted ones too
	Tiles      map[int64][]registry.Tile
	Properties []registry.PropertyDefinition
	GroupTypes []registry.GroupType
	Cohorts    []registry.Cohort
}

// someNumbers is more than the numbers of insights and dashboards in these tests.
const someNumbers = 20

func contents(s *registry.Snapshot) []project {
	var all []project
	for _, p := range s.Projects() {
		out := project{
			Project: *p, Secrets: s.TokenSecrets(p.ID), Properties: s.PropertyDefinitions(p.ID), GroupTypes: s.GroupTypes(p.ID), Cohorts: s.Cohorts(p.ID),
			Keys: values(s.Keys(p.ID)), Endpoints: values(s.Endpoints(p.ID)), Variables: values(s.Variables(p.ID)), Tiles: make(map[int64][]registry.Tile),
		}
		listed, _ := s.InsightPage(p.ID, 0, someNumbers)
		for _, i := range listed {
			out.Listed = append(out.Listed, i.ID)
		}
		for n := range int64(someNumbers) {
			if i := s.AnyInsight(p.ID, n); i != nil {
				out.Insights = append(out.Insights, *i)
			}
			if d := s.AnyDashboard(p.ID, n); d != nil {
				out.Dashboards = append(out.Dashboards, *d)
			}
			if tiles := s.TilesOf(p.ID, n); len(tiles) > 0 {
				out.Tiles[n] = values(tiles)
			}
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
		if diff := cmp.Diff(contents(fresh.Snapshot()), contents(r.Snapshot()), cmpopts.EquateEmpty()); diff != "" {
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

func testProjects(t exam) {
	p := newPair(t)
	first, second := p.project(), p.project()
	if first.ID != 1 || second.ID != 2 {
		t.Errorf("projects got the numbers %d and %d, want 1 and 2", first.ID, second.ID)
	}
	want := []project{
		{Project: registry.Project{ID: 1, Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1, CreatedAt: at}},
		{Project: registry.Project{ID: 2, Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1, CreatedAt: at}},
	}
	same(t, "projects", want, p.settled())
	change := registry.ProjectChange{
		Name: new("Other"), Timezone: new("UTC"), WeekStart: new(0), TestAccountFilters: new(`[{"key": "email", "value": "' \" ; --", "type": "person"}]`),
		PathCleaningFilters: new(`[{"regex": "/\\d+", "alias": "/:id"}]`),
	}
	changed := *must(p.UpdateProject(t.Context(), 2, change))(t)
	want[1].Project = registry.Project{
		ID: 2, Name: "Other", Timezone: "UTC", CreatedAt: at, TestAccountFilters: *change.TestAccountFilters, PathCleaningFilters: *change.PathCleaningFilters,
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
		"a cohort": func() error { _, err := p.CreateCohort(ctx, registry.NewCohort{Project: 9, Name: "c"}, at); return err },
		"a variable": func() error {
			_, err := p.CreateVariable(ctx, registry.NewVariable{Project: 9, Name: "v", Type: registry.VariableList}, at)
			return err
		},
		"an insight":  func() error { _, err := p.CreateInsight(ctx, 9, named("i"), "key", at); return err },
		"a dashboard": func() error { _, err := p.CreateDashboard(ctx, 9, registry.DashboardFields{}, "key", at); return err },
		"a secret":    func() error { _, err := p.TokenSecret(ctx, 9, at); return err },
		"a rotation":  func() error { _, err := p.RotateTokenSecret(ctx, 9, false, at); return err },
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
	must(p.CreateCohort(ctx, registry.NewCohort{Project: other.ID, ID: 5, Name: "theirs"}, at))(t)
	p.endpoint(other.ID, "theirs")
	v := must(p.CreateVariable(ctx, registry.NewVariable{Project: other.ID, Name: "v", Type: registry.VariableString}, at))(t)
	p.endpoint(mine.ID, "gone")
	if err := p.DeleteEndpoint(ctx, mine.ID, "gone", at); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"rolling a key":  func() error { _, _, err := p.RollKey(ctx, "k", nil, at); return err },
		"revoking a key": func() error { _, err := p.RevokeKey(ctx, "k", at); return err },
		"changing a key": func() error { _, err := p.UpdateKey(ctx, "k", registry.KeyUpdate{}); return err },
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
		"renaming a cohort of another project":    func() error { _, err := p.RenameCohort(ctx, mine.ID, 5, "mine"); return err },
		"deleting a cohort of another project":    func() error { return p.DeleteCohort(ctx, mine.ID, 5, at) },
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

func testKeys(t exam) {
	p := newPair(t)
	shop := p.project()
	bare := p.key(registry.NewKey{Project: shop.ID, Label: "bare"})
	full := p.key(registry.NewKey{
		Project: shop.ID, Kind: registry.Secret, Label: "full ' \" ; --", ExpiresAt: at.Add(24 * time.Hour), Fixed: map[string]any{"customer": "' \" ; -- <b>"},
		Endpoints: []string{"weekly", "daily"}, CreatedBy: bare.ID,
	})
	same(t, "a personal key", registry.Key{
		ID: bare.ID, User: 1, Kind: registry.Personal, Label: "bare", Mask: bare.Mask, Hash: bare.Hash, Project: shop.ID,
		Scopes: []string{"endpoint:read", "query:read"}, CreatedAt: at,
	}, bare)
	keysAre := func(want ...registry.Key) {
		t.Helper()
		slices.SortFunc(want, func(a, b registry.Key) int { return strings.Compare(a.ID, b.ID) })
		same(t, "keys", want, p.settled()[0].Keys)
		for _, k := range want {
			if found := p.other.Snapshot().KeyByHash(k.Hash); (found != nil) != k.RevokedAt.IsZero() {
				t.Errorf("key %s, revoked %v, is found: %t", k.Label, k.RevokedAt, found != nil)
			}
		}
	}
	keysAre(bare, full)
	old := full.Hash
	rolled, text, err := p.RollKey(t.Context(), full.ID, nil, at.Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	full.Hash, full.Mask, full.LastRolledAt = registry.HashKey(text), rolled.Mask, at.Add(2*time.Second)
	keysAre(bare, full)
	if p.other.Snapshot().KeyByHash(old) != nil {
		t.Error("the text before it was rolled still works")
	}
	must(p.UpdateKey(t.Context(), full.ID, registry.KeyUpdate{Label: new("renamed"), Scopes: []string{"endpoint:read"}}))(t)
	full.Label, full.Scopes = "renamed", []string{"endpoint:read"}
	keysAre(bare, full)
	must(p.RevokeKey(t.Context(), full.ID, at.Add(3*time.Second)))(t)
	full.RevokedAt = at.Add(3 * time.Second)
	keysAre(bare, full)
}

func testKeyConflicts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	secret := func(project int64, label string) registry.NewKey {
		return registry.NewKey{Project: project, Kind: registry.Secret, Label: label, Scopes: []string{"endpoint:read"}}
	}
	p.key(secret(shop.ID, "backend"))
	revoked := p.key(secret(shop.ID, "old"))
	must(p.RevokeKey(t.Context(), revoked.ID, at))(t)
	// None of these is in the way of another.
	again := p.key(secret(shop.ID, "old"))
	for _, n := range []registry.NewKey{secret(other.ID, "backend"), secret(shop.ID, ""), secret(shop.ID, ""), {Project: shop.ID, Label: "backend"}} {
		p.key(n)
	}
	taken := &registry.FieldError{Field: "label", Code: registry.CodeUnique}
	p.refused("a taken label", taken, func() error { _, _, err := p.CreateKey(t.Context(), secret(shop.ID, "backend"), at); return err })
	p.refused("a label that is changed to a taken one", taken, func() error {
		_, err := p.UpdateKey(t.Context(), again.ID, registry.KeyUpdate{Label: new("backend")})
		return err
	})
	// The other registry has not seen the label that is taken when it asks for it.
	p.key(secret(shop.ID, "fresh"))
	if _, _, err := p.other.CreateKey(t.Context(), secret(shop.ID, "fresh"), at); err == nil {
		t.Error("two processes gave the same label")
	}
	p.settled()
}

func testKeyUsed(t exam) {
	p := newPair(t)
	shop := p.project()
	k := p.key(registry.NewKey{Project: shop.ID})
	use := func(when, want time.Time) {
		t.Helper()
		r := must(registry.Open(t.Context(), t.place(t.T), quiet))(t)
		r.Touch(&k, when)
		if err := r.Close(); err != nil { // writes what was gathered
			t.Fatal(err)
		}
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.settled()[0].Keys[0].LastUsedAt; !got.Equal(want) {
			t.Errorf("after a use at %v the last one is at %v, want %v", when, got, want)
		}
	}
	use(at, at)
	use(at.Add(time.Hour), at.Add(time.Hour))
	use(at.Add(time.Hour+time.Minute), at.Add(time.Hour))
	use(at, at.Add(time.Hour)) // never back
	use(at.Add(3*time.Hour), at.Add(3*time.Hour))
}

func testUsers(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	var users []int64
	for _, n := range []registry.NewKey{
		{Project: shop.ID}, {Project: shop.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"}}, {Project: other.ID}, {Project: shop.ID},
	} {
		users = append(users, p.key(n).User)
	}
	same(t, "users", []int64{1, 0, 2, 3}, users)
	k, _, err := p.other.CreateKey(t.Context(), registry.NewKey{Project: other.ID, Scopes: []string{"*"}}, at)
	if err != nil || k.User != 4 {
		t.Errorf("another process gave the user %d: %v", k.User, err)
	}
}

func testTokenSecrets(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	theirs := must(p.TokenSecret(t.Context(), other.ID, at))(t)
	are := func(want ...registry.TokenSecret) {
		t.Helper()
		all := p.settled()
		same(t, "secrets", [][]registry.TokenSecret{want, {theirs}}, [][]registry.TokenSecret{all[0].Secrets, all[1].Secrets})
	}
	first := must(p.TokenSecret(t.Context(), shop.ID, at))(t)
	are(first)
	same(t, "the secret for another process", first, must(p.other.TokenSecret(t.Context(), shop.ID, at))(t))
	second := must(p.RotateTokenSecret(t.Context(), shop.ID, false, at))(t) // at the same time: it is newer all the same
	are(second, first)
	third := must(p.RotateTokenSecret(t.Context(), shop.ID, false, at.Add(time.Hour)))(t)
	are(third, second)
	fourth := must(p.RotateTokenSecret(t.Context(), shop.ID, true, at.Add(2*time.Hour)))(t)
	are(fourth)
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

func testExecuted(t exam) {
	p := newPair(t)
	shop := p.project()
	p.endpoint(shop.ID, "daily")
	e := must(p.UpdateEndpoint(t.Context(), shop.ID, "daily", registry.EndpointUpdate{Query: odd("2")}, at))(t)
	for _, tt := range []struct {
		version            int
		at                 time.Time
		endpoint, one, two time.Time
	}{
		{2, at.Add(time.Hour), at.Add(time.Hour), time.Time{}, at.Add(time.Hour)},
		{1, at, at.Add(time.Hour), at, at.Add(time.Hour)}, // the endpoint's own time stays
		{2, at, at.Add(time.Hour), at, at.Add(time.Hour)},
		{3, at.Add(9 * time.Hour), at.Add(time.Hour), at, at.Add(time.Hour)},
	} {
		r := must(registry.Open(t.Context(), t.place(t.T), quiet))(t)
		r.Executed(e, tt.version, tt.at)
		if err := r.Close(); err != nil { // writes what was gathered
			t.Fatal(err)
		}
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := p.settled()[0].Endpoints[0]
		same(t, fmt.Sprintf("executions after version %d at %v", tt.version, tt.at), []time.Time{tt.endpoint, tt.one, tt.two},
			[]time.Time{got.LastExecutedAt, got.Versions[0].LastExecutedAt, got.Versions[1].LastExecutedAt})
	}
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

func testInsights(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	full := p.insight(shop.ID, registry.InsightFields{
		Name: registry.To(new("Größe ' \" \x00")), DerivedName: registry.To(new("")), Description: registry.To(new("d")), Query: registry.To(odd("")), NoQueryScope: true,
		Filters: registry.To(json.RawMessage(`{"a":1}`)), Order: registry.To(new(3)), Favorited: registry.To(true), Tags: registry.To([]string{"b", "a"}),
	})
	same(t, "a new insight", registry.Insight{
		ID: 1, ShortID: full.ShortID, Project: shop.ID, Name: new("Größe ' \" \x00"), DerivedName: new(""), Description: new("d"), Query: odd(""), NeedsQueryScope: true,
		Filters: json.RawMessage(`{"a":1}`), Order: new(3), Favorited: true, Saved: true, Tags: []string{"b", "a"}, CreatedAt: at, UpdatedAt: at, LastModifiedAt: at,
		CreatedBy: "key", LastModifiedBy: "key",
	}, full)
	elsewhere := p.insight(other.ID, named("theirs"))
	bare := p.insight(shop.ID, registry.InsightFields{Saved: registry.To(false), Order: registry.To(new(-3))})
	last := p.insight(shop.ID, named("last"))
	if got := []int64{full.ID, elsewhere.ID, bare.ID, last.ID}; !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("insights got the numbers %v, want 1 to 4", got)
	}
	are := func(listed []int64, want ...registry.Insight) {
		t.Helper()
		all := p.settled()
		same(t, "insights", [][]registry.Insight{want, {elsewhere}}, [][]registry.Insight{all[0].Insights, all[1].Insights})
		same(t, "insights in a list", listed, all[0].Listed)
	}
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
	later := at.Add(time.Hour)
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{
		Name: registry.To[*string](nil), DerivedName: registry.To(new("derived")), Query: registry.To[json.RawMessage](nil), Filters: registry.To(json.RawMessage(`{}`)),
		Order: registry.To[*int](nil), Favorited: registry.To(false), Saved: registry.To(false), Tags: registry.To([]string{}),
	}, false, "another", later))(t)
	if full.Query != nil || full.Name != nil || full.NeedsQueryScope || !full.UpdatedAt.Equal(later) || full.LastModifiedBy != "another" {
		t.Errorf("the changed insight is %+v", full)
	}
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
	if got := p.other.Snapshot().Insight(shop.ID, full.ID).Query; got != nil {
		t.Errorf("a query that is not there has become %s", got)
	}
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", later))(t)
	are([]int64{bare.ID, last.ID}, full, bare, last)
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{Deleted: registry.To(false)}, true, "key", later))(t)
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
}

func testDashboards(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	i, j := p.insight(shop.ID, named("i")), p.insight(shop.ID, named("j"))
	d := p.dashboard(shop.ID, registry.DashboardFields{
		Name: registry.To(new("Board")), Description: registry.To("d"), Pinned: registry.To(true), Filters: registry.To(json.RawMessage(`{"date_from":"-7d"}`)),
		Variables: registry.To(json.RawMessage(`{"v":"<x>"}`)), BreakdownColor: registry.To(json.RawMessage(`[{"a":1}]`)), ColorTheme: registry.To(new(2)), Tags: registry.To([]string{"t"}),
		Tiles: []registry.TileFields{
			{
				Insight: i.ID, Layouts: registry.To(json.RawMessage(`{"sm":{"x":1}}`)), Color: registry.To(new("blue")), ShowDescription: registry.To(new(false)),
				FilterOverrides: registry.To(json.RawMessage(`{"date_to":"-1d"}`)),
			},
			{Insight: j.ID},
			{Text: registry.To(new("# Sales <now>"))},
		},
	})
	empty := json.RawMessage(`{}`)
	same(t, "a new dashboard", registry.Dashboard{
		ID: 1, Project: shop.ID, Name: new("Board"), Description: "d", Pinned: true, Filters: json.RawMessage(`{"date_from":"-7d"}`), Variables: json.RawMessage(`{"v":"<x>"}`),
		BreakdownColor: json.RawMessage(`[{"a":1}]`), ColorTheme: new(2), Tags: []string{"t"}, CreatedAt: at, CreatedBy: "key",
		Tiles: []registry.Tile{
			{
				ID: 1, Project: shop.ID, Dashboard: 1, Insight: i.ID, Layouts: json.RawMessage(`{"sm":{"x":1}}`), Color: new("blue"), ShowDescription: new(false),
				FilterOverrides: json.RawMessage(`{"date_to":"-1d"}`),
			},
			{ID: 2, Project: shop.ID, Dashboard: 1, Insight: j.ID, Layouts: empty, FilterOverrides: empty},
			{ID: 3, Project: shop.ID, Dashboard: 1, Text: &registry.Text{Body: new("# Sales <now>"), CreatedBy: "key", LastModifiedAt: at}, Layouts: empty, FilterOverrides: empty},
		},
	}, d)
	bare := p.dashboard(shop.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	are := func(tiles map[int64][]registry.Tile, want ...registry.Dashboard) {
		t.Helper()
		got := p.settled()[0]
		same(t, "dashboards", want, got.Dashboards)
		same(t, "tiles by insight", tiles, got.Tiles)
	}
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}, j.ID: {d.Tiles[1]}}, d, bare)
	// A second tile of an insight is the first one.
	same(t, "a dashboard that is given an insight again", d, *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: j.ID}}}, "key", at))(t))

	later := at.Add(time.Hour)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{
		Name: registry.To[*string](nil), Pinned: registry.To(false), BreakdownColor: registry.To(json.RawMessage(`null`)), ColorTheme: registry.To[*int](nil),
		Tiles: []registry.TileFields{
			{ID: 2, Layouts: registry.To(empty), Color: registry.To[*string](nil), Deleted: registry.To(true)}, {ID: 3, Text: registry.To[*string](nil)},
		},
	}, "another", later))(t)
	same(t, "tiles", []registry.Tile{
		{ID: 2, Project: shop.ID, Dashboard: 1, Insight: j.ID, Layouts: empty, FilterOverrides: empty, Deleted: true, DeletedAt: later},
		{ID: 3, Project: shop.ID, Dashboard: 1, Text: &registry.Text{CreatedBy: "key", LastModifiedBy: "another", LastModifiedAt: later}, Layouts: empty, FilterOverrides: empty},
	}, d.Tiles[1:])
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}}, d, bare)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", later))(t)
	are(map[int64][]registry.Tile{i.ID: {bare.Tiles[0]}}, d, bare)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Deleted: registry.To(false)}, "key", later))(t)
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}}, d, bare)
	// An insight's own list of dashboards moves its tiles, and uses older ones again.
	must(p.UpdateInsight(ctx, shop.ID, j.ID, registry.InsightFields{Dashboards: registry.To([]int64{d.ID, bare.ID})}, false, "key", later))(t)
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", later))(t)
	got := p.settled()[0]
	if len(got.Dashboards[0].Tiles) != 3 || got.Dashboards[0].Tiles[1].Deleted || len(got.Tiles[j.ID]) != 2 || len(got.Tiles[i.ID]) != 0 {
		t.Errorf("the dashboards are %+v, and the tiles %+v", got.Dashboards, got.Tiles)
	}
}

func testActivities(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	i, j := p.insight(shop.ID, named("ä")), p.insight(shop.ID, named("j"))
	p.insight(other.ID, named("theirs"))
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Name: registry.To[*string](nil), DerivedName: registry.To(new("derived"))}, false, "another", at.Add(time.Hour)))(t)
	wrote := func(n *registry.Insight, activity, name, by string, when time.Time, changes ...registry.FieldChange) registry.Activity {
		return registry.Activity{
			Project: shop.ID, Scope: registry.ScopeInsight, Item: strconv.FormatInt(n.ID, 10), Activity: activity, Name: name, ShortID: n.ShortID, At: when, By: by, Changes: changes,
		}
	}
	all := []registry.Activity{
		wrote(&i, registry.ActivityUpdated, "derived", "another", at.Add(time.Hour),
			registry.FieldChange{Type: "Insight", Action: "deleted", Field: "name", Before: json.RawMessage(`"ä"`), After: json.RawMessage(`null`)},
			registry.FieldChange{Type: "Insight", Action: "created", Field: "derived_name", Before: json.RawMessage(`null`), After: json.RawMessage(`"derived"`)}),
		wrote(&j, registry.ActivityCreated, "j", "key", at),
		wrote(&i, registry.ActivityCreated, "ä", "key", at),
	}
	for _, tt := range []struct {
		page  registry.ActivityPage
		want  []registry.Activity
		total int
	}{
		{registry.ActivityPage{Limit: 9}, all, 3},
		{registry.ActivityPage{Limit: 1, Offset: 1}, all[1:2], 3},
		{registry.ActivityPage{Limit: 9, Offset: 9}, nil, 3},
		{registry.ActivityPage{Item: strconv.FormatInt(i.ID, 10), Limit: 9}, []registry.Activity{all[0], all[2]}, 2},
		{registry.ActivityPage{Item: "7", Limit: 9}, nil, 0},
	} {
		tt.page.Scope = registry.ScopeInsight
		got, total, err := p.other.Activities(ctx, shop.ID, tt.page)
		if err != nil || total != tt.total {
			t.Errorf("Activities(%+v) has %d in all, want %d: %v", tt.page, total, tt.total, err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(registry.Activity{}, "ID")); diff != "" {
			t.Errorf("Activities(%+v) (-want +got):\n%s", tt.page, diff)
		}
	}
}

func testViews(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	i, j, k := p.insight(shop.ID, named("i")), p.insight(shop.ID, named("j")), p.insight(other.ID, named("k"))
	before := p.Snapshot().Revision
	view := func(project int64, viewer string, when time.Time, insights ...int64) {
		t.Helper()
		if err := p.RecordViews(t.Context(), project, viewer, insights, when); err != nil {
			t.Fatal(err)
		}
	}
	view(shop.ID, "a", at.Add(time.Hour), i.ID, j.ID, j.ID)
	view(shop.ID, "b", at.Add(2*time.Hour), i.ID, k.ID, 99)
	view(shop.ID, "a", at.Add(3*time.Hour), j.ID)
	view(shop.ID, "a", at.Add(time.Minute), j.ID) // never back
	if got := p.Snapshot().Revision; got != before {
		t.Errorf("views moved the revision from %d to %d", before, got)
	}
	all := []registry.View{
		{Insight: j.ID, Viewer: "a", At: at.Add(3 * time.Hour)},
		{Insight: i.ID, Viewer: "b", At: at.Add(2 * time.Hour)},
		{Insight: i.ID, Viewer: "a", At: at.Add(time.Hour)},
		{Insight: i.ID, Viewer: "key", At: at},
		{Insight: j.ID, Viewer: "key", At: at},
	}
	for _, tt := range []struct {
		since time.Time
		want  []registry.View
	}{{time.Time{}, all}, {at, all}, {at.Add(2 * time.Hour), all[:2]}, {at.Add(4 * time.Hour), nil}} {
		same(t, fmt.Sprintf("views since %v", tt.since), tt.want, must(p.other.Views(t.Context(), shop.ID, tt.since))(t))
	}
	same(t, "views of an insight", []registry.View{all[0], all[4]}, must(p.other.ViewsOf(t.Context(), shop.ID, []int64{j.ID, k.ID}))(t))
}

func testProperties(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	def := func(scope registry.PropertyScope, group int, name string, typ registry.PropertyType) registry.PropertyDefinition {
		return registry.PropertyDefinition{Scope: scope, GroupTypeIndex: group, Name: name, Type: typ}
	}
	amount, fresh := def(registry.EventProperty, 0, "amount", registry.PropertyNumeric), def(registry.EventProperty, 0, "fresh", registry.PropertyNumeric)
	first := []registry.PropertyDefinition{ // in order
		def(registry.EventProperty, 0, "", registry.PropertyString), def(registry.EventProperty, 0, "Amount", registry.PropertyString), amount,
		def(registry.EventProperty, 0, "x/\" \x00 <b>", registry.PropertyBoolean), def(registry.GroupProperty, 0, "amount", registry.PropertyBoolean),
		def(registry.GroupProperty, 4, "amount", registry.PropertyDateTime), def(registry.PersonProperty, 0, "amount", registry.PropertyString),
	}
	want := slices.Clone(first)
	as := func(d registry.PropertyDefinition, typ registry.PropertyType) registry.PropertyDefinition {
		d.Type = typ
		return d
	}
	for _, step := range []struct {
		name   string
		do     func() error
		change func()
	}{
		{"learning what is new", func() error { return p.Learn(t.Context(), shop.ID, first, nil) }, func() {}},
		{"learning never replaces", func() error {
			return p.Learn(t.Context(), shop.ID, []registry.PropertyDefinition{as(amount, registry.PropertyString), fresh, as(fresh, registry.PropertyString)}, nil)
		}, func() { want = slices.Insert(want, 3, fresh) }},
		{"setting replaces", func() error { return p.SetProperty(t.Context(), shop.ID, as(amount, registry.PropertyBoolean)) }, func() { want[2].Type = registry.PropertyBoolean }},
		{"nothing", func() error { return p.Learn(t.Context(), shop.ID, nil, nil) }, nil},
		{"what is there", func() error { return p.SetProperty(t.Context(), shop.ID, fresh) }, nil},
	} {
		before := p.Snapshot().Revision
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if step.change != nil {
			step.change()
		} else if got := p.Snapshot().Revision; got != before {
			t.Errorf("%s: revision %d after %d", step.name, got, before)
		}
		all := p.settled()
		same(t, step.name, want, all[0].Properties)
		if other.ID != 2 || len(all[1].Properties) != 0 {
			t.Errorf("%s: another project has %v", step.name, all[1].Properties)
		}
	}
}

func testGroupTypes(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	company, team := registry.GroupType{Name: "company", Index: 0}, registry.GroupType{Name: "team", Index: 4}
	for _, tt := range []struct {
		project     int64
		types       []registry.GroupType
		shop, other []registry.GroupType
	}{
		{shop.ID, []registry.GroupType{company}, []registry.GroupType{company}, nil},
		{shop.ID, []registry.GroupType{company, team}, []registry.GroupType{company, team}, nil},
		{shop.ID, []registry.GroupType{team}, []registry.GroupType{company, team}, nil},
		{other.ID, []registry.GroupType{{Name: "company", Index: 1}}, []registry.GroupType{company, team}, []registry.GroupType{{Name: "company", Index: 1}}},
	} {
		if err := p.Learn(t.Context(), tt.project, nil, tt.types); err != nil {
			t.Fatal(err)
		}
		all := p.settled()
		same(t, fmt.Sprintf("after %v", tt.types), [][]registry.GroupType{tt.shop, tt.other}, [][]registry.GroupType{all[0].GroupTypes, all[1].GroupTypes})
	}
	for name, g := range map[string]registry.GroupType{"another index": {Name: "company", Index: 1}, "another name": {Name: "firm", Index: 0}} {
		p.refused(name, &registry.FieldError{Field: "group_type", Code: registry.CodeUnique}, func() error {
			return p.Learn(t.Context(), shop.ID, nil, []registry.GroupType{{Name: "fresh", Index: 2}, g})
		})
	}
}

func testCohorts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	add := func(project, id int64, name string) registry.Cohort {
		t.Helper()
		return *must(p.CreateCohort(ctx, registry.NewCohort{Project: project, ID: id, Name: name}, at))(t)
	}
	paying, given, theirs, next := add(shop.ID, 0, "paying ' \" ; -- \x00"), add(shop.ID, 41, "given"), add(other.ID, 41, "given"), add(shop.ID, 0, "next")
	if got := [4]int64{paying.ID, given.ID, theirs.ID, next.ID}; got != [4]int64{1, 41, 41, 42} {
		t.Errorf("cohorts got the numbers %v, want 1, 41, 41 and 42", got)
	}
	are := func(want ...registry.Cohort) {
		t.Helper()
		all := p.settled()
		same(t, "cohorts", [][]registry.Cohort{want, {theirs}}, [][]registry.Cohort{all[0].Cohorts, all[1].Cohorts})
	}
	are(paying, given, next)
	for field, n := range map[string]registry.NewCohort{"id": {ID: 41, Name: "fresh"}, "name": {Name: "given"}} {
		n.Project = shop.ID
		p.refused("a taken "+field, &registry.FieldError{Field: field, Code: registry.CodeUnique}, func() error { _, err := p.CreateCohort(ctx, n, at); return err })
	}
	p.refused("a name that is changed to a taken one", &registry.FieldError{Field: "name", Code: registry.CodeUnique}, func() error {
		_, err := p.RenameCohort(ctx, shop.ID, 41, "next")
		return err
	})
	given = *must(p.RenameCohort(ctx, shop.ID, 41, "renamed"))(t)
	if err := p.DeleteCohort(ctx, shop.ID, next.ID, at); err != nil {
		t.Fatal(err)
	}
	are(paying, given)
	p.refused("deleting one that is deleted", registry.ErrNotFound, func() error { return p.DeleteCohort(ctx, shop.ID, next.ID, at) })
	p.refused("renaming one that is deleted", registry.ErrNotFound, func() error { _, err := p.RenameCohort(ctx, shop.ID, next.ID, "x"); return err })

	// The name of a deleted one is free; its number is given again to those alone who ask for it.
	again := must(p.other.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, Name: "next"}, at))(t)
	asked := add(shop.ID, next.ID, "asked for")
	if again.ID != 43 || asked.ID != 42 {
		t.Errorf("cohorts got the numbers %d and %d, want 43 and 42", again.ID, asked.ID)
	}
	are(paying, given, asked, *again)
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
		must(p.CreateCohort(ctx, registry.NewCohort{Project: project, Name: name}, at))(t)
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
	for _, k := range []registry.Key{goneKey, author, logged, last, secret} {
		must(p.RevokeKey(ctx, k.ID, end))(t)
	}
	if err := errors.Join(p.DeleteEndpoint(ctx, shop.ID, "gone", end), p.DeleteCohort(ctx, shop.ID, 1, end)); err != nil {
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
		Insights: []int64{gone.ID}, Dashboards: []int64{goneBoard.ID}, Tiles: wantTiles, Endpoints: 1, Keys: wantKeys, Cohorts: 1,
	}, out)
	after := p.settled()
	same(t, "another project", before[1], after[1])
	left := after[0]
	if len(left.Insights) != 1 || len(left.Dashboards) != 1 || len(left.Dashboards[0].Tiles) != 1 || len(left.Endpoints) != 1 || len(left.Endpoints[0].Versions) != 2 ||
		len(left.Variables) != 2 || len(left.Keys) != 3 || len(left.Cohorts) != 1 {
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
	if c := must(p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, Name: "gone"}, at))(t); c.ID != 3 {
		t.Errorf("the next cohort is %d", c.ID)
	}
	p.endpoint(shop.ID, "gone")
	p.settled()
}
