package clickhouse

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Deletion describes the rows of one project to delete from a table.
type Deletion struct {
	Table   string
	Project int64
	// Where is a condition on the columns of the table, written by us, with {name:Type} placeholders for Params. Empty: all rows of the
	// project.
	Where  string
	Params []Param
	// Partition is the id of a partition, as in system.parts. Empty: all of them.
	Partition string
}

// Delete hides rows of a project: when it returns nil, no query finds them. They stay on the disk until [Client.Erase]. Rows written later are not
// affected, even if they meet the condition. Errors are like those of [Client.Query]; [Error.Refused] reports whether the server does not let us
// delete.
//
// ClickHouse keeps the text of the statement, with its parameters, until the next deletion or erasure in the table. If a replica is away, the error
// is Unavailable: the rows are hidden on the other replicas, and a retry of the same deletion is not sent before that replica has done it.
func (c *Client) Delete(ctx context.Context, d Deletion) error {
	if err := checkText(d.Where); err != nil {
		return fmt.Errorf("BUG: a condition that can't be one: %w", err)
	}
	if d.Project <= 0 {
		return fmt.Errorf("BUG: a deletion without a project: %d", d.Project)
	}
	return c.mutate(ctx, d.Table, d.Params, d.statement(), "deleting rows of the table "+d.Table)
}

// statement returns the whole statement. Whatever the condition is, only rows of the project are affected.
func (d *Deletion) statement() string {
	var b strings.Builder
	b.WriteString("DELETE FROM " + identifier(d.Table))
	if d.Partition != "" {
		b.WriteString(" IN PARTITION ID " + literal(d.Partition))
	}
	fmt.Fprintf(&b, " WHERE (%s = %d)", physical.Project, d.Project)
	if d.Where != "" {
		b.WriteString(" AND (" + d.Where + ")")
	}
	return b.String()
}

// mutateSettings make a statement return only when all servers that keep the table have done it. Otherwise a deletion could return before its rows
// are hidden.
var mutateSettings = []setting{{"lightweight_deletes_sync", 2}, {"mutations_sync", 2}, {"alter_sync", 2}}

// unfinished is the code of a statement that continues in the background because a replica is away.
const unfinished = 341

// maxUnfinished is how many unfinished statements are remembered.
const maxUnfinished = 10_000

// mutate runs a statement that changes rows of a table, and waits until all replicas have done it. If one is away, the error is Unavailable, and
// ClickHouse continues when the replica is back. Until then the statement is not sent again, because ClickHouse would keep each copy.
func (c *Client) mutate(ctx context.Context, table string, params []Param, sql, doing string) error {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q", sql, params))
	if _, sent := c.unfinished.Load(key); sent {
		pending, err := c.pending(ctx, table)
		if err != nil {
			return err
		}
		if pending {
			return fmt.Errorf("%s: %w", doing, errUnfinished(nil))
		}
	}
	q := Query{Params: params, ID: uuid.NewString(), longest: MaxFillTime, system: true}
	ctx, cancel := context.WithDeadlineCause(ctx, time.Now().Add(MaxFillTime+grace), errOverdue)
	defer cancel()
	var left error
	err := c.send(ctx, false, func(ctx context.Context, h *host) error {
		s, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		err = h.fill(ctx, c.fillSettings(ctx, s, q, mutateSettings), q, sql)
		if code, _ := exceptionOf(err); code == unfinished { // the host did what it can
			left, err = err, nil
		}
		return err
	})
	switch {
	case err != nil:
		return c.ownFailure(ctx, doing, err)
	case left != nil:
		c.remember(key)
		return c.failure(ctx, doing, errUnfinished(left))
	}
	c.unfinished.Delete(key)
	return nil
}

func errUnfinished(cause error) *Error {
	return &Error{Kind: Unavailable, Code: unfinished, Name: "unfinished", Message: "a replica of ClickHouse is unavailable, or is not done yet", cause: cause}
}

// remember records that a statement is unfinished. If there are too many, it forgets the others: sending a statement again does no harm.
func (c *Client) remember(key [sha256.Size]byte) {
	known := 0
	c.unfinished.Range(func(any, any) bool {
		known++
		return true
	})
	if known >= maxUnfinished {
		c.unfinished.Clear()
	}
	c.unfinished.Store(key, struct{}{})
}

