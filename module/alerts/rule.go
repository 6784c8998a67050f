// Package alerts checks alerts when they are due and sends the outcomes to webhooks. Each check is made by one of the servers that share a registry,
// and each message is retried until it is delivered. The package knows neither Caddy nor how requests are served.
package alerts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Condition says what is compared with a threshold: a value or its change.
type Condition string

// The conditions of alerts.
const (
	AbsoluteValue    Condition = "absolute_value"
	RelativeIncrease Condition = "relative_increase"
	RelativeDecrease Condition = "relative_decrease"
)

// Rule is what an alert compares (contract: clients.md, section 7).
type Rule struct {
	Query  *trends.Query
	Series int // the index of the series, or of the formula, in the query
	// Ongoing selects the interval that is still in progress instead of the last one that has ended.
	Ongoing bool
	// Delay is how many intervals that have ended are passed over, because their events may arrive late.
	Delay        int
	Condition    Condition
	Percent      bool     // the change is compared relative to the previous number: 0.5 is 50%
	Lower, Upper *float64 // nil for no bound
}

// threshold is the JSON of a threshold's configuration.
type threshold struct {
	Type   string `json:"type"`
	Bounds *struct {
		Lower *float64 `json:"lower"`
		Upper *float64 `json:"upper"`
	} `json:"bounds"`
}

// The types of thresholds.
const (
	absolute   = "absolute"
	percentage = "percentage"
)

// thresholdField is the field of mistakes that concern a threshold as a whole.
const thresholdField = "threshold__non_field_errors"

// CheckThreshold reports a mistake in the configuration of a threshold as a *registry.FieldError. A threshold without bounds is valid.
func CheckThreshold(raw json.RawMessage) error {
	t, ok := readThreshold(raw)
	switch {
	case !ok:
		return wrong(thresholdField, "Invalid threshold configuration: %s", pythonText(raw))
	case t.Bounds != nil && t.Bounds.Lower != nil && t.Bounds.Upper != nil && *t.Bounds.Lower > *t.Bounds.Upper:
		return wrong(thresholdField, "Lower threshold must be less than upper threshold")
	}
	return nil
}

func readThreshold(raw json.RawMessage) (t threshold, ok bool) {
	return t, strictly(raw, &t) && (t.Type == absolute || t.Type == percentage)
}

// ReadRule reads what an alert on a query compares. Mistakes are *registry.FieldError.
func ReadRule(a *registry.Alert, raw json.RawMessage) (*Rule, error) {
	var condition struct {
		Type Condition `json:"type"`
	}
	if !strictly(a.Condition, &condition) || condition.Type != AbsoluteValue && condition.Type != RelativeIncrease && condition.Type != RelativeDecrease {
		return nil, wrong("", "Alert has invalid condition: %s", pythonText(a.Condition))
	}
	r := &Rule{Condition: condition.Type, Delay: a.Delay}
	if err := r.readConfig(a.Config); err != nil {
		return nil, err
	}
	if err := r.readQuery(raw); err != nil {
		return nil, err
	}
	if err := r.checkDelay(); err != nil {
		return nil, err
	}
	return r, r.readThreshold(a.Threshold.Configuration)
}

func (r *Rule) readConfig(raw json.RawMessage) error {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil || kind.Type != "TrendsAlertConfig" {
		return wrong("", "Unsupported alert config type: %s", pythonText(raw))
	}
	var config struct {
		Type    string `json:"type"`
		Series  *int   `json:"series_index"`
		Ongoing *bool  `json:"check_ongoing_interval"`
	}
	if !strictly(raw, &config) || config.Series == nil {
		return wrong("", "Alert has invalid TrendsAlertConfig: %s", pythonText(raw))
	}
	r.Series, r.Ongoing = *config.Series, config.Ongoing != nil && *config.Ongoing
	return nil
}

// CompleteConfig returns the config of an alert on a query, where check_ongoing_interval is true if the alert leaves it open and is checked more often than
// an interval of the insight ends: the checks in between would only find the same number again. It stays open if the interval in progress can't be
// compared or the alert passes over intervals, and if the alert has a mistake.
func CompleteConfig(a *registry.Alert, raw json.RawMessage) json.RawMessage {
	const ongoing = "check_ongoing_interval"
	var config map[string]json.RawMessage
	if json.Unmarshal(a.Config, &config) != nil || len(config[ongoing]) > 0 && string(config[ongoing]) != "null" {
		return a.Config
	}
	r, err := ReadRule(a, raw)
	if err != nil || r.Delay > 0 || r.Query.Display.Total() || r.Condition == RelativeDecrease || r.Upper == nil || cadence(a.Interval) >= length(r.Query.Interval) {
		return a.Config
	}
	config[ongoing] = json.RawMessage("true")
	return jsontext.Append(nil, config)
}

