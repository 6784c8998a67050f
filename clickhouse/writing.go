package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// writes is the comment of an insert, by which Writing finds it.
type writes struct {
	Projects []int64 `json:"writes"`
}

func insertComment(projects []int64) string {
	text, err := json.Marshal(writes{projects})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// writingSQL finds the inserts of a project. An insert is listed until its rows are visible, even if its client is gone.
const writingSQL = "SELECT query_id, '', '' FROM system.processes WHERE current_database = currentDatabase() AND " +
	"has(JSONExtract(Settings['log_comment'], 'writes', 'Array(Int64)'), %d) LIMIT 1"

// silentFor is how long an insert may continue on a host that does not answer.
const silentFor = time.Minute

// Writing reports whether ClickHouse is still executing an insert of a project, whoever sent it. With several hosts, it asks all that answer. If
// doubtful, the outcome of an insert is unknown: then a host that does not answer counts as executing it for silentFor, unless the tables are
// replicated, because a retry can't write the rows twice there. If our user may not read system.processes, it logs that once and returns false.
func (c *Client) Writing(ctx context.Context, project int64, doubtful bool) (bool, error) {
	writing := false
	var failed error
	answers := 0
	for _, h := range c.hosts {
		err := c.findOn(ctx, h, fmt.Sprintf(writingSQL, project), &writing)
		switch {
		case err == nil:
			answers++
		case ctx.Err() != nil:
			return false, c.failure(ctx, askingProcesses, err)
		default:
			failed = err
			code, _ := exceptionOf(err)
			writing = writing || doubtful && code == 0 && !c.replicated.Load() && !h.unfit.Load() && time.Since(c.lastHeard(h)) < silentFor
		}
	}
	if answers > 0 {
		return writing, nil
	}
	return false, c.withoutProcesses(c.ownFailure(ctx, askingProcesses, failed))
}

// lastHeard returns when something last arrived from a host. If nothing has, it is when this client was opened: another server may have heard from
// the host until then.
func (c *Client) lastHeard(h *host) time.Time {
	if at := time.Unix(0, h.heard.Load()); at.After(c.opened) {
		return at
	}
	return c.opened
}

const askingProcesses = "looking for running inserts"

func (c *Client) findOn(ctx context.Context, h *host, sql string, found *bool) error {
	patience := c.patience
	if h.out.Load() {
		patience = min(patience, dialTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errHostSilent)
	defer cancel()
	return h.control.with(ctx, func(ctx context.Context, conn driver.Conn) error {
		return readStrings(ctx, conn, sql, func(string, string, string) { *found = true })
	})
}

// withoutProcesses returns err, or nil if our user may not see what is running, and logs that once.
func (c *Client) withoutProcesses(err error) error {
	if err == nil || unlessForbidden(err) != nil {
		return err
	}
	c.blind.Do(func() {
		c.logger.Warn("cannot see running inserts. After a crash, events may be there twice until ClickHouse merges them. "+
			"The user of the clickhouse DSN needs SELECT on system.processes", Logged(err))
	})
	return nil
}
