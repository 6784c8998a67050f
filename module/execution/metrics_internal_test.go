package execution

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// countedSeries returns the series of the answer counters with their values.
func countedSeries(t *testing.T, m *Metrics) (list []string) {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(m)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			line := family.GetName()
			for _, label := range one.GetLabel() {
				line += " " + label.GetValue()
			}
			list = append(list, line+fmt.Sprint(" ", one.GetCounter().GetValue()))
		}
	}
	slices.Sort(list)
	return list
}

// TestMetricsOfDeletedEndpoint: an endpoint has series for what happened, and none after its deletion, even if a run of it ends later. Another
// endpoint with the same name has its own series.
func TestMetricsOfDeletedEndpoint(t *testing.T) {
	m := NewMetrics()
	query := func() *Query {
		return &Query{Key: cache.KeyParts{Project: 3}.Key(), Endpoint: &registry.Endpoint{Name: "orders"}}
	}
	first := query()
	first.meter(m).answer(cache.Hit)
	first.meter(m).answer(cache.Hit)
	query().meter(m).table(fromTable)
	want := []string{"caddy_analytics_answers_total hit orders 3 2", "caddy_analytics_endpoint_table_reads_total orders 3 read 1"}
	if diff := cmp.Diff(want, countedSeries(t, m)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	late := first.meter(m)
	m.forget(3, "orders")
	late.answer(cache.Miss)
	late.table(fellBack)
	if got := countedSeries(t, m); got != nil {
		t.Errorf("after the endpoint was deleted %v are there", got)
	}
	first.meter(m).answer(cache.Hit)
	if diff := cmp.Diff([]string{"caddy_analytics_answers_total hit orders 3 1"}, countedSeries(t, m)); diff != "" {
		t.Errorf("of another one of its name (-want +got):\n%s", diff)
	}
}

// TestMetricsOfDeletedProject: the series of a project's endpoints go with it, and those of others stay.
func TestMetricsOfDeletedProject(t *testing.T) {
	m := NewMetrics()
	count := func(project int64, endpoint string) *meter {
		q := &Query{Key: cache.KeyParts{Project: project}.Key(), Endpoint: &registry.Endpoint{Name: endpoint}}
		q.meter(m).answer(cache.Hit)
		return q.meter(m)
	}
	late := count(3, "orders")
	count(3, "visits")
	count(33, "orders")
	m.forgetProject(3)
	m.forget(3, "visits")
	late.answer(cache.Miss)
	if diff := cmp.Diff([]string{"caddy_analytics_answers_total hit orders 33 1"}, countedSeries(t, m)); diff != "" {
		t.Errorf("after the project was deleted (-want +got):\n%s", diff)
	}
}
