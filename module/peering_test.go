package module

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/nodes/nodestest"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// servers share a registry and a ClickHouse.
type servers struct {
	all     []*runtime
	board   *nodestest.Board
	project *registry.Project
	key     *registry.Key
	secret  string
}

// patient is a silence that no busy machine exceeds.
const patient = 20 * time.Second

func startServers(t *testing.T, n int) *servers {
	t.Helper()
	engine := embeddedtest.New(t)
	s := &servers{board: nodestest.NewBoard()}
	folder := t.TempDir()
	for i := range n {
		reg, wh := warehousetest.Open(t, folder, clickhouse.Config{DSN: engine.DSN(), Embedded: true})
		results, err := cache.New(cache.Config{MaxBytes: 64 << 20, Stale: time.Hour, IsOutage: execution.StaleIsBetter, IsRefusal: execution.IsRefusal})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(results.Close)
		others, err := newFleet(fleetConfig{
			PeersConfig: PeersConfig{Listen: "127.0.0.1:0"}, name: fmt.Sprintf("%016x", i+1), identity: newIdentity(t), board: s.board, every: 20 * time.Millisecond, now: nodestest.SlowClock(), silence: patient, logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		rt := &runtime{
			Executor: &execution.Executor{
				Cache: results, Runs: execution.NewRuns(), Metrics: execution.NewMetrics(), Names: new(execution.Sightings),
				Compiler: &execution.Compiler{Shards: warehouse.Only(wh), Registry: reg}, Peering: execution.Peering{Peers: others, Hops: execution.NewHops()},
				Settings: execution.Settings{QueryFresh: 5 * time.Minute}, Limits: execution.NewLimiter(Rate{Queries: 240, Per: time.Minute}), Places: admission.New(apitest.PlacesFor(10)),
				Retain: func() (func(), bool) { return func() {}, true }, Reports: execution.Reports{Run: func(cache.Key, error) {}},
			},
			tables: new(materialize.Filler), registry: reg, logs: runlog.New(time.Now()), plans: result.NewPlans(), tokens: api.NewTokens(),
			logger: zap.NewNop(), fleet: others, imports: endlessImports(t),
		}
		rt.probe = rt.newProbe()
		rt.topics = rt.newTopics()
		rt.api = rt.topics.NewAPI()
		undo := rt.servePeers()
		t.Cleanup(func() {
			if err := undo(); err != nil {
				t.Error(err)
			}
			_ = others.close() // some have ended before
			if err := rt.Runs.Close(); err != nil {
				t.Error(err)
			}
		})
		s.all = append(s.all, rt)
	}
	reg := s.all[0].registry
	var err error
	if s.project, err = reg.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.key, s.secret = s.newKey(t, s.project.ID, registry.Personal, "query:read", "endpoint:read")
	eventually.Is(t, "all servers know of each other and of the key", func() bool {
		return !slices.ContainsFunc(s.all, func(rt *runtime) bool {
			return rt.nodes() != n || rt.registry.Snapshot().KeyByID(s.project.ID, s.key.ID) == nil
		})
	})
	return s
}

// sameRegistry waits until all servers know what any of them wrote: a server that is behind reads the registry only for a moment when it is asked.
func (s *servers) sameRegistry(t *testing.T) {
	t.Helper()
	eventually.Is(t, "all servers know the same registry", func() bool {
		return !slices.ContainsFunc(s.all, func(rt *runtime) bool {
			return rt.registry.Snapshot().Revision != s.all[0].registry.Snapshot().Revision
		})
	})
}

// endlessImports accepts files and never finishes importing them.
func endlessImports(t *testing.T) *importing {
	t.Helper()
	service, err := imports.New(imports.Config{
		Folder: t.TempDir(), Logger: zap.NewNop(), Pause: 10 * time.Millisecond,
		Run: func(ctx context.Context, _ imports.Request, _ *os.File, progress func(line, events int)) (*adminapi.Import, error) {
			progress(3, 2)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return &importing{service: service, maxSize: 1 << 20}
}

func newIdentity(t *testing.T) *peers.Identity {
	t.Helper()
	identity, err := peers.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func (s *servers) newKey(t *testing.T, project int64, kind registry.KeyKind, scopes ...string) (*registry.Key, string) {
	t.Helper()
	key, secret, err := s.all[0].registry.CreateKey(t.Context(), registry.NewKey{Project: project, Kind: kind, Scopes: scopes}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

// newEndpoint publishes a query; when it returns, all servers know it.
func (s *servers) newEndpoint(t *testing.T, name, hogql string) {
	t.Helper()
	_, err := s.all[0].registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: s.project.ID, Name: name, Query: jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": hogql}),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "all servers know of the endpoint", func() bool {
		return !slices.ContainsFunc(s.all, func(rt *runtime) bool { return rt.registry.Snapshot().Endpoint(s.project.ID, name) == nil })
	})
}

// ask asks a server.
func (s *servers) ask(n int, secret, path, body string) *httptest.ResponseRecorder {
	return s.send(n, http.MethodPost, secret, path, body)
}

func (s *servers) send(n int, method, secret, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/api/projects/@current/"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	s.all[n].api.ServeHTTP(w, r)
	return w
}

// queries returns how many queries the servers have run on ClickHouse.
func (s *servers) queries(t *testing.T) (all uint64) {
	t.Helper()
	for n := range s.all {
		all += s.queriesOf(t, n)
	}
	return all
}

func (s *servers) queriesOf(t *testing.T, n int) (all uint64) {
	t.Helper()
	for _, m := range s.metrics(t, n, "caddy_analytics_query_duration_seconds") {
		all += m.GetHistogram().GetSampleCount()
	}
	return all
}

func (s *servers) metrics(t *testing.T, n int, name string) []*dto.Metric {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(s.all[n].Metrics); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// asked returns how often a server asked others, by outcome.
func (s *servers) asked(t *testing.T, n int) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for _, m := range s.metrics(t, n, "caddy_analytics_peer_requests_total") {
		for _, l := range m.GetLabel() {
			if l.GetName() == "result" {
				out[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	return out
}

// rows returns the results of an answer.
func rows(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct {
		Results json.RawMessage `json:"results"`
	}
	if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &body) != nil {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	return string(body.Results)
}

// TestOneQueryForAllServers: 256 callers ask four servers for one result that none of them has.
func TestOneQueryForAllServers(t *testing.T) {
	s := startServers(t, 4)
	s.newEndpoint(t, "slow", "SELECT max(number % 1000) FROM numbers(200000000)")
	for _, path := range []string{"endpoints/slow/run", "query/"} {
		body := "{}"
		if path == "query/" {
			body = `{"query": {"kind": "HogQLQuery", "query": "SELECT max(number % 999) FROM numbers(200000000)"}}`
		}
		before := s.queries(t)
		var asking sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 256)
		for i := range answers {
			asking.Go(func() { answers[i] = s.ask(i%len(s.all), s.secret, path, body) })
		}
		asking.Wait()
		want := rows(t, answers[0])
		for i, got := range answers {
			if rows(t, got) != want {
				t.Fatalf("%s: answer %d: %s, want the rows %s", path, i, got.Body, want)
			}
		}
		if got := s.queries(t) - before; got != 1 {
			t.Errorf("%s: %d queries for 256 callers of %d servers", path, got, len(s.all))
		}
		for n := range s.all {
			t.Log(path, n, s.queriesOf(t, n), s.asked(t, n))
		}
	}
}

// owned returns a query whose result the second server owns.
func (s *servers) owned(t *testing.T, form string) (body string) {
	t.Helper()
	for n := range 1000 {
		body = fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": %q}}`, fmt.Sprintf(form, n))
		caller := &api.Caller{Caller: execution.Caller{Project: s.project, Key: s.key, Snapshot: s.all[0].registry.Snapshot(), Start: time.Now()}}
		p, err := s.all[0].topics.Queries().Plan(caller, []byte(body), "")
		if err != nil {
			t.Fatal(err)
		}
		if node, other := s.all[0].fleet.Owner(p.Key.Digest()); other && node.Name == s.all[1].fleet.Self().Name {
			return body
		}
	}
	t.Fatal("a server owns nothing")
	return ""
}

// TestOwnerDies: a server ends while it works on a result for another.
func TestOwnerDies(t *testing.T) {
	s := startServers(t, 2)
	body := s.owned(t, "SELECT %d + 1")
	for range s.all[1].Places.Limits().Most() {
		place, err := s.all[1].Places.Enter(t.Context(), admission.Request{Project: s.project.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer place.Leave()
	}
	got := make(chan *httptest.ResponseRecorder)
	go func() { got <- s.ask(0, s.secret, "query/", body) }()
	eventually.Is(t, "it waits for a place of the owner", func() bool {
		_, waiting := s.all[1].Places.Of(s.project.ID)
		return waiting > 0
	})
	if err := s.all[1].fleet.peers.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-got; rows(t, r) == "" {
		t.Error("no rows")
	}
	if asked := s.asked(t, 0); asked["silent"] != 1 || s.queriesOf(t, 0) != 1 {
		t.Errorf("asked: %v, and ran %d queries, want one because the owner fell silent", asked, s.queriesOf(t, 0))
	}
}

// TestResultsOfOthers requests results that another server owns, and checks what the answers say about them.
func TestResultsOfOthers(t *testing.T) {
	s := startServers(t, 2)
	body := s.owned(t, "SELECT number + %d AS n, 'a<b' FROM numbers(3)")
	first := s.ask(0, s.secret, "query/", body)
	if got := first.Header().Get("Cache-Status"); !strings.HasSuffix(got, "fwd=miss; stored; detail=peer") || !strings.Contains(first.Header().Get("Server-Timing"), "peer;dur=") {
		t.Errorf("of a result that the owner computed: %q %q", got, first.Header().Get("Server-Timing"))
	}
	again := s.ask(0, s.secret, "query/", body)
	if got := again.Header().Get("Cache-Status"); !strings.Contains(got, "hit; ttl=") || strings.Contains(got, "peer") {
		t.Errorf("of the same result again: %q", got)
	}
	own := s.ask(1, s.secret, "query/", body)
	if got := own.Header().Get("Cache-Status"); !strings.Contains(got, "hit; ttl=") || strings.Contains(got, "peer") {
		t.Errorf("of the owner's: %q", got)
	}
	if one, two, three := rows(t, first), rows(t, again), rows(t, own); one != two || one != three {
		t.Errorf("rows %s, %s and %s", one, two, three)
	}
	trend := `{"query": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "e%d"}]}}`
	for n := range 8 { // the other server owns some of them
		one, two := s.ask(n%2, s.secret, "query/", fmt.Sprintf(trend, n)), s.ask((n+1)%2, s.secret, "query/", fmt.Sprintf(trend, n))
		if rows(t, one) != rows(t, two) {
			t.Errorf("trend %d: %s and %s", n, one.Body, two.Body)
		}
	}
	if got := s.queries(t); got != 9 {
		t.Errorf("%d queries for 9 results", got)
	}
	body = s.owned(t, "SELECT number - %d FROM numbers(3)")
	s.ask(1, s.secret, "query/", body)
	if got := s.ask(0, s.secret, "query/", body).Header().Get("Cache-Status"); !strings.Contains(got, "hit; ttl=") || !strings.HasSuffix(got, "; detail=peer") {
		t.Errorf("of a result that the owner had: %q", got)
	}
	s.all[0].Cache.Purge(s.project.ID) // the owner's result may be from before
	if got := s.ask(0, s.secret, "query/", body).Header().Get("Cache-Status"); strings.Contains(got, "; hit") && !strings.HasSuffix(got, "; detail=unchanged") {
		t.Errorf("after what is here was outdated: %q", got)
	}
	before := s.queriesOf(t, 1)
	forced := strings.TrimSuffix(body, "}") + `, "refresh": "force_blocking"}`
	if got := s.ask(0, s.secret, "query/", forced).Header().Get("Cache-Status"); !strings.Contains(got, "fwd=request") || s.queriesOf(t, 1) != before+1 {
		t.Errorf("of a result that is to be computed again: %q", got)
	}
	failing := s.ask(0, s.secret, "query/", s.owned(t, "SELECT throwIf(number = %d) FROM numbers(2000)"))
	if failing.Code == http.StatusOK {
		t.Errorf("of a query that fails: %s", failing.Body)
	}
}

// TestWhoMayAsk: a server asks for callers that have no right to, or for something that means something else there.
func TestWhoMayAsk(t *testing.T) {
	s := startServers(t, 2)
	s.newEndpoint(t, "mine", "SELECT 1")
	other, err := s.all[0].registry.CreateProject(t.Context(), registry.NewProject{Name: "other", Timezone: "UTC"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	unscoped, _ := s.newKey(t, s.project.ID, registry.Personal, "insight:read")
	foreign, _ := s.newKey(t, other.ID, registry.Personal, "query:read", "endpoint:read")
	revoked, _ := s.newKey(t, s.project.ID, registry.Personal, "query:read", "endpoint:read")
	issuer, _ := s.newKey(t, s.project.ID, registry.Secret, "endpoint:read")
	if _, err := s.all[0].registry.RevokeKey(t.Context(), revoked.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	signer, err := s.all[0].registry.TokenSecret(t.Context(), s.project.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.sameRegistry(t)
	snap := s.all[0].registry.Snapshot()
	for _, key := range []**registry.Key{&unscoped, &foreign, &issuer} { // the keys as requests get them
		*key = snap.KeyByHash((*key).Hash)
	}
	caller := func(key *registry.Key) execution.Caller {
		return execution.Caller{Project: s.project, Key: key, Snapshot: snap, Start: time.Now()}
	}
	query := execution.Recipe{Query: json.RawMessage(`{"kind": "HogQLQuery", "query": "SELECT 1"}`)}
	run := execution.Recipe{Endpoint: "mine", Run: json.RawMessage(`{"version": 1}`)}
	asked := func(key *registry.Key, recipe execution.Recipe) *execution.PeerRequest {
		c := caller(key)
		r := execution.PeerRequestOf(&c, recipe)
		r.Key, r.Fresh = strings.Repeat("00", 32), time.Minute
		return r
	}
	good := func(recipe execution.Recipe) *execution.PeerRequest {
		c := &api.Caller{Caller: caller(s.key)}
		r := asked(s.key, recipe)
		in := &api.Input{Request: httptest.NewRequest(http.MethodPost, "/", nil), At: api.Address{Resource: "endpoints", Name: "mine"}}
		p, err := s.all[0].topics.Queries().Plan(c, []byte(`{"query": {"kind": "HogQLQuery", "query": "SELECT 1"}}`), "")
		if recipe.Endpoint != "" {
			p, err = s.all[0].topics.EndpointRuns().Plan(t.Context(), c, in, snap.Endpoint(s.project.ID, "mine"), []byte("{}"))
		}
		if err != nil {
			t.Fatal(err)
		}
		digest := p.Key.Digest()
		r.Key = fmt.Sprintf("%x", digest)
		return r
	}
	change := func(r *execution.PeerRequest, change func(*execution.PeerRequest)) *execution.PeerRequest {
		change(r)
		return r
	}
	token := func(t execution.PeerToken) func(*execution.PeerRequest) {
		return func(r *execution.PeerRequest) { r.Caller.Token = &t }
	}
	poll := func(key *registry.Key, poll execution.PeerPoll) *execution.PeerRequest {
		c := caller(key)
		r := execution.PeerRequestOf(&c, execution.Recipe{})
		r.Poll = &poll
		return r
	}
	later := time.Now().Add(time.Hour)
	tests := []struct {
		name    string
		request *execution.PeerRequest
		want    string // why it is declined; empty for an answer
	}{
		{"a query", good(query), ""},
		{"a run", good(run), ""},
		{"another key of a result", asked(s.key, query), "the query means something else here"},
		{"a run for another key of a result", asked(s.key, run), "the query means something else here"},
		{"a key without the scope", asked(unscoped, query), "the query is not allowed"},
		{"a run for a key without the scope", asked(unscoped, run), "the run is not allowed"},
		{"a key of another project", asked(foreign, query), "the key or token is not valid here"},
		{"a revoked key", asked(revoked, query), "the key or token is not valid here"},
		{"an unknown project", change(good(query), func(r *execution.PeerRequest) { r.Project = 77 }), "the key or token is not valid here"},
		{"a project of others", change(good(query), func(r *execution.PeerRequest) { r.Project = other.ID }), "the key or token is not valid here"},
		{"the hash of another key", change(good(query), func(r *execution.PeerRequest) { r.Caller.Hash = strings.Repeat("ab", 32) }), "the key or token is not valid here"},
		{"the id of another key", change(good(query), func(r *execution.PeerRequest) { r.Caller.ID = unscoped.ID }), "the key or token is not valid here"},
		{"a later registry", change(good(query), func(r *execution.PeerRequest) { r.Revision += 1000 }), "this node's registry is behind"},
		{"an endpoint that there is not", change(good(run), func(r *execution.PeerRequest) { r.Recipe.Endpoint = "yours" }), "the run is not allowed"},
		{"a run of an insight", asked(unscoped, execution.Recipe{Query: query.Query, Insight: 5}), "the query is not allowed"},
		{"no query", asked(s.key, execution.Recipe{}), "the query is not allowed"},
		{"a table of the server", asked(s.key, execution.Recipe{Query: json.RawMessage(`{"kind": "HogQLQuery", "query": "SELECT * FROM query_log"}`)}), "the query can't be read"},
		{"a token of a personal key", change(good(run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: signer.ID})), "the key or token is not valid here"},
		{"a token without endpoints", change(asked(issuer, run), token(execution.PeerToken{Expires: later, Secret: signer.ID})), "the key or token is not valid here"},
		{"a token that has expired", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: apitest.Began, Secret: signer.ID})), "the key or token is not valid here"},
		{"a token of another endpoint", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"yours"}, Expires: later, Secret: signer.ID})), "the run is not allowed"},
		{"a token with an invalid rate", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: signer.ID, Share: "x", Queries: -1})), "the key or token is not valid here"},
		{"a token whose secret is gone", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: "gone"})), "the key or token is not valid here"},
		{"a token without a secret", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later})), "the key or token is not valid here"},
		{"a token", change(asked(issuer, run), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: signer.ID})), "the query means something else here"},
		{"a token for a query", change(asked(issuer, query), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: signer.ID})), "the query is not allowed"},
		{"an invalid cursor", asked(s.key, execution.Recipe{Endpoint: "mine", Run: json.RawMessage(`{"cursor": "x"}`)}), "the run is not allowed"},
		{"a run that goes on, for a key without the scope", poll(unscoped, execution.PeerPoll{ID: "x"}), "the run is not allowed"},
		{"a run that is cancelled, for a key without the scope", poll(unscoped, execution.PeerPoll{ID: "x", Cancel: true}), "the run is not allowed"},
		{"a run that goes on, for a key of insights", poll(unscoped, execution.PeerPoll{ID: "x", Insights: true}), "the run is not allowed"},
		{"a run that goes on, for a key of another project", poll(foreign, execution.PeerPoll{ID: "x"}), "the key or token is not valid here"},
		{"a run that goes on, for a secret key", poll(issuer, execution.PeerPoll{ID: "x"}), "the run is not allowed"},
		{"a run that goes on, for a token", change(poll(issuer, execution.PeerPoll{ID: "x"}), token(execution.PeerToken{Endpoints: []string{"mine"}, Expires: later, Secret: signer.ID})), "the run is not allowed"},
		{"a run that is cancelled, for a revoked key", poll(revoked, execution.PeerPoll{ID: "x", Cancel: true}), "the key or token is not valid here"},
		{"a run that is cancelled, for a key of insights", poll(unscoped, execution.PeerPoll{ID: "x", Cancel: true, Insights: true}), ""},
		{"a run that goes on", poll(s.key, execution.PeerPoll{ID: "x"}), ""},
		{"imports, for a key without the scope", poll(s.key, execution.PeerPoll{Imports: true}), "the import is not allowed"},
		{"an import that is cancelled, for a key without the scope", poll(s.key, execution.PeerPoll{ID: "x", Imports: true, Cancel: true}), "the import is not allowed"},
		{"imports, for a secret key", poll(issuer, execution.PeerPoll{Imports: true}), "the import is not allowed"},
		{"imports, for a key of another project", poll(foreign, execution.PeerPoll{Imports: true}), "the key or token is not valid here"},
		{"another form", change(good(query), func(r *execution.PeerRequest) { r.Form = 99 }), "the request can't be read"},
		{"a negative age", change(good(query), func(r *execution.PeerRequest) { r.Fresh = -1 }), "the request can't be read"},
	}
	for _, tt := range tests {
		got, err := s.all[0].fleet.Ask(t.Context(), s.all[1].fleet.Self(), jsontext.Append(nil, tt.request))
		switch {
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want == "" && got.Kind != peers.Result, tt.want != "" && (got.Kind != peers.Decline || string(got.Body) != tt.want):
			t.Errorf("%s: answer %d %.200q, want %q", tt.name, got.Kind, got.Body, tt.want)
		}
	}
	if got, err := s.all[0].fleet.Ask(t.Context(), s.all[1].fleet.Self(), []byte("garbage")); err != nil || got.Kind != peers.Decline {
		t.Errorf("garbage: %d, %v", got.Kind, err)
	}
}

