package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Alert watches a number of an insight (contract: clients.md, section 7).
type Alert struct {
	ID          string    `json:"-"` // UUID
	Project     int64     `json:"-"`
	Insight     int64     `json:"insight"`
	Name        string    `json:"name,omitempty"`
	Subscribers []int64   `json:"subscribers,omitempty"` // numbers of users
	Threshold   Threshold `json:"threshold"`
	// Condition says what is compared with the threshold, and Config which series of the insight: JSON that the caller has checked.
	Condition json.RawMessage `json:"condition"`
	Config    json.RawMessage `json:"config"`
	Delay     int             `json:"delay,omitempty"` // how many intervals of the insight to pass over; at most 100
	// Interval is how often the alert is checked. It is not checked on weekends if SkipWeekend is true, and never in QuietHours.
	Interval    AlertInterval `json:"interval"`
	StartTime   *int          `json:"start_time,omitempty"` // when on a day checks start, in minutes from midnight in the project's time zone; nil: by Interval
	SkipWeekend *bool         `json:"skip_weekend"`         // nil: like false
	QuietHours  []QuietHours  `json:"quiet_hours,omitempty"`
	Enabled     bool          `json:"enabled"`
	State       AlertState    `json:"state"`
	Webhook     AlertWebhook  `json:"webhook,omitzero"`
	Deliveries  []Delivery    `json:"deliveries,omitempty"` // those that wait, oldest first; at most MaxDeliveries
	LastValue   *float64      `json:"last_value,omitempty"` // of the latest check; nil if it has none

	SnoozedUntil   time.Time `json:"snoozed_until,omitzero"`
	LastNotifiedAt time.Time `json:"last_notified_at,omitzero"`
	LastCheckedAt  time.Time `json:"last_checked_at,omitzero"`
	NextCheckAt    time.Time `json:"next_check_at,omitzero"` // zero: soon after ChangedAt
	CreatedAt      time.Time `json:"created_at"`
	CreatedBy      string    `json:"created_by,omitempty"` // id of a key; empty for the operator
	ChangedAt      time.Time `json:"changed_at,omitzero"`  // when it was created or last updated; zero: long ago
	Changes        uint64    `json:"changes,omitempty"`    // number of updates: what a check of an older state found is not recorded
}

// Threshold is what the number of an alert is compared with.
type Threshold struct {
	ID            string          `json:"id"` // UUID
	Name          string          `json:"name,omitempty"`
	Configuration json.RawMessage `json:"configuration"` // JSON that the caller has checked
	CreatedAt     time.Time       `json:"created_at"`
}

// AlertWebhook is where an alert is sent; zero for the operator's webhook.
type AlertWebhook struct {
	URL    string `json:"url,omitempty"`
	Secret string `json:"secret,omitempty"` // signs what is sent; empty for no signature
}

// QuietHours is a part of each day in which an alert is not checked, in minutes from midnight in the project's time zone. The end is exclusive; an end before
// the start is on the next day.
type QuietHours struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// AlertState is what the latest check of an alert found.
type AlertState string

// The states of an alert.
const (
	AlertNotFiring AlertState = "Not firing"
	AlertFiring    AlertState = "Firing"
	AlertErrored   AlertState = "Errored"
	AlertSnoozed   AlertState = "Snoozed"
)

// AlertInterval is how often an alert is checked.
type AlertInterval string

// The intervals of alerts.
const (
	AlertRealTime  AlertInterval = "real_time" // every two minutes
	AlertQuarterly AlertInterval = "every_15_minutes"
	AlertHourly    AlertInterval = "hourly"
	AlertDaily     AlertInterval = "daily"
	AlertWeekly    AlertInterval = "weekly"
	AlertMonthly   AlertInterval = "monthly"
)

var alertIntervals = []AlertInterval{AlertRealTime, AlertQuarterly, AlertHourly, AlertDaily, AlertWeekly, AlertMonthly}

