package module

import (
	"net/http"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// Header values that are the same for every answer.
var (
	jsonType   = []string{"application/json"}
	varyHeader = []string{"Authorization, Origin, Accept, Accept-Encoding"}
	gzipCoding = []string{cache.Gzip.String()}
	zstdCoding = []string{cache.Zstd.String()}
)

// header is the first value of a request's header, whose name is written as the server writes it: that spares http.Header.Get's
// look at each letter.
func header(r *http.Request, canonical string) string {
	if values := r.Header[canonical]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// writeAnswer sends a page of a result. One that was stored is sent as it was last time, bytes and all.
func (rq *request) writeAnswer(p *plan, got cache.Answer, render func([]byte, *plan, cache.Answer) []byte) error {
	encoding := cache.Negotiate(header(rq.r, "Accept-Encoding"))
	body := rq.page(p, got, encoding, render)
	h := rq.w.Header()
	h["Content-Type"] = formats[p.format].header
	h["Vary"] = varyHeader
	if done, ok := got.Entry.Meta.(*execution.Details); ok && !got.Status.Cached() {
		rq.spent.compile, rq.spent.clickhouse = done.Compile, done.Stats.Elapsed
	}
	// The texts of all headers are cut from one string, and the slices that hold them from one array.
	text := make([]byte, 0, 256)
	switch {
	case rq.run != nil:
		text = append(text, "no-store"...)
	case rq.revalidate:
		text = append(text, "private, no-cache"...)
	default:
		text = append(text, "private, max-age="...)
		text = appendSeconds(text, got.FreshFor)
	}
	control := len(text)
	text = appendCacheStatus(text, got)
	status := len(text)
	text = appendSeconds(text, got.Age)
	age := len(text)
	all := string(rq.appendTiming(text))
	values := &[...]string{body.ETag, all[:control], all[control:status], all[status:age], all[age:], body.ContentLength}
	h["Etag"] = values[0:1:1]
	h["Cache-Control"] = values[1:2:2]
	h["Cache-Status"] = values[2:3:3]
	if got.Status.Cached() {
		h["Age"] = values[3:4:4]
	}
	h["Server-Timing"] = values[4:5:5]
	if match := header(rq.r, "If-None-Match"); match != "" && cache.MatchETag(match, body.ETag) {
		rq.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	switch body.Encoding {
	case cache.Gzip:
		h["Content-Encoding"] = gzipCoding
	case cache.Zstd:
		h["Content-Encoding"] = zstdCoding
	case cache.Identity:
	}
	h["Content-Length"] = values[5:6:6]
	rq.w.WriteHeader(rq.okStatus())
	_, _ = rq.w.Write(body.Bytes) // the client may be gone; there is nobody to tell
	return nil
}

// okStatus is the status of an answer: 202 while a background run computes a newer one.
func (rq *request) okStatus() int {
	if rq.run != nil {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// page gives the body of an answer: as it is stored, or drawn. An answer that was computed for this request alone is not
// stored as a page: those that follow say that they come from the cache. Neither is one beside which a run is in progress, or that
// shows what was found out for its request.
func (rq *request) page(p *plan, got cache.Answer, encoding cache.Encoding, render func([]byte, *plan, cache.Answer) []byte) cache.Body {
	shared := got.Status.Cached() && rq.run == nil && !p.shows.explain
	if shared {
		if body, ok := rq.rt.Cache.GetPage(got.Entry, p.page, encoding); ok {
			return body
		}
	}
	draw := func(dst []byte) []byte { return render(dst, p, got) }
	if shared {
		return rq.rt.Cache.Page(got.Entry, p.page, encoding, draw)
	}
	return rq.rt.Cache.Render(encoding, draw)
}

// reply sends v as the JSON body of an answer that no cache keeps.
func (rq *request) reply(status int, v any) {
	rq.uncached()
	writeJSON(rq.w, status, v)
}

// replyNothing sends an answer without a body.
func (rq *request) replyNothing() {
	rq.uncached()
	rq.w.WriteHeader(http.StatusNoContent)
}

func (rq *request) uncached() {
	h := rq.w.Header()
	h.Set("Cache-Control", "no-store")
	rq.timing(h)
}

func appendSeconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendInt(dst, int64(d/time.Second), 10)
}

// appendCacheStatus tells how the cache took part, in the words of RFC 9211.
func appendCacheStatus(dst []byte, got cache.Answer) []byte {
	dst = append(dst, "caddy-analytics; "...)
	switch got.Status {
	case cache.Hit:
		return appendSeconds(append(dst, "hit; ttl="...), got.FreshFor)
	case cache.Stale:
		return append(dst, "hit; ttl=0; detail=revalidating"...)
	case cache.StaleError:
		return append(dst, "hit; ttl=0; detail=database-unavailable"...)
	case cache.Coalesced:
		return append(dst, "fwd=miss; collapsed"...)
	case cache.Refreshed:
		return append(dst, "fwd=request; stored"...)
	case cache.Pinned:
		return append(dst, "hit; ttl=0; detail=pinned"...)
	case cache.Miss:
	}
	return append(dst, "fwd=miss; stored"...)
}

// spent is where the time of an answer went.
type spent struct{ compile, clickhouse time.Duration }

// timing sets the Server-Timing header.
func (rq *request) timing(h http.Header) {
	h["Server-Timing"] = []string{string(rq.appendTiming(nil))}
}

// appendTiming appends where the time went: milliseconds of the whole, and of the parts that took place.
func (rq *request) appendTiming(text []byte) []byte {
	part := func(name string, d time.Duration) {
		text = append(text, name...)
		text = append(text, ";dur="...)
		text = strconv.AppendFloat(text, float64(d)/float64(time.Millisecond), 'f', 3, 64)
	}
	part("total", time.Since(rq.Start))
	if rq.spent.clickhouse > 0 {
		text = append(text, ", "...)
		part("compile", rq.spent.compile)
		text = append(text, ", "...)
		part("clickhouse", rq.spent.clickhouse)
	}
	return text
}
