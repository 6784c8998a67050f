package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// Response is what a handler returns. Its headers and quotas are sent with an error too. The zero Response is an empty 200 that must not be stored.
type Response struct {
	Status int         // 0 means 200
	Type   string      // the Content-Type; empty for JSON, or for none if there is no body
	Header http.Header // further headers, or nil. It is only read, so requests can share it
	Quotas execution.Quotas
	Spent  Spent

	Body  cache.Body
	Cache CacheControl
	// Answer is the result that the body shows, if the cache took part; else its Entry is nil.
	Answer cache.Answer
	// Stream writes a response that is not known as a whole. All fields above but Header and Quotas are then ignored. If it returns an error before
	// anything was sent, the error is answered instead.
	Stream func(http.ResponseWriter) error
}

// CacheControl is what a client may store of a response.
type CacheControl uint8

// What a client may store.
const (
	NoStore    CacheControl = iota // nothing
	Revalidate                     // everything, if it revalidates it before each use
	WhileFresh                     // everything, while the result is fresh
	Unsaid                         // there is nothing to keep
)

// Spent is where the time of a response went, and how many of its buckets were computed.
type Spent struct {
	Compile, Probe, ClickHouse time.Duration
	Peer                       time.Duration // how long the server that owns the result took; includes the others
	Buckets                    execution.Buckets
}

// JSON returns a response with v as its body. Encoding v cannot fail: it holds only what the server put there.
func JSON(status int, v any) *Response { return Raw(status, jsontext.Append(nil, v)) }

// Raw returns a response whose body is JSON already.
func Raw(status int, body []byte) *Response {
	return &Response{Status: status, Body: cache.Body{Bytes: body}}
}

// NoContent returns a response without a body.
func NoContent() *Response { return &Response{Status: http.StatusNoContent} }

// With sets the caller's remaining quotas. A nil response, as beside an error, becomes one with nothing but the quotas.
func (r *Response) With(left execution.Quotas) *Response {
	if r == nil {
		r = new(Response)
	}
	r.Quotas = left
	return r
}

// Header values that many responses have. A response needs a slice of its own for each: Caddy's header directive writes into what it replaces.
const (
	JSONType = "application/json"
	Vary     = "Authorization, Origin, Accept, Accept-Encoding"
)

