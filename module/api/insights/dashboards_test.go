package insights_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// newDashboard creates a dashboard.
func newDashboard(tb testing.TB, w *apitest.World, fields registry.DashboardFields) *registry.Dashboard {
	tb.Helper()
	d, err := w.Registry.CreateDashboard(tb.Context(), w.Project.ID, fields, w.Key.ID, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// TestSearchOfDashboards: a search is short, whatever the list, and ends with its request.
func TestSearchOfDashboards(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	newDashboard(t, w, registry.DashboardFields{Name: registry.To(new("Sales"))})
	for _, list := range []string{"dashboards", "insights"} {
		target := "/api/projects/1/" + list + "/?search=" + strings.Repeat("é", 200)
		if answer := w.Send(t, http.MethodGet, target, ""); answer.Code != http.StatusOK {
			t.Errorf("%s with the longest search: %d %s", list, answer.Code, answer.Body)
		}
		answer := w.Send(t, http.MethodGet, target+"x", "")
		if diff := cmp.Diff("Search query must be 200 characters or fewer.", apitest.FieldOf(t, answer, "detail")); answer.Code != http.StatusBadRequest || diff != "" {
			t.Errorf("%s with a longer search: %d (-want +got):\n%s", list, answer.Code, diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		r.Header.Set("Authorization", "Bearer "+w.Secret)
		gone := httptest.NewRecorder()
		w.API.ServeHTTP(gone, r)
		if strings.Contains(gone.Body.String(), "results") {
			t.Errorf("%s for a client that is gone: %d %s", list, gone.Code, gone.Body)
		}
	}
}

// TestFiltersOverLists: the filters of a dashboard apply to all queries that take some, and the query that is shown is the one that ran.
func TestFiltersOverLists(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:read", "dashboard:read", "query:read")
	table := func(source string) string { return `{"kind":"DataTableNode","source":` + source + `}` }
	const trend = `{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"a"}]`
	actors := func(trend string) string {
		return `{"kind":"ActorsQuery","select":["id"],"source":{"kind":"InsightActorsQuery","day":"2026-01-10","source":` + trend + `}}`
	}
	board := registry.DashboardFields{Filters: registry.To(json.RawMessage(`{"date_from":"-30d"}`))}
	tests := []struct{ saved, ran string }{
		{table(`{"kind":"EventsQuery","select":["event"]}`), table(`{"kind":"EventsQuery","select":["event"],"after":"-30d"}`)},
		{table(actors(trend + `}`)), table(actors(trend + `,"dateRange":{"date_from":"-30d"}}`))},
		{table(`{"kind":"ActorsQuery","select":["id"]}`), table(`{"kind":"ActorsQuery","select":["id"]}`)}, // takes no filters
	}
	for i, tt := range tests {
		saved, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Query: registry.To(json.RawMessage(tt.saved))}, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		board.Tiles = append(board.Tiles, registry.TileFields{Insight: saved.ID})
		if tt.saved != tt.ran {
			w.RememberInsight(t, saved, time.Now(), `[0,"without filters"]`)
		}
		w.RememberInsight(t, &registry.Insight{Query: json.RawMessage(tt.ran)}, time.Now(), fmt.Sprintf(`[%d,"a"]`, i))
	}
	newDashboard(t, w, board)
	answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/", "")
	var got struct {
		Tiles []struct {
			Insight struct{ Query, Result any }
			Error   any
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || len(got.Tiles) != len(tests) {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for i, tt := range tests {
		var ran any
		if err := json.Unmarshal([]byte(tt.ran), &ran); err != nil {
			t.Fatal(err)
		}
		one := got.Tiles[i]
		if diff := cmp.Diff([]any{ran, []any{[]any{float64(i), "a"}}, nil}, []any{one.Insight.Query, one.Insight.Result, one.Error}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.saved, diff)
		}
	}
}

// TestRestoreDashboard: restoring a dashboard restores the insights that were deleted with it, which needs the scope for them.
func TestRestoreDashboard(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	_, writer := w.NewKey(t, w.Project.ID, registry.Personal, "dashboard:write")
	d := newDashboard(t, w, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	const path = "/api/projects/1/dashboards/1/"
	remove := func(body string) {
		t.Helper()
		if answer := w.Send(t, http.MethodPatch, path, body); answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
		}
	}
	restore := func(secret string, want int) {
		t.Helper()
		answer := w.SendAs(t, secret, http.MethodPatch, path, `{"deleted": false}`)
		restored := w.Registry.Snapshot().Dashboard(d.Project, d.ID) != nil
		insight := w.Registry.Snapshot().Insight(d.Project, i.ID) != nil
		if ok := want == http.StatusOK; answer.Code != want || restored != ok || insight != ok {
			t.Errorf("%d %s, the dashboard is there: %t, the insight: %t", answer.Code, answer.Body, restored, insight)
		}
	}
	remove(`{"deleted": true, "delete_insights": true}`)
	restore(writer, http.StatusForbidden)
	restore(w.Secret, http.StatusOK)
	remove(`{"deleted": true}`)
	restore(writer, http.StatusOK) // its insights were never deleted
}

// TestFiltersOfDashboards lists dashboards by how they were created.
func TestFiltersOfDashboards(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	first := newDashboard(t, w, registry.DashboardFields{Name: registry.To(new("Sales")), Pinned: registry.To(true)})
	newDashboard(t, w, registry.DashboardFields{Name: registry.To(new("Generated Dashboard: beta Usage"))})
	newDashboard(t, w, registry.DashboardFields{From: first.ID, Name: registry.To(new("Copy"))})
	for query, want := range map[string]string{
		"":                                   "Sales, Copy, Generated Dashboard: beta Usage",
		"creation_mode=":                     "Sales, Copy, Generated Dashboard: beta Usage",
		"creation_mode=default":              "Sales, Generated Dashboard: beta Usage",
		"creation_mode=duplicate":            "Copy",
		"creation_mode=template":             "",
		"exclude_generated=true":             "Sales, Copy",
		"exclude_generated=false&pinned=yes": "Sales",
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/?"+query, "")
		var page struct{ Results []struct{ Name string } }
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
		}
		var names []string
		for _, d := range page.Results {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestBreakdownColors: each color names its value; what does not is refused, and the colors stay.
func TestBreakdownColors(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	newDashboard(t, w, registry.DashboardFields{})
	const path, first = "/api/projects/1/dashboards/1/", `[{"breakdownValue":"Chrome","colorToken":"preset-1","breakdownProperty":"event::$browser","more":{"a":1}}]`
	for _, tt := range []struct{ given, want, mistake string }{
		{first, first, ""},
		{`{}`, first, `breakdown_colors: Expected a list of items but got type "dict".`},
		{`{"Chrome":"preset-1"}`, first, `breakdown_colors: Expected a list of items but got type "dict".`},
		{`"x"`, first, `breakdown_colors: Expected a list of items but got type "str".`},
		{`["Chrome","Firefox"]`, first, "breakdown_colors__0: Invalid data. Expected a dictionary, but got str."},
		{`[null]`, first, "breakdown_colors__0: Invalid data. Expected a dictionary, but got NoneType."},
		{`[{"breakdown_value":"good","color":"#36a854"}]`, first, "breakdown_colors__0__breakdownValue: This field is required."},
		{`[{"breakdownValue":"a","colorToken":"b"},{"breakdownValue":"good","color":"#36a854"}]`, first, "breakdown_colors__1__colorToken: This field is required."},
		{`[{"breakdownValue":null,"colorToken":"b"}]`, first, "breakdown_colors__0__breakdownValue: This field may not be null."},
		{`[{"breakdownValue":{},"colorToken":"b"}]`, first, "breakdown_colors__0__breakdownValue: Not a valid string."},
		{`[{"breakdownValue":"","colorToken":null}]`, `[{"breakdownValue":"","colorToken":null}]`, ""},
		{`[]`, `[]`, ""},
		{`null`, `null`, ""},
	} {
		answer := w.Send(t, http.MethodPatch, path, `{"breakdown_colors": `+tt.given+`}`)
		var mistake string
		if answer.Code == http.StatusBadRequest {
			mistake = fmt.Sprintf("%v: %v", apitest.FieldOf(t, answer, "attr"), apitest.FieldOf(t, answer, "detail"))
		}
		var shown struct {
			Colors json.RawMessage `json:"breakdown_colors"`
		}
		if err := json.Unmarshal(w.Send(t, http.MethodGet, path, "").Body.Bytes(), &shown); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tt.want, tt.mistake}, []string{string(shown.Colors), mistake}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.given, diff)
		}
	}
}

// TestOldBreakdownColors: colors that an older release stored are shown as far as they could be sent back.
func TestOldBreakdownColors(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	const valid = `{"breakdownValue":"Chrome","colorToken":"preset-1"}`
	for stored, want := range map[string]string{
		`{}`: `[]`, `{"Chrome":"preset-1"}`: `[]`, `["Chrome"]`: `[]`, `[]`: `[]`, `null`: `null`, `[{"color":1},` + valid + `,null]`: `[` + valid + `]`,
	} {
		d := newDashboard(t, w, registry.DashboardFields{BreakdownColor: registry.To(json.RawMessage(stored))})
		var shown struct {
			Colors json.RawMessage `json:"breakdown_colors"`
		}
		answer := w.Send(t, http.MethodGet, fmt.Sprintf("/api/projects/1/dashboards/%d/", d.ID), "")
		if err := json.Unmarshal(answer.Body.Bytes(), &shown); err != nil || string(shown.Colors) != want {
			t.Errorf("%s is shown as %s, want %s", stored, shown.Colors, want)
		}
	}
}
