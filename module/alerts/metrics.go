package alerts

import "github.com/prometheus/client_golang/prometheus"

// The outcomes of checks.
const (
	firing     = "firing"
	notFiring  = "not_firing"
	failed     = "errored"
	skipped    = "skipped"
	superseded = "superseded"
	postponed  = "postponed"
)

// The outcomes of attempts to send a message.
const (
	delivered = "delivered"
	retried   = "retried"
	givenUp   = "given_up"
)

type metrics struct {
	checks     *prometheus.CounterVec
	seconds    prometheus.Histogram
	deliveries *prometheus.CounterVec
}

func newMetrics() *metrics {
	const namespace = "caddy_analytics"
	m := &metrics{
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "alert_checks_total",
			Help: "Checks of alerts, by result: firing, not_firing, errored, skipped on a weekend or in quiet hours, superseded by a change of the alert or another check, or postponed by an outage.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "alert_check_seconds", Help: "How long alerts waited for the numbers of their insights.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 60, 120},
		}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "alert_deliveries_total",
			Help: "Attempts to send an alert's message to its webhook, by result: delivered, retried later, or given up.",
		}, []string{"result"}),
	}
	for _, result := range []string{firing, notFiring, failed, skipped, superseded, postponed} {
		m.checks.WithLabelValues(result)
	}
	for _, result := range []string{delivered, retried, givenUp} {
		m.deliveries.WithLabelValues(result)
	}
	return m
}

// Collect sends the metrics of alerts.
func (c *Checker) Collect(ch chan<- prometheus.Metric) {
	for _, m := range []prometheus.Collector{c.metrics.checks, c.metrics.seconds, c.metrics.deliveries} {
		m.Collect(ch)
	}
}
