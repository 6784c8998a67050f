package module

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler is the HTTP handler "analytics": it answers every path below /api/ and leaves the others to the next handler.
type Handler struct {
	// Whether the site answers /healthz and /readyz, as the admin address does. Default: it does not.
	Health bool `json:"health,omitempty"`

	app    *App
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.analytics", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app, which Caddy makes with its defaults when the config does not name it.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	app, err := ctx.App("analytics")
	if err != nil {
		return fmt.Errorf("loading the analytics app: %w", err)
	}
	h.app = app.(*App)
	return nil
}

// ServeHTTP answers one request of the API.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !strings.HasPrefix(r.URL.Path, apiPrefix) {
		if h.Health && serveHealth(h.findApp, w, r) {
			return nil
		}
		return next.ServeHTTP(w, r)
	}
	rq := request{w: w, r: r, id: requestID(r), Caller: execution.Caller{Start: time.Now()}}
	w.Header()["X-Request-Id"] = []string{rq.id}
	if err := rq.serve(h.app); err != nil {
		answer := toAPIError(err, "")
		if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
			answer = serverError(statusClientGone, "error", "The client went away.", nil)
		}
		rq.timing(w.Header())
		answer.log(h.logger, r, rq.id)
		answer.write(w)
	}
	return nil
}

func (h *Handler) findApp() (*App, error) { return h.app, nil }

// request is one request on its way through this package.
type request struct {
	w  http.ResponseWriter
	r  *http.Request
	rt *runtime
	id string
	execution.Caller

	token *browserToken // that the caller sent in the place of a key; else nil
	at    address

	run *execution.Run // the background run in progress that the answer has to tell of; nil for none
	// The answer shows more than a result: a client that keeps it has to ask each time whether it still holds.
	revalidate bool
	spent      spent
	inspected  inspection
}

// serve finds the route, checks the key, and runs the route.
func (rq *request) serve(app *App) error {
	project, at, ok := parsePath(rq.r.URL.Path)
	methods := at.methods()
	if !ok || methods == nil {
		return notFound("Not found.")
	}
	if isPreflight(rq.r, at, methods) {
		rq.servePreflight()
		return nil
	}
	rt, err := app.wait(rq.r.Context())
	if err != nil {
		return err
	}
	rq.rt, rq.at = rt, at
	rq.Snapshot = rt.registry.Snapshot()
	if err := rq.identify(); err != nil {
		return err
	}
	found, ok := methods.of(rq.r.Method)
	if !ok {
		return methodNotAllowed(rq.r.Method, methods.allow())
	}
	if rq.Project, err = authorize(rq.Snapshot, rq.Key, project, at, &found); err != nil {
		if rq.token != nil && errors.Is(err, errSecretKeyQueries) { // its holder has no key
			return invalidKey(inHeader)
		}
		return err
	}
	rt.registry.Touch(rq.Key, rq.Start)
	return found.serve(rq)
}

// requestID returns the caller's own X-Request-Id where it is one that can stand in a log, else a new one.
func requestID(r *http.Request) string {
	if given := header(r, "X-Request-Id"); given != "" && len(given) <= 128 && !strings.ContainsFunc(given, unprintable) {
		return given
	}
	raw := make([]byte, 0, 16)
	for range 2 {
		raw = binary.LittleEndian.AppendUint64(raw, rand.Uint64()) //nolint:gosec // an id for logs, no secret
	}
	return hex.EncodeToString(raw)
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
)
