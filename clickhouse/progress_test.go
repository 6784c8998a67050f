package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestRunning reads the progress of queries while more of them run than the engine has slots, and after a cancellation.
func TestRunning(t *testing.T) {
	// A waiting query holds a connection, so one more is needed.
	many := max(2*runtime.NumCPU(), 4) + 1
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), Concurrency: many + 2})
	p := project()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	queries := make([]clickhouse.Query, many)
	ended := make(chan error, many)
	for i := range queries {
		id := fmt.Sprintf("running-%d-%d", p, i)
		queries[i] = clickhouse.Query{
			SQL:     "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))",
			Project: p, ID: id, Comment: `{"query_id":"` + id + `"}`,
		}
		go func() {
			_, err := c.Query(ctx, queries[i], &rows{})
			ended <- err
		}()
	}
	deadline := time.Now().Add(patience)
	moved := func() (n int) {
		for _, q := range queries {
			p, ok, err := c.Running(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if ok && p.ReadRows > 0 && p.ReadBytes >= 8*p.ReadRows && p.TotalRows == 1_000_000_000_000 && p.CPU > 0 {
				n++
			}
		}
		return n
	}
	for moved() < many-1 {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d queries report progress", moved(), many)
		}
	}
	cancel()
	for range many {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled query: %v", err)
		}
	}
	for _, q := range queries {
		for {
			_, ok, err := c.Running(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s still runs", q.ID)
			}
		}
	}
}
