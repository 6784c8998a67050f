package clickhouse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Fill is a SELECT whose rows ClickHouse writes into a table itself, without sending them to us.
type Fill struct {
	Query
	Table   string
	Columns []string // of the table, in the order of the query's columns
	// Further columns of the table, each with the same number in all rows. The project's column is always filled in.
	Fixed []FixedColumn
	// The maximum time of the query, instead of Config.MaxExecutionTime, which is meant for queries that a user waits for. Zero, or more than
	// MaxFillTime, means MaxFillTime.
	MaxTime time.Duration
}

// FixedColumn is a column with the same number in all rows.
type FixedColumn struct {
	Name   string
	Number uint64
}

// MaxFillTime is the maximum time of a Fill.
const MaxFillTime = 10 * time.Minute

const (
	// maxFillConnections is the size of the pool for fills, deletions and backups. What starts them bounds how many run at once. One that must not
	// wait for the others, such as a deletion, has to find a connection.
	maxFillConnections = 16
	// idleFillConnections is how many of them are kept.
	idleFillConnections = 4
)

// openFill returns a pool for fills, which wait longer for an answer than queries do.
func openFill(options *driver.Options) (pool, error) {
	own := *options
	own.MaxOpenConns, own.MaxIdleConns = maxFillConnections, idleFillConnections
	own.ReadTimeout = max(own.ReadTimeout, MaxFillTime+30*time.Second)
	return openPool(&own)
}

// fillSettings returns the settings of a fill. Unlike a query whose rows are read, it may write, and it moves to disk what does not fit into half of
// its memory.
func (c *Client) fillSettings(ctx context.Context, s *server, q Query, more []setting) driver.Settings {
	all := c.settings(ctx, s, q)
	for _, name := range []string{"readonly", "max_result_rows", "max_result_bytes"} {
		delete(all, name)
	}
	half := int(c.config.MaxMemory / 2)
	for _, e := range append([]setting{
		{"max_bytes_before_external_group_by", half},
		{"max_bytes_before_external_sort", half},
		{"max_bytes_before_external_join", half},
		{"insert_deduplicate", 0},
		{"async_insert", 0},
		{"insert_distributed_sync", 1},
		{"max_partitions_per_insert_block", 0},
	}, more...) {
		if s.settings[e.name] {
			all[e.name] = e.value
		}
	}
	return all
}

// Fill runs a SELECT for one project inside ClickHouse and writes its rows into a table. The SELECT is fenced like one of [Client.Query]. After an
// error, any part of the rows may have been written. When ctx ends, the query is stopped on the server. Errors are like those of [Client.Query].
func (c *Client) Fill(ctx context.Context, f Fill) error {
	return c.write(ctx, f.Query, f.MaxTime, f.statement(), "filling a table")
}

// write runs a statement that contains a query for one project as a subquery and writes its rows into a table.
func (c *Client) write(ctx context.Context, q Query, most time.Duration, sql, doing string, more ...setting) error {
	if q.Project <= 0 {
		return fmt.Errorf("BUG: a query without a project: %d", q.Project)
	}
	if err := checkText(q.SQL); err != nil {
		return fmt.Errorf("BUG: a query whose text is not the compiler's: %w", err)
	}
	if most <= 0 || most > MaxFillTime {
		most = MaxFillTime
	}
	q.longest = most
	if q.ID == "" {
		q.ID = uuid.NewString() // needed to stop it
	}
	ctx, cancel := context.WithDeadlineCause(ctx, time.Now().Add(most+grace), errOverdue)
	defer cancel()
	err := c.send(ctx, false, func(ctx context.Context, h *host) error {
		s, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		if err = h.fill(ctx, c.fillSettings(ctx, s, q, more), q, sql); err != nil {
			c.abandon(ctx, h, q.ID)
			c.linger(ctx, h, q, err)
		}
		return err
	})
	if err != nil {
		return c.failure(ctx, doing, err)
	}
	return nil
}

// fill runs a statement that writes.
func (h *host) fill(ctx context.Context, settings driver.Settings, q Query, sql string) error {
	if h.fills.native != nil {
		return h.fillNative(ctx, settings, q, sql)
	}
	return h.fillHTTP(ctx, settings, q, sql)
}

// statement returns the whole statement. Whatever the query's text is, it is a subquery, so that each row gets the project.
func (f *Fill) statement() string {
	columns, values := make([]string, 0, len(f.Columns)+len(f.Fixed)+1), []string{"*"}
	for _, name := range f.Columns {
		columns = append(columns, identifier(name))
	}
	for _, c := range append(slices.Clip(f.Fixed), FixedColumn{physical.Project, uint64(f.Project)}) { //nolint:gosec // it is positive
		columns, values = append(columns, identifier(c.Name)), append(values, strconv.FormatUint(c.Number, 10))
	}
	return "INSERT INTO " + identifier(f.Table) + " (" + strings.Join(columns, ", ") + ")\nSELECT " + strings.Join(values, ", ") + " FROM (\n" + f.SQL + "\n)"
}

// abandon kills a fill that ended here. When its client hangs up, a server continues a query that writes; the embedded engine does not.
func (c *Client) abandon(ctx context.Context, h *host, id string) {
	if ctx.Err() == nil || c.config.Embedded || errors.Is(context.Cause(ctx), errHostSilent) { // a silent host would not get the request
		return
	}
	if err := c.askToKill(h, id); err != nil && c.open.Err() == nil {
		c.logger.Warn(cannotKill, zap.String("query_id", id), Logged(err))
	}
}

func (h *host) fillHTTP(ctx context.Context, settings driver.Settings, q Query, sql string) (err error) {
	exchange := &exchange{format: rowFormat, params: encodeParams(q.Params), queryID: q.ID, writes: true}
	outer := ctx
	ctx, cancel := withoutDeadline(context.WithValue(ctx, exchangeKey{}, exchange))
	defer cancel()
	settings[wholeResult] = 1
	body, err := h.fills.http.QueryFormat(driver.Context(ctx, driver.WithSettings(settings)), rowFormat, sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	lines := &lineReader{in: bufio.NewReader(body), most: bounds{all: MaxRowBytes, row: MaxRowBytes}}
	switch _, err := lines.next(); {
	case errors.Is(err, io.EOF):
		return context.Cause(outer)
	case err != nil:
		return err
	}
	return errors.New("rows in the response to an INSERT")
}

func (h *host) fillNative(ctx context.Context, settings driver.Settings, q Query, sql string) error {
	options := []driver.QueryOption{driver.WithSettings(settings), driver.WithQueryID(q.ID)}
	if len(q.Params) > 0 {
		options = append(options, driver.WithParameters(encodeParams(q.Params)))
	}
	return h.fills.with(ctx, func(lent context.Context, conn driver.Conn) error {
		return conn.Exec(driver.Context(lent, options...), sql)
	})
}
