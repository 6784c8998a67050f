package module

import (
	"cmp"
	"errors"
	"net/http"
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
	queryLogRows     = 100            // of one id in an answer
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

// find gives the queries of an id, oldest first.
func (l *queryLog) find(project int64, id string, now time.Time) []loggedQuery {
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

// log remembers that the plan ran on ClickHouse, under the name that its caller knows it by.
func (x *execution) log(done *outcome, start time.Time, bytes int64, err error) {
	q := loggedQuery{
		id: cmp.Or(x.id, x.plan.clientID, done.executionID.String()), label: x.plan.label, user: x.key.User,
		personal: x.key.Kind == registry.Personal, start: start, end: time.Now(), rows: done.stats.Rows, bytes: bytes, failed: err != nil,
	}
	if _, ok := x.plan.node.(*query.HogQL); ok {
		q.text = strings.Clone(headOf(x.plan.text, queryLogText))
	}
	if x.plan.endpoint != nil {
		q.endpoint = x.plan.endpoint.Name
	}
	if of, ok := errors.AsType[*clickhouse.Error](err); ok {
		q.code = of.Code
	}
	x.rt.runs.queries.add(x.project.ID, q)
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

// queryLogColumns are the columns of the peer's query_log that are known here, with their types.
var queryLogColumns = [][2]string{
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

// row gives the values of queryLogColumns; times are those of the zone. What ClickHouse read is 0: it reads in granules, which projects
// share, so that the figures would tell of the rows of others. Operators see them in the metrics.
func (q *loggedQuery) row(zone *time.Location) []any {
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

// getQueryLog answers GET query/{id}/log/: contract section 1.1. Like the peer's answer, which is that of a HogQLQuery over
// the log, it has no rows for an id that is not known.
func (rq *request) getQueryLog() error {
	zone, err := time.LoadLocation(rq.project.Timezone)
	if err != nil {
		return err // zones are checked before they are stored
	}
	found := rq.rt.runs.queries.find(rq.project.ID, rq.at.name, rq.start)
	more := len(found) > queryLogRows
	rows := make([][]any, 0, min(len(found), queryLogRows))
	for i := range found[:cap(rows)] {
		rows = append(rows, found[i].row(zone))
	}
	columns := make([]string, len(queryLogColumns))
	for i, c := range queryLogColumns {
		columns[i] = c[0]
	}
	rq.reply(http.StatusOK, map[string]any{
		"results": rows, "columns": columns, "types": queryLogColumns, "hasMore": more, "limit": queryLogRows, "offset": 0,
		"query": nil, "hogql": nil, "clickhouse": nil, "metadata": nil, "explain": nil, "error": nil, "timings": nil, "modifiers": nil,
		"query_status": nil, "resolved_date_range": nil,
	})
	return nil
}
