package cohorts

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

func TestPersonsOfIsHogQL(t *testing.T) {
	for _, search := range []string{"", `a'%_\`} {
		if _, err := hogql.Parse(personsOf(5, search, 10, 20).Query); err != nil {
			t.Errorf("searching for %q: %v", search, err)
		}
	}
}

// TestFiltersOfMembers: filters on the members of a cohort are refused rather than ignored.
func TestFiltersOfMembers(t *testing.T) {
	const refused = `Members of a cohort cannot be filtered by properties here. Use /persons/ and add {"type": "cohort", "key": "id", "value": 5} to the filters.`
	for properties, want := range map[string]string{
		"": "", "[]": "", " {} ": "", "null": "", `[{"key": "plan", "value": "pro"}]`: refused, "x": refused,
	} {
		in := &api.Input{Request: httptest.NewRequest("GET", "/api/projects/1/cohorts/5/persons/?properties="+url.QueryEscape(properties), nil)}
		in.At.Name = "5"
		got := ""
		if err := refuseFilters(in); err != nil {
			got = api.ErrorOf(err).Detail
		}
		if got != want {
			t.Errorf("%q: %q, want %q", properties, got, want)
		}
	}
}
