package execution

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// Metrics counts what the API does, by project and endpoint; the query route has no endpoint. No label is a client's value. It lives as long as the
// cache, so a reload resets nothing.
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

// meter counts for one endpoint. A counter is created when it first counts, because most would stay at zero: with thousands of endpoints they would
// take more memory than everything else that is known about these.
type meter struct {
	of       *Metrics
	labels   [2]string                                                // the project and the endpoint
	gone     atomic.Bool                                              // stop counting
	answered [cache.LastStatus + 1]atomic.Pointer[prometheus.Counter] // by cache.Status, so that counting a hit needs no lookup
}

type meterKey struct {
	project  int64
	endpoint string
}

// NewMetrics returns counters at zero.
func NewMetrics() *Metrics {
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "analytics", Name: name, Help: help},
			append([]string{"project", "endpoint"}, labels...))
	}
	return &Metrics{
		answers: count("answers_total", "Answers with rows, by how the cache took part.", "cache"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "caddy", Subsystem: "analytics", Name: "query_duration_seconds", Help: "Time of queries on ClickHouse, including those that failed.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"project", "endpoint"}),
		failures:  count("query_failures_total", "Queries that ClickHouse did not answer, by reason.", "reason"),
		rows:      count("query_rows_total", "Rows that queries gave."),
		readRows:  count("query_read_rows_total", "Rows that queries read on ClickHouse."),
		readBytes: count("query_read_bytes_total", "Bytes that queries read on ClickHouse."),
		tables:    count("endpoint_table_reads_total", "Queries on the tables of materialized endpoints: read, or failed, so that the endpoint's own query ran instead.", "result"),
		buckets:   count("buckets_total", "Buckets of time that answers were put together from: kept, or computed for the answer.", "result"),
		renewals:  count("renewals_total", "Stale results that were kept without a query, because there was no new data."),
		peers:     count("peer_requests_total", "Results that were requested from the server that owns them, by outcome.", "result"),
		refused:   count("refused_total", "Queries refused by a limit: the rate of an endpoint, a key or a token, or a project's concurrency.", "limit"),
	}
}

// of returns the counters of a project's endpoint; an empty name stands for the query route.
func (m *Metrics) of(project int64, endpoint string) *meter {
	key := meterKey{project, endpoint}
	if found, ok := m.meters.Load(key); ok {
		known, _ := found.(*meter)
		return known
	}
	made := &meter{of: m, labels: [2]string{strconv.FormatInt(project, 10), endpoint}}
	found, _ := m.meters.LoadOrStore(key, made)
	known, _ := found.(*meter)
	return known
}

// counter returns one of the endpoint's counters. Work that was still in progress when the endpoint was deleted counts nowhere.
func (m *meter) counter(vec *prometheus.CounterVec, more ...string) prometheus.Counter {
	if m.gone.Load() {
		return prometheus.NewCounter(prometheus.CounterOpts{})
	}
	return vec.WithLabelValues(append(m.labels[:len(m.labels):len(m.labels)], more...)...)
}

// answer counts an answer with rows.
func (m *meter) answer(status cache.Status) {
	counter := m.answered[status].Load()
	if counter == nil {
		made := m.counter(m.of.answers, status.String())
		counter = &made
		m.answered[status].Store(counter)
	}
	(*counter).Inc()
}

// renewal counts a stale result that was renewed without running a query.
func (m *meter) renewal() { m.counter(m.of.renewals).Inc() }

// table counts a query on the table of a materialized endpoint.
func (m *meter) table(result string) { m.counter(m.of.tables, result).Inc() }

// countBuckets counts the buckets that an answer was put together from.
func (m *meter) countBuckets(b Buckets) {
	m.counter(m.of.buckets, "computed").Add(float64(b.Computed))
	m.counter(m.of.buckets, "kept").Add(float64(b.All - b.Computed))
}

// peer counts a result that was asked of the server that owns it.
func (m *meter) peer(result string) { m.counter(m.of.peers, result).Inc() }

// AnswersOf returns how many answers with rows a project got from the cache, and how many were computed for it.
func (m *Metrics) AnswersOf(project int64) (cached, computed int64) {
	m.meters.Range(func(key, value any) bool {
		if of, _ := key.(meterKey); of.project != project {
			return true
		}
		counted, _ := value.(*meter)
		for status := cache.Hit; status <= cache.LastStatus; status++ {
			counter := counted.answered[status].Load()
			var now dto.Metric
			if counter == nil || (*counter).Write(&now) != nil { // a counter can always be read
				continue
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

// forget drops the counters of a deleted endpoint.
func (m *Metrics) forget(project int64, endpoint string) {
	if m.forgetMeter(meterKey{project, endpoint}) { // otherwise nothing was counted, or the project is forgotten
		m.forgetSeries(prometheus.Labels{"project": strconv.FormatInt(project, 10), "endpoint": endpoint})
	}
}

// forgetProject drops the counters of a deleted project.
func (m *Metrics) forgetProject(project int64) {
	m.meters.Range(func(key, _ any) bool {
		if of, ok := key.(meterKey); ok && of.project == project {
			m.forgetMeter(of)
		}
		return true
	})
	m.forgetSeries(prometheus.Labels{"project": strconv.FormatInt(project, 10)})
}

// forgetMeter makes later work of a deleted endpoint count nowhere. It reports whether it has counted before.
func (m *Metrics) forgetMeter(key meterKey) bool {
	found, ok := m.meters.LoadAndDelete(key)
	if counted, is := found.(*meter); is {
		counted.gone.Store(true)
	}
	return ok
}

// forgetSeries drops the counters with these labels. It looks at those of all projects.
func (m *Metrics) forgetSeries(labels prometheus.Labels) {
	m.answers.DeletePartialMatch(labels)
	m.seconds.DeletePartialMatch(labels)
	for _, vec := range []*prometheus.CounterVec{m.failures, m.rows, m.readRows, m.readBytes, m.refused, m.tables, m.buckets, m.renewals, m.peers} {
		vec.DeletePartialMatch(labels)
	}
}

// refused counts a query that a limit refused, and ignores other errors.
func (q *Query) refused(m *Metrics, err error) {
	if limit, ok := refusedBy(err); ok {
		q.meter(m).counter(m.refused, string(limit)).Inc()
	}
}

// failureReason returns the kind of a ClickHouse error as one word.
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
	if !m.gone.Load() {
		m.of.seconds.WithLabelValues(m.labels[:]...).Observe(took.Seconds())
	}
	m.counter(m.of.rows).Add(float64(stats.Rows))
	m.counter(m.of.readRows).Add(float64(stats.ReadRows))
	m.counter(m.of.readBytes).Add(float64(stats.ReadBytes))
	if err != nil {
		m.counter(m.of.failures, failureReason(err)).Inc()
	}
}

// Describe sends nothing, which tells a registry that the counters are known only once something is counted.
func (*Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the counters.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, vec := range []prometheus.Collector{m.answers, m.seconds, m.failures, m.rows, m.readRows, m.readBytes, m.refused, m.tables, m.buckets, m.renewals, m.peers} {
		vec.Collect(ch)
	}
}
