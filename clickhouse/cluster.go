package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// clusterNames matches valid names of clusters.
var clusterNames = regexp.MustCompile(`^[\w.-]{1,200}$`)

// CheckCluster returns an error if name is not a valid name of a cluster.
func CheckCluster(name string) error {
	if !clusterNames.MatchString(name) {
		return fmt.Errorf("%q is not a valid name of a cluster", name)
	}
	return nil
}

// onCluster returns the clause that makes all servers of the cluster run a statement; empty without a cluster.
func (c *Client) onCluster() string { return clusterClause(c.config.Cluster) }

func clusterClause(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " ON CLUSTER " + identifier(cluster)
}

// engineOn returns a table's engine on a cluster, or on one server if cluster is empty. The replicas find one another by the servers' own defaults:
// default_replica_path and default_replica_name.
func engineOn(cluster, engine string) string {
	if cluster == "" {
		return engine
	}
	return "Replicated" + engine
}

// clusterDeduplication makes the replicas remember the token of a batch for a week.
const clusterDeduplication = "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800"

const (
	// defineTimeout is how long define waits for the servers of a cluster to run a statement.
	defineTimeout = 30 * time.Second
	// awayDefineTimeout is the same while a server is away. A server that was late is assumed to be away for assumedAwayFor.
	awayDefineTimeout = 5 * time.Second
	assumedAwayFor    = 10 * time.Minute
)

// clusterSettings make a server wait until the others have run a statement, but no longer than most. A server that is late runs it when it is back.
func clusterSettings(most time.Duration) []setting {
	return []setting{{"distributed_ddl_task_timeout", int(most.Seconds())}, {"distributed_ddl_output_mode", "null_status_on_timeout"}}
}

// define runs a statement that creates, changes or drops a table, on all servers of the cluster if sql has the clause of onCluster.
func (c *Client) define(ctx context.Context, sql string) error {
	most := defineTimeout
	if last := c.awaited.Load(); last != nil && time.Since(*last) < assumedAwayFor {
		most = awayDefineTimeout
	}
	return c.send(ctx, false, func(ctx context.Context, h *host) error {
		s, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		settings := driver.Settings{}
		for _, e := range clusterSettings(most) {
			if c.config.Cluster != "" && s.settings[e.name] {
				settings[e.name] = e.value
			}
		}
		began := time.Now()
		err = h.with(ctx, func(ctx context.Context, conn driver.Conn) error {
			return conn.Exec(driver.Context(ctx, driver.WithSettings(settings)), sql)
		})
		if ended := time.Now(); err == nil && ended.Sub(began) >= most && len(settings) > 0 {
			c.awaited.Store(&ended)
		}
		return err
	})
}

// checkCluster returns an error unless there is a client for each shard of the cluster.
func (c *Client) checkCluster(ctx context.Context) error {
	if c.config.Cluster == "" {
		return nil
	}
	var shards int64
	err := c.Collect(ctx, Query{
		SQL: "SELECT toInt64(uniqExact(shard_num)) FROM system.clusters WHERE cluster = " + literal(c.config.Cluster), system: true,
	}, func(cells []Cell) error {
		var err error
		shards, err = cells[0].Int()
		return err
	})
	if err != nil {
		return err
	}
	return shardsError(c.config.Cluster, int(shards), c.config.Shards)
}

// shardsError returns an error unless the config names hosts for as many shards as the cluster has.
func shardsError(cluster string, shards, named int) error {
	switch shards {
	case 0:
		return &Error{Message: fmt.Sprintf("ClickHouse has no cluster %q; its table system.clusters lists those that it has", cluster)}
	case named:
		return nil
	}
	return &Error{Message: fmt.Sprintf("the cluster %q has %d shards, but the config names hosts for %d; see docs/clickhouse-hosts.md", cluster, shards, named)}
}

// stored describes how a host stores a table.
type stored struct {
	engine string
	id     string // the same on two hosts only if they are one server
	path   string // of a replicated table in ZooKeeper; empty if unknown
}

// own reports whether the table's rows are on its server alone.
func (s stored) own() bool {
	return strings.HasSuffix(s.engine, "MergeTree") && !strings.HasPrefix(s.engine, "Replicated") && !strings.HasPrefix(s.engine, "Shared")
}

