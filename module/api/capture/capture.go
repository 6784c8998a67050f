// Package capture answers the routes to which SDKs send events, and those that they request at startup: contract capture.md. They need no key: events carry
// the token of a project, which can only write.
package capture

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// Capture receives events. Set its fields before its first request.
type Capture struct {
	// Project finds the project that a token belongs to; ok is false if there is none. An error means that this can't be looked up now.
	Project func(ctx context.Context, token string) (id int64, ok bool, err error)
	// Append stores the events of a request. When it returns nil, they are on disk. It returns ErrFull if there is no room for them.
	Append func(ctx context.Context, e Entry) error
	// Limit charges events to the quota of a token. It returns how long to wait before the next attempt, or 0 and what gives the quota back if the events
	// are not kept. Nil means no limit.
	Limit func(token string, events int, now time.Time) (giveBack func(), wait time.Duration)
	// ClientIP returns the client's address without the port; empty if unknown. Nil uses the address of the connection.
	ClientIP func(*http.Request) string
	Logger   *zap.Logger
	Counters *Counters

	// MaxBody is the largest body, in bytes as sent. Default: DefaultBody.
	MaxBody int64
	Limits  capture.Limits
	// Memory is shared by all requests being read. Default: NewMemory(DefaultMemory).
	Memory *Memory
}

// Entry holds the events of one request.
type Entry struct {
	Project int64
	Arrived time.Time
	Events  int
	Data    []byte // lines, as written by record.Append, each with its line feed
}

// ErrFull says that Append stored nothing because there is no room.
var ErrFull = errors.New("there is no room for events")

// ErrCrowded says that a token is unknown here, and that too many such tokens are being looked up to find out whether another server knows it.
var ErrCrowded = errors.New("too many unknown tokens are being looked up")

// DefaultBody is the largest body by default, in bytes as sent.
const DefaultBody = 20 << 20

// route is the route of a path.
type route struct {
	methods []string
	serve   func(*Capture, *http.Request, time.Time) (*api.Response, error)
}

var (
	getOrPost = []string{http.MethodGet, http.MethodPost}
	onlyPost  = []string{http.MethodPost}
	onlyGet   = []string{http.MethodGet}
)

// routes are the routes by path, without a trailing slash.
var routes = map[string]*route{
	"/batch":                  {methods: getOrPost, serve: (*Capture).events},
	"/i/v0/e":                 {methods: getOrPost, serve: (*Capture).events},
	"/e":                      {methods: getOrPost, serve: (*Capture).events},
	"/capture":                {methods: getOrPost, serve: (*Capture).events},
	"/track":                  {methods: getOrPost, serve: (*Capture).events},
	"/engage":                 {methods: getOrPost, serve: (*Capture).engage},
	"/i/v0/ai/batch":          {methods: getOrPost, serve: (*Capture).aiEvents},
	"/i/v1/analytics/events":  {methods: onlyPost, serve: (*Capture).eventsV1},
	"/i/v1/ai/events":         {methods: onlyPost, serve: (*Capture).aiEventsV1},
	"/flags":                  {methods: onlyPost, serve: (*Capture).flags},
	"/decide":                 {methods: getOrPost, serve: (*Capture).decide},
	arrayPrefix + "config":    {methods: onlyGet, serve: (*Capture).config},
	arrayPrefix + "config.js": {methods: onlyGet, serve: (*Capture).configScript},
}

// arrayPrefix begins the paths that contain a token: /array/<token>/config. The keys of routes leave the token out.
const arrayPrefix = "/array/"

// find returns the route of a path, or nil.
func find(path string) *route {
	path = strings.TrimSuffix(path, "/")
	if rest, ok := strings.CutPrefix(path, arrayPrefix); ok {
		token, name, ok := strings.Cut(rest, "/")
		if !ok || token == "" {
			return nil
		}
		path = arrayPrefix + name
	}
	return routes[path]
}

// Serves reports whether a path is served here.
func Serves(path string) bool { return find(path) != nil }

