package module

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// collect sends all metrics: the counters, those of the cache, and the numbers of running and waiting queries.
func (rt *runtime) collect(ch chan<- prometheus.Metric) {
	rt.Metrics.Collect(ch)
	s := rt.Cache.Stats()
	for _, c := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{cacheBytes, prometheus.GaugeValue, float64(s.Bytes)},
		{cacheMaxBytes, prometheus.GaugeValue, float64(s.MaxBytes)},
		{cacheRefreshes, prometheus.CounterValue, float64(s.Refreshes)},
		{cacheRefreshFailures, prometheus.CounterValue, float64(s.RefreshFailures)},
		{cacheRejected, prometheus.CounterValue, float64(s.Rejected + s.Dropped + s.TooLarge)},
		{cacheEvicted, prometheus.CounterValue, float64(s.Evicted)},
	} {
		ch <- prometheus.MustNewConstMetric(c.desc, c.kind, c.value)
	}
	rt.collectEngine(ch)
	if rt.fleet != nil {
		ch <- prometheus.MustNewConstMetric(nodesAlive, prometheus.GaugeValue, float64(rt.nodes()))
	}
	rt.collectCapture(ch)
	written, dropped := rt.Log.Stats()
	ch <- prometheus.MustNewConstMetric(logWritten, prometheus.CounterValue, float64(written))
	ch <- prometheus.MustNewConstMetric(logDropped, prometheus.CounterValue, float64(dropped))
	if rt.cohorts != nil {
		rt.cohorts.Collect(ch)
		rt.tables.Collect(ch)
	}
	if rt.alerts != nil {
		rt.alerts.Collect(ch)
	}
	if rt.deleter != nil {
		rt.deleter.Collect(ch)
	}
	rt.Places.Each(func(project int64, running, waiting int) {
		id := strconv.FormatInt(project, 10)
		ch <- prometheus.MustNewConstMetric(queriesRunning, prometheus.GaugeValue, float64(running), id)
		ch <- prometheus.MustNewConstMetric(queriesWaiting, prometheus.GaugeValue, float64(waiting), id)
	})
}

// collectEngine sends the state of ClickHouse, and of the embedded engine if there is one.
func (rt *runtime) collectEngine(ch chan<- prometheus.Metric) {
	if rt.Shards != nil {
		reachable := rt.Shards.Reachable()
		ch <- prometheus.MustNewConstMetric(clickhouseReachable, prometheus.GaugeValue, boolValue(reachable))
		if hosts := rt.Shards.Hosts(); len(hosts) > 1 {
			seen := map[string]bool{}
			for _, h := range hosts {
				if !seen[h.Address] { // a DSN may name an address twice
					seen[h.Address] = true
					ch <- prometheus.MustNewConstMetric(clickhouseHost, prometheus.GaugeValue, boolValue(h.Reachable), h.Address)
				}
			}
			ch <- prometheus.MustNewConstMetric(clickhouseMoved, prometheus.CounterValue, float64(rt.Shards.Moved()))
		}
	}
	if rt.engine == nil {
		return
	}
	s := rt.engine.Stats()
	ch <- prometheus.MustNewConstMetric(engineUp, prometheus.GaugeValue, boolValue(s.Up))
	ch <- prometheus.MustNewConstMetric(engineRestarts, prometheus.CounterValue, float64(s.Restarts))
	ch <- prometheus.MustNewConstMetric(engineMemory, prometheus.GaugeValue, float64(s.Resident))
}

// collectCapture sends the metrics of captured events.
func (rt *runtime) collectCapture(ch chan<- prometheus.Metric) {
	c := rt.capturing
	if c == nil {
		return
	}
	waiting, delivered := c.logs.Stats(), c.logs.Status()
	for _, m := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{captureAccepted, prometheus.CounterValue, float64(c.counters.Events.Load())},
		{captureIgnored, prometheus.CounterValue, float64(c.counters.Ignored.Load())},
		{captureDelivered, prometheus.CounterValue, float64(delivered.Delivered)},
		{captureSetAside, prometheus.CounterValue, float64(delivered.SetAside)},
		{captureWaiting, prometheus.GaugeValue, float64(waiting.Events)},
		{captureBytes, prometheus.GaugeValue, float64(waiting.Bytes)},
		{captureMaxBytes, prometheus.GaugeValue, float64(waiting.MaxBytes)},
		{captureLag, prometheus.GaugeValue, delivered.Lag.Seconds()},
	} {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value)
	}
	if all := c.logs.All(); len(all) > 1 {
		for _, one := range all {
			waiting := one.Journal.Stats()
			ch <- prometheus.MustNewConstMetric(captureShardWaiting, prometheus.GaugeValue, float64(waiting.Events), one.Shard)
			ch <- prometheus.MustNewConstMetric(captureShardBytes, prometheus.GaugeValue, float64(waiting.Bytes), one.Shard)
			ch <- prometheus.MustNewConstMetric(captureShardLag, prometheus.GaugeValue, one.Delivery.Status().Lag.Seconds(), one.Shard)
		}
	}
	c.counters.Refused(func(reason string, requests int64) {
		ch <- prometheus.MustNewConstMetric(captureRefused, prometheus.CounterValue, float64(requests), reason)
	})
}

