package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// alertDays is the number of events of each browser today, yesterday, and so on.
var alertDays = map[string][]int{"Chrome": {5, 9, 3, 0, 7}, "Firefox": {2, 0, 6, 1, 1}, "Safari": {0, 4, 0, 0, 2}}

// alertProject makes a project with these events.
func alertProject(t *testing.T, today time.Time) *harness.Client {
	t.Helper()
	c := newProject(t)
	var lines strings.Builder
	for browser, counts := range alertDays {
		for ago, count := range counts {
			for n := range count {
				fmt.Fprintf(&lines, `{"event":"view","distinct_id":"p%d","timestamp":%q,"properties":{"$browser":%q}}`+"\n",
					n, today.AddDate(0, 0, -ago).Add(time.Millisecond).Format(time.RFC3339Nano), browser)
			}
		}
	}
	importLines(t, c, lines.String())
	return c
}

func newInsight(t *testing.T, c *harness.Client, more fields) float64 {
	t.Helper()
	node := fields{"kind": "TrendsQuery", "series": []any{fields{"kind": "EventsNode", "event": "nothing"}, fields{"kind": "EventsNode", "event": "view"}}}
	maps.Copy(node, more)
	made := c.Do(t, http.MethodPost, "insights/", fields{"query": fields{"kind": "InsightVizNode", "source": node}})
	id, ok := made.Body["id"].(float64)
	if !ok {
		t.Fatalf("creating an insight: %d %s", made.Status, made.Raw)
	}
	return id
}

// alertCase is an alert, with the expected result computed in plain Go.
type alertCase struct {
	condition      string
	percent        bool
	ongoing, split bool
	lower, upper   *float64
}

func (a *alertCase) fields(insight float64) fields {
	kind := "absolute"
	if a.percent {
		kind = "percentage"
	}
	bounds := fields{}
	if a.lower != nil {
		bounds["lower"] = *a.lower
	}
	if a.upper != nil {
		bounds["upper"] = *a.upper
	}
	return fields{
		"insight": insight, "subscribed_users": []any{}, "condition": fields{"type": a.condition},
		"config":    fields{"type": "TrendsAlertConfig", "series_index": 1, "check_ongoing_interval": a.ongoing},
		"threshold": fields{"configuration": fields{"type": kind, "bounds": bounds}}, "calculation_interval": "daily",
	}
}

// values returns the compared value of each line; infinite for an increase from nothing.
func (a *alertCase) values() []float64 {
	lines := [][]int{make([]int, 5)}
	if a.split {
		lines = nil
	}
	for _, counts := range alertDays {
		if a.split {
			lines = append(lines, counts)
			continue
		}
		for i, n := range counts {
			lines[0][i] += n
		}
	}
	at := 1
	if a.ongoing && a.condition != "relative_decrease" {
		at = 0
	}
	var out []float64
	for _, counts := range lines {
		now, before := float64(counts[at]), float64(counts[at+1])
		switch value := now - before; {
		case a.condition == "absolute_value":
			out = append(out, now)
		case !a.percent:
			out = append(out, map[bool]float64{true: value, false: -value}[a.condition == "relative_increase"])
		case before == 0 && now == 0:
			out = append(out, 0)
		case before == 0:
			out = append(out, math.Inf(1))
		default:
			out = append(out, map[bool]float64{true: value, false: -value}[a.condition == "relative_increase"]/before)
		}
	}
	return out
}

// wrong returns how a check differs from the expected one; empty if it does not.
func (a *alertCase) wrong(check map[string]any) string {
	values := a.values()
	var crossed []any
	for _, v := range values {
		if a.lower != nil && v < *a.lower || a.upper != nil && v > *a.upper {
			crossed = append(crossed, map[bool]any{true: nil, false: v}[math.IsInf(v, 0)])
		}
	}
	state, want := "Firing", crossed
	if len(crossed) == 0 {
		state, want = "Not firing", []any{nil}
		if !a.split {
			want = []any{values[0]}
		}
	}
	for _, value := range want {
		if check["state"] == state && near(check["calculated_value"], value) {
			return ""
		}
	}
	return fmt.Sprintf("%v, want %s and one of %v", check, state, want)
}

