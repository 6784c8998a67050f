package endpoints_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestAcceptedFormat(t *testing.T) {
	tests := map[string]result.Format{
		"application/json": result.AsArrays,
		"*/*":              result.AsArrays,
		"text/html,application/xhtml+xml,*/*;q=0.8":                 result.AsArrays,
		"application/json;profile=objects":                          result.AsObjects,
		`application/json; profile="objects"; charset=utf-8`:        result.AsObjects,
		"application/json;profile=arrays":                           result.AsArrays,
		"text/csv":                                                  result.AsCSV,
		"TEXT/CSV; header=present":                                  result.AsCSV,
		"application/x-ndjson":                                      result.AsNDJSON,
		"application/jsonl":                                         result.AsNDJSON,
		"application/vnd.apache.parquet":                            result.AsParquet,
		"application/vnd.apache.arrow.stream":                       result.AsArrow,
		"application/json;q=0.5, text/csv":                          result.AsCSV,
		"text/csv;q=0.5, application/json":                          result.AsArrays,
		"text/csv, application/json":                                result.AsCSV,
		"text/csv;q=0":                                              result.AsArrays,
		"text/csv;q=NaN, text/csv;q=x, image/png, ;;":               result.AsArrays,
		"application/vnd.apache.parquet;q=0.9,application/*;q=0.95": result.AsArrays,
	}
	for header, want := range tests {
		if got := result.AcceptedFormat(header); got != want {
			t.Errorf("Accept: %s gives %s, want %s", header, got, want)
		}
	}
}

// TestObjects requests rows as objects in every possible way: all share the stored rows, and the page.
func TestObjects(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "daily", "select n from events")
	p, err := w.Asks(http.MethodGet, "/").PlanRun(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1, "x"]`, `[2, null]`)
	const path, want = "/api/projects/@current/endpoints/daily/run", `[{"n":1,"a<b":"x"},{"n":2,"a<b":null}]`
	asked := []struct{ name, path, body, accept, want string }{
		{"plain", path, "", "", `[[1,"x"],[2,null]]`},
		{"by its address", path + ".objects", "", "", want},
		{"by its address, twice", path + ".objects?format=objects", "", "", want},
		{"in the query string", path + "?format=objects", "", "", want},
		{"in the body", path, `{"format": "objects"}`, "", want},
		{"by Accept", path, "", "application/json; profile=objects", want},
		{"the field goes before Accept", path, `{"format": "arrays"}`, "text/csv", `[[1,"x"],[2,null]]`},
		{"as the peer calls it", path + "?format=json", "", "text/csv", `[[1,"x"],[2,null]]`},
		{"plain again, to the same bytes", path, "", "", `[[1,"x"],[2,null]]`},
	}
	for _, tt := range asked {
		got := w.Send(t, http.MethodPost, tt.path, tt.body, "Accept", tt.accept)
		results, err := json.Marshal(apitest.FieldOf(t, got, "results"))
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(results, &a) != nil || json.Unmarshal([]byte(tt.want), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s: %s, want %s", tt.name, results, tt.want)
		}
	}
	if s := w.Cache.Stats(); s.PageMisses != 2 {
		t.Errorf("%d pages were drawn, want one of arrays and one of objects", s.PageMisses)
	}
	refused := []struct{ name, path, body, detail string }{
		{"no such format", path, `{"format": "xml"}`, "Input should be 'arrays', 'objects', 'csv', 'ndjson', 'parquet' or 'arrow'"},
		{"no text", path, `{"format": 5}`, "Not a valid string."},
		{"two formats", path + ".csv", `{"format": "objects"}`, "The address asks for csv, the field for objects."},
	}
	for _, tt := range refused {
		got := w.Send(t, http.MethodPost, tt.path, tt.body)
		if got.Code != http.StatusBadRequest || apitest.FieldOf(t, got, "detail") != tt.detail || apitest.FieldOf(t, got, "attr") != "format" {
			t.Errorf("%s: %d %s, want %s", tt.name, got.Code, got.Body, tt.detail)
		}
	}
	if got := w.Send(t, http.MethodGet, path+".xml", ""); got.Code != http.StatusNotFound {
		t.Errorf("run.xml answers %d", got.Code)
	}
}

// TestInsightFormats: an insight is not a table, so it has no files; its items are already objects.
func TestInsightFormats(t *testing.T) {
	w := apitest.New(t)
	e, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: "views", Query: json.RawMessage(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}]}`),
	}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	got := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/views/run.parquet", "")
	if want := "parquet is only supported for HogQLQuery, not TrendsQuery"; got.Code != http.StatusBadRequest || apitest.FieldOf(t, got, "detail") != want {
		t.Errorf("run.parquet: %d %s, want %s", got.Code, got.Body, want)
	}
	r := w.Asks(http.MethodGet, "/?format=objects")
	if p, err := r.PlanRun(e, nil); err != nil || p.Format != result.AsArrays {
		t.Errorf("format=objects: %v, %v", p, err)
	}
}

