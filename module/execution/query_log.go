package execution

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The bounds of the log of queries: how many of one project and of all are remembered, how long, and how much of a text.
const (
	queriesOfProject = 256
	queriesOfAll     = 8192
	queryLogged      = 24 * time.Hour // contract section 1.1
	queryLogText     = 2048           // bytes
	QueryLogRows     = 100            // of one id in an answer
)

// queryLog is what ran on ClickHouse of late, in memory. Its zero value is ready. An answer from the cache adds nothing.
type queryLog struct {
	mu        sync.Mutex
	byProject map[int64][]loggedQuery // oldest first
	count     int
}

// loggedQuery is one query: what it was, and what it took. It holds no row and no value of a variable.
type loggedQuery struct {
	id, text, label string
	kind            string // of the query
	endpoint        string // empty on the query route
	user            int64  // 0 for an operator or a secret key
	personal        bool
	start, end      time.Time
	rows            uint64 // of the result
	bytes           int64  // of the result, as it is kept
	failed          bool
	code            int // ClickHouse's number of the error; 0 when it has none
}

func (l *queryLog) add(project int64, q loggedQuery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byProject == nil {
		l.byProject = map[int64][]loggedQuery{}
	}
	l.byProject[project] = append(l.byProject[project], q)
	l.count++
	switch {
	case len(l.byProject[project]) > queriesOfProject:
		l.dropOldest(project)
	case l.count > queriesOfAll:
		most := project
		for other, queries := range l.byProject {
			if len(queries) > len(l.byProject[most]) {
				most = other
			}
		}
		l.dropOldest(most)
	}
}

// dropOldest forgets the oldest query of a project that has one. The caller holds mu.
func (l *queryLog) dropOldest(project int64) {
	queries := l.byProject[project]
	queries[0] = loggedQuery{} // lets go of its texts
	l.byProject[project] = queries[1:]
	l.count--
}

// Find gives the queries of an id, oldest first.
func (l *queryLog) Find(project int64, id string, now time.Time) []loggedQuery {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []loggedQuery
	for _, q := range l.byProject[project] {
		if q.id == id && now.Sub(q.start) < queryLogged {
			found = append(found, q)
		}
	}
	return found
}

// Rows are the queries of a project that are remembered, oldest first, as the rows of query_log in HogQL.
func (l *queryLog) Rows(project int64, now time.Time) [][]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows [][]any
	for i := range l.byProject[project] {
		if q := &l.byProject[project][i]; now.Sub(q.start) < queryLogged {
			v := q.Row(time.UTC)
			rows = append(rows, []any{
				v[0], v[1], q.id, q.endpoint, q.label, q.text, q.kind, q.kind, q.start.UTC().Format(time.RFC3339Nano), q.end.Sub(q.start).Milliseconds(),
				q.user, 0, 0, q.rows, q.bytes, nil, v[13], q.code, v[15],
			})
		}
	}
	return rows
}

// log remembers that the query ran on ClickHouse, under the name that its caller knows it by.
func (x *Computation) log(done *Details, start time.Time, bytes int64, err error) {
	q := loggedQuery{
		id: cmp.Or(x.id, x.query.ClientID, done.ExecutionID.String()), label: x.query.Label, kind: x.query.Node.Kind(),
		start: start, end: time.Now(), rows: done.Stats.Rows, bytes: bytes, failed: err != nil,
	}
	if x.Key != nil {
		q.user, q.personal = x.Key.User, x.Key.Kind == registry.Personal
	}
	if _, ok := x.query.Node.(*query.HogQL); ok {
		q.text = strings.Clone(headOf(x.query.Text, queryLogText))
	}
	if x.query.Endpoint != nil {
		q.endpoint = x.query.Endpoint.Name
	}
	if of, ok := errors.AsType[*clickhouse.Error](err); ok {
		q.code = of.Code
	}
	x.exec.Runs.Queries.add(x.Project.ID, q)
}

// headOf gives the first bytes of a text, without a part of a character.
func headOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// QueryLogColumns are the columns of PostHog's query_log that this server fills, with their types.
var QueryLogColumns = [][2]string{
	{"event_date", "Date"},
	{"event_time", "DateTime"},
	{"query_id", "String"},
	{"endpoint", "String"},
	{"query", "String"},
	{"query_start_time", "DateTime"},
	{"query_duration_ms", "UInt64"},
	{"hogql_name", "String"},
	{"created_by", "Int64"},
	{"read_rows", "UInt64"},
	{"read_bytes", "UInt64"},
	{"result_rows", "UInt64"},
	{"result_bytes", "UInt64"},
	{"status", "String"},
	{"exception_code", "Int32"},
	{"is_personal_api_key_request", "UInt8"},
}

// Row gives the values of queryLogColumns; times are those of the zone. What ClickHouse read is 0: it reads in granules, which projects
// share, so that the figures would tell of the rows of others. Operators see them in the metrics.
func (q *loggedQuery) Row(zone *time.Location) []any {
	status := "QueryFinish"
	if q.failed {
		status = "ExceptionWhileProcessing"
	}
	end := q.end.In(zone)
	personal := 0
	if q.personal {
		personal = 1
	}
	return []any{
		end.Format(time.DateOnly), end.Format(time.RFC3339), q.id, q.endpoint, q.text, q.start.In(zone).Format(time.RFC3339),
		q.end.Sub(q.start).Milliseconds(), q.label, q.user, 0, 0, q.rows, q.bytes, status, q.code, personal,
	}
}
