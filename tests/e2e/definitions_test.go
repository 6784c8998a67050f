package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestDefinitions lists what is in a project before any query.
func TestDefinitions(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event":"$pageview","distinct_id":"ann","timestamp":"2024-03-01T10:00:00Z","properties":{"path":"/a","$browser":"Chrome","ms":12}}
{"event":"sign up","distinct_id":"bob","timestamp":"2024-03-01T11:00:00Z","properties":{"plan":"free","$feature/beta":true,"$set":{"email":"bob@example.org"}}}
{"event":"sign up","distinct_id":"eve","timestamp":"2024-03-03T09:00:00Z","properties":{"plan":"it's 'paid'"}}
{"event":"closed","distinct_id":"eve","timestamp":"2024-03-03T08:00:00Z"}
`)
	all := &harness.Client{Server: c.Server, Project: c.Project, Key: c.Server.Key(t, c.Project, "event_definition:read,property_definition:read,group:read", "personal")}
	tests := []struct {
		path string
		want []any
	}{
		{"event_definitions/", []any{"closed", "sign up", "$pageview"}},
		{"event_definitions/?ordering=-last_seen_at", []any{"sign up", "closed", "$pageview"}},
		{"event_definitions/?ordering=name&limit=2&offset=1", []any{"closed", "sign up"}},
		{"event_definitions/?ordering=age", []any{"closed", "sign up", "$pageview"}},
		{"event_definitions/?ordering=-last_seen_at::date,-name", []any{"sign up", "closed", "$pageview"}},
		{"event_definitions/?ordering=created_at&ordering=name", []any{"$pageview", "sign up", "closed"}},
		{"event_definitions/?search=UP%20sign", []any{"sign up"}},
		{"event_definitions/?search=e", []any{"closed", "$pageview"}},
		{"event_definitions/?event_type=event_custom", []any{"closed", "sign up"}},
		{"event_definitions/?event_type=event_posthog", []any{"$pageview"}},
		{"event_definitions/?names=closed,none&names=$pageview", []any{"closed", "$pageview"}},
		{"event_definitions/?excluded_properties=%5B%22closed%22%5D", []any{"sign up", "$pageview"}},
		{"event_definitions/?tags=%5B%22none%22%5D", []any{}},
		{"event_definitions/?exclude_stale=true", []any{}},
		{"event_definitions/?search=nothing", []any{}},
		{"property_definitions/?limit=50&offset=0&type=event&exclude_hidden=true", []any{"$browser", "$feature/beta", "ms", "path", "plan"}},
		{"property_definitions/?event_names=%5B%22sign%20up%22%5D&exclude_core_properties=true&filter_by_event_names=true&is_feature_flag=false&type=event", []any{"plan"}},
		{"property_definitions/?event_names=%5B%22sign%20up%22%5D", []any{"$feature/beta", "plan", "$browser", "ms", "path"}},
		{"property_definitions/?is_numerical=false", []any{"$browser", "$feature/beta", "ms", "path", "plan"}},
		{"property_definitions/?event_names=%5B%22it's%22%5D&filter_by_event_names=true", []any{}},
		{"property_definitions/?is_feature_flag=true", []any{"$feature/beta"}},
		{"property_definitions/?is_numerical=true", []any{"ms"}},
		{"property_definitions/?properties=path,ms,none&excluded_properties=%5B%22ms%22%5D", []any{"path"}},
		{"property_definitions/?type=person", []any{"email"}},
		{"property_definitions/?type=group&group_type_index=0", []any{}},
		{"property_definitions/?type=session", []any{}},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			names := []any{}
			results, _ := mustDo(t, all, http.StatusOK, http.MethodGet, tt.path, nil)["results"].([]any)
			for _, r := range results {
				record, _ := r.(map[string]any)
				names = append(names, record["name"])
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	results, _ := mustDo(t, all, http.StatusOK, http.MethodGet, "event_definitions/?search=sign", nil)["results"].([]any)
	event := any(map[string]any{"name": "sign up", "created_at": "2024-03-01T11:00:00Z", "last_seen_at": "2024-03-03T09:00:00Z", "tags": []any{}, "verified": false})
	if diff := cmp.Diff(event, harness.Only(event, results[0])); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	describeEvents(t, c)
	results, _ = mustDo(t, all, http.StatusOK, http.MethodGet, "property_definitions/?search=ms&event_names=%5B%22closed%22,%22$pageview%22%5D", nil)["results"].([]any)
	property := any(map[string]any{"name": "ms", "property_type": "Numeric", "is_numerical": true, "is_seen_on_filtered_events": true})
	if diff := cmp.Diff(property, harness.Only(property, results[0])); diff != "" {
		t.Errorf("property (-want +got):\n%s", diff)
	}
	if answer := all.Do(t, http.MethodGet, "groups_types/", nil); string(answer.Raw) != "[]\n" && string(answer.Raw) != "[]" {
		t.Errorf("no group types are %s", answer.Raw)
	}
	for path, attr := range map[string]string{
		"event_definitions/?event_type=thing": "event_type", "property_definitions/?type=thing": "type", "property_definitions/?type=group": "group_type_index",
		"property_definitions/?group_type_index=1": "group_type_index", "property_definitions/?event_names=x": "event_names",
	} {
		if answer := all.Do(t, http.MethodGet, path, nil); answer.Status != http.StatusBadRequest || fmt.Sprint(answer.Body["attr"]) != attr {
			t.Errorf("%s answers %d: %s", path, answer.Status, answer.Raw)
		}
	}
	other := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "property_definition:read", "personal"))
	if answer := other.Do(t, http.MethodGet, "event_definitions/", nil); answer.Status != http.StatusForbidden {
		t.Errorf("a key without the scope gets %d: %s", answer.Status, answer.Raw)
	}
}

// TestEventCode requests a project's events as code. The form and validity of the code are tested where it is generated.
func TestEventCode(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event":"$pageview","distinct_id":"ann","timestamp":"2024-03-01T10:00:00Z","properties":{"path":"/a","$browser":"Chrome"}}
{"event":"$identify","distinct_id":"ann","timestamp":"2024-03-01T10:00:00Z","properties":{"path":"/a"}}
{"event":"or\"der","distinct_id":"bob","timestamp":"2024-03-01T11:00:00Z","properties":{"amount":12.5,"at":"2024-03-01T11:00:00Z","gift":true,"items":["a"],"to":{"city":"x"},"note":"n","odd":"x","none":null}}
{"event":"or\"der","distinct_id":"eve","timestamp":"2024-03-03T09:00:00Z","properties":{"amount":1,"odd":[1]}}
`)
	reader := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "event_definition:read", "personal"))
	writer := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "event_definition:write", "personal"))
	other := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "property_definition:read", "personal"))
	mustDo(t, writer, http.StatusCreated, http.MethodPost, "event_definitions/", fields{"name": "refunded"})
	hashes := map[any]bool{}
	for language, want := range map[string][]string{
		"typescript": {
			`    "$pageview": {`, `        "path"?: string`, `    "or\"der": {`, `        "amount"?: number`, `        "at"?: string | Date`, `        "gift"?: boolean`,
			`        "items"?: any[]`, `        "note"?: string`, `        "odd"?: any`, `        "to"?: Record<string, any>`, `    "refunded": Record<string, any>`,
		},
		"golang": {`func OrDerWithAt(value time.Time) OrDerOption {`, `func RefundedCapture(distinctID string, options ...RefundedOption) posthog.Capture {`},
		"python": {`        "items": List[Any],`, `def capture(event: Literal["or\"der"], *, properties: Optional[OrDerProperties] = ..., **kwargs: Any) -> Optional[str]: ...`},
	} {
		answer := mustDo(t, reader, http.StatusOK, http.MethodGet, "event_definitions/"+language+"/", nil)
		content, _ := answer["content"].(string)
		for _, line := range want {
			if !strings.Contains(content, "\n"+line+"\n") {
				t.Errorf("%s has no line %s:\n%s", language, line, content)
			}
		}
		if answer["event_count"] != 3.0 || strings.Contains(content, "identify") || strings.Contains(content, "browser") || strings.Contains(content, "none") {
			t.Errorf("%s has %v events:\n%s", language, answer["event_count"], content)
		}
		hashes[answer["schema_hash"]] = true
		if again := mustDo(t, reader, http.StatusOK, http.MethodGet, "event_definitions/"+language, nil); again["schema_hash"] != answer["schema_hash"] {
			t.Errorf("%s has the hashes %v and %v", language, answer["schema_hash"], again["schema_hash"])
		}
		if answer := other.Do(t, http.MethodGet, "event_definitions/"+language+"/", nil); answer.Status != http.StatusForbidden {
			t.Errorf("%s for a key without the scope: %d %s", language, answer.Status, answer.Raw)
		}
	}
	if len(hashes) != 3 {
		t.Errorf("the hashes are %v", hashes)
	}
	if answer := reader.Do(t, http.MethodGet, "event_definitions/cobol/", nil); answer.Status != http.StatusNotFound {
		t.Errorf("another language: %d %s", answer.Status, answer.Raw)
	}
}

