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

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
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

// BenchmarkHit sends requests that the cache answers through the whole handler: key, scopes, registry, plan and page.
func BenchmarkHit(b *testing.B) {
	rows := make([]string, 52)
	for i := range rows {
		rows[i] = fmt.Sprintf(`[%d, "row number %d"]`, i, i)
	}
	const variables = `{"limit": 100}`
	const query = `{"query": {"kind": "HogQLQuery", "query": "select n from events"}}`
	w := newWorld(b)
	e := w.NewEndpoint(b, "bench", "select n from events")
	run, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(variables))
	if err != nil {
		b.Fatal(err)
	}
	w.Remember(b, run, time.Now(), rows...)
	asked, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(query))
	if err != nil {
		b.Fatal(err)
	}
	w.Remember(b, asked, time.Now(), rows...)
	_, backend := w.NewKey(b, w.Project.ID, registry.Secret, "endpoint:read")
	token := w.NewToken(b, backend, `{"endpoints": ["bench"], "origins": ["https://app.example.com"]}`)
	cursor, _ := apitest.FieldOf(b, w.send(b, http.MethodPost, "/api/projects/1/endpoints/bench/run", `{"limit": 20}`), "next_cursor").(string)
	benchmarks := []struct{ name, secret, path, body, accept string }{
		{"run", w.Secret, "/api/projects/1/endpoints/bench/run", variables, ""},
		{"run-gzip", w.Secret, "/api/projects/1/endpoints/bench/run", variables, "gzip, deflate, br"},
		{"run-token", token, "/api/projects/1/endpoints/bench/run", variables, ""},
		{"run-cursor", w.Secret, "/api/projects/1/endpoints/bench/run", `{"cursor": "` + cursor + `"}`, ""},
		{"query", w.Secret, "/api/projects/1/query/", query, ""},
	}
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return context.Canceled })
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, bm.path, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+bm.secret)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Origin", "https://app.example.com")
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

// BenchmarkPage renders pages of the largest result that pages are cut from: where they begin makes no difference.
func BenchmarkPage(b *testing.B) {
	w := newWorld(b)
	results, err := cache.New(cache.Config{MaxBytes: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(results.Close)
	w.Cache = results
	e := w.NewEndpoint(b, "bench", "select n from events")
	rows := make([]string, execution.MaxRows)
	for i := range rows {
		rows[i] = fmt.Sprintf(`[%d, "row number %05d"]`, 1_000_000+i, i)
	}
	for _, form := range []string{"arrays", "objects", "csv"} {
		for _, offset := range []int{0, 49_000} {
			rq := w.Asks(http.MethodPost, "/")
			p, err := rq.PlanRun(e, fmt.Appendf(nil, `{"limit": 100, "offset": %d, "format": %q}`, offset, form))
			if err != nil {
				b.Fatal(err)
			}
			got, ok := results.Get(p.Key, p.Policy(time.Now()))
			if !ok {
				w.Remember(b, p, time.Now(), rows...)
				if got, ok = results.Peek(p.Key, p.Policy(time.Now())); !ok {
					b.Fatal("the rows are not in the cache")
				}
			}
			render := w.EndpointRuns().Writer(w.Project, p.Format)
			b.Run(fmt.Sprintf("%s/offset %d", form, offset), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					body := results.Render(cache.Identity, func(dst []byte) []byte { return render(dst, p, got) })
					if len(body.Bytes) < 2_000 {
						b.Fatalf("%s", body.Bytes)
					}
				}
			})
		}
	}
}