func near(a, b any) bool {
	x, isX := a.(float64)
	y, isY := b.(float64)
	return isX == isY && math.Abs(x-y) < 1e-9
}

// TestAlertRule compares the checks of many alerts with plain Go.
func TestAlertRule(t *testing.T) {
	t.Parallel() // it waits for checks
	today := time.Now().UTC().Truncate(24 * time.Hour)
	c := alertProject(t, today)
	insights := map[bool]float64{false: newInsight(t, c, nil), true: newInsight(t, c, fields{"breakdownFilter": fields{"breakdown": "$browser", "breakdown_type": "event"}})}
	rng := rand.New(rand.NewPCG(7, 7))
	cases := map[string]*alertCase{}
	for len(cases) < 60 {
		a := &alertCase{condition: []string{"absolute_value", "relative_increase", "relative_decrease"}[rng.IntN(3)], ongoing: rng.IntN(2) == 0, split: rng.IntN(2) == 0}
		a.percent = a.condition != "absolute_value" && rng.IntN(2) == 0
		lower, upper := float64(rng.IntN(20)-10), float64(rng.IntN(20)-10)
		if a.percent {
			lower, upper = lower/4, upper/4
		}
		lower, upper = min(lower, upper), max(lower, upper)
		if which := rng.IntN(3); which != 0 || a.ongoing && a.condition != "relative_decrease" {
			a.upper = &upper
		} else if which != 1 {
			a.lower = &lower
		}
		made := c.Do(t, http.MethodPost, "alerts/", a.fields(insights[a.split]))
		id, ok := made.Body["id"].(string)
		if made.Status != http.StatusCreated || !ok {
			t.Fatalf("creating an alert: %d %s", made.Status, made.Raw)
		}
		cases[id] = a
	}
	firing := 0
	for id, a := range cases {
		check := firstCheck(t, c, id)
		if wrong := a.wrong(check); wrong != "" && time.Now().UTC().Truncate(24*time.Hour).Equal(today) {
			t.Errorf("%+v: %s", *a, wrong)
		}
		if check["state"] == "Firing" {
			firing++
		}
	}
	if firing < 15 || firing > 45 {
		t.Errorf("%d of 60 alerts fire: that says little", firing)
	}
}

// firstCheck waits for an alert's first check.
func firstCheck(t *testing.T, c *harness.Client, id string) map[string]any {
	t.Helper()
	var check map[string]any
	harness.Eventually(t, 2*time.Minute, func() error {
		answer, err := c.Send(http.MethodGet, "alerts/"+id+"/", nil)
		if err != nil {
			return err
		}
		checks, _ := answer.Body["checks"].([]any)
		if len(checks) == 0 {
			return fmt.Errorf("no check: %s", answer.Raw)
		}
		check, _ = checks[len(checks)-1].(map[string]any)
		return nil
	})
	return check
}

// TestAlertsOfTotals: a single number for the whole range is compared directly.
func TestAlertsOfTotals(t *testing.T) {
	t.Parallel() // it waits for checks
	c := alertProject(t, time.Now().UTC().Truncate(24*time.Hour))
	insight := newInsight(t, c, fields{"trendsFilter": fields{"display": "BoldNumber"}, "dateRange": fields{"date_from": "-30d"}})
	body := (&alertCase{condition: "absolute_value", upper: new(39.0)}).fields(insight)
	made := c.Do(t, http.MethodPost, "alerts/", body)
	id, _ := made.Body["id"].(string)
	if check := firstCheck(t, c, id); check["state"] != "Firing" || check["calculated_value"] != 40.0 || check["targets_notified"] != false {
		t.Errorf("%v", check)
	}
	refused := c.Do(t, http.MethodPatch, "alerts/"+id+"/", fields{"condition": fields{"type": "relative_increase"}})
	if refused.Status != http.StatusBadRequest || !strings.Contains(string(refused.Raw), "not compatible with non time series trends") {
		t.Errorf("%d %s", refused.Status, refused.Raw)
	}
}

