// Package clickhouse runs queries on ClickHouse and streams their rows, keeps the physical tables, and imports events.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// Client asks one ClickHouse server, or a set of equal ones. It may be used from several goroutines at once.
type Client struct {
	config   Config
	logger   *zap.Logger
	http     driver.Conn // nil when the DSN says native
	native   *slotPool   // nil when the DSN says HTTP
	database string

	serverMu sync.Mutex
	known    *server // what the server can do, once asked

	importsMu sync.Mutex
	imports   map[int64]chan struct{} // one import at a time for each project
}

// server is what a ClickHouse server says about itself.
type server struct {
	version  string
	settings map[string]bool // the settings that it knows
	readonly string          // the user's own value of the setting
}

// Open prepares a client. It reads the DSN, but asks the server nothing: a server that is down shows in Ping
// and in every query.
func Open(config Config, logger *zap.Logger) (*Client, error) {
	options, err := config.options()
	if err != nil {
		return nil, err
	}
	c := &Client{
		config:   config.withDefaults(),
		logger:   logger,
		database: options.Auth.Database,
		imports:  map[int64]chan struct{}{},
	}
	if options.Protocol == driver.Native {
		if c.native, err = newSlotPool(options); err != nil {
			return nil, fmt.Errorf("preparing the ClickHouse connections: %w", err)
		}
		return c, nil
	}
	options.TransportFunc = newTransport
	c.http, err = driver.Open(options)
	if err != nil {
		return nil, fmt.Errorf("preparing the ClickHouse connections: %w", err)
	}
	return c, nil
}

// Close closes the connections. Queries that still run are stopped.
func (c *Client) Close() error {
	if c.native != nil {
		return c.native.close()
	}
	return c.http.Close()
}

// Ping asks the server for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	err := c.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Ping(ctx) })
	if err != nil {
		return c.failure(ctx, "pinging ClickHouse", err)
	}
	return nil
}

// with lends a connection to do, with a context that the driver may not change the query's limits by.
func (c *Client) with(ctx context.Context, do func(context.Context, driver.Conn) error) error {
	ctx, cancel := withoutDeadline(ctx)
	defer cancel()
	if c.native == nil {
		return do(ctx, c.http)
	}
	slot, release, err := c.native.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return do(context.WithoutCancel(ctx), slot.conn)
}

// withoutDeadline gives a context that ends when ctx does, but shows no deadline: the driver would turn a
// deadline into max_execution_time and so override the limit that we set.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return detached, func() {
		stop()
		cancel(context.Canceled)
	}
}

// server asks the server once which of our settings it knows. A server that lacks the second tenant fence is
// refused.
func (c *Client) server(ctx context.Context) (*server, error) {
	c.serverMu.Lock()
	defer c.serverMu.Unlock()
	if c.known != nil {
		return c.known, nil
	}
	s := &server{settings: map[string]bool{}}
	err := c.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		return readStrings(ctx, conn, "SELECT name, value, version() FROM system.settings", func(name, value, version string) {
			s.settings[name] = true
			s.version = version
			if name == "readonly" {
				s.readonly = value
			}
		})
	})
	if err != nil {
		return nil, c.failure(ctx, "asking ClickHouse for its settings", err)
	}
	for _, name := range requiredSettings {
		if !s.settings[name] {
			return nil, &Error{
				Kind:    Unavailable,
				Message: fmt.Sprintf("ClickHouse %s is too old: it has no setting %s", s.version, name),
			}
		}
	}
	c.known = s
	return s, nil
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

// exec runs a statement without result, such as DDL.
func (c *Client) exec(ctx context.Context, sql string) error {
	return c.with(ctx, func(ctx context.Context, conn driver.Conn) error { return conn.Exec(ctx, sql) })
}

// failure turns an error of the driver into an *Error, or into the context's error when that is the reason.
func (c *Client) failure(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	var known *Error
	if !errors.As(err, &known) {
		known = classify(err)
	}
	if known.Kind != UserError {
		c.logger.Debug(doing, zap.Error(err), zap.Stringer("kind", known.Kind))
	}
	return fmt.Errorf("%s: %w", doing, known)
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

// sortedKeys lists the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
