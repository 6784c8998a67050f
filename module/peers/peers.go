// Package peers lets a server ask another one of its deployment, and answer it: one request, one answer, over a listener of its own.
//
// Both sides authenticate one another: each server makes a key and a certificate when it starts, whose fingerprint stands in its record in the registry.
// A connection to or from a server without a record there ends before anything is said. What is asked and what is answered are bytes to this package;
// whoever gives them checks them.
//
// While a server works on an answer it says so every few milliseconds. One that says nothing for Config.Silence is given up, and left out until it is
// alive again, for longer each time that it fails again: see nodes.Directory.
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
	// MaxRequest is the most bytes of a request.
	MaxRequest = 1 << 20
	// MaxAnswer is the most bytes of an answer.
	MaxAnswer = 96 << 20

	defaultSilence = 200 * time.Millisecond
	// signs is how often a server that works says so while the other waits for Config.Silence.
	signs = 5
	// mostAnswers is how many requests of others are answered at once. Beyond that they are declined.
	mostAnswers = 512
	// mostBytes is how many bytes of answers are sent at once, and how many are read. What goes beyond it is declined: its server computes it.
	mostBytes = 256 << 20
	// mostConnections is how many connections are open at once, those of strangers too, which end with their handshake.
	mostConnections = 1024
	// longestSend is how long the other may take to read an answer.
	longestSend = time.Minute
	path        = "/ask"
)

// Handler answers a request of another server. ctx ends when that no longer waits.
type Handler func(ctx context.Context, from nodes.Node, request []byte) Answer

// Config says what Peers work with.
type Config struct {
	Identity  *Identity
	Directory *nodes.Directory
	// How long a server may say nothing. Default: 200ms.
	Silence time.Duration
	// How a server is reached. Default: over TCP.
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
	answering chan struct{} // has room for each request that is answered
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

// Serve answers other servers on a listener, until Close. Until there is a handler, all requests are declined.
func Serve(listener net.Listener, cfg Config) *Peers {
	p := &Peers{
		identity: cfg.Identity, directory: cfg.Directory, silence: cmp.Or(cfg.Silence, defaultSilence), dial: cfg.Dial, log: cmp.Or(cfg.Logger, zap.NewNop()),
		answering: make(chan struct{}, mostAnswers), served: make(chan struct{}), links: make(map[string]*link),
		sending: room{most: mostBytes}, reading: room{most: mostBytes},
	}
	if p.dial == nil {
		p.dial = (&net.Dialer{Timeout: time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), TLSConfig: p.serverTLS(), Protocols: onlyHTTP2(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 4 << 10,
		IdleTimeout: 2 * time.Minute, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostAnswers, SendPingTimeout: 15 * time.Second},
		ErrorLog: log.New(io.Discard, "", 0), // handshakes of strangers, who could fill a log
	}
	go func() {
		defer close(p.served)
		if err := p.server.ServeTLS(netutil.LimitListener(listener, mostConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
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

// Handle has requests answered by a handler, in the place of the one before until undo is called.
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
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(longestSend)) // every connection of HTTP/2 has them
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
				<-done // it must not outlive the place that it takes
				return
			}
		}
	}
}

// answer calls a handler. One that panics declines.
func (p *Peers) answer(ctx context.Context, h Handler, from nodes.Node, request []byte) (a Answer) {
	defer func() {
		if crash := recover(); crash != nil {
			p.log.Error("answering another server panicked", zap.String("node", from.Name), zap.String("error", fmt.Sprint(crash)), zap.ByteString("stack", debug.Stack()))
			a = Declined("a failure of the server")
		}
	}()
	return h(ctx, from, request)
}

// sender is the server that sent a request. Its record may have gone since the connection was made.
func (p *Peers) sender(r *http.Request) (nodes.Node, bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) != 1 {
		return nodes.Node{}, false
	}
	return p.directory.Known(r.Context(), fingerprint(r.TLS.PeerCertificates[0].Raw))
}

var (
	// ErrSilent is the error of a server that does not answer, or not in a form that can be read.
	ErrSilent = errors.New("the server does not answer")
	// ErrAbsent is an ErrSilent of a server at whose address nobody listens, or another one does.
	ErrAbsent = fmt.Errorf("%w: it is not at its address", ErrSilent)
)

// Ask asks a server. The error is ErrSilent, of which ErrAbsent is one, or the cause of ctx. Who does not answer owns nothing from then on: see
// nodes.Directory.
func (p *Peers) Ask(ctx context.Context, node nodes.Node, request []byte) (Answer, error) {
	if len(request) > MaxRequest {
		return Declined("the request is too large"), nil
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(p.silence, func() { cancel(ErrSilent) })
	defer quiet.Stop()
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
	p.drop(node.Name)
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

// link is the connection to a server: another one if it has started anew.
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
	for name, old := range p.links { // of processes that ended
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

// serverTLS lets in servers that have a record.
func (p *Peers) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.identity.certificate}, ClientAuth: tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // each connection proves who is there
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

// clientTLS accepts one server alone.
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
