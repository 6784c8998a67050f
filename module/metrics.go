package module

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// metrics counts what the API does, by project and endpoint; the query route has no endpoint. No label is a value of a client.
// It lives as long as the cache does, so that a reload sets nothing back to zero.
type metrics struct {
	answers   *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	rows      *prometheus.CounterVec
	readRows  *prometheus.CounterVec
	readBytes *prometheus.CounterVec
	refused   *prometheus.CounterVec

	meters sync.Map // meterKey → *meter
}

// meter holds the counters of one endpoint, so that counting a hit looks nothing up.
type meter struct {
	answers                   [cache.Pinned + 1]prometheus.Counter // by cache.Status
	seconds                   prometheus.Observer
	rows, readRows, readBytes prometheus.Counter
	failures                  func(reason string) prometheus.Counter
	refused                   func(limitName) prometheus.Counter
}

type meterKey struct {
	project  int64
	endpoint string
}

func newMetrics() *metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "analytics", Name: name, Help: help},
			append([]string{"project", "endpoint"}, labels...))
	}
	return &metrics{
		answers: count("answers_total", "Answers with rows, by how the cache took part.", "cache"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "caddy", Subsystem: "analytics", Name: "query_duration_seconds", Help: "Time of queries on ClickHouse, those that failed too.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"project", "endpoint"}),
		failures:  count("query_failures_total", "Queries that ClickHouse did not answer, by reason.", "reason"),
		rows:      count("query_rows_total", "Rows that queries gave."),
		readRows:  count("query_read_rows_total", "Rows that queries read on ClickHouse."),
		readBytes: count("query_read_bytes_total", "Bytes that queries read on ClickHouse."),
		refused:   count("refused_total", "Queries refused by a limit: the rate of an endpoint, a key or a token, or a project's concurrency.", "limit"),
	}
}

// of gives the counters of an endpoint of a project; an empty name stands for the query route.
func (m *metrics) of(project int64, endpoint string) *meter {
	key := meterKey{project, endpoint}
	if found, ok := m.meters.Load(key); ok {
		known, _ := found.(*meter)
		return known
	}
	id := strconv.FormatInt(project, 10)
	made := &meter{
		seconds: m.seconds.WithLabelValues(id, endpoint), rows: m.rows.WithLabelValues(id, endpoint),
		readRows: m.readRows.WithLabelValues(id, endpoint), readBytes: m.readBytes.WithLabelValues(id, endpoint),
		failures: func(reason string) prometheus.Counter { return m.failures.WithLabelValues(id, endpoint, reason) },
		refused: func(limit limitName) prometheus.Counter {
			return m.refused.WithLabelValues(id, endpoint, string(limit))
		},
	}
	for status := cache.Hit; status <= cache.Pinned; status++ {
		made.answers[status] = m.answers.WithLabelValues(id, endpoint, status.String())
	}
	found, _ := m.meters.LoadOrStore(key, made)
	known, _ := found.(*meter)
	return known
}

// forget drops the counters of an endpoint that was deleted.
func (m *metrics) forget(project int64, endpoint string) {
	m.meters.Delete(meterKey{project, endpoint})
	labels := prometheus.Labels{"project": strconv.FormatInt(project, 10), "endpoint": endpoint}
	m.answers.DeletePartialMatch(labels)
	m.seconds.DeletePartialMatch(labels)
	for _, vec := range []*prometheus.CounterVec{m.failures, m.rows, m.readRows, m.readBytes, m.refused} {
		vec.DeletePartialMatch(labels)
	}
}

// refused counts a query of the plan that a limit refused; other errors are none of its concern.
func (p *plan) refused(m *metrics, err error) {
	if limit, ok := refusedBy(err); ok {
		p.meter(m).refused(limit).Inc()
	}
}

// failureReason is the kind of an error of ClickHouse, in a word.
func failureReason(err error) string {
	var e *clickhouse.Error
	switch {
	case errors.As(err, &e):
		return e.Kind.String()
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "other"
}

// ran counts one query that ended.
func (m *meter) ran(stats clickhouse.Stats, took time.Duration, err error) {
	m.seconds.Observe(took.Seconds())
	m.rows.Add(float64(stats.Rows))
	m.readRows.Add(float64(stats.ReadRows))
	m.readBytes.Add(float64(stats.ReadBytes))
	if err != nil {
		m.failures(failureReason(err)).Inc()
	}
}

// collect gives the counters, those of the cache, and the queries that run and wait.
func (rt *runtime) collect(ch chan<- prometheus.Metric) {
	m := rt.metrics
	for _, vec := range []prometheus.Collector{m.answers, m.seconds, m.failures, m.rows, m.readRows, m.readBytes, m.refused} {
		vec.Collect(ch)
	}
	s := rt.cache.Stats()
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
	rt.places.Each(func(project int64, running, waiting int) {
		id := strconv.FormatInt(project, 10)
		ch <- prometheus.MustNewConstMetric(queriesRunning, prometheus.GaugeValue, float64(running), id)
		ch <- prometheus.MustNewConstMetric(queriesWaiting, prometheus.GaugeValue, float64(waiting), id)
	})
}

// collectEngine gives how ClickHouse is, and the embedded engine where there is one.
func (rt *runtime) collectEngine(ch chan<- prometheus.Metric) {
	if rt.warehouse != nil {
		reachable := rt.warehouse.Reachable()
		ch <- prometheus.MustNewConstMetric(clickhouseReachable, prometheus.GaugeValue, truth(reachable))
	}
	if rt.engine == nil {
		return
	}
	s := rt.engine.Stats()
	ch <- prometheus.MustNewConstMetric(engineUp, prometheus.GaugeValue, truth(s.Up))
	ch <- prometheus.MustNewConstMetric(engineRestarts, prometheus.CounterValue, float64(s.Restarts))
	ch <- prometheus.MustNewConstMetric(engineMemory, prometheus.GaugeValue, float64(s.Resident))
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("caddy_analytics_"+name, help, labels, nil)
}

var (
	cacheBytes           = describe("cache_bytes", "Memory that results and pages take.")
	cacheMaxBytes        = describe("cache_max_bytes", "Memory that results and pages may take.")
	cacheRefreshes       = describe("cache_refreshes_total", "Background refreshes of stale results.")
	cacheRefreshFailures = describe("cache_refresh_failures_total", "Background refreshes that failed.")
	cacheRejected        = describe("cache_rejected_total", "Results and pages that were not kept: too large, or asked for too rarely.")
	cacheEvicted         = describe("cache_evicted_total", "Results and pages pushed out or expired.")
	clickhouseReachable  = describe("clickhouse_reachable", "Whether ClickHouse answered when it was last asked: 1 or 0.")
	engineUp             = describe("engine_up", "Whether the embedded engine runs and reads its tables: 1 or 0.")
	engineRestarts       = describe("engine_restarts_total", "Restarts of the embedded engine that nobody asked for.")
	engineMemory         = describe("engine_resident_memory_bytes", "Memory that the embedded engine takes.")
	queriesRunning       = describe("queries_running", "Queries that run on ClickHouse.", "project")
	queriesWaiting       = describe("queries_waiting", "Queries that wait for a free place.", "project")
)

// collector shows the metrics of an app in the registry of its config. What it collects outlives the config.
type collector struct{ app *App }

// Describe gives nothing, which tells the registry that the metrics are known only once the app runs.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect gives the metrics of a running app.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	if rt := c.app.runtime.Load(); rt != nil {
		rt.collect(ch)
	}
}
