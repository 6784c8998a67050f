package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWritePage checks the envelope of lists, including numbers whose sum overflows.
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
			in := &Input{Request: httptest.NewRequest(http.MethodGet, "http://example.com/list/"+tt.query, http.NoBody)}
			res, err := PageOf(in, []int{0, 1, 2, 3, 4})
			if err == nil {
				Write(w, in.Request, time.Now(), res)
			}
			if tt.mistake != "" {
				if err == nil || ErrorOf(err).Detail != tt.mistake {
					t.Errorf("writePage: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got Page[int]
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Page[int]{Count: 5, Next: tt.next, Previous: tt.previous, Results: tt.results}, got); diff != "" {
				t.Errorf("page (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONParam: a value of another type is refused with the type that is wanted.
func TestJSONParam(t *testing.T) {
	for _, tt := range []struct {
		value string
		into  any
		want  string
	}{
		{`["a"]`, new([]string), ""},
		{`{"a": 1}`, new(map[string]json.RawMessage), ""},
		{"null", new([]string), ""},
		{"", new([]string), ""},
		{`"a"`, new([]string), "The parameter x must be a JSON list of strings."},
		{`["a", 1]`, new([]string), "The parameter x must be a JSON list of strings."},
		{`["a"]`, new([]int64), "The parameter x must be a JSON list of integers."},
		{`[]`, new(map[string]json.RawMessage), "The parameter x must be a JSON object."},
		{"a", new([]string), "The parameter x must be JSON."},
	} {
		in := &Input{Request: httptest.NewRequest(http.MethodGet, "/?x="+url.QueryEscape(tt.value), http.NoBody)}
		got := ""
		if _, err := in.JSONParam("x", tt.into); err != nil {
			got = ErrorOf(err).Detail
		}
		if got != tt.want {
			t.Errorf("%s into %T: %q, want %q", tt.value, tt.into, got, tt.want)
		}
	}
}