// mismatch returns why a table can't have the same rows as the table of another host; empty if it can.
func (s stored) mismatch(name string, other stored) string {
	switch {
	case (s.own() || other.own()) && s.id != other.id:
		return "keeps rows of its own in the table " + name + ", which has the engine " + s.engine
	case s.otherShard(other):
		return "is of another shard: the replicas of its table " + name + " are at " + s.path + " in ZooKeeper, those of the first host at " + other.path
	}
	return ""
}

// otherShard reports whether a table is known not to be a replica of another host's.
func (s stored) otherShard(other stored) bool {
	return s.path != "" && other.path != "" && s.path != other.path
}

// tablesOf returns the physical tables that a host has.
func (c *Client) tablesOf(ctx context.Context, h *host) (map[string]stored, error) {
	tables := map[string]stored{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT name, engine, concat(toString(serverUUID()), toString(uuid)) FROM system.tables " +
			"WHERE database = currentDatabase() AND name IN (" + literals(physical.Names()) + ")",
		system: true, on: h,
	}, func(cells []Cell) error {
		tables[cells[0].Text()] = stored{engine: cells[1].Text(), id: cells[2].Text()}
		return nil
	})
	if err != nil {
		return nil, err
	}
	paths, err := c.replicaPaths(ctx, h)
	for name, table := range tables {
		table.path = paths[name]
		tables[name] = table
	}
	return tables, unlessForbidden(err)
}

// replicaPaths returns the ZooKeeper paths of a host's replicated tables, by table.
func (c *Client) replicaPaths(ctx context.Context, h *host) (map[string]string, error) {
	paths := map[string]string{}
	err := c.Collect(ctx, Query{
		SQL:    "SELECT table, zookeeper_path FROM system.replicas WHERE database = currentDatabase() AND table IN (" + literals(physical.Names()) + ")",
		system: true, on: h,
	}, func(cells []Cell) error {
		paths[cells[0].Text()] = cells[1].Text()
		return nil
	})
	return paths, err
}

// checkTables returns an error if the hosts, or the servers of the cluster, would give different answers because each keeps rows of its own. It also
// records the tables, and whether all are replicated.
func (c *Client) checkTables(ctx context.Context) error {
	if len(c.hosts) == 1 && c.config.Cluster == "" {
		return nil
	}
	first := c.order(false)[0]
	tables, err := c.tablesOf(ctx, first)
	if err != nil {
		return unlessForbidden(err)
	}
	replicated := len(tables) > 0
	for name, table := range tables {
		replicated = replicated && strings.HasPrefix(table.engine, "Replicated")
		if c.config.Cluster != "" && table.own() {
			return &Error{Message: fmt.Sprintf("the table %s has the engine %s, so its rows are on one server of the cluster %q alone: "+
				"docs/clickhouse-hosts.md says how to make it a replicated one", name, table.engine, c.config.Cluster)}
		}
	}
	c.tables.Store(&tables)
	for _, h := range c.hosts {
		if h == first {
			continue
		}
		err := c.fits(ctx, h)
		mismatch, differs := errors.AsType[*mismatchError](err)
		switch {
		case differs && (c.config.Cluster == "" || mismatch.shard): // the order of the hosts would decide which shard has the projects
			return &Error{Message: mismatch.Error() + ". Several hosts must have the same rows: see docs/clickhouse-hosts.md"}
		case differs: // it gets the tables when it has caught up
			c.noteFailure(h, &Error{Kind: Unavailable, Message: mismatch.Error(), cause: mismatch})
		case ctx.Err() != nil:
			return err
		}
	}
	c.replicated.Store(replicated)
	return nil
}

// mismatchError says how a host differs from the others.
type mismatchError struct {
	text  string
	shard bool // it belongs to another shard
}

func (e *mismatchError) Error() string { return e.text }

// fits returns a *mismatchError if the tables of a host differ from those of the others. Such a host is not asked.
func (c *Client) fits(ctx context.Context, h *host) error {
	want := c.tables.Load()
	if want == nil { // not known yet
		return nil
	}
	have, err := c.tablesOf(ctx, h)
	if err != nil {
		return unlessForbidden(err)
	}
	for _, name := range physical.Names() {
		table, there := have[name]
		like, wanted := (*want)[name]
		if !wanted {
			continue
		}
		said := "has no table " + name
		if there {
			said = table.mismatch(name, like)
		}
		if said != "" {
			h.unfit.Store(true)
			return &mismatchError{"the host " + h.address + " " + said, there && table.otherShard(like)}
		}
	}
	h.unfit.Store(false)
	return nil
}

// First returns the address of the host that is asked first and receives the writes.
func (c *Client) First() string { return c.order(false)[0].address }
