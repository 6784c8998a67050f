package clickhouse_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// vanishes is the fault of a host whose packets get lost: a dial takes the whole time it may.
const vanishes = harness.Mute + 1

// fakeHost is a host of ClickHouse in memory, for tests in a bubble of package synctest.
type fakeHost struct {
	// answer receives the statements that are not the client's own.
	answer func(w http.ResponseWriter, r *http.Request, sql string)

	mu      sync.Mutex
	fault   harness.Fault
	changed chan struct{} // closed at the next change of fault
	heard   []string      // the statements that answer received
	open    []net.Conn

	dialed chan net.Conn
	closed chan struct{}
}

// fakeHosts returns a client of hosts in memory, and its log. The hosts answer until the test ends.
func fakeHosts(t *testing.T, config clickhouse.Config, hosts ...*fakeHost) (*clickhouse.Client, *observer.ObservedLogs) {
	t.Helper()
	names := make([]string, len(hosts))
	for n, h := range hosts {
		names[n] = fmt.Sprintf("host%d:8123", n)
		h.changed, h.dialed, h.closed = make(chan struct{}), make(chan net.Conn), make(chan struct{})
		server := &http.Server{Handler: h}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(h) }) // until it is closed
		t.Cleanup(func() {
			h.set(harness.Works) // or handlers would never end
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			serving.Wait()
		})
	}
	config.DSN = "http://default@" + strings.Join(names, ",")
	config.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		return hosts[slices.Index(names, address)].dial(ctx)
	}
	core, logs := observer.New(zap.DebugLevel)
	c, err := clickhouse.Open(config, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, logs
}

func (h *fakeHost) set(fault harness.Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
	close(h.changed)
	h.changed = make(chan struct{})
	if fault == harness.Refuses {
		for _, conn := range h.open {
			_ = conn.Close() // the server may have closed it
		}
		h.open = nil
	}
}

// statements returns the statements that answer received.
func (h *fakeHost) statements() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

func (h *fakeHost) dial(ctx context.Context) (net.Conn, error) {
	h.mu.Lock()
	fault := h.fault
	h.mu.Unlock()
	switch fault {
	case harness.Refuses:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case vanishes:
		select {
		case <-ctx.Done():
		case <-h.closed:
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	case harness.Works, harness.Resets, harness.Silent, harness.Mute:
	}
	ours, theirs := net.Pipe()
	select {
	case h.dialed <- theirs:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.open = append(h.open, theirs)
		return ours, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Accept, Close and Addr make it a net.Listener.
func (h *fakeHost) Accept() (net.Conn, error) {
	select {
	case conn := <-h.dialed:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *fakeHost) Close() error {
	close(h.closed)
	return nil
}

func (*fakeHost) Addr() net.Addr { return &net.TCPAddr{} }

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client hung up
	}
	sql := string(body)
	h.await(r)
	switch {
	case r.URL.Path == "/ping":
		send(w, []byte("Ok.\n"))
	case strings.HasPrefix(sql, "SELECT displayName()"):
		send(w, greeting("25.8.1.1"))
	case strings.HasPrefix(sql, "SELECT name, value, version()"):
		var rows [][]string
		for _, name := range []string{"additional_table_filters", "distributed_ddl_task_timeout", "mutations_sync"} {
			rows = append(rows, []string{name, "", "25.8.1.1"})
		}
		send(w, nativeRows([]string{"name", "value", "version()"}, rows...))
	case strings.HasPrefix(sql, "SELECT "), strings.HasPrefix(sql, "SYSTEM "), strings.HasPrefix(sql, "DELETE "), strings.HasPrefix(sql, "ALTER "),
		strings.HasPrefix(sql, "CREATE "):
		h.mu.Lock()
		h.heard = append(h.heard, sql)
		h.mu.Unlock()
		h.answer(w, r, sql)
		h.await(r)
	default: // a query is stopped
	}
}

// await waits while the host sends nothing.
func (h *fakeHost) await(r *http.Request) {
	for {
		h.mu.Lock()
		fault, changed := h.fault, h.changed
		h.mu.Unlock()
		if fault == harness.Works {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// nativeRows are rows of String columns in ClickHouse's Native format.
func nativeRows(columns []string, rows ...[]string) []byte {
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(columns)))
	b = binary.AppendUvarint(b, uint64(len(rows)))
	for n, name := range columns {
		text(name)
		text("String")
		for _, row := range rows {
			text(row[n])
		}
	}
	return b
}

// numbers answers a query with a row of numbers.
func numbers(w io.Writer, values ...int) {
	names, types, row := make([]string, len(values)), make([]string, len(values)), make([]string, len(values))
	for n, v := range values {
		names[n], types[n], row[n] = fmt.Sprintf("%q", strconv.Itoa(n)), `"Int64"`, strconv.Itoa(v)
	}
	for _, line := range [][]string{names, types, row} {
		send(w, []byte("["+strings.Join(line, ", ")+"]\n"))
	}
}

// refuse answers with an error of ClickHouse.
func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.WriteHeader(http.StatusInternalServerError)
	send(w, fmt.Appendf(nil, "Code: %d. DB::Exception: %s", code, text))
}
