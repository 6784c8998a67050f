package routes_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
)

// broken puts each member of an answer on its own line, for a readable difference.
func broken(body string) string { return strings.ReplaceAll(body, `,"`, ",\n\"") }

// TestRunBody pins the whole body of a run: fields, order and forms (contract api.md, section 5.4).
func TestRunBody(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "daily", "select n from events")
	p, err := w.Asks(http.MethodGet, "/?limit=2&offset=1").PlanRun(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	computed := time.Now().Add(-time.Hour)
	w.Remember(t, p, computed, `[1, "a"]`, `[2, "b"]`, `[3, "c"]`, `[4, "d"]`)
	got := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/daily/run?limit=2&offset=1", "")
	const want = `{"results":[[2, "b"],[3, "c"]],"columns":["n","a<b"],"types":[["n","UInt64"],["a<b","String"]],"hasMore":true,"limit":2,"offset":1,"next_cursor":"CURSOR",` +
		`"is_cached":true,"last_refresh":"TIME","next_allowed_client_refresh":"TIME","cache_target_age":"TIME","timezone":"Europe/Berlin",` +
		`"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null,"name":"daily",` +
		`"execution_id":"6b1d3f0e-5d0a-4a53-9a58-0a1f0c2c7d11","endpoint_version":1,"endpoint_version_created_at":"2026-01-10T12:00:00Z"}`
	next, _ := apitest.FieldOf(t, got, "next_cursor").(string)
	if diff := cmp.Diff(broken(want), broken(strings.Replace(timeless(got.Body.String()), `"`+next+`"`, `"CURSOR"`, 1))); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	h := got.Header()
	if age, err := strconv.Atoi(h.Get("Age")); err != nil || age < 3600 || age > int(time.Since(computed)/time.Second)+1 {
		t.Errorf("Age: %s", h.Get("Age"))
	}
	// A client subtracts the age from max-age: that is the time that the answer stays fresh.
	if status := h.Get("Cache-Status"); !strings.HasPrefix(status, "caddy-analytics; hit; ttl=827") || h.Get("Cache-Control") != "private, max-age=86400" {
		t.Errorf("Cache-Status: %s, Cache-Control: %s", status, h.Get("Cache-Control"))
	}
}

// TestQueryBody pins the whole body of the query route (contract api.md, section 1.5), the debug fields with it.
func TestQueryBody(t *testing.T) {
	w := apitest.New(t)
	const body = `{"query": {"kind": "HogQLQuery", "query": "select n from events"}}`
	p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1, "a"]`)
	got := w.Send(t, http.MethodPost, "/api/environments/@current/query", body)
	want := `{"results":[[1, "a"]],"columns":["n","a<b"],"types":[["n","UInt64"],["a<b","String"]],"hasMore":false,"limit":100,"offset":0,` +
		`"is_cached":true,"last_refresh":"TIME","next_allowed_client_refresh":"TIME","cache_target_age":"TIME","timezone":"Europe/Berlin",` +
		`"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null,` +
		`"hogql":"SELECT n FROM events LIMIT 101","clickhouse":"SELECT 1 < 2","cache_key":"` + p.Key.String() + `",` +
		`"explain":null,"modifiers":null,"timings":null,"calculation_trigger":null,"resolved_date_range":null}`
	if diff := cmp.Diff(broken(want), broken(timeless(got.Body.String()))); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// timeless replaces the times of the answer's freshness, which follow the clock.
func timeless(body string) string {
	for _, name := range []string{"last_refresh", "next_allowed_client_refresh", "cache_target_age"} {
		before, rest, ok := strings.Cut(body, `"`+name+`":"`)
		if !ok {
			continue
		}
		at, after, _ := strings.Cut(rest, `"`)
		if _, err := time.Parse(time.RFC3339Nano, at); err == nil && strings.HasSuffix(at, "Z") {
			body = before + `"` + name + `":"TIME"` + after
		}
	}
	return body
}

// TestConditional sends entity tags back, and requests stored answers in several encodings.
func TestConditional(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "daily", "select n from events")
	p, err := w.Asks(http.MethodGet, "/").PlanRun(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1, "`+strings.Repeat("long ", 1000)+`"]`)
	const path = "/api/projects/@current/endpoints/daily/run"
	plain := w.Send(t, http.MethodGet, path, "")
	tag := plain.Header().Get("Etag")
	for match, want := range map[string]int{
		tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, `"x", "`: 200, strings.Trim(tag, `"`): 200,
	} {
		got := w.Send(t, http.MethodGet, path, "", "If-None-Match", match)
		if got.Code != want || (got.Body.Len() == 0) != (want == 304) || got.Header().Get("Etag") != tag || got.Header().Get("Vary") == "" {
			t.Errorf("If-None-Match: %s answers %d with %d bytes and the headers %v", match, got.Code, got.Body.Len(), got.Header())
		}
	}
	for accept, want := range map[string]string{
		"gzip": "gzip", "zstd, gzip": "zstd", "gzip;q=0.5, zstd;q=0.4": "gzip", "gzip;q=0": "", "br": "", "identity": "", "*": "zstd", "gzip;q=2": "",
	} {
		got := w.Send(t, http.MethodGet, path, "", "Accept-Encoding", accept)
		if coding := got.Header().Get("Content-Encoding"); coding != want || (got.Header().Get("Etag") == tag) != (want == "") {
			t.Errorf("Accept-Encoding: %s gives %q with the tag %s", accept, coding, got.Header().Get("Etag"))
		}
	}
}

// TestLengthOfHits: a cached answer says how many bytes follow, whoever counts them, and which headers it depends on.
func TestLengthOfHits(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "daily", "select n from events")
	p, err := w.Asks(http.MethodGet, "/").PlanRun(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.API)
	defer server.Close()
	for _, letters := range []int{1, 1000, 1500, 2000, 5000, 100_000} {
		w.Remember(t, p, time.Now(), `[1, "`+strings.Repeat("a", letters)+`"]`)
		for method, vary := range map[string]bool{http.MethodPost: false, http.MethodGet: true, http.MethodHead: true} {
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/api/projects/@current/endpoints/daily/run", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+w.Secret)
			req.Header.Set("Accept-Encoding", "identity")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			want := int64(len(body))
			if method == http.MethodHead {
				want = resp.ContentLength
			}
			if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength != want || want < int64(letters) || len(resp.TransferEncoding) > 0 ||
				!strings.Contains(resp.Header.Get("Cache-Status"), "; hit") || (resp.Header.Get("Vary") != "") != vary {
				t.Errorf("%s of %d letters: %d bytes, %v, headers %v", method, letters, len(body), err, resp.Header)
			}
		}
	}
}
