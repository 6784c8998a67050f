package capture

import (
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// eventsV1 receives events of the newest SDKs. It stores the valid ones, and the response gives the outcome of each event.
func (c *Capture) eventsV1(r *http.Request, now time.Time) (*api.Response, error) {
	return c.acceptV1(r, now, c.Limits)
}

// aiEventsV1 receives AI events of the newest SDKs, which may be larger.
func (c *Capture) aiEventsV1(r *http.Request, now time.Time) (*api.Response, error) {
	return c.acceptV1(r, now, c.aiLimits())
}

func (c *Capture) acceptV1(r *http.Request, now time.Time, limits capture.Limits) (*api.Response, error) {
	headers, err := capture.ReadV1(func(name string) string { return r.Header.Get(name) })
	if err != nil {
		return nil, err
	}
	project, err := c.projectOf(r.Context(), headers.Token)
	if err != nil {
		return nil, err
	}
	lent := c.Memory.lend(r.Context())
	defer lent.giveBack()
	body, err := c.readBody(r, lent)
	if err != nil {
		c.Counters.Of(project).count(err)
		return nil, err
	}
	batch, err := capture.DecodeV1(&capture.Request{Body: body, IP: c.clientIP(r), Now: now, Limits: limits, Memory: lent}, headers)
	if err != nil {
		c.Counters.Of(project).count(err)
		return nil, err
	}
	if err := c.take(r.Context(), project, now, batch); err != nil {
		return nil, err
	}
	return api.Raw(http.StatusOK, appendResults(nil, batch.Results)), nil
}

func dropped(results []capture.Result) (n int64) {
	for i := range results {
		if results[i].Outcome == capture.Dropped {
			n++
		}
	}
	return n
}

// appendResults appends the outcome of each event, by its UUID.
func appendResults(dst []byte, results []capture.Result) []byte {
	dst = append(dst, `{"results":{`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), results[i].UUID.String()...), `":{"result":"`...)
		dst = append(append(dst, results[i].Outcome...), '"')
		if details := results[i].Details; details != "" {
			dst = append(append(append(dst, `,"details":"`...), details...), '"')
		}
		dst = append(dst, '}')
	}
	return append(dst, `}}`...)
}
