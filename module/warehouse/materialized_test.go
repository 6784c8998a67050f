package warehouse_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// TestTrialOnAHungServer: a check whether tables can be made ends with its caller's context, and the attempt ends when the warehouse is closed.
func TestTrialOnAHungServer(t *testing.T) {
	ended := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server that has not read it all does not notice when the client leaves
		<-r.Context().Done()
		select {
		case ended <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	client, err := clickhouse.Open(clickhouse.Config{DSN: strings.Replace(server.URL, "http://", "http://default@", 1) + "/default"}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w := warehouse.With(client, schema.NativeLayout())
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if reason, err := w.CanMaterialize(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q, %v", reason, err)
		}
		cancel()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the attempt goes on")
	}
}
