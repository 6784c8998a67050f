package deletions

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "caddy_analytics"

type metrics struct {
	hidden, erased, failures prometheus.Counter
	seconds                  prometheus.Histogram
}

func newMetrics() *metrics {
	return &metrics{
		hidden:   prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "deletion_hidden_total", Help: "Deletions of people or their events that this server made."}),
		erased:   prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "deletion_erased_total", Help: "Deletions that this server erased from the disk."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "deletion_failures_total", Help: "Deletions and erasures that failed and are tried again."}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "deletion_erase_seconds", Help: "How long erasures from the disk took.",
			Buckets: []float64{1, 3, 10, 30, 60, 120, 300, 600, 1800, 3600},
		}),
	}
}

var (
	pendingDesc = prometheus.NewDesc("caddy_analytics_deletion_pending", "Deletions that are not erased from the disk yet, on all servers of the registry.", nil, nil)
	oldestDesc  = prometheus.NewDesc("caddy_analytics_deletion_oldest_seconds", "Age of the oldest deletion that is not erased from the disk yet; 0 for none.", nil, nil)
)

// Collect sends the metrics of deletions.
func (d *Deleter) Collect(ch chan<- prometheus.Metric) {
	for _, m := range []prometheus.Collector{d.metrics.hidden, d.metrics.erased, d.metrics.failures, d.metrics.seconds} {
		m.Collect(ch)
	}
	pending, oldest := 0, time.Duration(0)
	snap := d.Registry.Snapshot()
	for _, p := range snap.Projects() {
		for _, one := range snap.PendingDeletions(p.ID) {
			pending++
			oldest = max(oldest, time.Since(one.RequestedAt))
		}
	}
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(pending))
	ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest.Seconds())
}
