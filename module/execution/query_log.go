package execution

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The bounds of the query log in memory: how many queries are kept per project and in total, for how long, and how much of each text.
const (
	queriesOfProject = 256
	queriesOfAll     = 8192
	queryLogged      = 24 * time.Hour // contract api.md, section 1.1
	queryLogText     = 2048           // bytes
	QueryLogRows     = 100            // with one id, in an answer
)

// queryLog is what this process recently ran on ClickHouse, in memory. Its zero value is ready. An answer from the cache adds nothing. The queries of
// all servers are in querylog.Log.
type queryLog struct {
	mu        sync.Mutex
	byProject map[int64][]*querylog.Query // oldest first
	count     int
}

func (l *queryLog) add(q *querylog.Query) {
	project := q.Project
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byProject == nil {
		l.byProject = map[int64][]*querylog.Query{}
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
	queries[0] = nil // so that it can be collected
	l.byProject[project] = queries[1:]
	l.count--
}

// Find returns the queries with an id, oldest first.
func (l *queryLog) Find(project int64, id string, now time.Time) []*querylog.Query {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*querylog.Query
	for _, q := range l.byProject[project] {
		if q.Name == id && now.Sub(q.Start) < queryLogged {
			found = append(found, q)
		}
	}
	return found
}

// Rows returns the remembered queries of a project, oldest first, as rows of query_log in HogQL where ClickHouse has no such table.
func (l *queryLog) Rows(project int64, now time.Time) [][]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows [][]any
	for _, q := range l.byProject[project] {
		if now.Sub(q.Start) >= queryLogged {
			continue
		}
		end := q.End.UTC()
		rows = append(rows, []any{
			end.Format(time.DateOnly), end.Format(time.RFC3339), q.Name, q.Endpoint, q.Label, q.Text, q.Kind, q.Kind, q.Start.UTC().Format(time.RFC3339Nano),
			q.End.Sub(q.Start).Milliseconds(), q.User, 0, 0, q.Rows, q.Bytes, nil, q.Status(), q.Code, q.Exception, personal(q), q.Version, q.Key, q.Customer,
		})
	}
	return rows
}

func personal(q *querylog.Query) int {
	if q.Personal {
		return 1
	}
	return 0
}

// logWait is how long a reader of the log waits for a place, and for pending entries to be written.
const logWait = 2 * time.Second

// EnterLog takes a place for a query of our own over the logs of a project.
func (e *Executor) EnterLog(project int64) querylog.Enter {
	return func(ctx context.Context) (*admission.Place, func(), error) {
		place, err := e.Places.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited, Wait: logWait})
		if err != nil {
			return nil, nil, err
		}
		return place, place.Leave, nil
	}
}

// LoggedQueries returns the newest QueryLogRows queries of a project that have a name and ended within a day, oldest first, and whether there are more:
// those in this process's memory and those in ClickHouse. If it returns an error, the result has only those of this process.
func (e *Executor) LoggedQueries(ctx context.Context, project int64, name string, now time.Time) (found []*querylog.Query, more bool, err error) {
	found = e.Runs.Queries.Find(project, name, now)
	stored, err := e.Log.Queries(ctx, e.EnterLog(project), project, name, now.Add(-queryLogged), QueryLogRows+1)
	for _, q := range stored {
		if !slices.ContainsFunc(found, func(known *querylog.Query) bool { return known.ID == q.ID }) {
			found = append(found, q)
		}
	}
	slices.SortStableFunc(found, func(a, b *querylog.Query) int { return a.Start.Compare(b.Start) })
	if more = len(found) > QueryLogRows; more {
		found = found[len(found)-QueryLogRows:]
	}
	return found, more, err
}

// syncLog writes pending log entries if a query reads the log, so that it finds the queries that ended before it began. If that fails, the query
// reads what ClickHouse has.
func (x *Computation) syncLog(ctx context.Context, tables []string) {
	if !slices.ContainsFunc(tables, physical.IsLog) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	_ = x.exec.Log.Sync(ctx, x.Project.ID) // the failure is in the server's log
}

// log records that the query ran on ClickHouse, under the name that its caller knows it by, or else under its id there.
func (x *Computation) log(id string, start time.Time, rows uint64, bytes int64, err error) {
	q := &querylog.Query{
		ID: uuid.New(), Project: x.Project.ID, Name: cmp.Or(x.id, x.query.ClientID, id), Label: x.query.Label,
		Kind: x.query.Node.Kind(), Start: start, End: time.Now(), Rows: int64(rows), Bytes: bytes, Failed: err != nil, //nolint:gosec // a count
	}
	if x.Key != nil {
		q.User, q.Personal, q.Key, q.Customer = x.Key.User, x.Key.Kind == registry.Personal, x.Key.ID, x.Key.Fixed
	}
	if _, ok := x.query.Node.(*query.HogQL); ok {
		q.Text = strings.Clone(shorten.Cut(x.query.Text, queryLogText))
	}
	if x.query.Endpoint != nil {
		q.Endpoint, q.Version = x.query.Endpoint.Name, x.query.Version.Number
	}
	if of, ok := errors.AsType[*clickhouse.Error](err); ok {
		q.Code, q.Exception = of.Code, strings.ToUpper(of.Name)
	}
	x.exec.Runs.Queries.add(q)
	x.exec.Log.Add(q)
}

// QueryLogColumns are the columns of PostHog's query_log that GET query/{id}/log/ has, with their types.
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

// QueryLogRow returns the values of QueryLogColumns, with times in zone. What ClickHouse read is 0: it reads in granules, which projects share, so
// these figures would reveal something about the rows of others. Operators see them in the metrics.
func QueryLogRow(q *querylog.Query, zone *time.Location) []any {
	end := q.End.In(zone)
	return []any{
		end.Format(time.DateOnly), end.Format(time.RFC3339), q.Name, q.Endpoint, q.Text, q.Start.In(zone).Format(time.RFC3339),
		q.End.Sub(q.Start).Milliseconds(), q.Label, q.User, 0, 0, q.Rows, q.Bytes, q.Status(), q.Code, personal(q),
	}
}
