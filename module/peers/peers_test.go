package peers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/nodes/nodestest"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// server is a server of a test.
type server struct {
	*peers.Peers
	identity  *peers.Identity
	directory *nodes.Directory
	self      nodes.Node
}

// patient is a silence that no busy machine exceeds.
const patient = 20 * time.Second

func start(t *testing.T, b *nodestest.Board, n int, silence time.Duration, handler peers.Handler) *server {
	t.Helper()
	identity, err := peers.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, err := peers.Advertised(listener)
	if err != nil {
		t.Fatal(err)
	}
	self := nodes.Node{Name: fmt.Sprintf("%016x", n), Address: address, Fingerprint: identity.Fingerprint(), Form: 1}
	directory := nodes.Open(nodes.Config{Board: b, Self: self, Every: 10 * time.Millisecond, Now: nodestest.SlowClock()})
	s := &server{peers.Serve(listener, peers.Config{Identity: identity, Directory: directory, Silence: silence}), identity, directory, self}
	if handler != nil {
		s.Handle(handler)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.directory.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func echo(_ context.Context, _ nodes.Node, request []byte) peers.Answer {
	return peers.Answer{Kind: peers.Result, Body: append([]byte("you asked "), request...)}
}

// pair is two servers that know of each other.
func pair(t *testing.T, silence time.Duration, handler peers.Handler) (one, two *server) {
	t.Helper()
	b := nodestest.NewBoard()
	one, two = start(t, b, 1, silence, nil), start(t, b, 2, silence, handler)
	eventually.Is(t, "they know of each other", func() bool { return one.directory.Nodes() == 2 && two.directory.Nodes() == 2 })
	return one, two
}

func TestAsk(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 5<<20)
	one, two := pair(t, patient, func(ctx context.Context, from nodes.Node, request []byte) peers.Answer {
		switch string(request) {
		case "large":
			return peers.Answer{Kind: peers.Result, Body: large}
		case "larger":
			return peers.Answer{Kind: peers.Result, Body: make([]byte, peers.MaxAnswer+1)}
		case "panic":
			panic("a test")
		case "who":
			return peers.Answer{Kind: peers.Failure, Body: []byte(from.Name)}
		}
		return echo(ctx, from, request)
	})
	tests := []struct {
		request string
		want    peers.Answer
	}{
		{"this", peers.Answer{Kind: peers.Result, Body: []byte("you asked this")}},
		{"", peers.Answer{Kind: peers.Result, Body: []byte("you asked ")}},
		{"who", peers.Answer{Kind: peers.Failure, Body: []byte(one.self.Name)}},
		{"large", peers.Answer{Kind: peers.Result, Body: large}},
		{"larger", peers.Declined("the answer is too large")},
		{"panic", peers.Declined("a failure of the server")},
		{strings.Repeat("x", peers.MaxRequest+1), peers.Declined("the request is too large")},
	}
	for _, tt := range tests {
		got, err := one.Ask(t.Context(), two.self, []byte(tt.request))
		if err != nil || got.Kind != tt.want.Kind || !bytes.Equal(got.Body, tt.want.Body) {
			t.Errorf("Ask(%.20q) = %d %.40q, %v; want %d %.40q", tt.request, got.Kind, got.Body, err, tt.want.Kind, tt.want.Body)
		}
	}
}

// TestAnswerInTwoParts: a server sends an answer whose parts are not joined.
func TestAnswerInTwoParts(t *testing.T) {
	rest := bytes.Repeat([]byte("x"), 200<<10)
	one, two := pair(t, patient, func(context.Context, nodes.Node, []byte) peers.Answer {
		return peers.Answer{Kind: peers.Result, Body: []byte("head "), Rest: rest}
	})
	got, err := one.Ask(t.Context(), two.self, nil)
	if err != nil || !bytes.Equal(got.Body, append([]byte("head "), rest...)) {
		t.Errorf("%d bytes, %v", len(got.Body), err)
	}
}

// TestRoom: answers exceed what a server may send or read at a time.
func TestRoom(t *testing.T) {
	one, two := pair(t, patient, func(_ context.Context, _ nodes.Node, request []byte) peers.Answer {
		return peers.Answer{Kind: peers.Result, Body: request, Rest: request}
	})
	for _, tt := range []struct {
		sending, reading int64
		want             string // the reason; empty for an answer
	}{
		{20, 20, ""},
		{20, 20, ""}, // what was taken is free again
		{19, 100, "too much is being sent"},
		{20, 19, "there is no room for the answer"},
		{20, 9, "there is no room for the answer"},
	} {
		peers.SetRoom(two.Peers, tt.sending, 0)
		peers.SetRoom(one.Peers, 0, tt.reading)
		got, err := one.Ask(t.Context(), two.self, []byte("0123456789"))
		if err != nil || (got.Kind == peers.Decline) != (tt.want != "") || tt.want != "" && string(got.Body) != tt.want {
			t.Errorf("sending %d, reading %d: answer %d %q, %v", tt.sending, tt.reading, got.Kind, got.Body, err)
		}
		if !owned(one, two) {
			t.Error("a server whose answer has no room is left out")
		}
		eventually.Is(t, "the room is free again", func() bool {
			sending, _ := peers.Held(two.Peers)
			_, reading := peers.Held(one.Peers)
			return sending == 0 && reading == 0
		})
	}
}

// TestNobodyAnswers: a server is asked before it has a handler, and after the handler is gone.
func TestNobodyAnswers(t *testing.T) {
	one, two := pair(t, patient, nil)
	undo := two.Handle(echo)
	undoNext := two.Handle(func(context.Context, nodes.Node, []byte) peers.Answer { return peers.Answer{Kind: peers.Failure} })
	for _, want := range []peers.Kind{peers.Failure, peers.Result, peers.Decline} {
		if got, err := one.Ask(t.Context(), two.self, nil); err != nil || got.Kind != want {
			t.Errorf("answer %d, %v; want %d", got.Kind, err, want)
		}
		undoNext()
		undo, undoNext = func() {}, undo
	}
	undo()
}

// TestStrangers: a server is asked by clients that it must not answer.
func TestStrangers(t *testing.T) {
	var answered atomic.Int64
	_, two := pair(t, patient, func(ctx context.Context, from nodes.Node, request []byte) peers.Answer {
		answered.Add(1)
		return echo(ctx, from, request)
	})
	stranger, err := peers.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	http2 := new(http.Protocols)
	http2.SetHTTP2(true)
	for name, config := range map[string]*tls.Config{
		"without a certificate":          {},
		"with an unknown certificate":    {Certificates: []tls.Certificate{peers.Certificate(stranger)}},
		"with TLS 1.2":                   {Certificates: []tls.Certificate{peers.Certificate(stranger)}, MaxVersion: tls.VersionTLS12},
		"with a certificate of two keys": {Certificates: []tls.Certificate{mixed(stranger, two.identity)}},
	} {
		config.InsecureSkipVerify = true
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, Protocols: http2}, Timeout: patient}
		res, err := client.Post("https://"+two.self.Address+"/ask", "", strings.NewReader("x"))
		if err == nil {
			body, _ := io.ReadAll(res.Body) // whatever came
			_ = res.Body.Close()
			t.Errorf("%s: status %d %q", name, res.StatusCode, body)
		}
		client.CloseIdleConnections()
	}
	if conn, err := net.Dial("tcp", two.self.Address); err == nil { // without TLS
		_, _ = io.WriteString(conn, "POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		_ = conn.SetReadDeadline(time.Now().Add(patient))
		raw, _ := io.ReadAll(conn)
		if bytes.Contains(raw, []byte("you asked")) {
			t.Errorf("without TLS: %q", raw)
		}
		_ = conn.Close()
	}
	if n := answered.Load(); n != 0 {
		t.Errorf("%d strangers were answered", n)
	}
}

