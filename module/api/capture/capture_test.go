package capture_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
)

const (
	token = "phc_Zm9ydHktdGhyZWUtY2hhcmFjdGVycy1vZi10b2tlbg"
	id    = "0190f3c2-aaaa-7abc-8def-000000000001"
)

// site is a capture that stores its entries in memory.
type site struct {
	*capture.Capture

	mu      sync.Mutex
	entries []capture.Entry
	err     error // of the next appends
	blind   error // of looking up a token
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.Capture = &capture.Capture{
		Project: func(_ context.Context, given string) (int64, bool, error) { return 7, given == token, s.blind },
		Append: func(_ context.Context, e capture.Entry) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.err == nil {
				s.entries = append(s.entries, e)
			}
			return s.err
		},
		ClientIP: func(*http.Request) string { return "203.0.113.7" },
		Logger:   zaptest.NewLogger(t), Counters: capture.NewCounters(), Memory: capture.NewMemory(capture.DefaultMemory),
	}
	return s
}

// names returns the names of the events that were stored.
func (s *site) names(t *testing.T) (names []string) {
	t.Helper()
	for _, e := range s.entries {
		if e.Project != 7 || e.Arrived.IsZero() {
			t.Fatalf("an entry is %+v", e)
		}
		n := 0
		for text := range bytes.Lines(e.Data) {
			r, err := new(record.Parser).Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			names = append(names, r.Event)
			n++
		}
		if n != e.Events {
			t.Fatalf("%d events are counted as %d", n, e.Events)
		}
	}
	return names
}

// send sends a request with headers, given as names and values.
func (s *site) send(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if !s.Serve(w, r) {
		t.Fatalf("%s is not served", path)
	}
	return w
}

func event(name string) string {
	return `{"api_key":"` + token + `","event":"` + name + `","distinct_id":"d"}`
}

// body is a JSON body as values.
func body(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%q: %v", w.Body, err)
	}
	return v
}

var eventPaths = []string{"/batch", "/i/v0/e", "/e", "/capture", "/track", "/engage", "/i/v0/ai/batch"}

func TestRoutes(t *testing.T) {
	s := newSite(t)
	var want []string
	for _, path := range eventPaths {
		for _, end := range []string{"", "/"} {
			w := s.send(t, http.MethodPost, path+end, event(path))
			if w.Code != http.StatusOK || w.Body.String() != `{"status": "Ok"}` || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s %v", path+end, w.Code, w.Body, w.Header())
			}
			want = append(want, path)
		}
		w := s.send(t, http.MethodGet, path+"/?data="+strings.ReplaceAll(event("get"+path), `"`, "%22"), "")
		if w.Code != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
		want = append(want, "get"+path)
	}
	if diff := cmp.Diff(want, s.names(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/", "", "/e/x", "/i/v0", "/i/v0/ai", "/i/v1/analytics", "/s/", "/static/array.js", "/array/config", "/array//config", "/array/x/y", "/array/x/config/y", "/api/e/", "/E/"} {
		if capture.Serves(path) || path != "" && s.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil)) {
			t.Errorf("%q is served", path)
		}
	}
}

