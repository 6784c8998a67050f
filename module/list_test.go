package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWritePage checks the envelope of lists, also for numbers whose sum does not fit.
func TestWritePage(t *testing.T) {
	const huge = "9223372036854775807"
	link := func(query string) *string {
		s := "http://example.com/list/" + query
		return &s
	}
	tests := []struct {
		query          string
		next, previous *string
		results        []int
		mistake        string
	}{
		{query: "", results: []int{0, 1, 2, 3, 4}},
		{query: "?limit=0", results: []int{0, 1, 2, 3, 4}},
		{query: "?limit=2", results: []int{0, 1}, next: link("?limit=2&offset=2")},
		{query: "?limit=2&offset=2&tag=a%26b", results: []int{2, 3}, next: link("?limit=2&offset=4&tag=a%26b"), previous: link("?limit=2&tag=a%26b")},
		{query: "?limit=2&offset=3", results: []int{3, 4}, previous: link("?limit=2&offset=1")},
		{query: "?limit=2&offset=4", results: []int{4}, previous: link("?limit=2&offset=2")},
		{query: "?offset=7", results: []int{}, previous: link("?limit=100")},
		{query: "?limit=" + huge + "&offset=2", results: []int{2, 3, 4}, previous: link("?limit=" + huge)},
		{query: "?limit=2&offset=" + huge, results: []int{}, previous: link("?limit=2&offset=9223372036854775805")},
		{query: "?limit=-1", mistake: "limit and offset must not be negative."},
		{query: "?offset=-1", mistake: "limit and offset must not be negative."},
		{query: "?limit=x", mistake: "Invalid limit parameter: x"},
		{query: "?offset=1" + huge, mistake: "Invalid offset parameter: 1" + huge},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			w := httptest.NewRecorder()
			rq := request{w: w, r: httptest.NewRequest(http.MethodGet, "http://example.com/list/"+tt.query, http.NoBody)}
			err := writePage(&rq, []int{0, 1, 2, 3, 4})
			if tt.mistake != "" {
				if err == nil || toAPIError(err, "").Detail != tt.mistake {
					t.Errorf("writePage: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got page[int]
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(page[int]{Count: 5, Next: tt.next, Previous: tt.previous, Results: tt.results}, got); diff != "" {
				t.Errorf("page (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPagesMeet walks a list by its next links: every record comes once, in order.
func TestPagesMeet(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.newEndpoint(t, fmt.Sprintf("e%d", i), "select 1")
	}
	var seen []string
	next := "http://example.com/api/projects/@current/endpoints/?limit=3&is_active=True"
	for next != "" {
		var list page[endpointRecord]
		if err := json.Unmarshal(w.send(t, http.MethodGet, next, "").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Results {
			seen = append(seen, e.Name)
		}
		next = deref(list.Next)
	}
	if diff := cmp.Diff([]string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}, seen); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if answer := w.send(t, http.MethodGet, "/api/projects/@current/endpoints/?is_active=maybe", ""); answer.Code != 400 || fieldOf(t, answer, "attr") != "is_active" {
		t.Errorf("is_active=maybe: %d %s", answer.Code, answer.Body)
	}
	if answer := w.send(t, http.MethodGet, "/api/projects/@current/endpoints/?is_active=0", ""); fieldOf(t, answer, "count") != 0.0 {
		t.Errorf("is_active=0: %d %s", answer.Code, answer.Body)
	}
}
