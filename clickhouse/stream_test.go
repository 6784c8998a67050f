package clickhouse_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// fake is a ClickHouse server that answers the client's internal queries; answer gets all others.
func fake(t *testing.T, answer http.HandlerFunc) *clickhouse.Client {
	t.Helper()
	return fakeWith(t, clickhouse.Config{}, answer)
}

func fakeWith(t *testing.T, config clickhouse.Config, answer http.HandlerFunc) *clickhouse.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client hung up
		}
		switch {
		case strings.HasPrefix(string(body), "SELECT displayName()"):
			send(w, greeting("25.8.1.1"))
		case strings.HasPrefix(string(body), "SELECT name, value, version()"):
			send(w, nativeBlock(nil, nil, [][2]string{{"name", "String"}, {"value", "String"}, {"version()", "String"}}, "additional_table_filters", "", "25.8.1.1"))
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	config.DSN = "http://default@" + strings.TrimPrefix(server.URL, "http://")
	return openWith(t, config)
}

// fakeAnswer answers the client's internal queries, and all others with nothing.
func fakeAnswer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil: // the client hung up
	case strings.HasPrefix(string(body), "SELECT displayName()"):
		send(w, greeting("25.8.1.1"))
	case strings.HasPrefix(string(body), "SELECT name, value, version()"):
		send(w, nativeBlock(nil, nil, [][2]string{{"name", "String"}, {"value", "String"}, {"version()", "String"}}, "additional_table_filters", "", "25.8.1.1"))
	case strings.HasPrefix(string(body), "SELECT 1"):
		send(w, nativeBlock(nil, nil, [][2]string{{"1", "UInt32"}}, uint32(1)))
	}
}

// send writes to a client that may have hung up.
func send(w io.Writer, b []byte) { _, _ = w.Write(b) }

// greeting returns the answer to the driver's first query, in the newest form of Native that the driver knows. Its revision 0 says that everything
// later has the oldest form.
func greeting(version string) []byte {
	info := []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}
	return nativeBlock(info, []byte{0}, [][2]string{{"displayName()", "String"}, {"version()", "String"}, {"revision()", "UInt32"}, {"timezone()", "String"}},
		"fake", version, uint32(0), "UTC")
}

