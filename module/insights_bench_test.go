package module

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// BenchmarkInsight gets an insight whose result is cached, through the whole handler.
func BenchmarkInsight(b *testing.B) {
	w, i := insightWorld(b)
	rows := make([]string, 52)
	for n := range rows {
		rows[n] = fmt.Sprintf(`[%d, "row number %d"]`, n, n)
	}
	w.RememberInsight(b, i, time.Now(), rows...)
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return context.Canceled })
	r := httptest.NewRequest(http.MethodGet, "/api/projects/1/insights/1/?refresh=blocking", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+w.Secret)
	answer := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(answer.header)
		if err := w.ServeHTTP(answer, r, next); err != nil || answer.status != http.StatusOK {
			b.Fatalf("answers %d, %v", answer.status, err)
		}
	}
}
