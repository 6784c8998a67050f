package clickhouse

import (
	"context"
	"time"
)

// MaxRowBytes is the most that one row may have as JSON, or on its way over the native protocol. A row is looked at as a whole,
// so that none may take much memory.
const MaxRowBytes = 32 << 20

// grace is how long a query may take beyond its limit until we end it ourselves. ClickHouse ends most of them at the limit, but
// some functions do not look at the clock, and a result may be sent or read slowly.
const grace = time.Second

var (
	errTooLarge = &Error{Kind: TooLarge, Message: "the result is larger than it may be"}
	errOverdue  = &Error{Kind: Timeout, Message: "the query ran longer than it may"}
)

// bounds are how many bytes a result may have: all of its rows together, and each of them.
type bounds struct{ all, row int64 }

// bounds gives the bounds of a query's result. All rows together have none when the query says so.
func (c *Client) bounds(q Query) bounds {
	if q.Unbounded {
		return bounds{all: 1<<63 - 1, row: MaxRowBytes}
	}
	all := c.config.MaxResultBytes
	if q.MaxBytes > 0 {
		all = min(all, q.MaxBytes)
	}
	return bounds{all: all, row: min(all, MaxRowBytes)}
}

// Deadline gives the time at which a query that begins now is ended, whatever ClickHouse and the sink do: who passes rows on to
// somebody slow has to stop waiting for him then.
func (c *Client) Deadline(ctx context.Context) time.Time {
	return time.Now().Add(time.Duration(c.executionSeconds(ctx))*time.Second + grace)
}

// withinLimit gives a context that ends with errOverdue at the query's deadline.
func (c *Client) withinLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, c.Deadline(ctx), errOverdue)
}
