package endpoints

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// log records a run that was answered.
func (s *Runs) log(c *api.Caller, p *result.Plan, got cache.Answer) {
	run := runlog.Run{At: c.Start, Took: time.Since(c.Start), Version: p.Version.Number, Rows: -1, Status: http.StatusOK, Cache: got.Status, Source: runlog.Inline}
	if done, ok := got.Entry.Meta.(*execution.Details); ok {
		run.Execution = done.ExecutionID
		if !done.Materialized.IsZero() {
			run.Source = runlog.Materialized
		}
		if done.Insight == nil {
			run.Rows = max(0, got.Entry.Result.Len()-p.Offset)
			if p.Limit >= 0 {
				run.Rows = min(run.Rows, p.Limit)
			}
		}
	}
	tally := p.Logged.Follow()
	if tally == nil || tally.Key != c.Key.ID || tally.Gone() { // all callers that share the plan have the same fixed variables
		tally = s.tally(c, p.Endpoint, p.Version.Number)
		p.Logged.Set(tally)
	}
	tally.Add(run)
}

// tally returns the counter of the caller's runs of a version.
func (s *Runs) tally(c *api.Caller, e *registry.Endpoint, version int) *runlog.Tally {
	return s.Logs.Of(e.Project, e.ID).Tally(runlog.Who{Version: version, Key: c.Key.ID, Customer: c.Key.Fixed})
}

// brokenOff is the code of an export that failed after its status had been sent.
var brokenOff = "broken_off"

// logExport records a run whose rows were streamed; they are not counted.
func (s *Runs) logExport(c *api.Caller, p *result.Plan, from *execution.Stream, status int) {
	run := runlog.Run{At: c.Start, Took: time.Since(c.Start), Version: p.Version.Number, Rows: -1, Status: status, Cache: cache.Miss, Source: runlog.Inline}
	run.Execution, _ = uuid.Parse(from.ID) // made by uuid.NewString
	if from.FromTable() {
		run.Source = runlog.Materialized
	}
	if status != http.StatusOK {
		run.Code = &brokenOff
	}
	s.tally(c, p.Endpoint, p.Version.Number).Add(run)
}

// logRefusal records a run that was answered with an error; version is 0 if unknown.
func (s *Runs) logRefusal(ctx context.Context, c *api.Caller, e *registry.Endpoint, version int, err error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return // nobody received an answer
	}
	answer := api.ErrorOf(err)
	s.tally(c, e, version).Add(runlog.Run{
		At: c.Start, Took: time.Since(c.Start), Version: version, Rows: -1, Status: answer.Status, Source: runlog.Inline, Code: &answer.Code,
	})
}
