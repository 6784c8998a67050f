// Package registrytest examines any registry.Store.
package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Place is an empty home for one store. Each call opens a store on the same data; the one who opens closes.
type Place func(t *testing.T) registry.Store

// exam is a test of the stores at one place.
type exam struct {
	*testing.T

	place Place
}

// sub runs a part of the test under a name of its own.
func (t exam) sub(name string, run func(exam)) {
	t.Run(name, func(inner *testing.T) { run(exam{inner, t.place}) })
}

// Run examines the stores that open on the places made by newPlace.
func Run(t *testing.T, newPlace func(t *testing.T) Place) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t exam)
	}{
		{"an empty store", testEmpty},
		{"projects", testProjects},
		{"what belongs to no project", testUnknownProject},
		{"keys", testKeys},
		{"key conflicts", testKeyConflicts},
		{"use of keys", testKeyUsed},
		{"secrets for tokens", testTokenSecrets},
		{"endpoints", testEndpoints},
		{"endpoint conflicts", testEndpointConflicts},
		{"executions of endpoints", testExecuted},
		{"variables", testVariables},
		{"users", testUsers},
		{"insights", testInsights},
		{"dashboards and their tiles", testDashboards},
		{"activities", testActivities},
		{"views of insights", testViews},
		{"properties", testProperties},
		{"group types", testGroupTypes},
		{"cohorts", testCohorts},
		{"what a project keeps", testUsage},
		{"cutting the activity log", testTrim},
		{"purging what was deleted", testPurge},
		{"things that are not there", testMissing},
		{"a write that fails leaves nothing", testRollback},
		{"a write that changes nothing has no revision", testNoChange},
		{"load since a revision", testLoadSince},
		{"a store opened again has everything", testReopen},
		{"writers at the same time", testConcurrentWriters},
		{"a reader sees one moment", testConsistentLoad},
		{"a cancelled write leaves nothing", testCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(exam{t, newPlace(t)}) })
	}
}

// at is when everything happens in these tests: the microseconds must survive.
var at = time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC)

// open opens a store that is closed with the test.
func open(t exam) registry.Store {
	t.Helper()
	s := t.place(t.T)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

// write runs fn in a transaction that must succeed, and returns its revision.
func write(t exam, s registry.Store, fn func(ctx context.Context, tx registry.Tx) error) uint64 {
	t.Helper()
	revision, err := s.Write(t.Context(), func(tx registry.Tx) error { return fn(t.Context(), tx) })
	if err != nil {
		t.Fatalf("Write() = %v", err)
	}
	return revision
}

// refuse runs fn in a transaction that must fail with the error want, and checks that nothing changed.
func refuse(t exam, s registry.Store, want error, fn func(ctx context.Context, tx registry.Tx) error) {
	t.Helper()
	before := load(t, s, 0)
	_, err := s.Write(t.Context(), func(tx registry.Tx) error { return fn(t.Context(), tx) })
	if conflict, ok := errors.AsType[*registry.ConflictError](want); ok {
		got, _ := errors.AsType[*registry.ConflictError](err)
		if got == nil || *got != *conflict {
			t.Errorf("Write() = %v, want the conflict %v", err, want)
		}
	} else if !errors.Is(err, want) {
		t.Errorf("Write() = %v, want %v", err, want)
	}
	if diff := cmp.Diff(before, load(t, s, 0), anyOrder); diff != "" {
		t.Errorf("a refused write changed the store (-before +after):\n%s", diff)
	}
}

func load(t exam, s registry.Store, since uint64) *registry.Changes {
	t.Helper()
	changes, err := s.Load(t.Context(), since)
	if err != nil {
		t.Fatalf("Load(%d) = %v", since, err)
	}
	return changes
}

// expect compares all that the store holds of its projects.
func expect(t exam, s registry.Store, want ...registry.ProjectRecord) {
	t.Helper()
	if diff := cmp.Diff(want, load(t, s, 0).Projects, anyOrder); diff != "" {
		t.Errorf("Load(0) projects (-want +got):\n%s", diff)
	}
}

// anyOrder compares records whose lists a store may give in any order; versions have theirs.
var anyOrder = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b registry.Key) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b registry.Endpoint) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b registry.Variable) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b registry.Insight) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b registry.Dashboard) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b registry.PropertyDefinition) bool { return fmt.Sprint(a) < fmt.Sprint(b) }),
	cmpopts.SortSlices(func(a, b registry.GroupType) bool { return a.Index < b.Index }),
	cmpopts.SortSlices(func(a, b registry.Cohort) bool { return a.ID < b.ID }),
}

