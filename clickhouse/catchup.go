package clickhouse

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

const (
	// catchUpTimeout is how long a host may take to fetch what was written on other replicas.
	catchUpTimeout = 30 * time.Second
	// syncGrace is how much longer than its own time limit a host may take to report that it has not caught up.
	syncGrace = 2 * time.Second
	// timeoutExceeded is the code of that report.
	timeoutExceeded = 159
)

// errBehind is the error of a host that takes too long to catch up with active replicas. The caller tries again later.
var errBehind = &Error{Kind: Unavailable, Message: "a replica of ClickHouse is behind the others"}

// CatchUp waits until the host that is asked first has the rows of tables that were written on other hosts before the call, and returns its address.
// It does not wait if the tables are not replicated, and ignores tables that do not exist. It can't wait for rows that exist only on replicas that
// are away: whole is false if there may be such rows.
func (c *Client) CatchUp(ctx context.Context, tables ...string) (at string, whole bool, err error) {
	there := c.tables.Load()
	if there == nil || !c.replicated.Load() {
		return c.First(), true, nil
	}
	tables = slices.DeleteFunc(slices.Clone(tables), func(table string) bool {
		_, known := (*there)[table]
		return !known
	})
	behind := false
	err = c.tryEach(ctx, c.order(false), always, func(ctx context.Context, h *host) (err error) { // all tables on one host
		at = h.address
		whole, err = c.catchUp(ctx, h, tables)
		if behind = errors.Is(err, errBehind); behind { // the host answers
			return nil
		}
		return err
	})
	if err == nil && behind {
		err = errBehind
	}
	if err != nil {
		return "", false, c.ownFailure(ctx, "waiting for replicas", err)
	}
	if whole {
		c.lacking.Store(false)
	} else if !c.lacking.Swap(true) {
		c.logger.Warn("replicas of ClickHouse are away. Rows that only they have are missing until they are back, also where people are looked up "+
			"before events are written", zap.String("host", at))
	}
	return at, whole, nil
}

