package registrytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// alertOn returns the fields of an alert on an insight.
func alertOn(insight int64, name string) registry.AlertFields {
	return registry.AlertFields{
		Insight: registry.To(insight), Name: registry.To(name), Condition: registry.To(json.RawMessage(`{"type": "absolute_value"}`)),
		Threshold: registry.To(json.RawMessage(`{"type": "absolute", "bounds": {"upper": 1.50}}`)),
		Config:    registry.To(json.RawMessage(`{"type": "TrendsAlertConfig", "series_index": 0}`)),
	}
}

var trend = json.RawMessage(`{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": []}}`)

func testAlerts(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	i := p.insight(shop.ID, registry.InsightFields{Query: registry.To(trend)})
	p.insight(other.ID, named("another"))
	f := alertOn(i.ID, "Größe")
	f.Subscribers, f.QuietHours, f.Interval = registry.To([]int64{2, 1, 2}), registry.To([]registry.QuietHours{{Start: 60, End: 90}}), registry.To(registry.AlertHourly)
	f.WebhookURL, f.WebhookSecret, f.ThresholdName = registry.To("https://example.com/"), registry.To("s"), registry.To("limit")
	full := must(p.CreateAlert(ctx, shop.ID, f, "key", at))(t)
	want := registry.Alert{
		ID: full.ID, Project: shop.ID, Insight: i.ID, Name: "Größe", Subscribers: []int64{1, 2}, Interval: registry.AlertHourly, SkipWeekend: new(false),
		Threshold: registry.Threshold{ID: full.Threshold.ID, Name: "limit", Configuration: json.RawMessage(`{"type":"absolute","bounds":{"upper":1.50}}`), CreatedAt: at},
		Condition: json.RawMessage(`{"type":"absolute_value"}`), Config: json.RawMessage(`{"type":"TrendsAlertConfig","series_index":0}`),
		QuietHours: []registry.QuietHours{{Start: 60, End: 90}}, Enabled: true, State: registry.AlertNotFiring,
		Webhook:   registry.AlertWebhook{URL: "https://example.com/", Secret: "s"},
		CreatedAt: at, CreatedBy: "key", ChangedAt: at,
	}
	same(t, "a new alert", want, *full)
	second := must(p.CreateAlert(ctx, shop.ID, alertOn(i.ID, "newest"), "key", at.Add(time.Second)))(t)
	same(t, "the newest first", []registry.Alert{*second, want}, p.settled()[0].Alerts)
	p.refused("an alert of another project", registry.ErrNotFound, func() error {
		_, err := p.UpdateAlert(ctx, other.ID, full.ID, registry.AlertFields{Name: registry.To("x")}, at)
		return err
	})
	p.refused("the deletion of an alert of another project", registry.ErrNotFound, func() error { return p.DeleteAlert(ctx, other.ID, full.ID) })

	p.alertChecks(full)
	p.alertStates(second)
	p.alertStart(i.ID)
	p.insightsOfAlerts(shop.ID)
	if err := p.DeleteAlert(ctx, shop.ID, full.ID); err != nil {
		t.Fatal(err)
	}
	if left := must(p.AlertChecks(ctx, shop.ID, full.ID, time.Time{}))(t); len(left) > 0 {
		t.Errorf("a deleted alert has checks: %+v", left)
	}
	p.alertsOfInsight(i.ID, second.ID)
	p.settled()
}

