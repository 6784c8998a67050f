package module

import (
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// getRun answers GET query/{id}/: contract section 1.4.
func (rq *request) getRun() error {
	r, ended := rq.rt.runs.find(rq.project.ID, rq.at.name)
	if r == nil {
		return notFound(runNotFound(rq.at.name, rq.project.ID))
	}
	var read *progress
	if asked := rq.r.URL.Query(); !ended && (asked.Get("show_progress") == "true" || asked.Get("showProgress") == "true") {
		read = rq.progress(r)
	}
	status := http.StatusAccepted
	switch {
	case ended && r.failure == nil:
		status = http.StatusOK
	case ended && r.failure.exposable():
		status = http.StatusBadRequest
	case ended:
		status = http.StatusInternalServerError
	}
	body := rq.rt.cache.Render(cache.Negotiate(rq.r.Header.Get("Accept-Encoding")), func(dst []byte) []byte {
		return append(rq.appendStatus(append(dst, `{"query_status":`...), r, ended, read), '}')
	})
	h := rq.w.Header()
	h["Vary"] = varyHeader
	if body.Encoding != cache.Identity {
		h.Set("Content-Encoding", body.Encoding.String())
	}
	rq.uncached()
	writeBody(rq.w, status, body.Bytes)
	return nil
}

// progress is how far a run in progress is; a zero one for a run that waits for its turn.
func (rq *request) progress(r *run) *progress {
	w := rq.rt.runs.work(r.plan.key)
	if w == nil {
		return new(progress)
	}
	return w.progress(rq.start)
}

// appendStatus appends a query_status. The answer of a run that has ended stands in its results; one in progress has none.
func (rq *request) appendStatus(dst []byte, r *run, ended bool, read *progress) []byte {
	moment := func(name string, at time.Time) {
		dst = append(dst, `,"`...)
		dst = append(dst, name...)
		dst = append(dst, `":`...)
		if at.IsZero() {
			dst = append(dst, "null"...)
			return
		}
		dst = jsontext.AppendTime(dst, at)
	}
	failed := ended && r.failure != nil
	dst = jsontext.Append(append(dst, `{"id":`...), r.id)
	dst = append(dst, `,"query_async":true,"team_id":`...)
	dst = jsontext.AppendInt(dst, int(r.project()))
	dst = jsontext.Append(append(dst, `,"insight_id":`...), r.from.insight)
	dst = jsontext.Append(append(dst, `,"dashboard_id":`...), r.from.dashboard)
	dst = jsontext.AppendBool(append(dst, `,"complete":`...), ended)
	dst = jsontext.AppendBool(append(dst, `,"error":`...), failed)
	if failed && r.failure.exposable() {
		dst = jsontext.Append(append(dst, `,"error_message":`...), r.failure.Detail)
		dst = jsontext.Append(append(dst, `,"error_code":`...), r.failure.Code)
	} else {
		dst = append(dst, `,"error_message":null,"error_code":null`...)
	}
	dst = append(dst, `,"results":`...)
	if ended && !failed {
		dst = rq.renderQuery(dst, r.plan, r.answer)
	} else {
		dst = append(dst, "null"...)
	}
	moment("start_time", r.start)
	moment("pickup_time", rq.rt.runs.pickedUp(r, ended))
	if ended {
		moment("end_time", r.end)
		moment("expiration_time", r.end.Add(runKept))
	} else {
		dst = append(dst, `,"end_time":null,"expiration_time":null`...)
	}
	dst = jsontext.Append(append(dst, `,"task_id":null,"query_progress":`...), read)
	dst = append(dst, `,"labels":null,"cache_key":"`...)
	dst = append(dst, r.plan.key.String()...)
	return append(dst, `","bytes_read":null,"budget_remaining_bytes":null,"query_scan":null}`...)
}

// appendRunning appends the member query_status of an answer: the background run that computes a newer one, or null.
func (rq *request) appendRunning(dst []byte) []byte {
	dst = append(dst, `"query_status":`...)
	if rq.run == nil {
		return append(dst, "null"...)
	}
	return rq.appendStatus(dst, rq.run, false, nil)
}

// cancelRun answers DELETE query/{id}/. Like the peer it does not mind an id that is not known.
func (rq *request) cancelRun() error {
	queuedOnly := rq.r.URL.Query().Get("dequeue_only") == "true"
	found := rq.rt.runs.cancelID(rq.project.ID, rq.at.name, queuedOnly)
	message := runNotFound(rq.at.name, rq.project.ID)
	switch {
	case found.stopped > 0:
		message = "The query was cancelled."
	case found.left > 0:
		message = "The query is running already; it was not cancelled."
	case found.forgotten > 0:
		message = "The query had ended already; its state was removed."
	}
	rq.reply(http.StatusOK, map[string]string{"message": message})
	return nil
}