// mixed is the certificate of one server with the key of another.
func mixed(key, certificate *peers.Identity) tls.Certificate {
	out := peers.Certificate(certificate)
	out.PrivateKey = peers.Certificate(key).PrivateKey
	return out
}

// TestRemovedServer: the record of a server is removed while its connection is open.
func TestRemovedServer(t *testing.T) {
	b := nodestest.NewBoard()
	one, two := start(t, b, 1, patient, nil), start(t, b, 2, patient, echo)
	eventually.Is(t, "they know of each other", func() bool { return one.directory.Nodes() == 2 && two.directory.Nodes() == 2 })
	if got, err := one.Ask(t.Context(), two.self, nil); err != nil || got.Kind != peers.Result {
		t.Fatal(got, err)
	}
	if err := one.directory.Close(); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "its record is gone", func() bool { return two.directory.Nodes() == 1 })
	if got, err := one.Ask(t.Context(), two.self, nil); err == nil && got.Kind != peers.Decline {
		t.Errorf("a server without a record got %d %q", got.Kind, got.Body)
	}
}

// TestImpostor: somebody else listens at the address of a server.
func TestImpostor(t *testing.T) {
	b := nodestest.NewBoard()
	one := start(t, b, 1, patient, nil)
	other := start(t, b, 3, patient, echo)
	eventually.Is(t, "they know of each other", func() bool { return one.directory.Nodes() == 2 && other.directory.Nodes() == 2 })
	identity, err := peers.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	claimed := other.self // a known server, but another one than is asked
	claimed.Name, claimed.Fingerprint = "0000000000000002", identity.Fingerprint()
	if got, err := one.Ask(t.Context(), claimed, nil); !errors.Is(err, peers.ErrAbsent) {
		t.Errorf("an impostor's answer: %d %q, %v", got.Kind, got.Body, err)
	}
}

