package deletions_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestShardHangs: while a shard hangs, deletions are completed and erased on another.
func TestShardHangs(t *testing.T) {
	s := start(t)
	var of []int64 // the project on the hanging shard first
	for _, shard := range []string{"east", ""} {
		projects.Add(1)
		p, err := s.registry.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC", Shard: shard}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, p.ID)
	}
	dsn := embeddedtest.New(t).DSN() // other tests have left nothing to erase there
	shards, err := warehouse.OpenShards(warehouse.ShardsConfig{
		Main: clickhouse.Config{DSN: dsn}, Others: map[string]string{"east": dsn}, Shared: s.registry, Logger: zap.NewNop(),
		Of: func(project int64) string { return s.registry.Snapshot().ShardOf(project) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shards.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := shards.Main().Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	add := func(asked registry.Deletion, now time.Time) (added [][]*registry.Deletion) {
		t.Helper()
		for _, project := range of {
			asked.Person = uuid.NewString()
			records, err := s.registry.AddDeletions(t.Context(), project, []registry.Deletion{asked}, now)
			if err != nil {
				t.Fatal(err)
			}
			added = append(added, records)
		}
		return added
	}
	for n, records := range add(registry.Deletion{Events: true}, time.Now()) {
		if err := s.registry.HideDeletions(t.Context(), of[n], records, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	hung, completing := make(chan struct{}), make(chan struct{}, 1)
	d := deletions.New(deletions.Config{
		Registry: s.registry, Shards: shards, Logger: zap.NewNop(), Recount: noRecount, Forget: func(int64, time.Time) {},
		Options: func(project int64) ingest.Options {
			if project == of[0] {
				select {
				case completing <- struct{}{}:
				default:
				}
				<-hung
			}
			return s.options(project)
		},
		EraseCaptured: func(ctx context.Context, shard string, _ func(int64, string) bool) error {
			if shard == "east" {
				<-ctx.Done()
			}
			return ctx.Err()
		},
		EraseImports: func(int64) error { return nil },
	})
	defer func() {
		close(hung)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	state := func(project int64) (hidden, erased int) {
		for _, one := range s.registry.Snapshot().Deletions(project) {
			if !one.HiddenAt.IsZero() {
				hidden++
			}
			if !one.ErasedAt.IsZero() {
				erased++
			}
		}
		return hidden, erased
	}
	await := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s: the test ends", what)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	erased := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		n, err := d.EraseNow(ctx)
		if err == nil {
			t.Error("EraseNow says that all is erased")
		}
		erased <- n
	}()
	await("erasing", func() bool { _, erased := state(of[1]); return erased == 1 })
	cancel()
	if n := <-erased; n != 1 {
		t.Errorf("%d deletions are erased, want 1", n)
	}
	add(registry.Deletion{Gone: true, Version: 1}, time.Now().Add(-time.Hour))
	<-completing
	await("completing", func() bool { hidden, _ := state(of[1]); return hidden == 2 })
	if hidden, gone := state(of[0]); hidden != 1 || gone != 0 {
		t.Errorf("on the shard that hangs %d are hidden and %d erased", hidden, gone)
	}
}
