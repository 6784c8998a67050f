package endpoints_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCursorPages pages through a result while its key gets other results, in each format, and compares the pages with the original rows.
func TestCursorPages(t *testing.T) {
	meanwhile := map[string]func(t *testing.T, w *apitest.World){
		"nothing":                  func(*testing.T, *apitest.World) {},
		"it is computed anew":      func(t *testing.T, w *apitest.World) { t.Helper(); w.RememberMine(t, "acme", 101, 109) },
		"it has fewer rows":        func(t *testing.T, w *apitest.World) { t.Helper(); w.RememberMine(t, "acme", 5, 5) },
		"events are imported":      func(_ *testing.T, w *apitest.World) { w.Cache.Purge(w.Project.ID) },
		"a property gets a type":   func(t *testing.T, w *apitest.World) { t.Helper(); declare(t, w) },
		"there is a newer version": func(t *testing.T, w *apitest.World) { t.Helper(); publishAnew(t, w) },
	}
	forms := map[string]struct {
		path, body string
		pages      []string
	}{
		"arrays":               {"", "", []string{"[[3 row of acme] [4 row of acme]]", "[[5 row of acme]]"}},
		"objects":              {".objects", "", []string{"[map[a<b:row of acme n:3] map[a<b:row of acme n:4]]", "[map[a<b:row of acme n:5]]"}},
		"CSV":                  {"", `, "format": "csv"`, []string{"n,a<b\r\n3,row of acme\r\n4,row of acme\r\n", "n,a<b\r\n5,row of acme\r\n"}},
		"NDJSON":               {".ndjson", "", []string{`{"n":3,"a<b":"row of acme"}` + "\n" + `{"n":4,"a<b":"row of acme"}` + "\n", `{"n":5,"a<b":"row of acme"}` + "\n"}},
		"pages of other sizes": {"", `, "limit": 1`, []string{"[[3 row of acme]]", "[[4 row of acme]]", "[[5 row of acme]]"}},
		"the rest":             {"?limit=9223372036854775807", "", []string{"[[3 row of acme] [4 row of acme] [5 row of acme]]"}},
		"the rest as a file":   {".csv?limit=9223372036854775807", "", []string{"n,a<b\r\n3,row of acme\r\n4,row of acme\r\n5,row of acme\r\n"}},
		"what the first page had": {
			"", `, "variables": {"customer": "acme"}, "version": 1, "refresh": "cache"`,
			[]string{"[[3 row of acme] [4 row of acme]]", "[[5 row of acme]]"},
		},
	}
	for what, happen := range meanwhile {
		for name, form := range forms {
			t.Run(what+", "+name, func(t *testing.T) {
				w, next := apitest.NewWithCursor(t)
				var pages []string
				for next != "" && len(pages) < 9 {
					happen(t, w)
					got := w.Send(t, http.MethodPost, apitest.MinePath+form.path, apitest.WithCursor(next, form.body))
					page := got.Body.String()
					next = got.Header().Get("Next-Cursor")
					if got.Header().Get("Content-Type") == "application/json" {
						page = apitest.OutcomeOf(t, got)
						next, _ = apitest.FieldOf(t, got, "next_cursor").(string)
						if more := apitest.FieldOf(t, got, "hasMore"); more != (next != "") {
							t.Errorf("hasMore %v beside the cursor %q", more, next)
						}
					}
					pages = append(pages, page)
				}
				if diff := cmp.Diff(form.pages, pages); diff != "" {
					t.Errorf("pages after the first (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// declare changes the project's schema, and thereby every cache key: the name of the new property has no word, so any query may read it.
func declare(tb testing.TB, w *apitest.World) {
	tb.Helper()
	name := strings.Repeat("-", len(w.Registry.Snapshot().PropertyDefinitions(w.Project.ID))+1)
	property := registry.PropertyDefinition{Scope: registry.EventProperty, Name: name, Type: registry.PropertyNumeric}
	if err := w.Registry.SetProperty(tb.Context(), w.Project.ID, property); err != nil {
		tb.Fatal(err)
	}
}

// publishAnew publishes another version of the endpoint mine.
func publishAnew(tb testing.TB, w *apitest.World) {
	tb.Helper()
	_, err := w.Registry.UpdateEndpoint(tb.Context(), w.Project.ID, "mine", registry.EndpointUpdate{
		Query: jsontext.Append(nil, map[string]string{"kind": "HogQLQuery", "query": "select " + fmt.Sprint(time.Now().UnixNano())}),
	}, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
}

// TestCursorAnswer checks the metadata of a snapshot's answer, and that its page is rendered once.
func TestCursorAnswer(t *testing.T) {
	w, next := apitest.NewWithCursor(t)
	ask := func() *httptest.ResponseRecorder {
		return w.Send(t, http.MethodGet, apitest.MinePath+"?cursor="+next, "")
	}
	fresh := ask()
	byOffset := w.Send(t, http.MethodPost, apitest.MinePath, `{"variables": {"customer": "acme"}, "limit": 2, "offset": 2}`)
	if fresh.Body.String() != byOffset.Body.String() || fresh.Header().Get("Etag") != byOffset.Header().Get("Etag") {
		t.Errorf("by its cursor %s\nby its offset %s", fresh.Body, byOffset.Body)
	}
	if status := fresh.Header().Get("Cache-Status"); !strings.HasPrefix(status, "caddy-analytics; hit; ttl=86") {
		t.Errorf("fresh: Cache-Status: %s", status)
	}
	if s := w.Cache.Stats(); s.PageMisses != 2 {
		t.Errorf("%d pages were drawn, want 2", s.PageMisses)
	}
	if at := apitest.FieldOf(t, fresh, "offset"); at != 2.0 || apitest.FieldOf(t, fresh, "limit") != 2.0 || apitest.FieldOf(t, fresh, "is_cached") != true {
		t.Errorf("%s", fresh.Body)
	}
	for range 2 {
		short := 1
		if _, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "mine", registry.EndpointUpdate{FreshnessSeconds: &short}, apitest.Began); err != nil {
			t.Fatal(err)
		}
		rq := w.Asks(http.MethodGet, "/?cursor="+next)
		rq.Start = time.Now().Add(time.Minute)
		p, err := rq.PlanRun(rq.Snapshot.Endpoint(w.Project.ID, "mine"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rq.Answer(p); err != nil || got.Status != cache.Pinned {
			t.Errorf("no longer fresh: %s, %v", got.Status, err)
		}
	}
	if got := w.Send(t, http.MethodPost, apitest.MinePath, `{"variables": {"customer": "acme"}, "limit": 5}`); apitest.FieldOf(t, got, "next_cursor") != nil {
		t.Errorf("the whole: %s", got.Body)
	}
}

// TestCursorMistakes sends parameters that are not allowed with a cursor, and invalid cursors. Every refusal names the field.
func TestCursorMistakes(t *testing.T) {
	w, next := apitest.NewWithCursor(t)
	if _, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "mine", registry.EndpointUpdate{Table: registry.TableUpdate{On: new(true)}}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	publishAnew(t, w)
	changed := []byte(next)
	changed[40] ^= 1
	const none, other = "400 This is not a cursor of this endpoint.", "400 The cursor pages through rows of other variables. They can be left out."
	gone := string(pagecursor.Cursor{Ref: cache.Ref{Hash: 1, Entry: 1 << 60}, Limit: 1}.Append(nil, w.CursorOwner(t, "mine")))
	tests := []struct{ name, path, body, want, attr string }{
		{"offset", "", apitest.WithCursor(next, `, "offset": 2`), "400 offset cannot be used with a cursor, which says where the page begins.", "offset"},
		{"offset in the query string", "?offset=0", apitest.WithCursor(next, ""), "400 offset cannot be used with a cursor, which says where the page begins.", "offset"},
		{"limit 0", "", apitest.WithCursor(next, `, "limit": 0`), "400 Invalid limit parameter: 0", "limit"},
		{"refresh", "", apitest.WithCursor(next, `, "refresh": "force"`), "400 A cursor pages through rows that are there: refresh cannot be 'force'.", "refresh"},
		{"refresh, past the table", "", apitest.WithCursor(next, `, "refresh": "direct"`), "400 A cursor pages through rows that are there: refresh cannot be 'direct'.", "refresh"},
		{"another version", "", apitest.WithCursor(next, `, "version": 2`), "400 The cursor pages through rows of version 1.", "version"},
		{"another value", "", apitest.WithCursor(next, `, "variables": {"customer": "globex"}`), other, "variables"},
		{"no value", "", apitest.WithCursor(next, `, "variables": {"customer": null}`), other, "variables"},
		{"an unknown variable", "", apitest.WithCursor(next, `, "variables": {"plan": 1}`), "400 Unknown variable(s): plan", "variables"},
		{"overrides", "", apitest.WithCursor(next, `, "filters_override": {}`), "400 Not allowed for HogQL endpoints. Use variables instead.", "filters_override"},
		{"a file of ClickHouse", ".parquet", apitest.WithCursor(next, ""), "400 parquet has no cursors: ask for the whole file, or for csv or ndjson.", "format"},
		{"no text", "", `{"cursor": 5}`, "400 Not a valid string.", "cursor"},
		{"an empty text", "", `{"cursor": ""}`, none, "cursor"},
		{"an empty parameter", "?cursor=", ``, none, "cursor"},
		{"a cut one", "", apitest.WithCursor(next[:79], ""), none, "cursor"},
		{"a longer one", "", apitest.WithCursor(next+"A", ""), none, "cursor"},
		{"line breaks", "", apitest.WithCursor(next[:78]+"\n\n", ""), none, "cursor"},
		{"a changed one", "", apitest.WithCursor(string(changed), ""), none, "cursor"},
		{"something else", "", apitest.WithCursor(strings.Repeat("A", pagecursor.Length), ""), none, "cursor"},
		{"no letters of a cursor", "", apitest.WithCursor(strings.Repeat("ä", pagecursor.Length/2), ""), none, "cursor"},
		{"rows that are not kept", "", apitest.WithCursor(gone, ""), "410 The rows that this cursor pages through are no longer kept. Begin again without a cursor.", "cursor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				got := w.Send(t, http.MethodPost, apitest.MinePath+tt.path, tt.body)
				if diff := cmp.Diff([2]any{tt.want, tt.attr}, [2]any{apitest.OutcomeOf(t, got), apitest.FieldOf(t, got, "attr")}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	if got := w.Send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(gone, "")); apitest.FieldOf(t, got, "code") != "cursor_expired" || apitest.FieldOf(t, got, "type") != "invalid_request" {
		t.Errorf("%s", got.Body)
	}
	if got := w.Send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(next, "")); got.Code != http.StatusOK {
		t.Errorf("and still: %d %s", got.Code, got.Body)
	}
	off := false
	if _, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "mine", registry.EndpointUpdate{Version: 1, Active: &off}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	if got, want := apitest.OutcomeOf(t, w.Send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(next, ""))), "400 Version 1 is inactive and cannot be executed."; got != want {
		t.Errorf("a version that was switched off: %s", got)
	}
}

// TestCursorsAreNoKeys gives a cursor to callers that may not have its rows, and to callers that may.
func TestCursorsAreNoKeys(t *testing.T) {
	w, next := apitest.NewWithCursor(t)
	w.PublishWith(t, "twin", "select n from events where properties.customer = {variables.customer}", "customer")
	const none = "400 This is not a cursor of this endpoint."
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	_, acme := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"})
	_, globex := w.BoundKey(t, registry.Secret, map[string]any{"customer": "globex"})
	_, twinOnly := w.BoundKey(t, registry.Secret, nil, "twin")
	tokenOf := func(key, customer string) string {
		return w.NewToken(t, key, `{"endpoints": ["mine"], "variables": {"customer": "`+customer+`"}}`)
	}
	other := *w
	other.Project = w.NewProject(t)
	other.NewEndpoint(t, "mine", "select n from events")
	_, stranger := w.NewKey(t, other.Project.ID, registry.Personal, "endpoint:read")

	w.RememberRuns(t, "acme") // as run with a key bound to acme
	as := func(secret string) *apitest.World {
		caller := *w
		caller.Secret = secret
		return &caller
	}
	p, err := w.PlanAs(&registry.Key{Fixed: `{"customer":"acme"}`}, "mine", `{"limit": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1,"bound"]`, `[2,"bound"]`)
	bound, _ := apitest.FieldOf(t, as(acme).Send(t, http.MethodPost, apitest.MinePath, `{"limit": 1}`), "next_cursor").(string)
	if len(bound) != pagecursor.Length {
		t.Fatal("a bound key got no cursor")
	}
	const rows, boundRows = "[[3 row of acme] [4 row of acme]]", "[[2 bound]]"
	for _, tt := range []struct{ name, secret, endpoint, cursor, want string }{
		{"who got it", w.Secret, "mine", next, rows},
		{"another key that may run it", secret, "mine", next, rows},
		{"a token without fixed variables", w.NewToken(t, secret, `{"endpoints": ["mine"]}`), "mine", next, rows},
		{"a key of the same customer", acme, "mine", next, none},
		{"a key of another customer", globex, "mine", next, none},
		{"a token of another customer", tokenOf(secret, "globex"), "mine", next, none},
		{"a key that may not run it", twinOnly, "mine", next, "403 You do not have access to this endpoint."},
		{"another endpoint with the same query", w.Secret, "twin", next, none},
		{"an insight", w.Secret, "trend", next, none},
		{"another project", stranger, "mine", next, none},
		{"no key", "phx_x", "mine", next, "401 Personal API key found in request Authorization header is invalid."},
		{"bound: who got it", acme, "mine", bound, boundRows},
		{"bound: a token of the same customer", tokenOf(secret, "acme"), "mine", bound, boundRows},
		{"bound: a token of a bound key", w.NewToken(t, acme, `{"endpoints": ["mine"]}`), "mine", bound, boundRows},
		{"bound: a key of another customer", globex, "mine", bound, none},
		{"bound: a token of another customer", tokenOf(secret, "globex"), "mine", bound, none},
		{"bound: a key without fixed variables", secret, "mine", bound, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				got := as(tt.secret).Send(t, http.MethodPost, "/api/projects/@current/endpoints/"+tt.endpoint+"/run", apitest.WithCursor(tt.cursor, ""))
				if apitest.OutcomeOf(t, got) != tt.want {
					t.Errorf("%d %s, want %s", got.Code, got.Body, tt.want)
				}
			}
		})
	}
	fixed := as(acme).Send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(bound, `, "variables": {"customer": "globex"}`))
	if want := "403 Variable customer: this key fixes its value."; apitest.OutcomeOf(t, fixed) != want {
		t.Errorf("a bound key with another value: %s, want %s", apitest.OutcomeOf(t, fixed), want)
	}
	draft := as(secret).Send(t, http.MethodPost, apitest.MinePath, apitest.WithCursor(draftCursor(t, w), ""))
	if draft.Code != http.StatusNotFound {
		t.Errorf("a cursor of a draft for a secret key: %d %s", draft.Code, draft.Body)
	}
}

// draftCursor returns a cursor of an unpublished version.
func draftCursor(tb testing.TB, w *apitest.World) string {
	tb.Helper()
	_, err := w.Registry.UpdateEndpoint(tb.Context(), w.Project.ID, "mine", registry.EndpointUpdate{
		Query: json.RawMessage(`{"kind": "HogQLQuery", "query": "select 2"}`), Draft: true,
	}, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := w.PlanAs(w.Key, "mine", `{"limit": 1, "version": 2}`)
	if err != nil {
		tb.Fatal(err)
	}
	w.Remember(tb, p, time.Now(), `[1,"draft"]`, `[2,"draft"]`)
	next, _ := apitest.FieldOf(tb, w.Send(tb, http.MethodPost, apitest.MinePath, `{"limit": 1, "version": 2}`), "next_cursor").(string)
	if got := apitest.OutcomeOf(tb, w.Send(tb, http.MethodPost, apitest.MinePath, apitest.WithCursor(next, ""))); got != "[[2 draft]]" {
		tb.Fatalf("a draft for its author: %s", got)
	}
	return next
}
