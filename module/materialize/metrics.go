package materialize

import "github.com/prometheus/client_golang/prometheus"

// The outcomes of fills.
const (
	filled     = "filled"
	failed     = "failed"
	superseded = "superseded"
	postponed  = "postponed"
)

type metrics struct {
	fills   *prometheus.CounterVec
	seconds prometheus.Histogram
	running prometheus.Gauge
	dropped prometheus.Counter
}

func newMetrics() *metrics {
	const namespace = "caddy_analytics"
	m := &metrics{
		fills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "endpoint_table_fills_total",
			Help: "Fills of the tables of materialized endpoints, by result: filled, failed, superseded by a change, or postponed by an outage.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "endpoint_table_fill_seconds", Help: "How long successful fills of the tables of materialized endpoints took.",
			Buckets: []float64{.1, .3, 1, 3, 10, 30, 60, 120, 300, 600},
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "endpoint_table_fills_running", Help: "Tables of materialized endpoints that this server is filling."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "endpoint_tables_dropped_total", Help: "Tables of materialized endpoints that were dropped, because they are no longer read."}),
	}
	for _, result := range []string{filled, failed, superseded, postponed} {
		m.fills.WithLabelValues(result)
	}
	return m
}

// Collect sends the metrics of fills.
func (f *Filler) Collect(ch chan<- prometheus.Metric) {
	for _, m := range []prometheus.Collector{f.metrics.fills, f.metrics.seconds, f.metrics.running, f.metrics.dropped} {
		m.Collect(ch)
	}
}
