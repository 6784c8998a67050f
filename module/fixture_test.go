package module

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// world is a handler on the API of an apitest.World: only the cache can answer.
type world struct {
	*Handler
	apitest.World

	rt *runtime
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return handlerOf(apitest.New(tb))
}

// handlerOf returns a world whose handler serves an API.
func handlerOf(served *apitest.World) *world {
	w := &world{Handler: &Handler{app: &App{started: make(chan struct{})}, logger: zap.NewNop()}, World: *served}
	w.rt = &runtime{
		Executor: w.Executor, registry: w.Registry, logs: w.Logs, plans: w.Plans, tokens: w.Tokens, logger: w.Logger, topics: w.Services, api: w.API,
		signin: &signin.SignIn{State: signin.NewState(w.Registry), Registry: w.Registry, ClientIP: clientIP, Logger: zap.NewNop()},
	}
	w.rt.probe = w.rt.newProbe()
	w.app.runtime.Store(w.rt)
	close(w.app.started)
	return w
}

func insightWorld(tb testing.TB) (*world, *registry.Insight) {
	tb.Helper()
	served, i := apitest.NewWithInsight(tb)
	return handlerOf(served), i
}

func pagedWorld(tb testing.TB) (*world, string) {
	tb.Helper()
	served, next := apitest.NewWithCursor(tb)
	return handlerOf(served), next
}

// send sends a request through the handler, as Caddy would.
func (w *world) send(tb testing.TB, method, target, body string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	answer := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := w.ServeHTTP(answer, w.Request(method, target, body, header...), next); err != nil {
		tb.Fatalf("%s %s: %v", method, target, err)
	}
	return answer
}
