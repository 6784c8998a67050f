package routes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestPagesMeet follows the next links of a list: every record comes once, in order.
func TestPagesMeet(t *testing.T) {
	w := apitest.New(t)
	for i := range 7 {
		w.NewEndpoint(t, fmt.Sprintf("e%d", i), "select 1")
	}
	var seen []string
	next := "http://example.com/api/projects/@current/endpoints/?limit=3&is_active=True"
	for next != "" {
		var list api.Page[struct{ Name string }]
		if err := json.Unmarshal(w.Send(t, http.MethodGet, next, "").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Results {
			seen = append(seen, e.Name)
		}
		next = api.Deref(list.Next)
	}
	if diff := cmp.Diff([]string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}, seen); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/?is_active=maybe", ""); answer.Code != 400 || apitest.FieldOf(t, answer, "attr") != "is_active" {
		t.Errorf("is_active=maybe: %d %s", answer.Code, answer.Body)
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/?is_active=0", ""); apitest.FieldOf(t, answer, "count") != 0.0 {
		t.Errorf("is_active=0: %d %s", answer.Code, answer.Body)
	}
}

// TestListsAreCutByBytes follows the next links of lists with large records: each page is small, and every record comes once.
func TestListsAreCutByBytes(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	const records = 40
	text := strings.Repeat("x", 900_000)
	for n := range records {
		query := jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": fmt.Sprintf("select '%d %s'", n, text)})
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Query: registry.To(json.RawMessage(query)), Tags: registry.To([]string{"large"})}, w.Key.ID, apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []string{`?tags=["large"]`, `?tags=["large"]&basic=true&limit=30`, `?tags=["large"]&limit=7`} {
		seen := map[int64]bool{}
		pages := 0
		next := "http://example.com/api/projects/1/insights/" + query
		for next != "" {
			answer := w.Send(t, http.MethodGet, next, "")
			var got api.Page[struct {
				ID int64 `json:"id"`
			}]
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK || got.Count != records {
				t.Fatalf("%s: %d, %d records: %v", next, answer.Code, got.Count, err)
			}
			if answer.Body.Len() > api.MaxListBytes+1024 {
				t.Errorf("%s: an answer of %d bytes", next, answer.Body.Len())
			}
			for _, one := range got.Results {
				if seen[one.ID] {
					t.Errorf("%s: insight %d comes twice", query, one.ID)
				}
				seen[one.ID] = true
			}
			next, pages = api.Deref(got.Next), pages+1
			if pages > records {
				t.Fatal("the list does not end")
			}
		}
		if len(seen) != records || pages < 3 {
			t.Errorf("%s: %d insights on %d pages", query, len(seen), pages)
		}
	}
}

// TestLimitsOverTheAPI: a client that reaches a limit is told what to do, and nothing is changed.
func TestLimitsOverTheAPI(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	w.Registry.SetLimits(registry.Limits{Records: 1})
	answer := w.Send(t, http.MethodPost, "/api/projects/1/insights/", `{"name": "one more"}`)
	var got api.Error
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := api.Error{
		Type: "validation_error", Code: "limit_reached",
		Detail: "This project has 1 insights, which is the most it can have. Delete some; deleted ones count until they are purged, 30 days later or by " +
			"`caddy analytics project purge`.",
	}
	if diff := cmp.Diff(want, got); diff != "" || answer.Code != http.StatusBadRequest {
		t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
	}
	large := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": "select '%s'"}}`, strings.Repeat("x", registry.MaxRecord))
	answer = w.Send(t, http.MethodPatch, "/api/projects/1/insights/1/", large)
	if code := apitest.FieldOf(t, answer, "code"); answer.Code != http.StatusBadRequest || code != "record_too_large" || apitest.FieldOf(t, answer, "attr") != "query" {
		t.Errorf("a large query: %d %.300s", answer.Code, answer.Body)
	}
}

// TestPlainListOfInsights: a page of all insights equals the page that sorting them gives.
func TestPlainListOfInsights(t *testing.T) {
	w := apitest.New(t)
	key, text := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	for n := range 7 {
		f := registry.InsightFields{Name: registry.To(new(fmt.Sprint("insight ", n)))}
		if n%3 == 0 {
			f.Order = registry.To(new(-n))
		}
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, f, key.ID, key.CreatedAt); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query string) string {
		answer := w.Send(t, http.MethodGet, fmt.Sprintf("/api/projects/%d/insights/?basic=true%s", w.Project.ID, query), "", "Authorization", "Bearer "+text)
		return strings.ReplaceAll(answer.Body.String(), "&created_date_from=2000-01-01", "")
	}
	const huge = "9223372036854775807"
	for _, page := range []string{"", "&limit=2", "&limit=3&offset=2", "&offset=6", "&offset=7", "&limit=" + huge + "&offset=2", "&limit=2&offset=" + huge, "&order=order"} {
		want := list("&created_date_from=2000-01-01" + page) // a filter that all of them match
		if diff := cmp.Diff(want, list(page)); diff != "" || !strings.Contains(want, `"count":7`) {
			t.Errorf("%s (-sorted +page):\n%s", page, diff)
		}
	}
}

// TestSearchesAreShort: lists look for a search in every record, so none takes a long one.
func TestSearchesAreShort(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "alert:read", "annotation:read", "dashboard:read", "endpoint:read", "event_definition:read",
		"insight:read", "property_definition:read")
	for _, path := range []string{
		"alerts/", "annotations/", "dashboards/", "endpoint_usage/", "endpoints/", "event_definitions/", "insights/", "property_definitions/",
	} {
		answer := w.SendAs(t, secret, http.MethodGet, "/api/projects/@current/"+path+"?search="+strings.Repeat("a,", 101), "")
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "attr") != "search" {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}
