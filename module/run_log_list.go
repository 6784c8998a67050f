package module

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// logEntry is a run on the wire: the five fields of the peer's logs, and those of its message for programs.
type logEntry struct {
	LogSourceID string    `json:"log_source_id"` // id of the endpoint
	InstanceID  string    `json:"instance_id"`   // execution id of the answer; a cached one has that of its first run
	Timestamp   time.Time `json:"timestamp"`
	Level       string    `json:"level"` // INFO, WARN for the caller's mistakes, ERROR for ours
	Message     string    `json:"message"`
	Status      int       `json:"status"`
	Version     *int      `json:"version"`
	Cache       *string   `json:"cache"` // hit, miss or stale
	DurationMS  float64   `json:"duration_ms"`
	Rows        *int      `json:"rows"`
	ErrorCode   *string   `json:"error_code"`
}

func logEntryOf(r *runlog.Run, endpoint string) logEntry {
	e := logEntry{
		LogSourceID: endpoint, Timestamp: r.At, Level: "INFO", Status: r.Status, DurationMS: float64(r.Took.Microseconds()) / 1000, ErrorCode: r.Code,
	}
	message := []string{"path=inline"}
	if r.Execution != uuid.Nil {
		e.InstanceID = r.Execution.String()
	}
	what := "Endpoint executed"
	switch {
	case r.Status >= http.StatusInternalServerError:
		what, e.Level = "Endpoint execution failed", "ERROR"
	case r.Status >= http.StatusBadRequest:
		what, e.Level = "Endpoint execution failed", "WARN"
	default:
		e.Cache = new(cacheWord(r.Cache))
		message = append(message, "cache="+*e.Cache)
	}
	message = append(message, "duration_ms="+strconv.FormatInt(r.Took.Milliseconds(), 10))
	if r.Rows >= 0 {
		e.Rows = &r.Rows
		message = append(message, "rows="+strconv.Itoa(r.Rows))
	}
	if r.Version > 0 {
		e.Version = &r.Version
		message = append(message, "version="+strconv.Itoa(r.Version))
	}
	if r.Code != nil {
		message = append(message, "error="+*r.Code)
	}
	e.Message = what + " · " + strings.Join(message, " ")
	return e
}

// cacheWord says in one word where an answer came from.
func cacheWord(status cache.Status) string {
	switch status {
	case cache.Hit, cache.Pinned:
		return "hit"
	case cache.Stale, cache.StaleError:
		return "stale"
	case cache.Miss, cache.Coalesced, cache.Refreshed:
	}
	return "miss"
}

// listRuns answers GET endpoints/:name/logs/: contract section 5.1.
func (rq *request) listRuns() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	keep, err := rq.logFilter()
	if err != nil {
		return err
	}
	entries := []logEntry{}
	for _, run := range rq.rt.logs.Of(e.ID).All() {
		if entry := logEntryOf(&run, e.ID); keep(&entry) {
			entries = append(entries, entry)
		}
	}
	return writePage(rq, entries)
}

// logFilter reads the filters of the query string: after, before, level (which may stand several times), search, instance_id.
func (rq *request) logFilter() (func(*logEntry) bool, error) {
	params := rq.r.URL.Query()
	bound := func(name string) (at time.Time, err error) {
		if text := params.Get(name); text != "" {
			if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return at, api.Invalid(name, "invalid_input", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z.")
			}
		}
		return at, nil
	}
	after, err := bound("after")
	if err != nil {
		return nil, err
	}
	before, err := bound("before")
	if err != nil {
		return nil, err
	}
	var levels []string
	for _, level := range params["level"] {
		for word := range strings.SplitSeq(level, ",") {
			levels = append(levels, strings.ToUpper(strings.TrimSpace(word)))
		}
	}
	search, instance := strings.ToLower(params.Get("search")), params.Get("instance_id")
	return func(e *logEntry) bool {
		return (after.IsZero() || e.Timestamp.After(after)) && (before.IsZero() || e.Timestamp.Before(before)) &&
			(levels == nil || slices.Contains(levels, e.Level)) && strings.Contains(strings.ToLower(e.Message), search) &&
			(instance == "" || e.InstanceID == instance)
	}, nil
}

// maxNames is how many endpoints one request may ask about.
const maxNames = 1000

// lastExecutions answers POST endpoints/last_execution_times/: contract section 5.1. Names that were never run, or do not
// exist, are left out.
func (rq *request) lastExecutions() error {
	fields, err := rq.readFields("names")
	if err != nil {
		return err
	}
	var names []string
	given, err := api.Field(fields, "names", &names)
	switch {
	case err != nil:
		return err
	case !given:
		return api.Invalid("names", "required", "This field is required.")
	case len(names) > maxNames:
		return api.Invalid("names", "invalid_input", "Ask about at most %d endpoints at once.", maxNames)
	}
	var times [][2]string
	for _, name := range names {
		if !registry.ValidEndpointName(name) {
			return api.Invalid("names", "invalid_input", "Invalid endpoint name: %s", name)
		}
		e := rq.Snapshot.Endpoint(rq.Project.ID, name)
		if e == nil {
			continue
		}
		if at := rq.Snapshot.LastExecuted(e, 0); !at.IsZero() {
			times = append(times, [2]string{name, at.Format("2006-01-02T15:04:05.999999-07:00")})
		}
	}
	status := lastTimes{QueryAsync: true, TeamID: rq.Project.ID, Complete: true}
	if len(names) > 0 {
		status.Results = orEmpty(times)
	}
	rq.reply(http.StatusOK, map[string]lastTimes{"query_status": status})
	return nil
}

// lastTimes is the status object of a query that is complete (contract section 1.4), whose rows are names and times.
type lastTimes struct {
	ID             string              `json:"id"`
	QueryAsync     bool                `json:"query_async"`
	TeamID         int64               `json:"team_id"`
	InsightID      *int64              `json:"insight_id"`
	DashboardID    *int64              `json:"dashboard_id"`
	Complete       bool                `json:"complete"`
	Error          bool                `json:"error"`
	ErrorMessage   *string             `json:"error_message"`
	ErrorCode      *string             `json:"error_code"`
	Results        [][2]string         `json:"results"` // null when no names were given
	StartTime      *time.Time          `json:"start_time"`
	PickupTime     *time.Time          `json:"pickup_time"`
	EndTime        *time.Time          `json:"end_time"`
	ExpirationTime *time.Time          `json:"expiration_time"`
	TaskID         *string             `json:"task_id"`
	QueryProgress  *execution.Progress `json:"query_progress"`
	Labels         []string            `json:"labels"`
}

// refuseBulkTags answers POST endpoints/bulk_update_tags/, which the contract has as a refusal.
func (rq *request) refuseBulkTags() error {
	refused := api.MethodNotAllowed(http.MethodPost, rq.rt.api.Methods(rq.at).Allow())
	refused.Detail = "Bulk tag updates are not supported for endpoints."
	return refused
}
