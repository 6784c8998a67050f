// Package api is the way of a request: the table of routes, who asks, scopes, bodies, errors and their statuses, and the one place that
// writes answers. It knows no topic; those are packages below it.
package api

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// API answers requests: it finds the route and the caller, checks that the caller may, has the route's handler answer, and writes
// what that answers.
type API struct {
	Registry *registry.Registry
	Tokens   *Tokens
	Logger   *zap.Logger
	Origins  Origins

	routes map[string]names // by resource
}

// Caller is who asks. It is made once, and never changes.
type Caller struct {
	execution.Caller

	Token     *Token // that the caller sent in the place of a key; else nil
	RequestID string
}

// Input is what is asked.
type Input struct {
	*http.Request

	At      Address
	Origins Origins
}

// Handler answers the requests of a route. What is answered with an error keeps its headers and quotas.
type Handler func(ctx context.Context, c Caller, in Input) (Response, error)

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, id := time.Now(), RequestID(r)
	w.Header()["X-Request-Id"] = []string{id}
	res, err := a.answer(w.Header(), r, id, start)
	WriteAnswer(w, r, Asked{Start: start, RequestID: id, Logger: a.Logger}, res, err)
}

// Refuse answers a request with an error, whatever it asks for.
func Refuse(w http.ResponseWriter, r *http.Request, logger *zap.Logger, err error) {
	asked := Asked{Start: time.Now(), RequestID: RequestID(r), Logger: logger}
	w.Header()["X-Request-Id"] = []string{asked.RequestID}
	WriteAnswer(w, r, asked, Response{}, err)
}

// Asked is what an answer and its log line need to know of a request.
type Asked struct {
	Start     time.Time
	RequestID string
	Logger    *zap.Logger
}

// WriteAnswer writes what a handler answered. An error is answered with its status and logged, and keeps the headers and quotas of the
// response.
func WriteAnswer(w http.ResponseWriter, r *http.Request, asked Asked, res Response, err error) {
	if err == nil && res.Stream != nil {
		setHeaders(w.Header(), &res)
		if err = res.Stream(w); err == nil {
			return
		}
		res.Quotas = nil // they were shown
	}
	if err != nil {
		failure := ErrorOf(err)
		if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
			failure = serverError(StatusClientGone, "error", "The client went away.", nil)
		}
		failure.Log(asked.Logger, r, asked.RequestID)
		setHeaders(w.Header(), &res)
		res = failure.response()
	}
	Write(w, r, asked.Start, &res)
}

// answer finds the route, checks the key, and runs the route.
func (a *API) answer(h http.Header, r *http.Request, id string, start time.Time) (Response, error) {
	project, at, ok := parsePath(r.URL.Path)
	if !ok {
		return Response{}, NotFound("Not found.")
	}
	methods := a.Methods(at)
	if methods == nil {
		return Response{}, NotFound("Not found.")
	}
	if isPreflight(r, at, methods) {
		return preflight(r), nil
	}
	c := Caller{RequestID: id}
	c.Start, c.Snapshot = start, a.Registry.Snapshot()
	if err := a.identify(h, r, &c); err != nil {
		return Response{}, err
	}
	route, ok := methods.Of(r.Method)
	if !ok {
		return Response{}, MethodNotAllowed(r.Method, methods.Allow())
	}
	var err error
	if c.Project, err = Authorize(c.Snapshot, c.Key, project, at, route); err != nil {
		if c.Token != nil && errors.Is(err, errSecretKeyQueries) { // its holder has no key
			err = invalidKey(inHeader)
		}
		return Response{}, err
	}
	a.Registry.Touch(c.Key, start)
	return route.Handler(r.Context(), c, Input{Request: r, At: at, Origins: a.Origins})
}

// RequestID returns the caller's own X-Request-Id where it is one that can stand in a log, else a new one.
func RequestID(r *http.Request) string {
	if given := Header(r, "X-Request-Id"); given != "" && len(given) <= 128 && !strings.ContainsFunc(given, unprintable) {
		return given
	}
	raw := make([]byte, 0, 16)
	for range 2 {
		raw = binary.LittleEndian.AppendUint64(raw, rand.Uint64()) //nolint:gosec // an id for logs, no secret
	}
	return hex.EncodeToString(raw)
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// FromMCP reports a request of PostHog's MCP server, which hands results to a language model. It is served a little differently,
// as by PostHog: bare queries are saved in the node that shows them, and answers to queries carry formatted_results.
func (in Input) FromMCP() bool { return in.Header.Get("X-Posthog-Client") == "mcp" }
