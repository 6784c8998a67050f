package alerts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// alertWorld returns a world whose key may save insights and alerts, with a trend that is insight 1.
func alertWorld(tb testing.TB) *apitest.World {
	tb.Helper()
	w := apitest.New(tb)
	w.Key, w.Secret = w.NewKey(tb, w.Project.ID, registry.Personal, "alert:write", "dashboard:write", "insight:write", "query:read")
	newTrend(tb, w, "watched")
	return w
}

// newTrend saves a trend with a tag, and returns its number.
func newTrend(tb testing.TB, w *apitest.World, tags ...string) int64 {
	tb.Helper()
	i, err := w.Registry.CreateInsight(tb.Context(), w.Project.ID, registry.InsightFields{
		Query: registry.To(json.RawMessage(`{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}]}}`)),
		Tags:  registry.To(tags),
	}, w.Key.ID, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	return i.ID
}

// newAlert creates an alert over the API, with more fields as JSON, and returns its id.
func newAlert(tb testing.TB, w *apitest.World, insight int64, more string) string {
	tb.Helper()
	if !strings.Contains(more, "subscribed_users") {
		more += `, "subscribed_users": []`
	}
	answer := w.Send(tb, http.MethodPost, "/api/projects/1/alerts/", fmt.Sprintf(`{"insight": %d, "condition": {"type": "absolute_value"},
		"threshold": {"configuration": {"type": "absolute", "bounds": {"upper": 1}}}, "config": {"type": "TrendsAlertConfig", "series_index": 0}%s}`, insight, more))
	id, ok := apitest.FieldOf(tb, answer, "id").(string)
	if !ok || answer.Code != http.StatusCreated {
		tb.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return id
}

// TestStartTimeOfAlerts: a new alert waits for its start time; a change of it leaves the next check where it is.
func TestStartTimeOfAlerts(t *testing.T) {
	w := alertWorld(t)
	type shown struct {
		ScheduleStartTime *string    `json:"schedule_start_time"`
		NextCheckAt       *time.Time `json:"next_check_at"`
	}
	path := "/api/projects/1/alerts/" + newAlert(t, w, 1, `, "schedule_start_time": " 7:05"`) + "/"
	get := func(method, body string) (got shown) {
		answer := w.Send(t, method, path, body)
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
		}
		return got
	}
	made := get(http.MethodGet, "")
	if made.NextCheckAt == nil {
		t.Fatal("the alert does not wait for its start time")
	}
	zone, err := time.LoadLocation(w.Project.Timezone)
	if err != nil {
		t.Fatal(err)
	}
	if first := made.NextCheckAt.In(zone).Format("15:04:05"); api.Deref(made.ScheduleStartTime) != "07:05" || first != "07:05:00" {
		t.Errorf("the alert that starts at %s is first checked at %s", api.Deref(made.ScheduleStartTime), first)
	}
	later := made
	later.ScheduleStartTime = new("23:59")
	if diff := cmp.Diff(later, get(http.MethodPatch, `{"schedule_start_time": "23:59"}`)); diff != "" {
		t.Errorf("another start time (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(later, get(http.MethodPatch, `{"name": "x", "investigation_inconclusive_action": "suppress"}`)); diff != "" {
		t.Errorf("another name (-want +got):\n%s", diff)
	}
	later.ScheduleStartTime = nil
	if diff := cmp.Diff(later, get(http.MethodPatch, `{"schedule_start_time": null}`)); diff != "" {
		t.Errorf("no start time (-want +got):\n%s", diff)
	}
	for _, given := range []string{`"24:00"`, `""`, `7`} {
		answer := w.Send(t, http.MethodPatch, path, `{"schedule_start_time": `+given+`}`)
		if attr := apitest.FieldOf(t, answer, "attr"); answer.Code != http.StatusBadRequest || attr != "schedule_start_time" {
			t.Errorf("%s: %d %s", given, answer.Code, answer.Body)
		}
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/1/alerts/"+newAlert(t, w, 1, "")+"/", ""); apitest.FieldOf(t, answer, "next_check_at") != nil {
		t.Errorf("an alert without a start time: %s", answer.Body)
	}
}

// TestOngoingByDefault: an alert that is checked more often than the insight's intervals end compares the one in progress, unless its config says otherwise.
func TestOngoingByDefault(t *testing.T) {
	w := alertWorld(t)
	path := "/api/projects/1/alerts/" + newAlert(t, w, 1, "") + "/"
	for _, tt := range []struct {
		change string
		want   any
	}{
		{`{"calculation_interval": "daily"}`, nil},
		{`{"calculation_interval": "hourly"}`, true},
		{`{"config": {"type": "TrendsAlertConfig", "series_index": 0, "check_ongoing_interval": false}}`, false},
		{`{"name": "other"}`, false},
		{`{"config": {"type": "TrendsAlertConfig", "series_index": 0}}`, true},
	} {
		answer := w.Send(t, http.MethodPatch, path, tt.change)
		config, ok := apitest.FieldOf(t, answer, "config").(map[string]any)
		if got := config["check_ongoing_interval"]; !ok || answer.Code != http.StatusOK || got != tt.want {
			t.Errorf("%s: check_ongoing_interval is %v, want %v: %d %s", tt.change, got, tt.want, answer.Code, answer.Body)
		}
	}
}

// TestOldAlertStaysOpen: an alert whose config left check_ongoing_interval open before that was decided keeps it, and its state, when it is renamed.
func TestOldAlertStaysOpen(t *testing.T) {
	w := alertWorld(t)
	id := newAlert(t, w, 1, `, "calculation_interval": "hourly"`)
	open := registry.Field[json.RawMessage]{Given: true, Value: json.RawMessage(`{"type": "TrendsAlertConfig", "series_index": 0}`)}
	if _, err := w.Registry.UpdateAlert(t.Context(), 1, id, registry.AlertFields{Config: open}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	before := w.Registry.Snapshot().Alert(1, id)
	answer := w.Send(t, http.MethodPatch, "/api/projects/1/alerts/"+id+"/", `{"name": "other"}`)
	after := w.Registry.Snapshot().Alert(1, id)
	if answer.Code != http.StatusOK || after.Name != "other" || !bytes.Equal(after.Config, before.Config) || !after.NextCheckAt.Equal(before.NextCheckAt) {
		t.Errorf("%d: config %s, before %s", answer.Code, after.Config, before.Config)
	}
}

// TestEvaluationDelay: the delay is kept and shown; a wrong one changes nothing.
func TestEvaluationDelay(t *testing.T) {
	w := alertWorld(t)
	path := "/api/projects/1/alerts/" + newAlert(t, w, 1, "") + "/"
	for _, tt := range []struct {
		change string
		code   int
		want   float64
	}{
		{`{"name": "x"}`, http.StatusOK, 0},
		{`{"evaluation_delay_intervals": 2}`, http.StatusOK, 2},
		{`{"name": "y"}`, http.StatusOK, 2},
		{`{"evaluation_delay_intervals": -1}`, http.StatusBadRequest, 2},
		{`{"evaluation_delay_intervals": 101}`, http.StatusBadRequest, 2},
		{`{"evaluation_delay_intervals": 1.5}`, http.StatusBadRequest, 2},
		{`{"evaluation_delay_intervals": true}`, http.StatusBadRequest, 2},
		{`{"evaluation_delay_intervals": null}`, http.StatusBadRequest, 2},
		{`{"config": {"type": "TrendsAlertConfig", "series_index": 0, "check_ongoing_interval": true}}`, http.StatusBadRequest, 2},
		{`{"evaluation_delay_intervals": 100}`, http.StatusOK, 100},
	} {
		answer := w.Send(t, http.MethodPatch, path, tt.change)
		if answer.Code != tt.code || tt.code == http.StatusBadRequest && apitest.FieldOf(t, answer, "attr") != "evaluation_delay_intervals" {
			t.Errorf("%s: %d %s", tt.change, answer.Code, answer.Body)
		}
		if got := apitest.FieldOf(t, w.Send(t, http.MethodGet, path, ""), "evaluation_delay_intervals"); got != tt.want {
			t.Errorf("%s: the delay is %v, want %v", tt.change, got, tt.want)
		}
	}
}

// TestRecordOfAlert: a record has the members that PostHog's clients read, and names the insight only to keys that may read it.
func TestRecordOfAlert(t *testing.T) {
	w := alertWorld(t)
	id := newAlert(t, w, 1, "")
	found := registry.CheckedAlert{AlertCheck: registry.AlertCheck{
		ID: "00000000-0000-7000-8000-000000000001", At: apitest.Began, State: registry.AlertErrored, Error: "It takes too long.",
	}, NextCheckAt: apitest.Began.Add(time.Hour)}
	if counts, err := w.Registry.RecordAlertCheck(t.Context(), w.Registry.Snapshot().Alert(w.Project.ID, id), found); err != nil || !counts {
		t.Fatal(counts, err)
	}
	type check struct {
		Error                  *struct{ Message string }
		NotificationSentAt     *time.Time `json:"notification_sent_at"`
		NotificationSuppressed *bool      `json:"notification_suppressed_by_agent"`
	}
	type record struct {
		Short        string  `json:"insight_short_id"`
		Name         *string `json:"insight_display_name"`
		Agent        *bool   `json:"investigation_agent_enabled"`
		Gates        *bool   `json:"investigation_gates_notifications"`
		Inconclusive string  `json:"investigation_inconclusive_action"`
		Checks       []check
	}
	want := record{
		Short: w.Registry.Snapshot().Insight(w.Project.ID, 1).ShortID, Name: new("Untitled insight"), Agent: new(false), Gates: new(false), Inconclusive: "notify",
		Checks: []check{{Error: &struct{ Message string }{"It takes too long."}, NotificationSuppressed: new(false)}},
	}
	show := func() (got record) {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/alerts/"+id+"/", "")
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		return got
	}
	if diff := cmp.Diff(want, show()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "alert:read")
	want.Name = nil
	if diff := cmp.Diff(want, show()); diff != "" {
		t.Errorf("for a key that may not read the insight (-want +got):\n%s", diff)
	}
}

// TestAlertsOfInsights: an insight comes with its alerts, on its own, in lists and on dashboards, for keys that may read them.
func TestAlertsOfInsights(t *testing.T) {
	w := alertWorld(t)
	other := newTrend(t, w)
	first, second := newAlert(t, w, 1, fmt.Sprintf(`, "name": "first", "subscribed_users": [%d]`, w.Key.User)), newAlert(t, w, 1, "")
	newAlert(t, w, other, "")
	if answer := w.Send(t, http.MethodPost, "/api/projects/1/dashboards/", `{"name": "d"}`); answer.Code != http.StatusCreated {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	if answer := w.Send(t, http.MethodPatch, "/api/projects/1/insights/1/", `{"dashboards": [1]}`); answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	type alert struct {
		ID              string
		Name            string
		Insight         struct{ ID int64 }
		SubscribedUsers []struct{ ID int64 } `json:"subscribed_users"`
	}
	type insight struct {
		ID     int64
		Alerts []alert
	}
	read := func(path string) []alert {
		t.Helper()
		answer := w.Send(t, http.MethodGet, "/api/projects/1/"+path, "")
		var got struct {
			Results []insight
			Tiles   []struct{ Insight insight }
		}
		var one insight
		if err := errors.Join(json.Unmarshal(answer.Body.Bytes(), &got), json.Unmarshal(answer.Body.Bytes(), &one)); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
		}
		all := append(slices.Clone(got.Results), one)
		for _, tile := range got.Tiles {
			all = append(all, tile.Insight)
		}
		for _, one := range all {
			if one.ID == 1 && len(one.Alerts) > 0 {
				return one.Alerts
			}
		}
		return nil
	}
	want := make([]alert, 2)
	want[0].ID, want[0].Name, want[0].SubscribedUsers = first, "first", []struct{ ID int64 }{{w.Key.User}}
	want[1].ID, want[1].SubscribedUsers = second, []struct{ ID int64 }{}
	want[0].Insight.ID, want[1].Insight.ID = 1, 1
	paths := []string{"insights/1/", "insights/", "dashboards/1/"}
	for _, path := range paths {
		if diff := cmp.Diff(want, read(path)); diff != "" {
			t.Errorf("%s: alerts (-want +got):\n%s", path, diff)
		}
	}
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "dashboard:read", "insight:read", "query:read")
	for _, path := range paths {
		if got := read(path); got != nil {
			t.Errorf("%s: a key that may not read alerts gets %v", path, got)
		}
	}
}

// TestManyAlertsOfInsight: an insight comes with its oldest alerts, as many as 256 KiB hold; the list of alerts has them all.
func TestManyAlertsOfInsight(t *testing.T) {
	const most = 256 << 10
	w := alertWorld(t)
	rule := registry.AlertFields{
		Insight: registry.To[int64](1), Interval: registry.To(registry.AlertDaily),
		Config: registry.To(json.RawMessage(`{"type": "TrendsAlertConfig", "more": "` + strings.Repeat("x", 30<<10) + `"}`)),
	}
	var want []string
	for range 10 {
		a, err := w.Registry.CreateAlert(t.Context(), w.Project.ID, rule, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, a.ID)
	}
	answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/1/", "")
	var got struct{ Alerts json.RawMessage }
	var alerts []struct{ ID string }
	if err := errors.Join(json.Unmarshal(answer.Body.Bytes(), &got), json.Unmarshal(got.Alerts, &alerts)); err != nil {
		t.Fatal(err)
	}
	if n := len(alerts); n < 7 || n > 8 || len(got.Alerts) > most {
		t.Errorf("%d alerts, in %d bytes", n, len(got.Alerts))
	}
	for i, a := range alerts {
		if a.ID != want[i] {
			t.Errorf("alert %d is %s, want %s", i, a.ID, want[i])
		}
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/1/alerts/?insight=1", ""); apitest.FieldOf(t, answer, "count") != 10.0 {
		t.Errorf("the list has %v alerts", apitest.FieldOf(t, answer, "count"))
	}
}

// TestFiltersOfAlerts lists alerts by the tags of their insights, and by whether they detect anomalies.
func TestFiltersOfAlerts(t *testing.T) {
	w := alertWorld(t)
	first, second := newAlert(t, w, 1, ""), newAlert(t, w, newTrend(t, w, "other"), "")
	list := func(query string) string {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/alerts/?"+query, "")
		var got api.Page[struct{ ID string }]
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
			return fmt.Sprint(answer.Code, " ", apitest.FieldOf(t, answer, "attr"))
		}
		var ids []string
		for _, a := range got.Results {
			ids = append(ids, a.ID)
		}
		return strings.Join(ids, " ")
	}
	for query, want := range map[string]string{
		"":                                      second + " " + first,
		"insight_tag=watched":                   first,
		"insight_tag=%20Other":                  second,
		"insight_tag=none":                      "",
		"has_detector=true":                     "",
		"has_detector=false":                    second + " " + first,
		"has_detector=0&insight_tag=watched":    first,
		"has_detector=perhaps":                  "400 has_detector",
		"insight_tag=watched&has_detector=True": "",
	} {
		if got := list(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "alert:read")
	if got := list("insight_tag=watched"); got != "403 <nil>" {
		t.Errorf("a key that may not read insights gets %q", got)
	}
}

// TestAlertsOfCachedInsights: keys that may read alerts share no page of a cached insight with those that may not, whichever asks first.
func TestAlertsOfCachedInsights(t *testing.T) {
	for _, order := range [][]bool{{true, false, true}, {false, true, false}} {
		w := alertWorld(t)
		newAlert(t, w, 1, `, "name": "secret"`)
		w.RememberInsight(t, w.Registry.Snapshot().Insight(w.Project.ID, 1), time.Now(), `[1,"x"]`)
		secrets := map[bool]string{true: w.Secret}
		_, secrets[false] = w.NewKey(t, w.Project.ID, registry.Personal, "insight:write", "query:read")
		for _, may := range order {
			w.Secret = secrets[may]
			answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/1/?refresh=force_cache", "")
			if shown := strings.Contains(answer.Body.String(), "secret"); answer.Code != http.StatusOK || shown != may {
				t.Errorf("order %v: a key that may read alerts (%t) gets %d %s", order, may, answer.Code, answer.Body)
			}
			if !strings.Contains(answer.Header().Get("Cache-Status"), "hit") {
				t.Fatalf("the answer does not come from the cache: %v", answer.Header())
			}
		}
	}
}