func boolValue(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("caddy_analytics_"+name, help, labels, nil)
}

var (
	cacheBytes           = describe("cache_bytes", "Memory used by results and pages.")
	cacheMaxBytes        = describe("cache_max_bytes", "Maximum memory of results and pages.")
	cacheRefreshes       = describe("cache_refreshes_total", "Background refreshes of stale results.")
	cacheRefreshFailures = describe("cache_refresh_failures_total", "Background refreshes that failed.")
	cacheRejected        = describe("cache_rejected_total", "Results and pages that were not kept: too large, or asked for too rarely.")
	cacheEvicted         = describe("cache_evicted_total", "Results and pages pushed out or expired.")
	clickhouseReachable  = describe("clickhouse_reachable", "Whether ClickHouse answered when it was last asked: 1 or 0.")
	clickhouseHost       = describe("clickhouse_host_reachable", "Whether a host of ClickHouse can be used, where there are several: 1 or 0.", "host")
	clickhouseMoved      = describe("clickhouse_moved_queries_total", "Queries and statements that went to another host of ClickHouse because one could not be used.")
	engineUp             = describe("engine_up", "Whether the embedded engine runs and reads its tables: 1 or 0.")
	engineRestarts       = describe("engine_restarts_total", "Unexpected restarts of the embedded engine.")
	engineMemory         = describe("engine_resident_memory_bytes", "Memory used by the embedded engine.")
	captureAccepted      = describe("capture_accepted_events_total", "Captured events that were accepted and are stored.")
	captureIgnored       = describe("capture_ignored_events_total", "Captured events that were accepted but are of a kind that is not stored, or of the cookieless mode.")
	captureRefused       = describe("capture_refused_requests_total", "Refused requests of the capture routes, by the code of the response.", "reason")
	captureDelivered     = describe("capture_delivered_events_total", "Captured events that were delivered to ClickHouse.")
	captureSetAside      = describe("capture_set_aside_events_total", "Captured events that were set aside because ClickHouse does not take them.")
	captureWaiting       = describe("capture_waiting_events", "Captured events on disk that wait for ClickHouse.")
	captureBytes         = describe("capture_buffer_bytes", "Size of the log on disk in which captured events wait.")
	logWritten           = describe("log_written_rows_total", "Rows of the log of queries and runs that were written to ClickHouse.")
	logDropped           = describe("log_dropped_rows_total", "Rows of the log of queries and runs that were dropped: too many were waiting, ClickHouse refused them, or the config does not name their shard.")
	captureMaxBytes      = describe("capture_buffer_max_bytes", "Maximum size of the log on disk.")
	captureLag           = describe("capture_lag_seconds", "How long the oldest of the captured events has been waiting; 0 if none waits.")
	captureShardWaiting  = describe("capture_shard_waiting_events", "Captured events on disk that wait for a shard of ClickHouse, where there are several.", "shard")
	captureShardBytes    = describe("capture_shard_buffer_bytes", "Size of the log on disk in which captured events wait for a shard.", "shard")
	captureShardLag      = describe("capture_shard_lag_seconds", "How long the oldest of the captured events for a shard has been waiting; 0 if none waits.", "shard")
	nodesAlive           = describe("nodes", "Live servers that share the registry, including this one.")
	queriesRunning       = describe("queries_running", "Queries that run on ClickHouse.", "project")
	queriesWaiting       = describe("queries_waiting", "Queries that are waiting for a place.", "project")
)

// collector exposes the metrics of an app in its config's metrics registry. What it collects outlives the config.
type collector struct{ app *App }

// Describe sends nothing: which metrics exist is known only once the app runs.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of a running app.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	if rt := c.app.runtime.Load(); rt != nil {
		rt.collect(ch)
	}
}