func TestMethods(t *testing.T) {
	s := newSite(t)
	tests := []struct{ path, methods string }{
		{"/e/", "GET POST OPTIONS"},
		{"/flags/", "POST OPTIONS"},
		{"/decide/", "GET POST OPTIONS"},
		{"/i/v1/analytics/events", "POST OPTIONS"},
		{"/i/v1/ai/events", "POST OPTIONS"},
		{"/array/" + token + "/config", "GET OPTIONS"},
		{"/array/" + token + "/config.js", "GET OPTIONS"},
	}
	for _, tt := range tests {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "TRACE", "OPTIONS"} {
			w := s.send(t, method, tt.path, "")
			if refused := w.Code == http.StatusMethodNotAllowed; refused == strings.Contains(tt.methods, method) {
				t.Errorf("%s %s: %d", method, tt.path, w.Code)
			} else if refused && w.Header().Get("Allow") == "" {
				t.Errorf("%s %s: no Allow", method, tt.path)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	s := newSite(t)
	const origin = "https://shop.example"
	for _, path := range append(eventPaths, "/i/v1/analytics/events", "/i/v1/ai/events", "/flags", "/decide", "/array/x/config", "/array/x/config.js") {
		w := s.send(t, http.MethodOptions, path+"/", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-page-id")
		got := []string{fmt.Sprint(w.Code)}
		for _, name := range []string{"Allow-Origin", "Allow-Credentials", "Allow-Methods", "Allow-Headers"} {
			got = append(got, w.Header().Get("Access-Control-"+name))
		}
		if diff := cmp.Diff([]string{"204", origin, "true", "GET, POST, OPTIONS", "content-type,x-page-id"}, got); diff != "" {
			t.Errorf("preflight of %s (-want +got):\n%s", path, diff)
		}
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut} { // refusals too
			h := s.send(t, method, path, "{", "Origin", origin).Header()
			if h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Credentials") != "true" || h.Get("Vary") != "Origin" ||
				h.Get("Access-Control-Expose-Headers") != "Retry-After" {
				t.Errorf("%s %s: %v", method, path, h)
			}
		}
	}
	if h := s.send(t, http.MethodPost, "/e/", event("e")).Header(); h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
		t.Errorf("without an origin: %v", h)
	}
}

// TestRefusals checks the response for each code, that nothing is stored, and that it is counted.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name, body   string
		status       int
		typ, code    string
		attr, index  any
		path, header string
	}{
		{name: "nothing", status: 400, typ: "invalid_request", code: "empty_payload"},
		{name: "no JSON", body: "{", status: 400, typ: "invalid_request", code: "parse_error"},
		{name: "no events", body: "[]", status: 400, typ: "validation_error", code: "empty_batch"},
		{name: "no name", body: `[` + event("good") + `,{"distinct_id":"d"}]`, status: 400, typ: "validation_error", code: "missing_event_name", attr: "event", index: 1.0},
		{name: "no id", body: `{"token":"` + token + `","event":"e"}`, status: 400, typ: "validation_error", code: "missing_distinct_id", attr: "distinct_id", index: 0.0},
		{name: "a bad uuid", body: `[` + event("good") + `,` + event(`e","uuid":"x`) + `,` + event("good") + `]`, status: 400, typ: "validation_error", code: "invalid_event", attr: "uuid", index: 1.0},
		{name: "no token", body: `{"event":"e","distinct_id":"d"}`, status: 401, typ: "authentication_error", code: "missing_api_key"},
		{name: "two tokens", body: `[` + event("e") + `,{"token":"x"}]`, status: 401, typ: "authentication_error", code: "inconsistent_api_keys"},
		{name: "a bad token", body: `{"token":"phx_1","event":"e","distinct_id":"d"}`, status: 401, typ: "authentication_error", code: "invalid_api_key"},
		{name: "an unknown token", body: strings.Replace(event("e"), token, "phc_unknown", 1), status: 401, typ: "authentication_error", code: "invalid_api_key"},
		{name: "too large", body: event(strings.Repeat("x", 3000)), status: 413, typ: "invalid_request", code: "payload_too_large"},
		{name: "too large an event", body: `[` + event("good") + `,` + event(strings.Repeat("x", 1000)) + `]`, status: 413, typ: "invalid_request", code: "payload_too_large", index: 1.0},
		{name: "v1 type", path: "/i/v1/analytics/events", header: "Content-Type", status: 415, typ: "invalid_request", code: "unsupported_media_type"},
		{name: "v1 id", path: "/i/v1/analytics/events", header: "PostHog-Request-Id", status: 400, typ: "validation_error", code: "invalid_header"},
		{name: "v1 token", path: "/i/v1/analytics/events", header: "Authorization", status: 401, typ: "authentication_error", code: "invalid_api_key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.MaxBody, s.Limits.Event = 2000, 1000
			path := "/batch/"
			var headers []string
			if tt.path != "" {
				path, headers = tt.path, v1Headers(tt.header, "x")
			}
			w := s.send(t, http.MethodPost, path, tt.body, headers...)
			got := body(t, w)
			want := map[string]any{"type": tt.typ, "code": tt.code, "attr": tt.attr, "detail": got["detail"]}
			if tt.index != nil {
				want["extra"] = map[string]any{"index": tt.index}
			}
			if diff := cmp.Diff(want, got); diff != "" || w.Code != tt.status || got["detail"] == "" {
				t.Errorf("%d (-want +got):\n%s", w.Code, diff)
			}
			if len(s.entries) > 0 {
				t.Errorf("%d entries were kept", len(s.entries))
			}
			s.Counters.Refused(func(reason string, n int64) {
				if want := map[bool]int64{true: 1}[reason == tt.code]; n != want {
					t.Errorf("%d requests are counted as %s, want %d", n, reason, want)
				}
			})
		})
	}
}

