package registry_test

import (
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/registry"
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