// AlertCheck is what one check of an alert found, or that it was snoozed.
type AlertCheck struct {
	ID       string     `json:"id"` // UUID
	At       time.Time  `json:"-"`
	Value    *float64   `json:"value,omitempty"` // nil: none was computed
	State    AlertState `json:"state"`
	Notified bool       `json:"notified,omitempty"`
	// NotifiedAt is when the message was delivered; zero if it was not, or by a server that did not record it.
	NotifiedAt time.Time `json:"notified_at,omitzero"`
	Error      string    `json:"error,omitempty"` // why there is no value, for the alert's author
}

// Delivery is a message that waits to be sent to a webhook.
type Delivery struct {
	ID        string          `json:"id"` // UUID, the same each time it is sent
	Check     AlertCheck      `json:"check"`
	CheckedAt time.Time       `json:"checked_at"`
	Body      json.RawMessage `json:"body"`
	Tries     int             `json:"tries,omitempty"`
	NextTryAt time.Time       `json:"next_try_at"`
	LastError string          `json:"last_error,omitempty"` // for the operator
}

const (
	// MaxDeliveries is how many messages of an alert can wait; beyond it, the oldest are dropped.
	MaxDeliveries = 10
	// MaxDeliveryBody is the most bytes of a message.
	MaxDeliveryBody = 16 << 10
	// maxAlertChecks and maxAlertCheckBytes limit the checks of an alert that are kept: the oldest go first.
	maxAlertChecks     = 1000
	maxAlertCheckBytes = 1 << 20
	maxAlertName       = 255
	maxAlertDelay      = 100
)

func readAlert(rec *Record) (entity, error) {
	a := &Alert{ID: rec.ID, Project: rec.Project}
	if err := decode(rec, a); err != nil {
		return nil, err
	}
	for i := range a.Deliveries {
		a.Deliveries[i].Check.At = a.Deliveries[i].CheckedAt
	}
	return a, nil
}

func (a *Alert) name() recordName { return recordName{a.Project, KindAlert, a.ID} }
func (a *Alert) unique() []string { return nil }

func (a *Alert) size() int {
	size := a.ownSize()
	for _, d := range a.Deliveries {
		size += len(d.Body) + len(d.LastError) + len(d.Check.Error)
	}
	return size
}

// ownSize is the size without the waiting messages, which have a limit of their own.
func (a *Alert) ownSize() int {
	return len(a.Condition) + len(a.Config) + len(a.Threshold.Configuration) + 8*len(a.Subscribers) +
		textBytes(&a.Name, &a.Threshold.Name, &a.Webhook.URL, &a.Webhook.Secret)
}

func (a *Alert) checkSize() error {
	return checkSize("threshold", "This alert", a.ownSize(), MaxSmallRecord)
}

func (a *Alert) key() string  { return a.ID }
func (a *Alert) code() string { return "" }
func (a *Alert) listed() bool { return true }

// compare puts the newest first.
func (a *Alert) compare(other *Alert) int {
	return cmp.Or(other.CreatedAt.Compare(a.CreatedAt), cmp.Compare(other.ID, a.ID))
}

func (a *Alert) put(_ *draft, p *projectState) (Stored, error) {
	p.unplace(a.ID)
	p.alertsOf = p.alertsOf.Set(alertPlace{a.Insight, a.ID}, a)
	return p.alerts.put(a), nil
}

func (a *Alert) remove(_ *draft, p *projectState) Stored {
	p.unplace(a.ID)
	return p.alerts.remove(a.ID)
}

// alertPlace is where an alert is among those of all insights.
type alertPlace struct {
	insight int64
	id      string
}

type alertPlaces struct{}

func (alertPlaces) Compare(a, b alertPlace) int {
	return cmp.Or(cmp.Compare(a.insight, b.insight), cmp.Compare(a.id, b.id))
}

// unplace takes an alert, if there is one, from those of its insight.
func (p *projectState) unplace(id string) {
	if was := p.alerts.get(id); was != nil {
		p.alertsOf = p.alertsOf.Delete(alertPlace{was.Insight, id})
	}
}

