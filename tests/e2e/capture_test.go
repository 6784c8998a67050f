package e2e_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// captureTokens runs a command for a project's capture tokens, and returns the tokens, newest first.
func captureTokens(t *testing.T, c *harness.Client, command ...string) []string {
	t.Helper()
	var list struct {
		Project int64
		Tokens  []struct{ Token string }
	}
	c.Server.MustCommand(t, &list, nil, append(append([]string{"project", "token"}, command...), "--project", strconv.FormatInt(c.Project, 10))...)
	if list.Project != c.Project || len(list.Tokens) == 0 {
		t.Fatalf("project %d has the tokens %+v", c.Project, list)
	}
	var tokens []string
	for _, token := range list.Tokens {
		tokens = append(tokens, token.Token)
	}
	return tokens
}

// page is a client without a key, whose requests come from a page on another site.
func page(s *harness.Server) *harness.Client {
	return &harness.Client{Server: s, Header: http.Header{"Origin": {"https://shop.example"}}}
}

// captured is the body of a request with an event.
func captured(token, event string) map[string]any {
	return map[string]any{"api_key": token, "event": event, "distinct_id": "u1"}
}

// refused checks a refusal, which pages on other sites can read.
func refused(t *testing.T, answer harness.Answer, status int, code string) {
	t.Helper()
	if answer.Status != status || answer.Body["code"] != code {
		t.Errorf("the response is %d %s, want %d %s", answer.Status, answer.Raw, status, code)
	}
	if h := answer.Header; h.Get("Access-Control-Allow-Origin") != "https://shop.example" || h.Get("Access-Control-Expose-Headers") != "Retry-After" {
		t.Errorf("a refusal with %d has the headers %v", answer.Status, h)
	}
}

// TestCaptureTokens follows a token from its project's creation to its own end.
func TestCaptureTokens(t *testing.T) {
	c, other := newProject(t), newProject(t)
	site := page(server)
	send := func(token, event string) harness.Answer {
		t.Helper()
		return site.Do(t, http.MethodPost, "/e/", captured(token, event))
	}
	kept := func(token, event string) {
		t.Helper()
		if answer := send(token, event); answer.Status != http.StatusOK || string(answer.Raw) != `{"status": "Ok"}` {
			t.Fatalf("capturing %s: %d %s", event, answer.Status, answer.Raw)
		}
	}
	first, theirs := captureTokens(t, c, "show")[0], captureTokens(t, other, "show")[0]
	kept(first, "before")
	kept(theirs, "theirs")

	rotated := captureTokens(t, c, "rotate")
	if len(rotated) != 2 || rotated[0] == first || rotated[1] != first {
		t.Fatalf("after the rotation of %s there are %q", first, rotated)
	}
	if answer := c.Do(t, http.MethodGet, fmt.Sprintf("/api/projects/%d/", c.Project), nil); answer.Body["api_token"] != rotated[0] {
		t.Errorf("the project's record has the token %v, want the newest one, %s", answer.Body["api_token"], rotated[0])
	}
	kept(first, "old")
	kept(rotated[0], "new")

	project := strconv.FormatInt(c.Project, 10)
	if _, stderr, err := server.Command(nil, "project", "token", "revoke", theirs, "--project", project); err == nil {
		t.Errorf("a project revokes the token of another; %s", stderr)
	}
	if left := captureTokens(t, c, "revoke", first); len(left) != 1 || left[0] != rotated[0] {
		t.Errorf("after the revocation there are %q", left)
	}
	refused(t, send(first, "never"), http.StatusUnauthorized, "invalid_api_key")
	if _, stderr, err := server.Command(nil, "project", "token", "revoke", rotated[0], "--project", project); err == nil || !strings.Contains(stderr, "revoking a capture token: It is the project's only one. Rotate it first.") {
		t.Errorf("revoking the only token: %v, %s", err, stderr)
	}
	kept(rotated[0], "after")
	kept(theirs, "theirs too")
	c.Shows(t, "select event from events order by event", []any{"after"}, []any{"before"}, []any{"new"}, []any{"old"})
	other.Shows(t, "select event from events order by event", []any{"theirs"}, []any{"theirs too"})

	// It can send events, and nothing else.
	for _, path := range []string{"query/", "insights/", "endpoints/", fmt.Sprintf("/api/projects/%d/", c.Project), "/api/users/@me/"} {
		method := http.MethodGet
		if path == "query/" {
			method = http.MethodPost
		}
		answer := server.Client(c.Project, rotated[0]).Do(t, method, path, map[string]any{})
		detail, _ := answer.Body["detail"].(string)
		if answer.Status != http.StatusUnauthorized || !strings.Contains(detail, "capture token") {
			t.Errorf("%s %s with a capture token: %d %s", method, path, answer.Status, answer.Raw)
		}
	}
	for _, key := range []string{c.Key, "phc_" + strings.Repeat("a", 40), "", " "} {
		answer := send(key, "never")
		if answer.Status != http.StatusUnauthorized {
			t.Errorf("capturing with %.8q: %d %s", key, answer.Status, answer.Raw)
		}
	}
}