// addProject adds a project, and returns it with its number.
func addProject(t exam, s registry.Store) registry.Project {
	t.Helper()
	p := registry.Project{Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1, CreatedAt: at}
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		p.ID, err = tx.InsertProject(ctx, p)
		return err
	})
	return p
}

func newKey(project int64, id string) registry.Key {
	return registry.Key{
		ID: id, Kind: registry.Personal, Label: "label of " + id, Mask: "phx_...abcd", Hash: registry.HashKey(id), Project: project,
		Scopes: []string{"endpoint:read", "query:read"}, CreatedAt: at,
	}
}

func newEndpoint(project int64, id, name string) registry.Endpoint {
	return registry.Endpoint{
		ID: id, Project: project, Name: name, Active: true, DerivedFromInsight: "AbCd1234", Tags: []string{"b", "a"}, CurrentVersion: 1,
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute}, CreatedAt: at, UpdatedAt: at, CreatedBy: "key", Versions: []registry.Version{newVersion(id, 1)},
	}
}

func newVersion(endpoint string, number int) registry.Version {
	return registry.Version{
		ID: fmt.Sprintf("%s-%d", endpoint, number), Number: number, Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select 'ä\u0000\n'"}`),
		Description: "Größe — ≤ 1", FreshnessSeconds: 900, Active: true, Columns: []registry.Column{{Name: "n", Type: "integer"}},
		CreatedAt: at, UpdatedAt: at, CreatedBy: "key", PublishedAt: at, DeprecatedAt: at.Add(time.Minute), SunsetAt: at.Add(time.Hour),
		OptionalBreakdowns: []string{"plan", "a"},
	}
}

func newVariable(project int64, id, code string) registry.Variable {
	return registry.Variable{
		ID: id, Project: project, Name: code, CodeName: code, Type: registry.VariableList,
		Default: map[string]any{"a": []any{int64(9007199254740993), 1.5, nil, true, "x"}}, Values: []any{"x", "y"}, IsMulti: true,
		CreatedAt: at, CreatedBy: "key",
	}
}

func testEmpty(t exam) {
	s := open(t)
	if revision, err := s.Revision(t.Context()); revision != 0 || err != nil {
		t.Errorf("Revision() = %d, %v, want 0", revision, err)
	}
	if diff := cmp.Diff(&registry.Changes{}, load(t, s, 0), anyOrder); diff != "" {
		t.Errorf("Load(0) (-want +got):\n%s", diff)
	}
}

func testProjects(t exam) {
	s := open(t)
	first, second := addProject(t, s), addProject(t, s)
	if first.ID != 1 || second.ID != 2 {
		t.Errorf("projects got the numbers %d and %d, want 1 and 2", first.ID, second.ID)
	}
	expect(t, s, registry.ProjectRecord{Project: first}, registry.ProjectRecord{Project: second})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Project(ctx, 2)
		if diff := cmp.Diff(second, got); diff != "" {
			t.Errorf("Project(2) (-want +got):\n%s", diff)
		}
		return err
	})
	second.Name, second.Timezone, second.WeekStart = "Other", "UTC", 0
	second.TestAccountFilters, second.PathCleaningFilters = `[{"key": "email", "value": "' \" ; --"}]`, `[{"regex": "/\\d+"}]`
	before := load(t, s, 0).Revision
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.UpdateProject(ctx, second) })
	expect(t, s, registry.ProjectRecord{Project: first}, registry.ProjectRecord{Project: second})
	if diff := cmp.Diff([]registry.ProjectRecord{{Project: second}}, load(t, s, before).Projects, anyOrder); diff != "" {
		t.Errorf("what changed since (-want +got):\n%s", diff)
	}
}