// pending reports whether a replica of a table is away, or has not done all statements that change the table's rows.
func (c *Client) pending(ctx context.Context, table string) (pending bool, err error) {
	for _, h := range c.hosts {
		if h.out.Load() {
			continue
		}
		err := c.Collect(ctx, Query{
			SQL: "SELECT (SELECT countIf(active_replicas < total_replicas) FROM system.replicas " + ofTable + ") + " +
				"(SELECT countIf(NOT is_done) FROM system.mutations " + ofTable + ")",
			system: true, on: h, Params: []Param{{Name: "table", Type: "String", Value: table}},
		}, func(cells []Cell) error {
			pending = pending || cells[0].Text() != "0"
			return nil
		})
		if err = unlessForbidden(err); err != nil {
			return false, err
		}
	}
	return pending, nil
}

// Refused reports whether the server does not let us do something, whatever the data: our user lacks the privilege, or the table's engine can't do
// it.
func (e *Error) Refused() bool { return forbidden[e.Code] || cannotDelete[e.Code] }

// cannotDelete has the codes for tables whose rows can't be deleted: the engine has no deletions (48, 36), they are switched off (344), or the table
// is read-only (242, 774).
var cannotDelete = map[int]bool{36: true, 48: true, 242: true, 344: true, 774: true}

// Erase rewrites the parts of a table that have deleted rows, of any project, without those rows, and waits until that is done. The old parts stay on
// the disk for a while: see [Client.Unerased]. It returns the time at which it was done, by ClickHouse's clock.
func (c *Client) Erase(ctx context.Context, table string) (time.Time, error) {
	if err := c.mutate(ctx, table, nil, "ALTER TABLE "+identifier(table)+" APPLY DELETED MASK", "erasing deleted rows of the table "+table); err != nil {
		return time.Time{}, err
	}
	return c.serverTime(ctx)
}

// serverTime returns the time by ClickHouse's clock; with several hosts, by the clock that is furthest ahead.
func (c *Client) serverTime(ctx context.Context) (at time.Time, err error) {
	err = c.collectAll(ctx, Query{SQL: "SELECT toUnixTimestamp(now())", system: true}, func(cells []Cell) error {
		seconds, err := cells[0].Int()
		if now := time.Unix(seconds, 0).UTC(); now.After(at) {
			at = now
		}
		return err
	})
	return at, err
}

// collectAll runs Collect on each host, for data that each host keeps by itself. All must answer.
func (c *Client) collectAll(ctx context.Context, q Query, row func([]Cell) error) error {
	for _, h := range c.hosts {
		q.on = h
		if err := c.Collect(ctx, q, row); err != nil {
			return err
		}
	}
	return nil
}

// Remains counts what is still on the disk of rows that were deleted from a table.
type Remains struct {
	// Masked is the number of parts with hidden rows.
	Masked int64
	// Old is the number of parts on the disk that others have replaced.
	Old int64
	// Statements is the number of kept statements that changed rows, with the values in their text. It does not count those of tables that other
	// products made, which may keep them as long as they like.
	Statements int64
}

// None reports whether nothing is left.
func (r Remains) None() bool { return r == Remains{} }

// Unerased returns what is left on the disks of all hosts of rows that were deleted from a table before a time by ClickHouse's clock, such as the
// time that [Client.Erase] returned. Parts that merges and deletions replace later don't count.
func (c *Client) Unerased(ctx context.Context, table string, before time.Time) (r Remains, err error) {
	const sql = "SELECT (SELECT countIf(active AND has_lightweight_delete AND modification_time <= {before:DateTime('UTC')}) FROM system.parts " + ofTable + "), " +
		"(SELECT countIf(NOT active AND remove_time <= {before:DateTime('UTC')}) FROM system.parts " + ofTable + "), " +
		"(SELECT count() FROM system.mutations " + ofTable + " AND command NOT LIKE '%APPLY DELETED MASK%' AND create_time <= {before:DateTime('UTC')} " +
		"AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND position(engine_full, " + fewStatements + ") > 0))"
	q := Query{SQL: sql, system: true, Params: []Param{
		{Name: "table", Type: "String", Value: table}, {Name: "before", Type: "DateTime('UTC')", Value: before.UTC().Format(time.DateTime)},
	}}
	err = c.collectAll(ctx, q, func(cells []Cell) error {
		for n, into := range []*int64{&r.Masked, &r.Old, &r.Statements} {
			found, err := cells[n].Int()
			if err != nil {
				return err
			}
			*into += found
		}
		return nil
	})
	return r, err
}