// TestCaptureLimits checks the configured limits, and that requests within them are accepted.
func TestCaptureLimits(t *testing.T) {
	s := harness.Start(t, "capture {", "\trate 10/m", "\tmax_event_size 2KiB", "\tmax_batch_size 10KiB", "}")
	id, key := s.Project(t, "limits")
	c, site := s.Client(id, key), page(s)
	token := captureTokens(t, c, "show")[0]
	large := func(bytes int) map[string]any {
		event := captured(token, "large")
		event["properties"] = map[string]any{"text": strings.Repeat("x", bytes)}
		return event
	}
	batch := func(n int, event map[string]any) map[string]any {
		events := make([]any, n)
		for i := range events {
			events[i] = event
		}
		return map[string]any{"api_key": token, "batch": events}
	}
	refused(t, site.Do(t, http.MethodPost, "/e/", large(3000)), http.StatusRequestEntityTooLarge, "payload_too_large")
	refused(t, site.Do(t, http.MethodPost, "/batch/", batch(9, large(1200))), http.StatusRequestEntityTooLarge, "payload_too_large")
	if answer := site.Do(t, http.MethodPost, "/batch/", batch(5, large(1500))); answer.Status != http.StatusOK {
		t.Errorf("within the limits: %d %s", answer.Status, answer.Raw)
	}

	// Five of ten events of this minute are left.
	throttled := func(answer harness.Answer) {
		t.Helper()
		refused(t, answer, http.StatusTooManyRequests, "throttled")
		if wait, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After is %q", answer.Header.Get("Retry-After"))
		}
	}
	throttled(site.Do(t, http.MethodPost, "/batch/", batch(10, captured(token, "many"))))
	if answer := site.Do(t, http.MethodPost, "/batch/", batch(5, captured(token, "few"))); answer.Status != http.StatusOK {
		t.Errorf("within the rate: %d %s", answer.Status, answer.Raw)
	}
	throttled(site.Do(t, http.MethodPost, "/batch/", batch(5, captured(token, "few"))))
	others, othersKey := s.Project(t, "others")
	if answer := site.Do(t, http.MethodPost, "/e/", captured(captureTokens(t, s.Client(others, othersKey), "show")[0], "theirs")); answer.Status != http.StatusOK {
		t.Errorf("another token is throttled: %d %s", answer.Status, answer.Raw)
	}
	c.Shows(t, "select event, count() from events group by event order by event", []any{"few", 5.0}, []any{"large", 5.0})
}

