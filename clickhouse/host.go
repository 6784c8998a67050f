package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/singleflight"
)

// host is one of a client's servers.
type host struct {
	pool           // for queries
	control pool   // for short internal queries, which never wait for other queries
	fills   pool   // for queries that write into tables
	pings   pinger // nil for the only host of a client
	address string

	contact contact
	known   atomic.Pointer[server]
	asked   singleflight.Group

	// Of several hosts:
	out   atomic.Bool  // it does not answer, so it is asked last
	unfit atomic.Bool  // its tables differ from those of the others, so it is not asked
	heard atomic.Int64 // when its last byte arrived, in nanoseconds since 1970

	mu       sync.Mutex
	attempts map[*attempt]struct{} // what is running on it
	watching bool                  // watch is running
	replicas map[string]string     // the name of its replica of each table, as last seen
	passed   map[string][]string   // by table, the replicas that are away and were waited for in vain
}

// Host is one of a client's servers. The zero Host is none.
type Host struct{ of *host }

// String returns the host's address; empty for none.
func (h Host) String() string {
	if h.of == nil {
		return ""
	}
	return h.of.address
}

// Front returns the host that is asked now if any may answer. It is the zero Host if queries are spread over the hosts.
func (c *Client) Front() Host {
	if len(c.hosts) > 1 && c.strategy != driver.ConnOpenInOrder {
		return Host{}
	}
	return Host{c.order(false)[0]}
}

// attempt is something that is running on a host.
type attempt struct{ end context.CancelCauseFunc }

const (
	// dialTimeout is how long a dial may take if there are other hosts.
	dialTimeout = 500 * time.Millisecond
	// pingInterval is how often a host is pinged while something runs on it, and pingTimeout is how long it may take to answer. It takes the sum of both to
	// notice that a host is silent.
	pingInterval = 150 * time.Millisecond
	pingTimeout  = 450 * time.Millisecond
	// minReturnInterval and maxReturnInterval are the shortest and the longest time between two checks of a host that does not answer.
	minReturnInterval = 100 * time.Millisecond
	maxReturnInterval = 5 * time.Second
	// returnCheckTimeout is how long such a check may take.
	returnCheckTimeout = 3 * time.Second
	// maxLag is how many seconds the tables of a host that comes back may be behind.
	maxLag = 10
)

// openHost prepares the pools of a host. It does not dial.
func openHost(options *driver.Options, address string, several bool) (*host, error) {
	h := &host{address: address, attempts: map[*attempt]struct{}{}, passed: map[string][]string{}}
	own := *options
	own.Addr = []string{address}
	if several {
		own.DialContext = h.dialer(options.DialContext)
	}
	h.contact.init(&own)
	var err error
	if h.pool, err = openPool(&own); err != nil {
		return nil, err
	}
	if h.control, err = openControl(&own); err != nil {
		return nil, errors.Join(err, h.pool.close())
	}
	if h.fills, err = openFill(&own); err != nil {
		return nil, errors.Join(err, h.pool.close(), h.control.close())
	}
	if several {
		if h.pings, err = openPings(&own); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	return h, nil
}

// close closes all connections.
func (h *host) close() error {
	err := errors.Join(h.pool.close(), h.control.close(), h.fills.close())
	if h.pings != nil {
		err = errors.Join(err, h.pings.close())
	}
	return err
}

// dialer returns a dial function with a short timeout, whose connections record when bytes arrive.
func (h *host) dialer(dial dialFunc) dialFunc {
	dial = dialer(dial, nil)
	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		wire, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return &heardConn{wire, h}, nil
	}
}

// heardConn is a connection to a host.
type heardConn struct {
	net.Conn

	host *host
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.host.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// pinger asks a host for a sign of life, on connections that nothing else uses. An error from the host itself is a sign of life too.
type pinger interface {
	ping(ctx context.Context) error
	close() error
}

func openPings(options *driver.Options) (pinger, error) {
	if options.Protocol == driver.HTTP {
		return newWebPinger(options), nil
	}
	own := *options
	own.MaxOpenConns, own.MaxIdleConns = 2, 2
	own.ReadTimeout = own.DialTimeout
	p, err := openPool(&own)
	return poolPinger{p}, err
}

// poolPinger pings over the native protocol.
type poolPinger struct{ pool pool }

func (p poolPinger) close() error { return p.pool.close() }

func (p poolPinger) ping(ctx context.Context) error {
	return p.pool.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Ping(ctx) })
}

// webPinger pings over HTTP. ClickHouse answers /ping at once, however many queries it runs.
type webPinger struct {
	client http.Client
	url    string
}

