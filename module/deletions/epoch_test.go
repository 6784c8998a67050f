package deletions_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// TestEpochOfRetention: events that were gone because they were too old are taken again after the project keeps them for longer.
func TestEpochOfRetention(t *testing.T) {
	dir := t.TempDir()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.Open(t.Context(), store, registry.Options{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	now := time.Now()
	p, err := reg.CreateProject(t.Context(), registry.NewProject{Name: "p"}, now)
	if err != nil {
		t.Fatal(err)
	}
	epochs := map[int64]bool{deletions.DeletionsOf(reg.Snapshot(), p.ID).Epoch: true}
	for n, days := range []int{30, 0} {
		change := registry.ProjectChange{Retention: &days, At: now.Add(time.Duration(n+1) * time.Second)}
		if _, err := reg.UpdateProject(t.Context(), p.ID, change); err != nil {
			t.Fatal(err)
		}
		epochs[deletions.DeletionsOf(reg.Snapshot(), p.ID).Epoch] = true
	}
	if len(epochs) != 3 {
		t.Errorf("the epochs are %v, want another one with each change", epochs)
	}
}
