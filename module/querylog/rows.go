package querylog

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Query is a query that ran on ClickHouse, with its cost. It holds no rows, and of the values of variables only those that the key fixes.
type Query struct {
	ID       uuid.UUID
	Project  int64
	Name     string // the name that its caller knows it by
	Text     string // the beginning of a HogQL text
	Label    string
	Kind     string
	Endpoint string // name; empty on the query route
	Version  int
	Key      string // id; empty if nobody asked
	Customer string // the variables that the key fixes; empty for none
	User     int64  // 0 for an operator or a secret key
	Personal bool

	Start, End time.Time
	Rows       int64 // of the result
	Bytes      int64 // of the result as stored
	Failed     bool
	Code       int    // ClickHouse's number of the error; 0 for none
	Exception  string // ClickHouse's name of the error
}

// Status returns how the query ended, in ClickHouse's words.
func (q *Query) Status() string {
	if q.Failed {
		return "ExceptionWhileProcessing"
	}
	return "QueryFinish"
}

// The columns that are written, in the order of the values.
var (
	queryColumns = columnsOf(physical.QueryLog, physical.Project, "id", "event_time", "query_id", "query_start_time", "query_duration_ms", "kind", "query", "name",
		"endpoint", "endpoint_version", "key_id", "customer", "created_by", "is_personal_api_key_request", "result_rows", "result_bytes", "status",
		"exception_code", "exception")
	runColumns = columnsOf(physical.RunLog, physical.Project, "entry", "endpoint_id", "at", "origin", "sequence", "version", "key_id", "customer", "took",
		"execution_id", "status", "cache", "result_rows", "code", "outcome", "duration", "calls")
)

func columnsOf(table string, names ...string) []clickhouse.Column {
	all := physical.Find(table).Columns
	columns := make([]clickhouse.Column, len(names))
	for i, name := range names {
		at := slices.IndexFunc(all, func(c physical.Column) bool { return c.Name == name })
		columns[i] = clickhouse.Column{Name: name, Type: all[at].Type}
	}
	return columns
}

// queryProjects returns the projects of the queries.
func (b *batch) queryProjects() []int64 {
	return projectsOf(b.queries, func(q *Query) int64 { return q.Project })
}

// runProjects returns the projects of the runs and counts.
func (b *batch) runProjects() []int64 {
	projects := projectsOf(b.runs, func(r runlog.Taken) int64 { return r.Project })
	projects = append(projects, projectsOf(slices.Collect(maps.Keys(b.counts)), func(what runlog.Counted) int64 { return what.Project })...)
	slices.Sort(projects)
	return slices.Compact(projects)
}

// queryBatch returns the queries as rows.
func queryBatch(b *batch, token string) clickhouse.Batch {
	return clickhouse.Batch{
		Table: physical.QueryLog, Columns: queryColumns, Token: token, Projects: b.queryProjects(),
		Rows: func(yield func([]any) bool) {
			for _, q := range b.queries {
				if !yield([]any{
					q.Project, q.ID, q.End.UTC(), q.Name, q.Start.UTC(), q.End.Sub(q.Start).Milliseconds(), q.Kind, q.Text, q.Label, q.Endpoint, int64(q.Version),
					q.Key, q.Customer, q.User, flag(q.Personal), q.Rows, q.Bytes, q.Status(), int64(q.Code), q.Exception,
				}) {
					return
				}
			}
		},
	}
}

// projectsOf returns the projects of rows without duplicates, sorted.
func projectsOf[T any](rows []T, project func(T) int64) []int64 {
	found := map[int64]bool{}
	for _, row := range rows {
		found[project(row)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// runBatch returns the runs and counts as rows.
func runBatch(b *batch, origin uuid.UUID, token string) clickhouse.Batch {
	return clickhouse.Batch{
		Table: physical.RunLog, Columns: runColumns, Token: token, Projects: b.runProjects(), Rows: b.runRows(origin),
	}
}

// runRows yields the runs and then the counts.
func (b *batch) runRows(origin uuid.UUID) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for i := range b.runs {
			r := &b.runs[i]
			code := ""
			if r.Code != nil {
				code = *r.Code
			}
			if !yield([]any{
				r.Project, "run", r.Endpoint, r.At, r.Origin, int64(r.Number), int64(r.Version), r.Key, r.Customer, r.Took.Microseconds(), //nolint:gosec // a count
				r.Execution, int64(r.Status), cacheWord(&r.Run), int64(r.Rows), code, "", int64(0), int64(0),
			}) {
				return
			}
		}
		for what, calls := range b.counts {
			if !yield([]any{
				what.Project, "count", what.Endpoint, time.Unix(what.From, 0).UTC(), origin, b.number, int64(what.Version), what.Key, what.Customer, int64(0),
				uuid.Nil, int64(0), "", int64(0), "", string(what.Outcome), int64(what.Duration), calls,
			}) {
				return
			}
		}
	}
}

// CacheWord returns where an answer came from in one word: hit, miss or stale.
func CacheWord(status cache.Status) string {
	switch status {
	case cache.Hit, cache.Renewed, cache.Pinned, cache.Fetched:
		return "hit"
	case cache.Stale, cache.StaleError:
		return "stale"
	case cache.Miss, cache.Coalesced, cache.Refreshed:
	}
	return "miss"
}

// cacheWord returns the word of a run; empty for a failed one.
func cacheWord(r *runlog.Run) string {
	if r.Status >= http.StatusBadRequest {
		return ""
	}
	return CacheWord(r.Cache)
}

// cacheStatus returns a status that has the word.
func cacheStatus(word string) cache.Status {
	switch word {
	case "hit":
		return cache.Hit
	case "stale":
		return cache.Stale
	}
	return cache.Miss
}