// TestAIEvents checks that the routes for AI events take events of 8 MiB, and more if the limit of others is higher.
func TestAIEvents(t *testing.T) {
	const oldest, newest = "/i/v0/ai/batch/", "/i/v1/ai/events"
	sized := func(size int) string { return `","properties":{"$ai_input":"` + strings.Repeat("x", size) + `"},"x":"` }
	const known = 8<<20 + 60<<10
	tests := []struct {
		name, path  string
		limit, size int
		taken       bool
	}{
		{"any route", "/batch/", 1 << 20, known, false},
		{"batch", oldest, 1 << 20, known, true},
		{"batch by default", oldest, 0, known, true},
		{"more than 8 MiB", oldest, 1 << 20, known + 64<<10, false},
		{"more than 8 MiB, permitted", oldest, 16 << 20, known + 64<<10, true},
		{"newest, any route", "/i/v1/analytics/events", 1 << 20, known, false},
		{"newest", newest, 1 << 20, known, true},
		{"newest, more than 8 MiB", newest, 1 << 20, known + 64<<10, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.Limits.Event = tt.limit
			text, v1 := event("$ai_generation"+sized(tt.size)), strings.HasPrefix(tt.path, "/i/v1/")
			if v1 {
				text = strings.Replace(v1Body(id), `"event":"e`, `"event":"$ai_generation`+sized(tt.size), 1)
			}
			w := s.send(t, http.MethodPost, tt.path, text, v1Headers("", "")...)
			if taken := len(s.names(t)) == 1; taken != tt.taken || (w.Code == http.StatusOK) != (v1 || tt.taken) {
				t.Errorf("%d %s, taken: %v", w.Code, w.Body, taken)
			}
		})
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

func TestBodyLimits(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/e/", "/flags/", "/decide/", "/i/v1/analytics/events"} {
		r := httptest.NewRequest(http.MethodPost, path, unread{t})
		r.ContentLength = capture.DefaultBody + 1
		for i, h := 0, v1Headers("", ""); i < len(h); i += 2 {
			r.Header.Set(h[i], h[i+1])
		}
		w := httptest.NewRecorder()
		if s.Serve(w, r); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of a large Content-Length: %d %s", path, w.Code, w.Body)
		}
	}
	s.MaxBody = 100
	for size, want := range map[int]int{100: 400, 101: 413, 100_000: 413} { // without a length, as with chunked encoding
		r := httptest.NewRequest(http.MethodPost, "/e/", io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
		w := httptest.NewRecorder()
		if s.Serve(w, r); w.Code != want {
			t.Errorf("%d bytes: %d, want %d", size, w.Code, want)
		}
	}
	s.MaxBody = 0
	r := httptest.NewRequest(http.MethodPost, "/e/", nil)
	w := httptest.NewRecorder()
	r.Body = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(event("e"))), 10) // the site's own limit
	if s.Serve(w, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("beyond the site's limit: %d %s", w.Code, w.Body)
	}
}

func TestAnswers(t *testing.T) {
	s := newSite(t)
	if w := s.send(t, http.MethodPost, "/e/?beacon=1", event("a")); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Errorf("beacon=1: %d %s", w.Code, w.Body)
	}
	if w := s.send(t, http.MethodPost, "/e/?beacon=0", event("b")); w.Code != http.StatusOK {
		t.Errorf("beacon=0: %d", w.Code)
	}
	if w := s.send(t, http.MethodPost, "/e/?beacon=1", "{"); w.Code != http.StatusBadRequest {
		t.Errorf("a refused beacon: %d", w.Code)
	}
	if w := s.send(t, http.MethodPost, "/e/", event("$snapshot")); w.Code != http.StatusOK || w.Body.String() != `{"status": "Ok"}` {
		t.Errorf("not stored: %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.names(t)); diff != "" || len(s.entries) != 2 {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if e, i, n := s.Counters.Events.Load(), s.Counters.Ignored.Load(), s.Counters.Requests.Load(); e != 2 || i != 1 || n != 4 {
		t.Errorf("%d events, %d ignored, %d requests", e, i, n)
	}
}

