package module

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// loader loads configs in one Caddy, and stops it with the test. Nobody listens on the port of their ClickHouse server.
func loader(t *testing.T) (load func(dsn string, others map[string]any) error) {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{}, shares()); diff != "" {
			t.Errorf("shares when Caddy has stopped (-want +got):\n%s", diff)
		}
	})
	return func(dsn string, others map[string]any) error {
		app := map[string]any{"clickhouse": "http://127.0.0.1:1/default", "data_dir": folder, "registry": dsn}
		maps.Copy(app, others)
		return caddy.Load(jsontext.Append(nil, map[string]any{
			"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
			"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "discard"}}}},
			"apps":    map[string]any{"analytics": app},
		}), true)
	}
}

// ask sends a request to the running config.
func ask(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	app, err := activeApp()
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{Health: true, app: app, logger: zap.NewNop()}
	answer := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.Header.Set("Origin", "https://shop.example.com")
	nothing := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := h.ServeHTTP(answer, r, nothing); err != nil {
		t.Fatal(err)
	}
	return answer
}

// becomesReady waits until the running config has started.
func becomesReady(t *testing.T) {
	t.Helper()
	app, err := activeApp()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-app.started:
	case <-time.After(time.Minute):
		t.Fatal("the server has not started")
	}
}

// TestStartWithoutTheRegistry starts while the database is away, and reloads before it is back and after it is away again.
func TestStartWithoutTheRegistry(t *testing.T) {
	database := postgrestest.New(t)
	dsn, another := database.Database(t), database.Database(t)
	load := loader(t)
	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a reload waits like the start
		if err := load(dsn, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int{}, shares()); diff != "" {
			t.Errorf("shares before the start (-want +got):\n%s", diff)
		}
		if answer := ask(t, http.MethodGet, "/readyz"); answer.Code != http.StatusServiceUnavailable ||
			answer.Body.String() != `{"status":"unavailable","clickhouse":"unknown","registry":"unavailable"}` {
			t.Errorf("/readyz: %d %s", answer.Code, answer.Body)
		}
		if answer := ask(t, http.MethodGet, "/healthz"); answer.Code != http.StatusOK {
			t.Errorf("/healthz: %d %s", answer.Code, answer.Body)
		}
		for _, request := range [][2]string{
			{http.MethodGet, "/api/projects/"}, {http.MethodPost, "/api/projects/1/query/"}, {http.MethodPost, "/batch/"}, {http.MethodGet, "/array/token/config"}, {http.MethodGet, "/elsewhere"},
		} {
			answer := ask(t, request[0], request[1])
			if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "1" || !strings.Contains(answer.Body.String(), "The registry is not available right now.") {
				t.Errorf("%s: %d %v %s", request, answer.Code, answer.Header(), answer.Body)
			}
		}
		if answer := ask(t, http.MethodPost, "/batch/"); answer.Header().Get("Access-Control-Allow-Origin") == "" {
			t.Error("pages can't read why their events are refused")
		}
		if answer := ask(t, http.MethodOptions, "/batch/"); answer.Code != http.StatusNoContent {
			t.Errorf("a preflight is answered %d", answer.Code)
		}
	}
	if err := database.Run(); err != nil {
		t.Fatal(err)
	}
	becomesReady(t)
	if answer := ask(t, http.MethodGet, "/api/projects/@current/insights/"); answer.Code != http.StatusUnauthorized {
		t.Errorf("after the start: %d %s", answer.Code, answer.Body)
	}
	if shares()["registry"] != 1 {
		t.Errorf("shares after the start: %v", shares())
	}
	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := load(dsn, map[string]any{"limits": map[string]any{"rate": "5/s"}}); err != nil {
		t.Errorf("a reload that keeps the registry: %v", err)
	}
	becomesReady(t)
	if err := load(another, nil); err == nil || !strings.Contains(err.Error(), "the registry is not available") {
		t.Errorf("a reload to another registry that is away: %v", err)
	}
	becomesReady(t) // the previous config
	if shares()["registry"] != 1 {
		t.Errorf("shares after the reloads: %v", shares())
	}
}

// TestStopBeforeTheStart ends a server that waits for its registry.
func TestStopBeforeTheStart(t *testing.T) {
	if err := loader(t)("postgres://analytics:secret@127.0.0.1:1/analytics?sslmode=disable", nil); err != nil {
		t.Fatal(err)
	}
}

// TestStartThatCannotSucceed: a failure that needs fixing ends the start.
func TestStartThatCannotSucceed(t *testing.T) {
	database := postgrestest.New(t)
	dsn := database.Database(t)
	load := loader(t)
	newer := database.Database(t)
	if err := load(newer, nil); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), `UPDATE analytics_registry SET version = 99`)
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ dsn, want string }{
		"a wrong password":    {strings.Replace(dsn, ":secret@", ":wrong@", 1), "password authentication failed"},
		"an unknown database": {strings.Replace(dsn, "?", "0?", 1), "does not exist"},
		"a newer version":     {newer, "was written by a newer version of this program"},
		"no DSN":              {"postgres://analytics:secret@host:port/analytics", "a registry in PostgreSQL is given as"},
		"no TLS":              {strings.Replace(dsn, "sslmode=disable", "sslmode=unheard", 1), "sslmode is invalid"},
	} {
		if err := load(tt.dsn, nil); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "not available") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
