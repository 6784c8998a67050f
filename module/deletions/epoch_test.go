package deletions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestLate: of two deletions of a distinct id, each says for itself whether the events until then are deleted.
func TestLate(t *testing.T) {
	reg, first := sqlitetest.Open(t, registry.Options{}), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Hour)
	for _, tt := range []struct {
		name     string
		with     [2]bool // whether each deletes the events
		backward bool    // the second one is recorded first
		want     ingest.Late
	}{
		{"none with events", [2]bool{false, false}, false, ingest.Late{Until: second}},
		{"the first with events", [2]bool{true, false}, false, ingest.Late{Until: second, EventsUntil: first}},
		{"the first with events, recorded last", [2]bool{true, false}, true, ingest.Late{Until: second, EventsUntil: first}},
		{"the second with events", [2]bool{false, true}, false, ingest.Late{Until: second, EventsUntil: second}},
		{"both with events, in another order", [2]bool{true, true}, true, ingest.Late{Until: second, EventsUntil: second}},
	} {
		p, err := reg.CreateProject(t.Context(), registry.NewProject{Name: tt.name}, first)
		if err != nil {
			t.Fatal(err)
		}
		order := []int{0, 1}
		if tt.backward {
			order = []int{1, 0}
		}
		for _, n := range order {
			one := registry.Deletion{Person: "1", Gone: true, Events: tt.with[n], Names: []registry.DeletedName{{Name: "ann"}}}
			if _, err := reg.AddDeletions(t.Context(), p.ID, []registry.Deletion{one}, []time.Time{first, second}[n]); err != nil {
				t.Fatal(err)
			}
		}
		late := deletions.DeletionsOf(reg.Snapshot(), p.ID).Late
		if diff := cmp.Diff(map[string]ingest.Late{"ann": tt.want}, late); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestEpochs: ClickHouse accepts events again after each deletion, and after the retention is extended, whatever the clocks of the servers say, and
// even if the records of the deletions are purged.
func TestEpochs(t *testing.T) {
	path := sqlitetest.Path(t)
	one, other := sqlitetest.OpenAt(t, path, registry.Options{}), sqlitetest.OpenAt(t, path, registry.Options{})
	now := time.Now()
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