// TestCountersOfAProject: requests count for a project once their token is known, and for no other project.
func TestCountersOfAProject(t *testing.T) {
	s := newSite(t)
	s.send(t, http.MethodPost, "/e/", event("a"))
	s.send(t, http.MethodPost, "/e/", event("$snapshot"))
	s.send(t, http.MethodPost, "/e/", event(`e","uuid":"x`))
	s.send(t, http.MethodPost, "/e/", "{")
	s.send(t, http.MethodPost, "/e/", strings.Replace(event("e"), token, "phc_unknown", 1))
	s.err = capture.ErrFull
	s.send(t, http.MethodPost, "/e/", event("b"))
	for project, want := range map[int64]map[string]int64{7: {"events": 1, "ignored": 1, "invalid_event": 1, "buffer_full": 1}, 8: {}} {
		of := s.Counters.Of(project)
		got := map[string]int64{}
		note := func(name string, n int64) {
			if n > 0 {
				got[name] = n
			}
		}
		note("events", of.Events.Load())
		note("ignored", of.Ignored.Load())
		of.Refused(note)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("project %d (-want +got):\n%s", project, diff)
		}
	}
}

// TestNotKept: events that the log does not accept are refused, so that clients send them again.
func TestNotKept(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code string
	}{{fmt.Errorf("appending: %w", capture.ErrFull), "buffer_full"}, {errors.New("the disk is gone"), "buffer_unavailable"}} {
		s := newSite(t)
		s.err = tt.err
		w := s.send(t, http.MethodPost, "/e/", event("e"))
		if got := body(t, w); w.Code != http.StatusServiceUnavailable || got["code"] != tt.code || got["type"] != "server_error" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %v %v", tt.err, w.Code, got, w.Header())
		}
		if strings.Contains(w.Body.String(), "disk is gone") {
			t.Errorf("the cause is told: %s", w.Body)
		}
		v1 := s.send(t, http.MethodPost, "/i/v1/analytics/events", v1Body(id), v1Headers("", "")...)
		if v1.Code != http.StatusServiceUnavailable || v1.Header().Get("Retry-After") == "" {
			t.Errorf("v1, %v: %d %s", tt.err, v1.Code, v1.Body)
		}
		if s.Counters.Events.Load() != 0 {
			t.Error("events are counted that were not kept")
		}
	}
}

// TestTokenNotLookedUp: if a token can't be looked up now, the events are refused, so that clients send them again.
func TestTokenNotLookedUp(t *testing.T) {
	s := newSite(t)
	s.blind = errors.New("the registry is unavailable")
	for path, w := range map[string]*httptest.ResponseRecorder{
		"/e/":                         s.send(t, http.MethodPost, "/e/", event("e")),
		"/i/v1/analytics/events":      s.send(t, http.MethodPost, "/i/v1/analytics/events", v1Body(id), v1Headers("", "")...),
		"/flags/":                     s.send(t, http.MethodPost, "/flags/", event("e")),
		"/array/" + token + "/config": s.send(t, http.MethodGet, "/array/"+token+"/config", ""),
	} {
		if got := body(t, w); w.Code != http.StatusServiceUnavailable || got["code"] != "registry_unavailable" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %v", path, w.Code, got, w.Header())
		}
	}
	if len(s.entries) > 0 {
		t.Error("events are kept")
	}
}

// TestTokenBeforeEvents: an unknown token is reported before mistakes in the events, but after a payload that can't be read.
func TestTokenBeforeEvents(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct {
		body string
		want int
	}{
		{`{"api_key":"phc_unknown","distinct_id":"x"}`, http.StatusUnauthorized},
		{`{"api_key":"phc_unknown","batch":[{"event":"e","distinct_id":"x"},{"event":"e"}]}`, http.StatusUnauthorized},
		{`[{"token":"phc_unknown","event":"e","distinct_id":"x","uuid":"no"}]`, http.StatusUnauthorized},
		{`{"api_key":"` + token + `","distinct_id":"x"}`, http.StatusBadRequest},
		{`{"api_key":"phc_unknown","batch":[]}`, http.StatusBadRequest},
		{`{"api_key":"phc_unknown","event":"e","distinct_id":"x"`, http.StatusBadRequest},
	} {
		if w := s.send(t, http.MethodPost, "/e/", tt.body); w.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.body, w.Code, w.Body, tt.want)
		}
	}
}

