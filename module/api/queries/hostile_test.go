package queries_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestHostileQueries: queries that would grow without bound are refused with an explanation, and a key that sends them endlessly is throttled on
// every route.
func TestHostileQueries(t *testing.T) {
	w := apitest.New(t)
	w.LoseTables(t, schema.NativeLayout())
	doubled := "select 1 as id, 1 as a0" // refused once it is weighed, long before its compile takes too long, even on a busy machine
	for i := range 20 {
		doubled += fmt.Sprintf(", a%d + a%[1]d as a%d", i, i+1)
	}
	const tooLarge = "The query is too large: it grows beyond"
	for _, tt := range []struct {
		name, path string
		body       any
		status     int
	}{
		{"query", "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": doubled}}, http.StatusBadRequest},
		{"metadata", "query/", map[string]any{"query": map[string]any{"kind": "HogQLMetadata", "language": "hogQL", "query": doubled}}, http.StatusOK},
		{"publish", "endpoints/", map[string]any{"name": "doubled", "query": map[string]any{"kind": "HogQLQuery", "query": doubled}}, http.StatusBadRequest},
		{"actors", "query/", map[string]any{"query": map[string]any{
			"kind": "ActorsQuery", "source": map[string]any{"kind": "HogQLQuery", "query": doubled},
		}}, http.StatusBadRequest},
	} {
		answer := w.Send(t, http.MethodPost, "/api/projects/@current/"+tt.path, string(jsontext.Append(nil, tt.body)))
		if answer.Code != tt.status || !strings.Contains(answer.Body.String(), tooLarge) {
			t.Errorf("%s: %d %.300s", tt.name, answer.Code, answer.Body)
		}
	}

	w.Limits = execution.NewLimiter(registry.Rate{Queries: 3, Per: time.Hour})
	for range 3 { // as compiles do that take long
		if err := w.Spend(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"HogQLQuery", "HogQLMetadata"} {
		body := jsontext.Append(nil, map[string]any{"query": map[string]any{"kind": kind, "language": "hogQL", "query": "select 1"}})
		if kind == "HogQLQuery" {
			body = jsontext.Append(nil, map[string]any{"query": map[string]any{"kind": kind, "query": "select 1"}})
		}
		answer := w.Send(t, http.MethodPost, "/api/projects/@current/query/", string(body))
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s of a key that has compiled for too long: %d %.300s", kind, answer.Code, answer.Body)
		}
	}
}
