package module

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestAnnotations writes annotations, and narrows lists of them.
func TestAnnotations(t *testing.T) {
	w, i := insightWorld(t)
	_, secret := w.newKey(t, w.project.ID, registry.Personal, "annotation:write")
	_, both := w.newKey(t, w.project.ID, registry.Personal, "annotation:read", "insight:read")
	const path = "/api/projects/1/annotations/"
	for _, body := range []string{
		`{"content": "Release", "date_marker": "2024-03-01", "scope": "project", "emoji": "x"}`,
		fmt.Sprintf(`{"content": "Dip", "date_marker": "2024-03-02T10:00:00+02:00", "dashboard_item": %d, "hidden_in_user_interface": true, "creation_type": "GIT", "id": 77, "created_by": 5}`, i.ID),
		`{"content": null, "date_marker": null, "scope": "organization"}`,
	} {
		if answer := w.as(t, secret, "POST", path, body); answer.Code != http.StatusCreated {
			t.Fatalf("%s answers %d %s", body, answer.Code, answer.Body)
		}
	}
	for query, want := range map[string]float64{
		"": 3, "?search=RELEASE": 1, "?scope=insight": 1, "?scope=recording": 0, "?is_emoji=true": 1, "?is_emoji=no": 2, "?hidden_in_user_interface=YES": 1,
		"?hidden_in_user_interface=0": 2, "?date_from=2024-03-02": 1, "?date_to=2024-03-02T08:00:00Z": 2, "?date_from=2024-03-02T08:00:01Z": 0, "?limit=1": 3,
	} {
		if answer := w.as(t, secret, "GET", path+query, ""); answer.Code != http.StatusOK || fieldOf(t, answer, "count") != want {
			t.Errorf("%q answers %d %s, want %v", query, answer.Code, answer.Body, want)
		}
	}
	if answer := w.as(t, both, "GET", path+"2/", ""); fieldOf(t, answer, "insight_short_id") != i.ShortID || fieldOf(t, answer, "date_marker") != "2024-03-02T08:00:00Z" {
		t.Errorf("an annotation of an insight: %s", answer.Body)
	}
	if answer := w.as(t, secret, "GET", path+"2/", ""); fieldOf(t, answer, "insight_short_id") != nil {
		t.Errorf("a key without insight:read gets %s", answer.Body)
	}
	if _, err := w.rt.registry.UpdateInsight(t.Context(), 1, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, w.key.ID, began); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "PATCH", "PUT"} {
		if answer := w.as(t, secret, method, path+"2/", `{"content": "x"}`); answer.Code != http.StatusNotFound {
			t.Errorf("%s of the annotation of a deleted insight answers %d %s", method, answer.Code, answer.Body)
		}
	}
}

// TestBadAnnotations: what is refused changes nothing.
func TestBadAnnotations(t *testing.T) {
	w := newWorld(t)
	other := w.newProject(t)
	_, secret := w.newKey(t, w.project.ID, registry.Personal, "annotation:write")
	_, theirs := w.newKey(t, other.ID, registry.Personal, "annotation:write")
	const path = "/api/projects/@current/annotations/"
	if answer := w.as(t, theirs, "POST", path, `{"content": "stranger", "scope": "organization"}`); answer.Code != http.StatusCreated {
		t.Fatal(answer.Body)
	}
	before := w.rt.registry.Snapshot().Revision
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
		answer := w.as(t, secret, tt.method, path+tt.path, tt.body)
		if got := fmt.Sprint(answer.Code, " ", fieldOf(t, answer, "attr"), " ", fieldOf(t, answer, "code")); got != tt.want || strings.Contains(answer.Body.String(), "stranger") {
			t.Errorf("%s: %s %s, want %s", tt.name, got, answer.Body, tt.want)
		}
	}
	if after := w.rt.registry.Snapshot().Revision; after != before {
		t.Error("refused requests changed something")
	}
	if answer := w.as(t, secret, "GET", path, ""); fieldOf(t, answer, "count") != 0.0 {
		t.Errorf("another project's annotations: %s", answer.Body)
	}
}

// TestPropertyDefinitions describes a property, and changes its type.
func TestPropertyDefinitions(t *testing.T) {
	w := newWorld(t)
	other := w.newProject(t)
	for _, p := range []int64{w.project.ID, other.ID} {
		if err := w.rt.registry.SetProperty(t.Context(), p, registry.PropertyDefinition{Scope: registry.PersonProperty, Name: "amount", Type: registry.PropertyNumeric}); err != nil {
			t.Fatal(err)
		}
	}
	_, secret := w.newKey(t, w.project.ID, registry.Personal, "property_definition:write")
	_, theirs := w.newKey(t, other.ID, registry.Personal, "property_definition:write")
	const path = "/api/projects/@current/property_definitions/"
	idFor := func(key string) string {
		results, _ := fieldOf(t, w.as(t, key, "GET", path+"?type=person", ""), "results").([]any)
		return results[0].(map[string]any)["id"].(string)
	}
	id := idFor(secret)
	for _, tt := range []struct{ body, want string }{
		{`{"description": "in euro", "tags": [" Money", "money"]}`, "200 in euro [money] Numeric true false false"},
		{`{"property_type": "Duration"}`, "200 in euro [money] Duration false false false"},
		{`{"property_type": null, "verified": true}`, "200 in euro [money] <nil> false true false"},
		{`{"property_type": "DateTime", "hidden": true}`, "200 in euro [money] DateTime false false true"},
		{`{"property_type": "Numeric", "hidden": false, "description": null, "name": "x"}`, "200 <nil> [money] Numeric true false false"},
		{`{"property_type": "none"}`, "400"},
		{`{"property_type": "Colour"}`, "400"},
		{`{"hidden": true, "verified": true}`, "400"},
		{`{"tags": "x"}`, "400"},
		{`{"tags": ["` + strings.Repeat("x", 256) + `"]}`, "400"},
		{`{"description": "` + strings.Repeat("x", 1<<17) + `"}`, "400"},
	} {
		answer := w.as(t, secret, "PATCH", path+id+"/", tt.body)
		got := fmt.Sprint(answer.Code)
		if answer.Code == http.StatusOK {
			for _, name := range []string{"description", "tags", "property_type", "is_numerical", "verified", "hidden"} {
				got += fmt.Sprint(" ", fieldOf(t, answer, name))
			}
		}
		if got != tt.want {
			t.Errorf("%.80s: %s %s, want %s", tt.body, got, answer.Body, tt.want)
		}
	}
	if answer := w.as(t, secret, "GET", path+strings.ToUpper(id)+"/", ""); fieldOf(t, answer, "property_type") != "Numeric" {
		t.Errorf("the property is %s", answer.Body)
	}
	for _, method := range []string{"GET", "PATCH"} {
		if answer := w.as(t, secret, method, path+idFor(theirs)+"/", `{"hidden": true}`); answer.Code != http.StatusNotFound {
			t.Errorf("%s of another project's property answers %d %s", method, answer.Code, answer.Body)
		}
	}
	if hidden := fieldOf(t, w.as(t, secret, "PATCH", path+id+"/", `{"hidden": true}`), "hidden"); hidden != true {
		t.Errorf("hidden is %v", hidden)
	}
	if count := fieldOf(t, w.as(t, secret, "GET", path+"?type=person&exclude_hidden=true", ""), "count"); count != 0.0 {
		t.Errorf("%v properties that are not hidden, want none", count)
	}
}