// TestCaptureCounts compares the status and the metrics with what was sent.
func TestCaptureCounts(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "counts")
	c, site := s.Client(id, key), page(s)
	token := captureTokens(t, c, "show")[0]
	for range 3 {
		site.Do(t, http.MethodPost, "/batch/", map[string]any{"api_key": token, "batch": []any{captured("", "a"), captured("", "b"), captured("", "$snapshot")}})
	}
	site.Do(t, http.MethodPost, "/e/", captured("phc_"+strings.Repeat("a", 40), "never"))
	site.Do(t, http.MethodPost, "/e/", "[")
	site.Do(t, http.MethodPost, "/e/", "[")
	c.Shows(t, "select count() from events", []any{6.0})

	type status struct {
		Waiting   int64            `json:"waiting_events"`
		MaxBytes  int64            `json:"buffer_max_bytes"`
		Lag       float64          `json:"lag_seconds"`
		Failing   string           `json:"failing"`
		Accepted  int64            `json:"accepted_events"`
		Ignored   int64            `json:"ignored_events"`
		Refused   map[string]int64 `json:"refused_requests"`
		Delivered int64            `json:"delivered_events"`
		SetAside  int64            `json:"set_aside_events"`
		Aside     string           `json:"aside"`
	}
	want := status{MaxBytes: 4 << 30, Accepted: 6, Ignored: 3, Delivered: 6, Refused: map[string]int64{"invalid_api_key": 1, "parse_error": 2}}
	harness.Eventually(t, time.Minute, func() error { // events are in ClickHouse a moment before the log forgets them
		var got status
		s.MustCommand(t, &got, nil, "capture", "status")
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the status (-want +got):\n%s", diff)
		}
		return nil
	})
	metrics := samples(t, s)
	for name, want := range map[string]string{
		"accepted_events_total":  "6",
		"ignored_events_total":   "3",
		"delivered_events_total": "6",
		"set_aside_events_total": "0",
		"waiting_events":         "0",
		"lag_seconds":            "0",
		"buffer_max_bytes":       "4.294967296e+09",
		`refused_requests_total{reason="invalid_api_key"}`:   "1",
		`refused_requests_total{reason="parse_error"}`:       "2",
		`refused_requests_total{reason="payload_too_large"}`: "0",
	} {
		if got := metrics["caddy_analytics_capture_"+name]; got != want {
			t.Errorf("the metric %s is %q, want %s", name, got, want)
		}
	}
	for name := range metrics {
		if strings.Contains(name, token) {
			t.Errorf("a metric shows a token: %s", name)
		}
	}
}