// TestAlertsOfSums: running sums start where the insight's do, and means are of as many days as the insight's.
func TestAlertsOfSums(t *testing.T) {
	t.Parallel() // it waits for checks
	today := time.Now().UTC().Truncate(24 * time.Hour)
	c := alertProject(t, today)
	for _, tt := range []struct {
		filter fields
		want   float64
	}{
		{fields{"display": "ActionsLineGraphCumulative"}, 33}, // 10 + 1 + 9 + 13
		{fields{"smoothingIntervals": 3}, 7},                  // (1 + 9 + 13) / 3, rounded down
	} {
		insight := newInsight(t, c, fields{"trendsFilter": tt.filter, "dateRange": fields{"date_from": "-30d"}})
		made := c.Do(t, http.MethodPost, "alerts/", (&alertCase{condition: "absolute_value", upper: new(tt.want - 1)}).fields(insight))
		id, _ := made.Body["id"].(string)
		check := firstCheck(t, c, id)
		if (check["state"] != "Firing" || check["calculated_value"] != tt.want) && time.Now().UTC().Truncate(24*time.Hour).Equal(today) {
			t.Errorf("%v: %v, want %v", tt.filter, check, tt.want)
		}
	}
	box := newInsight(t, c, fields{
		"series": []any{fields{"kind": "EventsNode", "event": "view", "math_property": "n"}}, "trendsFilter": fields{"display": "BoxPlot"},
	})
	body := (&alertCase{condition: "absolute_value", upper: new(1.0)}).fields(box)
	body["config"] = fields{"type": "TrendsAlertConfig", "series_index": 0}
	if refused := c.Do(t, http.MethodPost, "alerts/", body); refused.Status != http.StatusBadRequest || refused.Body["detail"] != "Alerts are not supported for this insight." {
		t.Errorf("a box plot: %d %s", refused.Status, refused.Raw)
	}
}

