package clickhouse

import (
	"context"
	"time"
)

// MaxRowBytes is the maximum size of a row, as JSON and in the native protocol. Each row is held in memory as a whole, so its
// size must be limited.
const MaxRowBytes = 32 << 20

// grace is how long a query may exceed its limit before the client ends it. ClickHouse ends most queries at the limit, but some
// functions do not check the time, and a result may be sent or read slowly.
const grace = time.Second

var (
	errTooLarge = &Error{Kind: TooLarge, Message: "the result exceeds its size limit"}
	errOverdue  = &Error{Kind: Timeout, Message: "the query exceeded its time limit"}
)

// bounds are the maximum sizes in bytes of a result: of all rows together, and of each row.
type bounds struct{ all, row int64 }

// bounds returns the bounds of a query's result. The total is unlimited if the query says so.
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

// Deadline returns the time at which a query that starts now is ended, whatever ClickHouse and the sink do. A sink that passes
// rows on to a slow reader must stop waiting for it then.
func (c *Client) Deadline(ctx context.Context) time.Time {
	return time.Now().Add(time.Duration(c.executionSeconds(ctx, 0))*time.Second + grace)
}

// withinLimit returns a context that ends with errOverdue at the query's deadline. A query that may take longer than others has a later one; for
// a shorter one ClickHouse's limit suffices.
func (c *Client) withinLimit(ctx context.Context, q Query) (context.Context, context.CancelFunc) {
	deadline := c.Deadline(ctx)
	if q.longest > c.config.MaxExecutionTime {
		deadline = time.Now().Add(q.longest + grace)
	}
	return context.WithDeadlineCause(ctx, deadline, errOverdue)
}
