package endpoints

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
)

// logEntry is a run in JSON: the five fields of PostHog's logs, and the contents of its message as separate fields.
type logEntry struct {
	LogSourceID string    `json:"log_source_id"` // id of the endpoint
	InstanceID  string    `json:"instance_id"`   // execution id of the result; a cached one has that of the run that computed it
	Timestamp   time.Time `json:"timestamp"`
	Level       string    `json:"level"` // INFO, WARN for the caller's mistakes, ERROR for the server's
	Message     string    `json:"message"`
	Status      int       `json:"status"`
	Version     *int      `json:"version"`
	Cache       *string   `json:"cache"` // hit, miss or stale
	DurationMS  float64   `json:"duration_ms"`
	Rows        *int      `json:"rows"`
	ErrorCode   *string   `json:"error_code"`
	Key         *string   `json:"key_id"`   // id of the key that ran it
	Customer    *string   `json:"customer"` // the variables that the key fixes, as JSON
}

// runPaths are the words for the sources of a run's rows.
var runPaths = map[runlog.Source]string{runlog.Inline: "inline", runlog.Materialized: "materialized"}

func logEntryOf(r *runlog.Run, endpoint string) logEntry {
	e := logEntry{
		LogSourceID: endpoint, Timestamp: r.At, Level: "INFO", Status: r.Status, DurationMS: float64(r.Took.Microseconds()) / 1000, ErrorCode: r.Code,
	}
	var message []string
	if path := runPaths[r.Source]; path != "" {
		message = append(message, "path="+path)
	}
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
		e.Cache = new(querylog.CacheWord(r.Cache))
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
	if r.Key != "" {
		e.Key = &r.Key
	}
	if r.Customer != "" {
		e.Customer = &r.Customer
	}
	if r.Code != nil {
		message = append(message, "error="+*r.Code)
	}
	e.Message = what + " · " + strings.Join(message, " ")
	return e
}

// levelStatuses are the statuses of the runs of each level.
var levelStatuses = map[string]querylog.Statuses{
	"INFO": {Before: http.StatusBadRequest}, "WARN": {From: http.StatusBadRequest, Before: http.StatusInternalServerError},
	"ERROR": {From: http.StatusInternalServerError, Before: math.MaxInt32},
}

// list answers GET endpoints/:name/logs/: contract api.md, section 5.1.
func (s *Runs) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	wanted, keep, err := logFilter(in)
	if err != nil {
		return nil, err
	}
	if instance := in.URL.Query().Get("instance_id"); instance != "" && wanted.Execution == uuid.Nil {
		return api.PageOf(in, []logEntry{}) // no run has an id that is not a UUID
	}
	log, _ := s.Logs.Find(e.ID)
	runs, err := s.Executor.Log.ListRuns(ctx, s.Executor.EnterLog(c.Project.ID), c.Project.ID, e.ID, log, wanted)
	if err != nil {
		s.unread(c, err)
	}
	entries := []logEntry{}
	for i := range runs {
		if entry := logEntryOf(&runs[i], e.ID); keep(&entry) {
			entries = append(entries, entry)
		}
	}
	return api.PageOf(in, entries)
}

// unread logs that a response covers only the runs that this process remembers.
func (s *Runs) unread(c *api.Caller, err error) {
	s.Logger.Debug("the log of runs can't be read; an answer has those of this process", zap.Int64("project", c.Project.ID), api.Logged(err))
}

// logFilter reads the filters of the query string: after, before, level (which can be repeated), search, instance_id. wanted is the filter for ClickHouse,
// which may let more through than keep.
func logFilter(in *api.Input) (wanted querylog.Filter, keep func(*logEntry) bool, err error) {
	params := in.URL.Query()
	bound := func(name string) (time.Time, error) {
		text := params.Get(name)
		if text == "" {
			return time.Time{}, nil
		}
		return api.TimeField(name, text)
	}
	after, err := bound("after")
	if err != nil {
		return wanted, nil, err
	}
	before, err := bound("before")
	if err != nil {
		return wanted, nil, err
	}
	var levels []string
	for _, level := range params["level"] {
		for word := range strings.SplitSeq(level, ",") {
			levels = append(levels, strings.ToUpper(strings.TrimSpace(word)))
		}
	}
	if levels != nil {
		wanted.Statuses = []querylog.Statuses{}
		for _, level := range levels {
			if of, known := levelStatuses[level]; known && !slices.Contains(wanted.Statuses, of) {
				wanted.Statuses = append(wanted.Statuses, of)
			}
		}
	}
	search, instance := strings.ToLower(params.Get("search")), params.Get("instance_id")
	wanted.After, wanted.Before = after, before
	wanted.Execution, _ = uuid.Parse(instance)
	return wanted, func(e *logEntry) bool {
		return (after.IsZero() || e.Timestamp.After(after)) && (before.IsZero() || e.Timestamp.Before(before)) &&
			(levels == nil || slices.Contains(levels, e.Level)) && strings.Contains(strings.ToLower(e.Message), search) &&
			(instance == "" || e.InstanceID == instance)
	}, nil
}
