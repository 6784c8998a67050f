package clickhouse

import (
	"context"
	"fmt"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// pool is a set of connections, over HTTP or over the native protocol.
type pool struct {
	http   driver.Conn // nil for a native DSN
	native *slotPool   // nil for an HTTP DSN
}

// openPool returns a pool. It does not dial.
func openPool(options *driver.Options) (p pool, err error) {
	if options.Protocol == driver.Native {
		p.native, err = newSlotPool(options)
	} else {
		own := *options
		own.TransportFunc = newTransport
		p.http, err = driver.Open(&own)
	}
	if err != nil {
		return p, fmt.Errorf("preparing the ClickHouse connections: %w", err)
	}
	return p, nil
}

// controlConnections is the size of the pool for internal queries.
const controlConnections = 4

// openControl returns a pool for short internal queries, which read the server's version, ping it, and stop queries.
func openControl(options *driver.Options) (pool, error) {
	own := *options
	own.MaxOpenConns, own.MaxIdleConns = controlConnections, controlConnections
	own.ReadTimeout = min(own.ReadTimeout, own.DialTimeout)
	return openPool(&own)
}

func (p pool) close() error {
	if p.native != nil {
		return p.native.close()
	}
	return p.http.Close()
}

// with calls do with a connection and a context without a deadline; see withoutDeadline.
func (p pool) with(ctx context.Context, do func(context.Context, driver.Conn) error) error {
	ctx, cancel := withoutDeadline(ctx)
	defer cancel()
	if p.native == nil {
		return do(ctx, p.http)
	}
	slot, release, err := p.native.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return do(context.WithoutCancel(ctx), slot.conn)
}
