package alerts

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// due reports whether an alert is to be checked, and since when.
func (c *Checker) due(a *registry.Alert, now time.Time) (since time.Time, due bool) {
	n := name{a.Project, a.ID}
	if since = a.NextCheckAt; since.IsZero() {
		since = c.ahead.Past(n, a.ChangedAt, now).Add(c.Settle)
	} else if seen := c.ahead.Within(n, since, now, longestWait(a)); !seen.Equal(since) {
		since = seen.Add(min(cadence(a.Interval), day))
	}
	return since, a.Enabled && !since.After(now) && !a.SnoozedUntil.After(now)
}

// dueChecks returns the alerts of a project that are to be checked.
func (c *Checker) dueChecks(snap *registry.Snapshot, project int64, now time.Time) (jobs []job) {
	for _, a := range snap.Alerts(project) {
		n := name{project, a.ID}
		if since, due := c.due(a, now); due && !c.checks.pauses.Holds(n, now) {
			jobs = append(jobs, job{n, since})
		}
	}
	return jobs
}

// locked does something about an alert while no other server does anything of the same kind. If one does, it may be about this alert, so nothing is done
// before the next look, and the error is [registry.ErrHeld]. There are few lock names, because some stores keep them as files.
func (c *Checker) locked(kind string, n name, do func() error) error {
	release, err := c.worker.TryLock(c.open, "alert-"+kind+"-"+n.alert[max(0, len(n.alert)-2):])
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// check checks an alert if it is due. It reports false if another server may be doing it.
func (c *Checker) check(n name) bool {
	err := c.locked("check", n, func() error {
		snap, now := c.Registry.Snapshot(), time.Now()
		a := snap.Alert(n.project, n.alert)
		if a == nil {
			return nil
		}
		if _, due := c.due(a, now); !due {
			return nil
		}
		return c.checkNow(snap, a, now)
	})
	switch {
	case err == nil:
		c.checks.pauses.End(n)
	case errors.Is(err, registry.ErrHeld):
		return false
	case c.open.Err() == nil:
		c.checks.pauses.Failed(n, time.Now())
		c.metrics.checks.WithLabelValues(postponed).Inc()
		c.Logger.Warn("an alert is checked later", append(n.fields(), clickhouse.Logged(err))...)
	}
	return true
}

// checkNow checks an alert that is due, and records the outcome. An error means that the check could not be tried.
func (c *Checker) checkNow(snap *registry.Snapshot, a *registry.Alert, now time.Time) error {
	zone := snap.Schema(a.Project).Location
	until := afterQuietHours(a.QuietHours, now, zone)
	if a.SkipWeekend != nil && *a.SkipWeekend && isWeekend(now, zone) {
		until = NextCheck(a, now, zone)
	}
	if until.After(now) {
		c.metrics.checks.WithLabelValues(skipped).Inc()
		_, err := c.Registry.PostponeAlert(c.open, a, until)
		return err
	}
	rule, err := ReadRule(a, queryOf(snap, a))
	disable := err != nil
	var out Outcome
	if err == nil {
		err = rescue.Do(c.Logger, func() (err error) { out, err = c.compare(snap, a, rule, now); return err }, name{a.Project, a.ID}.fields()...)
	}
	if isOutage(err) {
		return err
	}
	found := registry.CheckedAlert{
		AlertCheck:  registry.AlertCheck{ID: uuid.Must(uuid.NewV7()).String(), At: now.UTC().Truncate(time.Microsecond), State: registry.AlertNotFiring, Value: finite(out.Value)},
		NextCheckAt: NextCheck(a, now, zone), Disable: disable,
	}
	if again := now.Add(tryAgain); execution.StaleIsBetter(err) && again.Before(found.NextCheckAt) {
		found.NextCheckAt = again
	}
	switch {
	case err != nil:
		found.State, found.Error = registry.AlertErrored, messageText(err)
	case out.Breach != "":
		found.State = registry.AlertFiring
	}
	if url, _, _ := c.target(a); url != "" {
		found.Body = messageOf(snap, a, rule, found.AlertCheck, out.Breach)
	}
	return c.record(a, &found, err)
}

// queryOf returns the query of an alert's insight.
func queryOf(snap *registry.Snapshot, a *registry.Alert) []byte {
	if i := snap.Insight(a.Project, a.Insight); i != nil {
		return i.Query
	}
	return nil
}

// compare gets the numbers of a rule and compares them.
func (c *Checker) compare(snap *registry.Snapshot, a *registry.Alert, r *Rule, now time.Time) (Outcome, error) {
	if r.Lower == nil && r.Upper == nil {
		return Outcome{Value: new(float64)}, nil
	}
	began := time.Now()
	series, err := c.numbers(c.open, snap, a, r, now)
	if err != nil {
		return Outcome{}, err
	}
	c.metrics.seconds.Observe(time.Since(began).Seconds())
	return r.Evaluate(series), nil
}

// record records the outcome of a check, counts it and logs it.
func (c *Checker) record(a *registry.Alert, found *registry.CheckedAlert, failure error) error {
	counts, err := c.Registry.RecordAlertCheck(context.WithoutCancel(c.open), a, *found)
	if err != nil {
		return err
	}
	fields := []zap.Field{
		zap.Int64("project", a.Project), zap.String("alert", a.ID), zap.String("check", found.ID), zap.String("state", string(found.State)),
	}
	switch {
	case !counts:
		c.metrics.checks.WithLabelValues(superseded).Inc()
		return nil
	case failure != nil:
		c.metrics.checks.WithLabelValues(failed).Inc()
		c.Logger.Warn("an alert could not be checked", append(fields, zap.Bool("disabled", found.Disable), zap.String("message", found.Error), clickhouse.Logged(failure))...)
	default:
		result := notFiring
		if found.State == registry.AlertFiring {
			result = firing
		}
		c.metrics.checks.WithLabelValues(result).Inc()
		c.Logger.Info("an alert was checked", append(fields, zap.Bool("changed", a.State != found.State))...)
	}
	if found.Body != nil {
		c.sending.bell.Ring()
	}
	return nil
}

// tryAgain is when an insight that took too long or too much memory is tried again, if its next check is later: other queries, or a restart of ClickHouse, may
// be why.
const tryAgain = time.Hour

// isOutage reports whether an error says nothing about the alert, so that the same check is tried again soon. An insight that takes too long or too much
// memory is at fault: see [execution.MayPass].
func isOutage(err error) bool {
	return execution.MayPass(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, execution.ErrStopped)
}

// messageText returns the reason why an alert can't be checked, in words that its author may see.
func messageText(err error) string {
	if known, ok := errors.AsType[*registry.FieldError](err); ok {
		return known.Message
	}
	if reason, ok := execution.Reason(err); ok {
		return reason
	}
	return "The check failed."
}
