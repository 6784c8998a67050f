package endpoints

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// maxNames is how many endpoints one request can name.
const maxNames = 1000

var errNames = api.Invalid("names", "invalid_input", "Ask about at most %d endpoints at once.", maxNames)

// lastExecutions answers POST endpoints/last_execution_times/: contract api.md, section 5.1. It leaves out endpoints that never ran or do not exist.
func lastExecutions(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	fields, err := in.ReadFields("names")
	if err != nil {
		return nil, err
	}
	var names []string
	given, err := api.Field(fields, "names", &names)
	switch {
	case err != nil:
		return nil, err
	case !given:
		return nil, api.Invalid("names", "required", "This field is required.")
	case len(names) > maxNames:
		return nil, errNames
	}
	var times [][2]string
	for _, name := range names {
		if !registry.ValidEndpointName(name) {
			return nil, api.Invalid("names", "invalid_input", "Invalid endpoint name: %s", name)
		}
		e := c.Snapshot.Endpoint(c.Project.ID, name)
		if e == nil {
			continue
		}
		if at := c.Snapshot.LastExecuted(e, 0); !at.IsZero() {
			times = append(times, [2]string{name, at.Format("2006-01-02T15:04:05.999999-07:00")})
		}
	}
	status := lastTimes{QueryAsync: true, TeamID: c.Project.ID, Complete: true}
	if len(names) > 0 {
		status.Results = api.OrEmpty(times)
	}
	return api.JSON(http.StatusOK, map[string]lastTimes{"query_status": status}), nil
}

// lastTimes is the status object of a completed query (contract api.md, section 1.4), whose rows are names and times.
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

// refuseBulkTags answers POST endpoints/bulk_update_tags/, which PostHog refuses too.
func (s *Endpoints) refuseBulkTags(_ context.Context, _ *api.Caller, in *api.Input) (*api.Response, error) {
	methods := api.Methods{http.MethodPost: nil}
	for _, r := range s.one(in.At.Name) {
		methods[r.Method] = &r
	}
	refused := api.MethodNotAllowed(http.MethodPost, methods.Allow())
	refused.Detail = "Bulk tag updates are not supported for endpoints."
	return nil, refused
}
