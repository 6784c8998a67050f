package module

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// getRun answers GET query/{id}/: contract section 1.4.
func (rq *request) getRun() error {
	r, ended := rq.rt.Runs.Find(rq.Project.ID, rq.at.Name)
	if r == nil {
		return api.NotFound(runNotFound(rq.at.Name, rq.Project.ID))
	}
	var read *execution.Progress
	if asked := rq.r.URL.Query(); !ended && (asked.Get("show_progress") == "true" || asked.Get("showProgress") == "true") {
		read = rq.progress(r)
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
	body := rq.rt.Cache.Render(cache.Negotiate(rq.r.Header.Get("Accept-Encoding")), func(dst []byte) []byte {
		return append(rq.results().AppendStatus(append(dst, `{"query_status":`...), r, ended, read), '}')
	})
	body.ETag = "" // the next answer is another one
	rq.write(api.Response{Status: status, Body: body})
	return nil
}

// progress is how far a run in progress is; a zero one for a run that waits for its turn.
func (rq *request) progress(r *execution.Run) *execution.Progress {
	w := rq.rt.Runs.Work(r.Query.Key)
	if w == nil {
		return new(execution.Progress)
	}
	return w.Progress(rq.Start)
}

// cancelRun answers DELETE query/{id}/. Like the peer it does not mind an id that is not known.
func (rq *request) cancelRun() error {
	queuedOnly := rq.r.URL.Query().Get("dequeue_only") == "true"
	found := rq.rt.Runs.Cancel(rq.Project.ID, rq.at.Name, queuedOnly)
	message := runNotFound(rq.at.Name, rq.Project.ID)
	switch {
	case found.Stopped > 0:
		message = "The query was cancelled."
	case found.Left > 0:
		message = "The query is running already; it was not cancelled."
	case found.Forgotten > 0:
		message = "The query had ended already; its state was removed."
	}
	rq.reply(http.StatusOK, map[string]string{"message": message})
	return nil
}

// getQueryLog answers GET query/{id}/log/: contract section 1.1. Like the peer's answer, which is that of a HogQLQuery over
// the log, it has no rows for an id that is not known.
func (rq *request) getQueryLog() error {
	zone, err := time.LoadLocation(rq.Project.Timezone)
	if err != nil {
		return err // zones are checked before they are stored
	}
	found := rq.rt.Runs.Queries.Find(rq.Project.ID, rq.at.Name, rq.Start)
	more := len(found) > execution.QueryLogRows
	rows := make([][]any, 0, min(len(found), execution.QueryLogRows))
	for i := range found[:cap(rows)] {
		rows = append(rows, found[i].Row(zone))
	}
	columns := make([]string, len(execution.QueryLogColumns))
	for i, c := range execution.QueryLogColumns {
		columns[i] = c[0]
	}
	rq.reply(http.StatusOK, map[string]any{
		"results": rows, "columns": columns, "types": execution.QueryLogColumns, "hasMore": more, "limit": execution.QueryLogRows, "offset": 0,
		"query": nil, "hogql": nil, "clickhouse": nil, "metadata": nil, "explain": nil, "error": nil, "timings": nil, "modifiers": nil,
		"query_status": nil, "resolved_date_range": nil,
	})
	return nil
}

// runNotFound is the contract's text for an id that is not known.
func runNotFound(id string, project int64) string {
	return fmt.Sprintf("Query %s not found for team %d", id, project)
}