func TestRate(t *testing.T) {
	s := newSite(t)
	asked := 0
	var wait time.Duration
	s.Limit = func(given string, events int, _ time.Time) (func(), time.Duration) {
		if given != token {
			t.Errorf("asked for %q", given)
		}
		asked += events
		return func() { asked -= events }, wait
	}
	s.err = capture.ErrFull
	if w := s.send(t, http.MethodPost, "/e/", event("e")); w.Code != http.StatusServiceUnavailable || asked != 0 {
		t.Errorf("an event that is not kept: %d, and counts as %d", w.Code, asked)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	s.err = context.Canceled
	s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, "/e/", strings.NewReader(event("e"))))
	if asked != 1 {
		t.Errorf("an event that may have been kept counts as %d", asked)
	}
	s.err, asked, wait = nil, 0, 1500*time.Millisecond
	w := s.send(t, http.MethodPost, "/e/", "["+event("e")+","+event("$snapshot")+"]")
	if got := body(t, w); w.Code != http.StatusTooManyRequests || got["code"] != "throttled" || got["type"] != "throttled_error" || w.Header().Get("Retry-After") != "2" {
		t.Errorf("%d %v %v", w.Code, got, w.Header())
	}
	if asked != 2 || len(s.entries) > 0 {
		t.Errorf("asked for %d events, %d entries", asked, len(s.entries))
	}
}

// TestMemory: concurrent requests stay within the memory that they share, and return all of it.
func TestMemory(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 32<<20))
	_, _ = z.Write([]byte(event("e")))
	_ = z.Close()
	s := newSite(t)
	s.Memory = capture.NewMemory(40 << 20)
	// More than there is for large requests: it waits a while for others to return some, but there are none.
	w := s.send(t, http.MethodPost, "/e/", packed.String())
	if got := body(t, w); w.Code != http.StatusServiceUnavailable || got["code"] != "server_busy" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, got)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if w := s.send(t, http.MethodPost, "/e/", event("e")); w.Code != http.StatusOK {
				t.Errorf("a usual one: %d %s", w.Code, w.Body)
			}
		})
	}
	wait.Wait()
	if got := s.Memory.Lent(); got != 0 {
		t.Errorf("%d bytes are not given back", got)
	}
}

func TestClientIP(t *testing.T) {
	s := newSite(t)
	s.ClientIP = nil
	for address, want := range map[string]string{"192.0.2.1:1234": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "": ""} {
		r := httptest.NewRequest(http.MethodPost, "/e/", strings.NewReader(event("e")))
		r.RemoteAddr = address
		s.entries = nil
		s.Serve(httptest.NewRecorder(), r)
		got, err := new(record.Parser).Parse(s.entries[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		if ip, _ := got.Properties.Get("$ip").Text(); ip != want {
			t.Errorf("%q gives %q, want %q", address, ip, want)
		}
	}
}

// v1Headers returns the headers of a valid request of the newest route, with one changed.
func v1Headers(changed, value string) []string {
	all := []string{
		"Authorization", "Bearer " + token, "Content-Type", "application/json", "User-Agent", "x", "PostHog-Sdk-Info", "posthog-node/5.70.0",
		"PostHog-Attempt", "1", "PostHog-Request-Id", id, "PostHog-Request-Timestamp", "2024-06-01T12:00:05.000Z",
	}
	if changed != "" {
		all = append(all, changed, value)
	}
	return all
}

func v1Body(ids ...string) string {
	var events []string
	for _, id := range ids {
		events = append(events, `{"event":"e","uuid":"`+id+`","distinct_id":"d","timestamp":"2024-06-01T12:00:00Z"}`)
	}
	return `{"created_at":"2024-06-01T12:00:00Z","batch":[` + strings.Join(events, ",") + `]}`
}

func TestV1(t *testing.T) {
	s := newSite(t)
	const other = "0190f3c2-aaaa-7abc-8def-000000000002"
	bad := `,{"event":"","uuid":"` + strings.ToUpper(other) + `","distinct_id":"d","timestamp":"2024-06-01T12:00:00Z"}]`
	w := s.send(t, http.MethodPost, "/i/v1/analytics/events/", strings.Replace(v1Body(id), "]", bad, 1), v1Headers("", "")...)
	want := `{"results":{"` + id + `":{"result":"ok"},"` + other + `":{"result":"drop","details":"missing_event_name"}}}`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	if diff := cmp.Diff([]string{"e"}, s.names(t)); diff != "" || s.Counters.Dropped.Load() != 1 || s.Counters.Of(7).Dropped.Load() != 1 {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// The token is checked before the body.
	r := httptest.NewRequest(http.MethodPost, "/i/v1/analytics/events", unread{t})
	for i, h := 0, v1Headers("Authorization", "Bearer phc_unknown"); i < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	if w := httptest.NewRecorder(); s.Serve(w, r) && w.Code != http.StatusUnauthorized {
		t.Errorf("an unknown token: %d", w.Code)
	}
}
