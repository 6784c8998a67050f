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
)

// Client queries one ClickHouse server, or several that have the same tables. It is safe for concurrent use.
type Client struct {
	hosts    []*host // in the order of the DSN
	strategy driver.ConnOpenStrategy
	config   Config
	logger   *zap.Logger
	database string
	patience time.Duration // the limit for a short internal query

	opened   time.Time
	open     context.Context // ends with Close
	end      context.CancelFunc
	stopping chan struct{} // has an element for each query that is being stopped
	blind    sync.Once     // for the warning that running inserts cannot be seen

	turn       atomic.Uint64                     // counts the reads that are spread
	moved      atomic.Uint64                     // counts requests that went to another host because one could not be used
	unfinished sync.Map                          // hashes of statements that a replica has not done yet because it is away
	tables     atomic.Pointer[map[string]stored] // the tables that all hosts must have; nil before Migrate
	replicated atomic.Bool                       // all these tables are replicated
	awaited    atomic.Pointer[time.Time]         // when a server of the cluster last failed to run a statement in time; nil if none did
	behind     sync.Once                         // for the warning that replicas cannot be waited for
	lacking    atomic.Bool                       // the warning about missing rows of absent replicas was logged
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
		strategy: options.ConnOpenStrategy,
		opened:   time.Now(),
	}
	for _, address := range options.Addr {
		h, err := openHost(options, address, len(options.Addr) > 1)
		if err != nil {
			return nil, errors.Join(err, c.closeHosts())
		}
		c.hosts = append(c.hosts, h)
	}
	c.open, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close closes the connections and stops running queries.
func (c *Client) Close() error {
	c.end()
	return c.closeHosts()
}

func (c *Client) closeHosts() error {
	var errs []error
	for _, h := range c.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// Ping returns an error unless the server, or one of several hosts, answers and is new enough. It never waits for queries, and at most a few seconds
// for the server.
func (c *Client) Ping(ctx context.Context) error {
	return c.tryEach(ctx, c.order(false), always, func(ctx context.Context, h *host) error {
		if _, err := c.server(ctx, h); err != nil {
			return err
		}
		ctx, cancel := c.shortContext(ctx)
		defer cancel()
		if err := h.control.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Ping(ctx) }); err != nil {
			return c.ownFailure(ctx, "pinging ClickHouse", err)
		}
		return nil
	})
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
	return c.send(ctx, false, func(ctx context.Context, h *host) error {
		return h.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Exec(ctx, sql) })
	})
}

// cause turns an error of the driver into an *Error; nil if ctx ended for another reason.
func cause(ctx context.Context, err error) *Error {
	var known *Error
	if why := context.Cause(ctx); why != nil {
		errors.As(why, &known)
	} else if !errors.As(err, &known) {
		known = classify(err)
	}
	return known
}

// failure turns an error of the driver into an *Error, or into the context's error if that is the cause.
func (c *Client) failure(ctx context.Context, doing string, err error) error {
	known := cause(ctx, err)
	if known == nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	if known.Kind != UserError {
		c.logger.Debug(doing, Logged(err), zap.Stringer("kind", known.Kind))
	}
	return fmt.Errorf("%s: %w", doing, known)
}

// ownFailure is like failure, but for internal statements, whose errors are never the caller's mistake.
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
