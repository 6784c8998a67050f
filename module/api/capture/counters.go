package capture

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// Counters count requests and events by outcome, for metrics.
type Counters struct {
	Requests atomic.Int64 // all that were answered
	Events   atomic.Int64 // that were stored
	Ignored  atomic.Int64 // that were accepted but not stored
	Dropped  atomic.Int64 // invalid events of requests whose other events were accepted

	refused map[string]*atomic.Int64 // requests by reason; the keys never change

	projects sync.Map // project → *Counters
}

// Of returns the counters of one project, which count requests with a known token.
func (c *Counters) Of(project int64) *Counters {
	found, ok := c.projects.Load(project)
	if !ok {
		found, _ = c.projects.LoadOrStore(project, NewCounters())
	}
	counters, _ := found.(*Counters)
	return counters
}

// Forget removes the counters of a deleted project.
func (c *Counters) Forget(project int64) { c.projects.Delete(project) }

// NewCounters returns counters that start at zero.
func NewCounters() *Counters {
	c := &Counters{refused: map[string]*atomic.Int64{}}
	for _, code := range capture.Codes {
		c.refused[string(code)] = new(atomic.Int64)
	}
	for _, code := range []string{"throttled", "buffer_full", "buffer_unavailable", "registry_unavailable", "server_busy", "request_timeout", "method_not_allowed", clientGone, otherReason} {
		c.refused[code] = new(atomic.Int64)
	}
	return c
}

const (
	clientGone  = "client_gone"
	otherReason = "other"
)

// Refused calls each for every reason to refuse a request, with the number of requests refused for it. The reasons are always the same.
func (c *Counters) Refused(each func(reason string, requests int64)) {
	for reason, n := range c.refused {
		each(reason, n.Load())
	}
}

// count counts a request with its error, which may be nil.
func (c *Counters) count(err error) {
	c.Requests.Add(1)
	if err == nil {
		return
	}
	reason := otherReason
	failure := api.ErrorOf(err)
	if _, ok := c.refused[failure.Code]; ok {
		reason = failure.Code
	} else if errors.Is(err, context.Canceled) {
		reason = clientGone
	}
	c.refused[reason].Add(1)
}
