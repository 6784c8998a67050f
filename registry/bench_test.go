package registry_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// hot is a registry with some content, and the lookups that a cached run makes.
func hot(tb testing.TB) map[string]func() bool {
	tb.Helper()
	r, p := fresh(tb)
	_, text := createKey(tb, r, p.ID)
	for i := range 20 {
		must(r.CreateEndpoint(tb.Context(), registry.NewEndpoint{Project: p.ID, Name: fmt.Sprint("e", i), Query: query("select 1")}, now))(tb)
		must(r.CreateVariable(tb.Context(), registry.NewVariable{Project: p.ID, Name: fmt.Sprint("v", i), Type: registry.VariableString}, now))(tb)
	}
	hash := registry.HashKey(text)
	key := r.Snapshot().KeyByHash(hash)
	id := r.Snapshot().VariableByCode(p.ID, "v7").ID
	return map[string]func() bool{
		"HashKey":          func() bool { return registry.HashKey(text) == hash },
		"KeyByHash":        func() bool { return r.Snapshot().KeyByHash(hash) != nil },
		"Allows":           func() bool { return key.Allows("endpoint:read") },
		"Project":          func() bool { return r.Snapshot().Project(p.ID) != nil },
		"Schema":           func() bool { return r.Snapshot().Schema(p.ID) != nil },
		"Endpoint":         func() bool { return r.Snapshot().Endpoint(p.ID, "e7").Version(1) != nil },
		"Endpoints":        func() bool { return len(r.Snapshot().Endpoints(p.ID)) == 20 },
		"VariableByCode":   func() bool { return r.Snapshot().VariableByCode(p.ID, "v7") != nil },
		"VariableByID":     func() bool { return r.Snapshot().VariableByID(p.ID, id) != nil },
		"VariableDefaults": func() bool { return len(r.Snapshot().VariableDefaults(p.ID)) == 20 },
		"Touch":            func() bool { r.Touch(key, now); return true },
		"a whole hit": func() bool {
			s := r.Snapshot()
			k := s.KeyByHash(registry.HashKey(text))
			if k == nil || k.Expired(now) || !k.Allows("endpoint:read") || s.Project(k.Project) == nil {
				return false
			}
			e := s.Endpoint(k.Project, "e7")
			r.Touch(k, now)
			r.Executed(e, 1, now)
			return e.Active && e.Version(0).Active
		},
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	for name, lookup := range hot(t) {
		if !lookup() {
			t.Errorf("%s fails", name)
		}
		if got := testing.AllocsPerRun(100, func() { lookup() }); got != 0 {
			t.Errorf("%s allocates %v times, want 0", name, got)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for name, lookup := range hot(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lookup()
			}
		})
	}
}