// gzipped compresses a text, followed by a number of blanks.
func gzipped(t *testing.T, text string, blanks int) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte(" "), 1<<20)
	for range blanks >> 20 {
		if _, err := z.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestHostileCapture sends bodies designed to be expensive. Each is refused, even many at once, and takes little time and memory.
func TestHostileCapture(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "hostile")
	c, site := s.Client(id, key), page(s)
	token := captureTokens(t, c, "show")[0]
	event := func(properties string) []byte {
		return []byte(`{"api_key":"` + token + `","event":"e","distinct_id":"u1","properties":{` + properties + `}}`)
	}
	var names strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&names, `"k%d":%d,`, i, i)
	}
	manyKeys := strings.TrimSuffix(names.String(), ",")
	bodies := []struct {
		name   string
		body   []byte
		status int
		code   string
	}{
		{"1 GB in a small gzip", gzipped(t, "", 1<<30), 413, "payload_too_large"},
		{"100 MB in a small gzip, which is allowed", gzipped(t, "", 100<<20), 400, "parse_error"},
		{"an event and 1 GB in a small gzip", gzipped(t, string(event("")), 1<<30), 413, "payload_too_large"},
		{"10,000 nested lists", event(`"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), 400, "invalid_event"},
		{"10,000 nested objects", event(strings.Repeat(`"a":{`, 10_000) + strings.Repeat("}", 10_000)), 400, "invalid_event"},
		{"a million nested lists", bytes.Repeat([]byte("["), 1_000_000), 400, "parse_error"},
		{"a million keys", event(manyKeys), 413, "payload_too_large"},
		{"50,000 keys", event(strings.Join(strings.SplitN(manyKeys, ",", 50_001)[:50_000], ",")), 400, "invalid_event"},
		{"a million keys in a gzip", gzipped(t, string(event(manyKeys)), 0), 413, "payload_too_large"},
		{"invalid UTF-8", event("\"a\":\"\xff\xfe\""), 400, "parse_error"},
		{"cut off", event("")[:40], 400, "parse_error"},
		{"a damaged gzip", append(gzipped(t, "[]", 0)[:12], 1, 2, 3), 400, "parse_error"},
	}
	if answer := site.Do(t, http.MethodPost, "/e/", event(`"first":1`)); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Raw)
	}
	c.Shows(t, "select count() from events", []any{1.0})
	idle, err := s.Rest()
	measured := !errors.Is(err, fs.ErrNotExist) // /proc exists
	if measured && err != nil {
		t.Fatal(err)
	}
	const patience = 30 * time.Second // a hanging body takes longer, however busy the machine is
	for _, tt := range bodies {
		start := time.Now()
		refused(t, site.Do(t, http.MethodPost, "/batch/", tt.body), tt.status, tt.code)
		if took := time.Since(start); took > patience {
			t.Errorf("%s takes %s", tt.name, took)
		}
	}
	type result struct {
		name   string
		answer harness.Answer
		err    error
	}
	const rounds = 4
	results, again := make(chan result), map[string]bool{}
	for range rounds {
		for _, tt := range bodies {
			go func() {
				answer, err := site.Send(http.MethodPost, "/i/v0/e/", tt.body)
				results <- result{tt.name, answer, err}
			}()
		}
	}
	for range rounds * len(bodies) {
		// Requests for which there is no memory get a 503, and can be sent again. Of a large body, the client may still be sending the rest when it is
		// answered, and see only that the connection is closed.
		r := <-results
		if errors.Is(r.err, syscall.ECONNRESET) || errors.Is(r.err, syscall.EPIPE) {
			again[r.name] = true
			continue
		}
		if r.err != nil || r.answer.Status < 400 || r.answer.Status >= 500 && r.answer.Body["code"] != "server_busy" {
			t.Errorf("%s among others: %v, %d %s", r.name, r.err, r.answer.Status, r.answer.Raw)
		}
	}
	for _, tt := range bodies {
		if again[tt.name] {
			refused(t, site.Do(t, http.MethodPost, "/i/v0/e/", tt.body), tt.status, tt.code)
		}
	}
	if measured {
		peak, err := s.Peak()
		if err != nil {
			t.Fatal(err)
		}
		grown := peak.Sub(idle)
		t.Logf("the server's memory grew by %d MB, that of its engine by %d MB", grown.Server>>20, grown.Engine>>20)
		if grown.Server > 700<<20 {
			t.Errorf("hostile bodies took %d MB of memory", grown.Server>>20)
		}
	}

	// A time far away is an error of the client's clock.
	far := captured(token, "far")
	far["timestamp"] = "9999-12-31T23:59:59Z"
	if answer := site.Do(t, http.MethodPost, "/e/", far); answer.Status != http.StatusOK {
		t.Errorf("an event of the year 9999: %d %s", answer.Status, answer.Raw)
	}
	c.Shows(t, "select event, abs(dateDiff('hour', timestamp, now())) < 2 from events order by event", []any{"e", 1.0}, []any{"far", 1.0})
	if !measured {
		t.Log("the memory was not measured: this system has no /proc")
	}
}

// TestCaptureCORS checks that pages on any site may send events.
func TestCaptureCORS(t *testing.T) {
	site := page(server)
	site.Header.Set("Access-Control-Request-Method", http.MethodPost)
	site.Header.Set("Access-Control-Request-Headers", "content-type")
	for _, path := range []string{"/e/", "/batch", "/i/v0/e/", "/flags/?v=2", "/array/phc_none/config"} {
		answer := site.Do(t, http.MethodOptions, path, nil)
		got := []string{
			answer.Header.Get("Access-Control-Allow-Origin"), answer.Header.Get("Access-Control-Allow-Credentials"), answer.Header.Get("Access-Control-Allow-Headers"),
		}
		if diff := cmp.Diff([]string{"https://shop.example", "true", "content-type"}, got); diff != "" || answer.Status != http.StatusNoContent {
			t.Errorf("preflight of %s: %d (-want +got):\n%s", path, answer.Status, diff)
		}
	}
	site = page(server)
	refused(t, site.Do(t, http.MethodPut, "/e/", nil), http.StatusMethodNotAllowed, "method_not_allowed")
	refused(t, site.Do(t, http.MethodPost, "/e/", ""), http.StatusBadRequest, "empty_payload")
	refused(t, site.Do(t, http.MethodPost, "/flags/?v=2", map[string]any{"token": "phc_none"}), http.StatusUnauthorized, "invalid_api_key")
}
