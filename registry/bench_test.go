package registry_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

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

// BenchmarkInsights measures writes and the first page of a list in projects with few and many insights. Both cost the same.
func BenchmarkInsights(b *testing.B) {
	for _, many := range []int{10, 1000, 10_000} {
		path := filled(b, many)
		r := openAt(b, path, quiet)
		other := openAt(b, path, quiet)
		query := query("select 1")
		b.Run(fmt.Sprintf("a write among %d", many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(r.UpdateInsight(b.Context(), 1, 5, registry.InsightFields{Query: registry.To(query)}, false, "k", now))(b)
			}
		})
		if err := other.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("a write among %d, and another process reads it", many), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(r.UpdateInsight(b.Context(), 1, 5, registry.InsightFields{Query: registry.To(query)}, false, "k", now))(b)
				if err := other.Refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("the first page of %d", many), func(b *testing.B) {
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

// filled makes a store with one project of many insights, and returns its path.
func filled(tb testing.TB, many int) string {
	tb.Helper()
	path := sqlitetest.Path(tb)
	r := must(registry.Open(tb.Context(), openStore(tb, path), quiet))(tb)
	must(r.CreateProject(tb.Context(), registry.NewProject{Name: "Shop"}, now))(tb)
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	s := openStore(tb, path)
	var w registry.Write
	for n := 1; n <= many; n++ {
		id := strconv.Itoa(n)
		w.Put = append(w.Put, registry.Record{
			Project: 1, Kind: registry.KindInsight, ID: id, Unique: []string{"1 " + id},
			Data: fmt.Appendf(nil, `{"id": %d, "short_id": "%d", "name": "insight %d", "query": %s, "filters": {}, "saved": true, "tags": []}`, n, n, n, query("select 1")),
		})
		w.Append = append(w.Append, registry.Entry{Project: 1, Log: "view", ID: id + "/k", Item: id, By: "k", At: now})
	}
	if _, err := s.Write(tb.Context(), &w); err != nil {
		tb.Fatal(err)
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// TestWritesDoNotGrowWithTheProject holds that neither a write nor a page touches all insights of a project: what they allocate stays.
func TestWritesDoNotGrowWithTheProject(t *testing.T) {
	type cost struct{ write, page, refresh float64 }
	measured := make(map[int]cost)
	for _, many := range []int{10, 5000} {
		path := filled(t, many)
		r, other := openAt(t, path, quiet), openAt(t, path, quiet)
		write := func() {
			must(r.UpdateInsight(t.Context(), 1, 5, registry.InsightFields{Favorited: registry.To(true)}, false, "k", now))(t)
		}
		c := cost{write: bytesOf(20, write), page: bytesOf(20, func() { r.Snapshot().InsightPage(1, 0, 10) })}
		c.refresh = bytesOf(20, func() {
			write()
			if err := other.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) - c.write
		measured[many] = c
	}
	few, more := measured[10], measured[5000]
	for what, grown := range map[string]float64{"a write": more.write / few.write, "a page": more.page / few.page, "reading what changed": more.refresh / few.refresh} {
		if grown > 4 {
			t.Errorf("%s allocates %.1f times as much among 5,000 insights as among 10: %+v", what, grown, measured)
		}
	}
}

// bytesOf returns how many bytes a call of do allocates.
func bytesOf(runs int, do func()) float64 {
	var before, after runtime.MemStats
	do()
	runtime.ReadMemStats(&before)
	for range runs {
		do()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(runs)
}
