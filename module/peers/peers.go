// Package peers lets a server ask another server of its deployment, and answer such requests: one request, one answer, over a listener of its own.
//
// Both sides authenticate each other: at its start each server makes a key and a certificate, whose fingerprint is in its record in the registry. A
// connection to or from a server without such a record is closed before anything is said. Requests and answers are opaque bytes to this package; the
// caller and the handler check them.
//
// While a server works on an answer, it sends a sign of life every few milliseconds. If it is silent for Config.Silence, the asking server gives up
// on it and leaves it out until it is alive again, longer each time that it fails again: see nodes.Directory.
package peers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/caddy-analytics/caddy-analytics/module/nodes"
)

const (
	// MaxRequest is the largest request in bytes.
	MaxRequest = 1 << 20
	// MaxAnswer is the largest answer in bytes.
	MaxAnswer = 96 << 20

	defaultSilence = 200 * time.Millisecond
	// signs is how many signs of life a working server sends during Config.Silence.
	signs = 5
	// maxAnswers is how many requests of others are answered at a time. Further ones are declined.
	maxAnswers = 512
	// maxHeldBytes is how many bytes of answers are sent at a time, and how many are read. What exceeds it is declined, and the asking server computes
	// it itself.
	maxHeldBytes = 256 << 20
	// maxConnections is how many connections are open at a time, including those of strangers, which end with the handshake.
	maxConnections = 1024
	// sendTimeout is how long the other server may take to read an answer.
	sendTimeout = time.Minute
	path        = "/ask"
)

// Handler answers a request of another server. ctx ends when that server no longer waits.
type Handler func(ctx context.Context, from nodes.Node, request []byte) Answer

// Config configures Peers.
type Config struct {
	Identity  *Identity
	Directory *nodes.Directory
	// How long a server may be silent. Default: 200ms.
	Silence time.Duration
	// How to connect to a server. Default: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Default: nothing is logged.
	Logger *zap.Logger
}

// Peers asks other servers and answers them.
type Peers struct {
	identity  *Identity
	directory *nodes.Directory
	silence   time.Duration
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	log       *zap.Logger
	server    *http.Server
	answering chan struct{} // has an element for each request being answered
	served    chan struct{} // closed once the listener is
	sending   room
	reading   room

	handlers struct {
		sync.Mutex
		all []*Handler
	}
	current atomic.Pointer[Handler]

	mu    sync.Mutex
	links map[string]*link // by the name of the server
}

// link is the connection to a server.
type link struct {
	node   nodes.Node
	client *http.Transport
}

// Serve answers other servers on a listener until Close. All requests are declined until there is a handler.
func Serve(listener net.Listener, cfg Config) *Peers {
	p := &Peers{
		identity: cfg.Identity, directory: cfg.Directory, silence: cmp.Or(cfg.Silence, defaultSilence), dial: cfg.Dial, log: cmp.Or(cfg.Logger, zap.NewNop()),
		answering: make(chan struct{}, maxAnswers), served: make(chan struct{}), links: make(map[string]*link),
		sending: room{most: maxHeldBytes}, reading: room{most: maxHeldBytes},
	}
	if p.dial == nil {
		p.dial = (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), TLSConfig: p.serverTLS(), Protocols: onlyHTTP2(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 4 << 10,
		IdleTimeout: 2 * time.Minute, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxAnswers, SendPingTimeout: 15 * time.Second},
		ErrorLog: log.New(io.Discard, "", 0), // strangers' failed handshakes could fill a log
	}
	go func() {
		defer close(p.served)
		if err := p.server.ServeTLS(netutil.LimitListener(listener, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("answering other servers ended", zap.Error(err))
		}
	}()
	return p
}

func onlyHTTP2() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return protocols
}

// Handle makes a handler answer requests, in place of the previous one, until undo is called.
func (p *Peers) Handle(h Handler) (undo func()) {
	p.handlers.Lock()
	defer p.handlers.Unlock()
	own := &h
	p.handlers.all = append(p.handlers.all, own)
	p.current.Store(own)
	return func() {
		p.handlers.Lock()
		defer p.handlers.Unlock()
		var last *Handler
		left := p.handlers.all[:0]
		for _, one := range p.handlers.all {
			if one != own {
				left, last = append(left, one), one
			}
		}
		p.handlers.all = left
		p.current.Store(last)
	}
}

// Close ends all connections.
func (p *Peers) Close() error {
	err := p.server.Close()
	<-p.served
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, l := range p.links {
		l.client.CloseIdleConnections()
		delete(p.links, name)
	}
	if err != nil {
		return fmt.Errorf("closing the listener for other servers: %w", err)
	}
	return nil
}

// serve answers one request.
func (p *Peers) serve(w http.ResponseWriter, r *http.Request) {
	from, ok := p.sender(r)
	if !ok {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != path {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sendTimeout)) // every HTTP/2 connection supports deadlines
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	out := &writer{w: w, rc: http.NewResponseController(w)}
	handler := p.current.Load()
	select {
	case p.answering <- struct{}{}:
		defer func() { <-p.answering }()
	default:
		handler = nil
	}
	if handler == nil {
		out.answer(Declined("busy"))
		return
	}
	if out.sign() != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan Answer, 1)
	go func() { done <- p.answer(ctx, *handler, from, request) }()
	tick := time.NewTicker(p.silence / signs)
	defer tick.Stop()
	for {
		select {
		case a := <-done:
			if size := a.size(); p.sending.take(size) {
				defer p.sending.leave(size)
			} else {
				a = Declined("too much is being sent")
			}
			out.answer(a)
			return
		case <-tick.C:
			if out.sign() != nil {
				cancel()
				<-done // the handler must not outlive the slot that it takes
				return
			}
		}
	}
}