// TestSlowAnswer: a server works for longer than it may be silent.
func TestSlowAnswer(t *testing.T) {
	const silence = 2 * time.Second
	one, two := pair(t, silence, func(ctx context.Context, from nodes.Node, request []byte) peers.Answer {
		time.Sleep(silence + silence/2)
		return echo(ctx, from, request)
	})
	if got, err := one.Ask(t.Context(), two.self, []byte("slowly")); err != nil || string(got.Body) != "you asked slowly" {
		t.Errorf("the answer of a server that works for long: %q, %v", got.Body, err)
	}
}

// owned reports whether a server finds that another one owns any of many results.
func owned(by, of *server) bool {
	for n := range 100 {
		if owner, other := by.directory.Owner([32]byte{byte(n)}); other && owner == of.self {
			return true
		}
	}
	return false
}

// TestLinksOfServersThatLeft: servers come, answer and leave; nothing is kept of them.
func TestLinksOfServersThatLeft(t *testing.T) {
	b := nodestest.NewBoard()
	one := start(t, b, 1, patient, nil)
	for n := range 3 {
		next := start(t, b, n+2, patient, echo)
		eventually.Is(t, "they know of each other", func() bool { return one.directory.Nodes() == 2 && next.directory.Nodes() == 2 })
		if got, err := one.Ask(t.Context(), next.self, nil); err != nil || got.Kind != peers.Result {
			t.Fatal(got, err)
		}
		if got := one.Links(); got != 1 {
			t.Errorf("connections to %d servers, want that to the one that lives", got)
		}
		if err := next.directory.Close(); err != nil {
			t.Fatal(err)
		}
		eventually.Is(t, "its record is gone", func() bool { return one.directory.Nodes() == 1 })
	}
}