// length returns the approximate length of an interval.
func length(i query.Interval) time.Duration {
	switch i { //nolint:exhaustive // the others are below
	case query.Day:
		return day
	case query.Week:
		return 7 * day
	}
	return max(i.Clock(), time.Duration(i.Months())*30*day)
}

// NotSupported refuses an insight that an alert can't watch.
const NotSupported = "Alerts are not supported for this insight."

func (r *Rule) readQuery(raw json.RawMessage) error {
	if len(raw) == 0 {
		return wrong("insight", NotSupported)
	}
	node, err := compiler.Parse(raw)
	if err != nil {
		return wrong("insight", "Alert's insight has an invalid TrendsQuery: %s", firstMistake(err))
	}
	var ok bool
	if r.Query, ok = node.(*trends.Query); !ok || r.Query.Display == trends.BoxPlot { // a box plot has several numbers for each interval
		return wrong("insight", NotSupported)
	}
	if r.Condition != AbsoluteValue && r.Query.Display.Total() {
		return wrong("", "Relative alert condition '%s' is not compatible with non time series trends", r.Condition)
	}
	count := len(r.Query.Series)
	if n := len(r.Query.Formulas); n > 0 {
		count = n
	}
	if r.Series < 0 || r.Series >= count {
		return wrong("", "series_index %d is out of range (query has %d series)", r.Series, count)
	}
	return nil
}

func (r *Rule) checkDelay() error {
	const field = "evaluation_delay_intervals"
	switch days := r.Query.DateRange.DaysOfWeek; {
	case r.Delay == 0:
	case r.Query.Display.Total():
		return wrong(field, "Only trends over time can have an evaluation delay.")
	case r.Ongoing:
		return wrong(field, "Set check_ongoing_interval to false to use an evaluation delay.")
	case len(days) > 0 && len(days) < 7 && length(r.Query.Interval) <= day: // there are fewer intervals than the clock suggests
		return wrong(field, "An insight for some days of the week can't have an evaluation delay, unless its interval is a week or longer.")
	}
	return nil
}

func (r *Rule) readThreshold(raw json.RawMessage) error {
	t, ok := readThreshold(raw)
	if !ok {
		return wrong("", "Alert has invalid threshold configuration: %s", pythonText(raw))
	}
	if t.Bounds != nil {
		r.Lower, r.Upper = t.Bounds.Lower, t.Bounds.Upper
	}
	r.Percent = t.Type == percentage
	switch {
	case r.Percent && r.Condition == AbsoluteValue:
		return wrong("", "Absolute value alerts require an absolute threshold, but a percentage threshold was configured")
	case r.Ongoing && r.Condition != RelativeDecrease && r.Upper == nil:
		return wrong("", "check_ongoing_interval is only supported for alert condition %s when upper threshold is specified", r.Condition)
	}
	return nil
}

// CheckBounds returns a *registry.FieldError if there is no bound to compare with.
func (r *Rule) CheckBounds() error {
	if r.Lower == nil && r.Upper == nil {
		return wrong("threshold__configuration", "At least one threshold bound (lower or upper) must be provided.")
	}
	return nil
}

func wrong(field, format string, args ...any) error {
	return &registry.FieldError{Field: field, Code: registry.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// firstMistake returns the first mistake of a query, in words for its author.
func firstMistake(err error) string {
	if all := compiler.Mistakes(err); len(all) > 0 {
		return all[0].Detail
	}
	return err.Error()
}

// strictly reads a JSON object that has no members other than the fields of v, and reports whether raw is one.
func strictly(raw json.RawMessage, v any) bool {
	if len(bytes.TrimSpace(raw)) == 0 || bytes.TrimSpace(raw)[0] != '{' {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v) == nil
}

// maxShownBytes is how many bytes of a wrong value a message shows at most.
const maxShownBytes = 200

// pythonText formats a JSON value as PostHog's messages do, truncated if it is long.
func pythonText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "None"
	}
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	writePython(&b, d)
	if b.Len() > maxShownBytes {
		return strings.ToValidUTF8(b.String()[:maxShownBytes], "") + "..."
	}
	return b.String()
}

// writePython writes the next value of d.
func writePython(b *strings.Builder, d *json.Decoder) {
	token, err := d.Token()
	if err != nil {
		return
	}
	switch v := token.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case json.Number:
		b.WriteString(v.String())
	case string:
		b.WriteString("'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(v) + "'")
	case json.Delim:
		b.WriteString(v.String())
		for first := true; d.More() && b.Len() <= maxShownBytes; first = false {
			if !first {
				b.WriteString(", ")
			}
			writePython(b, d)
			if v == '{' {
				b.WriteString(": ")
				writePython(b, d)
			}
		}
		b.WriteString(map[json.Delim]string{'{': "}", '[': "]"}[v])
		_, _ = d.Token() // the closing delimiter just written
	}
}
