package module

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/console"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler is the HTTP handler "analytics": it answers every path below /api/, those that SDKs send events to, and those of the console if the
// site has one. The others it leaves to the next handler.
type Handler struct {
	// Whether the site answers /healthz and /readyz, as the admin address does. Default: it does not.
	Health bool `json:"health,omitempty"`
	// Whether the site has the web console, at /, /project/* and /console/*, and people can sign in to it. Default: it has not.
	Console bool `json:"console,omitempty"`

	app     *App
	console *console.Console // nil without one
	logger  *zap.Logger
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
	if h.Console {
		h.app.console.Store(true)
		h.console, err = console.Embedded()
	}
	return err
}

// ServeHTTP answers one request of the API.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	captures := capture.Serves(r.URL.Path)
	if !captures && !api.Serves(r.URL.Path) {
		switch {
		case h.Console && console.Serves(r.URL.Path):
			h.console.ServeHTTP(w, r)
			return nil
		case h.Health && serveHealth(h.findApp, w, r):
			return nil
		}
		return h.serveUntaken(w, r, next)
	}
	rt, err := h.app.wait(r.Context())
	if err != nil {
		h.refuse(w, r, err)
		return nil
	}
	switch {
	case captures:
		rt.capture.Serve(w, r)
	case h.Console && signin.Serves(r.URL.Path):
		rt.signin.ServeHTTP(w, r)
	default:
		rt.api.ServeHTTP(w, r)
	}
	return nil
}

// refuse answers a request that the app has not started for.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case !errors.Is(err, errStarting): // the client went away
		w.WriteHeader(api.StatusClientGone)
	case capture.Serves(r.URL.Path):
		capture.Refuse(w, r, h.logger, err)
	default:
		api.Refuse(w, r, h.logger, err)
	}
}

func (h *Handler) findApp() (*App, error) { return h.app, nil }

// clientIP is the address of the client, which Caddy takes from a header where it trusts the proxy.
func clientIP(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}

// fromTrustedProxy reports whether a request comes from a proxy that the server's trusted_proxies names.
func fromTrustedProxy(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
)
