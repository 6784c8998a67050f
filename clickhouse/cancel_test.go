package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

var errEnough = errors.New("enough")

// endless is a sink that calls each for every row.
type endless struct{ each func() error }

func (endless) Columns([]clickhouse.Column) error { return nil }
func (s endless) Row([]byte) error                { return s.each() }

// TestCancel ends queries before and after their first row. The server must stop them, and the pool must not
// lose a connection.
func TestCancel(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), Concurrency: 2, MaxResultRows: 1 << 40, MaxResultBytes: 1 << 50})
	p := project()
	const (
		silent = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number), 'mark:%s')"
		chatty = "SELECT number FROM numbers(1000000000000) WHERE NOT ignore('mark:%s')"
	)
	for round := range 3 {
		for _, tt := range []struct {
			name, sql string
			want      error
			run       func(id, sql string) error
		}{
			{"before the first row", silent, context.Canceled, func(id, sql string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					waitForQuery(t, c, p, id, true)
					cancel()
				}()
				_, err := c.Query(ctx, clickhouse.Query{SQL: sql, Project: p, ID: id}, &rows{})
				return err
			}},
			{"by deadline", silent, context.DeadlineExceeded, func(id, sql string) error {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_, err := c.Query(ctx, clickhouse.Query{SQL: sql, Project: p, ID: id}, &rows{})
				return err
			}},
			{"among the rows", chatty, context.Canceled, func(id, sql string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				seen := 0
				_, err := c.Query(ctx, clickhouse.Query{SQL: sql, Project: p, ID: id}, endless{func() error {
					if seen++; seen == 100_000 {
						cancel()
					}
					return nil
				}})
				return err
			}},
			{"before a file begins", silent, context.Canceled, func(id, sql string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					waitForQuery(t, c, p, id, true)
					cancel()
				}()
				_, err := c.Export(ctx, clickhouse.Query{SQL: sql, Project: p, ID: id, Unbounded: true}, clickhouse.Parquet, io.Discard)
				return err
			}},
			{"in a file", chatty, context.Canceled, func(id, sql string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				size := 0
				_, err := c.Export(ctx, clickhouse.Query{SQL: sql, Project: p, ID: id, Unbounded: true}, clickhouse.Parquet, writerFunc(func(piece []byte) (int, error) {
					if size += len(piece); size > 2<<20 {
						cancel()
					}
					return len(piece), nil
				}))
				return err
			}},
			{"by the sink", chatty, errEnough, func(id, sql string) error {
				_, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: p, ID: id}, endless{func() error { return errEnough }})
				return err
			}},
		} {
			t.Run(fmt.Sprintf("%s %d", tt.name, round), func(t *testing.T) {
				id := fmt.Sprintf("cancel-%d-%s", round, tt.name)
				if err := tt.run(id, fmt.Sprintf(tt.sql, id)); !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
				waitForQuery(t, c, p, id, false)
				waitForIdle(t, c)
			})
		}
	}
	for range 2 {
		if got := ask(t, c, p, "SELECT 1"); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	}
}

// patience is how long tests wait for things that take a moment on an idle machine.
const patience = time.Minute

// waitForIdle waits until no connection is in use. The driver releases the connection of a result made of blocks, such as the
// settings of a server, a moment after the result is closed.
func waitForIdle(t *testing.T, c *clickhouse.Client) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); c.InUse() != 0; <-ticker.C {
		if time.Now().After(deadline) {
			t.Errorf("%d connections are in use after the query", c.InUse())
			return
		}
	}
}

// waitForQuery polls the server until the query is running, or no longer running.
func waitForQuery(t *testing.T, c *clickhouse.Client, project int64, mark string, runs bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var out rows
		_, err := c.Query(context.WithoutCancel(t.Context()), clickhouse.Query{
			SQL:     "SELECT count() FROM system.processes WHERE query LIKE {mark:String} AND query NOT LIKE '%system.processes%'",
			Params:  []clickhouse.Param{{Name: "mark", Type: "String", Value: "%mark:" + mark + "'%"}},
			Project: project,
		}, &out)
		if err != nil {
			t.Error(err)
			return
		}
		if (out.Texts[0] != "[0]") == runs {
			return
		}
	}
	t.Errorf("after %s: is %s running? Want %t", patience, mark, runs)
}

// TestBusy fills the pool.
func TestBusy(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), Concurrency: 1, DialTimeout: 2 * time.Second})
	p := project()
	ask(t, c, p, "SELECT 0") // dials: the wait is too short for a full pool, but must do for that
	_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: p}, endless{func() error {
		_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 2", Project: p}, &rows{})
		return err
	}})
	var busy *clickhouse.Error
	if !errors.As(err, &busy) || busy.Kind != clickhouse.Busy {
		t.Errorf("got %v, want a busy pool", err)
	}
}

func TestStats(t *testing.T) {
	c := client(t)
	stats, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT sum(number) FROM numbers(1000)", Project: project()}, &rows{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Rows != 1 || stats.ReadRows != 1000 || stats.ReadBytes == 0 {
		t.Errorf("stats %+v", stats)
	}
}

// TestLingers ends queries that do not notice it at once. The engine still runs them until their owner is told that they have ended.
func TestLingers(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), Embedded: true})
	const deaf = "SELECT countSubstrings(repeat('a', 100000), concat(repeat('a', 40000), 'mark:deaf')) AS n"
	for name, run := range map[string]func(context.Context, clickhouse.Query) error{
		"a query": func(ctx context.Context, q clickhouse.Query) error {
			_, err := c.Query(ctx, q, &rows{})
			return err
		},
		"an export": func(ctx context.Context, q clickhouse.Query) error {
			_, err := c.Export(ctx, q, "CSV", io.Discard)
			return err
		},
		"a fill": func(ctx context.Context, q clickhouse.Query) error {
			f := members(q.Project, "SELECT reinterpretAsUUID(n) FROM ("+deaf+")")
			f.Lingers = q.Lingers
			return c.Fill(ctx, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			p := project()
			lingering := make(chan struct{})
			ended := make(chan struct{})
			query := clickhouse.Query{SQL: deaf, Project: p, Lingers: func() func() {
				close(lingering)
				return func() { close(ended) }
			}}
			failed := make(chan error, 1)
			go func() { failed <- run(ctx, query) }()
			waitForQuery(t, c, p, "deaf", true)
			hangUp()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("the query: %v", err)
			}
			select {
			case <-lingering:
			default:
				t.Fatal("its owner was not told that it may go on")
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("its owner was not told that it has ended")
			}
			if got := ask(t, c, p, "SELECT count() FROM system.processes WHERE query LIKE '%mark:deaf%'"); got[0] != "[1]" { // the one is this query
				t.Errorf("when the owner was told, the engine still ran %s", got)
			}
		})
	}
	t.Run("a query that ends", func(t *testing.T) {
		q := clickhouse.Query{SQL: "SELECT throwIf(1)", Project: project(), Lingers: func() func() {
			t.Error("its owner was told that it may go on")
			return func() {}
		}}
		if _, err := c.Query(t.Context(), q, &rows{}); err == nil {
			t.Error("it did not fail")
		}
	})
}