// AlertFields holds the fields of an alert that are to be set. A field that is not given stays as it is, or takes its default in a new alert.
type AlertFields struct {
	Insight       Field[int64]
	Name          Field[string] // at most 255 characters
	Subscribers   Field[[]int64]
	ThresholdName Field[string] // at most 255 characters
	Threshold     Field[json.RawMessage]
	Condition     Field[json.RawMessage]
	Config        Field[json.RawMessage]
	Delay         Field[int] // 0 to 100
	Interval      Field[AlertInterval]
	StartTime     Field[*int]
	SkipWeekend   Field[*bool]
	QuietHours    Field[[]QuietHours]
	Enabled       Field[bool]
	SnoozedUntil  Field[time.Time] // zero: not any longer
	WebhookURL    Field[string]    // empty: the operator's
	WebhookSecret Field[string]
	// Complete fills in what the changed alert leaves open. It may run more than once. Nil changes nothing.
	Complete func(now *Snapshot, a *Alert)
	// Next returns when an alert whose quiet hours change is checked next, and when a new one with a start time is checked first. Nil: soon.
	Next func(now *Snapshot, a *Alert) time.Time
	// Check looks at the changed alert, and at the registry as it is at that moment; an error prevents the write. It may run more than once. Nil
	// checks nothing.
	Check func(now *Snapshot, a *Alert) error
}

// CreateAlert adds an alert, which is checked soon if it has no start time. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateAlert(ctx context.Context, project int64, f AlertFields, by string, now time.Time) (*Alert, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	at := moment(now)
	blank := Alert{
		ID: newID(), Project: project, Enabled: true, Interval: AlertDaily, State: AlertNotFiring, SkipWeekend: new(bool), CreatedAt: at, CreatedBy: by,
		Threshold: Threshold{ID: newID(), CreatedAt: at},
	}
	var created *Alert
	err := r.write(ctx, project, func(t *tx) error {
		if _, err := t.state(); err != nil {
			return err
		}
		a := blank
		created = &a
		return f.put(t, &a, true, at)
	})
	if err != nil {
		return nil, fmt.Errorf("creating an alert: %w", err)
	}
	return created, nil
}

// UpdateAlert changes the given fields of an alert, as it is stored at that moment: the last write wins. If what it compares changes, the alert waits for a
// check, and does not fire until then. Mistakes are *FieldError; an alert that is unknown, or whose insight is deleted, is ErrNotFound.
func (r *Registry) UpdateAlert(ctx context.Context, project int64, id string, f AlertFields, now time.Time) (*Alert, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	return r.changeAlert(ctx, project, id, func(t *tx, a *Alert) error {
		a.Changes++
		return f.put(t, a, false, moment(now))
	})
}

// put writes the fields into an alert, and puts it.
func (f *AlertFields) put(t *tx, a *Alert, isNew bool, at time.Time) error {
	f.apply(t.next, a, isNew)
	if f.Check != nil {
		if err := f.Check(t.next, a); err != nil {
			return err
		}
	}
	if f.SnoozedUntil.Given && (!isNew || !a.SnoozedUntil.IsZero()) {
		t.logCheck(a, AlertCheck{ID: newID(), At: at, State: a.State})
		a.LastValue = nil
	}
	a.ChangedAt = at
	return t.put(a)
}

