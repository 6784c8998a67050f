// Package api is the way of a request through the API: the table of routes, authentication, scopes, bodies, errors and their statuses, and the one place
// that writes responses. It knows no topic; those are the packages below it.
package api

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// API answers requests: it finds the route and the caller, checks that the caller may use the route, calls its handler, and writes the response.
type API struct {
	Registry *registry.Registry
	Tokens   *Tokens
	Logger   *zap.Logger
	Origins  Origins
	// Memory is shared by the large requests and responses of all projects. Default: they take as much as they want.
	Memory *memory.Pool

	routes map[string]names // by resource
}

// Caller is the caller of one request. It is made once and never changes.
type Caller struct {
	execution.Caller

	Token     *Token // sent in place of a key; else nil
	RequestID string
}

// Now returns the caller with the registry's current snapshot: after a write, the one that includes the change.
func (c *Caller) Now(all *registry.Registry) *Caller {
	now := *c
	now.Snapshot = all.Snapshot()
	return &now
}

// Input is the request as a handler sees it.
type Input struct {
	*http.Request

	At      Address
	Origins Origins
	// Memory is what the request takes for its body, and then for its response, if these are large.
	Memory *memory.Loan
}

// Handler answers the requests of a route. If it returns no error, it returns a response. If it returns both, the error is answered with the headers and
// quotas of the response.
type Handler func(ctx context.Context, c *Caller, in *Input) (*Response, error)

// request holds the caller and the input in one allocation. Handlers get pointers into it: over HTTP/2 and HTTP/3 each request has its own stack, which
// starts small and is copied each time it grows.
type request struct {
	Caller

	in   Input
	id   [1]string // the value of X-Request-Id
	loan memory.Loan
}

// ServeHTTP answers one request. It has no variables of the steps before and after the handler: while the handler runs, they would be on the stack.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := a.request(w, r)
	defer q.loan.Return()
	var res *Response
	handler, err := a.admit(w.Header(), q)
	if err == nil {
		res, err = handler(r.Context(), &q.Caller, &q.in)
	}
	a.answer(w, q, res, err)
}

// request returns the input and what is known before the caller is.
func (a *API) request(w http.ResponseWriter, r *http.Request) *request {
	q := new(request)
	q.Start, q.RequestID = time.Now(), RequestID(r)
	q.in.Request, q.in.Origins, q.id[0] = r, a.Origins, q.RequestID
	w.Header()["X-Request-Id"] = q.id[:]
	if a.Memory != nil {
		q.loan.Pool, q.in.Memory = a.Memory, &q.loan
		if r.ContentLength < 0 || r.ContentLength > memory.Large {
			lendBody(w, r, &q.loan)
		}
	}
	return q
}

// answer writes what a handler has returned.
func (a *API) answer(w http.ResponseWriter, q *request, res *Response, err error) {
	if err == nil && len(res.Body.Bytes) > memory.Large && !res.isKnown(q.in.Request) {
		res, err = q.hold(res)
	}
	WriteAnswer(w, q.in.Request, &Asked{Start: q.Start, RequestID: q.RequestID, Logger: a.Logger}, res, err)
}

// hold has the request's loan pay for a large response. Without memory for it, it returns the error, and what is sent with errors.
func (q *request) hold(res *Response) (*Response, error) {
	if err := MemoryError(q.in.Memory.Hold(q.in.Context(), res.Body.Bytes)); err != nil {
		return &Response{Quotas: res.Quotas}, err
	}
	return res, nil
}

// Refuse answers a request with an error, whatever its path.
func Refuse(w http.ResponseWriter, r *http.Request, logger *zap.Logger, err error) {
	asked := &Asked{Start: time.Now(), RequestID: RequestID(r), Logger: logger}
	w.Header()["X-Request-Id"] = []string{asked.RequestID}
	WriteAnswer(w, r, asked, nil, err)
}

// Asked is what the response and its log line need to know about the request.
type Asked struct {
	Start     time.Time
	RequestID string
	Logger    *zap.Logger
}

// WriteAnswer writes a handler's response. An error is answered with its status, logged, and keeps the headers and quotas of the response.
func WriteAnswer(w http.ResponseWriter, r *http.Request, asked *Asked, res *Response, err error) {
	if err == nil && res.Stream != nil {
		setHeaders(w.Header(), res)
		if err = res.Stream(w); err == nil {
			return
		}
		res.Quotas = nil // they were sent already
	}
	if err != nil {
		failure := ErrorOf(err)
		if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
			failure = serverError(StatusClientGone, "error", "The client went away.", nil)
		}
		failure.Log(asked.Logger, r, asked.RequestID)
		if res != nil {
			setHeaders(w.Header(), res)
		}
		res = failure.response()
	}
	Write(w, r, asked.Start, res)
}

// admit finds the route and the caller, checks that the caller may use the route, and returns its handler. ServeHTTP calls the handler after admit has
// returned, so that it has the stack to itself.
func (a *API) admit(h http.Header, q *request) (Handler, error) {
	r := q.in.Request
	project, at, ok := parsePath(r.URL.Path)
	if !ok {
		return nil, NotFound("Not found.")
	}
	q.in.At = at
	methods := a.Methods(&q.in.At)
	if methods == nil {
		return nil, NotFound("Not found.")
	}
	if isPreflight(&q.in, methods) {
		return preflight, nil
	}
	q.Snapshot = a.Registry.Snapshot()
	if err := a.identify(h, r, &q.Caller); err != nil {
		return nil, err
	}
	q.loan.Belong(q.Key.Project)
	route, ok := methods.Of(r.Method)
	if !ok {
		return nil, MethodNotAllowed(r.Method, methods.Allow())
	}
	var err error
	if q.Project, err = Authorize(q.Snapshot, q.Key, project, &q.in.At, route); err != nil {
		if q.Token != nil && errors.Is(err, errSecretKeyQueries) { // its holder has no key
			err = invalidKey(inHeader)
		}
		return nil, err
	}
	a.Registry.Touch(q.Key, q.Start)
	return route.Handler, nil
}

// RequestID returns the client's X-Request-Id if it is fit for a log, else a new one.
func RequestID(r *http.Request) string {
	if given := Header(r, "X-Request-Id"); given != "" && len(given) <= 128 && !strings.ContainsFunc(given, unprintable) {
		return given
	}
	raw := make([]byte, 0, 16)
	for range 2 {
		raw = binary.LittleEndian.AppendUint64(raw, rand.Uint64()) //nolint:gosec // an id for logs, not a secret
	}
	return hex.EncodeToString(raw)
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// ID returns the number in the path. Anything else there is a 404.
func (in *Input) ID() (int64, error) {
	id, err := strconv.ParseInt(in.At.Name, 10, 64)
	if err != nil {
		return 0, NotFound("Not found.")
	}
	return id, nil
}

// FromMCP reports whether the request comes from PostHog's MCP server, which hands results to a language model. As at PostHog, it is served a little
// differently: bare queries are saved inside the node that displays them, and query results carry formatted_results.
func (in *Input) FromMCP() bool { return in.Header.Get("X-Posthog-Client") == "mcp" }
