package execution

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// work is a query that ClickHouse runs for a result. All who wait for the result share it.
type work struct{ began time.Time }

// beginWork records that ClickHouse is running a query for a result; the caller calls end.
func (rs *Runs) beginWork(key cache.Key) (end func()) {
	w := &work{began: time.Now()}
	rs.works.Store(key, w)
	return func() { rs.works.CompareAndDelete(key, w) }
}

// Work returns the query that ClickHouse runs for a result, or nil.
func (rs *Runs) Work(key cache.Key) *work {
	found, _ := rs.works.Load(key)
	w, _ := found.(*work)
	return w
}

// Progress says how far a query is: contract api.md, section 1.4. TimeElapsed is in seconds. The other figures are always 0: ClickHouse reads in granules,
// which projects share, so what a query has read would reveal something about the rows of others.
type Progress struct {
	BytesRead          uint64 `json:"bytes_read"`
	RowsRead           uint64 `json:"rows_read"`
	EstimatedRowsTotal uint64 `json:"estimated_rows_total"`
	TimeElapsed        int64  `json:"time_elapsed"`
	ActiveCPUTime      int64  `json:"active_cpu_time"`
}

// Progress returns how far the query is.
func (w *work) Progress(now time.Time) *Progress {
	return &Progress{TimeElapsed: int64(now.Sub(w.began) / time.Second)}
}
