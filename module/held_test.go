package module

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// begins begins a background run of a query that ends at once with one row.
func (w *world) begins(t *testing.T, id string, p *result.Plan) {
	t.Helper()
	w.remember(t, p, time.Now(), `[1, "a secret"]`)
	ended := make(chan struct{})
	asked := *p.Query
	asked.ClientID = id
	if _, err := w.rt.Runs.Begin(execution.NewRun{
		Query: &asked, Shows: p, Most: 10, Picked: new(atomic.Int64), Release: func() { close(ended) },
		Answer: func(context.Context) (cache.Answer, error) {
			got, _ := w.rt.Cache.Get(p.Key, p.Policy(time.Now()))
			return got, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	<-ended
	for w.send(t, http.MethodGet, "/api/projects/@current/query/"+id+"/", "").Code == http.StatusAccepted {
		time.Sleep(time.Millisecond)
	}
}

// TestRunsOverTablesNeedTheirScopes: the result of a background run over tables that need a scope is unknown to keys without it, here and through
// another server.
func TestRunsOverTablesNeedTheirScopes(t *testing.T) {
	w := newWorld(t)
	w.loseClickHouse(t)
	w.key, w.secret = w.newKey(t, w.project.ID, registry.Personal, "query:read", "alert:read")
	other, secret := w.newKey(t, w.project.ID, registry.Personal, "query:read")
	for _, tt := range []struct {
		id, query string
		want      int // for the other key
	}{
		{"alerts", `"select * from system.alerts"`, http.StatusNotFound},
		{"subquery", `"select count() from events where event in (select name from system.alerts)"`, http.StatusNotFound},
		{"tables", `"select * from system.information_schema.tables"`, http.StatusOK},
		{"log", `"select * from query_log"`, http.StatusOK},
		{"events", `"select event from events"`, http.StatusOK},
	} {
		t.Run(tt.id, func(t *testing.T) {
			p, err := w.asks(http.MethodPost, "/").planQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": ` + tt.query + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			w.begins(t, tt.id, p)
			path := "/api/projects/@current/query/" + tt.id + "/"
			if got := w.send(t, http.MethodGet, path, ""); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "a secret") {
				t.Errorf("the key that asked: %d %s", got.Code, got.Body)
			}
			got := w.as(t, secret, http.MethodGet, path, "")
			if got.Code != tt.want || strings.Contains(got.Body.String(), "a secret") != (tt.want == http.StatusOK) {
				t.Errorf("another key: %d %s, want %d", got.Code, got.Body, tt.want)
			}
			poller := w.asks(http.MethodGet, "/")
			poller.Key = other
			answer := (&queries.Queries{Executor: w.rt.Executor}).PolledByPeer(&poller.Caller, &execution.PeerRequest{
				Project: w.project.ID, Poll: &execution.PeerPoll{ID: tt.id},
			})
			if found := strings.Contains(string(answer.Body)+string(answer.Rest), "a secret"); answer.Kind != peers.Result || found != (tt.want == http.StatusOK) {
				t.Errorf("another key through a peer: %d %s", answer.Kind, answer.Body)
			}
		})
	}
}