// nativeBlock returns a row in ClickHouse's Native format.
func nativeBlock(info, serialization []byte, columns [][2]string, values ...any) []byte {
	b := binary.AppendUvarint(info, uint64(len(columns)))
	b = binary.AppendUvarint(b, 1)
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for i, c := range columns {
		text(c[0])
		text(c[1])
		b = append(b, serialization...)
		switch v := values[i].(type) {
		case string:
			text(v)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}

const header = "[\"a\", \"t\"]\n[\"UInt8\", \"DateTime64(6, 'UTC')\"]\n"

// TestStream serves responses that break off. None may count as a complete result.
func TestStream(t *testing.T) {
	const row = `[1, "2020-01-02T03:04:05.000000Z"]` + "\n"
	const tag = "abcdefghijklmnop"
	exception := func(framed bool) string {
		text := "Code: 241. DB::Exception: Memory limit (total) exceeded: would use 1.00 GiB. (MEMORY_LIMIT_EXCEEDED) (version 25.8.1.1 (official build))"
		if framed {
			return "\r\n__exception__\r\n" + tag + "\r\n" + text + "\n" + strconv.Itoa(len(text)+1) + " " + tag + "\r\n__exception__\r\n"
		}
		return text
	}
	memory := clickhouse.Error{Kind: clickhouse.Memory, Code: 241, Name: "memory_limit_exceeded", Message: "the query ran out of memory"}
	gone := clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}
	broken := clickhouse.Error{Kind: clickhouse.Internal, Message: "ClickHouse failed to run the query"}
	respond := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-ClickHouse-Exception-Tag", tag)
			for _, part := range parts {
				send(w, []byte(part))
				w.(http.Flusher).Flush()
			}
		}
	}
	abort := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			respond(parts...)(w, r)
			panic(http.ErrAbortHandler)
		}
	}
	unframed := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			send(conn, []byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+strings.Join(parts, "")))
			_ = conn.Close() // the client has hung up
		}
	}
	status := func(code int, exceptionCode, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if exceptionCode != "" {
				w.Header().Set("X-ClickHouse-Exception-Code", exceptionCode)
			}
			w.WriteHeader(code)
			send(w, []byte(body))
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		rows   int
		want   *clickhouse.Error
	}{
		{"a whole result", respond(header, row, row), 2, nil},
		{"a result in many pieces", respond(header[:5], header[5:], row[:9], row[9:], row), 2, nil},
		{"no rows", respond(header), 0, nil},
		{"a row longer than the buffer", respond(header, `[`+strings.Repeat("1", 1<<20)+`, "2020-01-02T03:04:05.000000Z"]`+"\n"), 1, nil},
		{"nothing", respond(""), 0, &gone},
		{"names alone", respond("[\"a\"]\n"), 0, &gone},
		{"a framed exception among the rows", respond(header, row, exception(true)), 1, &memory},
		{"a framed exception in pieces", respond(header, row, exception(true)[:20], exception(true)[20:]), 1, &memory},
		{"a framed exception in a row", respond(header, row, row[:10], exception(true)), 1, &memory},
		{"a framed exception before the names", respond(exception(true)), 0, &memory},
		{"a bare exception among the rows", respond(header, row, exception(false)), 1, &memory},
		{"a bare exception in a row", respond(header, row, row[:10], exception(false)), 1, &memory},
		{"a bare exception before the names", respond(exception(false)), 0, &memory},
		{
			"a library's exception among the rows", respond(header, row, "std::exception. Code: 1001, type: std::length_error, e.what() = basic_string (version 25.8.1.1)"), 1,
			&clickhouse.Error{Kind: clickhouse.Unrunnable, Code: 1001, Name: "std_exception", Message: "ClickHouse cannot run this query"},
		},
		{"a connection that breaks", abort(header, row), 1, &gone},
		{"a connection that breaks in a row", abort(header, row, row[:10]), 1, &gone},
		{"a last row without its end", respond(header, row, strings.TrimSpace(row)), 1, &gone},
		{"an answer without end marks", unframed(header, row), 0, &broken},
		{"an invalid row", respond(header, row, "[1]\n"), 1, &broken},
		{
			"a user's mistake", status(400, "46", "Code: 46. DB::Exception: Function with name `sun` does not exist. In scope SELECT sun(1) FROM secret. Maybe you meant: ['sum','bin']. (UNKNOWN_FUNCTION) (version 25.8.1.1)"), 0,
			&clickhouse.Error{Kind: clickhouse.UserError, Code: 46, Name: "unknown_function", Message: "Function with name `sun` does not exist."},
		},
		{"an exception without its header", status(500, "", exception(false)), 0, &memory},
		{"a proxy's page", status(502, "", "<html>Bad gateway</html>"), 0, &gone},
		{
			"a wrong password", status(403, "516", "Code: 516. DB::Exception: default: Authentication failed: password is incorrect"), 0,
			&clickhouse.Error{Kind: clickhouse.Unavailable, Code: 516, Name: "authentication_failed", Message: "ClickHouse cannot be reached"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fake(t, tt.answer)
			var out rows
			stats, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &out)
			var got *clickhouse.Error
			if err != nil && !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, got, ignoreCause); diff != "" {
				t.Errorf("error (-want +got):\n%s\n%v", diff, errors.Unwrap(got))
			}
			if len(out.Texts) != tt.rows || stats.Rows != uint64(tt.rows) {
				t.Errorf("got %d rows, stats %d, want %d", len(out.Texts), stats.Rows, tt.rows)
			}
			waitForIdle(t, c)
		})
	}
}

// TestUnreachable queries addresses where nothing listens.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	for _, scheme := range []string{"http", "clickhouse"} {
		c := openWith(t, clickhouse.Config{DSN: scheme + "://default:secret@" + address})
		want := clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}
		for name, err := range map[string]error{
			"Ping": c.Ping(t.Context()),
			"Query": func() error {
				_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
				return err
			}(),
			"Migrate": c.Migrate(t.Context()),
		} {
			var got *clickhouse.Error
			if !errors.As(err, &got) {
				t.Fatalf("%s over %s: got %v", name, scheme, err)
			}
			if diff := cmp.Diff(want, *got, ignoreCause); diff != "" {
				t.Errorf("%s over %s (-want +got):\n%s", name, scheme, diff)
			}
			if strings.Contains(err.Error(), address) {
				t.Errorf("%s over %s reveals the address: %v", name, scheme, err)
			}
		}
	}
}