func newWebPinger(options *driver.Options) *webPinger {
	dial := options.DialContext
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: options.TLS, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) },
	}
	if options.HTTPProxyURL != nil {
		transport.Proxy = http.ProxyURL(options.HTTPProxyURL)
	}
	address := url.URL{Scheme: "http", Host: options.Addr[0], Path: strings.TrimSuffix(options.HttpUrlPath, "/") + "/ping"}
	if options.TLS != nil {
		address.Scheme = "https"
	}
	return &webPinger{http.Client{Transport: transport}, address.String()}
}

func (p *webPinger) close() error {
	p.client.CloseIdleConnections()
	return nil
}

func (p *webPinger) ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for a sign of life: %w", err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err // withoutAddress needs it as it is
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10)) // so that the connection can be used again
	if err := res.Body.Close(); err != nil {
		return fmt.Errorf("asking for a sign of life: %w", err)
	}
	switch res.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // of a proxy
		return errHostSilent
	}
	return nil
}

// alive asks a host for a sign of life. The error is errHostSilent if none came in time.
func (h *host) alive(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, errHostSilent)
	defer cancel()
	err := h.pings.ping(ctx)
	_, refused := errors.AsType[*driver.Exception](err)
	switch {
	case err == nil, refused, h.heard.Load() > began.UnixNano() && !unreachableNow(err):
		return nil
	case ctx.Err() != nil:
		return cmp.Or(context.Cause(ctx), err)
	}
	return err
}

// unreachableNow reports whether a dial failed without a timeout, so that the host is down even if bytes arrived on other connections a moment ago.
func unreachableNow(err error) bool {
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial" && !network.Timeout()
}

// order returns the hosts in the order in which to try them, those that answer first. With spread, the DSN's strategy picks the first one; without
// it, the first host that answers always comes first, so that a writer finds there what it wrote.
func (c *Client) order(spread bool) []*host {
	n := len(c.hosts)
	if n == 1 {
		return c.hosts
	}
	first := 0
	if spread {
		switch c.strategy {
		case driver.ConnOpenRoundRobin:
			first = int(c.turn.Add(1) % uint64(n)) //nolint:gosec // less than n
		case driver.ConnOpenRandom:
			first = rand.IntN(n) //nolint:gosec // not a secret
		case driver.ConnOpenInOrder:
		}
	}
	in, out := make([]*host, 0, n), make([]*host, 0, n)
	for i := range n {
		switch h := c.hosts[(first+i)%n]; {
		case h.unfit.Load():
		case h.out.Load():
			out = append(out, h)
		default:
			in = append(in, h)
		}
	}
	if in = append(in, out...); len(in) == 0 {
		return c.hosts
	}
	return in
}

// tryEach calls do for one host after another, until its error is not Unavailable or again reports that it must not be repeated.
func (c *Client) tryEach(ctx context.Context, hosts []*host, again func(error) bool, do func(context.Context, *host) error) error {
	for n, h := range hosts {
		err := c.try(ctx, h, do)
		if err == nil {
			return nil
		}
		if n == len(hosts)-1 || ctx.Err() != nil || classify(err).Kind != Unavailable || !again(err) {
			return err
		}
		c.moved.Add(1)
	}
	return errClosed
}

// send runs a statement that writes. If a host fails, another one gets the statement only if it was not sent, or if twice says that it may run twice.
func (c *Client) send(ctx context.Context, twice bool, do func(context.Context, *host) error) error {
	return c.tryEach(ctx, c.order(false), func(err error) bool { return twice || unsent(err) }, do)
}

// always allows everything to be repeated that a host failed to answer.
func always(error) bool { return true }

// try calls do for a host, and records whether the host answers. If the host falls silent while another one answers, the error is errHostSilent.
func (c *Client) try(ctx context.Context, h *host, do func(context.Context, *host) error) error {
	watched, done := c.watched(ctx, h)
	defer done()
	err := do(watched, h)
	if err == nil {
		c.answered(h)
		return nil
	}
	if ctx.Err() == nil && errors.Is(context.Cause(watched), errNoAnswer) {
		err = errors.Join(errHostSilent, err)
	}
	if ctx.Err() == nil { // the end of the caller's time says nothing about the host
		c.noteFailure(h, classify(err))
	}
	return err
}

// unsentError is an error that occurred before a statement was sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// unsent reports whether a statement that failed was certainly not sent.
func unsent(err error) bool {
	if _, ok := errors.AsType[*unsentError](err); ok || greetingFailed(err) {
		return true
	}
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "dial"
}

