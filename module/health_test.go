package module

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// TestProbe: there is one look at a time, whose result is reused for a second; a part that never answers is not ready, and holds up nobody.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		hung := make(chan struct{})
		p := &probe{logger: zap.NewNop(), looking: make(chan struct{}, 1), registry: func(context.Context) error { return nil }, clickhouse: func(context.Context) error {
			if asked.Add(1) > 1 {
				return nil
			}
			<-hung
			return errors.New("refused by 10.0.0.7:9000")
		}}
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got := p.ready(t.Context()); got != (readiness{Status: "unavailable", ClickHouse: "unavailable", Registry: "ok"}) {
					t.Errorf("with ClickHouse that hangs: %+v", got)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != probeTimeout || asked.Load() != 1 {
			t.Errorf("100 callers took %s and asked %d times", took, asked.Load())
		}
		close(hung)
		p.registry = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if got := p.ready(t.Context()); got.Status != "unavailable" || asked.Load() != 1 {
			t.Errorf("within a second it is asked again: %+v", got)
		}
		time.Sleep(probeEvery)
		began = time.Now()
		if got := p.ready(t.Context()); got != (readiness{Status: "ok", ClickHouse: "ok", Registry: "unavailable"}) || asked.Load() != 2 || time.Since(began) != registryTimeout {
			t.Errorf("when ClickHouse is back, with a registry that hangs: %+v after %s", got, time.Since(began))
		}
		time.Sleep(probeEvery)
		p.registry = func(context.Context) error { return nil }
		if got := p.ready(t.Context()); got != (readiness{"ok", "ok", "ok"}) {
			t.Errorf("when all are back: %+v", got)
		}
	})
}

func TestHealthRoutes(t *testing.T) {
	w := newWorld(t)
	w.LoseClickHouse(t)
	w.rt.probe = w.rt.newProbe()
	next := caddyNext(func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusTeapot) })
	for _, tt := range []struct {
		health       bool
		method, path string
		status       int
		body         string
	}{
		{false, "GET", "/healthz", http.StatusTeapot, ""},
		{false, "GET", "/readyz", http.StatusTeapot, ""},
		{true, "GET", "/healthz", http.StatusOK, `{"status":"ok"}`},
		{true, "GET", "/readyz", http.StatusServiceUnavailable, `{"status":"unavailable","clickhouse":"unavailable","registry":"ok"}`},
		{true, "POST", "/readyz", http.StatusMethodNotAllowed, `{"status":"method not allowed"}`},
		{true, "GET", "/readyz/", http.StatusTeapot, ""},
	} {
		w.Health = tt.health
		answer := httptest.NewRecorder()
		if err := w.ServeHTTP(answer, httptest.NewRequest(tt.method, tt.path, http.NoBody), next); err != nil {
			t.Fatal(err)
		}
		if answer.Code != tt.status || strings.TrimSpace(answer.Body.String()) != tt.body {
			t.Errorf("%s %s, health %t: %d %s", tt.method, tt.path, tt.health, answer.Code, answer.Body)
		}
	}
	w.Health = true
	w.app.runtime.Store(nil) // it has not started
	answer := httptest.NewRecorder()
	if err := w.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, readyPath, http.NoBody), next); err != nil || answer.Code != http.StatusServiceUnavailable {
		t.Errorf("before the start: %d %v", answer.Code, err)
	}
}

// caddyNext is the next handler of a site.
type caddyNext func(http.ResponseWriter)

func (n caddyNext) ServeHTTP(w http.ResponseWriter, _ *http.Request) error {
	n(w)
	return nil
}
