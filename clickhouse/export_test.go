package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// QueryBlocks runs a query over HTTP but makes its rows from blocks, as over the native protocol, so that the two ways can
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

// InUse returns the number of connections in use.
func (c *Client) InUse() int { return c.http.Stats().Open }

// Classify turns an error of the driver into an Error.
func Classify(err error) *Error { return classify(err) }

// TakeAsItIs skips reading the server's settings, so that an old server, which is not supported otherwise,
// can be used to test the native protocol.
func (c *Client) TakeAsItIs() {
	c.known.Store(&server{version: "old", settings: map[string]bool{
		"max_execution_time": true, "max_result_rows": true, "max_memory_usage": true, "join_use_nulls": true,
	}})
}

// Forget omits a setting from all queries, as if the server did not know it.
func (c *Client) Forget(name string) {
	known := *c.known.Load()
	known.settings = maps.Clone(known.settings)
	delete(known.settings, name)
	c.known.Store(&known)
}

// Codes returns the table of error codes.
var Codes = codes

// InsertComment is the comment of an insert of rows of projects.
var InsertComment = insertComment

// Exec runs a statement without a result.
func (c *Client) Exec(ctx context.Context, sql string) error { return c.exec(ctx, sql) }

// JSONSettings are the settings with which JSON values are inserted.
func JSONSettings() (list []string) {
	for _, s := range insertSettings {
		if strings.Contains(s.name, "json") || strings.HasPrefix(s.name, "input_format") {
			list = append(list, fmt.Sprintf("%s = %v", s.name, s.value))
		}
	}
	return list
}

// Granted is granted.
func (c *Client) Granted(ctx context.Context, rights ...string) (bool, error) {
	return c.granted(ctx, rights...)
}

// Replicas exports replicas.
func (c *Client) Replicas(ctx context.Context) (map[string]int64, error) { return c.replicas(ctx) }

// InParts exports inParts.
func InParts(engines map[string]string, replicas map[string]int64) bool {
	return inParts(engines, replicas)
}

// SetMutations exports setMutations.
func SetMutations(parts []Part) { setMutations(parts) }
