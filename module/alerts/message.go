package alerts

import (
	"encoding/json"
	"math"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The types of messages.
const (
	typeFiring  = "alert.firing"
	typeErrored = "alert.errored"
)

// message is the body of what is sent to a webhook.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of the check
	Data      data      `json:"data"`
}

type data struct {
	Project namedNumber    `json:"project"`
	Alert   namedText      `json:"alert"`
	Insight messageInsight `json:"insight"`
	Check   messageCheck   `json:"check"`
	Breach  *string        `json:"breach"` // which bound was crossed, in words; null if there is no value
	Error   *string        `json:"error"`  // why there is no value; null if there is one
	Rule    *messageRule   `json:"rule"`   // null if it can't be read
}

type namedNumber struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type namedText struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type messageInsight struct {
	ID      int64  `json:"id"`
	ShortID string `json:"short_id"`
	Name    string `json:"name"`
}

type messageCheck struct {
	ID        string              `json:"id"`
	CreatedAt time.Time           `json:"created_at"`
	State     registry.AlertState `json:"state"`
	Value     *float64            `json:"calculated_value"`
}

type messageRule struct {
	Condition Condition `json:"condition"`
	Type      string    `json:"threshold_type"`
	Lower     *float64  `json:"lower"`
	Upper     *float64  `json:"upper"`
	Series    int       `json:"series_index"`
}

// maxErrorText is how many characters of an error a message shows.
const maxErrorText = 1000

// messageOf returns the message about a check; nil if there is nothing to report: the alert does not fire, or failed to be checked the last time too. All
// texts in it are short, so it has at most registry.MaxDeliveryBody bytes.
func messageOf(snap *registry.Snapshot, a *registry.Alert, r *Rule, check registry.AlertCheck, breach string) json.RawMessage {
	m := message{Type: typeFiring, Timestamp: check.At, Data: data{
		Alert: namedText{a.ID, a.Name}, Check: messageCheck{check.ID, check.At, check.State, check.Value}, Breach: &breach,
	}}
	switch {
	case check.State == registry.AlertErrored && a.State != registry.AlertErrored:
		m.Type, m.Data.Breach, m.Data.Error = typeErrored, nil, new(cut(check.Error, maxErrorText))
	case check.State != registry.AlertFiring:
		return nil
	}
	if p := snap.Project(a.Project); p != nil {
		m.Data.Project = namedNumber{p.ID, p.Name}
	}
	if i := snap.Insight(a.Project, a.Insight); i != nil {
		m.Data.Insight = messageInsight{i.ID, i.ShortID, i.Title()}
	}
	if r != nil {
		m.Data.Rule = &messageRule{r.Condition, absolute, r.Lower, r.Upper, r.Series}
		if r.Percent {
			m.Data.Rule.Type = percentage
		}
	}
	return jsontext.Append(nil, m)
}

// finite returns a value that JSON can represent, or nil: an increase from zero is infinite.
func finite(value *float64) *float64 {
	if value == nil || math.IsInf(*value, 0) || math.IsNaN(*value) {
		return nil
	}
	return value
}