// endless returns the body of a query that only ends when canceled, with the client's id for it.
func endless(id, more string) string {
	return fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": "SELECT max(number %% 1000) FROM numbers(900000000000)"}, "client_query_id": %q%s}`, id, more)
}

// TestRunsOfOtherServers: clients ask servers about runs that began on another server, as through a load balancer.
func TestRunsOfOtherServers(t *testing.T) {
	s := startServers(t, 3)
	get := func(n int, secret, id string) *httptest.ResponseRecorder {
		return s.send(n, http.MethodGet, secret, "query/"+id+"/", "")
	}
	drop := func(n int, id string) string {
		t.Helper()
		got := s.send(n, http.MethodDelete, s.secret, "query/"+id+"/", "")
		if got.Code != http.StatusOK {
			t.Errorf("cancelling %s on server %d: %d %s", id, n, got.Code, got.Body)
		}
		message, _ := apitest.FieldOf(t, got, "message").(string)
		return message
	}
	unknown := func(id string) string { return fmt.Sprintf("Query %s not found for team %d", id, s.project.ID) }

	began := s.ask(0, s.secret, "query/", `{"query": {"kind": "HogQLQuery", "query": "SELECT number, 'a<b' FROM numbers(3)"}, "refresh": "async", "client_query_id": "short"}`)
	if began.Code != http.StatusAccepted {
		t.Fatalf("beginning a run: %d %s", began.Code, began.Body)
	}
	for n := range s.all {
		var got *httptest.ResponseRecorder
		eventually.Is(t, "the run ends", func() bool {
			got = get(n, s.secret, "short")
			return got.Code != http.StatusAccepted
		})
		if want := get(0, s.secret, "short"); got.Code != http.StatusOK || got.Body.String() != want.Body.String() || !strings.Contains(got.Body.String(), `[2, "a<b"]`) {
			t.Errorf("server %d: %d %s, want %s", n, got.Code, got.Body, want.Body)
		}
	}
	failing := s.ask(1, s.secret, "query/", `{"query": {"kind": "HogQLQuery", "query": "SELECT throwIf(number = 2) FROM numbers(3)"}, "refresh": "async", "client_query_id": "failing"}`)
	eventually.Is(t, "the run fails", func() bool { return get(0, s.secret, "failing").Code != http.StatusAccepted })
	if one, two := get(1, s.secret, "failing"), get(0, s.secret, "failing"); one.Code == http.StatusOK || one.Code != two.Code || one.Body.String() != two.Body.String() {
		t.Errorf("of a run that failed after %d: %d %s and %d %s", failing.Code, one.Code, one.Body, two.Code, two.Body)
	}

	other, err := s.all[0].registry.CreateProject(t.Context(), registry.NewProject{Name: "other", Timezone: "UTC"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := s.newKey(t, other.ID, registry.Personal, "query:read")
	_, unscoped := s.newKey(t, s.project.ID, registry.Personal, "insight:read")
	s.sameRegistry(t)
	for _, tt := range []struct {
		name, secret, id string
		want             int
	}{
		{"an id that nobody knows", s.secret, "nobody", http.StatusNotFound},
		{"a run of another project", foreign, "short", http.StatusNotFound},
		{"a key without the scope", unscoped, "short", http.StatusForbidden},
	} {
		if got := get(1, tt.secret, tt.id); got.Code != tt.want {
			t.Errorf("%s: %d %s", tt.name, got.Code, got.Body)
		}
	}
	if got := drop(1, "nobody"); got != unknown("nobody") {
		t.Errorf("cancelling what nobody knows: %s", got)
	}

	s.ask(0, s.secret, "query/", endless("endless", `, "refresh": "async"`))
	for n := range s.all {
		got := s.send(n, http.MethodGet, s.secret, "query/endless/?show_progress=true", "")
		if status, _ := apitest.FieldOf(t, got, "query_status").(map[string]any); got.Code != http.StatusAccepted || status["complete"] != false || status["query_progress"] == nil {
			t.Errorf("server %d: %d %s", n, got.Code, got.Body)
		}
	}
	if got := drop(2, "endless"); got != "The query was cancelled." {
		t.Errorf("cancelling a run of another server: %s", got)
	}
	if got := drop(2, "endless"); got != unknown("endless") || get(0, s.secret, "endless").Code != http.StatusNotFound {
		t.Errorf("cancelling it again: %s", got)
	}
	if got := drop(2, "short"); got != "The query had ended already; its state was removed." || get(1, s.secret, "short").Code != http.StatusNotFound {
		t.Errorf("cancelling a run that has ended: %s", got)
	}
	for id, cancel := range map[string]func(){
		"waiting": func() { drop(1, "waiting") },
		"older": func() {
			if got := s.ask(2, unscoped, "insights/cancel/", `{"client_query_id": "older"}`); got.Code != http.StatusCreated {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		},
	} {
		waiting := make(chan *httptest.ResponseRecorder)
		go func() { waiting <- s.ask(0, s.secret, "query/", endless(id, "")) }()
		eventually.Is(t, "it runs", func() bool { return get(2, s.secret, id).Code == http.StatusAccepted })
		cancel()
		if got := <-waiting; got.Code != http.StatusBadRequest || apitest.FieldOf(t, got, "code") != "query_was_cancelled" {
			t.Errorf("who waited for %s: %d %s", id, got.Code, got.Body)
		}
	}

	s.ask(0, s.secret, "query/", endless("kept", `, "refresh": "async"`))
	if err := s.all[2].fleet.peers.Close(); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if got := s.send(1, method, s.secret, "query/nobody/", ""); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
			t.Errorf("%s of what a server may know that does not answer: %d %s, Retry-After %q", method, got.Code, got.Body, got.Header().Get("Retry-After"))
		}
	}
	if got := get(1, s.secret, "kept"); got.Code != http.StatusAccepted {
		t.Errorf("of what another server knows: %d %s", got.Code, got.Body)
	}
	if got := drop(1, "kept"); got != "The query was cancelled." {
		t.Errorf("cancelling what another server knows: %s", got)
	}
	if err := s.all[2].fleet.Close(); err != nil { // its record
		t.Fatal(err)
	}
	eventually.Is(t, "a server has ended", func() bool { return get(1, s.secret, "nobody").Code == http.StatusNotFound })
}

// TestOtherSource: a server works with another ClickHouse, or is another build, before the others have heard of it.
func TestOtherSource(t *testing.T) {
	s := startServers(t, 2)
	body := s.owned(t, "SELECT %d + 1")
	s.ask(1, s.secret, "query/", body)
	s.all[1].Source = "other"
	w := s.ask(0, s.secret, "query/", body)
	if asked := s.asked(t, 0); rows(t, w) == "" || asked["declined"] != 1 || s.queriesOf(t, 0) != 1 {
		t.Errorf("asked: %v, and ran %d queries: %s", asked, s.queriesOf(t, 0), w.Body)
	}
}

// TestTokensOfOthers: a token with a rate is used at a server that asks another, and at that one too.
func TestTokensOfOthers(t *testing.T) {
	s := startServers(t, 2)
	key, secret := s.newKey(t, s.project.ID, registry.Secret, "endpoint:read")
	s.newEndpoint(t, "a", "SELECT 1")
	s.newEndpoint(t, "b", "SELECT 2")
	s.all[0].Peers, s.all[1].Peers = alwaysOther{s.all[0].fleet, s.all[1].fleet.Self()}, nil
	var issued struct {
		Token string `json:"token"`
	}
	w := s.ask(0, secret, "endpoint_tokens/", `{"endpoints": ["a", "b"], "rate": "100/h"}`)
	if err := json.Unmarshal(w.Body.Bytes(), &issued); err != nil || issued.Token == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	s.sameRegistry(t)
	for _, rt := range s.all { // so slow that nothing comes back during the test
		rt.Limits = execution.NewLimiter(Rate{Queries: 240, Per: 1000 * time.Hour})
	}
	left := func(w *httptest.ResponseRecorder, want string) {
		t.Helper()
		if rows(t, w); !strings.HasPrefix(w.Header().Get("RateLimit"), want) {
			t.Errorf("RateLimit: %q, want %s…", w.Header().Get("RateLimit"), want)
		}
	}
	left(s.ask(0, issued.Token, "endpoints/a/run", "{}"), `"key";r=240, "token";r=100`) // it counted on the other server
	left(s.ask(0, issued.Token, "endpoints/a/run", "{}"), "")
	eventually.Is(t, "the owner can check the token", func() bool { return len(s.all[1].registry.Snapshot().TokenSecrets(s.project.ID)) > 0 })
	w = s.ask(1, issued.Token, "endpoints/b/run", "{}")
	left(w, `"key";r=238;t=`)
	if got := w.Header().Get("RateLimit"); !strings.Contains(got, `"token";r=98;`) {
		t.Errorf("RateLimit: %q, want one stock of the token, of which two queries are spent", got)
	}
	left(s.ask(0, issued.Token, "endpoints/b/run", "{}"), "") // stored on this server
	if got := s.ask(0, issued.Token, "endpoints/b/run", "{}").Header().Get("RateLimit"); got != "" {
		t.Errorf("RateLimit of an answer that was stored: %q", got)
	}
	if got := s.all[0].Limits.OfKey(key.Payer()).Left(time.Now()); got != 240 || s.queriesOf(t, 0) != 0 || s.queriesOf(t, 1) != 2 {
		t.Errorf("the server that asks counted too: %d are left of 240", got)
	}
}

// TestBackgroundWorkOfOthers: an async run, and the refresh of a stale result, are computed by the owner.
func TestBackgroundWorkOfOthers(t *testing.T) {
	s := startServers(t, 2)
	s.newEndpoint(t, "a", "SELECT 1")
	s.all[0].Peers, s.all[1].Peers = alwaysOther{s.all[0].fleet, s.all[1].fleet.Self()}, nil
	const async = `{"query": {"kind": "HogQLQuery", "query": "SELECT 3"}, "refresh": "force_async"}`
	if w := s.ask(0, s.secret, "query/", async); w.Code != http.StatusAccepted {
		t.Errorf("an async run: %d %s", w.Code, w.Body)
	}
	c := &api.Caller{Caller: execution.Caller{Project: s.project, Key: s.key, Snapshot: s.all[0].registry.Snapshot(), Start: time.Now()}}
	p, err := s.all[0].topics.Queries().Plan(c, []byte(async), "")
	if err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the run ends", func() bool {
		got, ok := s.all[0].Cache.Peek(p.Key, p.Policy(time.Now()))
		return ok && string(got.Entry.Result.AppendRows(nil, 0, -1)) == "[[3]]"
	})
	if got := s.asked(t, 0); got["computed"] != 1 || s.queriesOf(t, 0) != 0 || s.queriesOf(t, 1) != 1 {
		t.Errorf("asked for an async run: %v", got)
	}

	s.ask(0, s.secret, "endpoints/a/run", "{}")
	s.age(t, "a")
	s.all[1].Cache.Purge(s.project.ID)
	if got := s.ask(0, s.secret, "endpoints/a/run", "{}").Header().Get("Cache-Status"); !strings.HasSuffix(got, "detail=revalidating") {
		t.Errorf("a stale result: %q", got)
	}
	eventually.Is(t, "the refresh ends", func() bool {
		return !strings.HasSuffix(s.ask(0, s.secret, "endpoints/a/run", "{}").Header().Get("Cache-Status"), "detail=revalidating")
	})
	if got := s.asked(t, 0); got["computed"] != 3 || s.queriesOf(t, 0) != 0 || s.queriesOf(t, 1) != 3 {
		t.Errorf("asked for a refresh: %v; %d and %d queries", got, s.queriesOf(t, 0), s.queriesOf(t, 1))
	}
}

