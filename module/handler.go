package module

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/console"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler is the HTTP handler "analytics". It answers every path below /api/, those that SDKs send events to, and those of the console if the site
// has one. Other requests go to the next handler.
type Handler struct {
	// Whether the site answers /healthz and /readyz, like the admin address. Default: false.
	Health bool `json:"health,omitempty"`
	// Whether the site has the web console, at /, /project/* and /console/*, and people can sign in to it. Default: false.
	Console bool `json:"console,omitempty"`

	app     *App
	console *console.Console // nil if the site has none
	logger  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.analytics", New: func() caddy.Module { return new(Handler) }}
}

// Provision gets the app, which Caddy creates with its defaults if the config does not mention it.
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

// ServeHTTP answers one request of the API. What it does not need while the request is served is in functions of its own, since it would be on the stack.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	captures := capture.Serves(r.URL.Path)
	if !captures && !api.Serves(r.URL.Path) {
		return h.serveOther(w, r, next)
	}
	rt := h.started(w, r)
	if rt == nil {
		return nil
	}
	rt.inProgress.Add(1)
	defer rt.inProgress.Add(-1)
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

// serveOther answers a request that is not one of the API.
func (h *Handler) serveOther(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch {
	case h.Console && console.Serves(r.URL.Path):
		h.console.ServeHTTP(w, r)
		return nil
	case h.Health && serveHealth(h.findApp, w, r):
		return nil
	}
	return h.serveUnhandled(w, r, next)
}

// started returns the runtime. If the app has not started, it answers the request and returns nil.
func (h *Handler) started(w http.ResponseWriter, r *http.Request) *runtime {
	rt, err := h.app.wait(r.Context())
	if err != nil {
		h.refuse(w, r, err)
		return nil
	}
	return rt
}

// refuse answers a request while the app has not started.
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

// clientIP returns the address of the client, which Caddy takes from a header if it trusts the proxy.
func clientIP(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}

// fromTrustedProxy reports whether a request comes from a proxy that the server's trusted_proxies names.
func fromTrustedProxy(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// cutPrefix returns what directives such as handle_path and uri strip_prefix have cut off the path of a request, escaped.
func cutPrefix(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok {
		return ""
	}
	prefix, cut := strings.CutSuffix(original.URL.Path, r.URL.Path)
	if !cut || strings.HasPrefix(prefix, "//") { // after an empty origin, a link that begins so would lead to another site
		return ""
	}
	return (&url.URL{Path: prefix}).EscapedPath()
}

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
)
