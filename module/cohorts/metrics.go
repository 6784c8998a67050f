package cohorts

import "github.com/prometheus/client_golang/prometheus"

// The outcomes of calculations.
const (
	changed    = "changed"
	unchanged  = "unchanged"
	failed     = "failed"
	superseded = "superseded"
	postponed  = "postponed"
)

type metrics struct {
	calculations *prometheus.CounterVec
	seconds      prometheus.Histogram
	running      prometheus.Gauge
}

func newMetrics() *metrics {
	const namespace = "caddy_analytics"
	m := &metrics{
		calculations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "cohort_calculations_total",
			Help: "Calculations of cohorts, by result: other members than before (changed), the same (unchanged), failed, superseded by a change of the cohort, or postponed by an outage.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "cohort_calculation_seconds", Help: "How long successful calculations of cohorts took.",
			Buckets: []float64{.1, .3, 1, 3, 10, 30, 60, 120, 300, 600},
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "cohort_calculations_running", Help: "Cohorts that are being computed on this server."}),
	}
	for _, result := range []string{changed, unchanged, failed, superseded, postponed} {
		m.calculations.WithLabelValues(result)
	}
	return m
}

// Collect sends the metrics of calculations.
func (c *Calculator) Collect(ch chan<- prometheus.Metric) {
	for _, m := range []prometheus.Collector{c.metrics.calculations, c.metrics.seconds, c.metrics.running} {
		m.Collect(ch)
	}
}
