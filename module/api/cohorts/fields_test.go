package cohorts

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestFiltersOfStatic: a static cohort takes no filters, except those that are in its record.
func TestFiltersOfStatic(t *testing.T) {
	const (
		people  = `{"properties": {"type": "AND", "values": [{"type": "person", "key": "plan", "value": "pro", "operator": "exact"}]}}`
		same    = `{"properties":{"values":[{"key":"plan","operator":"exact","type":"person","value":"pro"}],"type":"AND"}}`
		listed  = `{"kind": "HogQLQuery", "query": "select id from persons"}`
		refused = "A static cohort is filled from person ids, a CSV file or a query, not from filters. Set is_static to false."
	)
	static, dynamic := registry.To(true), registry.Field[bool]{}
	was := &registry.Cohort{Static: true, Filters: json.RawMessage(people)}
	for _, tt := range []struct {
		name, filters, query string
		before               *registry.Cohort
		static               registry.Field[bool]
		want, mistake        string
	}{
		{"no properties", `{"properties": {}}`, "", nil, static, "", ""},
		{"no values", `{"properties": {"type": "OR", "values": []}}`, "", nil, static, "", ""},
		{"no properties, and a query", `{"properties": {}}`, listed, nil, static, "", ""},
		{"no properties, sent back", `{"properties": {}}`, "", &registry.Cohort{Static: true}, dynamic, "", ""},
		{"no properties of a dynamic cohort", `{"properties": {}}`, "", nil, dynamic, `{"properties": {}}`, ""},
		{"no properties of one that becomes dynamic", `{"properties": {}}`, "", was, registry.To(false), `{"properties": {}}`, ""},
		{"unreadable ones", `{"properties": 5}`, "", nil, static, `{"properties": 5}`, ""},
		{"conditions", people, "", nil, static, people, refused},
		{"conditions and a query", people, listed, nil, static, people, "Cannot set both query and filters at the same time."},
		{"conditions for one that had none", people, "", &registry.Cohort{Static: true}, dynamic, people, refused},
		{"conditions that it has, sent back", same, "", was, dynamic, same, ""},
		{"conditions of one that becomes dynamic", people, "", &registry.Cohort{Static: true}, registry.To(false), people, ""},
	} {
		g := &given{CohortFields: registry.CohortFields{Static: tt.static, Filters: registry.To(json.RawMessage(tt.filters))}}
		if tt.query != "" {
			g.Query = registry.To(json.RawMessage(tt.query))
		}
		mistake := ""
		if err := g.check(tt.before); err != nil {
			mistake = api.ErrorOf(err).Detail
		}
		if diff := cmp.Diff([]string{tt.want, tt.mistake}, []string{string(g.Filters.Value), mistake}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestEmptyFields: what a client sends for no query and no groups counts as null.
func TestEmptyFields(t *testing.T) {
	for body, want := range map[string]string{
		`{"query": null}`: "", `{"query": {}}`: "", `{"query": { }}`: "", `{"query": {"kind": "HogQLQuery"}}`: `{"kind": "HogQLQuery"}`, `{"query": []}`: "[]",
	} {
		in := &api.Input{Request: httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(body))}
		in.Header.Set("Content-Type", "application/json")
		g, err := readGiven(in)
		if err != nil {
			t.Fatal(err)
		}
		if !g.Query.Given || string(g.Query.Value) != want {
			t.Errorf("%s is %+v, want %q", body, g.Query, want)
		}
	}
}