// writesOf are writes that add or change one entity of each kind in project 1.
var writesOf = []struct {
	kind  registry.Kind
	write func(context.Context, *registry.Registry) error
}{
	{registry.KindDeletion, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.AddDeletions(ctx, 1, []registry.Deletion{{Gone: true}}, now)
		return err
	}},
	{registry.KindInsight, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateInsight(ctx, 1, 5, registry.InsightFields{Favorited: registry.To(true)}, false, "k", now)
		return err
	}},
	{registry.KindDashboard, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateDashboard(ctx, 1, 5, registry.DashboardFields{Pinned: registry.To(true)}, "k", now)
		return err
	}},
	{registry.KindTile, func(ctx context.Context, r *registry.Registry) error {
		f := registry.DashboardFields{Tiles: []registry.TileFields{{Insight: 5, Color: registry.To(new("red"))}}}
		_, err := r.UpdateDashboard(ctx, 1, 5, f, "k", now)
		return err
	}},
	{registry.KindKey, func(ctx context.Context, r *registry.Registry) error {
		_, _, err := r.RollKey(ctx, "k5", nil, now)
		return err
	}},
	{registry.KindEndpoint, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateEndpoint(ctx, 1, "e5", registry.EndpointUpdate{Active: new(true)}, now)
		return err
	}},
	{registry.KindVersion, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateEndpoint(ctx, 1, "e5", registry.EndpointUpdate{Description: new("new")}, now)
		return err
	}},
	{registry.KindVariable, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateVariable(ctx, 1, "v5", registry.VariableUpdate{Name: new("new")})
		return err
	}},
	{registry.KindCohort, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateCohort(ctx, 1, 5, staticCohort("new"), now)
		return err
	}},
	{registry.KindAction, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateAction(ctx, 1, 5, registry.ActionFields{Description: registry.To("new")}, now)
		return err
	}},
	{registry.KindDefinition, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.Define(ctx, registry.Definition{ID: "d5", Project: 1, Event: "d5"}, registry.DefinitionFields{Hidden: registry.To(true)}, "k5", now)
		return err
	}},
	{registry.KindAnnotation, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateAnnotation(ctx, 1, 5, registry.AnnotationFields{Content: registry.To(new("new"))}, now)
		return err
	}},
	{registry.KindAlert, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateAlert(ctx, 1, "a5", registry.AlertFields{Name: registry.To("new")}, now)
		return err
	}},
	{registry.KindProperty, func(ctx context.Context, r *registry.Registry) error {
		name := fmt.Sprint("new", r.Snapshot().Revision) // to set the same type again writes nothing
		return r.SetProperty(ctx, 1, registry.PropertyDefinition{Scope: registry.EventProperty, Name: name, Type: registry.PropertyNumeric})
	}},
	{registry.KindProject, func(ctx context.Context, r *registry.Registry) error {
		_, err := r.UpdateProject(ctx, 1, registry.ProjectChange{Name: new("new")})
		return err
	}},
}

