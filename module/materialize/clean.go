package materialize

import (
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// cleanShards drops tables that nobody reads any more.
func (f *Filler) cleanShards() {
	now := time.Now()
	for shard, house := range f.Shards.ByName() {
		f.cleaning.Begin(shard, func() { f.clean(shard, house, now) })
	}
}

// clean drops the tables of a shard that nobody has read for long enough: those that were replaced, those of aborted fills, and those of versions
// that are no longer materialized. Tables of endpoints unknown to this registry may belong to another one, and stay.
func (f *Filler) clean(shard string, house *warehouse.Warehouse, now time.Time) {
	if house.Known() == nil {
		return
	}
	there, err := house.MaterializedTables(f.open)
	if err != nil {
		f.notDropped(err, zap.String("shard", shard))
		return
	}
	snap := f.Registry.Snapshot()
	wanted := wantedTables(snap)
	f.mu.Lock()
	before, unread := f.unread[shard], map[clickhouse.MaterializedTable]time.Time{}
	f.mu.Unlock()
	for _, t := range there {
		if wanted[t] || !snap.KnowsEndpoint(t.Project, t.Endpoint.String()) {
			continue
		}
		since, seen := before[t]
		if !seen {
			since = now
		}
		if now.Sub(since) >= f.Keep {
			if err := f.drop(t); err == nil {
				continue
			}
		}
		unread[t] = since
	}
	f.mu.Lock()
	f.unread[shard] = unread
	f.mu.Unlock()
}

// wantedTables returns the tables that runs read or that are being filled.
func wantedTables(snap *registry.Snapshot) map[clickhouse.MaterializedTable]bool {
	wanted := make(map[clickhouse.MaterializedTable]bool)
	for _, p := range snap.Projects() {
		for _, m := range snap.Materialized(p.ID) {
			for _, fill := range []int64{m.Table.Fill, m.Table.Pending} {
				if t, err := execution.TableOf(m.Endpoint, m.Version, fill); err == nil {
					wanted[t] = true
				}
			}
		}
	}
	return wanted
}

func (f *Filler) drop(t clickhouse.MaterializedTable) error {
	place, err := f.Places.Enter(f.open, admission.Request{Project: t.Project, Uncounted: true})
	if err != nil {
		return err
	}
	defer place.Leave()
	if err := f.Shards.Of(t.Project).DropMaterialized(f.open, place, t); err != nil {
		f.notDropped(err, zap.String("table", t.Name()))
		return err
	}
	f.metrics.dropped.Inc()
	return nil
}

func (f *Filler) notDropped(err error, fields ...zap.Field) {
	if f.open.Err() == nil {
		f.Logger.Debug("unused tables of materialized endpoints are not dropped yet", append(fields, clickhouse.Logged(err))...)
	}
}
