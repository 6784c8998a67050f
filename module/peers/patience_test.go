package peers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/nodes/nodestest"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// silence is the default of Config.Silence.
const silence = 200 * time.Millisecond

// wire is a listener with its connections in memory, so that the test controls time.
type wire struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once

	refuses, vanished atomic.Bool
	far               atomic.Bool // it takes longer to connect than a server may be silent

	mu    sync.Mutex
	conns []net.Conn // the server's ends
}

func newWire() *wire { return &wire{accept: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.accept:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (*wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9443} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if w.refuses.Load() {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if w.far.Load() {
		select {
		case <-time.After(2 * silence):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	here, there := net.Pipe()
	select {
	case w.accept <- there:
	case <-w.closed:
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w.mu.Lock()
	w.conns = append(w.conns, there)
	w.mu.Unlock()
	return &end{here, w}, nil
}

// cut ends all connections, as the system does when a process ends.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// end is the asking server's end of a connection. Nothing comes from a server that vanished.
type end struct {
	net.Conn

	wire *wire
}

func (e *end) Read(p []byte) (int, error) {
	for {
		n, err := e.Conn.Read(p)
		if err != nil || !e.wire.vanished.Load() {
			return n, err
		}
	}
}

// wired is a server that asks over a wire, and the server that it asks.
type wired struct {
	*wire
	one, two *server
	logs     *observer.ObservedLogs
}

func startWired(t *testing.T, handler peers.Handler) *wired {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	w := &wired{wire: newWire(), logs: logs}
	b := nodestest.NewBoard()
	serve := func(n byte, listener net.Listener) *server {
		identity, err := peers.NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		self := nodes.Node{Name: "000000000000000" + string('0'+n), Address: "10.0.0.1:9443", Fingerprint: identity.Fingerprint(), Form: 1}
		directory := nodes.Open(nodes.Config{Board: b, Self: self})
		return &server{
			peers.Serve(listener, peers.Config{Identity: identity, Directory: directory, Dial: w.dial, Logger: zap.New(core)}), identity, directory, self,
		}
	}
	w.one, w.two = serve(1, newWire()), serve(2, w.wire)
	if handler != nil {
		w.two.Handle(handler)
	}
	time.Sleep(4500 * time.Millisecond)
	if !owned(w.one, w.two) {
		t.Fatal("the other server owns nothing")
	}
	return w
}

func (w *wired) end(t *testing.T) {
	t.Helper()
	w.cut()
	if err := errors.Join(w.one.directory.Close(), w.two.directory.Close(), w.one.Close(), w.two.Close()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// TestPatience: the owner of a result fails in every possible way, while it works or before. The asking server loses no more time than Config.Silence.
func TestPatience(t *testing.T) {
	const works = time.Minute
	tests := []struct {
		name   string
		before func(*wired) // the question
		during func(*wired) // when it has worked for a minute
		want   error
		took   time.Duration
	}{
		{"it works for long", nil, func(*wired) {}, nil, 2 * works},
		{"it refuses the connection", func(w *wired) { w.refuses.Store(true) }, nil, peers.ErrAbsent, 0},
		{"it takes the connection and says nothing", func(w *wired) { w.vanished.Store(true) }, nil, peers.ErrSilent, silence},
		{"it takes no connection", func(w *wired) { _ = w.two.Close(); w.closed = make(chan struct{}) }, nil, peers.ErrSilent, silence},
		{"it ends", nil, func(w *wired) { w.cut() }, peers.ErrSilent, works},
		{"it vanishes", nil, func(w *wired) { w.vanished.Store(true) }, peers.ErrSilent, works + silence},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				var w *wired
				w = startWired(t, func(ctx context.Context, from nodes.Node, request []byte) peers.Answer {
					defer close(ended)
					select {
					case <-time.After(works - time.Millisecond): // between two signs
						tt.during(w)
					case <-ctx.Done():
						return peers.Declined("it ends")
					}
					select {
					case <-time.After(works + time.Millisecond):
					case <-ctx.Done():
					}
					return echo(ctx, from, request)
				})
				if tt.before != nil {
					tt.before(w)
				}
				began := time.Now()
				got, err := w.one.Ask(t.Context(), w.two.self, []byte("this"))
				took := time.Since(began)
				if !errors.Is(err, tt.want) || errors.Is(err, peers.ErrAbsent) != (tt.want == peers.ErrAbsent) || err == nil && string(got.Body) != "you asked this" { //nolint:errorlint // this exact error
					t.Errorf("%q, %v; want %v", got.Body, err, tt.want)
				}
				if took > tt.took || took < tt.took-silence/5 {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				if owned(w.one, w.two) != (tt.want == nil) {
					t.Errorf("the server owns something: %t", owned(w.one, w.two))
				}
				w.end(t)
				if tt.during != nil {
					<-ended
				}
			})
		})
	}
}

// TestFar: a connection that takes long to make is made once, and serves the questions after the one that did not wait for it.
func TestFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWired(t, echo)
		w.far.Store(true)
		began := time.Now()
		if _, err := w.one.Ask(t.Context(), w.two.self, nil); !errors.Is(err, peers.ErrSilent) || time.Since(began) > silence {
			t.Errorf("the first question ends after %s: %v", time.Since(began), err)
		}
		for !owned(w.one, w.two) {
			time.Sleep(time.Second)
		}
		if got, err := w.one.Ask(t.Context(), w.two.self, []byte("this")); err != nil || string(got.Body) != "you asked this" {
			t.Errorf("the second question: %q, %v", got.Body, err)
		}
		w.end(t)
	})
}

// TestCut: a server can't be reached for an hour. It is asked less and less often, and the log has two lines about it.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWired(t, echo)
		w.vanished.Store(true)
		asked := 0
		for range 3600 {
			time.Sleep(time.Second)
			if !owned(w.one, w.two) {
				continue
			}
			asked++
			var asking sync.WaitGroup
			for range 8 {
				asking.Go(func() {
					if _, err := w.one.Ask(t.Context(), w.two.self, nil); !errors.Is(err, peers.ErrSilent) {
						t.Error(err)
					}
				})
			}
			asking.Wait()
		}
		if asked < 60 || asked > 90 {
			t.Errorf("a server that can't be reached was asked %d times in an hour, want once in 48 seconds", asked)
		}
		w.vanished.Store(false)
		if _, err := w.one.Ask(t.Context(), w.two.self, nil); err != nil {
			t.Error(err)
		}
		var messages []string
		for _, entry := range w.logs.All() {
			messages = append(messages, entry.Message)
		}
		want := []string{"another server does not answer; its results are computed here until it is alive again", "another server answers again"}
		if len(messages) != 2 || messages[0] != want[0] || messages[1] != want[1] {
			t.Errorf("log: %q, want %q", messages, want)
		}
		w.end(t)
	})
}

// TestPanicIsLogged: a handler panics.
func TestPanicIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWired(t, func(context.Context, nodes.Node, []byte) peers.Answer { panic(io.ErrNoProgress) })
		if got, err := w.one.Ask(t.Context(), w.two.self, nil); err != nil || got.Kind != peers.Decline {
			t.Errorf("%d, %v", got.Kind, err)
		}
		logged := w.logs.FilterMessage("answering another server panicked").All()
		if len(logged) != 1 {
			t.Fatalf("log: %v", w.logs.All())
		}
		fields := logged[0].ContextMap()
		if stack, _ := fields["stack"].(string); fields["error"] != io.ErrNoProgress.Error() || !strings.Contains(stack, "TestPanicIsLogged") {
			t.Errorf("log: %v", fields)
		}
		w.end(t)
	})
}
