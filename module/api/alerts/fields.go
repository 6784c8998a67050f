package alerts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightRead is the scope that a key needs, besides those of alerts, to choose the insight that is watched or where its numbers are sent.
const insightRead = "insight:read"

// readAlert reads the writable fields of an alert; before is nil for a new one. Like PostHog, it ignores others, except those that ask for an unsupported
// feature.
func readAlert(c *api.Caller, in *api.Input, before *registry.Alert) (registry.AlertFields, error) {
	var f registry.AlertFields
	all, err := in.ReadObject()
	if err != nil {
		return f, err
	}
	whole := in.Method != http.MethodPatch
	r := &api.Fields{All: all}
	f.Insight = insightField(c, r, whole)
	f.Name = api.Text(r, "name")
	f.Subscribers = usersField(c, r, whole)
	thresholdFields(r, &f, whole)
	f.Condition, f.Enabled, f.Config = anyField(r, "condition"), api.Change[bool](r, "enabled"), anyField(r, "config")
	f.Delay = api.Change[int](r, "evaluation_delay_intervals")
	refuse(r)
	f.Interval = api.Change[registry.AlertInterval](r, "calculation_interval")
	f.SnoozedUntil = snoozeField(r, c.Start)
	f.SkipWeekend = api.Change[*bool](r, "skip_weekend")
	f.QuietHours, f.StartTime = quietField(r), startField(r)
	webhookFields(r, &f)
	if r.Err != nil {
		return f, r.Err
	}
	if err := mayWatch(c, before, &f); err != nil {
		return f, err
	}
	decides := whole || f.Insight.Given || f.Interval.Given || f.Condition.Given || f.Config.Given || f.Threshold.Given || f.Delay.Given
	f.Complete = func(now *registry.Snapshot, a *registry.Alert) {
		if !decides { // an old alert stays as it is when it is renamed
			return
		}
		if i := now.Insight(a.Project, a.Insight); i != nil {
			a.Config = alerts.CompleteConfig(a, i.Query)
		}
	}
	bounds := whole || f.Threshold.Given
	f.Check = func(now *registry.Snapshot, a *registry.Alert) error { return check(now, a, bounds) }
	f.Next = func(now *registry.Snapshot, a *registry.Alert) time.Time {
		fresh := *a
		fresh.NextCheckAt = time.Time{}
		return alerts.NextCheck(&fresh, c.Start, now.Schema(a.Project).Location)
	}
	return f, nil
}

// check checks an alert in the state that the write leads to.
func check(now *registry.Snapshot, a *registry.Alert, bounds bool) error {
	i := now.Insight(a.Project, a.Insight)
	if i == nil { // deleted in the meantime
		return noObject("insight", strconv.FormatInt(a.Insight, 10))
	}
	rule, err := alerts.ReadRule(a, i.Query)
	if err != nil || !bounds {
		return err
	}
	return rule.CheckBounds()
}

// mayWatch refuses a write that would reveal numbers to a key that could not query them itself.
func mayWatch(c *api.Caller, before *registry.Alert, f *registry.AlertFields) error {
	if before != nil && !f.Insight.Given && f.WebhookURL.Value == "" {
		return nil
	}
	if !c.Key.Allows(insightRead) {
		return api.MissingScope(insightRead)
	}
	id := f.Insight.Value
	if !f.Insight.Given {
		id = before.Insight
	}
	if i := c.Snapshot.Insight(c.Project.ID, id); i != nil && i.NeedsQueryScope && !c.Key.Allows(result.QueryScope) {
		return api.MissingScope(result.QueryScope)
	}
	return nil
}

func noObject(field, given string) *api.Error {
	return api.Invalid(field, "does_not_exist", "Invalid pk %q - object does not exist.", given)
}

// needed reads a field that must not be null, and that is required if whole.
func needed(r *api.Fields, name string, whole bool) (json.RawMessage, bool) {
	raw, ok := r.Take(name, false)
	if _, given := r.All[name]; !given && whole {
		r.Fail(name, "required", "This field is required.")
	}
	return raw, ok
}

// number reads a number, which may be written as a text.
func number(r *api.Fields, name string, raw json.RawMessage) (int64, bool) {
	text := strings.Trim(string(raw), `"`)
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return id, true
	}
	if raw[0] == '"' && !errors.Is(err, strconv.ErrRange) {
		r.Fail(name, "incorrect_type", "Incorrect type. Expected pk value, received str.")
		return 0, false
	}
	if kind := api.PythonType(raw); kind != "int" {
		r.Fail(name, "incorrect_type", "Incorrect type. Expected pk value, received %s.", kind)
	} else if r.Err == nil {
		r.Err = noObject(name, text)
	}
	return 0, false
}

func insightField(c *api.Caller, r *api.Fields, whole bool) registry.Field[int64] {
	var none registry.Field[int64]
	raw, ok := needed(r, "insight", whole)
	if !ok {
		return none
	}
	id, ok := number(r, "insight", raw)
	if !ok {
		return none
	}
	i := c.Snapshot.Insight(c.Project.ID, id)
	switch {
	case i == nil:
		r.Err = noObject("insight", strconv.FormatInt(id, 10))
		return none
	case !registry.HasAlerts(i.Query):
		r.Fail("insight", "invalid_input", alerts.NotSupported)
		return none
	}
	return registry.To(id)
}

