package clickhouse

import (
	"context"
	"errors"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

// killGrace is how long a server may take to stop a killed query.
const killGrace = 30 * time.Second

// maxStopping is the maximum number of concurrent kills. For further queries, hanging up has to suffice.
const maxStopping = 32

// stop kills a query on the server after a limit ended it here. Hanging up does that too, but a server may not notice: it checks only now and then
// whether the client is gone, and over the native protocol not while it computes.
func (c *Client) stop(ctx context.Context, h *host, id string, err error) {
	if !errors.Is(context.Cause(ctx), errOverdue) && !errors.Is(err, errTooLarge) {
		return
	}
	select {
	case c.stopping <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-c.stopping }()
		if err := c.kill(h, id); err != nil && c.open.Err() == nil {
			c.logger.Warn(cannotKill, zap.String("query_id", id), Logged(err))
		}
	}()
}

const cannotKill = "cannot kill a query that was ended; it may keep running on ClickHouse. " +
	"The user of the clickhouse DSN needs the privilege KILL QUERY"

// askToKill tells a host to kill a query, and does not wait until it has ended.
func (c *Client) askToKill(h *host, id string) error {
	asking, cancel := c.shortContext(c.open)
	defer cancel()
	return h.control.with(asking, func(ctx context.Context, conn driver.Conn) error {
		return conn.Exec(ctx, "KILL QUERY WHERE query_id = "+literal(id)+" ASYNC")
	})
}

// kill kills a query by its id, and logs a warning if it keeps running.
func (c *Client) kill(h *host, id string) error {
	if err := c.askToKill(h, id); err != nil {
		return err
	}
	select {
	case <-c.open.Done():
		return nil
	case <-time.After(killGrace):
	}
	running := false
	err := c.Collect(c.open, Query{
		SQL: "SELECT 1 FROM system.processes WHERE query_id = {id:String}", system: true, on: h, Params: []Param{{Name: "id", Type: "String", Value: id}},
	}, func([]Cell) error {
		running = true
		return nil
	})
	if err == nil && running {
		c.logger.Warn("a killed query keeps running on ClickHouse", zap.String("query_id", id), zap.Duration("killed_for", killGrace))
	}
	return nil
}

// linger tells the query's owner if the embedded engine may go on with a query that ended here, and when it has ended there.
func (c *Client) linger(ctx context.Context, h *host, q Query, err error) {
	if err == nil || q.Lingers == nil || !c.config.Embedded {
		return
	}
	if _, answered := errors.AsType[*driver.Exception](err); answered && ctx.Err() == nil {
		return
	}
	ended := q.Lingers()
	go func() {
		defer ended()
		for wait := minLingerWait; c.runs(h, q.ID); wait = min(2*wait, maxLingerWait) {
			if pause.For(c.open, wait) != nil {
				return
			}
		}
	}()
}

// minLingerWait and maxLingerWait are the shortest and the longest time between two questions whether a query has ended.
const (
	minLingerWait = 10 * time.Millisecond
	maxLingerWait = time.Second
)

// runs reports whether the embedded engine still runs a query, which it is told to stop. One that is too busy to answer may; one that can't be
// reached is being restarted.
func (c *Client) runs(h *host, id string) (running bool) {
	asking, cancel := c.shortContext(c.open)
	defer cancel()
	err := h.control.with(asking, func(ctx context.Context, conn driver.Conn) error {
		rows, err := conn.Query(ctx, "KILL QUERY WHERE query_id = "+literal(id)+" ASYNC")
		if err != nil {
			return err
		}
		running = rows.Next()
		return errors.Join(rows.Err(), rows.Close())
	})
	return running && err == nil || asking.Err() != nil && c.open.Err() == nil
}
