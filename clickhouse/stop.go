package clickhouse

import (
	"context"
	"errors"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// obeys is how long a server may take to end a query that it was told to stop.
const obeys = 30 * time.Second

// maxStopping is how many queries are stopped at once; hanging up has to do for more of them.
const maxStopping = 32

// stop tells the server to end a query that was ended here by a limit. Hanging up does that too, but a server may not notice: it
// looks for a client that is gone only now and then, and over the native protocol not while it computes. Of several servers the one
// that is told may be another than the one that runs the query.
func (c *Client) stop(ctx context.Context, id string, err error) {
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
		if err := c.kill(id); err != nil && c.open.Err() == nil {
			c.logger.Warn("ClickHouse was not told to stop a query that met a limit; hanging up has to do. "+
				"The user of the clickhouse DSN needs the privilege KILL QUERY", zap.String("query_id", id), Logged(err))
		}
	}()
}

// kill stops a query by its id, and notes when it goes on.
func (c *Client) kill(id string) error {
	asking, cancel := c.soon(c.open)
	defer cancel()
	if err := c.control.with(asking, func(ctx context.Context, conn driver.Conn) error {
		return conn.Exec(ctx, "KILL QUERY WHERE query_id = "+literal(id)+" ASYNC")
	}); err != nil {
		return err
	}
	select {
	case <-c.open.Done():
		return nil
	case <-time.After(obeys):
	}
	_, running, err := c.Running(c.open, Query{ID: id, Comment: id})
	if err == nil && running {
		c.logger.Warn("a query that was told to stop goes on running on ClickHouse", zap.String("query_id", id), zap.Duration("told", obeys))
	}
	return nil
}