func usersField(c *api.Caller, r *api.Fields, whole bool) registry.Field[[]int64] {
	const name = "subscribed_users"
	var none registry.Field[[]int64]
	raw, ok := needed(r, name, whole)
	if !ok {
		return none
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		r.Fail(name, "not_a_list", "Expected a list of items but got type %q.", api.PythonType(raw))
		return none
	}
	ids, users, now := make([]int64, len(all)), usersOf(c), c.Start
	for i, item := range all {
		if ids[i], ok = number(r, name, item); !ok {
			return none
		}
		if k := users[ids[i]]; k == nil || !k.RevokedAt.IsZero() || k.Expired(now) {
			r.Err = noObject(name, strconv.FormatInt(ids[i], 10))
			return none
		}
	}
	return registry.To(ids)
}

// thresholdFields reads the threshold. If given, it must have a configuration.
func thresholdFields(r *api.Fields, f *registry.AlertFields, whole bool) {
	raw, ok := needed(r, "threshold", whole)
	if !ok {
		return
	}
	t := api.Fields{Prefix: "threshold__"}
	if json.Unmarshal(raw, &t.All) != nil {
		r.Fail("threshold__non_field_errors", "invalid_input", "Invalid data. Expected a dictionary, but got %s.", api.PythonType(raw))
		return
	}
	f.ThresholdName = api.Change[string](&t, "name")
	configuration, ok := needed(&t, "configuration", whole)
	switch {
	case t.Err != nil:
	case !ok:
		configuration = json.RawMessage(`{"type": "absolute"}`) // has no bounds, so it is refused
	default:
		t.Err = alerts.CheckThreshold(configuration)
	}
	f.Threshold = registry.To(configuration)
	r.Err = t.Err
}

// anyField reads JSON that is checked later, with the rest of the alert.
func anyField(r *api.Fields, name string) registry.Field[json.RawMessage] {
	raw, ok := r.Take(name, true)
	switch {
	case !ok:
		return registry.Field[json.RawMessage]{}
	case api.IsNull(raw):
		return registry.To[json.RawMessage](nil)
	}
	return registry.To(raw)
}

// refuse refuses unsupported features: anomaly detection, forecasts and investigations.
func refuse(r *api.Fields) {
	for _, refused := range []struct{ name, words string }{
		{"detector_config", "Anomaly detection is not supported."},
		{"forecast_config", "Forecasts are not supported."},
		{"investigation_agent_enabled", "Investigation agent is only supported for anomaly detection alerts."},
		{"investigation_gates_notifications", "Notification gating requires investigation_agent_enabled=true."},
	} {
		if raw, ok := r.Take(refused.name, true); ok && !api.IsNull(raw) && string(raw) != "false" {
			r.Fail(refused.name, "invalid_input", "%s", refused.words)
		}
	}
}

func quietField(r *api.Fields) registry.Field[[]registry.QuietHours] {
	raw, ok := r.Take("schedule_restriction", true)
	if !ok {
		return registry.Field[[]registry.QuietHours]{}
	}
	hours, err := alerts.ReadQuietHours(raw)
	if err != nil {
		r.Fail("schedule_restriction", "invalid_input", "Invalid schedule restriction.")
	}
	return registry.To(hours)
}

func startField(r *api.Fields) registry.Field[*int] {
	const name = "schedule_start_time"
	raw, ok := r.Take(name, true)
	switch {
	case !ok:
		return registry.Field[*int]{}
	case api.IsNull(raw):
		return registry.To[*int](nil)
	}
	minutes, ok := alerts.ReadStartTime(raw)
	if !ok {
		r.Fail(name, "invalid_input", "Invalid schedule start time.")
	}
	return registry.To(&minutes)
}

func webhookFields(r *api.Fields, f *registry.AlertFields) {
	for _, field := range []struct {
		name  string
		into  *registry.Field[string]
		check func(string) error
	}{{"webhook_url", &f.WebhookURL, alerts.CheckURL}, {"webhook_secret", &f.WebhookSecret, alerts.CheckSecret}} {
		given := api.Change[*string](r, field.name)
		if !given.Given {
			continue
		}
		*field.into = registry.To(api.Deref(given.Value))
		if field.into.Value == "" {
			continue
		}
		if err := field.check(field.into.Value); err != nil {
			r.Fail(field.name, "invalid_input", "%s", err)
		}
	}
}

// snoozeField reads the end of a snooze: a date, a time from now such as 2h, or null to end it.
func snoozeField(r *api.Fields, now time.Time) registry.Field[time.Time] {
	const name = "snoozed_until"
	raw, ok := r.Take(name, true)
	switch {
	case !ok:
		return registry.Field[time.Time]{}
	case api.IsNull(raw):
		return registry.To(time.Time{})
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		r.Fail(name, "invalid_input", "snoozed_until has to be passed in string format")
		return registry.Field[time.Time]{}
	}
	until, ok := snoozedUntil(text, now)
	if !ok {
		r.Fail(name, "invalid_input", "%q is not a date, and not a time from now such as 2h or 1d.", text)
	}
	return registry.To(until)
}

// snoozedUntil returns the time that a text stands for. As in PostHog, a number of hours from now is rounded down to the full hour, and one of days, weeks,
// months or years to midnight UTC.
func snoozedUntil(text string, now time.Time) (time.Time, bool) {
	now = now.UTC()
	m, ok := filter.AnyDate(text, now, time.UTC, 0)
	if !ok || !m.Relative() {
		return m.Time, ok
	}
	year, month, day := now.Date()
	switch m.Unit {
	case 's':
		return now.Add(time.Duration(m.Count) * time.Second), true
	case 'M':
		return now.Add(time.Duration(m.Count) * time.Minute), true
	case 'h':
		return now.Add(time.Duration(m.Count) * time.Hour).Truncate(time.Hour), true
	case 'w':
		day += 7 * m.Count
	case 'q':
		day += 7 * 13 * m.Count
	case 'm':
		month += time.Month(m.Count)
	case 'y':
		year += m.Count
	default:
		day += m.Count
	}
	until := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return until, until.Year() <= filter.LastYear
}
