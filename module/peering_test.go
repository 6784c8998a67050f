package module

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// memoryBoard keeps records as a shared registry does.
type memoryBoard struct {
	sync.Mutex
	kept map[string][]byte
}

func (b *memoryBoard) Keep(_ context.Context, name string, data []byte) error {
	b.Lock()
	defer b.Unlock()
	if data == nil {
		delete(b.kept, name)
		return nil
	}
	b.kept[name] = slices.Clone(data)
	return nil
}

func (b *memoryBoard) KeptAll(_ context.Context, prefix string) (map[string][]byte, error) {
	b.Lock()
	defer b.Unlock()
	out := maps.Clone(b.kept)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return !strings.HasPrefix(name, prefix) })
	return out, nil
}

// servers share a registry and a ClickHouse.
type servers struct {
	all     []*runtime
	board   *memoryBoard
	project *registry.Project
	key     *registry.Key
	secret  string
}

// patient is a silence that no busy machine reaches.
const patient = 20 * time.Second

func startServers(t *testing.T, n int, silence time.Duration) *servers {
	t.Helper()
	engine, err := embeddedtest.Start(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &servers{board: &memoryBoard{kept: make(map[string][]byte)}}
	folder := t.TempDir()
	for i := range n {
		reg, house := warehousetest.Open(t, folder, clickhouse.Config{DSN: engine.DSN(), Embedded: true})
		results, err := cache.New(cache.Config{MaxBytes: 64 << 20, Stale: time.Hour, IsOutage: execution.IsOutage, IsRefusal: execution.IsRefusal})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(results.Close)
		others, err := newFleet(fleetConfig{
			PeersConfig: PeersConfig{Listen: "127.0.0.1:0"}, name: fmt.Sprintf("%016x", i+1), board: s.board, every: 20 * time.Millisecond, silence: silence, logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		rt := &runtime{
			Executor: &execution.Executor{
				Cache: results, Runs: execution.NewRuns(), Metrics: execution.NewMetrics(), Databases: new(execution.Databases), Names: new(execution.Sightings),
				Warehouse: house, Limits: execution.NewLimiter(Rate{Queries: 240, Per: time.Minute}), Places: admission.New(placesFor(10)), QueryFresh: 5 * time.Minute,
				Retain: func() (func(), bool) { return func() {}, true }, Report: func(cache.Key, error) {}, Peers: others, Hops: execution.NewHops(), Registry: reg,
			},
			tables: new(materialize.Filler), registry: reg, logs: runlog.New(time.Now()), plans: cache.NewMemo(result.PlanMemory, (*result.Plan).Size), tokens: api.NewTokens(),
			logger: zap.NewNop(), fleet: others, imports: new(importing),
		}
		rt.probe = rt.newProbe()
		rt.api = rt.newAPI()
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
	if s.project, err = reg.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.key, s.secret = s.newKey(t, s.project.ID, registry.Personal, "query:read", "endpoint:read")
	eventually(t, "all servers know of each other and of the key", func() bool {
		return !slices.ContainsFunc(s.all, func(rt *runtime) bool {
			return rt.nodes() != n || rt.registry.Snapshot().KeyByID(s.project.ID, s.key.ID) == nil
		})
	})
	return s
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s", what)
		}
	}
}

func (s *servers) newKey(t *testing.T, project int64, kind registry.KeyKind, scopes ...string) (*registry.Key, string) {
	t.Helper()
	key, secret, err := s.all[0].registry.CreateKey(t.Context(), registry.NewKey{Project: project, Kind: kind, Scopes: scopes}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

// newEndpoint publishes a query, which all servers know of when it returns.
func (s *servers) newEndpoint(t *testing.T, name, hogql string) {
	t.Helper()
	_, err := s.all[0].registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: s.project.ID, Name: name, Query: jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": hogql}),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all servers know of the endpoint", func() bool {
		return !slices.ContainsFunc(s.all, func(rt *runtime) bool { return rt.registry.Snapshot().Endpoint(s.project.ID, name) == nil })
	})
}

// ask asks a server.
func (s *servers) ask(n int, secret, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/projects/@current/"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	s.all[n].api.ServeHTTP(w, r)
	return w
}

// queries is how many queries the servers have run on ClickHouse.
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

// asked is how often a server asked others, by what came of it.
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

// rows is the member results of an answer.
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

// TestOneQueryForAllServers has 256 callers ask four servers for one result that none of them has.
func TestOneQueryForAllServers(t *testing.T) {
	s := startServers(t, 4, patient)
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
