// Package clickhouse runs queries on ClickHouse and streams their rows, inserts batches, and keeps the physical tables.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

// Client queries one ClickHouse server, or several equivalent ones. It is safe for concurrent use.
type Client struct {
	pool            // for queries
	control  pool   // for short internal queries, which never wait for other queries
	fills    pool   // for queries that write into tables
	hosts    []pool // like control, one for each host
	config   Config
	logger   *zap.Logger
	database string
	patience time.Duration // the limit for a short internal query

	open     context.Context // ends with Close
	end      context.CancelFunc
	stopping chan struct{} // has an element for each query that is being stopped
	known    atomic.Pointer[server]
	asked    singleflight.Group
	contact  contact
	blind    sync.Once // for the warning that running inserts cannot be seen
}

// Open returns a client for the DSN. It does not connect: if the server is down, Ping and every query return an
// error.
func Open(config Config, logger *zap.Logger) (*Client, error) {
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	c := &Client{
		config:   config.withDefaults(),
		logger:   logger,
		database: options.Auth.Database,
		patience: options.DialTimeout,
		stopping: make(chan struct{}, maxStopping),
	}
	c.contact.init(options)
	if c.pool, err = openPool(options); err != nil {
		return nil, err
	}
	if c.control, err = openControl(options); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if c.fills, err = openFill(options); err != nil {
		return nil, errors.Join(err, c.close(), c.control.close())
	}
	if c.hosts, err = c.openHosts(options); err != nil {
		return nil, errors.Join(err, c.closePools())
	}
	c.open, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close closes the connections and stops running queries.
func (c *Client) Close() error {
	c.end()
	return c.closePools()
}

func (c *Client) closePools() error {
	errs := []error{c.close(), c.control.close(), c.fills.close()}
	if len(c.hosts) > 1 {
		for _, host := range c.hosts {
			errs = append(errs, host.close())
		}
	}
	return errors.Join(errs...)
}

// openHosts opens a pool for each host; for a single one it is the control pool.
func (c *Client) openHosts(options *driver.Options) (hosts []pool, err error) {
	if len(options.Addr) == 1 {
		return []pool{c.control}, nil
	}
	for _, address := range options.Addr {
		own := *options
		own.Addr = []string{address}
		host, err := openControl(&own)
		if err != nil {
			return hosts, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// Ping reports whether the server answers and is new enough. It never waits for queries, and at most a few seconds for the
// server.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.server(ctx); err != nil {
		return err
	}
	ctx, cancel := c.soon(ctx)
	defer cancel()
	if err := c.control.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Ping(ctx) }); err != nil {
		return c.ownFailure(ctx, "pinging ClickHouse", err)
	}
	c.answered()
	return nil
}

// withoutDeadline returns a context that ends when ctx does, but has no deadline. The driver would turn a deadline
// into max_execution_time and override the configured limit.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return detached, func() {
		stop()
		cancel(context.Canceled)
	}
}

// readStrings runs a query of three String columns.
func readStrings(ctx context.Context, conn driver.Conn, sql string, row func(a, b, c string)) (err error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var a, b, c string
		if err := rows.Scan(&a, &b, &c); err != nil {
			return err
		}
		row(a, b, c)
	}
	return rows.Err()
}

// exec runs a statement without a result, such as DDL.
func (c *Client) exec(ctx context.Context, sql string) error {
	return c.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Exec(ctx, sql) })
}

// failure turns an error of the driver into an *Error, or into the context's error if that is the cause.
func (c *Client) failure(ctx context.Context, doing string, err error) error {
	var known *Error
	if cause := context.Cause(ctx); cause != nil {
		if !errors.As(cause, &known) {
			return fmt.Errorf("%s: %w", doing, cause)
		}
	} else if !errors.As(err, &known) {
		known = classify(err)
	}
	c.noteFailure(known)
	if known.Kind != UserError {
		c.logger.Debug(doing, Logged(err), zap.Stringer("kind", known.Kind))
	}
	return fmt.Errorf("%s: %w", doing, known)
}

// ownFailure is failure for internal statements: whatever is wrong with them is not the caller's mistake.
func (c *Client) ownFailure(ctx context.Context, doing string, err error) error {
	err = c.failure(ctx, doing, err)
	if known, ok := errors.AsType[*Error](err); ok && known.ByQuery() {
		return fmt.Errorf("%s: %w", doing, &Error{Code: known.Code, Name: known.Name, Message: internalMessage, cause: known.cause})
	}
	return err
}

// identifier quotes a name for SQL.
func identifier(name string) string {
	return "`" + identifierEscaper.Replace(name) + "`"
}

// literal quotes a string for SQL.
func literal(s string) string {
	return "'" + literalEscaper.Replace(s) + "'"
}

var (
	identifierEscaper = strings.NewReplacer(`\`, `\\`, "`", "\\`")
	literalEscaper    = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
)

func literals(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = literal(s)
	}
	return strings.Join(quoted, ", ")
}

var errClosed = fmt.Errorf("the client is closed: %w", io.ErrClosedPipe)
