package module

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// work is a query that ClickHouse runs for a result. All who wait for the result look at the same one.
type work struct {
	query clickhouse.Query
	began time.Time
	read  atomic.Pointer[clickhouse.Progress] // the furthest that is known; nil before anything is
	asked atomic.Int64                        // when ClickHouse was last asked, in Unix nanoseconds
}

// beginWork tells that ClickHouse is given a query for a result; the caller ends it. It sets the query's Progress.
func (rs *runs) beginWork(key cache.Key, q *clickhouse.Query) (end func()) {
	w := &work{began: time.Now()}
	q.Progress = w.note
	w.query = *q
	rs.works.Store(key, w)
	return func() { rs.works.CompareAndDelete(key, w) }
}

// work is what ClickHouse does for a result, or nil.
func (rs *runs) work(key cache.Key) *work {
	found, _ := rs.works.Load(key)
	w, _ := found.(*work)
	return w
}

// note takes news of how far the query is. News may arrive out of order.
func (w *work) note(p clickhouse.Progress) {
	for {
		known := w.read.Load()
		if known != nil {
			p = clickhouse.Progress{
				ReadRows: max(p.ReadRows, known.ReadRows), ReadBytes: max(p.ReadBytes, known.ReadBytes),
				TotalRows: max(p.TotalRows, known.TotalRows), CPU: max(p.CPU, known.CPU),
			}
		}
		if w.read.CompareAndSwap(known, &p) {
			return
		}
	}
}

const (
	// progressEvery is the shortest time between two questions for the progress of one query.
	progressEvery = 250 * time.Millisecond
	// progressWait is how long the answer to one may take; then the last one counts.
	progressWait = 2 * time.Second
)

// progress is how far a query is: contract section 1.4. TimeElapsed is in seconds, ActiveCPUTime in microseconds.
type progress struct {
	BytesRead          uint64 `json:"bytes_read"`
	RowsRead           uint64 `json:"rows_read"`
	EstimatedRowsTotal uint64 `json:"estimated_rows_total"`
	TimeElapsed        int64  `json:"time_elapsed"`
	ActiveCPUTime      int64  `json:"active_cpu_time"`
}

// progress asks ClickHouse how far the query is, at most once in a while. Without an answer the last one counts.
func (w *work) progress(ctx context.Context, client *clickhouse.Client) (progress, error) {
	var err error
	asked, now := w.asked.Load(), time.Now().UnixNano()
	if now-asked >= int64(progressEvery) && w.asked.CompareAndSwap(asked, now) {
		ctx, cancel := context.WithTimeout(ctx, progressWait)
		defer cancel()
		var p clickhouse.Progress
		var running bool
		if p, running, err = client.Running(ctx, w.query); running {
			w.note(p)
		}
	}
	out := progress{TimeElapsed: int64(time.Since(w.began) / time.Second)}
	if p := w.read.Load(); p != nil {
		out.BytesRead, out.RowsRead, out.EstimatedRowsTotal = p.ReadBytes, p.ReadRows, p.TotalRows
		out.ActiveCPUTime = p.CPU.Microseconds()
	}
	return out, err
}
