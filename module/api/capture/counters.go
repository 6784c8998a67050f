package capture

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// Counters count what became of requests. They are for metrics to read.
type Counters struct {
	Requests atomic.Int64 // all that were answered
	Events   atomic.Int64 // that were kept
	Ignored  atomic.Int64 // that were accepted and are not stored
	Dropped  atomic.Int64 // bad ones among the good ones of a request

	refused map[string]*atomic.Int64 // requests by reason; its keys never change

	projects sync.Map // project → *Counters
}

// Of are the counters of one project, which count requests whose token is known.
func (c *Counters) Of(project int64) *Counters {
	found, ok := c.projects.Load(project)
	if !ok {
		found, _ = c.projects.LoadOrStore(project, NewCounters())
	}
	counters, _ := found.(*Counters)
	return counters
}

// Forget removes the counters of a project that is gone.
func (c *Counters) Forget(project int64) { c.projects.Delete(project) }

// NewCounters begin at zero.
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

// Refused calls each for the reasons for which requests were refused, and how many were. The reasons are always the same ones.
func (c *Counters) Refused(each func(reason string, requests int64)) {
	for reason, n := range c.refused {
		each(reason, n.Load())
	}
}

// count counts a request by its error.
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
