package definitions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestPropertyDefinitions describes a property, and changes its type.
func TestPropertyDefinitions(t *testing.T) {
	w := apitest.New(t)
	other := w.NewProject(t)
	for _, p := range []int64{w.Project.ID, other.ID} {
		if err := w.Registry.SetProperty(t.Context(), p, registry.PropertyDefinition{Scope: registry.PersonProperty, Name: "amount", Type: registry.PropertyNumeric}); err != nil {
			t.Fatal(err)
		}
	}
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "property_definition:write")
	_, theirs := w.NewKey(t, other.ID, registry.Personal, "property_definition:write")
	const path = "/api/projects/@current/property_definitions/"
	idFor := func(key string) string {
		results, _ := apitest.FieldOf(t, w.SendAs(t, key, "GET", path+"?type=person", ""), "results").([]any)
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
		answer := w.SendAs(t, secret, "PATCH", path+id+"/", tt.body)
		got := fmt.Sprint(answer.Code)
		if answer.Code == http.StatusOK {
			for _, name := range []string{"description", "tags", "property_type", "is_numerical", "verified", "hidden"} {
				got += fmt.Sprint(" ", apitest.FieldOf(t, answer, name))
			}
		}
		if got != tt.want {
			t.Errorf("%.80s: %s %s, want %s", tt.body, got, answer.Body, tt.want)
		}
	}
	if answer := w.SendAs(t, secret, "GET", path+strings.ToUpper(id)+"/", ""); apitest.FieldOf(t, answer, "property_type") != "Numeric" {
		t.Errorf("the property is %s", answer.Body)
	}
	for _, method := range []string{"GET", "PATCH"} {
		if answer := w.SendAs(t, secret, method, path+idFor(theirs)+"/", `{"hidden": true}`); answer.Code != http.StatusNotFound {
			t.Errorf("%s of another project's property answers %d %s", method, answer.Code, answer.Body)
		}
	}
	if hidden := apitest.FieldOf(t, w.SendAs(t, secret, "PATCH", path+id+"/", `{"hidden": true}`), "hidden"); hidden != true {
		t.Errorf("hidden is %v", hidden)
	}
	if count := apitest.FieldOf(t, w.SendAs(t, secret, "GET", path+"?type=person&exclude_hidden=true", ""), "count"); count != 0.0 {
		t.Errorf("%v properties that are not hidden, want none", count)
	}
}