// describeEvents describes an event that was seen, and defines one that was not.
func describeEvents(t *testing.T, c *harness.Client) {
	t.Helper()
	writer := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "event_definition:write", "personal"))
	found := mustDo(t, writer, http.StatusOK, http.MethodGet, "event_definitions/by_name/?name=sign%20up", nil)
	path := fmt.Sprintf("event_definitions/%s/", found["id"])
	for _, tt := range []struct{ body, want fields }{
		{fields{"description": "A new account", "tags": []string{"Growth"}, "verified": true}, fields{"description": "A new account", "tags": []any{"growth"}, "verified": true, "hidden": false}},
		{fields{"hidden": true}, fields{"description": "A new account", "verified": false, "verified_by": nil, "hidden": true}},
	} {
		for _, answer := range []any{mustDo(t, writer, http.StatusOK, http.MethodPatch, path, tt.body), mustDo(t, writer, http.StatusOK, http.MethodGet, path, nil)} {
			if diff := cmp.Diff(any(tt.want), harness.Only(any(tt.want), answer)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tt.body, diff)
			}
		}
	}
	mustDo(t, writer, http.StatusOK, http.MethodPatch, path, fields{"hidden": false})
	made := mustDo(t, writer, http.StatusCreated, http.MethodPost, "event_definitions/", fields{"name": "refunded", "description": "soon"})
	wanted := any(fields{"name": "refunded", "description": "soon", "last_seen_at": nil})
	if diff := cmp.Diff(wanted, harness.Only(wanted, mustDo(t, writer, http.StatusOK, http.MethodGet, fmt.Sprintf("event_definitions/%s/", made["id"]), nil))); diff != "" {
		t.Errorf("an event that was not seen (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		method, path string
		body         any
		status       int
	}{
		{http.MethodPost, "event_definitions/", fields{"name": "refunded"}, 400},
		{http.MethodPost, "event_definitions/", fields{"name": "closed"}, 400},
		{http.MethodPost, "event_definitions/", fields{"name": " "}, 400},
		{http.MethodPatch, path, fields{"hidden": true, "verified": true}, 400},
		{http.MethodPatch, path, fields{"tags": 7}, 400},
		{http.MethodPatch, "event_definitions/00000000-0000-4000-8000-000000000000/", fields{"hidden": true}, 404},
		{http.MethodGet, "event_definitions/by_name/?name=sign", nil, 404},
		{http.MethodGet, "event_definitions/by_name/", nil, 400},
		{http.MethodDelete, path, nil, 405},
	} {
		if answer := writer.Do(t, tt.method, tt.path, tt.body); answer.Status != tt.status {
			t.Errorf("%s %s %v answers %d %s, want %d", tt.method, tt.path, tt.body, answer.Status, answer.Raw, tt.status)
		}
	}
}
