package warehouse_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// open returns a warehouse on a ClickHouse that is down, and counts how often it is dialed.
func open(t *testing.T, layout *schema.Layout) (*warehouse.Warehouse, *atomic.Int64) {
	t.Helper()
	dialed := new(atomic.Int64)
	client, err := clickhouse.Open(clickhouse.Config{
		DSN: "http://127.0.0.1:1/default",
		Dial: func(context.Context, string) (net.Conn, error) {
			dialed.Add(1)
			return nil, errors.New("nobody is there")
		},
	}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w := warehouse.With(client, layout)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, dialed
}

// TestNothingWithoutAPlace: no query of a project reaches ClickHouse without a place of the same project.
func TestNothingWithoutAPlace(t *testing.T) {
	w, dialed := open(t, nil)
	s := admission.New(admission.Limits{Places: 40, Project: 10})
	enter := func(project int64) *admission.Place {
		place, err := s.Enter(t.Context(), admission.Request{Project: project})
		if err != nil {
			t.Fatal(err)
		}
		return place
	}
	left := enter(1)
	left.Leave()
	q := clickhouse.Query{SQL: "SELECT 1", Project: 1}
	calls := map[string]func(*admission.Place) error{
		"query": func(p *admission.Place) error { _, err := w.Query(t.Context(), p, q, nil); return err },
		"export": func(p *admission.Place) error {
			_, err := w.Export(t.Context(), p, q, clickhouse.Parquet, io.Discard)
			return err
		},
		"describe": func(p *admission.Place) error { _, err := w.Describe(t.Context(), p, q); return err },
	}
	for name, call := range calls {
		for what, place := range map[string]*admission.Place{"none": nil, "another project's": enter(2), "one that was left": left} {
			if err := call(place); err == nil || !strings.Contains(err.Error(), "BUG") {
				t.Errorf("%s with %s: %v", name, what, err)
			}
		}
	}
	if n := dialed.Load(); n != 0 {
		t.Fatalf("ClickHouse was dialed %d times", n)
	}
	for name, call := range calls {
		if err := call(enter(1)); err == nil || dialed.Swap(0) == 0 {
			t.Errorf("%s with a place does not reach ClickHouse: %v", name, err)
		}
	}
}

// TestDiscoveryIsBounded: while ClickHouse is down, callers share the outcome of one attempt.
func TestDiscoveryIsBounded(t *testing.T) {
	w, dialed := open(t, nil)
	began := time.Now()
	if _, err := w.Layout(t.Context()); err == nil {
		t.Fatal("a layout without ClickHouse")
	}
	once := dialed.Load()
	for range 200 {
		if _, err := w.Layout(t.Context()); err == nil {
			t.Fatal("a layout without ClickHouse")
		}
	}
	attempts := 1 + int64(time.Since(began)/time.Second)
	if n := dialed.Load(); once == 0 || n > once*attempts {
		t.Errorf("201 callers dial %d times, one %d times", n, once)
	}
}
