package harness

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
)

// Fault is how a Relay fails.
type Fault int

// The faults.
const (
	Works   Fault = iota
	Refuses       // new connections are refused, and open ones closed
	Resets        // all connections are reset
	Silent        // connections are accepted, but no data passes
	Mute          // requests arrive, but no responses come back
)

// Relay forwards connections to an address. It can fail like a host or a network.
type Relay struct {
	address, to string

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	fault    Fault
	open     map[net.Conn]struct{}
	changed  chan struct{} // closed at the next change of fault
	from, by []byte        // credentials to replace, and their replacement

	dialed atomic.Int64
}

// NewRelay returns a relay that listens on its own port.
func NewRelay(to string) (*Relay, error) {
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}
	r := &Relay{to: to, address: fmt.Sprintf("127.0.0.1:%d", ports[0]), open: map[net.Conn]struct{}{}, changed: make(chan struct{})}
	return r, r.listen()
}

// Relays puts relays in front of the server of a URL, until the test ends, and returns them with the URL that has their addresses instead.
func Relays(tb testing.TB, to string, many int) (through string, relays []*Relay) {
	tb.Helper()
	parsed, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	var addresses []string
	for range many {
		r, err := NewRelay(parsed.Host)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := r.Close(); err != nil {
				tb.Error(err)
			}
		})
		relays, addresses = append(relays, r), append(addresses, r.Address())
	}
	parsed.Host = strings.Join(addresses, ",")
	return parsed.String(), relays
}

// Address returns the address that it listens on.
func (r *Relay) Address() string { return r.address }

// Dialed returns the number of connections accepted so far.
func (r *Relay) Dialed() int64 { return r.dialed.Load() }

// Rewrite replaces the login user:password in HTTP requests.
func (r *Relay) Rewrite(from, by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.by = []byte(base64.StdEncoding.EncodeToString([]byte(from))), []byte(base64.StdEncoding.EncodeToString([]byte(by)))
}

func (r *Relay) listen() error {
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		return err
	}
	r.listener = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.dialed.Add(1)
			go r.pass(conn)
		}
	}()
	return nil
}

// Set makes it fail, or work again.
func (r *Relay) Set(fault Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
	close(r.changed)
	r.changed = make(chan struct{})
	if fault == Refuses || fault == Resets {
		r.closeAll(fault == Resets)
	}
	switch {
	case fault == Refuses && r.listener != nil:
		_ = r.listener.Close() // nobody else closes it
		r.listener = nil
	case fault != Refuses && r.listener == nil:
		if err := r.listen(); err != nil {
			panic(err) // it was free a moment ago
		}
	}
}

// closeAll closes all open connections. The caller holds mu.
func (r *Relay) closeAll(reset bool) {
	for conn := range r.open {
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	clear(r.open)
}

// Close closes the relay.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = Refuses
	close(r.changed)
	r.changed = make(chan struct{})
	r.closeAll(false)
	if r.listener == nil {
		return nil
	}
	err := r.listener.Close()
	r.listener = nil
	return err
}

// add records an open connection. It closes the connection and returns false if it must not be open.
func (r *Relay) add(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == Resets {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	if r.fault == Refuses || r.fault == Resets {
		_ = conn.Close()
		return false
	}
	r.open[conn] = struct{}{}
	return true
}

func (r *Relay) remove(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, conn)
	_ = conn.Close()
}

// pass forwards a connection until either end closes.
func (r *Relay) pass(conn net.Conn) {
	if !r.add(conn) {
		return
	}
	defer r.remove(conn)
	r.await(true)
	behind, err := net.Dial("tcp", r.to)
	if err != nil || !r.add(behind) {
		return
	}
	defer r.remove(behind)
	ended := make(chan struct{}, 2)
	for _, way := range []struct {
		from, to net.Conn
		requests bool
	}{{conn, behind, true}, {behind, conn, false}} {
		go func() {
			_ = r.copy(way.to, way.from, way.requests)
			ended <- struct{}{}
		}()
	}
	<-ended
}

// await waits while the relay holds back requests or responses.
func (r *Relay) await(requests bool) {
	for {
		r.mu.Lock()
		silent, changed := r.fault == Silent || r.fault == Mute && !requests, r.changed
		r.mu.Unlock()
		if !silent {
			return
		}
		<-changed
	}
}

func (r *Relay) copy(to io.Writer, from io.Reader, requests bool) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.await(requests)
		piece := buf[:n]
		if requests {
			r.mu.Lock()
			if len(r.from) > 0 {
				piece = bytes.ReplaceAll(piece, r.from, r.by)
			}
			r.mu.Unlock()
		}
		if _, failed := to.Write(piece); failed != nil || err != nil {
			return errors.Join(err, failed)
		}
	}
}