// apply writes the fields into an alert.
func (f *AlertFields) apply(now *Snapshot, a *Alert, isNew bool) {
	before := *a
	a.Insight, a.Name, a.Interval = f.Insight.or(a.Insight), f.Name.or(a.Name), f.Interval.or(a.Interval)
	if f.Subscribers.Given {
		a.Subscribers = slices.Compact(slices.Sorted(slices.Values(f.Subscribers.Value)))
	}
	a.Threshold.Name, a.Threshold.Configuration = f.ThresholdName.or(a.Threshold.Name), canonical(f.Threshold, a.Threshold.Configuration)
	a.Condition, a.Config, a.Delay = canonical(f.Condition, a.Condition), canonical(f.Config, a.Config), f.Delay.or(a.Delay)
	a.SkipWeekend, a.QuietHours, a.StartTime = f.SkipWeekend.or(a.SkipWeekend), f.QuietHours.or(a.QuietHours), f.StartTime.or(a.StartTime)
	a.Webhook = AlertWebhook{URL: f.WebhookURL.or(a.Webhook.URL), Secret: f.WebhookSecret.or(a.Webhook.Secret)}
	if a.Webhook.URL == "" {
		a.Webhook.Secret = ""
	}
	if f.Complete != nil {
		f.Complete(now, a)
	}
	redefined := !a.sameDefinition(&before)
	if redefined {
		a.State = AlertNotFiring
	}
	if redefined || a.Interval != before.Interval {
		a.NextCheckAt = time.Time{}
	}
	if isNew && a.StartTime != nil || !isNew && !slices.Equal(a.QuietHours, before.QuietHours) {
		a.NextCheckAt = time.Time{}
		if f.Next != nil {
			a.NextCheckAt = moment(f.Next(now, a))
		}
	}
	if f.SnoozedUntil.Given {
		a.SnoozedUntil, a.State = moment(f.SnoozedUntil.Value), AlertSnoozed
		if a.SnoozedUntil.IsZero() {
			a.State = AlertNotFiring
		}
	}
	if a.Enabled = f.Enabled.or(a.Enabled); !a.Enabled {
		a.State = AlertNotFiring
	}
}

// sameDefinition reports whether both compare the same number with the same threshold.
func (a *Alert) sameDefinition(other *Alert) bool {
	return a.Insight == other.Insight && a.Delay == other.Delay && bytes.Equal(a.Threshold.Configuration, other.Threshold.Configuration) &&
		bytes.Equal(a.Condition, other.Condition) && bytes.Equal(a.Config, other.Config)
}

func (f *AlertFields) validate() error {
	for _, text := range []struct {
		name  string
		given Field[string]
	}{{"name", f.Name}, {"threshold__name", f.ThresholdName}} {
		if utf8.RuneCountInString(text.given.Value) > maxAlertName {
			return tooLong(text.name, maxAlertName)
		}
	}
	if err := inRange("evaluation_delay_intervals", f.Delay.Value, 0, maxAlertDelay); err != nil {
		return err
	}
	if f.Interval.Given && !slices.Contains(alertIntervals, f.Interval.Value) {
		return notChoice("calculation_interval", string(f.Interval.Value))
	}
	return nil
}

