package admin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// TestStallLimitedBody sends stalling and slow bodies over a connection of their own.
func TestStallLimitedBody(t *testing.T) {
	const pause = time.Second
	got := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limitStalls(w, r, pause)
		_, err := io.ReadAll(r.Body)
		got <- err
		time.Sleep(2 * pause) // as while an import is working
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	answers := bufio.NewReader(conn)
	const parts = 15 // which take longer than a pause
	for range 2 {    // a remaining deadline would end the connection before the second
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", parts)
		for range parts {
			time.Sleep(pause / 10)
			if _, err := io.WriteString(conn, "x"); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-got; err != nil {
			t.Fatalf("a slow body: %v", err)
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Errorf("a slow body: %d", answer.StatusCode)
		}
	}
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a stalled body: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a stalled body does not end")
	}
}