// BenchmarkWrites measures writes in projects that have few and many entities of each kind. They cost the same.
func BenchmarkWrites(b *testing.B) {
	for _, many := range []int{10, 10_000} {
		path := filled(b, many)
		r, other := openAt(b, path, quiet), openAt(b, path, quiet)
		for _, w := range writesOf {
			write := func() {
				if err := w.write(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("%s among %d", w.kind, many), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					write()
				}
			})
			if err := other.Refresh(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s among %d, and another process reads it", w.kind, many), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					write()
					if err := other.Refresh(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkInsightPage measures the first page of a list in projects with few and many insights. It costs the same.
func BenchmarkInsightPage(b *testing.B) {
	for _, many := range []int{10, 10_000} {
		r := openAt(b, filled(b, many), quiet)
		b.Run(strconv.Itoa(many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, total := r.Snapshot().InsightPage(1, 0, 10)
				ids := make([]int64, len(page))
				for n, i := range page {
					ids[n] = i.ID
				}
				must(r.ViewsOf(b.Context(), 1, ids))(b)
				if len(page) != 10 || total != many {
					b.Fatalf("%d of %d", len(page), total)
				}
			}
		})
	}
}

// putter puts a record of project 1; data is a format for its JSON.
type putter func(kind registry.Kind, id, data string, args ...any)

// filledWith makes a store with one project and what unit puts and adds for each number up to many, and returns its path.
func filledWith(tb testing.TB, many int, unit func(w *registry.Write, put putter, n int)) string {
	tb.Helper()
	path := sqlitetest.Path(tb)
	r := must(registry.Open(tb.Context(), openStore(tb, path), quiet))(tb)
	must(r.CreateProject(tb.Context(), registry.NewProject{Name: "Shop"}, now))(tb)
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	s := openStore(tb, path)
	var w registry.Write
	put := func(kind registry.Kind, id, data string, args ...any) {
		rec := registry.Record{Project: 1, Kind: kind, ID: id, Data: fmt.Appendf(nil, data, args...)}
		rec.Unique = must(registry.UniqueKeys(&rec))(tb)
		w.Put = append(w.Put, rec)
	}
	for n := 1; n <= many; n++ {
		unit(&w, put, n)
	}
	must(s.Write(tb.Context(), &w))(tb)
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// filled makes a store with one project that has many entities of each kind, and returns its path.
func filled(tb testing.TB, many int) string {
	tb.Helper()
	return filledWith(tb, many, func(w *registry.Write, put putter, n int) {
		q, at := query("select 1"), now.Format(time.RFC3339)
		id := strconv.Itoa(n)
		put(registry.KindInsight, id, `{"short_id": "%d", "name": "insight %d", "query": %s, "filters": {}, "saved": true, "tags": []}`, n, n, q)
		put(registry.KindDashboard, id, `{"filters": {}, "variables": {}, "tags": []}`)
		put(registry.KindTile, id+"/"+id, `{"id": %d, "insight": %d, "layouts": {}, "filter_overrides": {}}`, n, n)
		put(registry.KindKey, "k"+id, `{"id": "k%d", "user": %d, "kind": "personal", "hash": "%064x", "scopes": ["*"], "created_at": %q}`, n, n, n, at)
		put(registry.KindEndpoint, "e"+id, `{"id": "e%d", "name": "e%d", "active": true, "current_version": 1, "created_at": %q}`, n, n, at)
		put(registry.KindVersion, "e"+id+"/1", `{"id": "v%d", "number": 1, "query": %s, "active": true}`, n, q)
		put(registry.KindVariable, "v"+id, `{"id": "v%d", "name": "v%d", "code_name": "v%d", "type": "String", "default": null, "values": null, "created_at": %q}`, n, n, n, at)
		put(registry.KindCohort, id, `{"$form": 1, "name": "c%d", "static": true}`, n)
		put(registry.KindAction, id, `{"name": "a%d", "steps": [{"event": "e"}], "tags": [], "created_at": %q}`, n, at)
		put(registry.KindAlert, "a"+id, `{"insight": %d, "enabled": true, "created_at": %q}`, n, at)
		put(registry.KindDefinition, "d"+id, `{"event": "d%d", "updated_at": %q}`, n, at)
		put(registry.KindAnnotation, id, `{"content": "a%d", "date_marker": %q, "scope": "project", "creation_type": "USR", "created_at": %q, "updated_at": %q}`, n, at, at, at)
		put(registry.KindProperty, fmt.Sprintf(`event/0/"p%d"`, n), `{"scope": "event", "name": "p%d", "type": "String"}`, n)
		w.Append = append(w.Append, registry.Entry{Project: 1, Log: "view", ID: id + "/k", Item: id, By: "k", At: now})
	})
}

// TestWritesDoNotGrowWithTheProject checks that neither a write nor a page touches all entities of a kind: what they allocate stays the same.
func TestWritesDoNotGrowWithTheProject(t *testing.T) {
	few, more := costs(t, 10), costs(t, 5000)
	for what, cost := range more {
		if grown := cost / few[what]; grown > 4 {
			t.Errorf("%s allocates %.1f times as much among 5,000 as among 10: %.0f bytes, not %.0f", what, grown, cost, few[what])
		}
	}
}

// costs returns the bytes that writes and pages allocate in a project that has many entities of each kind.
func costs(t *testing.T, many int) map[string]float64 {
	t.Helper()
	path := filled(t, many)
	r, other := openAt(t, path, quiet), openAt(t, path, quiet)
	measured := map[string]float64{
		"a page of insights":  bytesOf(func() { r.Snapshot().InsightPage(1, 0, 10) }),
		"a page of variables": bytesOf(func() { r.Snapshot().VariablePage(1, 0, 10) }),
	}
	for _, w := range writesOf {
		write := func() {
			if err := w.write(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		cost := bytesOf(write)
		measured["a write of kind "+string(w.kind)] = cost
		measured["reading a change of kind "+string(w.kind)] = bytesOf(func() {
			write()
			if err := other.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) - cost
	}
	return measured
}

// bytesOf returns how many bytes a call of do allocates.
func bytesOf(do func()) float64 {
	const runs = 20
	var before, after runtime.MemStats
	do()
	runtime.ReadMemStats(&before)
	for range runs {
		do()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}