func testUnknownProject(t exam) {
	s := open(t)
	addProject(t, s)
	for name, fn := range map[string]func(ctx context.Context, tx registry.Tx) error{
		"InsertKey": func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, newKey(9, "k")) },
		"InsertEndpoint": func(ctx context.Context, tx registry.Tx) error {
			return tx.InsertEndpoint(ctx, newEndpoint(9, "e", "e"))
		},
		"InsertCohort": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.InsertCohort(ctx, newCohort(9, 1, "c"))
			return err
		},
		"InsertVariable": func(ctx context.Context, tx registry.Tx) error {
			return tx.InsertVariable(ctx, newVariable(9, "v", "v"))
		},
		"InsertInsight": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.InsertInsight(ctx, newInsight(9, "AbCd1234"))
			return err
		},
		"InsertDashboard": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.InsertDashboard(ctx, newDashboard(9))
			return err
		},
		"PutProperties": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.PutProperties(ctx, 9, []registry.PropertyDefinition{{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyNumeric}}, true)
			return err
		},
		"PutGroupTypes": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.PutGroupTypes(ctx, 9, []registry.GroupType{{Name: "x"}})
			return err
		},
	} {
		t.sub(name, func(t exam) { refuse(t, s, registry.ErrNotFound, fn) })
	}
}

func testMissing(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	i := addInsight(t, s, newInsight(other.ID, "AbCd1234"))
	d := newDashboard(other.ID)
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		d.ID, err = tx.InsertDashboard(ctx, d)
		return err
	})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		_, err := tx.InsertCohort(ctx, newCohort(other.ID, 5, "theirs"))
		return err
	})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		return errors.Join(tx.InsertEndpoint(ctx, newEndpoint(other.ID, "e", "e")), tx.InsertVariable(ctx, newVariable(other.ID, "v", "v")),
			tx.InsertEndpoint(ctx, newEndpoint(p.ID, "gone", "gone")), tx.DeleteEndpoint(ctx, "gone", at))
	})
	for name, fn := range map[string]func(ctx context.Context, tx registry.Tx) error{
		"Project":                     func(ctx context.Context, tx registry.Tx) error { _, err := tx.Project(ctx, 9); return err },
		"Key":                         func(ctx context.Context, tx registry.Tx) error { _, err := tx.Key(ctx, "k"); return err },
		"UpdateKey":                   func(ctx context.Context, tx registry.Tx) error { return tx.UpdateKey(ctx, newKey(p.ID, "k")) },
		"Endpoint":                    func(ctx context.Context, tx registry.Tx) error { _, err := tx.Endpoint(ctx, p.ID, "x"); return err },
		"Endpoint of another project": func(ctx context.Context, tx registry.Tx) error { _, err := tx.Endpoint(ctx, p.ID, "e"); return err },
		"Endpoint deleted":            func(ctx context.Context, tx registry.Tx) error { _, err := tx.Endpoint(ctx, p.ID, "gone"); return err },
		"UpdateEndpoint": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateEndpoint(ctx, newEndpoint(p.ID, "x", "x"))
		},
		"UpdateEndpoint of another project": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateEndpoint(ctx, newEndpoint(p.ID, "e", "e"))
		},
		"UpdateEndpoint deleted": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateEndpoint(ctx, newEndpoint(p.ID, "gone", "gone"))
		},
		"InsertVersion":          func(ctx context.Context, tx registry.Tx) error { return tx.InsertVersion(ctx, "x", newVersion("x", 2)) },
		"UpdateVersion":          func(ctx context.Context, tx registry.Tx) error { return tx.UpdateVersion(ctx, "e", newVersion("e", 2)) },
		"DeleteEndpoint":         func(ctx context.Context, tx registry.Tx) error { return tx.DeleteEndpoint(ctx, "x", at) },
		"DeleteEndpoint deleted": func(ctx context.Context, tx registry.Tx) error { return tx.DeleteEndpoint(ctx, "gone", at) },
		"Variable":               func(ctx context.Context, tx registry.Tx) error { _, err := tx.Variable(ctx, p.ID, "x"); return err },
		"Variable of another project": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.Variable(ctx, p.ID, "v")
			return err
		},
		"Cohort of another project": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.Cohort(ctx, p.ID, 5)
			return err
		},
		"UpdateCohort of another project": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateCohort(ctx, newCohort(p.ID, 5, "mine"))
		},
		"DeleteCohort of another project": func(ctx context.Context, tx registry.Tx) error { return tx.DeleteCohort(ctx, p.ID, 5, at) },
		"Insight of another project": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.Insight(ctx, p.ID, i.ID)
			return err
		},
		"UpdateInsight of another project": func(ctx context.Context, tx registry.Tx) error {
			theirs := newInsight(p.ID, "AbCd1234")
			theirs.ID = i.ID
			return tx.UpdateInsight(ctx, theirs)
		},
		"Dashboard of another project": func(ctx context.Context, tx registry.Tx) error {
			_, err := tx.Dashboard(ctx, p.ID, d.ID)
			return err
		},
		"UpdateDashboard of another project": func(ctx context.Context, tx registry.Tx) error {
			theirs := newDashboard(p.ID)
			theirs.ID = d.ID
			return tx.UpdateDashboard(ctx, theirs)
		},
		"UpdateTile": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateTile(ctx, newTile(other.ID, d.ID, i.ID))
		},
		"UpdateVariable of another project": func(ctx context.Context, tx registry.Tx) error {
			return tx.UpdateVariable(ctx, newVariable(p.ID, "v", "v"))
		},
		"DeleteVariable of another project": func(ctx context.Context, tx registry.Tx) error { return tx.DeleteVariable(ctx, p.ID, "v") },
	} {
		t.sub(name, func(t exam) { refuse(t, s, registry.ErrNotFound, fn) })
	}
}

