package module

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// world is a handler on a real registry and a real cache, without ClickHouse: only the cache can answer.
type world struct {
	*Handler
	rt      *runtime
	project *registry.Project
	key     *registry.Key
	secret  string
}

// began is when everything in a world was created.
var began = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func newWorld(tb testing.TB) *world {
	tb.Helper()
	reg := sqlitetest.Open(tb, registry.Options{})
	results, err := cache.New(cache.Config{
		MaxBytes: 16 << 20, Stale: time.Hour, IsOutage: execution.StaleIsBetter, IsRefusal: execution.IsRefusal, RefreshRetry: time.Hour, // not within a test
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(results.Close)
	w := &world{Handler: &Handler{app: &App{started: make(chan struct{})}, logger: zap.NewNop()}}
	background := execution.NewRuns()
	tb.Cleanup(func() {
		if err := background.Close(); err != nil {
			tb.Error(err)
		}
	})
	w.rt = &runtime{
		Executor: &execution.Executor{
			Cache: results, Runs: background, Metrics: execution.NewMetrics(), Names: new(execution.Sightings),
			Compiler: &execution.Compiler{Shards: warehouse.Only(warehousetest.Nowhere(tb, nil))}, Settings: execution.Settings{QueryFresh: 5 * time.Minute},
			Limits: execution.NewLimiter(Rate{Queries: 240, Per: time.Minute}), Places: admission.New(placesFor(10)),
			Retain: func() (func(), bool) { return func() {}, true }, Reports: execution.Reports{Run: func(cache.Key, error) {}},
		},
		tables:   new(materialize.Filler),
		registry: reg, logs: runlog.New(began), plans: result.NewPlans(), tokens: api.NewTokens(), logger: zap.NewNop(),
	}
	w.rt.intake = &intake.Intake{Registry: reg, Shards: w.rt.Shards, Places: w.rt.Places, Cache: results, Logger: zap.NewNop()}
	w.rt.imports = w.newImports(tb)
	w.rt.probe = w.rt.newProbe()
	w.rt.api = w.rt.newAPI()
	w.rt.signin = &signin.SignIn{State: signin.NewState(reg), Registry: reg, ClientIP: clientIP, Logger: zap.NewNop()}
	w.app.runtime.Store(w.rt)
	close(w.app.started)
	w.project = w.newProject(tb)
	w.key, w.secret = w.newKey(tb, w.project.ID, registry.Personal, "query:read", "endpoint:write", "insight_variable:write")
	return w
}

// newImports returns a service that stores files in a folder of the test.
func (w *world) newImports(tb testing.TB) *importing {
	tb.Helper()
	one := &importer{intake: w.rt.intake, folder: tb.TempDir()}
	one.spool.Store(1 << 20)
	service, err := imports.New(imports.Config{Folder: one.folder, Logger: zap.NewNop(), Run: one.file, Pause: 10 * time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := service.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &importing{one, service, 1 << 20}
}

// placesFor returns the limits of places for a project's concurrency.
func placesFor(concurrency int) admission.Limits {
	return admission.Limits{Places: 4 * concurrency, Project: concurrency, Queue: execution.QueueFactor * concurrency}
}

// fill takes all places of the world's project and all of its queue.
func (w *world) fill(tb testing.TB, concurrency int) {
	tb.Helper()
	limits := placesFor(concurrency)
	limits.Queue = 0
	w.rt.Places = admission.New(limits)
	for range concurrency {
		if _, err := w.rt.Places.Enter(tb.Context(), admission.Request{Project: w.project.ID}); err != nil {
			tb.Fatal(err)
		}
	}
}

func (w *world) newProject(tb testing.TB) *registry.Project {
	tb.Helper()
	p, err := w.rt.registry.CreateProject(tb.Context(), registry.NewProject{Name: "p", Timezone: "Europe/Berlin"}, began)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (w *world) newKey(tb testing.TB, project int64, kind registry.KeyKind, scopes ...string) (*registry.Key, string) {
	tb.Helper()
	key, secret, err := w.rt.registry.CreateKey(tb.Context(), registry.NewKey{Project: project, Kind: kind, Scopes: scopes}, began)
	if err != nil {
		tb.Fatal(err)
	}
	return key, secret
}

func (w *world) newEndpoint(tb testing.TB, name, hogql string) *registry.Endpoint {
	tb.Helper()
	e, err := w.rt.registry.CreateEndpoint(tb.Context(), registry.NewEndpoint{
		Project: w.project.ID, Name: name, Query: jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": hogql}),
	}, began)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// spend takes one query from the rate of the world's key.
func (w *world) spend(now time.Time) error {
	return w.count(w.key, new(execution.Query), now)
}

// count counts a query of a key on its quotas.
func (w *world) count(key *registry.Key, q *execution.Query, now time.Time) error {
	free := *w.rt.Executor
	free.Places = admission.New(placesFor(1)) // whatever else runs
	place, err := free.Computation(&execution.Caller{Key: key, Project: w.project}, q).Admit(context.Background(), admission.Awaited, now)
	if err == nil {
		place.Leave()
	}
	return err
}

// remember caches a result as if the plan had been run.
func (w *world) remember(tb testing.TB, p *result.Plan, at time.Time, rows ...string) {
	tb.Helper()
	b := cache.NewBuilder(cache.Limits{})
	if err := b.Columns([]cache.Column{{Name: "n", Type: "UInt64"}, {Name: "label", Type: "String"}}); err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		if err := b.Row([]byte(row)); err != nil {
			tb.Fatal(err)
		}
	}
	result := b.Result()
	done := &execution.Details{
		ExecutionID: uuid.MustParse("6b1d3f0e-5d0a-4a53-9a58-0a1f0c2c7d11"), HogQL: "SELECT n FROM events LIMIT 101", SQL: "SELECT 1 < 2", Limit: 100, Columns: []string{"n", "a<b"},
		Head: execution.AppendColumns(nil, []string{"n", "a<b"}, result.Columns()), Marks: p.Marks,
	}
	if p.Version != nil {
		done.Version = p.Version.Number
	}
	policy := p.Policy(time.Now())
	policy.Mode = cache.Recompute
	entry := cache.NewEntry(result, at, done, done.Size())
	if _, err := w.rt.Cache.Do(tb.Context(), p.Key, policy, func(context.Context) (*cache.Entry, error) { return entry, nil }); err != nil {
		tb.Fatal(err)
	}
	// Calls can't use an entry that is no longer fresh until the store has it, shortly after Do returns.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); goruntime.Gosched() {
		if got, ok := w.rt.Cache.Get(p.Key, cache.Policy{Fresh: math.MaxInt64}); ok && got.Entry == entry {
			return
		}
	}
	tb.Fatal("the cache does not keep what it was given")
}

// send sends a request through the handler, as Caddy would.
func (w *world) send(tb testing.TB, method, target, body string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.secret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := w.ServeHTTP(answer, r, next); err != nil {
		tb.Fatalf("%s %s: %v", method, target, err)
	}
	return answer
}

func fieldOf(tb testing.TB, answer *httptest.ResponseRecorder, name string) any {
	tb.Helper()
	var fields map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &fields); err != nil {
		tb.Fatalf("answered %d %s: %v", answer.Code, answer.Body, err)
	}
	return fields[name]
}