// catchUp does the work of CatchUp on one host.
func (c *Client) catchUp(ctx context.Context, h *host, tables []string) (whole bool, err error) {
	replicas, err := c.peers(ctx, h)
	if err != nil {
		return false, err
	}
	until := time.Now().Add(catchUpTimeout)
	whole = true
	var late []string
	for _, table := range tables {
		from, all := h.sources(table, replicas[table])
		whole = whole && all
		done, err := h.sync(ctx, table, from, time.Until(until))
		if code, _ := exceptionOf(err); forbidden[code] {
			c.behind.Do(func() {
				c.logger.Warn("cannot wait for replicas. People that another server has just written may be created twice. "+
					"The user of the clickhouse DSN needs SYSTEM SYNC REPLICA on the tables", zap.String("table", table))
			})
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !done {
			late = append(late, table)
		}
	}
	if len(late) == 0 {
		return whole, nil
	}
	if replicas, err = c.peers(ctx, h); err != nil { // some may have gone meanwhile
		return false, err
	}
	for _, table := range late {
		if all := replicas[table]; all != nil && !c.pass(h, table, all) {
			return false, errBehind
		}
	}
	return false, nil
}

// peer is a replica of a table.
type peer struct {
	name   string
	own    bool // the replica on the host itself
	active bool // it has a session in ZooKeeper
}

const peersSQL = "SELECT table, name, multiIf(name = replica_name, 'own', active = 1, 'active', 'away') FROM system.replicas " +
	"ARRAY JOIN mapKeys(replica_is_active) AS name, mapValues(replica_is_active) AS active WHERE "

// peers returns the replicas of our tables, by table; nil if we may not see them. It stores the host's own replicas in h.replicas.
func (c *Client) peers(ctx context.Context, h *host) (map[string][]peer, error) {
	ctx, cancel := c.shortContext(ctx)
	defer cancel()
	all, own := map[string][]peer{}, map[string]string{}
	err := h.control.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		return readStrings(ctx, conn, peersSQL+ours, func(table, name, is string) {
			all[table] = append(all[table], peer{name: name, own: is == "own", active: is != "away"})
			if is == "own" {
				own[table] = name
			}
		})
	})
	if code, _ := exceptionOf(err); forbidden[code] {
		return nil, nil // nothing is known, and that is no error
	}
	if err != nil {
		return nil, c.ownFailure(ctx, "looking for replicas", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replicas = own
	return all, nil
}

// sources returns the replicas whose rows of a table the host has to wait for; nil means all. They include a replica that is away, because an active
// one may have its rows. If no other replica is active, or the host already waited for this one in vain, it is left out and whole is false.
func (h *host) sources(table string, all []peer) (from []string, whole bool) {
	others := slices.ContainsFunc(all, func(p peer) bool { return p.active && !p.own })
	h.mu.Lock()
	defer h.mu.Unlock()
	var passed []string
	for _, p := range all {
		switch {
		case !p.active && slices.Contains(h.passed[table], p.name):
			passed = append(passed, p.name)
		case p.active || others:
			from = append(from, p.name)
		}
	}
	if passed == nil { // wait again for replicas that are back
		delete(h.passed, table)
	} else {
		h.passed[table] = passed
	}
	if len(from) == len(all) {
		return nil, true
	}
	return from, false
}

// pass records that a host waited in vain for the replicas of a table that are away, and reports whether there are any. A replica whose host does not
// answer us counts too, but is not recorded, because it may still exchange rows with other replicas.
func (c *Client) pass(h *host, table string, all []peer) (some bool) {
	for _, other := range c.hosts {
		if other != h && other.out.Load() {
			other.mu.Lock()
			name := other.replicas[table]
			other.mu.Unlock()
			some = some || slices.ContainsFunc(all, func(p peer) bool { return p.name == name && !p.own })
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range all {
		if !p.active {
			some = true
			if !slices.Contains(h.passed[table], p.name) {
				h.passed[table] = append(h.passed[table], p.name)
			}
		}
	}
	return some
}

// sync waits until a host has the rows that the replicas in from have now, or those of all replicas if from is empty. It returns false if that takes
// longer than most.
func (h *host) sync(ctx context.Context, table string, from []string, most time.Duration) (done bool, err error) {
	sql := "SYSTEM SYNC REPLICA " + identifier(table) + " LIGHTWEIGHT"
	if len(from) > 0 {
		sql += " FROM " + literals(from)
	}
	seconds := max(1, int(math.Ceil(most.Seconds())))
	limited, cancel := context.WithTimeoutCause(ctx, time.Duration(seconds)*time.Second+syncGrace, errBehind)
	defer cancel()
	err = h.with(limited, func(ctx context.Context, conn driver.Conn) error {
		return conn.Exec(driver.Context(ctx, driver.WithSettings(driver.Settings{"receive_timeout": seconds})), sql)
	})
	if code, _ := exceptionOf(err); code == timeoutExceeded || err != nil && ctx.Err() == nil && limited.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// ours is the condition that restricts a system table of ClickHouse to our tables.
var ours = "database = currentDatabase() AND table IN (" + literals(physical.Names()) + ")"

// lag returns by how many seconds our tables on a host are behind; 0 if they are not replicated or we may not ask. Rows that exist only on replicas
// that are away do not count: the host may be the only one left.
func (c *Client) lag(ctx context.Context, h *host) (seconds int64, err error) {
	away := false
	err = c.Collect(ctx, Query{
		SQL: "SELECT toInt64(max(absolute_delay)), toInt64(max(active_replicas < total_replicas)) FROM system.replicas WHERE " + ours, system: true, on: h,
	}, func(cells []Cell) error {
		away = cells[1].Text() != "0"
		seconds, err = cells[0].Int()
		return err
	})
	if err == nil && away && seconds > maxLag {
		seconds, err = c.queued(ctx, h)
	}
	if err != nil {
		return 0, unlessForbidden(err)
	}
	return seconds, nil
}

// queued returns for how many seconds a host has been waiting for rows of active replicas.
func (c *Client) queued(ctx context.Context, h *host) (seconds int64, err error) {
	err = c.Collect(ctx, Query{
		SQL: "SELECT max(toInt64(toUnixTimestamp(now())) - toInt64(toUnixTimestamp(create_time))) FROM system.replication_queue WHERE " + ours +
			" AND type IN ('GET_PART', 'ATTACH_PART') AND (table, source_replica) IN (SELECT table, name FROM system.replicas " +
			"ARRAY JOIN mapKeys(replica_is_active) AS name, mapValues(replica_is_active) AS active WHERE active = 1 AND " + ours + ")",
		system: true, on: h,
	}, func(cells []Cell) error {
		seconds, err = cells[0].Int()
		return err
	})
	return seconds, err
}