func testRollback(t exam) {
	s := open(t)
	p := addProject(t, s)
	mine := errors.New("changed my mind")
	refuse(t, s, mine, func(ctx context.Context, tx registry.Tx) error {
		if err := tx.InsertKey(ctx, newKey(p.ID, "k")); err != nil {
			t.Error(err)
		}
		if _, err := tx.Key(ctx, "k"); err != nil {
			t.Errorf("a transaction doesn't see its own write: %v", err)
		}
		return mine
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Write() swallowed a panic")
			}
		}()
		_, _ = s.Write(t.Context(), func(tx registry.Tx) error {
			if err := tx.InsertKey(t.Context(), newKey(p.ID, "k")); err != nil {
				t.Error(err)
			}
			panic("in a transaction")
		})
	}()
	expect(t, s, registry.ProjectRecord{Project: p})
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, newKey(p.ID, "k")) })
}

func testNoChange(t exam) {
	s := open(t)
	p := addProject(t, s)
	revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
		_, err := tx.Project(ctx, p.ID)
		return err
	})
	if revision != 0 {
		t.Errorf("a write that only read has revision %d, want 0", revision)
	}
	if revision, err := s.Revision(t.Context()); revision != 1 || err != nil {
		t.Errorf("Revision() = %d, %v, want 1", revision, err)
	}
}

func testLoadSince(t exam) {
	s := open(t)
	first, second := addProject(t, s), addProject(t, s)
	k, other := newKey(first.ID, "k"), newKey(first.ID, "other")
	for i, fn := range []func(ctx context.Context, tx registry.Tx) error{
		func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, k) },
		func(ctx context.Context, tx registry.Tx) error { return tx.InsertKey(ctx, other) },
	} {
		if got, want := write(t, s, fn), uint64(i+3); got != want {
			t.Errorf("a write has revision %d, want %d", got, want)
		}
	}
	whole := registry.ProjectRecord{Project: first, Keys: []registry.Key{k, other}}
	tests := []struct {
		since uint64
		want  []registry.ProjectRecord
	}{
		{0, []registry.ProjectRecord{whole, {Project: second}}},
		{1, []registry.ProjectRecord{whole, {Project: second}}},
		{2, []registry.ProjectRecord{whole}},
		{3, []registry.ProjectRecord{whole}},
		{4, nil},
		{99, nil},
	}
	for _, tt := range tests {
		want := &registry.Changes{Revision: 4, Projects: tt.want}
		if diff := cmp.Diff(want, load(t, s, tt.since), anyOrder); diff != "" {
			t.Errorf("Load(%d) (-want +got):\n%s", tt.since, diff)
		}
	}
}

