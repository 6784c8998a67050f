package module

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// served is a world on a real connection, with times that a test can wait for.
func served(t *testing.T, pause time.Duration) (*world, *httptest.Server) {
	t.Helper()
	for _, of := range []*time.Duration{&bodyPause, &unreadTime} {
		before := *of
		*of = pause
		t.Cleanup(func() { *of = before })
	}
	w := newWorld(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := w.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })); err != nil {
			t.Error(err)
		}
	}))
	server.EnableHTTP2 = true
	t.Cleanup(server.Close)
	return w, server
}

// TestStalledBody sends a half body over a connection of its own, and waits for the answer and the end of the connection.
func TestStalledBody(t *testing.T) {
	w, server := served(t, 200*time.Millisecond)
	server.Start()
	for _, tt := range []struct{ name, head, want string }{
		{"a query", "POST /api/projects/@current/query/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.secret + "\r\nContent-Length: 100\r\n\r\n{\"query\"", "HTTP/1.1 408 "},
		{"in chunks", "POST /api/projects/@current/query/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.secret + "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"que", "HTTP/1.1 408 "},
		{"a key in the body", "POST /api/projects/@current/query/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"query\"", "HTTP/1.1 408 "},
		{"nobody reads it", "POST /api/projects/@current/query/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer nobody\r\nContent-Length: 100\r\n\r\n{\"query\"", "HTTP/1.1 401 "},
		{"no such route", "POST /api/nothing/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"query\"", "HTTP/1.1 404 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, tt.head); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn) // to the end of the connection
			if err != nil || !strings.HasPrefix(string(answer), tt.want) {
				t.Errorf("%v: %s", err, answer)
			}
			if strings.Contains(tt.want, "408") && !strings.Contains(string(answer), `{"type":"invalid_request","code":"request_timeout","detail":"The request body did not arrive in time.","attr":null}`) {
				t.Errorf("the answer: %s", answer)
			}
		})
	}
}

// TestSlowBody: a body that comes in small parts with pauses takes longer than one pause may, and the connection brings another
// request after a longer one.
func TestSlowBody(t *testing.T) {
	const pause = 400 * time.Millisecond
	w, server := served(t, pause)
	server.Start()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	body := `{"query": {"kind": "HogQLMetadata", "language": "hogQL", "query": "select 1"}}`
	for range 2 {
		fmt.Fprintf(conn, "POST /api/projects/@current/query/upgrade/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", w.secret, len(body))
		for part := range 8 {
			time.Sleep(pause / 5)
			if _, err := io.WriteString(conn, body[part*len(body)/8:(part+1)*len(body)/8]); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", answer.StatusCode, text, err)
		}
		time.Sleep(2 * pause) // a deadline that was left would end the connection now
	}
}

// TestStalledBodyHTTP2: of a connection that carries several requests, only the one that stalls ends.
func TestStalledBodyHTTP2(t *testing.T) {
	w, server := served(t, 200*time.Millisecond)
	server.StartTLS()
	ask := func(body io.Reader) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/projects/@current/query/upgrade/", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.secret)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer
	}
	half, more := io.Pipe()
	defer more.Close()
	go func() { _, _ = io.WriteString(more, `{"query"`) }()
	if answer := ask(half); answer.ProtoMajor != 2 || answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a stalled body: HTTP/%d %d", answer.ProtoMajor, answer.StatusCode)
	}
	if answer := ask(strings.NewReader(`{"query": {"kind": "HogQLQuery", "query": "select 1"}}`)); answer.StatusCode != http.StatusOK {
		t.Errorf("the next request: %d", answer.StatusCode)
	}
}

// TestSlowReader: an answer that nobody reads ends after a while; one that is read slowly arrives whole.
func TestSlowReader(t *testing.T) {
	before := sendTimeout
	sendTimeout = 300 * time.Millisecond
	t.Cleanup(func() { sendTimeout = before })
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<20) // more than sockets hold
	ended := make(chan time.Duration, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began := time.Now()
		send(w, body)
		ended <- time.Since(began)
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("an answer that nobody reads does not end")
	}
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got := 0
	for part := make([]byte, 4<<20); err == nil; time.Sleep(20 * time.Millisecond) {
		var n int
		n, err = io.ReadFull(answer.Body, part)
		got += n
	}
	if took := <-ended; got != len(body) || took < sendTimeout {
		t.Errorf("read %d of %d bytes in %v: %v", got, len(body), took, err)
	}
}
