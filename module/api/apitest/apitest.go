// Package apitest serves the whole API for tests, on a real registry and a real cache, without sockets and without ClickHouse: only the cache can answer
// queries. The tests of a topic use it from their topic's folder, in a package of their own (actions_test), because it imports all topics.
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/routes"
	"github.com/caddy-analytics/caddy-analytics/module/api/status"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// World is the API with a project and a key. What a test replaces in the executor, such as Limits, holds for the next request; what else it replaces in the
// services holds once it has also replaced the API by that of NewAPI.
type World struct {
	*routes.Services

	API     *api.API
	Project *registry.Project
	Key     *registry.Key // of requests
	Secret  string        // of the key, or what else a test authorizes its requests with
}

// Began is when everything in a world was created.
var Began = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// New returns a world that ends with the test. Its key may query, and write endpoints and variables.
func New(tb testing.TB) *World {
	tb.Helper()
	reg := sqlitetest.Open(tb, registry.Options{})
	results, err := cache.New(cache.Config{
		MaxBytes: 16 << 20, Stale: time.Hour, IsOutage: execution.StaleIsBetter, IsRefusal: execution.IsRefusal, RefreshRetry: time.Hour, // not within a test
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(results.Close)
	background := execution.NewRuns()
	closeLater(tb, background.Close)
	executor := &execution.Executor{
		Cache: results, Runs: background, Metrics: execution.NewMetrics(), Names: new(execution.Sightings),
		Compiler: &execution.Compiler{Shards: warehouse.Only(warehousetest.Nowhere(tb, nil))}, Settings: execution.Settings{QueryFresh: 5 * time.Minute},
		Limits: execution.NewLimiter(registry.Rate{Queries: 240, Per: time.Minute}), Places: admission.New(PlacesFor(10)),
		Retain: func() (func(), bool) { return func() {}, true }, Reports: execution.Reports{Run: func(cache.Key, error) {}},
	}
	people := &intake.Intake{Registry: reg, Shards: executor.Shards, Places: executor.Places, Cache: results, Logger: zap.NewNop()}
	logs := runlog.New(Began)
	w := &World{Services: &routes.Services{
		Executor: executor, Registry: reg, Plans: result.NewPlans(), Tokens: api.NewTokens(), Logs: logs, References: new(references.Index),
		Memory: memory.NewPool(memory.Default), Logger: zap.NewNop(),
		Change: people.Change, Calculate: func(int64, int64) {}, Fill: func() {},
		ForgetEndpoint: func(e *registry.Endpoint) {
			executor.Forget(e)
			logs.Forget(e.ID)
		},
		Imports: newImports(tb), MaxImport: 1 << 20,
		Health:   func(context.Context) status.Health { return status.Health{At: time.Now(), Registry: true} },
		Captured: func(int64) *status.Capture { return nil },
	}}
	w.API = w.NewAPI()
	w.Project = w.NewProject(tb)
	w.Key, w.Secret = w.NewKey(tb, w.Project.ID, registry.Personal, "query:read", "endpoint:write", "insight_variable:write")
	return w
}

var errAway = errors.New("there is no ClickHouse to import to")

// newImports returns a service that keeps files in a folder of the test, and fails to import them.
func newImports(tb testing.TB) *imports.Service {
	tb.Helper()
	service, err := imports.New(imports.Config{
		Folder: tb.TempDir(), Logger: zap.NewNop(), Pause: 10 * time.Millisecond,
		Run: func(context.Context, imports.Request, *os.File, func(line, events int)) (*adminapi.Import, error) {
			return nil, errAway
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	closeLater(tb, service.Close)
	return service
}

func closeLater(tb testing.TB, closeIt func() error) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := closeIt(); err != nil {
			tb.Error(err)
		}
	})
}

// NewProject creates another project.
func (w *World) NewProject(tb testing.TB) *registry.Project {
	tb.Helper()
	p, err := w.Registry.CreateProject(tb.Context(), registry.NewProject{Name: "p", Timezone: "Europe/Berlin"}, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// NewEndpoint publishes a query as an endpoint.
func (w *World) NewEndpoint(tb testing.TB, name, hogql string) *registry.Endpoint {
	tb.Helper()
	e, err := w.Registry.CreateEndpoint(tb.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: name, Query: jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": hogql}),
	}, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// NewKey creates a key, which requests only use if the test says so.
func (w *World) NewKey(tb testing.TB, project int64, kind registry.KeyKind, scopes ...string) (key *registry.Key, secret string) {
	tb.Helper()
	key, secret, err := w.Registry.CreateKey(tb.Context(), registry.NewKey{Project: project, Kind: kind, Scopes: scopes}, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return key, secret
}

// LoseClickHouse gives the world a ClickHouse that is down, so that computing an answer fails with a 503.
func (w *World) LoseClickHouse(tb testing.TB) {
	tb.Helper()
	w.LoseTables(tb, schema.NewLayout(nil))
}

// LoseTables is LoseClickHouse for one whose tables are known.
func (w *World) LoseTables(tb testing.TB, known *schema.Layout) {
	tb.Helper()
	w.Shards = warehouse.Only(warehousetest.Nowhere(tb, known))
}

// Send sends a request to the API, with pairs of names and values of headers.
func (w *World) Send(tb testing.TB, method, target, body string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	answer := httptest.NewRecorder()
	w.API.ServeHTTP(answer, w.Request(method, target, body, header...))
	return answer
}

// Request returns the request that Send sends.
func (w *World) Request(method, target, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.Secret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// SendAs is Send with another key.
func (w *World) SendAs(tb testing.TB, secret, method, target, body string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	as := *w
	as.Secret = secret
	return as.Send(tb, method, target, body, header...)
}

// FieldOf returns a field of an answer that is a JSON object.
func FieldOf(tb testing.TB, answer *httptest.ResponseRecorder, name string) any {
	tb.Helper()
	var fields map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &fields); err != nil {
		tb.Fatalf("answered %d %s: %v", answer.Code, answer.Body, err)
	}
	return fields[name]
}
