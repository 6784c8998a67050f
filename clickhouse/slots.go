package clickhouse

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// clientCancel is the packet of the native protocol that stops the query of a connection.
const clientCancel = 3

// slotPool is a pool of native connections. Each slot is a separate driver with one connection, because the driver must
// not be told to cancel: it would close the channel of a query's blocks while its reader may be sending to it. Instead,
// a query is ended by closing the connection, which is an error to the reader.
type slotPool struct {
	free   chan *slot
	slots  []*slot
	wait   time.Duration
	closed chan struct{}
	once   sync.Once
}

// slot is one connection of the pool, dialed at its first use and again after it broke.
type slot struct {
	conn driver.Conn

	mu    sync.Mutex
	query context.Context // the query that uses the slot
	wire  net.Conn        // the newest connection; nil before the first dial

	meter atomic.Pointer[meter] // of that query; nil if it is not metered
}

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

func newSlotPool(options *driver.Options) (*slotPool, error) {
	p := &slotPool{
		free:   make(chan *slot, options.MaxOpenConns),
		wait:   options.DialTimeout,
		closed: make(chan struct{}),
	}
	dial := dialer(options.DialContext, options.TLS)
	for range options.MaxOpenConns {
		s := &slot{query: context.Background()}
		own := *options
		own.MaxOpenConns, own.MaxIdleConns = 1, 1
		own.DialContext = s.dialer(dial)
		own.Compression = nil // meter counts uncompressed bytes
		var err error
		if s.conn, err = driver.Open(&own); err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.slots = append(p.slots, s)
		p.free <- s
	}
	return p, nil
}

// dialer returns a dial function that adds TLS if the DSN requires it. The driver would leave TLS to a custom dial
// function.
func dialer(dial dialFunc, config *tls.Config) dialFunc {
	if dial == nil {
		var d net.Dialer
		dial = func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
	}
	if config == nil {
		return dial
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		plain, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		own := config.Clone()
		own.ServerName = cmp.Or(own.ServerName, host)
		wire := tls.Client(plain, own)
		if err := wire.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, plain.Close())
		}
		return wire, nil
	}
}

// dialer returns a dial function for the slot's query that keeps the connection, so that hangUp can close it.
func (s *slot) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		s.mu.Lock()
		query := s.query
		s.mu.Unlock()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(query, cancel)()
		wire, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := query.Err(); err != nil {
			return nil, errors.Join(err, wire.Close())
		}
		s.wire = wire
		return &meteredConn{wire, s}, nil
	}
}

// acquire waits for a free slot. Until release, the end of ctx ends the connection and with it the query.
func (p *slotPool) acquire(ctx context.Context) (s *slot, release func(), err error) {
	select {
	case <-p.closed:
		return nil, nil, errClosed
	default:
	}
	timer := time.NewTimer(p.wait)
	defer timer.Stop()
	select {
	case s = <-p.free:
	case <-p.closed:
		return nil, nil, errClosed
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-timer.C:
		return nil, nil, driver.ErrAcquireConnTimeout
	}
	s.mu.Lock()
	s.query = ctx
	s.mu.Unlock()
	counting, _ := ctx.Value(meterKey{}).(*meter)
	s.meter.Store(counting)
	hungUp := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.hangUp()
		close(hungUp)
	})
	return s, func() {
		if !stop() {
			<-hungUp // or it would end the connection of the next query
		}
		s.meter.Store(nil)
		p.free <- s
	}, nil
}

// hangUp tells the server to stop and closes the connection. The driver finds it broken and redials next time.
func (s *slot) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire == nil {
		return
	}
	_ = s.wire.SetWriteDeadline(time.Now().Add(time.Second)) // a broken connection must not block
	_, _ = s.wire.Write([]byte{clientCancel})
	wire := s.wire
	if encrypted, ok := wire.(*tls.Conn); ok {
		wire = encrypted.NetConn() // skip TLS's close message, which would wait for a server that does not read
	}
	_ = wire.Close()
}

func (p *slotPool) close() error {
	var err error
	p.once.Do(func() {
		close(p.closed)
		for _, s := range p.slots {
			s.hangUp()
			err = errors.Join(err, s.conn.Close())
		}
	})
	return err
}
