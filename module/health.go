package module

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/status"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// The paths that report whether the server is alive and whether it can answer. They are served on the admin address, and on sites whose directive has
// health.
const (
	livePath  = "/healthz"
	readyPath = "/readyz"
)

const (
	probeTimeout    = 2 * time.Second        // the longest that ClickHouse may take to answer
	registryTimeout = 500 * time.Millisecond // the longest that the registry may take
	probeEvery      = time.Second            // how long a result is reused
)

// readiness is the state of the server's parts: "ok", "unavailable", or "unknown" for a part that is not asked before the registry answers. A server
// that has started is ready when ClickHouse answers, since it has the registry in memory. The reasons are in the log.
type readiness struct {
	Status     string `json:"status"`
	ClickHouse string `json:"clickhouse"`
	Registry   string `json:"registry"`
}

const (
	partReady   = "ok"
	partMissing = "unavailable"
	partUnknown = "unknown"
)

func (r readiness) httpStatus() int {
	if r.Status == partReady {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// probe checks whether the parts of a runtime answer. It runs one check at a time and reuses the result for a while, so that frequent requests cost nothing.
type probe struct {
	clickhouse, registry func(context.Context) error
	logger               *zap.Logger

	looking chan struct{} // holds a token while somebody looks: one look at a time
	found   readiness
	at      time.Time     // zero before the first look
	took    time.Duration // until ClickHouse answered
}

var (
	notReady = readiness{Status: partMissing, ClickHouse: partMissing, Registry: partMissing}
	// noRegistry is the state of a server that can't start without its registry.
	noRegistry = readiness{Status: partMissing, ClickHouse: partUnknown, Registry: partMissing}
)

// newProbe returns a probe that pings ClickHouse, which needs no place, and the registry's store.
func (rt *runtime) newProbe() *probe {
	return &probe{clickhouse: rt.Shards.Ping, registry: rt.registry.Ping, logger: rt.logger, looking: make(chan struct{}, 1)}
}

// ready returns the state of the parts. It takes at most a little longer than probeTimeout.
func (p *probe) ready(ctx context.Context) readiness {
	if !p.begin(ctx) {
		return notReady
	}
	defer p.end()
	return p.look(ctx)
}

// health is ready, with the time of the check and how long ClickHouse took.
func (p *probe) health(ctx context.Context) status.Health {
	if !p.begin(ctx) {
		return status.Health{}
	}
	defer p.end()
	found := p.look(ctx)
	return status.Health{At: p.at, ClickHouse: found.ClickHouse == partReady, Registry: found.Registry == partReady, Took: p.took}
}

// begin takes the token, which end gives back. It reports false if ctx ends first: then nobody is there to be told.
func (p *probe) begin(ctx context.Context) bool {
	select {
	case p.looking <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *probe) end() { <-p.looking }

// look returns the state of the parts. The caller holds the token.
func (p *probe) look(ctx context.Context) readiness {
	if !p.at.IsZero() && time.Since(p.at) < probeEvery {
		return p.found
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // others use the result too
	defer cancel()
	before, now := p.found, readiness{}
	var asked sync.WaitGroup
	asked.Go(func() {
		began := time.Now()
		now.ClickHouse = p.ask(ctx, "ClickHouse", before.ClickHouse, p.clickhouse)
		p.took = time.Since(began)
	})
	asked.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		now.Registry = p.ask(ctx, "the registry", before.Registry, p.registry)
	})
	asked.Wait()
	now.Status = now.ClickHouse
	p.found, p.at = now, time.Now()
	return now
}

// ask returns the state of a part, and logs changes. A part that does not answer in time is unavailable, even if it ignores the end of its context.
func (p *probe) ask(ctx context.Context, name, before string, part func(context.Context) error) string {
	answered := make(chan error, 1)
	go func() { answered <- part(ctx) }()
	var err error
	select {
	case err = <-answered:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	switch {
	case err != nil && before != partMissing:
		p.logger.Warn("a part of the server does not answer", zap.String("part", name), api.Logged(err))
	case err == nil && before == partMissing:
		p.logger.Info("a part of the server answers again", zap.String("part", name))
	}
	if err != nil {
		return partMissing
	}
	return partReady
}

// serveHealth answers a health path; ok is false for other paths.
func serveHealth(app func() (*App, error), w http.ResponseWriter, r *http.Request) (ok bool) {
	if r.URL.Path != livePath && r.URL.Path != readyPath {
		return false
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"status": "method not allowed"})
		return true
	}
	if r.URL.Path == livePath {
		writeJSON(w, http.StatusOK, map[string]string{"status": partReady})
		return true
	}
	found := notReady
	if a, err := app(); err == nil {
		if rt := a.runtime.Load(); rt != nil {
			found = rt.probe.ready(r.Context())
		} else if a.isHeld() { // otherwise Start is in progress
			found = noRegistry
		}
	}
	writeJSON(w, found.httpStatus(), found)
	return true
}

// adminHealth answers the health paths on the admin address.
func adminHealth(w http.ResponseWriter, r *http.Request) error {
	serveHealth(activeApp, w, r)
	return nil
}

// activeApp returns the app of the running config.
func activeApp() (*App, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("analytics")
	if err != nil {
		return nil, err // Caddy's own words
	}
	return app.(*App), nil
}

// writeJSON sends v as a JSON body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body := jsontext.Append(nil, v)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; there is nobody to tell
}