// TestInsightsOfOthers requests results of an insight with keys for which another server may compute them, and for which it may not.
func TestInsightsOfOthers(t *testing.T) {
	s := startServers(t, 2)
	s.all[0].Peers, s.all[1].Peers = alwaysOther{s.all[0].fleet, s.all[1].fleet.Self()}, nil
	reg := s.all[0].registry
	i, err := reg.CreateInsight(t.Context(), s.project.ID, registry.InsightFields{
		Query: registry.To(json.RawMessage(`{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "e"}]}}`)),
	}, s.key.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, all := s.newKey(t, s.project.ID, registry.Personal, "insight:read", "query:read")
	_, reads := s.newKey(t, s.project.ID, registry.Personal, "insight:read")
	s.sameRegistry(t)
	for _, tt := range []struct {
		name, secret, override string
		asks                   bool
	}{
		{"the insight", reads, "", true},
		{"with other filters", reads, `&filters_override={"date_from":"-3d"}`, false},
		{"with other filters, for a key of queries", all, `&filters_override={"date_from":"-4d"}`, true},
	} {
		before := s.asked(t, 0)
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/projects/@current/insights/%d/?refresh=force_blocking%s", i.ID, strings.ReplaceAll(tt.override, `"`, "%22")), nil)
		r.Header.Set("Authorization", "Bearer "+tt.secret)
		w := httptest.NewRecorder()
		s.all[0].api.ServeHTTP(w, r)
		after := s.asked(t, 0)
		want := before["computed"]
		if tt.asks {
			want++
		}
		if w.Code != http.StatusOK || after["computed"] != want || after["declined"] != 0 {
			t.Errorf("%s: status %d, asked %v and before %v", tt.name, w.Code, after, before)
		}
	}
}

// age makes the first server's result of an endpoint run older than fresh.
func (s *servers) age(t *testing.T, endpoint string) {
	t.Helper()
	rt := s.all[0]
	snap := rt.registry.Snapshot()
	c := &api.Caller{Caller: execution.Caller{Project: s.project, Key: s.key, Snapshot: snap, Start: time.Now()}}
	in := &api.Input{Request: httptest.NewRequest(http.MethodPost, "/", nil), At: api.Address{Resource: "endpoints", Name: endpoint}}
	p, err := rt.topics.EndpointRuns().Plan(t.Context(), c, in, snap.Endpoint(s.project.ID, endpoint), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	policy := p.Policy(time.Now())
	fresh, ok := rt.Cache.Peek(p.Key, policy)
	if !ok {
		t.Fatal("there is no result")
	}
	done, _ := fresh.Entry.Meta.(*execution.Details)
	old := cache.NewEntry(fresh.Entry.Result, time.Now().Add(-policy.Fresh-time.Minute), done, done.Size())
	policy.Mode = cache.Recompute
	if _, err := rt.Cache.Do(t.Context(), p.Key, policy, func(context.Context) (*cache.Entry, error) { return old, nil }); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the cache has it", func() bool {
		got, ok := rt.Cache.Peek(p.Key, policy)
		return ok && got.Entry == old
	})
}

// TestSource compares what results of two configs depend on.
func TestSource(t *testing.T) {
	config := func() *App {
		return &App{ClickHouse: "clickhouse://u:secret@ch1:9000/analytics", Shards: map[string]string{"a": "clickhouse://ch2:9000/analytics", "b": "clickhouse://ch3:9000/analytics"}}
	}
	want, err := config().source()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*App)
		same   bool
	}{
		"nothing":                 {func(*App) {}, true},
		"another user":            {func(a *App) { a.ClickHouse = "clickhouse://other:password@ch1:9000/analytics" }, true},
		"another server":          {func(a *App) { a.ClickHouse = "clickhouse://u:secret@ch9:9000/analytics" }, false},
		"another cluster":         {func(a *App) { a.Cluster = "c" }, false},
		"one shard less":          {func(a *App) { delete(a.Shards, "b") }, false},
		"a shard of another name": {func(a *App) { a.Shards["c"] = a.Shards["b"]; delete(a.Shards, "b") }, false},
		"shards the other way":    {func(a *App) { a.Shards["a"], a.Shards["b"] = a.Shards["b"], a.Shards["a"] }, false},
		"the embedded engine":     {func(a *App) { a.ClickHouse = "" }, false},
	} {
		a := config()
		tt.change(a)
		if got, err := a.source(); err != nil || (got == want) != tt.same {
			t.Errorf("%s: %s, %v; that of the first is %s", name, got, err, want)
		}
	}
}

// TestPeersDisagree: two servers that each consider the other the owner ask at the same time; neither waits for the other.
func TestPeersDisagree(t *testing.T) {
	s := startServers(t, 2)
	for i, rt := range s.all {
		rt.Peers = alwaysOther{s.all[i].fleet, s.all[1-i].fleet.Self()}
	}
	for n := range 20 {
		body := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": "SELECT max(number %% 10) + %d FROM numbers(1000000)"}}`, n)
		var asking sync.WaitGroup
		for i := range 16 {
			asking.Go(func() { rows(t, s.ask(i%2, s.secret, "query/", body)) })
		}
		asking.Wait()
	}
	if got := s.queries(t); got < 20 || got > 40 {
		t.Errorf("%d queries for 20 results of two servers that disagree", got)
	}
}

