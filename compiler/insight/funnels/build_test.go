package funnels_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// TestBeginsAtItsTime checks that a funnel reads no event before a date_from in the middle of a bucket.
func TestBeginsAtItsTime(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{
		`"interval": "day"`,
		`"interval": "hour"`,
		`"funnelsFilter": {"funnelVizType": "trends"}, "interval": "week"`,
		`"funnelsFilter": {"funnelVizType": "time_to_convert"}`,
	} {
		q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "dateRange": {"date_from": "2020-01-08T12:30:00"},
			"series": [{"event": "a", "math": "first_time_for_user"}, {"event": "b"}], `+fields+`}`)
		built, err := funnels.Build(q, insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		text := hogql.Print(built.Query)
		if got, want := strings.Count(text, "2020-01-08 "), strings.Count(text, "2020-01-08 12:30:00"); got != want || want < 2 {
			t.Errorf("with %s, %d of %d times on the day are at 12:30:\n%s", fields, want, got, text)
		}
	}
}
