package clickhouse

import (
	"context"
	"time"
)

// runningSQL finds a running query by its id, or by its comment if the server assigns its own ids, as the embedded
// engine does.
const runningSQL = "SELECT read_rows, read_bytes, total_rows_approx, ProfileEvents['OSCPUVirtualTimeMicroseconds'] FROM system.processes" +
	" WHERE query_id = {id:String} OR `Settings`['log_comment'] = {comment:String} ORDER BY elapsed DESC LIMIT 1"

// Running returns the progress of a running query, identified by its ID and its Comment, which must be unique. It may be
// called while Query runs. ok is false if no such query runs on the server. Of several hosts, that is asked which runs the query for this
// client; if none does, all that answer are.
func (c *Client) Running(ctx context.Context, q Query) (p Progress, ok bool, err error) {
	if at, known := c.running.Load(q.ID); known {
		at, _ := at.(*run)
		q.ID = at.id
		return c.runningOn(ctx, at.on, q)
	}
	for _, h := range c.order(false) {
		p, ok, err = c.runningOn(ctx, h, q)
		if ok || ctx.Err() != nil {
			break
		}
	}
	return p, ok, err
}

func (c *Client) runningOn(ctx context.Context, h *host, q Query) (p Progress, ok bool, err error) {
	asked := Query{
		SQL: runningSQL, Params: []Param{{Name: "id", Type: "String", Value: q.ID}, {Name: "comment", Type: "String", Value: q.Comment}},
		system: true, on: h,
	}
	err = c.Collect(ctx, asked, func(cells []Cell) error {
		var numbers [4]uint64
		for i := range numbers {
			n, err := cells[i].Int()
			if err != nil {
				return err
			}
			numbers[i] = uint64(max(n, 0))
		}
		ok = true
		p = Progress{
			ReadRows: numbers[0], ReadBytes: numbers[1], TotalRows: numbers[2],
			CPU: time.Duration(numbers[3]) * time.Microsecond, //nolint:gosec // some years at most
		}
		return nil
	})
	return p, ok, err
}
