package clickhouse_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// kindOf returns the kind of ClickHouse's error, or -1.
func kindOf(err error) clickhouse.ErrorKind {
	if e, ok := errors.AsType[*clickhouse.Error](err); ok {
		return e.Kind
	}
	return -1
}

// allocations returns the total number of bytes that the process has allocated.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestEndlessResults serves responses that never end. They must be cut off at their limit without being buffered.
func TestEndlessResults(t *testing.T) {
	const mib = 1 << 20
	filler := bytes.Repeat([]byte("x"), 64<<10)
	row := []byte(`["` + strings.Repeat("y", 1000) + `"]` + "\n")
	for _, tt := range []struct {
		name   string
		start  string
		piece  []byte
		query  clickhouse.Query
		config clickhouse.Config
		most   int64
	}{
		{"a row", `["`, filler, clickhouse.Query{}, clickhouse.Config{MaxResultBytes: 8 * mib}, 8 * mib},
		{"a row of a result with a large bound", `["`, filler, clickhouse.Query{}, clickhouse.Config{MaxResultBytes: 1 << 40}, clickhouse.MaxRowBytes},
		{"a row of a result without a bound", `["`, filler, clickhouse.Query{Unbounded: true}, clickhouse.Config{MaxResultBytes: 8 * mib}, clickhouse.MaxRowBytes},
		{"a row of a query with a bound of its own", `["`, filler, clickhouse.Query{MaxBytes: mib}, clickhouse.Config{}, mib},
		{"rows", "", row, clickhouse.Query{}, clickhouse.Config{MaxResultBytes: 8 * mib}, 8 * mib},
		{"names", "", filler, clickhouse.Query{}, clickhouse.Config{MaxResultBytes: 8 * mib}, 8 * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent atomic.Int64
			gone := make(chan struct{}, 1)
			c := fakeWith(t, tt.config, func(w http.ResponseWriter, r *http.Request) {
				if isKill(r) {
					return
				}
				defer func() { gone <- struct{}{} }()
				begin := "[\"a\"]\n[\"String\"]\n" + tt.start
				if tt.name == "names" {
					begin = `["`
				}
				send(w, []byte(begin))
				for {
					n, err := w.Write(tt.piece)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			tt.query.SQL, tt.query.Project = "SELECT 1", 1
			before := allocations()
			_, err := c.Query(t.Context(), tt.query, endless{func() error { return nil }})
			if kind := kindOf(err); kind != clickhouse.TooLarge {
				t.Errorf("got %v, want too large", err)
			}
			select {
			case <-gone:
			case <-time.After(patience):
				t.Fatal("the client did not hang up")
			}
			const underway = 32 * mib // in the buffers of sockets
			if n := sent.Load(); n > tt.most+underway {
				t.Errorf("%d MiB arrived, the limit is %d MiB", n/mib, tt.most/mib)
			}
			if took := int64(allocations() - before); took > 4*tt.most+underway {
				t.Errorf("%d MiB were allocated, the limit is %d MiB", took/mib, tt.most/mib)
			}
			waitForIdle(t, c)
		})
	}
}

// TestLargeRows queries rows above the limits, which the engine's own limits do not catch.
func TestLargeRows(t *testing.T) {
	const mib = 1 << 20
	const sql = "SELECT arrayMap(i -> repeat('x', 1000000), range(80))"
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), MaxResultBytes: 16 * mib})
	for _, q := range []clickhouse.Query{{}, {Unbounded: true}} {
		q.SQL, q.Project = sql, project()
		before := allocations()
		stats, err := c.Query(t.Context(), q, &rows{})
		if kind := kindOf(err); kind != clickhouse.TooLarge {
			t.Errorf("unbounded %t: got %v after %d rows, want too large", q.Unbounded, err, stats.Rows)
		}
		if took := allocations() - before; took > 512*mib {
			t.Errorf("unbounded %t: %d MiB were allocated", q.Unbounded, took/mib)
		}
	}
	// A result that is passed on is not buffered, and needs no limit.
	size := 0
	before := allocations()
	_, err := c.Export(t.Context(), clickhouse.Query{SQL: sql, Project: project(), Unbounded: true}, clickhouse.Arrow, writerFunc(func(p []byte) (int, error) {
		size += len(p)
		return len(p), nil
	}))
	if err != nil || size == 0 {
		t.Errorf("a file with a large row: %v after %d bytes", err, size)
	}
	if took := allocations() - before; took > 64*mib {
		t.Errorf("exporting a file: %d MiB were allocated", took/mib)
	}
}

// isKill reports whether a query is the client's KILL QUERY.
func isKill(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	return err == nil && strings.HasPrefix(string(body), "KILL QUERY WHERE query_id = ")
}

// TestLate serves queries that ignore the time limit. The caller gets the timeout anyway, and the query is killed.
func TestLate(t *testing.T) {
	until := func(r *http.Request, each func()) {
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-r.Context().Done():
				tick.Stop()
				return
			case <-tick.C:
				each()
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"silence": func(_ http.ResponseWriter, r *http.Request) { until(r, func() {}) },
		"rows": func(w http.ResponseWriter, r *http.Request) {
			send(w, []byte("[\"a\"]\n[\"String\"]\n"))
			until(r, func() {
				send(w, []byte("[\"x\"]\n"))
				w.(http.Flusher).Flush()
			})
		},
		"a row": func(w http.ResponseWriter, r *http.Request) {
			send(w, []byte("[\"a\"]\n[\"String\"]\n[\""))
			until(r, func() {
				send(w, []byte("x"))
				w.(http.Flusher).Flush()
			})
		},
	} {
		for _, file := range []bool{false, true} {
			var killed, hungUp atomic.Int64
			c := fakeWith(t, clickhouse.Config{MaxExecutionTime: time.Second}, func(w http.ResponseWriter, r *http.Request) {
				if isKill(r) {
					killed.Add(1)
					return
				}
				answer(w, r)
				hungUp.Add(1)
			})
			ended := make(chan error, 1)
			go func() {
				q := clickhouse.Query{SQL: "SELECT 1", Project: 1, Unbounded: file}
				var err error
				if file {
					_, err = c.Export(t.Context(), q, clickhouse.Parquet, io.Discard)
				} else {
					_, err = c.Query(t.Context(), q, endless{func() error { return nil }})
				}
				ended <- err
			}()
			select {
			case err := <-ended:
				if kind := kindOf(err); kind != clickhouse.Timeout {
					t.Errorf("%s, file %t: got %v, want a timeout", name, file, err)
				}
			case <-time.After(patience):
				t.Fatalf("%s, file %t: the query did not end", name, file)
			}
			harness.Eventually(t, patience, func() error {
				if killed.Load() != 1 || hungUp.Load() != 1 {
					return errors.New("the server was not told to stop, or nobody hung up")
				}
				return nil
			})
			waitForIdle(t, c)
		}
	}
}

// TestRowOfNoTable checks that ClickHouse limits the result of SELECT 1, but not results without a table.
func TestRowOfNoTable(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), MaxResultBytes: 1 << 20})
	_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT arrayMap(i -> repeat('x', 1000000), range(300)) FROM (SELECT 1)", Project: project()}, &rows{})
	if e, ok := errors.AsType[*clickhouse.Error](err); !ok || e.Kind != clickhouse.TooLarge || e.Code != 396 {
		t.Errorf("got %v, want the engine's own limit", err)
	}
}
