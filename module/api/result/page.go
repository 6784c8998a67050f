package result

import (
	"context"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Recall finds the plan of an earlier request, unless what it was made from has changed: the endpoint with all its versions (nil on other routes), and the
// meaning of the project's queries. Each change of an endpoint makes a new *registry.Endpoint in the snapshot. The project and the fixed variables are compared
// again, because a plan gives access to rows.
func Recall(plans *cache.Memo[*Plan], memo []byte, c *execution.Caller, e *registry.Endpoint) (*Plan, bool) {
	p, ok := plans.Get(memo)
	return p, ok && p.Endpoint == e && p.Serial == c.Snapshot.QuerySerial(c.Project.ID) &&
		p.Key.Project() == c.Project.ID && p.Fixed == c.Key.Fixed && (p.Until.IsZero() || c.Start.Before(p.Until))
}

// AskedFormat returns the format requested in the Accept header: that of the type with the largest weight. Unknown types are ignored.
func AskedFormat(in *api.Input) Format {
	accept := in.Header["Accept"]
	if len(accept) == 0 || accept[0] == "*/*" || accept[0] == "application/json" {
		return AsArrays
	}
	return AcceptedFormat(strings.Join(accept, ","))
}

// Stored finds the body of an answer that was sent before; nil if there is none. It finds none for an answer that was computed for this request alone, as
// the later ones say that they come from the cache. Nor does it find one if a run is in progress, or if the body shows what was found out for its request
// only.
func Stored(c *cache.Cache, in *api.Input, p *Plan, got *execution.Result) *cache.Body {
	if !shared(p, got) {
		return nil
	}
	return c.GetPage(got.Answer.Entry, p.Page, encoding(in))
}

// Render renders the body of an answer, and stores it if other requests can share it. A large one waits for memory and for the project's
// turn first.
func Render(
	ctx context.Context, c *cache.Cache, in *api.Input, p *Plan, got *execution.Result, render func([]byte, *Plan, cache.Answer) []byte,
) (*cache.Body, error) {
	answer := got.Answer
	done, err := Reserve(ctx, in, p.Key.Project(), sizeOf(p, answer.Entry))
	if err != nil {
		return nil, err
	}
	defer done()
	draw := func(dst []byte) []byte { return render(dst, p, answer) }
	var body cache.Body
	if shared(p, got) {
		body = c.Page(answer.Entry, p.Page, encoding(in), draw)
	} else {
		body = c.Render(encoding(in), draw)
	}
	return &body, nil
}

// Reserve waits for the memory of a large response, and then for the project's turn on the processors, which ends with done. A response of usual size needs
// neither. The error is a response.
func Reserve(ctx context.Context, in *api.Input, project, size int64) (done func(), err error) {
	if size <= memory.Large {
		return func() {}, nil
	}
	if err := in.Memory.Take(ctx, size); err != nil {
		return nil, api.MemoryError(err)
	}
	place, err := execution.TakeAssemblyPlace(ctx, project)
	if err != nil {
		return nil, err
	}
	return place.Leave, nil
}

// sizeOf returns roughly how many bytes the page of a plan has.
func sizeOf(p *Plan, e *cache.Entry) int64 {
	size, shown := e.Size(), int64(e.Result.Len())
	if p.IsPage() && shown > 0 {
		all := shown
		shown = int64(e.Result.PageLen(p.Offset, p.Limit))
		size = size * shown / all
	}
	if done, ok := e.Meta.(*execution.Details); ok && (p.Format == AsObjects || p.Format == AsNDJSON) {
		size += shown * int64(rows.NewObjects(done.Columns).NameBytes())
	}
	return size
}

func shared(p *Plan, got *execution.Result) bool {
	return got.Answer.Status.Cached() && got.Run == nil && !p.Shows.Explain && p.Cut == nil
}

func encoding(in *api.Input) cache.Encoding {
	return cache.Negotiate(api.Header(in.Request, "Accept-Encoding"))
}

// Respond responds with a page of a result.
func Respond(p *Plan, got *execution.Result, body *cache.Body) *api.Response {
	res := &api.Response{
		Status: Status(got.Run), Type: Formats[p.Format].Type, Quotas: got.Quotas, Body: *body, Answer: got.Answer, Cache: api.WhileFresh,
	}
	if got.Run != nil {
		res.Cache = api.NoStore
	}
	switch done, ok := got.Answer.Entry.Meta.(*execution.Details); {
	case !ok:
	case got.Answer.Status == cache.Fetched:
		res.Spent = api.Spent{Peer: done.Peer}
	case got.Answer.Status == cache.Renewed:
		res.Spent = api.Spent{Compile: done.Renewal.Compile, Probe: done.Renewal.Probe, Peer: done.Peer}
	case !got.Answer.Status.Cached() && done.Renewal == nil:
		res.Spent = api.Spent{Compile: done.Compile, Probe: done.Probe, ClickHouse: done.Stats.Elapsed, Buckets: done.Buckets, Peer: done.Peer}
	}
	return res
}

// Status returns the status of a response: 202 while a background run computes a newer result.
func Status(run *execution.Run) int {
	if run != nil {
		return http.StatusAccepted
	}
	return http.StatusOK
}
