package alerts

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// record is an alert in JSON. PostHog has no field webhook_url. The secret of the webhook is never shown.
type record struct {
	ID                  string                 `json:"id"`
	CreatedBy           *api.User              `json:"created_by"`
	CreatedAt           time.Time              `json:"created_at"`
	Insight             any                    `json:"insight"`
	InsightShortID      string                 `json:"insight_short_id"`
	InsightDisplayName  *string                `json:"insight_display_name"` // nil for a caller who may not read the insight
	Name                string                 `json:"name"`
	SubscribedUsers     []*api.User            `json:"subscribed_users"`
	Threshold           threshold              `json:"threshold"`
	Condition           json.RawMessage        `json:"condition"`
	State               registry.AlertState    `json:"state"`
	Enabled             bool                   `json:"enabled"`
	LastNotifiedAt      *time.Time             `json:"last_notified_at"`
	LastCheckedAt       *time.Time             `json:"last_checked_at"`
	NextCheckAt         *time.Time             `json:"next_check_at"`
	Checks              []checkRecord          `json:"checks"`
	ChecksTotal         *int                   `json:"checks_total,omitempty"`
	Config              json.RawMessage        `json:"config"`
	EvaluationDelay     int                    `json:"evaluation_delay_intervals"`
	DetectorConfig      *struct{}              `json:"detector_config"` // always null
	ForecastConfig      *struct{}              `json:"forecast_config"` // always null
	CalculationInterval registry.AlertInterval `json:"calculation_interval"`
	ScheduleStartTime   *string                `json:"schedule_start_time"`
	SnoozedUntil        *time.Time             `json:"snoozed_until"`
	SkipWeekend         *bool                  `json:"skip_weekend"`
	ScheduleRestriction any                    `json:"schedule_restriction"`
	LastValue           *float64               `json:"last_value"`
	WebhookURL          *string                `json:"webhook_url"`
	investigations
	SearchMatchType *string `json:"search_match_type,omitempty"`
}

// investigations are the members about investigations, of which there are none.
type investigations struct {
	Enabled      bool   `json:"investigation_agent_enabled"`
	Gates        bool   `json:"investigation_gates_notifications"`
	Inconclusive string `json:"investigation_inconclusive_action"`
}

type threshold struct {
	ID            string          `json:"id"`
	CreatedAt     time.Time       `json:"created_at"`
	Name          string          `json:"name"`
	Configuration json.RawMessage `json:"configuration"`
}

// checkRecord is a check in JSON. There are no anomalies, no investigations and no records of single recipients.
type checkRecord struct {
	ID                    string              `json:"id"`
	CreatedAt             time.Time           `json:"created_at"`
	CalculatedValue       *float64            `json:"calculated_value"`
	State                 registry.AlertState `json:"state"`
	Error                 *checkError         `json:"error"`
	TargetsNotified       bool                `json:"targets_notified"`
	AnomalyScores         *struct{}           `json:"anomaly_scores"`
	TriggeredPoints       *struct{}           `json:"triggered_points"`
	TriggeredDates        *struct{}           `json:"triggered_dates"`
	Interval              *struct{}           `json:"interval"`
	TriggeredMetadata     *struct{}           `json:"triggered_metadata"`
	InvestigationStatus   *struct{}           `json:"investigation_status"`
	InvestigationVerdict  *struct{}           `json:"investigation_verdict"`
	InvestigationSummary  *struct{}           `json:"investigation_summary"`
	InvestigationNotebook *struct{}           `json:"investigation_notebook_short_id"`
	NotificationSentAt    *time.Time          `json:"notification_sent_at"`
	SuppressedByAgent     bool                `json:"notification_suppressed_by_agent"`
	Deliveries            *struct{}           `json:"deliveries"`
}

// checkError says why a check found no value.
type checkError struct {
	Message string `json:"message"`
}

func recordCheck(c *registry.AlertCheck) checkRecord {
	r := checkRecord{
		ID: c.ID, CreatedAt: c.At, CalculatedValue: c.Value, State: c.State, TargetsNotified: c.Notified, NotificationSentAt: api.OrNil(c.NotifiedAt),
	}
	if c.Error != "" {
		r.Error = &checkError{c.Error}
	}
	return r
}