// Serve answers a request if its path is served here, and reports whether it is.
func (c *Capture) Serve(w http.ResponseWriter, r *http.Request) bool {
	found := find(r.URL.Path)
	if found == nil {
		return false
	}
	start, id := time.Now(), api.RequestID(r)
	w.Header()["X-Request-Id"] = []string{id}
	allowOrigin(w.Header(), r)
	res, err := c.answer(found, r, start)
	c.Counters.count(err)
	api.WriteAnswer(w, r, &api.Asked{Start: start, RequestID: id, Logger: c.Logger}, res, err)
	return true
}

// Refuse answers a request for a path of the SDKs with an error, which pages of other sites may read too.
func Refuse(w http.ResponseWriter, r *http.Request, logger *zap.Logger, err error) {
	allowOrigin(w.Header(), r)
	if found := find(r.URL.Path); found != nil && r.Method == http.MethodOptions {
		res := preflight(r, found.methods)
		api.Write(w, r, time.Now(), res)
		return
	}
	api.Refuse(w, r, logger, err)
}

func (c *Capture) answer(found *route, r *http.Request, now time.Time) (*api.Response, error) {
	if r.Method == http.MethodOptions {
		return preflight(r, found.methods), nil
	}
	if slices.Contains(found.methods, r.Method) {
		return found.serve(c, r, now)
	}
	return nil, api.MethodNotAllowed(r.Method, allowed(found.methods))
}

func allowed(methods []string) string {
	return strings.Join(append([]string{http.MethodOptions}, methods...), ", ")
}

func (c *Capture) events(r *http.Request, now time.Time) (*api.Response, error) {
	return c.accept(r, now, c.Limits, false)
}

// aiEvents receives AI events, which may be larger.
func (c *Capture) aiEvents(r *http.Request, now time.Time) (*api.Response, error) {
	return c.accept(r, now, c.aiLimits(), false)
}

// aiLimits returns the limits of the routes for AI events. SDKs send such events whatever the limit of others is set to.
func (c *Capture) aiLimits() capture.Limits {
	limits := c.Limits
	limits.Event = max(limits.Event, capture.AIEvent)
	return limits
}

// engage receives events of old clients, which leave out the name of a $identify event.
func (c *Capture) engage(r *http.Request, now time.Time) (*api.Response, error) {
	return c.accept(r, now, c.Limits, true)
}

// accepted is the response to events that were stored.
var accepted = []byte(`{"status": "Ok"}`)

// accept stores the events of a request, or refuses them all.
func (c *Capture) accept(r *http.Request, now time.Time, limits capture.Limits, engage bool) (*api.Response, error) {
	lent := c.Memory.lend(r.Context())
	defer lent.giveBack()
	body, err := c.readBody(r, lent)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	batch, err := capture.Decode(&capture.Request{
		Body: body, ContentType: r.Header.Get("Content-Type"), ContentEncoding: r.Header.Get("Content-Encoding"),
		Data: query.Get("data"), Compression: query.Get("compression"), SentAt: first(query.Get("_"), query.Get("sent_at")),
		Token: first(query.Get("token"), query.Get("api_key")), Engage: engage, IP: c.clientIP(r), Now: now, Limits: limits, Memory: lent,
	})
	if err != nil {
		return nil, c.refusal(r.Context(), err)
	}
	project, err := c.projectOf(r.Context(), batch.Token)
	if err != nil {
		return nil, err
	}
	if err := c.take(r.Context(), project, now, batch); err != nil {
		return nil, err
	}
	if query.Get("beacon") == "1" {
		return api.NoContent(), nil
	}
	return api.Raw(http.StatusOK, accepted), nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// refusal returns the error for events that have a mistake. An unknown token takes precedence over the mistake.
func (c *Capture) refusal(ctx context.Context, err error) error {
	if mistake, ok := errors.AsType[*capture.RefusalError](err); ok && mistake.Token != "" {
		project, unknown := c.projectOf(ctx, mistake.Token)
		if unknown != nil {
			return unknown
		}
		c.Counters.Of(project).count(err)
	}
	return err
}

// projectOf finds the project that a token belongs to.
func (c *Capture) projectOf(ctx context.Context, token string) (int64, error) {
	project, ok, err := c.Project(ctx, token)
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, ErrCrowded):
		return 0, api.Unavailable("server_busy", "The token can't be looked up now. Send the events again later.", unavailableRetry, nil)
	case err != nil:
		return 0, api.Unavailable("registry_unavailable", "The token can't be looked up now. Send the events again later.", unavailableRetry, err)
	case !ok:
		return 0, capture.UnknownToken()
	}
	return project, nil
}