// alwaysOther considers another server the owner of everything.
type alwaysOther struct {
	*fleet

	other nodes.Node
}

func (a alwaysOther) Owner([32]byte) (nodes.Node, bool) { return a.other, true }

// TestTakingOverAnAddress: two fleets listen on one address, like the configs before and after a reload.
func TestTakingOverAnAddress(t *testing.T) {
	b := nodestest.NewBoard()
	config := fleetConfig{PeersConfig: PeersConfig{Listen: "127.0.0.1:0"}, name: strings.Repeat("1", 16), identity: newIdentity(t), board: b, logger: zap.NewNop()}
	before, err := newFleet(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Listen, config.Advertise = before.Self().Address, "10.0.0.5:9443"
	after, err := newFleet(config)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Self().Address; got != config.Advertise {
		t.Errorf("the others are told %s, want %s", got, config.Advertise)
	}
	for _, f := range []*fleet{before, after} {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPeersConfig checks what Validate says of peers.
func TestPeersConfig(t *testing.T) {
	const shared = "postgres://user@db/analytics"
	tests := []struct {
		name, registry string
		peers          *PeersConfig
		want           string
	}{
		{"none", "", nil, ""},
		{"of a shared registry", shared, &PeersConfig{Listen: ":9443"}, ""},
		{"with an address for others", shared, &PeersConfig{Listen: "10.0.0.5:9443", Advertise: "node1.internal:9443"}, ""},
		{"of the default registry", "", &PeersConfig{Listen: ":9443"}, "peers " + errNotShared.Error()},
		{"of a file", "sqlite:/var/lib/registry.db", &PeersConfig{Listen: ":9443"}, "peers " + errNotShared.Error()},
		{"without an address", shared, &PeersConfig{}, `peers listen "" is not a valid host and port (want, for example, :9443)`},
		{"at no port", shared, &PeersConfig{Listen: ":port"}, `peers listen ":port" is not a valid host and port (want, for example, :9443)`},
		{"for others at no host", shared, &PeersConfig{Listen: ":9443", Advertise: ":9443"}, `peers advertise ":9443" is not a valid host and port (want, for example, 10.0.0.5:9443)`},
	}
	for _, tt := range tests {
		got := ""
		if err := (&App{Registry: tt.registry, Peers: tt.peers}).validatePeers(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