// Header returns the first value of a request's header. The name must be in canonical form, which saves the conversion of http.Header.Get.
func Header(r *http.Request, canonical string) string {
	if values := r.Header[canonical]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Write sends a response. All responses but streams are sent here.
func Write(w http.ResponseWriter, r *http.Request, start time.Time, res *Response) {
	code := describe(w.Header(), r, start, res)
	w.WriteHeader(code)
	if code == http.StatusNotModified || res.Body.Bytes == nil {
		return
	}
	if len(res.Body.Bytes) > memory.Large {
		defer LimitSending(w, len(res.Body.Bytes))()
	}
	_, _ = w.Write(res.Body.Bytes) // if the client is gone, there is nobody to tell
}

// LimitSending gives the client time to receive that many bytes: see [memory.Deadline]. end is called when they are written.
func LimitSending(w http.ResponseWriter, bytes int) (end func()) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(memory.Deadline(time.Now(), bytes)) // fails if the connection supports none
	return func() {
		_ = control.Flush() // what is buffered has no deadline after this
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// isKnown reports whether the client has the body already.
func (r *Response) isKnown(to *http.Request) bool {
	match := Header(to, "If-None-Match")
	return match != "" && r.Body.ETag != "" && cache.MatchETag(match, r.Body.ETag)
}

// describe sets the headers of a response, and returns its status: 304 if the client has it already.
func describe(h http.Header, r *http.Request, start time.Time, res *Response) (code int) {
	setHeaders(h, res)
	rendered := res.Body.ContentLength != "" // by the cache, in the encoding that the client takes
	values := headerValues(start, res)
	if rendered && r.Method != http.MethodPost { // no cache stores the response to a POST without a Content-Location (RFC 9110, section 9.3.3)
		h["Vary"] = values[8:9:9]
	}
	if res.Cache != Unsaid {
		h["Cache-Control"] = values[1:2:2]
	}
	if res.Answer.Entry != nil {
		h["Cache-Status"] = values[2:3:3]
		if res.Answer.Status.Cached() {
			h["Age"] = values[3:4:4]
		}
	}
	h["Server-Timing"] = values[4:5:5]
	code = res.Status
	if code == 0 {
		code = http.StatusOK
	}
	if values[0] != "" {
		h["Etag"] = values[0:1:1]
		if res.isKnown(r) {
			h["Content-Type"] = values[6:7:7]
			return http.StatusNotModified
		}
	}
	if res.Body.Bytes == nil {
		return code
	}
	h["Content-Type"] = values[6:7:7] // once: assigning to a full map of eight makes it grow, even if the key exists
	if res.Body.Encoding != cache.Identity {
		values[7] = res.Body.Encoding.String()
		h["Content-Encoding"] = values[7:8:8]
	}
	if !rendered || !serverCounts(r, len(res.Body.Bytes)) {
		h["Content-Length"] = values[5:6:6]
	}
	return code
}

// headerValues returns the values that describe has slices of. Those that are made for the response are parts of one string.
func headerValues(start time.Time, res *Response) *[9]string {
	text := make([]byte, 0, 256)
	switch res.Cache {
	case NoStore:
		text = append(text, "no-store"...)
	case Revalidate:
		text = append(text, "private, no-cache"...)
	case WhileFresh:
		text = append(text, "private, max-age="...)
		fresh := res.Answer.FreshFor
		if res.Answer.Status.Cached() {
			fresh += res.Answer.Age // clients take the header Age away again: RFC 9111, section 4.2
		}
		text = appendSeconds(text, fresh)
	case Unsaid:
	}
	control := len(text)
	if res.Answer.Entry != nil {
		text = AppendCacheStatus(text, res.Answer)
	}
	status := len(text)
	text = appendSeconds(text, res.Answer.Age)
	age := len(text)
	text = res.Spent.Append(text, time.Since(start))
	timing := len(text)
	length := res.Body.ContentLength
	if length == "" {
		text = strconv.AppendInt(text, int64(len(res.Body.Bytes)), 10)
	}
	all := string(text)
	return &[...]string{
		res.Body.ETag, all[:control], all[control:status], all[status:age], all[age:timing], cmp.Or(length, all[timing:]), cmp.Or(res.Type, JSONType), "", Vary,
	}
}

// maxCounted is the longest body, in bytes, that net/http buffers until the handler returns. It then sets Content-Length by itself.
const maxCounted = 2048

// serverCounts reports whether net/http sets Content-Length by itself. A cached run leaves it to that: it then has eight headers, and a larger map costs
// each request several allocations, here and in net/http's copy.
func serverCounts(r *http.Request, length int) bool {
	return r.ProtoMajor == 1 && r.Method == http.MethodPost && 0 < length && length <= maxCounted
}

// setHeaders sets the headers that errors and streams are sent with too.
func setHeaders(h http.Header, res *Response) {
	for name, values := range res.Header {
		h[name] = slices.Clone(values)
	}
	SetQuotas(h, res.Quotas)
}

// SetQuotas sets the headers with the caller's remaining quotas; nil sets none.
func SetQuotas(h http.Header, qs execution.Quotas) {
	if qs != nil {
		policy, left := qs.Fields(time.Now())
		h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{left}
	}
}

func appendSeconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendInt(dst, int64(d/time.Second), 10)
}

// AppendCacheStatus appends the value of the Cache-Status header, in the terms of RFC 9211.
func AppendCacheStatus(dst []byte, got cache.Answer) []byte {
	dst = append(dst, "caddy-analytics; "...)
	switch got.Status {
	case cache.Hit, cache.Renewed:
		dst = appendSeconds(append(dst, "hit; ttl="...), got.FreshFor)
		if got.Entry != nil && got.Entry.Renewed {
			dst = append(dst, "; detail=unchanged"...)
		}
		return dst
	case cache.Stale:
		return append(dst, "hit; ttl=0; detail=revalidating"...)
	case cache.StaleError:
		return append(dst, "hit; ttl=0; detail=database-unavailable"...)
	case cache.Pinned:
		return append(dst, "hit; ttl=0; detail=pinned"...)
	case cache.Fetched:
		return append(appendSeconds(append(dst, "hit; ttl="...), got.FreshFor), "; detail=peer"...)
	case cache.Coalesced, cache.Refreshed, cache.Miss:
	}
	var buckets execution.Buckets
	byPeer := false
	if got.Entry != nil {
		if done, ok := got.Entry.Meta.(*execution.Details); ok {
			buckets, byPeer = done.Buckets, done.Peer > 0
		}
	}
	switch {
	case got.Status == cache.Refreshed:
		dst = append(dst, "fwd=request"...)
	case buckets.Computed < buckets.All:
		dst = append(dst, "fwd=partial"...)
	default:
		dst = append(dst, "fwd=miss"...)
	}
	if got.Status == cache.Coalesced {
		dst = append(dst, "; collapsed"...)
	} else {
		dst = append(dst, "; stored"...)
	}
	switch {
	case byPeer && buckets.All > 0:
		dst = append(appendBuckets(append(dst, `; detail="peer, `...), buckets), ` buckets computed"`...)
	case byPeer:
		dst = append(dst, "; detail=peer"...)
	case buckets.All > 0:
		dst = append(appendBuckets(append(dst, `; detail="`...), buckets), ` buckets computed"`...)
	}
	return dst
}

func appendBuckets(dst []byte, b execution.Buckets) []byte {
	dst = append(strconv.AppendInt(dst, int64(b.Computed), 10), " of "...)
	return strconv.AppendInt(dst, int64(b.All), 10)
}

// Append appends the value of the Server-Timing header: the milliseconds of the whole and of each part that took place. For a result assembled from time
// buckets, it adds how many of them were computed.
func (s Spent) Append(text []byte, total time.Duration) []byte {
	text = appendTiming(text, "total", total)
	if s.Compile > 0 {
		text = appendTiming(append(text, ", "...), "compile", s.Compile)
	}
	if s.Probe > 0 {
		text = appendTiming(append(text, ", "...), "probe", s.Probe)
	}
	if s.ClickHouse > 0 {
		text = appendTiming(append(text, ", "...), "clickhouse", s.ClickHouse)
	}
	if s.Peer > 0 {
		text = appendTiming(append(text, ", "...), "peer", s.Peer)
	}
	if s.Buckets.All > 0 {
		text = append(appendBuckets(append(text, `, buckets;desc="`...), s.Buckets), '"')
	}
	return text
}

func appendTiming(text []byte, part string, took time.Duration) []byte {
	text = append(append(text, part...), ";dur="...)
	return strconv.AppendFloat(text, float64(took)/float64(time.Millisecond), 'f', 3, 64)
}