// recordOf returns an alert without its checks and its insight.
func recordOf(c *api.Caller, a *registry.Alert, users func() map[int64]*registry.Key) record {
	r := record{
		ID: a.ID, CreatedBy: c.User(a.CreatedBy), CreatedAt: a.CreatedAt, Name: a.Name, SubscribedUsers: []*api.User{},
		Threshold: threshold{ID: a.Threshold.ID, CreatedAt: a.Threshold.CreatedAt, Name: a.Threshold.Name, Configuration: a.Threshold.Configuration},
		Condition: a.Condition, State: a.State, Enabled: a.Enabled, LastNotifiedAt: api.OrNil(a.LastNotifiedAt), LastCheckedAt: api.OrNil(a.LastCheckedAt),
		NextCheckAt: api.OrNil(a.NextCheckAt), Checks: []checkRecord{}, Config: a.Config, EvaluationDelay: a.Delay, CalculationInterval: a.Interval,
		SnoozedUntil: api.OrNil(a.SnoozedUntil), SkipWeekend: a.SkipWeekend, ScheduleRestriction: alerts.ShowQuietHours(a.QuietHours),
		ScheduleStartTime: alerts.ShowStartTime(a.StartTime),
		LastValue:         a.LastValue, WebhookURL: api.OrNull(a.Webhook.URL), investigations: investigations{Inconclusive: "notify"},
	}
	if i := c.Snapshot.Insight(a.Project, a.Insight); i != nil {
		r.InsightShortID = i.ShortID
		if c.Key.Allows(insightRead) {
			r.InsightDisplayName = new(cmp.Or(i.Title(), "Untitled insight"))
		}
	}
	for _, number := range a.Subscribers {
		if k := users()[number]; k != nil {
			r.SubscribedUsers = append(r.SubscribedUsers, api.UserOf(k))
		}
	}
	return r
}

// maxOfInsight limits the alerts that come with an insight, in bytes of their JSON.
const maxOfInsight = 256 << 10

// Of returns the alerts of an insight for the responses of other routes, without their checks, and with no more of the insight than its ids: the oldest that
// take maxOfInsight together. It returns none if the caller may not read alerts.
func Of(c *api.Caller, i *registry.Insight) []any {
	out := []any{}
	if !c.Key.Allows("alert:read") {
		return out
	}
	users := lazyUsers(c)
	size := 0
	for _, a := range c.Snapshot.AlertsOf(i.Project, i.ID) {
		one := recordOf(c, a, users)
		one.Insight = brief{ID: i.ID, ShortID: i.ShortID}
		text := json.RawMessage(jsontext.Append(nil, one))
		if size += len(text); size > maxOfInsight {
			break
		}
		out = append(out, text)
	}
	return out
}

// lazyUsers returns usersOf for many alerts, few of which may have subscribers.
func lazyUsers(c *api.Caller) func() map[int64]*registry.Key {
	return sync.OnceValue(func() map[int64]*registry.Key { return usersOf(c) })
}

// usersOf returns the personal keys of the caller's project by user number.
func usersOf(c *api.Caller) map[int64]*registry.Key {
	users := map[int64]*registry.Key{}
	for _, k := range c.Snapshot.Keys(c.Project.ID) {
		if k.User != 0 {
			users[k.User] = k
		}
	}
	return users
}

// brief is the insight of an alert that comes with it.
type brief struct {
	ID      int64  `json:"id"`
	ShortID string `json:"short_id"`
}

// nameless is an insight in the form for a caller who may not read it.
type nameless struct {
	brief
	UserAccessLevel string `json:"user_access_level"`
}

func (s *Alerts) insightOf(c *api.Caller, a *registry.Alert) any {
	i := c.Snapshot.Insight(a.Project, a.Insight)
	switch {
	case i == nil:
		return nil
	case !c.Key.Allows(insightRead):
		return nameless{brief: brief{ID: i.ID, ShortID: i.ShortID}, UserAccessLevel: "none"}
	}
	return s.Insight(c, i)
}
