package clickhouse_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
)

// secret is the password in the DSNs of this file.
const secret = "s3cret-word"

// watched opens a client with a log that the test can read.
func watched(t *testing.T, config clickhouse.Config) (*clickhouse.Client, *observer.ObservedLogs) {
	t.Helper()
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

// atLeastInfo returns the log lines that an operator sees.
func atLeastInfo(logs *observer.ObservedLogs) (lines []string) {
	for _, entry := range logs.All() {
		if entry.Level >= zap.InfoLevel {
			lines = append(lines, fmt.Sprint(entry.Message, " ", entry.ContextMap()))
		}
	}
	return lines
}

// TestOutages connects to unusable servers. The log must say once which server, why, and what to do.
func TestOutages(t *testing.T) {
	native, web := oldServer(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(encrypted.Close)
	encrypted.Config.ErrorLog = nil
	nobody := closedPort(t)
	mute := silentServer(t)
	page, tls := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(encrypted.URL, "https://")
	login := "default:" + secret + "@"
	for _, tt := range []struct{ name, dsn, reason, advice string }{
		{"nobody, native", "clickhouse://" + login + nobody, "connection refused", "start ClickHouse, or correct host and port"},
		{"nobody, HTTP", "http://" + login + nobody, "connection refused", "start ClickHouse, or correct host and port"},
		{"silence, native", "clickhouse://" + login + mute, "does not answer in time", "firewall"},
		{"silence, HTTP", "http://" + login + mute, "does not answer in time", "firewall"},
		{"no such name", "clickhouse://" + login + "clickhouse.invalid:9000", `the host "clickhouse.invalid" cannot be resolved`, "DNS"},
		{"no such name, HTTP", "http://" + login + "clickhouse.invalid:8123", `the host "clickhouse.invalid" cannot be resolved`, "DNS"},
		{"wrong password, native", "clickhouse://" + login + native, `rejects the user "default" or the password (code 193)`, "check user and password"},
		{"wrong password, HTTP", "http://" + login + web, `rejects the user "default" or the password (code 193)`, "check user and password"},
		{"wrong user", "clickhouse://nobody:" + secret + "@" + native, `rejects the user "nobody" or the password (code 192)`, "check user and password"},
		{"no such database", "clickhouse://default:secret@" + native + "/nosuch", `no database "nosuch"`, "create the database"},
		{"too old, native", "clickhouse://default:secret@" + native, "is too old: it has no setting additional_table_filters; the minimum version is 25.8", "upgrade ClickHouse to 25.8 or newer"},
		{"too old, HTTP", "http://default:secret@" + web, "older than ClickHouse 25.8", "upgrade ClickHouse to 25.8 or newer"},
		{"native port, asked over HTTP", "http://" + login + native, "speaks ClickHouse's native protocol, not HTTP", "use clickhouse://"},
		{"port of HTTP, asked natively", "clickhouse://" + login + web, "speaks HTTP, not ClickHouse's native protocol", "use http://"},
		{"TLS, asked without, native", "clickhouse://" + login + tls, "", "port"},
		{"TLS, asked without, HTTP", "http://" + login + tls, "speaks TLS", "secure=true"},
		{"no TLS, asked with it, native", "clickhouse://" + login + web + "?secure=true", "does not speak TLS", "remove secure=true (https://)"},
		{"no TLS, asked with it, HTTP", "https://" + login + web, "does not speak TLS", "remove secure=true (https://)"},
		{"a certificate of nobody's, native", "clickhouse://" + login + tls + "?secure=true", "its certificate is not trusted", "tls_server_name"},
		{"a certificate of nobody's, HTTP", "https://" + login + tls, "its certificate is not trusted", "tls_server_name"},
		{"another server, HTTP", "http://" + login + page, "HTTP status 404", "any proxy in between"},
		{"another server, native", "clickhouse://" + login + page, "speaks HTTP, not ClickHouse's native protocol", "use http://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, logs := watched(t, clickhouse.Config{DSN: tt.dsn, DialTimeout: 3 * time.Second})
			for _, err := range []error{
				c.Ping(t.Context()),
				func() error {
					_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
					return err
				}(),
				c.Migrate(t.Context()),
			} {
				if kind := kindOf(err); kind != clickhouse.Unavailable {
					t.Errorf("got %v (%v), want unavailable", err, errors.Unwrap(errors.Unwrap(err)))
				}
			}
			if up, reason := c.Reachable(); up || !strings.Contains(reason, tt.reason) {
				t.Errorf("reachable %t, because %q", up, reason)
			}
			lines := atLeastInfo(logs)
			if len(lines) != 1 {
				t.Fatalf("%d lines for the operator: %q", len(lines), lines)
			}
			host, _, _ := strings.Cut(tt.dsn[strings.Index(tt.dsn, "@")+1:], "/")
			host, _, _ = strings.Cut(host, "?")
			for _, want := range []string{host, tt.reason, tt.advice} {
				if !strings.Contains(lines[0], want) {
					t.Errorf("the log does not say %q: %s", want, lines[0])
				}
			}
			for _, entry := range logs.All() {
				if line := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(line, secret) {
					t.Errorf("the log contains the password: %s", line)
				}
			}
		})
	}
}

// TestOutageEnds checks that the log says once when a server goes down and once when it comes back.
func TestOutageEnds(t *testing.T) {
	down := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down {
			w.Header().Set("X-ClickHouse-Exception-Code", "516")
			w.WriteHeader(http.StatusForbidden)
			send(w, []byte("Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED)"))
			return
		}
		fakeAnswer(w, r)
	}))
	defer server.Close()
	c, logs := watched(t, clickhouse.Config{DSN: "http://default:" + secret + "@" + strings.TrimPrefix(server.URL, "http://")})
	ping := func(want bool) {
		t.Helper()
		for range 3 {
			if err := c.Ping(t.Context()); (err == nil) != want {
				t.Fatalf("got %v", err)
			}
		}
		if up, reason := c.Reachable(); up != want || up != (reason == "") {
			t.Errorf("reachable %t, because %q", up, reason)
		}
	}
	ping(true)
	if lines := atLeastInfo(logs); len(lines) != 0 {
		t.Errorf("a working server: %q", lines)
	}
	for range 3 { // the same outage is not logged again within a minute
		down = true
		ping(false)
		down = false
		ping(true)
	}
	lines := atLeastInfo(logs)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "ClickHouse cannot be used") || !strings.HasPrefix(lines[1], "ClickHouse answers again") {
		t.Errorf("the log says %q", lines)
	}
}

// closedPort returns an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}

// silentServer accepts connections and never sends anything.
func silentServer(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// TestSilence queries a server that never answers. Concurrent callers wait no longer than one.
func TestSilence(t *testing.T) {
	for _, scheme := range []string{"clickhouse", "http"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			c, _ := watched(t, clickhouse.Config{DSN: scheme + "://default:" + secret + "@" + silentServer(t), DialTimeout: 3 * time.Second})
			const callers = 50
			ended := make(chan error, callers)
			began := time.Now()
			for range callers {
				go func() {
					_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
					ended <- err
				}()
			}
			for range callers {
				if kind := kindOf(<-ended); kind != clickhouse.Unavailable {
					t.Errorf("got %v, want unavailable", kind)
				}
			}
			if took := time.Since(began); took > patience {
				t.Errorf("%d callers waited %s", callers, took)
			}
		})
	}
}
