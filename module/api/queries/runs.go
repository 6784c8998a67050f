package queries

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// status answers GET query/{id}/: contract section 1.4.
func (q *Queries) status(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	r, ended := q.Executor.Runs.Find(c.Project.ID, in.At.Name)
	if r == nil {
		return api.Response{}, api.NotFound(runNotFound(in.At.Name, c.Project.ID))
	}
	var read *execution.Progress
	if asked := in.URL.Query(); !ended && (asked.Get("show_progress") == "true" || asked.Get("showProgress") == "true") {
		read = q.progress(r, c.Start)
	}
	status := http.StatusAccepted
	switch {
	case ended && r.Failure == nil:
		status = http.StatusOK
	case ended && api.ErrorOf(r.Failure).Exposable():
		status = http.StatusBadRequest
	case ended:
		status = http.StatusInternalServerError
	}
	body := q.Executor.Cache.Render(cache.Negotiate(in.Header.Get("Accept-Encoding")), func(dst []byte) []byte {
		return append(q.writer(&c, nil).AppendStatus(append(dst, `{"query_status":`...), r, ended, read), '}')
	})
	body.ETag = "" // the next answer is another one
	return api.Response{Status: status, Body: body}, nil
}

// progress is how far a run in progress is; a zero one for a run that waits for its turn.
func (q *Queries) progress(r *execution.Run, now time.Time) *execution.Progress {
	w := q.Executor.Runs.Work(r.Query.Key)
	if w == nil {
		return new(execution.Progress)
	}
	return w.Progress(now)
}

// cancel answers DELETE query/{id}/. Like PostHog it does not mind an id that is not known.
func (q *Queries) cancel(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	queuedOnly := in.URL.Query().Get("dequeue_only") == "true"
	found := q.Executor.Runs.Cancel(c.Project.ID, in.At.Name, queuedOnly)
	message := runNotFound(in.At.Name, c.Project.ID)
	switch {
	case found.Stopped > 0:
		message = "The query was cancelled."
	case found.Left > 0:
		message = "The query is running already; it was not cancelled."
	case found.Forgotten > 0:
		message = "The query had ended already; its state was removed."
	}
	return api.JSON(http.StatusOK, map[string]string{"message": message}), nil
}

// log answers GET query/{id}/log/: contract section 1.1. Like PostHog's answer, which is that of a HogQLQuery over
// the log, it has no rows for an id that is not known.
func (q *Queries) log(ctx context.Context, c api.Caller, in api.Input) (api.Response, error) {
	zone, err := time.LoadLocation(c.Project.Timezone)
	if err != nil {
		return api.Response{}, err // zones are checked before they are stored
	}
	found, err := q.Executor.LoggedQueries(ctx, c.Project.ID, in.At.Name, c.Start)
	if err != nil {
		q.Logger.Debug("the log of queries can't be read; an answer has those of this process", zap.Int64("project", c.Project.ID), api.Logged(err))
	}
	more := len(found) > execution.QueryLogRows
	rows := make([][]any, 0, min(len(found), execution.QueryLogRows))
	for i := range found[:cap(rows)] {
		rows = append(rows, execution.QueryLogRow(found[i], zone))
	}
	columns := make([]string, len(execution.QueryLogColumns))
	for i, column := range execution.QueryLogColumns {
		columns[i] = column[0]
	}
	limit, offset := execution.QueryLogRows, 0
	body := jsontext.Append([]byte(`{"results":`), rows)
	body = jsontext.Append(append(body, `,"columns":`...), columns)
	body = jsontext.Append(append(body, `,"types":`...), execution.QueryLogColumns)
	body = result.AppendWindow(body, &more, &limit, &offset)
	return api.Raw(http.StatusOK, append(body, `,"query":null,"hogql":null,"clickhouse":null,"metadata":null,"explain":null,"error":null,`+
		`"timings":null,"modifiers":null,"query_status":null,"resolved_date_range":null}`...)), nil
}

// runNotFound is PostHog's text for an id that is not known.
func runNotFound(id string, project int64) string {
	return fmt.Sprintf("Query %s not found for team %d", id, project)
}
