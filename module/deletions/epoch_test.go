package deletions_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// TestEpochs: ClickHouse accepts events again after each deletion, and after the retention is extended, whatever the clocks of the servers say, and
// even if the records of the deletions are purged.
func TestEpochs(t *testing.T) {
	dir := t.TempDir()
	open := func() *registry.Registry {
		store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
		if err != nil {
			t.Fatal(err)
		}
		reg, err := registry.Open(t.Context(), store, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reg.Close() })
		return reg
	}
	one, other, now := open(), open(), time.Now()
	p, err := one.CreateProject(t.Context(), registry.NewProject{Name: "p"}, now)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]string{deletions.DeletionsOf(one.Snapshot(), p.ID).Epoch: "the beginning"}
	for _, change := range []struct {
		name  string
		by    *registry.Registry
		ahead time.Duration // its clock
		days  int           // how long events are kept from then on; -1 for a deletion
	}{
		{"a deletion by a server whose clock is ahead", one, time.Hour, -1},
		{"one by another server", other, 0, -1},
		{"one at the same moment", one, 0, -1},
		{"a retention by a server whose clock is ahead", other, 2 * time.Hour, 30},
		{"none by another server", one, time.Minute, 0},
		{"a deletion by a server whose clock is behind", other, -time.Hour, -1},
	} {
		var err error
		if change.days < 0 {
			_, err = change.by.AddDeletions(t.Context(), p.ID, []registry.Deletion{{Person: "1", Events: true}, {Person: "2", Gone: true}}, now.Add(change.ahead))
		} else {
			_, err = change.by.UpdateProject(t.Context(), p.ID, registry.ProjectChange{Retention: &change.days, At: now.Add(change.ahead)})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, reg := range []*registry.Registry{one, other} {
			if err := reg.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		epoch := deletions.DeletionsOf(one.Snapshot(), p.ID).Epoch
		if before, known := seen[epoch]; known {
			t.Errorf("the epoch after %s is the one after %s", change.name, before)
		}
		if theirs := deletions.DeletionsOf(other.Snapshot(), p.ID).Epoch; theirs != epoch {
			t.Errorf("the epoch after %s is %d for one server and %d for another one", change.name, epoch, theirs)
		}
		seen[epoch] = change.name
	}
	last := deletions.DeletionsOf(one.Snapshot(), p.ID).Epoch
	if err := one.EraseDeletions(t.Context(), p.ID, one.Snapshot().Deletions(p.ID), now); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Purge(t.Context(), p.ID, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if left := one.Snapshot().Deletions(p.ID); len(left) > 0 {
		t.Errorf("%d deletions are left", len(left))
	}
	if epoch := deletions.DeletionsOf(one.Snapshot(), p.ID).Epoch; seen[epoch] != seen[last] {
		t.Errorf("the epoch after the purge is the one after %s", seen[epoch])
	}
}
