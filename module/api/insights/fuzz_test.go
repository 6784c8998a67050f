package insights

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FuzzSavedBodies: every body of an insight or a dashboard is read, or is a mistake of the caller.
func FuzzSavedBodies(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"query":[]}`, `{"query":{"kind":"HogQLQuery","query":"select 1"},"tags":["a",null],"dashboards":[1.5]}`,
		`{"query":{"kind":["x"]}}`, `{"query":{"kind":"InsightVizNode","source":{"kind":"TrendsQuery","series":[]}},"order":1e9}`,
		`{"filters":{"date_from":5},"variables":{"a":1},"tiles":[{"id":"x","insight":{"id":null}},{},5]}`, `{"tiles":null,"name":null,"pinned":1}`,
		`{"restriction_level":  37,"use_dashboard":{}}`,
	} {
		f.Add(seed)
	}
	c := &api.Caller{Caller: execution.Caller{Key: new(registry.Key)}}
	f.Fuzz(func(t *testing.T, body string) {
		input := func() *api.Input {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("X-PostHog-Client", "mcp")
			return &api.Input{Request: r}
		}
		_, insight := readInsight(c, input(), true)
		_, board := readDashboard(c, input(), len(body)%2 == 0)
		for _, err := range []error{insight, board} {
			if err == nil {
				continue
			}
			if answer := api.ErrorOf(err); answer.Status >= http.StatusInternalServerError || answer.Detail == "" {
				t.Errorf("%q: %d %v", body, answer.Status, err)
			}
		}
	})
}
