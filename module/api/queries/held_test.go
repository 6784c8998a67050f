package queries_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// begins begins a background run of a query that ends at once with one row.
func begins(t *testing.T, w *apitest.World, id string, p *result.Plan) {
	t.Helper()
	w.Remember(t, p, time.Now(), `[1, "a secret"]`)
	ended := make(chan struct{})
	p.ClientID = id
	if _, err := w.Runs.Begin(execution.NewRun{
		Query: p.Query, Shows: p, Most: 10, Picked: new(atomic.Int64), Release: func() { close(ended) },
		Answer: func(context.Context) (cache.Answer, error) {
			got, _ := w.Cache.Get(p.Key, p.Policy(time.Now()))
			return got, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	<-ended
	eventually.Is(t, "the run has ended", func() bool {
		return w.Send(t, http.MethodGet, "/api/projects/@current/query/"+id+"/", "").Code != http.StatusAccepted
	})
}

// TestRunsOverTablesNeedTheirScopes: the result of a background run over tables that need a scope is unknown to keys without it, here and through
// another server.
func TestRunsOverTablesNeedTheirScopes(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "alert:read")
	other, secret := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
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
			p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": ` + tt.query + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			begins(t, w, tt.id, p)
			path := "/api/projects/@current/query/" + tt.id + "/"
			if got := w.Send(t, http.MethodGet, path, ""); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "a secret") {
				t.Errorf("the key that asked: %d %s", got.Code, got.Body)
			}
			got := w.SendAs(t, secret, http.MethodGet, path, "")
			if got.Code != tt.want || strings.Contains(got.Body.String(), "a secret") != (tt.want == http.StatusOK) {
				t.Errorf("another key: %d %s, want %d", got.Code, got.Body, tt.want)
			}
			poller := w.Asks(http.MethodGet, "/")
			poller.Key = other
			answer := (&queries.Queries{Executor: w.Executor}).PolledByPeer(&poller.Caller, &execution.PeerRequest{
				Project: w.Project.ID, Poll: &execution.PeerPoll{ID: tt.id},
			})
			if found := strings.Contains(string(answer.Body)+string(answer.Rest), "a secret"); answer.Kind != peers.Result || found != (tt.want == http.StatusOK) {
				t.Errorf("another key through a peer: %d %s", answer.Kind, answer.Body)
			}
		})
	}
}

// TestMarksOfHeldTables: keys that may read different tables do not share results, whatever part of a request names a table.
func TestMarksOfHeldTables(t *testing.T) {
	w := apitest.New(t)
	all, _ := w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "project:read", "alert:read")
	some, _ := w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "project:read")
	const filter = `{"properties": [{"type": "hogql", "key": "(select count() from system.alerts) > 0"}]}`
	for _, tt := range []struct{ name, query, more, tables string }{
		{"in the query", `select name from system.alerts`, ``, "system.alerts"},
		{"in the filters", `select count(), (select any(name) from system.teams) from events where {filters}`, `"filters": ` + filter + `}`, "system.alerts system.teams"},
		{"in the filters alone", `select count() from events where {filters}`, `"filters": ` + filter + `}`, "system.alerts"},
		{"in the overrides", `select count(), (select any(name) from system.teams) from events where {filters}`, `}, "filters_override": ` + filter, "system.alerts system.teams"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"query": {"kind": "HogQLQuery", "query": "` + tt.query + `"`
			switch {
			case tt.more == "":
				body += "}}"
			case strings.HasPrefix(tt.more, "}"):
				body += tt.more + "}"
			default:
				body += ", " + tt.more + "}"
			}
			var plans []*result.Plan
			for _, key := range []*registry.Key{all, some} {
				asked := w.Asks(http.MethodPost, "/")
				asked.Key = key
				p, err := asked.PlanQuery([]byte(body))
				if err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				plans = append(plans, p)
			}
			if plans[0].Held == nil || strings.Join(plans[0].Held.Tables, " ") != tt.tables {
				t.Fatalf("the query may use %+v, want %s", plans[0].Held, tt.tables)
			}
			if plans[0].Key == plans[1].Key {
				t.Error("the two keys share results")
			}
			if _, err := plans[0].Held.Rows("system.alerts"); err != nil {
				t.Errorf("the key with the scope: %v", err)
			}
			if _, err := plans[1].Held.Rows("system.alerts"); err == nil {
				t.Error("the key without the scope gets rows")
			}
			if _, err := plans[0].Held.Rows("system.insights"); err == nil {
				t.Error("a table that is not named has rows")
			}
		})
	}
}

// TestMetadataOfHeldTables: what a run denies is a mistake in the metadata too.
func TestMetadataOfHeldTables(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "alert:read")
	_, other := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	const body = `{"query": {"kind": "HogQLMetadata", "language": "hogQL", "query": "select name from system.alerts"}}`
	if got := apitest.FieldOf(t, w.Send(t, http.MethodPost, "/api/projects/@current/query/", body), "isValid"); got != true {
		t.Errorf("with the scope isValid is %v", got)
	}
	got := w.SendAs(t, other, http.MethodPost, "/api/projects/@current/query/", body)
	if apitest.FieldOf(t, got, "isValid") != false || !strings.Contains(got.Body.String(), "You don't have access to table `system.alerts`. The key needs the scope 'alert:read'.") {
		t.Errorf("without the scope: %s", got.Body)
	}
}

// TestHeldJSON: JSON in held tables is not escaped for HTML.
func TestHeldJSON(t *testing.T) {
	w := apitest.New(t)
	w.Key, _ = w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "insight_variable:read")
	if _, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{
		Project: w.Project.ID, Name: "v", Type: registry.VariableList, Values: []byte(`["a<b", "&"]`), Default: []byte(`"a<b"`),
	}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select * from system.insight_variables"}}`))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := p.Held.Rows("system.insight_variables")
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	if diff := cmp.Diff([]any{`["a<b","&"]`, `"a<b"`}, rows[0][5:7]); diff != "" {
		t.Errorf("values and default (-want +got):\n%s", diff)
	}
}