// watched returns a context that also ends, with errHostSilent, when the host falls silent while another one answers. The caller must call done.
func (c *Client) watched(ctx context.Context, h *host) (watched context.Context, done func()) {
	if len(c.hosts) == 1 {
		return ctx, func() {}
	}
	watched, end := context.WithCancelCause(ctx)
	one := &attempt{end}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts[one] = struct{}{}
	if !h.watching {
		h.watching = true
		go c.watch(h)
	}
	return watched, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.attempts, one)
		end(context.Canceled)
	}
}

// watch pings a host while something runs on it, on separate connections: a query may run long before it sends anything, and the host may have gone
// down without closing the connection.
func (c *Client) watch(h *host) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.open.Done():
			return
		}
		h.mu.Lock()
		h.watching = len(h.attempts) > 0
		idle := !h.watching
		h.mu.Unlock()
		if idle {
			return
		}
		err := h.alive(c.open)
		if err == nil || c.open.Err() != nil {
			continue
		}
		long := time.Since(time.Unix(0, h.heard.Load())) > pingTimeout
		if long = long && c.anotherAnswers(h); long {
			h.abandon()
		}
		if long || !errors.Is(err, errNoAnswer) { // a silent host is better than none
			c.noteFailure(h, classify(err))
		}
	}
}

// abandon ends everything that runs on a host.
func (h *host) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.attempts {
		one.end(errHostSilent)
	}
}

// anotherAnswers reports whether any other host gives a sign of life.
func (c *Client) anotherAnswers(than *host) bool {
	ctx, cancel := context.WithCancel(c.open)
	defer cancel()
	answers, asked := make(chan error, len(c.hosts)), 0
	for _, h := range c.hosts {
		if h != than && !h.unfit.Load() {
			asked++
			go func() { answers <- h.alive(ctx) }()
		}
	}
	for range asked {
		if <-answers == nil {
			return true
		}
	}
	return false
}

// exclude makes a host be asked last until it can be used again, and tells the operator why.
func (c *Client) exclude(h *host, why *Error) {
	if h.out.Swap(true) {
		return
	}
	h.contact.up.Store(false)
	h.known.Store(nil) // it may come back with another version
	go c.awaitReturn(h)
	go c.logUnusable(h, why)
}

// awaitReturn waits until a host that was excluded can be used again.
func (c *Client) awaitReturn(h *host) {
	for most := minReturnInterval; ; most = min(2*most, maxReturnInterval) {
		select {
		case <-time.After(most/2 + rand.N(most/2)): //nolint:gosec // not a secret
		case <-c.open.Done():
			return
		}
		if c.usable(h) {
			h.out.Store(false)
			c.answered(h)
			return
		}
	}
}

// usable reports whether a host answers queries, has the same tables as the others, and is at most maxLag seconds behind.
func (c *Client) usable(h *host) bool {
	ctx, cancel := context.WithTimeoutCause(c.open, returnCheckTimeout, errHostSilent)
	defer cancel()
	if h.alive(ctx) != nil {
		return false
	}
	if _, err := c.server(ctx, h); err != nil {
		return false
	}
	if err := c.fits(ctx, h); err != nil {
		if mismatch, differs := errors.AsType[*mismatchError](err); differs {
			c.logUnusable(h, &Error{Kind: Unavailable, Message: mismatch.Error(), cause: mismatch})
		}
		return false
	}
	lag, err := c.lag(ctx, h)
	return err == nil && lag <= maxLag
}

// LookAround asks each of several hosts for a sign of life, so that the state of hosts without queries is known too. It does nothing if there is only
// one.
func (c *Client) LookAround(ctx context.Context) {
	if len(c.hosts) == 1 {
		return
	}
	for _, h := range c.hosts {
		if h.out.Load() {
			continue
		}
		_ = c.try(ctx, h, func(ctx context.Context, h *host) error { // try records a failure
			if h.known.Load() == nil {
				_, err := c.server(ctx, h)
				return err
			}
			err := h.alive(ctx)
			if errors.Is(err, errNoAnswer) && !c.anotherAnswers(h) {
				return nil // a silent host is better than none
			}
			return err
		})
	}
}

// HostState is the known state of a host.
type HostState struct {
	Address string // host and port
	// Reachable is false before the host is first asked, and after it did not answer or differed from the others until it can be used again.
	Reachable bool
}

// Hosts returns the state of each host of the DSN.
func (c *Client) Hosts() []HostState {
	all := make([]HostState, len(c.hosts))
	for n, h := range c.hosts {
		all[n] = HostState{h.address, h.contact.up.Load() && !h.out.Load() && !h.unfit.Load()}
	}
	return all
}

// Moved returns how many queries and statements were sent to another host because one could not be used.
func (c *Client) Moved() uint64 { return c.moved.Load() }
