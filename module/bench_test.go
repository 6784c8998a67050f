package module

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// discard is a response writer that keeps its header map, as the server's does for a connection.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(s int)   { d.status = s }
func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// BenchmarkHit sends requests that the cache answers through the whole handler: key, scopes, registry, plan, page.
func BenchmarkHit(b *testing.B) {
	rows := make([]string, 52)
	for i := range rows {
		rows[i] = fmt.Sprintf(`[%d, "row number %d"]`, i, i)
	}
	const variables = `{"limit": 100}`
	const query = `{"query": {"kind": "HogQLQuery", "query": "select n from events"}}`
	w := newWorld(b)
	e := w.newEndpoint(b, "bench", "select n from events")
	run, err := w.request(http.MethodPost, "/").planRun(e, []byte(variables))
	if err != nil {
		b.Fatal(err)
	}
	w.remember(b, run, time.Now(), rows...)
	asked, err := w.request(http.MethodPost, "/").planQuery([]byte(query))
	if err != nil {
		b.Fatal(err)
	}
	w.remember(b, asked, time.Now(), rows...)
	benchmarks := []struct{ name, path, body, accept string }{
		{"run", "/api/projects/1/endpoints/bench/run", variables, ""},
		{"run-gzip", "/api/projects/1/endpoints/bench/run", variables, "gzip, deflate, br"},
		{"query", "/api/projects/1/query/", query, ""},
	}
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return context.Canceled })
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, bm.path, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+w.secret)
			r.Header.Set("Content-Type", "application/json")
			if bm.accept != "" {
				r.Header.Set("Accept-Encoding", bm.accept)
			}
			r.ContentLength = int64(len(bm.body))
			body := bytes.NewReader(nil)
			r.Body = io.NopCloser(body)
			text := []byte(bm.body)
			answer := &discard{header: http.Header{}}
			serve := func() {
				body.Reset(text)
				clear(answer.header)
				answer.status = 0
				if err := w.ServeHTTP(answer, r, next); err != nil || answer.status != http.StatusOK {
					b.Fatalf("answers %d, %v", answer.status, err)
				}
			}
			serve() // renders the page
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}