// TestDeaf: something at the address of a server accepts connections and is silent.
func TestDeaf(t *testing.T) {
	b := nodestest.NewBoard()
	one, two := start(t, b, 1, 50*time.Millisecond, nil), start(t, b, 2, patient, echo)
	eventually.Is(t, "they know of each other", func() bool { return one.directory.Nodes() == 2 && two.directory.Nodes() == 2 })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	deaf := two.self
	deaf.Address = listener.Addr().String()
	if _, err := one.Ask(t.Context(), deaf, nil); !errors.Is(err, peers.ErrSilent) {
		t.Errorf("a server that says nothing: %v", err)
	}
	if owned(one, two) {
		t.Error("a server that said nothing owns something")
	}
	eventually.Is(t, "its number moves", func() bool { return owned(one, two) })
}

// TestServerEnds: a server ends while it works on an answer.
func TestServerEnds(t *testing.T) {
	working, ended := make(chan struct{}), make(chan struct{})
	one, two := pair(t, patient, func(ctx context.Context, _ nodes.Node, _ []byte) peers.Answer {
		close(working)
		<-ctx.Done()
		close(ended)
		return peers.Declined("it ends")
	})
	go func() {
		<-working
		_ = two.Close() // closed again when the test ends
	}()
	if got, err := one.Ask(t.Context(), two.self, nil); !errors.Is(err, peers.ErrSilent) {
		t.Errorf("a server that ended: %d, %v", got.Kind, err)
	}
	<-ended
}

// TestAskerLeaves: nobody works for a server that no longer waits, and its leaving says nothing about the working server.
func TestAskerLeaves(t *testing.T) {
	working, ended := make(chan struct{}), make(chan struct{})
	one, two := pair(t, patient, func(ctx context.Context, _ nodes.Node, _ []byte) peers.Answer {
		close(working)
		<-ctx.Done()
		close(ended)
		return peers.Answer{}
	})
	cause := errors.New("the caller went away")
	ctx, leave := context.WithCancelCause(t.Context())
	go func() {
		<-working
		leave(cause)
	}()
	if _, err := one.Ask(ctx, two.self, nil); !errors.Is(err, cause) {
		t.Errorf("err = %v, want %v", err, cause)
	}
	<-ended
	if !owned(one, two) {
		t.Error("the server is left out because its caller went away")
	}
}

// TestGarbage reads malformed answers.
func TestGarbage(t *testing.T) {
	for _, answer := range []string{
		"", "garbage and more garbage", "k\x00\x00\x00\x01", "k\x00\x00\x00\x01\x00", "k\x00\x00\x00\x01\x09", "s\x00\x00\x00\x01x", "p\xff\xff\xff\xffx",
		"p\x00\x00\x00\x00", "k\x00\x00\x00\x02\x01\x01",
	} {
		if got, err := peers.Read(strings.NewReader(answer), 100); err == nil {
			t.Errorf("%q is the answer %d %q", answer, got.Kind, got.Body)
		}
	}
	part := "p\x00\x00\x00\x0a0123456789"
	if got, err := peers.Read(strings.NewReader(strings.Repeat(part, 11)+"k\x00\x00\x00\x01\x01"), 100); err == nil {
		t.Errorf("an answer that is too large has %d bytes", len(got.Body))
	}
	if got, err := peers.Read(strings.NewReader(strings.Repeat(part, 10)+"k\x00\x00\x00\x01\x01"), 100); err != nil || len(got.Body) != 100 {
		t.Errorf("the largest answer: %d bytes, %v", len(got.Body), err)
	}
}

// FuzzAnswer: whatever a server sends is an answer within its limits, or none.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"", "s\x00\x00\x00\x00k\x00\x00\x00\x01\x01", "p\x00\x00\x00\x03abck\x00\x00\x00\x01\x02", "p\x00\x01\x00\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 64
		got, err := peers.Read(bytes.NewReader(data), most)
		if err == nil && (len(got.Body) > most || got.Kind < peers.Result || got.Kind > peers.Decline) {
			t.Errorf("read %d of %d bytes", got.Kind, len(got.Body))
		}
	})
}