const ofTable = "WHERE database = currentDatabase() AND table = {table:String}"

// fewStatements marks the tables for which ClickHouse keeps only the last finished statement: see lastStatement.
const fewStatements = "'finished_mutations_to_keep = 1'"

// CanDelete returns the reason why rows of our tables, except the logs, can't be deleted; empty if they can. It returns an error if ClickHouse can't
// be asked.
func (c *Client) CanDelete(ctx context.Context) (reason string, err error) {
	engines := map[string]string{}
	err = c.Collect(ctx, Query{
		SQL: "SELECT name, engine FROM system.tables WHERE database = currentDatabase() AND name IN (" + literals(physical.WithoutLogs()) + ")", system: true,
	}, func(cells []Cell) error {
		engines[cells[0].Text()] = cells[1].Text()
		return nil
	})
	if err = unlessForbidden(err); err != nil {
		return "", err
	}
	var deletions []string
	for _, name := range physical.WithoutLogs() {
		switch engine := engines[name]; {
		case engine == "": // it is missing, or we may not see its engine: the deletion will tell
		case !strings.HasSuffix(engine, "MergeTree"):
			return fmt.Sprintf("Rows of the table %s can't be deleted, because it is of the engine %s.", name, engine), nil
		case len(c.hosts) > 1 && !strings.HasPrefix(engine, "Replicated"):
			return fmt.Sprintf("Rows of the table %s would be deleted on only one of the ClickHouse servers that this server uses.", name), nil
		default:
			deletions = append(deletions, "ALTER DELETE ON "+identifier(name))
		}
	}
	if len(deletions) == 0 {
		return "", nil
	}
	may, err := c.granted(ctx, deletions...)
	if err != nil || may {
		return "", err
	}
	return "The ClickHouse user of this server may not delete rows of these tables.", nil
}

// MayDelete reports whether our user certainly may delete rows of a table. It is false for a server that is too old to be asked.
func (c *Client) MayDelete(ctx context.Context, table string) (bool, error) {
	may, err := c.granted(ctx, "ALTER DELETE ON "+identifier(table))
	if known, ok := errors.AsType[*Error](err); ok && known.Code != 0 && known.Kind != Unavailable {
		return false, nil
	}
	return may, err
}

// granted reports whether our user has all of the given privileges, such as ALTER DELETE ON a table.
func (c *Client) granted(ctx context.Context, rights ...string) (all bool, err error) {
	err = c.Collect(ctx, Query{SQL: "CHECK GRANT " + strings.Join(rights, ", "), system: true, rights: true}, func(cells []Cell) error {
		all = cells[0].Text() == "1"
		return nil
	})
	return all, err
}

// EraseMaterialized drops the tables of a project's materialized endpoints that were filled before a time, and waits until they are off the disk. It
// reports whether none is left: a table that a query is still filling appears only later.
func (c *Client) EraseMaterialized(ctx context.Context, project int64, before time.Time) (none bool, err error) {
	old := func(t MaterializedTable) bool { return t.Project == project && t.Fill < before.UnixMilli() }
	all, err := c.MaterializedTables(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range all {
		if !old(t) {
			continue
		}
		if err := c.mutate(ctx, t.Name(), nil, "DROP TABLE IF EXISTS "+identifier(t.Name())+c.onCluster()+" SYNC", "erasing the table of a materialized endpoint"); err != nil {
			return false, err
		}
	}
	dropped := false
	err = c.collectAll(ctx, Query{
		SQL:    "SELECT table FROM system.dropped_tables WHERE database = currentDatabase() AND startsWith(table, " + literal(materializedPrefix+strconv.FormatInt(project, 10)+"_") + ")",
		system: true,
	}, func(cells []Cell) error {
		t, ok := parseMaterialized(cells[0].Text())
		dropped = dropped || ok && old(t)
		return nil
	})
	if err = unlessForbidden(err); err != nil {
		return false, err
	}
	left, err := c.MaterializedTables(ctx)
	return err == nil && !dropped && !slices.ContainsFunc(left, old), err
}
