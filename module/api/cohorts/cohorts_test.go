package cohorts

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestBehaviors: a dynamic cohort depends on events through other dynamic cohorts too, and a static one never.
func TestBehaviors(t *testing.T) {
	r := sqlitetest.Open(t, registry.Options{})
	p, err := r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const (
		viewed = `{"type": "behavioral", "key": "view", "event_type": "events", "value": "performed_event", "time_value": 30, "time_interval": "day"}`
		plan   = `{"type": "person", "key": "plan", "value": "pro", "operator": "exact"}`
	)
	of := func(id string) string { return `{"type": "cohort", "key": "id", "value": ` + id + `}` }
	want, got := map[string]bool{}, map[string]bool{}
	var all []*registry.Cohort
	for _, tt := range []struct {
		name, filter string
		static, want bool
	}{
		{"1: an event", viewed, false, true},
		{"2: a property", plan, false, false},
		{"3: static, with the filters it once had", viewed, true, false},
		{"4: of 1", of("1"), false, true},
		{"5: of 4", plan + ", " + of("4"), false, true},
		{"6: of 3", of("3"), false, false},
		{"7: of 2", of("2"), false, false},
		{"8: of one that does not exist", of("99"), false, false},
		{"9: of itself", of("9"), false, false},
		{"10: unreadable", `{}`, false, false},
	} {
		made, err := r.CreateCohort(t.Context(), registry.NewCohort{Project: p.ID, CohortFields: registry.CohortFields{
			Name: registry.To(&tt.name), Static: registry.To(tt.static), Filters: registry.To(json.RawMessage(`{"properties": {"type": "AND", "values": [` + tt.filter + `]}}`)),
		}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want[tt.name], all = tt.want, append(all, made)
	}
	b := behaviors{r.Snapshot(), p.ID, map[int64]bool{}}
	for _, c := range all {
		got[*c.Name] = b.has(c.ID)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("behavioral (-want +got):\n%s", diff)
	}
}

// TestSearch: a search finds names that contain it and similar ones, and says which is which.
func TestSearch(t *testing.T) {
	for _, tt := range []struct{ search, name, want string }{
		{"", "Paying customers", "all"},
		{"CUSTOM", "Paying customers", "exact"},
		{"custmers", "Paying customers", "similar"},
		{" paying ", "Paying customers", "exact"},
		{"visitors", "Paying customers", ""},
		{"visitors", "", ""},
	} {
		w, err := wantedOf(&api.Input{Request: httptest.NewRequest(http.MethodGet, "/?search="+url.QueryEscape(tt.search), nil)})
		if err != nil {
			t.Fatal(err)
		}
		r, got := &record{basic: basic{Name: &tt.name}}, ""
		if w.has(r) {
			got = cmp.Or(api.Deref(r.SearchMatchType), "all")
		}
		if got != tt.want {
			t.Errorf("%q in %q: %q, want %q", tt.search, tt.name, got, tt.want)
		}
	}
	if _, err := wantedOf(&api.Input{Request: httptest.NewRequest(http.MethodGet, "/?search="+strings.Repeat("x", 201), nil)}); api.ErrorOf(err) == nil || api.ErrorOf(err).Attr != "search" {
		t.Errorf("a long search: %v", err)
	}
}
