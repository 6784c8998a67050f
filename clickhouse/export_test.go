package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// QueryBlocks runs a query over HTTP but makes its rows from blocks, as over the native protocol, so that the two ways can
// be compared on one server.
func (c *Client) QueryBlocks(ctx context.Context, q Query, sink Sink) error {
	h := c.hosts[0]
	s, err := c.server(ctx, h)
	if err != nil {
		return err
	}
	settings := c.settings(ctx, s, q)
	return h.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		ctx = driver.Context(ctx, driver.WithSettings(settings), driver.WithParameters(encodeParams(q.Params)))
		err := readBlocks(ctx, conn, q.SQL, sink, func() {})
		if hard, ok := errors.AsType[*hardTypesError](err); ok {
			err = hard.readFormatted(ctx, conn, q.SQL, sink, func() {})
		}
		return err
	})
}

// InUse returns the number of connections in use.
func (c *Client) InUse() int { return c.hosts[0].http.Stats().Open }

// Classify turns an error of the driver into an Error.
func Classify(err error) *Error { return classify(err) }

// TakeAsItIs skips reading the server's settings, so that an old server, which is not supported otherwise,
// can be used to test the native protocol.
func (c *Client) TakeAsItIs() {
	for _, h := range c.hosts {
		h.known.Store(&server{version: "old", settings: map[string]bool{
			"max_block_size": true, "max_execution_time": true, "max_result_rows": true, "max_memory_usage": true, "join_use_nulls": true,
		}})
	}
}

// Forget omits a setting from all queries, as if the server did not know it.
func (c *Client) Forget(name string) {
	h := c.hosts[0]
	known := *h.known.Load()
	known.settings = maps.Clone(known.settings)
	delete(known.settings, name)
	h.known.Store(&known)
}

// Codes returns the table of error codes.
var Codes = codes

// InsertComment exports insertComment.
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

// Granted exports granted.
func (c *Client) Granted(ctx context.Context, rights ...string) (bool, error) {
	return c.granted(ctx, rights...)
}

// Replicas exports replicas.
func (c *Client) Replicas(ctx context.Context) (map[string]int64, error) { return c.replicas(ctx) }

// InParts exports inParts.
func InParts(engines map[string]string, replicas map[string]int64, named bool) bool {
	return inParts(engines, replicas, named)
}

// SetMutations exports setMutations.
func SetMutations(parts []Part) { setMutations(parts) }

// AskAll asks each host once.
func (c *Client) AskAll(ctx context.Context) error {
	for _, h := range c.hosts {
		if err := c.Collect(ctx, Query{SQL: "SELECT 1", system: true, on: h}, func([]Cell) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// TakeBack puts a host back into use, as it is.
func (c *Client) TakeBack(n int) {
	c.hosts[n].out.Store(false)
	c.hosts[n].contact.up.Store(true)
	c.TakeAsItIs()
}

// CreateTable returns the statement that creates a table on a cluster.
func CreateTable(t *physical.Table, cluster string) string {
	known := map[string]bool{}
	for _, s := range tuning(t) {
		known[s.Name] = true
	}
	return createTable(t, known, cluster)
}

// SetReplicated makes the client treat the tables as replicated.
func (c *Client) SetReplicated() { c.replicated.Store(true) }

// ReplicaPaths returns the ZooKeeper paths of the replicated tables on the host that is asked first, by table.
func (c *Client) ReplicaPaths(ctx context.Context) (map[string]string, error) {
	return c.replicaPaths(ctx, c.order(false)[0])
}

// CheckCluster exports checkCluster.
func (c *Client) CheckCluster(ctx context.Context) error { return c.checkCluster(ctx) }

// Define exports define.
func (c *Client) Define(ctx context.Context, sql string) error { return c.define(ctx, sql) }

// SetReplicatedTables makes the client treat all existing tables as replicated.
func (c *Client) SetReplicatedTables() {
	tables := map[string]stored{}
	for _, name := range physical.Names() {
		tables[name] = stored{engine: "ReplicatedMergeTree", id: name, path: "/" + name}
	}
	c.tables.Store(&tables)
	c.replicated.Store(true)
}

// AskForReplicas runs all queries about replicas on the first host, and makes it wait for some replicas of a table.
func (c *Client) AskForReplicas(ctx context.Context, table string, from ...string) (sync, others error) {
	h := c.hosts[0]
	_, sync = h.sync(ctx, table, from, time.Second)
	_, peers := c.peers(ctx, h)
	_, lag := c.lag(ctx, h)
	_, queued := c.queued(ctx, h)
	_, pending := c.pending(ctx, table)
	return sync, errors.Join(peers, lag, queued, pending)
}

// CheckTables exports checkTables.
func (c *Client) CheckTables(ctx context.Context) error { return c.checkTables(ctx) }
