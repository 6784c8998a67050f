package module

import (
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// Header values that are the same for every answer.
var (
	jsonType   = []string{"application/json"}
	varyHeader = []string{"Authorization, Accept-Encoding"}
)

// writeAnswer sends a page of a result. One that was stored is sent as it was last time, bytes and all.
func (rq *request) writeAnswer(p *plan, got cache.Answer, render func([]byte, *plan, cache.Answer) []byte) error {
	encoding := cache.Negotiate(rq.r.Header.Get("Accept-Encoding"))
	draw := func(dst []byte) []byte { return render(dst, p, got) }
	var body cache.Body
	if got.Status.Cached() {
		body = rq.rt.cache.Page(got.Entry, p.page, encoding, draw)
	} else {
		body = rq.rt.cache.Render(encoding, draw)
	}
	h := rq.w.Header()
	h["Content-Type"] = jsonType
	h["Vary"] = varyHeader
	h["Etag"] = []string{body.ETag}
	h["Cache-Control"] = []string{"private, max-age=" + seconds(got.FreshFor)}
	h["Cache-Status"] = []string{cacheStatus(got)}
	h["Age"] = []string{seconds(got.Age)}
	if done, ok := got.Entry.Meta.(*outcome); ok && !got.Status.Cached() {
		rq.spent.compile, rq.spent.clickhouse = done.compile, done.stats.Elapsed
	}
	rq.timing(h)
	if match := rq.r.Header.Get("If-None-Match"); match != "" && cache.MatchETag(match, body.ETag) {
		rq.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if body.Encoding != cache.Identity {
		h["Content-Encoding"] = []string{body.Encoding.String()}
	}
	h["Content-Length"] = []string{body.ContentLength}
	rq.w.WriteHeader(http.StatusOK)
	_, _ = rq.w.Write(body.Bytes) // the client may be gone; there is nobody to tell
	return nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// cacheStatus tells how the cache took part, in the words of RFC 9211.
func cacheStatus(got cache.Answer) string {
	const name = "caddy-analytics"
	switch got.Status {
	case cache.Hit:
		return name + "; hit; ttl=" + seconds(got.FreshFor)
	case cache.Stale:
		return name + "; hit; ttl=0; detail=revalidating"
	case cache.StaleError:
		return name + "; hit; ttl=0; detail=database-unavailable"
	case cache.Coalesced:
		return name + "; fwd=miss; collapsed"
	case cache.Refreshed:
		return name + "; fwd=request; stored"
	case cache.Miss:
	}
	return name + "; fwd=miss; stored"
}

// spent is where the time of an answer went.
type spent struct{ compile, clickhouse time.Duration }

// timing sets the Server-Timing header: milliseconds of the whole, and of the parts that took place.
func (rq *request) timing(h http.Header) {
	text := make([]byte, 0, 64)
	part := func(name string, d time.Duration) {
		text = append(text, name...)
		text = append(text, ";dur="...)
		text = strconv.AppendFloat(text, float64(d)/float64(time.Millisecond), 'f', 3, 64)
	}
	part("total", time.Since(rq.start))
	if rq.spent.clickhouse > 0 {
		text = append(text, ", "...)
		part("compile", rq.spent.compile)
		text = append(text, ", "...)
		part("clickhouse", rq.spent.clickhouse)
	}
	h["Server-Timing"] = []string{string(text)}
}