// TestAlertMistakes: mistakes are refused in PostHog's words, and change nothing.
func TestAlertMistakes(t *testing.T) {
	c := newProject(t)
	insight := newInsight(t, c, nil)
	funnel := c.Do(t, http.MethodPost, "insights/", fields{"query": fields{"kind": "FunnelsQuery", "series": seriesOf("a", "b")}}).Body["id"]
	good := func(change fields) fields {
		body := (&alertCase{condition: "absolute_value", upper: new(5.0)}).fields(insight)
		for name, value := range change {
			if body[name] = value; value == "absent" {
				delete(body, name)
			}
		}
		return body
	}
	made := c.Do(t, http.MethodPost, "alerts/", good(nil))
	id, _ := made.Body["id"].(string)
	threshold := func(kind string, bounds fields) fields {
		return fields{"configuration": fields{"type": kind, "bounds": bounds}}
	}
	for _, tt := range []struct {
		name             string
		change           fields
		attr, code, says string
	}{
		{"no insight", fields{"insight": "absent"}, "insight", "required", "This field is required."},
		{"an unknown insight", fields{"insight": 123456}, "insight", "does_not_exist", `Invalid pk "123456" - object does not exist.`},
		{"a funnel", fields{"insight": funnel}, "insight", "invalid_input", "Alerts are not supported for this insight."},
		{"an object for an insight", fields{"insight": fields{"id": 1}}, "insight", "incorrect_type", "Incorrect type. Expected pk value, received dict."},
		{"no users", fields{"subscribed_users": "absent"}, "subscribed_users", "required", "This field is required."},
		{"an unknown user", fields{"subscribed_users": []any{99999}}, "subscribed_users", "does_not_exist", `Invalid pk "99999" - object does not exist.`},
		{"a text for users", fields{"subscribed_users": "x"}, "subscribed_users", "not_a_list", `Expected a list of items but got type "str".`},
		{"no threshold", fields{"threshold": "absent"}, "threshold", "required", "This field is required."},
		{"an empty threshold", fields{"threshold": fields{}}, "threshold__configuration", "required", "This field is required."},
		{"a text for a threshold", fields{"threshold": "x"}, "threshold__non_field_errors", "invalid_input", "Invalid data. Expected a dictionary, but got str."},
		{"no bound", fields{"threshold": threshold("absolute", fields{})}, "threshold__configuration", "invalid_input", "At least one threshold bound (lower or upper) must be provided."},
		{"crossed bounds", fields{"threshold": threshold("absolute", fields{"lower": 2, "upper": 1})}, "threshold__non_field_errors", "invalid_input", "Lower threshold must be less than upper threshold"},
		{"a percentage", fields{"threshold": threshold("percentage", fields{"upper": 1})}, "", "invalid_input", "Absolute value alerts require an absolute threshold, but a percentage threshold was configured"},
		{"no condition", fields{"condition": "absent"}, "", "invalid_input", "Alert has invalid condition: None"},
		{"another condition", fields{"condition": fields{"type": "bogus"}}, "", "invalid_input", "Alert has invalid condition: {'type': 'bogus'}"},
		{"a wrong series", fields{"config": fields{"type": "TrendsAlertConfig", "series_index": 2}}, "", "invalid_input", "series_index 2 is out of range (query has 2 series)"},
		{"an unknown interval", fields{"calculation_interval": "yearly"}, "calculation_interval", "invalid_choice", `"yearly" is not a valid choice.`},
		{"no interval", fields{"calculation_interval": nil}, "calculation_interval", "null", "This field may not be null."},
		{"a long name", fields{"name": strings.Repeat("x", 256)}, "name", "max_length", "Ensure this field has no more than 255 characters."},
		{"quiet all day", fields{"schedule_restriction": fields{"blocked_windows": []any{fields{"start": "00:00", "end": "12:00"}, fields{"start": "12:00", "end": "00:00"}}}}, "schedule_restriction", "invalid_input", "Invalid schedule restriction."},
		{"a number for a time", fields{"snoozed_until": 5}, "snoozed_until", "invalid_input", "snoozed_until has to be passed in string format"},
		{"no time", fields{"snoozed_until": "soon"}, "snoozed_until", "invalid_input", `"soon" is not a date, and not a time from now such as 2h or 1d.`},
		{"anomalies", fields{"detector_config": fields{"type": "zscore"}}, "detector_config", "invalid_input", "Anomaly detection is not supported."},
		{"no URL", fields{"webhook_url": "ftp://x"}, "webhook_url", "invalid_input", "Enter a valid URL, such as https://example.com/alerts."},
		{"a short secret", fields{"webhook_secret": "x"}, "webhook_secret", "invalid_input", "The secret must have 16 to 256 characters."},
	} {
		answer := c.Do(t, http.MethodPost, "alerts/", good(tt.change))
		attr, _ := answer.Body["attr"].(string)
		if answer.Status != http.StatusBadRequest || attr != tt.attr || answer.Body["code"] != tt.code || answer.Body["detail"] != tt.says {
			t.Errorf("%s: %d %s", tt.name, answer.Status, answer.Raw)
		}
		if tt.code == "required" {
			continue // PATCH requires nothing
		}
		patch := fields{}
		for name, value := range tt.change {
			if value != "absent" {
				patch[name] = value
			}
		}
		if answer := c.Do(t, http.MethodPatch, "alerts/"+id+"/", patch); len(patch) > 0 && answer.Status != http.StatusBadRequest {
			t.Errorf("PATCH with %s: %d %s", tt.name, answer.Status, answer.Raw)
		}
	}
	if list := c.Do(t, http.MethodGet, "alerts/", nil); list.Body["count"] != 1.0 || list.Body["results"].([]any)[0].(map[string]any)["state"] != "Not firing" {
		t.Errorf("%s", list.Raw)
	}
}

// TestAlertNames: as everywhere, a name can be a number.
func TestAlertNames(t *testing.T) {
	c := newProject(t)
	body := (&alertCase{condition: "absolute_value", upper: new(5.0)}).fields(newInsight(t, c, nil))
	body["name"] = 5
	if made := c.Do(t, http.MethodPost, "alerts/", body); made.Status != http.StatusCreated || made.Body["name"] != "5" {
		t.Errorf("%d %s", made.Status, made.Raw)
	}
}

