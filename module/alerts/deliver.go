package alerts

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// A message that was not delivered is sent again after five seconds, and then each time after twice as long, up to an hour.
	firstRetry   = 5 * time.Second
	longestRetry = time.Hour
	// giveUpAfter is how long after its check a message is sent again.
	giveUpAfter = 24 * time.Hour
)

// target returns where the messages of an alert go, the secret that signs them, and the transport for them; to is empty for nowhere.
func (c *Checker) target(a *registry.Alert) (to, secret string, over http.RoundTripper) {
	if a.Webhook.URL != "" {
		return a.Webhook.URL, a.Webhook.Secret, c.public
	}
	return c.Webhook.URL, c.Webhook.Secret, c.own
}

// dueMessages returns the alerts of a project that have messages to send.
func (c *Checker) dueMessages(snap *registry.Snapshot, project int64, now time.Time) (jobs []job) {
	for _, a := range snap.Alerts(project) {
		n := name{project, a.ID}
		if d := nextMessage(a, now); d != nil && !c.sending.pauses.Holds(n, now) {
			jobs = append(jobs, job{n, d.NextTryAt})
		}
	}
	return jobs
}

// nextMessage returns the oldest message of an alert that is to be sent now; nil for none. A message that waits for longer than any can was recorded while
// a clock was ahead.
func nextMessage(a *registry.Alert, now time.Time) *registry.Delivery {
	for i := range a.Deliveries {
		d := &a.Deliveries[i]
		if wait := d.NextTryAt.Sub(now); wait <= 0 || wait > longestRetry+background.ClockSkew {
			return d
		}
	}
	return nil
}

// send sends the messages of an alert that are due. It reports false if another server may be doing it.
func (c *Checker) send(n name) bool {
	err := c.locked("webhook", n, func() error {
		for c.open.Err() == nil {
			a := c.Registry.Snapshot().Alert(n.project, n.alert)
			if a == nil {
				return nil
			}
			d := nextMessage(a, time.Now())
			if d == nil {
				return nil
			}
			if err := c.sendOne(a, d); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
		c.sending.pauses.End(n)
	case errors.Is(err, registry.ErrHeld):
		return false
	case c.open.Err() == nil:
		c.sending.pauses.Failed(n, time.Now())
		c.Logger.Warn("messages of an alert are sent later", append(n.fields(), zap.Error(err))...)
	}
	return true
}

// sendOne sends a message and records the outcome. If the server dies in between, the message is sent again with the same id.
func (c *Checker) sendOne(a *registry.Alert, d *registry.Delivery) error {
	to, secret, over := c.target(a)
	failure := errNoWebhook
	if to != "" {
		failure = post(c.open, over, to, secret, d.ID, d.Body)
	}
	if failure != nil && c.open.Err() != nil {
		return c.open.Err()
	}
	sent, result := settle(d, failure, time.Now())
	if err := c.Registry.RecordDelivery(context.WithoutCancel(c.open), a.Project, a.ID, d.ID, sent, time.Now()); err != nil {
		return err
	}
	c.metrics.deliveries.WithLabelValues(result).Inc()
	fields := []zap.Field{
		zap.Int64("project", a.Project), zap.String("alert", a.ID), zap.String("delivery", d.ID), zap.String("host", hostOf(to)), zap.Int("tries", d.Tries+1),
	}
	switch result {
	case delivered:
		c.Logger.Info("the message of an alert was delivered", fields...)
	case retried:
		c.Logger.Warn("the message of an alert was not delivered; it is sent again", append(fields, zap.Time("next_try", sent.NextTryAt), zap.String("error", sent.Error))...)
	default:
		c.Logger.Error("the message of an alert was not delivered, and is given up", append(fields, zap.String("error", sent.Error))...)
	}
	return nil
}

// errNoWebhook reports that the webhook of a message was removed.
var errNoWebhook = errors.New("there is no webhook any more")

// settle decides what happens next with a message that was sent.
func settle(d *registry.Delivery, failure error, now time.Time) (registry.Sent, string) {
	if failure == nil {
		return registry.Sent{}, delivered
	}
	sent := registry.Sent{NextTryAt: now.Add(min(firstRetry<<min(d.Tries, 20), longestRetry)), Error: reason(failure)}
	if errors.Is(failure, errGone) || errors.Is(failure, errNoWebhook) || sent.NextTryAt.Sub(d.CheckedAt) > giveUpAfter {
		sent.NextTryAt = time.Time{}
		return sent, givenUp
	}
	return sent, retried
}

// reason returns why a message was not delivered, without the address, which may hold a password.
func reason(err error) string {
	if known, ok := errors.AsType[*url.Error](err); ok {
		err = known.Err
	}
	return err.Error()
}

// hostOf returns the part of an address that may be logged.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