// answer calls a handler. If it panics, the request is declined.
func (p *Peers) answer(ctx context.Context, h Handler, from nodes.Node, request []byte) (a Answer) {
	defer func() {
		if crash := recover(); crash != nil {
			p.log.Error("answering another server panicked", zap.String("node", from.Name), zap.String("error", fmt.Sprint(crash)), zap.ByteString("stack", debug.Stack()))
			a = Declined("a failure of the server")
		}
	}()
	return h(ctx, from, request)
}

// sender returns the server that sent a request. Its record may have gone since the connection was made.
func (p *Peers) sender(r *http.Request) (nodes.Node, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) != 1 {
		return nodes.Node{}, false
	}
	return p.directory.Known(r.Context(), fingerprint(r.TLS.PeerCertificates[0].Raw))
}

var (
	// ErrSilent is the error of a server that does not answer, or whose answer can't be read.
	ErrSilent = errors.New("the server does not answer")
	// ErrAbsent is an ErrSilent for an address where nobody listens, or another server does.
	ErrAbsent = fmt.Errorf("%w: it is not at its address", ErrSilent)
)

// Ask asks a server. The error is ErrSilent or ErrAbsent, which is one, or the cause of ctx. A server that does not answer owns no results from then
// on: see nodes.Directory.
func (p *Peers) Ask(ctx context.Context, node nodes.Node, request []byte) (Answer, error) {
	if len(request) > MaxRequest {
		return Declined("the request is too large"), nil
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(p.silence, func() { cancel(ErrSilent) })
	defer quiet.Stop()
	var connected atomic.Bool
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	got, err := p.ask(limited, node, request, func() { quiet.Reset(p.silence) })
	if err == nil {
		if p.directory.Answered(node.Name) {
			p.log.Info("another server answers again", zap.String("node", node.Name), zap.String("address", node.Address))
		}
		return got, nil
	}
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if p.directory.Silent(node.Name) {
		p.log.Warn("another server does not answer; its results are computed here until it is alive again", zap.String("node", node.Name),
			zap.String("address", node.Address), zap.Error(err))
	}
	if connected.Load() || !errors.Is(err, ErrSilent) { // otherwise the next question may find the connection that is being made: far away, that alone takes longer
		p.drop(node.Name)
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errStranger) {
		return Answer{}, ErrAbsent
	}
	return Answer{}, ErrSilent
}

func (p *Peers) ask(ctx context.Context, node nodes.Node, request []byte, alive func()) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+node.Address+path, bytes.NewReader(request))
	if err != nil {
		return Answer{}, fmt.Errorf("asking a server: %w", err)
	}
	res, err := p.link(node).client.RoundTrip(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return Answer{}, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden: // it does not know this server yet
		return Declined("not known"), nil
	default:
		return Answer{}, errors.New("status " + strconv.Itoa(res.StatusCode))
	}
	return read(res.Body, MaxAnswer, &p.reading, alive)
}

// link returns the connection to a server: a new one if the server has restarted.
func (p *Peers) link(node nodes.Node) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[node.Name]
	if l != nil && l.node == node {
		return l
	}
	if l != nil {
		l.client.CloseIdleConnections()
	}
	for name, old := range p.links { // of processes that have ended
		if name != node.Name && !p.directory.Has(name) {
			old.client.CloseIdleConnections()
			delete(p.links, name)
		}
	}
	l = &link{node: node, client: &http.Transport{
		TLSClientConfig: p.clientTLS(node.Fingerprint), Protocols: onlyHTTP2(), TLSHandshakeTimeout: time.Second,
		DialContext:     p.dial,
		IdleConnTimeout: time.Minute, DisableCompression: true, MaxResponseHeaderBytes: 4 << 10,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second, MaxReceiveBufferPerStream: 4 << 20, MaxReceiveBufferPerConnection: 16 << 20},
	}}
	p.links[node.Name] = l
	return l
}

// drop forgets the connection to a server.
func (p *Peers) drop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[name]; l != nil {
		l.client.CloseIdleConnections()
		delete(p.links, name)
	}
}

// serverTLS accepts servers that have a record.
func (p *Peers) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.identity.certificate}, ClientAuth: tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // each connection has to prove its identity
		NextProtos:             []string{"h2"},
		VerifyConnection: func(state tls.ConnectionState) error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if len(state.PeerCertificates) != 1 {
				return errStranger
			}
			if _, ok := p.directory.Known(ctx, fingerprint(state.PeerCertificates[0].Raw)); !ok {
				return errStranger
			}
			return nil
		},
	}
}

// clientTLS accepts only the given server.
func (p *Peers) clientTLS(want nodes.Fingerprint) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.identity.certificate}, NextProtos: []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // no authority signs certificates of servers: the registry says which one it is, which is checked next
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) != 1 || fingerprint(state.PeerCertificates[0].Raw) != want {
				return errStranger
			}
			return nil
		},
	}
}

var errStranger = errors.New("no server of this deployment has this certificate")