// How long clients are told to wait before they send events again that could not be stored. SDKs for phones discard their events after the fourth refusal,
// so a full log, which may last, asks them for more patience.
const (
	bufferFullRetry  = time.Minute
	unavailableRetry = 5 * time.Second
)

// keep appends events to the log, within the quota of their token. A client sends events that were not kept again, so these do not count. Those of a client
// that has gone away may have been kept.
func (c *Capture) keep(ctx context.Context, project int64, now time.Time, batch *capture.Batch) error {
	giveBack := func() {}
	if c.Limit != nil {
		var wait time.Duration
		if giveBack, wait = c.Limit(batch.Token, batch.Events+batch.Ignored, now); wait > 0 {
			return api.Throttled("This token sends more events than its limit allows.", wait)
		}
	}
	err := c.append(ctx, project, now, batch)
	if err != nil && ctx.Err() == nil {
		giveBack()
	}
	return err
}

// append appends events to the log. It appends nothing if the request has no events to store.
func (c *Capture) append(ctx context.Context, project int64, now time.Time, batch *capture.Batch) error {
	if batch.Events == 0 {
		return nil
	}
	err := c.Append(ctx, Entry{Project: project, Arrived: now, Events: batch.Events, Data: batch.Lines})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFull):
		return api.Unavailable("buffer_full", "The buffer for events is full. Nothing of this request was kept: send it again later.", bufferFullRetry, err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return api.Unavailable("buffer_unavailable", "The events could not be kept. Send them again later.", unavailableRetry, err)
}

// take stores the events of a request with a known token, and counts them.
func (c *Capture) take(ctx context.Context, project int64, now time.Time, batch *capture.Batch) error {
	err := c.keep(ctx, project, now, batch)
	own := c.Counters.Of(project)
	if own.count(err); err != nil {
		return err
	}
	for _, counters := range []*Counters{c.Counters, own} {
		counters.Events.Add(int64(batch.Events))
		counters.Ignored.Add(int64(batch.Ignored))
		counters.Dropped.Add(dropped(batch.Results))
	}
	return nil
}

// clientIP returns the client's address.
func (c *Capture) clientIP(r *http.Request) string {
	if c.ClientIP != nil {
		return c.ClientIP(r)
	}
	host := r.RemoteAddr
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		host = host[:at]
	}
	return strings.Trim(host, "[]")
}

// readBody reads a body of at most MaxBody bytes.
func (c *Capture) readBody(r *http.Request, lent *loan) ([]byte, error) {
	most := c.MaxBody
	if most == 0 {
		most = DefaultBody
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	body, err := lent.readAll(r.Body, int(r.ContentLength), int(most))
	if err != nil {
		if _, ok := errors.AsType[*api.Error](err); ok {
			return nil, err
		}
		if limit, ok := errors.AsType[*http.MaxBytesError](err); ok { // the site's own request_body limit
			return nil, tooLarge(limit.Limit)
		}
		return nil, api.BodyError(err)
	}
	if int64(len(body)) > most {
		return nil, tooLarge(most)
	}
	return body, nil
}

func tooLarge(most int64) error {
	return &capture.RefusalError{Code: capture.TooLarge, Index: -1, Detail: "The request body is larger than " + strconv.FormatInt(most, 10) + " bytes."}
}