// alertChecks records checks and messages of an alert in both registries.
func (p pair) alertChecks(a *registry.Alert) {
	p.Helper()
	ctx := p.Context()
	found := registry.CheckedAlert{
		AlertCheck:  registry.AlertCheck{ID: "00000000-0000-7000-8000-000000000001", At: at, State: registry.AlertFiring, Value: new(2.5)},
		NextCheckAt: at.Add(time.Hour), Body: json.RawMessage(`{"n":1}`),
	}
	if counts := must(p.RecordAlertCheck(ctx, a, found))(p.T); !counts {
		p.Error("a check was not recorded")
	}
	if counts := must(p.RecordAlertCheck(ctx, a, found))(p.T); counts {
		p.Error("a check of an alert that was checked since was recorded")
	}
	late := *p.Snapshot().Alert(a.Project, a.ID)
	late.Changes++
	if counts := must(p.RecordAlertCheck(ctx, &late, found))(p.T); counts {
		p.Error("a check of an alert that was changed was recorded")
	}
	fired := p.settled()[0].Alerts[1]
	same(p.exam, "what was found", []any{registry.AlertFiring, 2.5, at, at.Add(time.Hour), 1},
		[]any{fired.State, *fired.LastValue, fired.LastCheckedAt, fired.NextCheckAt, len(fired.Deliveries)})
	if err := p.RecordDelivery(ctx, a.Project, a.ID, fired.Deliveries[0].ID, registry.Sent{NextTryAt: at.Add(time.Minute), Error: "refused"}, at); err != nil {
		p.Fatal(err)
	}
	waits := p.settled()[0].Alerts[1].Deliveries[0]
	same(p.exam, "a message that was not delivered", []any{fired.Deliveries[0].ID, 1, at.Add(time.Minute), "refused", `{"n":1}`},
		[]any{waits.ID, waits.Tries, waits.NextTryAt, waits.LastError, string(waits.Body)})
	for range 2 { // the second changes nothing
		if err := p.RecordDelivery(ctx, a.Project, a.ID, waits.ID, registry.Sent{}, at.Add(time.Minute)); err != nil {
			p.Fatal(err)
		}
	}
	sent := p.settled()[0].Alerts[1]
	same(p.exam, "a message that was delivered", []any{0, at.Add(time.Minute)}, []any{len(sent.Deliveries), sent.LastNotifiedAt})
	check := found.AlertCheck
	check.Notified, check.NotifiedAt = true, at.Add(time.Minute)
	same(p.exam, "checks", []registry.AlertCheck{check}, must(p.other.AlertChecks(ctx, a.Project, a.ID, time.Time{}))(p.T))
	long := found
	long.Body = json.RawMessage(`"` + strings.Repeat("x", registry.MaxDeliveryBody-1) + `"`)
	if _, err := p.RecordAlertCheck(ctx, &late, long); err == nil {
		p.Error("a message that is too long was recorded")
	}
	for n := range registry.MaxDeliveries + 2 {
		found.ID, found.Body = fmt.Sprintf("00000000-0000-7000-8000-0000000001%02d", n), json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
		must(p.RecordAlertCheck(ctx, p.Snapshot().Alert(a.Project, a.ID), found))(p.T)
	}
	many := p.settled()[0].Alerts[1].Deliveries
	same(p.exam, "the messages that wait", []any{registry.MaxDeliveries, `{"n":2}`}, []any{len(many), string(many[0].Body)})
}

// alertStates updates an alert in ways that change its state.
func (p pair) alertStates(a *registry.Alert) {
	p.Helper()
	ctx, now := p.Context(), at
	fire := func() {
		p.Helper()
		a = p.Snapshot().Alert(a.Project, a.ID)
		found := registry.CheckedAlert{AlertCheck: registry.AlertCheck{ID: "00000000-0000-7000-8000-000000000002", At: at, State: registry.AlertFiring}, NextCheckAt: at.Add(time.Hour)}
		if counts := must(p.RecordAlertCheck(ctx, a, found))(p.T); !counts {
			p.Error("a check was not recorded")
		}
	}
	update := func(f registry.AlertFields) registry.Alert {
		p.Helper()
		now = now.Add(time.Second)
		return *must(p.UpdateAlert(ctx, a.Project, a.ID, f, now))(p.T)
	}
	soon := time.Time{}
	for _, tt := range []struct {
		name  string
		f     registry.AlertFields
		state registry.AlertState
		next  time.Time
	}{
		{"another name", registry.AlertFields{Name: registry.To("x")}, registry.AlertFiring, at.Add(time.Hour)},
		{"the same threshold", registry.AlertFields{Threshold: registry.To(a.Threshold.Configuration)}, registry.AlertFiring, at.Add(time.Hour)},
		{"another threshold", registry.AlertFields{Threshold: registry.To(json.RawMessage(`{}`))}, registry.AlertNotFiring, soon},
		{"another condition", registry.AlertFields{Condition: registry.To(json.RawMessage(`{"type":"relative_increase"}`))}, registry.AlertNotFiring, soon},
		{"another interval", registry.AlertFields{Interval: registry.To(registry.AlertMonthly)}, registry.AlertFiring, soon},
		{"quiet hours", registry.AlertFields{
			QuietHours: registry.To([]registry.QuietHours{{Start: 1, End: 60}}),
			Next:       func(*registry.Snapshot, *registry.Alert) time.Time { return at.Add(time.Minute) },
		}, registry.AlertFiring, at.Add(time.Minute)},
		{"a start time", registry.AlertFields{StartTime: registry.To(new(540))}, registry.AlertFiring, at.Add(time.Hour)},
		{"a snooze", registry.AlertFields{SnoozedUntil: registry.To(at.Add(time.Hour))}, registry.AlertSnoozed, at.Add(time.Hour)},
		{"the end of a snooze", registry.AlertFields{SnoozedUntil: registry.To(time.Time{})}, registry.AlertNotFiring, at.Add(time.Hour)},
		{"disabling", registry.AlertFields{Enabled: registry.To(false)}, registry.AlertNotFiring, at.Add(time.Hour)},
	} {
		fire()
		got := update(tt.f)
		same(p.exam, tt.name, []any{tt.state, tt.next, now}, []any{got.State, got.NextCheckAt, got.ChangedAt})
	}
	if counts := must(p.RecordAlertCheck(ctx, p.Snapshot().Alert(a.Project, a.ID), registry.CheckedAlert{}))(p.T); counts {
		p.Error("a check of a disabled alert was recorded")
	}
	checks := must(p.AlertChecks(ctx, a.Project, a.ID, at.Add(time.Second)))(p.T)
	if len(checks) != 2 || checks[0].State != registry.AlertNotFiring || checks[1].State != registry.AlertSnoozed {
		p.Errorf("the checks that snoozing left are %+v", checks)
	}
}

