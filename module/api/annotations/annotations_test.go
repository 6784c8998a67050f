package annotations_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestAnnotations writes annotations, and narrows lists of them.
func TestAnnotations(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "annotation:write")
	_, both := w.NewKey(t, w.Project.ID, registry.Personal, "annotation:read", "insight:read")
	const path = "/api/projects/1/annotations/"
	for _, body := range []string{
		`{"content": " Release of the app ", "date_marker": "2024-03-01", "scope": "project", "emoji": "x"}`,
		fmt.Sprintf(`{"content": "Dip", "date_marker": "2024-03-02T10:00:00+02:00", "dashboard_item": %d, "hidden_in_user_interface": true, "creation_type": "GIT", "id": 77, "created_by": 5}`, i.ID),
		`{"content": null, "date_marker": null, "scope": "organization"}`,
	} {
		if answer := w.SendAs(t, secret, "POST", path, body); answer.Code != http.StatusCreated {
			t.Fatalf("%s answers %d %s", body, answer.Code, answer.Body)
		}
	}
	for query, want := range map[string]float64{
		"": 3, "?search=RELEASE": 1, "?search=the,%20release": 1, "?search=release+nothing": 0, "?limit=0": 3,
		"?scope=insight": 1, "?scope=recording": 0, "?is_emoji=true": 1, "?is_emoji=no": 2, "?hidden_in_user_interface=YES": 1,
		"?hidden_in_user_interface=0": 2, "?date_from=2024-03-02": 1, "?date_to=2024-03-02T08:00:00Z": 2, "?date_from=2024-03-02T08:00:01Z": 0, "?limit=1": 3,
	} {
		if answer := w.SendAs(t, secret, "GET", path+query, ""); answer.Code != http.StatusOK || apitest.FieldOf(t, answer, "count") != want {
			t.Errorf("%q answers %d %s, want %v", query, answer.Code, answer.Body, want)
		}
	}
	if answer := w.SendAs(t, both, "GET", path+"2/", ""); apitest.FieldOf(t, answer, "insight_short_id") != i.ShortID || apitest.FieldOf(t, answer, "date_marker") != "2024-03-02T08:00:00Z" {
		t.Errorf("an annotation of an insight: %s", answer.Body)
	}
	if answer := w.SendAs(t, secret, "GET", path+"2/", ""); apitest.FieldOf(t, answer, "insight_short_id") != nil {
		t.Errorf("a key without insight:read gets %s", answer.Body)
	}
	if _, err := w.Registry.UpdateInsight(t.Context(), 1, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "PATCH", "PUT"} {
		if answer := w.SendAs(t, secret, method, path+"2/", `{"content": "x"}`); answer.Code != http.StatusNotFound {
			t.Errorf("%s of the annotation of a deleted insight answers %d %s", method, answer.Code, answer.Body)
		}
	}
}

// TestBadAnnotations: what is refused changes nothing.
func TestBadAnnotations(t *testing.T) {
	w := apitest.New(t)
	other := w.NewProject(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "annotation:write")
	_, theirs := w.NewKey(t, other.ID, registry.Personal, "annotation:write")
	const path = "/api/projects/@current/annotations/"
	if answer := w.SendAs(t, theirs, "POST", path, `{"content": "stranger", "scope": "organization"}`); answer.Code != http.StatusCreated {
		t.Fatal(answer.Body)
	}
	before := w.Registry.Snapshot().Revision
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"a scope", "POST", "", `{"scope": "galaxy"}`, "400 scope invalid_choice"},
		{"a scope of before", "POST", "", `{"scope": "recording"}`, "400 <nil> invalid_input"},
		{"null as scope", "POST", "", `{"scope": null}`, "400 scope null"},
		{"a moment", "POST", "", `{"date_marker": "soon"}`, "400 date_marker invalid"},
		{"a dashboard", "POST", "", `{"dashboard_id": 9}`, "400 dashboard_id invalid_input"},
		{"an insight", "POST", "", `{"dashboard_item": 9}`, "400 dashboard_item does_not_exist"},
		{"an insight that is not a number", "POST", "", `{"dashboard_item": "x"}`, "400 dashboard_item invalid_input"},
		{"a text that is too long", "POST", "", `{"content": "` + strings.Repeat("x", 8193) + `"}`, "400 content max_length"},
		{"an origin", "POST", "", `{"creation_type": "BOT"}`, "400 creation_type invalid_choice"},
		{"no JSON", "POST", "", `{`, "400 <nil> parse_error"},
		{"a scope to look for", "GET", "?scope=galaxy", "", "400 <nil> invalid_input"},
		{"a date to look for", "GET", "?date_to=" + url.QueryEscape("a b"), "", "400 <nil> invalid_input"},
		{"a name", "GET", "x/", "", "404 <nil> not_found"},
		{"another project's", "GET", "1/", "", "404 <nil> not_found"},
		{"a change of another project's", "PATCH", "1/", `{"deleted": true}`, "404 <nil> not_found"},
		{"DELETE", "DELETE", "1/", "", "405 <nil> method_not_allowed"},
	} {
		answer := w.SendAs(t, secret, tt.method, path+tt.path, tt.body)
		if got := fmt.Sprint(answer.Code, " ", apitest.FieldOf(t, answer, "attr"), " ", apitest.FieldOf(t, answer, "code")); got != tt.want || strings.Contains(answer.Body.String(), "stranger") {
			t.Errorf("%s: %s %s, want %s", tt.name, got, answer.Body, tt.want)
		}
	}
	if after := w.Registry.Snapshot().Revision; after != before {
		t.Error("refused requests changed something")
	}
	if answer := w.SendAs(t, secret, "GET", path, ""); apitest.FieldOf(t, answer, "count") != 0.0 {
		t.Errorf("another project's annotations: %s", answer.Body)
	}
}
