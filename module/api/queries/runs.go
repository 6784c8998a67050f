package queries

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// status answers GET query/{id}/: contract api.md, section 1.4. If this server doesn't know the run, it asks the others.
func (q *Queries) status(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	asked := in.URL.Query()
	poll := execution.PeerPoll{ID: in.At.Name, Progress: asked.Get("show_progress") == "true" || asked.Get("showProgress") == "true"}
	status, size, write := q.find(c, &poll)
	if write == nil {
		all := q.Executor.Poll(ctx, &c.Caller, poll, func(other *execution.Polled) bool {
			if !runStatuses[other.Status] {
				return false
			}
			status, size, write = other.Status, int64(len(other.Body)), func(dst []byte) []byte { return append(dst, other.Body...) }
			return true
		})
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case write == nil && !all:
			return nil, api.ErrRunUnknown
		case write == nil:
			return nil, api.NotFound(runNotFound(in.At.Name, c.Project.ID))
		}
	}
	done, err := result.Reserve(ctx, in, c.Project.ID, size)
	if err != nil {
		return nil, err
	}
	defer done()
	body := q.Executor.Cache.Render(cache.Negotiate(in.Header.Get("Accept-Encoding")), write)
	body.ETag = "" // the next response differs
	return &api.Response{Status: status, Body: body}, nil
}

// runStatuses are the statuses of responses about a run.
var runStatuses = map[int]bool{http.StatusOK: true, http.StatusAccepted: true, http.StatusBadRequest: true, http.StatusInternalServerError: true}

// find returns the status of the response about a run, roughly its size in bytes, and the function that writes its body; write is nil if this server does not
// know the run, or the caller may not see its result.
func (q *Queries) find(c *api.Caller, poll *execution.PeerPoll) (status int, size int64, write func(dst []byte) []byte) {
	r, ended := q.Executor.Runs.Find(c.Project.ID, poll.ID)
	if r == nil || !result.MaySee(c, r.Query) {
		return 0, 0, nil
	}
	if ended && r.Answer.Entry != nil {
		size = r.Answer.Entry.Size()
	}
	var read *execution.Progress
	if !ended && poll.Progress {
		read = q.progress(r, c.Start)
	}
	status = http.StatusAccepted
	switch {
	case ended && r.Failure == nil:
		status = http.StatusOK
	case ended && api.ErrorOf(r.Failure).Exposable():
		status = http.StatusBadRequest
	case ended:
		status = http.StatusInternalServerError
	}
	return status, size, func(dst []byte) []byte {
		return append(q.writer(c, nil).AppendStatus(append(dst, `{"query_status":`...), r, ended, read), '}')
	}
}

// PolledByPeer answers another server that asks about a run or cancels it. It checks here what the caller may do.
func (q *Queries) PolledByPeer(c *api.Caller, asked *execution.PeerRequest) peers.Answer {
	poll := asked.Poll
	at, scope := &api.Address{Resource: "query", Name: poll.ID}, result.QueryScope
	if poll.Insights {
		at, scope = &api.Address{Resource: "insights", Name: "cancel"}, "insight:read"
	}
	_, err := api.Authorize(c.Snapshot, c.Key, strconv.FormatInt(asked.Project, 10), at, &api.Route{Scope: scope})
	if err != nil || poll.Insights && !poll.Cancel {
		return peers.Declined("the run is not allowed")
	}
	var out execution.Polled
	if poll.Cancel {
		out.Cancelled = q.Executor.Runs.Cancel(asked.Project, poll.ID, poll.QueuedOnly)
	} else if status, _, write := q.find(c, poll); write != nil {
		out.Status, out.Body = status, write(nil)
	}
	return out.Answer(asked)
}

// progress returns the progress of a run; zero if it is waiting for its turn.
func (q *Queries) progress(r *execution.Run, now time.Time) *execution.Progress {
	w := q.Executor.Runs.Work(r.Query.Key)
	if w == nil {
		return new(execution.Progress)
	}
	return w.Progress(now)
}

// cancel answers DELETE query/{id}/. Like PostHog, it accepts an unknown id.
func (q *Queries) cancel(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	found, all := q.Executor.CancelEverywhere(ctx, &c.Caller, execution.PeerPoll{ID: in.At.Name, QueuedOnly: in.URL.Query().Get("dequeue_only") == "true"})
	if !all && !found.Any() {
		return nil, api.ErrRunUnknown
	}
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

// log answers GET query/{id}/log/: contract api.md, section 1.1. Like PostHog's response, which is that of a HogQLQuery on the log, it has no rows for an
// unknown id.
func (q *Queries) log(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	zone, err := time.LoadLocation(c.Project.Timezone)
	if err != nil {
		return nil, err // zones are checked before they are stored
	}
	found, more, err := q.Executor.LoggedQueries(ctx, c.Project.ID, in.At.Name, c.Start)
	if err != nil {
		q.Logger.Debug("the log of queries can't be read; an answer has those of this process", zap.Int64("project", c.Project.ID), api.Logged(err))
	}
	rows := make([][]any, len(found))
	for i := range found {
		rows[i] = execution.QueryLogRow(found[i], zone)
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

// runNotFound is PostHog's text for an unknown id.
func runNotFound(id string, project int64) string {
	return fmt.Sprintf("Query %s not found for team %d", id, project)
}
