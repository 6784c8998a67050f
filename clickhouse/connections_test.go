package clickhouse_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestFailedQueriesLeaveNoConnection checks that connections are closed: each failed query closes its connection, and the driver
// opens another. Leaked ones would exceed the limit on open files after a few thousand failed queries.
func TestFailedQueriesLeaveNoConnection(t *testing.T) {
	u, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	behind := &url.URL{Scheme: "http", Host: u.Host}
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }})
	var made, open atomic.Int64
	proxy.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			made.Add(1)
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
	proxy.Start()
	t.Cleanup(proxy.Close)
	u.Host = strings.TrimPrefix(proxy.URL, "http://")
	c := openWith(t, clickhouse.Config{DSN: u.String(), Concurrency: 2})
	const failures = 100
	for range failures {
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT throwIf(1)", Project: project()}, &rows{}); err == nil {
			t.Fatal("the query did not fail")
		}
	}
	for wait := time.Now().Add(30 * time.Second); open.Load() > 10; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(wait) {
			t.Fatalf("after %d failed queries, %d of %d connections are open", failures, open.Load(), made.Load())
		}
	}
}
