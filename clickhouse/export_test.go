package clickhouse

import (
	"context"
	"errors"
	"maps"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// QueryBlocks runs a query over HTTP but takes its rows from blocks, as over the native protocol: the two ways can
// be compared on one server.
func (c *Client) QueryBlocks(ctx context.Context, q Query, sink Sink) error {
	s, err := c.server(ctx)
	if err != nil {
		return err
	}
	settings := c.settings(ctx, s, q)
	return c.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		ctx = driver.Context(ctx, driver.WithSettings(settings), driver.WithParameters(encodeParams(q.Params)))
		err := readBlocks(ctx, conn, q.SQL, sink, func() {})
		if hard, ok := errors.AsType[*hardTypesError](err); ok {
			err = hard.readFormatted(ctx, conn, q.SQL, sink, func() {})
		}
		return err
	})
}

// InUse is how many connections are in use.
func (c *Client) InUse() int { return c.http.Stats().Open }

// Classify makes an Error of the driver's.
func Classify(err error) *Error { return classify(err) }

// TakeAsItIs skips the question for the server's settings: an old server, which no query of a product may reach,
// can then be used to test the native protocol.
func (c *Client) TakeAsItIs() {
	c.known.Store(&server{version: "old", settings: map[string]bool{
		"max_execution_time": true, "max_result_rows": true, "max_memory_usage": true, "join_use_nulls": true,
	}})
}

// Forget leaves a setting out of all queries, as if the server did not know it.
func (c *Client) Forget(name string) {
	known := *c.known.Load()
	known.settings = maps.Clone(known.settings)
	delete(known.settings, name)
	c.known.Store(&known)
}

// Codes is the table of error codes.
var Codes = codes
