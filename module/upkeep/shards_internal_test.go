package upkeep

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestShardAway: while a shard is away and its captured events wait, old events and deleted projects of another leave the disk, and that is recorded.
func TestShardAway(t *testing.T) {
	k := still(t, nil)
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := away.Close(); err != nil { // nobody answers there
		t.Fatal(err)
	}
	k.Shards, err = warehouse.OpenShards(warehouse.ShardsConfig{
		Main: clickhouse.Config{DSN: engine.DSN()}, Others: map[string]string{"east": "http://" + away.Addr().String() + "/default"},
		Of: func(project int64) string { return k.Registry.Snapshot().ShardOf(project) }, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.Shards.Close(); err != nil {
			t.Error(err)
		}
	}()
	waiting := make(chan struct{}, 1)
	k.EraseCaptured = func(ctx context.Context, shard string) error {
		if shard == "" {
			return nil
		}
		waiting <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	var gone []int64 // on the shard that is away, and on the main one
	for _, shard := range []string{"east", ""} {
		if _, err := k.Registry.CreateProject(t.Context(), registry.NewProject{Name: "keeps", Retention: 30, Shard: shard}, time.Now()); err != nil {
			t.Fatal(err)
		}
		p, err := k.Registry.CreateProject(t.Context(), registry.NewProject{Name: "gone", Shard: shard}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Registry.DeleteProject(t.Context(), p.ID, p.Name, time.Now()); err != nil {
			t.Fatal(err)
		}
		gone = append(gone, p.ID)
	}
	k.worker.Go(k.work)
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-waiting
	for k.Registry.Snapshot().Removal(gone[1]).ErasedAt.IsZero() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ends")
		case <-time.After(10 * time.Millisecond):
		}
	}
	for shard, want := range map[string]bool{"": true, "east": false} {
		noted, err := k.Registry.Kept(t.Context(), ofShard(doneName, shard))
		if err != nil || len(noted) > 0 != want {
			t.Errorf("of the shard %q it is noted: %s, %v", shard, noted, err)
		}
	}
	if r := k.Registry.Snapshot().Removal(gone[0]); !r.ErasedAt.IsZero() {
		t.Errorf("the removal on the shard that is away is %+v", r)
	}
}