// TestOpenAPI asks for documents.
func TestOpenAPI(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "daily", "select n from events")
	document := func(path string, header ...string) (*openapi3.T, http.Header) {
		t.Helper()
		got := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/"+path, "", header...)
		if got.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, got.Code, got.Body)
		}
		doc, err := openapi3.NewLoader().LoadFromData(got.Body.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return doc, got.Header()
	}
	example := func(path string) any {
		doc, _ := document(path)
		item := doc.Paths.Value("/api/environments/1/endpoints/daily/run")
		if item == nil {
			t.Fatalf("%s: has the paths %v", path, doc.Paths.InMatchingOrder())
		}
		body, _ := item.Post.Responses.Value("200").Value.Content.Get("application/json").Example.(map[string]any)
		return body["results"]
	}

	doc, header := document("daily/openapi.json?version=1")
	if doc.Servers[0].URL != "http://example.com" || doc.Info.Version != "1" || header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("server %s, version %s, headers %v", doc.Servers[0].URL, doc.Info.Version, header)
	}
	again := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/daily/openapi.json", "", "If-None-Match", header.Get("Etag"))
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("the same again: %d, %d bytes", again.Code, again.Body.Len())
	}

	t.Run("examples", func(t *testing.T) {
		if got := example("daily/openapi.json"); !cmp.Equal(got, []any{}) {
			t.Errorf("before a run: %v", got)
		}
		p, err := w.Asks(http.MethodGet, "/").PlanRun(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Remember(t, p, time.Now(), `[1, "x"]`, `[2, "y"]`, `[3, "z"]`)
		if err := describe(t, w, e, registry.Column{Name: "n", Type: "integer", ClickHouse: "UInt64"}, registry.Column{Name: "a<b", Type: "string", ClickHouse: "String"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{[]any{1.0, "x"}, []any{2.0, "y"}}, example("openapi.json")); diff != "" {
			t.Errorf("after a run (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{[]any{1.0, "text"}}, example("daily/openapi.json?examples=types")); diff != "" {
			t.Errorf("of the types (-want +got):\n%s", diff)
		}
		if p, err = w.Asks(http.MethodGet, "/").PlanRun(e, []byte(`{"limit": 100}`)); err != nil {
			t.Fatal(err)
		}
		w.Remember(t, p, time.Now(), `[8, "x"]`, `[9, "y"]`, `[10, "z"]`)
		if diff := cmp.Diff([]any{[]any{1.0, "x"}, []any{2.0, "y"}}, example("daily/openapi.json")); diff != "" {
			t.Errorf("of a run without a limit, beside one with a limit (-want +got):\n%s", diff)
		}
		w.Cache.Purge(w.Project.ID)
		w.Remember(t, p, time.Now(), `[8, "x"]`, `[9, "y"]`, `[10, "z"]`)
		if diff := cmp.Diff([]any{[]any{8.0, "x"}, []any{9.0, "y"}}, example("daily/openapi.json")); diff != "" {
			t.Errorf("of a run with a limit (-want +got):\n%s", diff)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		for path, want := range map[string]int{
			"daily/openapi.json?version=2": 404, "daily/openapi.json?version=0": 404, "daily/openapi.json?version=x": 400,
			"other/openapi.json": 404, "daily/openapi.json?examples=mine": 400, "openapi.json?examples=mine": 400,
		} {
			if got := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/"+path, ""); got.Code != want {
				t.Errorf("%s: %d %s, want %d", path, got.Code, got.Body, want)
			}
		}
	})
	t.Run("secret keys run, and read no documents", func(t *testing.T) {
		_, w.Secret = w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
		if got := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/openapi.json", ""); got.Code != http.StatusForbidden {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// describe stores the columns of an endpoint's current version.
func describe(tb testing.TB, w *apitest.World, e *registry.Endpoint, columns ...registry.Column) error {
	tb.Helper()
	_, err := w.Registry.UpdateEndpoint(tb.Context(), w.Project.ID, e.Name, registry.EndpointUpdate{Columns: columns}, apitest.Began)
	return err
}