// DeleteAlert removes an alert for good, with its checks and waiting messages. An alert that is unknown, or whose insight is deleted, is ErrNotFound.
func (r *Registry) DeleteAlert(ctx context.Context, project int64, id string) error {
	err := r.write(ctx, project, func(t *tx) error {
		a := t.next.Alert(project, id)
		if a == nil {
			return ErrNotFound
		}
		t.removeAlert(a)
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting the alert %s: %w", id, err)
	}
	return nil
}

func (t *tx) removeAlert(a *Alert) {
	t.remove(a)
	t.write.Forget = append(t.write.Forget, Forgotten{Project: a.Project, Log: checkLog(a.ID), Item: a.ID})
}

// removeAlertsOf removes the alerts of an insight.
func (t *tx) removeAlertsOf(p *projectState, insight int64) {
	for _, a := range p.alertsWith(insight) {
		t.removeAlert(a)
	}
}

// CheckedAlert is what a check of an alert found, and what follows from it.
type CheckedAlert struct {
	AlertCheck

	NextCheckAt time.Time
	Disable     bool // it can't be checked until its author has changed it
	// Body is the message to send about it; nil for none.
	Body json.RawMessage
}

// RecordAlertCheck records what a check of an alert found, together with the message to send, and reports whether the check counts. It does not if the alert
// was updated, deleted or checked in the meantime; then nothing changes.
func (r *Registry) RecordAlertCheck(ctx context.Context, checked *Alert, found CheckedAlert) (bool, error) {
	if len(found.Body) > MaxDeliveryBody {
		return false, fmt.Errorf("recording a check of an alert: its message has %d bytes; the limit is %d", len(found.Body), MaxDeliveryBody)
	}
	found.At, found.Error = moment(found.At), shortened(found.Error)
	return r.settleAlert(ctx, checked, func(t *tx, a *Alert) {
		a.State, a.SnoozedUntil, a.LastCheckedAt, a.LastValue = found.State, time.Time{}, found.At, found.Value
		a.NextCheckAt = moment(found.NextCheckAt)
		a.Enabled = a.Enabled && !found.Disable
		t.logCheck(a, found.AlertCheck)
		if found.Body == nil {
			return
		}
		waiting := append(slices.Clone(a.Deliveries), Delivery{
			ID: newID(), Check: found.AlertCheck, CheckedAt: found.At, Body: found.Body, NextTryAt: found.At,
		})
		a.Deliveries = waiting[max(0, len(waiting)-MaxDeliveries):]
	})
}

// PostponeAlert sets the next check of an alert that was due but was not checked, and reports whether that counts, like RecordAlertCheck.
func (r *Registry) PostponeAlert(ctx context.Context, due *Alert, next time.Time) (bool, error) {
	return r.settleAlert(ctx, due, func(_ *tx, a *Alert) { a.NextCheckAt = moment(next) })
}

// AskAlertCheck makes an alert due now. An unknown alert is ErrNotFound.
func (r *Registry) AskAlertCheck(ctx context.Context, project int64, id string) (*Alert, error) {
	return r.changeAlert(ctx, project, id, func(t *tx, a *Alert) error {
		a.NextCheckAt, a.ChangedAt = time.Time{}, time.Time{}
		return t.put(a)
	})
}

// Sent is the outcome of sending a message.
type Sent struct {
	// NextTryAt is when to send it again; zero: it was delivered, or given up.
	NextTryAt time.Time
	Error     string // why it was not delivered; empty if it was
}

// RecordDelivery records the outcome of sending a message of an alert. If the message does not wait, or its alert is deleted, nothing changes.
func (r *Registry) RecordDelivery(ctx context.Context, project int64, id, delivery string, sent Sent, now time.Time) error {
	_, err := r.changeAlert(ctx, project, id, func(t *tx, a *Alert) error {
		at := slices.IndexFunc(a.Deliveries, func(d Delivery) bool { return d.ID == delivery })
		if at < 0 {
			return errUnchanged
		}
		d := a.Deliveries[at]
		a.Deliveries = slices.Clone(a.Deliveries)
		d.Tries++
		d.NextTryAt, d.LastError = moment(sent.NextTryAt), shortened(sent.Error)
		switch a.Deliveries[at] = d; {
		case sent.Error == "":
			a.LastNotifiedAt = moment(now)
			d.Check.Notified, d.Check.NotifiedAt = true, a.LastNotifiedAt
			t.logCheck(a, d.Check)
			fallthrough
		case sent.NextTryAt.IsZero():
			a.Deliveries = slices.Delete(a.Deliveries, at, at+1)
		}
		return t.put(a)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// settleAlert writes what was found about an alert, unless the alert was updated, deleted or checked since. A server that loses its lock may check an alert
// that another one checks too: the first to finish counts.
func (r *Registry) settleAlert(ctx context.Context, seen *Alert, settle func(*tx, *Alert)) (bool, error) {
	_, err := r.changeAlert(ctx, seen.Project, seen.ID, func(t *tx, a *Alert) error {
		if a.Changes != seen.Changes || !a.NextCheckAt.Equal(seen.NextCheckAt) || !a.Enabled {
			return errSuperseded
		}
		settle(t, a)
		return t.put(a)
	})
	if errors.Is(err, errSuperseded) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// changeAlert writes an alert that change has changed, and returns it; errUnchanged writes nothing. An alert that is not shown is ErrNotFound.
func (r *Registry) changeAlert(ctx context.Context, project int64, id string, change func(*tx, *Alert) error) (*Alert, error) {
	var changed *Alert
	err := r.write(ctx, project, func(t *tx) error {
		before := t.next.Alert(project, id)
		if before == nil {
			return ErrNotFound
		}
		a := *before
		changed = &a
		if err := change(t, &a); !errors.Is(err, errUnchanged) {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("changing the alert %s: %w", id, err)
	}
	return changed, nil
}

// checkLog is the name of the log of the checks of an alert.
func checkLog(alert string) string { return "alert_check/" + alert }

// logCheck records a check of an alert, in place of the one with the same id.
func (t *tx) logCheck(a *Alert, c AlertCheck) {
	t.write.Append = append(t.write.Append, Entry{Project: a.Project, Log: checkLog(a.ID), ID: c.ID, Item: a.ID, At: c.At, Data: encode(c)})
	t.bound(Bound{Project: a.Project, Log: checkLog(a.ID), Entries: maxAlertChecks, Bytes: maxAlertCheckBytes})
}

// AlertChecks returns the checks of an alert since a time, newest first. It queries the store.
func (r *Registry) AlertChecks(ctx context.Context, project int64, alert string, since time.Time) ([]AlertCheck, error) {
	entries, _, err := r.store.Entries(ctx, project, checkLog(alert), EntryPage{Since: since})
	if err != nil {
		return nil, fmt.Errorf("reading the checks of an alert: %w", err)
	}
	checks := make([]AlertCheck, len(entries))
	for i, e := range entries {
		if err := json.Unmarshal(e.Data, &checks[i]); err != nil {
			return nil, fmt.Errorf("reading the checks of an alert: %w", err)
		}
		checks[i].At = e.At
	}
	return checks, nil
}

// Alerts returns the alerts of a project whose insights are not deleted, newest first. Its cost grows with the number of alerts.
func (s *Snapshot) Alerts(project int64) []*Alert {
	p := s.project(project)
	if p == nil {
		return nil
	}
	return valuesOf(p.alerts.list, p.showsAlert)
}

// AlertsOf returns the alerts of an insight, oldest first; none if it is deleted. Its cost grows with their number alone.
func (s *Snapshot) AlertsOf(project, insight int64) []*Alert {
	if s.Insight(project, insight) == nil {
		return nil
	}
	return s.project(project).alertsWith(insight)
}

// alertsWith returns the alerts of an insight, deleted or not.
func (p *projectState) alertsWith(insight int64) []*Alert {
	var all []*Alert
	each := p.alertsOf.Iterator()
	for each.Seek(alertPlace{insight: insight}); !each.Done(); {
		place, a, _ := each.Next()
		if place.insight != insight {
			break
		}
		all = append(all, a)
	}
	return all
}

// Alert returns an alert; nil if there is none, or its insight is deleted.
func (s *Snapshot) Alert(project int64, id string) *Alert {
	p := s.project(project)
	if p == nil {
		return nil
	}
	if a := p.alerts.get(id); a != nil && p.showsAlert(a) {
		return a
	}
	return nil
}

// showsAlert reports whether the insight of an alert exists and is not deleted.
func (p *projectState) showsAlert(a *Alert) bool {
	i := p.insights.get(a.Insight)
	return i != nil && !i.Deleted
}

// HasAlerts reports whether a query is of a kind that alerts can watch.
func HasAlerts(raw json.RawMessage) bool {
	for range 10 { // more wrappers than there may be
		var node struct {
			Kind   string          `json:"kind"`
			Source json.RawMessage `json:"source"`
		}
		if json.Unmarshal(raw, &node) != nil || !query.Wraps(node.Kind) {
			return node.Kind == "TrendsQuery"
		}
		raw = node.Source
	}
	return false
}