// TestAlertLists tests filters and searches, and what happens when an insight is deleted.
func TestAlertLists(t *testing.T) {
	c := newProject(t)
	one, two := newInsight(t, c, nil), newInsight(t, c, nil)
	for name, insight := range map[string]float64{"Sign-ups": one, "Page views": two} {
		body := (&alertCase{condition: "absolute_value", upper: new(5.0)}).fields(insight)
		body["name"] = name
		if made := c.Do(t, http.MethodPost, "alerts/", body); made.Status != http.StatusCreated {
			t.Fatalf("%d %s", made.Status, made.Raw)
		}
	}
	names := func(query string) string {
		t.Helper()
		answer := c.Do(t, http.MethodGet, "alerts/"+query, nil)
		var page struct {
			Results []struct {
				Name string
				By   struct{ UUID string } `json:"created_by"`
			}
		}
		if err := json.Unmarshal(answer.Raw, &page); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Raw)
		}
		var out []string
		for _, r := range page.Results {
			out = append(out, r.Name)
		}
		return strings.Join(out, ", ")
	}
	for query, want := range map[string]string{
		fmt.Sprintf("?insight=%v", one): "Sign-ups", fmt.Sprintf("?insight_id=%v", two): "Page views", "?insight=99999": "", "?search=page": "Page views",
		"?search=sing-ups": "Sign-ups", "?search=nothing+like+it": "", "?created_by=00000000-0000-0000-0000-000000000000": "",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"?created_by=x", "?insight=x", "?search=" + strings.Repeat("x", 201)} {
		if answer := c.Do(t, http.MethodGet, "alerts/"+query, nil); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, answer.Status)
		}
	}
	path := fmt.Sprintf("insights/%v/", one)
	c.Do(t, http.MethodPatch, path, fields{"deleted": true})
	if got := names(""); got != "Page views" {
		t.Errorf("after the deletion of an insight: %q", got)
	}
	c.Do(t, http.MethodPatch, path, fields{"deleted": false})
	if got := names(fmt.Sprintf("?insight=%v", one)); got != "Sign-ups" {
		t.Errorf("after its restoration: %q", got)
	}
	c.Do(t, http.MethodPatch, path, fields{"query": fields{"kind": "FunnelsQuery", "series": seriesOf("a", "b")}})
	if got := names(""); got != "Page views" {
		t.Errorf("after another query: %q", got)
	}
}

// TestAlertTenancy: a key of one project can neither see nor change another's alerts, and no alert can watch another project's insight.
func TestAlertTenancy(t *testing.T) {
	mine, theirs := newProject(t), newProject(t)
	body := (&alertCase{condition: "absolute_value", upper: new(5.0)}).fields(newInsight(t, theirs, nil))
	made := theirs.Do(t, http.MethodPost, "alerts/", body)
	id, _ := made.Body["id"].(string)
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
		if answer := mine.Do(t, method, "alerts/"+id+"/", fields{"name": "x"}); answer.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", method, answer.Status, answer.Raw)
		}
	}
	if answer := mine.Do(t, http.MethodPost, "alerts/", body); answer.Status != http.StatusBadRequest || answer.Body["code"] != "does_not_exist" {
		t.Errorf("an alert on another project's insight: %d %s", answer.Status, answer.Raw)
	}
	if answer := mine.Do(t, http.MethodGet, "alerts/", nil); answer.Body["count"] != 0.0 {
		t.Errorf("%s", answer.Raw)
	}
	if answer := theirs.Do(t, http.MethodDelete, "alerts/"+id+"/", nil); answer.Status != http.StatusNoContent {
		t.Errorf("%d %s", answer.Status, answer.Raw)
	}
	reader := theirs.Server.Client(theirs.Project, theirs.Server.Key(t, theirs.Project, "alert:read", "personal"))
	if answer := reader.Do(t, http.MethodPost, "alerts/", body); answer.Status != http.StatusForbidden {
		t.Errorf("alert:read creates: %d %s", answer.Status, answer.Raw)
	}
}