// insightsOfAlerts moves an alert to another insight and back.
func (p pair) insightsOfAlerts(project int64) {
	p.Helper()
	watched := p.insight(project, registry.InsightFields{Query: registry.To(trend)})
	others := p.insight(project, registry.InsightFields{Query: registry.To(trend)})
	full := must(p.CreateAlert(p.Context(), project, alertOn(watched.ID, "moves"), "key", at))(p.T)
	second := must(p.CreateAlert(p.Context(), project, alertOn(watched.ID, "stays"), "key", at))(p.T)
	ids := func(r *registry.Registry, insight int64) (ids []string) {
		for _, a := range r.Snapshot().AlertsOf(project, insight) {
			ids = append(ids, a.ID)
		}
		return ids
	}
	shown := func(what string, want, wantOthers []string) {
		p.Helper()
		p.settled()
		for _, r := range []*registry.Registry{p.Registry, p.other} {
			same(p.exam, what, [][]string{want, wantOthers}, [][]string{ids(r, watched.ID), ids(r, others.ID)})
		}
	}
	move := func(to int64) {
		p.Helper()
		must(p.UpdateAlert(p.Context(), project, full.ID, registry.AlertFields{Insight: registry.To(to)}, at))(p.T)
	}
	both := []string{full.ID, second.ID}
	shown("the alerts of the insight", both, nil)
	move(others.ID)
	shown("the alerts after one was moved", both[1:], both[:1])
	move(watched.ID)
	shown("the alerts after it was moved back", both, nil)
	for _, id := range both {
		if err := p.DeleteAlert(p.Context(), project, id); err != nil {
			p.Error(err)
		}
	}
	shown("the alerts after their deletion", nil, nil)
}

// alertStart creates and removes an alert with a start time, which is not checked before it.
func (p pair) alertStart(insight int64) {
	p.Helper()
	f := alertOn(insight, "starts later")
	f.StartTime, f.Next = registry.To(new(540)), func(*registry.Snapshot, *registry.Alert) time.Time { return at.Add(time.Hour) }
	a := must(p.CreateAlert(p.Context(), 1, f, "key", at))(p.T)
	same(p.exam, "an alert with a start time", []any{at.Add(time.Hour), 540}, []any{a.NextCheckAt, *a.StartTime})
	p.settled()
	if err := p.DeleteAlert(p.Context(), 1, a.ID); err != nil {
		p.Error(err)
	}
}

// alertsOfInsight deletes, restores, changes and purges an insight, which has one alert.
func (p pair) alertsOfInsight(insight int64, alert string) {
	p.Helper()
	ctx := p.Context()
	change := func(f registry.InsightFields) {
		p.Helper()
		must(p.UpdateInsight(ctx, 1, insight, f, true, "key", at))(p.T)
	}
	shown := func(what string, want bool) {
		p.Helper()
		p.settled()
		if got := p.other.Snapshot(); (got.Alert(1, alert) != nil) != want || (len(got.Alerts(1)) == 1) != want {
			p.Errorf("%s: the alert is shown: %t", what, !want)
		}
	}
	shown("before", true)
	change(registry.InsightFields{Deleted: registry.To(true)})
	shown("a deleted insight", false)
	p.refused("an alert of a deleted insight", registry.ErrNotFound, func() error {
		_, err := p.UpdateAlert(ctx, 1, alert, registry.AlertFields{}, at)
		return err
	})
	change(registry.InsightFields{Deleted: registry.To(false)})
	shown("a restored insight", true)
	change(registry.InsightFields{Query: registry.To(json.RawMessage(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}]}`))})
	shown("another trend", true)
	change(registry.InsightFields{Query: registry.To(json.RawMessage(`{"kind": "FunnelsQuery", "series": []}`))})
	shown("a funnel", false)
	change(registry.InsightFields{Query: registry.To(trend)})
	shown("a trend again", false)
	last := must(p.CreateAlert(ctx, 1, alertOn(insight, "last"), "key", at))(p.T)
	found := registry.CheckedAlert{AlertCheck: registry.AlertCheck{ID: "00000000-0000-7000-8000-000000000003", At: at}}
	must(p.RecordAlertCheck(ctx, last, found))(p.T)
	change(registry.InsightFields{Deleted: registry.To(true)})
	must(p.Purge(ctx, 1, at))(p.T)
	p.settled()
	if left := must(p.AlertChecks(ctx, 1, last.ID, time.Time{}))(p.T); len(left) > 0 {
		p.Errorf("the alert of a purged insight has checks: %+v", left)
	}
	if err := p.DeleteAlert(ctx, 1, last.ID); !errors.Is(err, registry.ErrNotFound) {
		p.Errorf("the alert of a purged insight is there: %v", err)
	}
}