// TestClosedConnections queries a server that closes connections as soon as they are idle, like one whose keep-alive time is over. No query fails.
func TestClosedConnections(t *testing.T) {
	var asked atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("query_id") == "" { // the client's own
			fakeAnswer(w, r)
			return
		}
		asked.Store(true)
		send(w, []byte("[\"n\"]\n[\"UInt8\"]\n[1]\n"))
	}))
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateIdle && asked.Load() {
			time.AfterFunc(time.Duration(rand.IntN(100))*time.Microsecond, func() { _ = conn.Close() }) // the server closes it too
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := openWith(t, clickhouse.Config{DSN: "http://default@" + strings.TrimPrefix(server.URL, "http://")})
	var first rows
	if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT n", Project: 1}, &first); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 500 {
				var got rows
				if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT n", Project: 1}, &got); err != nil {
					t.Errorf("%v: %v", err, errors.Unwrap(errors.Unwrap(err)))
					return
				}
			}
		})
	}
	callers.Wait()
}

// TestFillIsSentOnce sends fills to a server that reads each one and then closes the reused connection. The fill may have run, so it is not sent
// again.
func TestFillIsSentOnce(t *testing.T) {
	var closes atomic.Bool
	fills := make(chan string, 10) // the connections that they came on
	c := fake(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(string(body), "INSERT INTO ") {
			return
		}
		fills <- r.RemoteAddr
		if closes.Load() {
			panic(http.ErrAbortHandler)
		}
	})
	if err := c.Fill(t.Context(), members(1, "SELECT generateUUIDv4()")); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	before := <-fills
	closes.Store(true)
	err := c.Fill(t.Context(), members(1, "SELECT generateUUIDv4()"))
	var got *clickhouse.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}, *got, ignoreCause); diff != "" {
		t.Errorf("error (-want +got):\n%s\n%v", diff, errors.Unwrap(got))
	}
	if n := len(fills); n != 1 {
		t.Fatalf("the fill arrived %d times", n)
	}
	if on := <-fills; on != before {
		t.Errorf("the fill came on %s, and not on %s, which waited", on, before)
	}
}

// TestTLS uses its own dial function. The native protocol must use TLS anyway.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "https://")
	for _, dsn := range []string{"clickhouse://ch.example:9440/?secure=true&skip_verify=true", "https://ch.example:8443/?skip_verify=true"} {
		var hello []byte
		c := openWith(t, clickhouse.Config{DSN: dsn, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", address)
			return &spy{Conn: conn, first: &hello}, err
		}})
		if err := c.Ping(t.Context()); err == nil {
			t.Errorf("%s: a broken connection counted as ClickHouse", dsn)
		}
		const handshake = 22
		if len(hello) == 0 || hello[0] != handshake || !bytes.Contains(hello, []byte("ch.example")) {
			t.Errorf("%s began with %q, which is not TLS for the host", dsn, hello)
		}
	}
}

// spy keeps the first write to a connection, and then fails.
type spy struct {
	net.Conn
	first *[]byte
}

func (s *spy) Write(b []byte) (int, error) {
	if len(*s.first) == 0 {
		*s.first = bytes.Clone(b)
	}
	return 0, errEnough
}

// TestOldServer checks that a server without the settings of the tenant fence is refused.
func TestOldServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.HasPrefix(string(body), "SELECT displayName()") {
			send(w, greeting("20.3.1.1"))
			return
		}
		send(w, nativeBlock(nil, nil, [][2]string{{"name", "String"}, {"value", "String"}, {"version()", "String"}}, "readonly", "0", "20.3.1.1"))
	}))
	defer server.Close()
	c := openWith(t, clickhouse.Config{DSN: server.URL})
	_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
	var got *clickhouse.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v", err)
	}
	want := clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse 20.3.1.1 is too old: it has no setting additional_table_filters; the minimum version is 25.8"}
	if diff := cmp.Diff(want, *got, ignoreCause); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
