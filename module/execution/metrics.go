package execution

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// Metrics counts what the API does, by project and endpoint; the query route has no endpoint. No label is a value of a client.
// It lives as long as the cache does, so that a reload sets nothing back to zero.
type Metrics struct {
	answers   *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	rows      *prometheus.CounterVec
	readRows  *prometheus.CounterVec
	readBytes *prometheus.CounterVec
	refused   *prometheus.CounterVec
	tables    *prometheus.CounterVec
	buckets   *prometheus.CounterVec
	renewals  *prometheus.CounterVec
	peers     *prometheus.CounterVec

	meters sync.Map // meterKey → *meter
}

// meter holds the counters of one endpoint, so that counting a hit looks nothing up.
type meter struct {
	answers                   [cache.LastStatus + 1]prometheus.Counter // by cache.Status
	seconds                   prometheus.Observer
	rows, readRows, readBytes prometheus.Counter
	renewals                  prometheus.Counter
	failures                  func(reason string) prometheus.Counter
	refused                   func(LimitName) prometheus.Counter
	tables                    [len(tableResults)]prometheus.Counter // nil counters on the query route
	buckets                   [len(bucketResults)]prometheus.Counter
	peers                     func(result string) prometheus.Counter
}

type meterKey struct {
	project  int64
	endpoint string
}

// NewMetrics returns counters that have counted nothing.
func NewMetrics() *Metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "analytics", Name: name, Help: help},
			append([]string{"project", "endpoint"}, labels...))
	}
	return &Metrics{
		answers: count("answers_total", "Answers with rows, by how the cache took part.", "cache"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "caddy", Subsystem: "analytics", Name: "query_duration_seconds", Help: "Time of queries on ClickHouse, those that failed too.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"project", "endpoint"}),
		failures:  count("query_failures_total", "Queries that ClickHouse did not answer, by reason.", "reason"),
		rows:      count("query_rows_total", "Rows that queries gave."),
		readRows:  count("query_read_rows_total", "Rows that queries read on ClickHouse."),
		readBytes: count("query_read_bytes_total", "Bytes that queries read on ClickHouse."),
		tables:    count("endpoint_table_reads_total", "Queries on the tables of materialized endpoints: read, or failed, so that the endpoint's own query ran instead.", "result"),
		buckets:   count("buckets_total", "Buckets of time that answers were put together from: kept, or computed for the answer.", "result"),
		renewals:  count("renewals_total", "Stale results that no query ran for, because there were no new data."),
		peers:     count("peer_requests_total", "Results that were asked of the server that owns them, by what came of it.", "result"),
		refused:   count("refused_total", "Queries refused by a limit: the rate of an endpoint, a key or a token, or a project's concurrency.", "limit"),
	}
}

// of gives the counters of an endpoint of a project; an empty name stands for the query route.
func (m *Metrics) of(project int64, endpoint string) *meter {
	key := meterKey{project, endpoint}
	if found, ok := m.meters.Load(key); ok {
		known, _ := found.(*meter)
		return known
	}
	id := strconv.FormatInt(project, 10)
	made := &meter{
		seconds: m.seconds.WithLabelValues(id, endpoint), rows: m.rows.WithLabelValues(id, endpoint),
		readRows: m.readRows.WithLabelValues(id, endpoint), readBytes: m.readBytes.WithLabelValues(id, endpoint),
		renewals: m.renewals.WithLabelValues(id, endpoint),
		failures: func(reason string) prometheus.Counter { return m.failures.WithLabelValues(id, endpoint, reason) },
		peers:    func(result string) prometheus.Counter { return m.peers.WithLabelValues(id, endpoint, result) },
		refused: func(limit LimitName) prometheus.Counter {
			return m.refused.WithLabelValues(id, endpoint, string(limit))
		},
	}
	for status := cache.Hit; status <= cache.LastStatus; status++ {
		made.answers[status] = m.answers.WithLabelValues(id, endpoint, status.String())
	}
	for i, result := range bucketResults {
		made.buckets[i] = m.buckets.WithLabelValues(id, endpoint, result)
	}
	if endpoint != "" {
		for i, result := range tableResults {
			made.tables[i] = m.tables.WithLabelValues(id, endpoint, result)
		}
	}
	found, _ := m.meters.LoadOrStore(key, made)
	known, _ := found.(*meter)
	return known
}

// AnswersOf are how many answers with rows a project got from the cache, and how many were computed for it.
func (m *Metrics) AnswersOf(project int64) (cached, computed int64) {
	m.meters.Range(func(key, value any) bool {
		if of, _ := key.(meterKey); of.project != project {
			return true
		}
		counted, _ := value.(*meter)
		for status := cache.Hit; status <= cache.LastStatus; status++ {
			var now dto.Metric
			if counted.answers[status].Write(&now) != nil {
				continue // a counter can always be read
			}
			if n := int64(now.GetCounter().GetValue()); status.Cached() {
				cached += n
			} else {
				computed += n
			}
		}
		return true
	})
	return cached, computed
}

// forget drops the counters of an endpoint that was deleted.
func (m *Metrics) forget(project int64, endpoint string) {
	m.meters.Delete(meterKey{project, endpoint})
	labels := prometheus.Labels{"project": strconv.FormatInt(project, 10), "endpoint": endpoint}
	m.answers.DeletePartialMatch(labels)
	m.seconds.DeletePartialMatch(labels)
	for _, vec := range []*prometheus.CounterVec{m.failures, m.rows, m.readRows, m.readBytes, m.refused, m.tables, m.buckets, m.renewals, m.peers} {
		vec.DeletePartialMatch(labels)
	}
}

// refused counts a query that a limit refused; other errors are none of its concern.
func (q *Query) refused(m *Metrics, err error) {
	if limit, ok := refusedBy(err); ok {
		q.meter(m).refused(limit).Inc()
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

// Describe gives nothing, which tells a registry that the counters are known only once something is counted.
func (*Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect gives the counters.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, vec := range []prometheus.Collector{m.answers, m.seconds, m.failures, m.rows, m.readRows, m.readBytes, m.refused, m.tables, m.buckets, m.renewals, m.peers} {
		vec.Collect(ch)
	}
}

// forgetProject removes the meters of a project.
func (m *Metrics) forgetProject(project int64) {
	m.meters.Range(func(key, _ any) bool {
		if of, ok := key.(meterKey); ok && of.project == project {
			m.forget(project, of.endpoint)
		}
		return true
	})
}
