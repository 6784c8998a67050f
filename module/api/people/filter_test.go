package people

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func asked(query string) *api.Input {
	return &api.Input{Request: httptest.NewRequest("GET", "http://example.org/api/projects/1/events/?"+query, nil)}
}

func at(second int) event {
	return event{Timestamp: time.Date(2024, 3, 1, 10, 0, second, 0, time.UTC)}
}

// TestNext: the URL of the next page leaves out no event, even if the page ends between events of the same time.
func TestNext(t *testing.T) {
	before := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name  string
		query string
		page  taxonomy.EventPage
		found []event
		shown int
		want  string
	}{
		{"another time follows", "limit=2&event=a&offset=5", taxonomy.EventPage{Before: before, Offset: 5}, []event{at(3), at(2), at(1)}, 2, "before=2024-03-01T10:00:02Z&event=a&limit=2"},
		{"the same time follows", "limit=2", taxonomy.EventPage{Before: before}, []event{at(3), at(2), at(2)}, 2, "before=2024-03-01T10:00:02.000001Z&limit=2&offset=1"},
		{"the whole page has one time", "limit=2", taxonomy.EventPage{Before: before, Offset: 4}, []event{at(2), at(2), at(2)}, 2, "before=2024-04-01T00:00:00Z&limit=2&offset=6"},
		{"oldest first", "orderBy=timestamp", taxonomy.EventPage{Before: before, OldestFirst: true}, []event{at(1), at(2), at(3)}, 2, "after=2024-03-01T10:00:02Z&orderBy=timestamp"},
		{"oldest first, the same time", "", taxonomy.EventPage{Before: before, OldestFirst: true}, []event{at(1), at(2), at(2)}, 2, "after=2024-03-01T10:00:01.999999Z&offset=1"},
		{"oldest first, one time", "", taxonomy.EventPage{Before: before, OldestFirst: true}, []event{at(2), at(2), at(2)}, 2, "offset=2"},
		{"what follows is not known", "", taxonomy.EventPage{Before: before}, []event{at(3), at(2)}, 2, "before=2024-03-01T10:00:02.000001Z&offset=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := eventFilter{EventPage: tt.page}
			got, err := url.QueryUnescape(*f.next(asked(tt.query), tt.found, tt.shown))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("http://example.org/api/projects/1/events/?"+tt.want, got); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"none", ``, `null`},
		{"null", `null`, `null`},
		{"with a type and without", `[{"key": "a", "type": "cohort"}, {"key": "b", "value": 1.50}]`, `[{"key":"a","type":"cohort"},{"key":"b","type":"person","value":1.50}]`},
		{"a group", `{"type": "OR", "values": [{"values": [{"key": "b", "type": null}]}]}`, `{"type":"OR","values":[{"values":[{"key":"b","type":"person"}]}]}`},
		{"no JSON", `x`, "The parameter properties must be JSON."},
		{"more than one", `[] []`, "The parameter properties must be JSON."},
		{"an object", `{"a": 1}`, "The parameter properties must be a list of property filters."},
		{"a text", `"a"`, "The parameter properties must be a list of property filters."},
		{"too deep", strings.Repeat("[", 30) + strings.Repeat("]", 30), "The parameter properties is nested too deep."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, filtersText(tt.in)); diff != "" {
				t.Errorf("filters (-want +got):\n%s", diff)
			}
		})
	}
}

func filtersText(in string) string {
	got, err := filters(asked("properties="+url.QueryEscape(in)), "person")
	if err != nil {
		return api.ErrorOf(err).Detail
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestFiltersTellNoMore: filters on people that read events need the scope for events, however deeply they are nested.
func TestFiltersTellNoMore(t *testing.T) {
	tests := []struct{ name, filters, scopes, want string }{
		{"people", `[{"key": "a", "value": 1}]`, "person:read", ""},
		{"times of people", `[{"key": "created_at", "type": "person_metadata"}]`, "person:read", ""},
		{"a cohort", `[{"type": "cohort", "value": 1}]`, "person:read", "API key missing required scope 'cohort:read'"},
		{"a cohort that may be read", `[{"type": "cohort", "value": 1}]`, "person:read cohort:read", ""},
		{"HogQL", `[{"type": "hogql", "key": "1 = 1"}]`, "person:read", "API key missing required scope 'query:read'"},
		{"HogQL in a group", `{"type": "AND", "values": [{"type": "OR", "values": [{"type": "hogql", "key": "1 = 1"}]}]}`, "person:read cohort:read", "API key missing required scope 'query:read'"},
		{"what a person did", `[{"type": "behavioral", "key": "a"}]`, "person:read", "API key missing required scope 'query:read'"},
		{"a type that is no text", `[{"type": ["person"], "key": "a"}]`, "person:read", "API key missing required scope 'query:read'"},
		{"HogQL of a key that may ask", `[{"type": "hogql", "key": "1 = 1"}]`, "person:read query:read", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &api.Caller{}
			c.Key = &registry.Key{Scopes: strings.Fields(tt.scopes)}
			given, err := filters(asked("properties="+url.QueryEscape(tt.filters)), "person")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := mayFilter(c, given); err != nil {
				got = api.ErrorOf(err).Detail
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mayFilter (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzFilters requests people and events with arbitrary filters and texts: whatever is refused is a mistake of the caller.
func FuzzFilters(f *testing.F) {
	f.Add(`[{"key": "a", "value": [1, "x"], "operator": "in"}]`, "it's", "-7d")
	f.Add(`{"type": "OR", "values": [{"type": "hogql", "key": "id in (select 1)"}]}`, `\'`, "2024-03-01T10:00:00Z")
	f.Fuzz(func(t *testing.T, properties, word, date string) {
		in := asked(url.Values{"properties": {properties}, "search": {word}, "distinct_id": {word}, "email": {word}, "orderBy": {word}}.Encode())
		given, err := filters(in, "person")
		if err == nil {
			_, err = actors(given, personConditions(in)).page(10, 0)
		}
		if err != nil && api.ErrorOf(err).Status != 400 {
			t.Errorf("people: %v", err)
		}
		if given, err = filters(in, "event"); err == nil {
			_, err = (&eventFilter{properties: given}).query()
		}
		if err != nil && api.ErrorOf(err).Status != 400 {
			t.Errorf("events: %v", err)
		}
		_, _ = oldestFirst(word)
		for _, value := range shownValues(date) {
			if _, err := json.Marshal(value); err != nil {
				t.Errorf("a value of %q: %v", date, err)
			}
		}
	})
}

func TestShownValues(t *testing.T) {
	tests := []struct{ in, want string }{
		{"pro", `["pro"]`},
		{"20", `[20]`},
		{"007", `["007"]`},
		{"true", `["true"]`},
		{`["a",["b",2]]`, `["a","b",2]`},
		{`[broken`, `["[broken"]`},
		{`[[[[["x"]]]]]`, `["[\"x\"]"]`},
		{"[" + strings.Repeat("1,", 10_000) + "2]", "[" + strings.Repeat("1,", maxSuggestions-1) + "1]"},
		{"[" + strings.Repeat(" ", maxListText) + "]", `["[` + strings.Repeat(" ", maxListText) + `]"]`},
	}
	for _, tt := range tests {
		got, err := json.Marshal(shownValues(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("values of %q (-want +got):\n%s", tt.in, diff)
		}
	}
}
