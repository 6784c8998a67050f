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
	for shard, wh := range f.Shards.ByName() {
		f.cleaning.Begin(shard, func() { f.clean(shard, wh, now) })
	}
}

// clean drops the tables of a shard that nobody has read for long enough: those that were replaced, those of aborted fills, and those of versions
// that are no longer materialized. Tables of endpoints unknown to this registry may belong to another one, and stay. So do all while the registry can't be
// asked: another server may have made a table that runs read. Missing tables are filled again.
func (f *Filler) clean(shard string, wh *warehouse.Warehouse, now time.Time) {
	if wh.Known() == nil {
		return
	}
	earlier, _ := tablesOf(f.Registry.Snapshot())
	there, err := wh.MaterializedTables(f.open)
	if err == nil {
		err = f.Registry.Refresh(f.open)
	}
	if err != nil {
		f.notDropped(err, zap.String("shard", shard))
		return
	}
	snap := f.Registry.Snapshot()
	read, filling := tablesOf(snap)
	listed := make(map[clickhouse.MaterializedTable]bool, len(there))
	for _, t := range there {
		listed[t] = true
	}
	for t := range earlier { // a table that is not among them may be younger than the list
		if read[t] && f.Shards.Of(t.Project) == wh && !listed[t] {
			f.missing(t, now)
		}
	}
	f.mu.Lock()
	before, unread := f.unread[shard], map[clickhouse.MaterializedTable]time.Time{}
	f.mu.Unlock()
	for _, t := range there {
		if read[t] || filling[t] || !snap.KnowsEndpoint(t.Project, t.Endpoint.String()) {
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

// tablesOf returns the tables that runs read, and those that are being filled.
func tablesOf(snap *registry.Snapshot) (read, filling map[clickhouse.MaterializedTable]bool) {
	read, filling = map[clickhouse.MaterializedTable]bool{}, map[clickhouse.MaterializedTable]bool{}
	for _, p := range snap.Projects() {
		for _, m := range snap.Materialized(p.ID) {
			t, err := execution.TableOf(m.Endpoint, m.Version, m.Table.Fill)
			if err != nil {
				continue
			}
			if t.Fill != 0 {
				read[t] = true
			}
			if t.Fill = m.Table.Pending; t.Fill != 0 {
				filling[t] = true
			}
		}
	}
	return read, filling
}

// missing has the table of a version filled again, because it is not in ClickHouse: another server may have dropped it, or ClickHouse was restored or
// replaced.
func (f *Filler) missing(t clickhouse.MaterializedTable, now time.Time) {
	n := name{t.Project, t.Endpoint.String(), t.Version}
	if err := f.Registry.LoseFill(f.open, n.project, n.endpoint, n.version, t.Fill, now); err != nil {
		f.postponed(n, err)
		return
	}
	f.Logger.Warn("the table of a materialized endpoint is missing and is filled again", append(n.fields(), zap.String("table", t.Name()))...)
	f.Wake()
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