func testReopen(t exam) {
	s := t.place(t.T)
	p := addProject(t, s)
	i := addInsight(t, s, newInsight(p.ID, "AbCd1234"))
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		d, err := tx.InsertDashboard(ctx, newDashboard(p.ID))
		if err != nil {
			return err
		}
		_, err = tx.InsertTile(ctx, newTile(p.ID, d, i.ID))
		return err
	})
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		_, err := tx.PutProperties(ctx, p.ID, []registry.PropertyDefinition{{Scope: registry.GroupProperty, GroupTypeIndex: 3, Name: "size", Type: registry.PropertyNumeric}}, true)
		_, err2 := tx.PutGroupTypes(ctx, p.ID, []registry.GroupType{{Name: "company", Index: 3}})
		_, err3 := tx.InsertCohort(ctx, newCohort(p.ID, 0, "paying"))
		return errors.Join(err, err2, err3, tx.InsertKey(ctx, newKey(p.ID, "k")), tx.InsertEndpoint(ctx, newEndpoint(p.ID, "e", "e")),
			tx.InsertVersion(ctx, "e", newVersion("e", 2)), tx.InsertVariable(ctx, newVariable(p.ID, "v", "v")))
	})
	want := load(t, s, 0)
	if err := s.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	if diff := cmp.Diff(want, load(t, open(t), 0), anyOrder); diff != "" {
		t.Errorf("after opening it again (-before +after):\n%s", diff)
	}
}

func testConcurrentWriters(t exam) {
	const writers, each = 4, 15
	stores := []registry.Store{open(t), open(t)} // as two processes
	p := addProject(t, stores[0])
	var mu sync.Mutex
	revisions := make(map[uint64]bool)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				revision, err := stores[w%len(stores)].Write(t.Context(), func(tx registry.Tx) error {
					n, err := tx.CountKeys(t.Context(), p.ID, registry.Personal)
					if err != nil {
						return err
					}
					k := newKey(p.ID, fmt.Sprintf("%d-%d", w, i))
					k.Label = strconv.Itoa(n) // read, then written: two transactions must not read the same
					return tx.InsertKey(t.Context(), k)
				})
				if err != nil {
					t.Errorf("Write() = %v", err)
					return
				}
				mu.Lock()
				revisions[revision] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	labels := make(map[string]bool)
	for _, k := range load(t, stores[1], 0).Projects[0].Keys {
		labels[k.Label] = true
	}
	if len(revisions) != writers*each || len(labels) != writers*each {
		t.Errorf("%d writes had %d revisions and saw %d states, want as many of each", writers*each, len(revisions), len(labels))
	}
}

func testConsistentLoad(t exam) {
	const rounds = 30
	writer, reader := open(t), open(t)
	p := addProject(t, writer)
	e := newEndpoint(p.ID, "e", "e")
	write(t, writer, func(ctx context.Context, tx registry.Tx) error { return tx.InsertEndpoint(ctx, e) })
	var done sync.WaitGroup
	done.Go(func() {
		for i := range rounds {
			_, err := writer.Write(t.Context(), func(tx registry.Tx) error {
				e.CurrentVersion = i + 2
				return errors.Join(tx.InsertVersion(t.Context(), "e", newVersion("e", i+2)), tx.UpdateEndpoint(t.Context(), e))
			})
			if err != nil {
				t.Errorf("Write() = %v", err)
				return
			}
		}
	})
	var before uint64
	for before < rounds+2 && !t.Failed() {
		changes := load(t, reader, 0)
		got := changes.Projects[0].Endpoints[0]
		if changes.Revision < before || got.CurrentVersion != len(got.Versions) || int(changes.Revision) != got.CurrentVersion+1 { //nolint:gosec // small
			t.Errorf("at revision %d, after %d, the endpoint is at version %d of %d", changes.Revision, before, got.CurrentVersion, len(got.Versions))
		}
		before = changes.Revision
	}
	done.Wait()
}

func testCancelled(t exam) {
	s := open(t)
	p := addProject(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Write(ctx, func(tx registry.Tx) error {
		if err := tx.InsertKey(ctx, newKey(p.ID, "k")); err != nil {
			t.Error(err)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Write() = %v, want %v", err, context.Canceled)
	}
	expect(t, s, registry.ProjectRecord{Project: p})
	addProject(t, s) // the store still takes writes
}
