package insights_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestTileMistakes checks mistakes in requests about tiles by code and field; nothing changes.
func TestTileMistakes(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	if _, err := w.Registry.AddText(t.Context(), w.Project.ID, 1, registry.TileFields{Text: registry.To(new("text"))}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	gone := registry.DashboardFields{Deleted: registry.To(true)}
	if _, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, gone, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	before := w.Registry.Snapshot().Revision
	for _, tt := range []struct{ name, route, body, want string }{
		{"no body", "1/create_text_tile", `{}`, "400 required body: This field is required."},
		{"an empty body", "1/create_text_tile", `{"body": ""}`, "400 blank body: This field may not be blank."},
		{"a body of blanks", "1/create_text_tile", `{"body": " \n"}`, "400 blank body: This field may not be blank."},
		{"a body of null", "1/create_text_tile", `{"body": null}`, "400 null body: This field may not be null."},
		{"a body that is no text", "1/create_text_tile", `{"body": ["a"]}`, "400 invalid_input body: Not a valid string."},
		{"layouts of null", "1/create_text_tile", `{"body": "a", "layouts": null}`, "400 null layouts: This field may not be null."},
		{"layouts that are not an object", "1/create_text_tile", `{"body": "a", "layouts": [1]}`, "400 invalid_input layouts: Invalid data. Expected a dictionary, but got list."},
		{"a layout that is not an object", "1/create_text_tile", `{"body": "a", "layouts": {"sm": 5}}`, "400 invalid_input layouts__sm: Invalid data. Expected a dictionary, but got int."},
		{"a place that is not a number", "1/create_text_tile", `{"body": "a", "layouts": {"xs": {"w": "wide"}}}`, "400 invalid_input layouts__xs__w: A valid integer is required."},
		{"a place of null", "1/create_text_tile", `{"body": "a", "layouts": {"xs": {"w": null}}}`, "400 null layouts__xs__w: This field may not be null."},
		{"no tile to change", "1/update_text_tile", `{"body": "a"}`, "400 required tile_id: This field is required."},
		{"a tile id that is not a number", "1/update_text_tile", `{"tile_id": "x"}`, "400 invalid_input tile_id: A valid integer is required."},
		{"the tile of an insight", "1/update_text_tile", `{"tile_id": 1}`, "400 invalid_input <nil>: Tile is not a text tile."},
		{"an unknown tile", "1/update_text_tile", `{"tile_id": 9}`, "404 not_found <nil>: Not found."},
		{"no tile to delete", "1/delete_tile", `{}`, "400 required tile_id: This field is required."},
		{"a tile of another dashboard", "1/delete_tile", `{"tile_id": 9}`, "404 not_found <nil>: Not found."},
		{"no origin", "1/copy_tile", `{"tileId": 1}`, "400 required fromDashboardId: This field is required."},
		{"no tile to copy", "1/copy_tile", `{"fromDashboardId": 2}`, "400 required tileId: This field is required."},
		{"the same dashboard", "1/copy_tile", `{"fromDashboardId": 1, "tileId": 1}`, "400 invalid_input <nil>: Destination must be a different dashboard than the source."},
		{"an unknown origin", "1/copy_tile", `{"fromDashboardId": 9, "tileId": 1}`, "404 not_found <nil>: Not found."},
		{"an origin that is deleted", "1/copy_tile", `{"fromDashboardId": 2, "tileId": 1}`, "404 not_found <nil>: Not found."},
		{"no destination", "1/move_tile", `{"tile": {"id": 1}}`, "400 required to_dashboard: This field is required."},
		{"no tile to move", "1/move_tile", `{"to_dashboard": 2}`, "400 required tile: This field is required."},
		{"a tile without a number", "1/move_tile", `{"to_dashboard": 2, "tile": {}}`, "400 required tile__id: This field is required."},
		{"a tile that is a number", "1/move_tile", `{"toDashboard": 2, "tile": 1}`, "400 invalid_input tile: Invalid data. Expected a dictionary, but got int."},
		{"a destination that is deleted", "1/move_tile", `{"to_dashboard": 2, "tile": {"id": 1}}`, "404 not_found <nil>: Not found."},
		{"an order of no tiles", "1/reorder_tiles", `{"tile_order": []}`, "400 invalid_input tile_order: The numbers of the tiles are required, in their new order."},
		{"an order with an unknown tile", "1/reorder_tiles", `{"tile_order": [1, 9]}`, "404 not_found <nil>: The dashboard has no tile 9."},
		{"an order with a tile twice", "1/reorder_tiles", `{"tile_order": [9, 1, 1]}`, "400 invalid_input tile_order: The tile 1 is named twice."},
		{"an order on a dashboard that is deleted", "2/reorder_tiles", `{"tile_order": [1]}`, "404 not_found <nil>: Not found."},
		{"a dashboard that is deleted", "2/create_text_tile", `{"body": "a"}`, "404 not_found <nil>: Not found."},
		{"a dashboard of another name", "x/delete_tile", `{"tile_id": 1}`, "404 not_found <nil>: Not found."},
	} {
		answer := w.Send(t, http.MethodPost, "/api/environments/@current/dashboards/"+tt.route+"/", tt.body)
		var said struct {
			Code, Detail string
			Attr         any
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
			t.Fatalf("%s: %s", tt.name, answer.Body)
		}
		if diff := cmp.Diff(tt.want, fmt.Sprintf("%d %s %v: %s", answer.Code, said.Code, said.Attr, said.Detail)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if after := w.Registry.Snapshot().Revision; after != before {
		t.Errorf("the revision went from %d to %d", before, after)
	}
}

// TestWritesWithBadParameters: a write whose answer can't be shown as the query string asks is refused before anything is written.
func TestWritesWithBadParameters(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:write", "dashboard:write", "query:read")
	if _, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, registry.DashboardFields{}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	writes := []struct{ method, route, body string }{
		{http.MethodPost, "insights/", `{"query": {"kind": "ActorsQuery", "select": ["id"]}}`},
		{http.MethodPut, "insights/1/", `{"query": {"kind": "ActorsQuery", "select": ["id"]}}`},
		{http.MethodPatch, "insights/1/", `{"query": {"kind": "ActorsQuery", "select": ["id"]}}`},
		{http.MethodPost, "dashboards/", `{"name": "new"}`},
		{http.MethodPut, "dashboards/1/", `{"name": "new"}`},
		{http.MethodPatch, "dashboards/1/", `{"name": "new"}`},
		{http.MethodPatch, "dashboards/1/", `{"deleted": true}`},
		{http.MethodPost, "dashboards/1/reorder_tiles/", `{"tile_order": [1], "layout": "full_width"}`},
		{http.MethodPost, "dashboards/2/copy_tile/", `{"fromDashboardId": 1, "tileId": 1}`},
		{http.MethodPost, "dashboards/1/move_tile/", `{"to_dashboard": 2, "tile": {"id": 1}}`},
		{http.MethodPatch, "dashboards/1/move_tile/", `{"to_dashboard": 2, "tile": {"id": 1}}`},
	}
	mistakes := []string{
		`refresh=bogus`, `client_query_id=a/b`, `filters_override=[]`, `filters_override={"bogus":1}`, `variables_override=x`, `variables_override={"a":1}`,
	}
	ask := func(method, route, params, body string) *httptest.ResponseRecorder {
		return w.Send(t, method, "/api/projects/1/"+route+"?"+strings.ReplaceAll(params, `"`, "%22"), body)
	}
	for _, tt := range writes {
		wrong := mistakes
		if strings.HasPrefix(tt.route, "insights") { // of a kind that filters do not apply to
			wrong = append(wrong, `filters_override={"date_from":"-7d"}`)
		}
		for _, params := range wrong {
			before := w.Registry.Snapshot().Revision
			answer := ask(tt.method, tt.route, params, tt.body)
			if after := w.Registry.Snapshot().Revision; answer.Code != http.StatusBadRequest || after != before {
				t.Errorf("%s %s?%s: %d %s, the revision went from %d to %d", tt.method, tt.route, params, answer.Code, answer.Body, before, after)
			}
		}
	}
	if answer := ask(http.MethodPatch, "insights/1/", `filters_override={"date_from":"-7d"}`, `{"query": null}`); answer.Code != http.StatusOK {
		t.Errorf("an insight without a query: %d %s", answer.Code, answer.Body)
	}
}

// TestTablesOfADashboard: the tables of run_insights have 2,000 characters each and 30,000 together, unless the caller requests other limits; tables
// that do not fit are named.
func TestTablesOfADashboard(t *testing.T) {
	w, first := apitest.NewWithInsight(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:read", "dashboard:read", "query:read")
	var rows []string
	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`[%d,"row %d"]`, i, i))
	}
	w.RememberInsight(t, first, time.Now(), rows...)
	board := registry.DashboardFields{Tiles: []registry.TileFields{{Insight: first.ID}, {Text: registry.To(new("text"))}}}
	for range 44 {
		i, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Query: registry.To(first.Query)}, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		board.Tiles = append(board.Tiles, registry.TileFields{Insight: i.ID})
	}
	if _, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, board, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	run := func(params string) []any {
		t.Helper()
		answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/run_insights/?"+params, "")
		results, _ := apitest.FieldOf(t, answer, "results").([]any)
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", params, answer.Code, answer.Body)
		}
		return results
	}
	table := func(result any) string {
		text, _ := result.(map[string]any)["insight"].(map[string]any)["result"].(string)
		return text
	}
	whole := table(run("tile_ids=1&max_result_chars=0")[0])
	if !strings.Contains(whole, "row 150") || len(whole) < 3000 {
		t.Fatalf("a whole table is:\n%s", whole)
	}
	all := run("")
	if len(all) != 40 {
		t.Fatalf("%d tiles are shown, want 15 with tables and 25 without", len(all))
	}
	for i, result := range all {
		text := table(result)
		switch id := result.(map[string]any)["id"]; {
		case i < 15 && (len(text) > 2000 || len(text) < 1900 || !strings.Contains(text, "row 0\n") || !strings.Contains(text, "row 299") ||
			!strings.Contains(text, fmt.Sprintf("rows are left out here. For the whole table, ask with tile_ids=%v and max_result_chars=0.]", id))):
			t.Errorf("tile %v is:\n%s", id, text)
		case i >= 15 && !strings.HasPrefix(text, fmt.Sprintf("[Not run: the tables of this response have reached 30000 characters. For this one, ask with tile_ids=%v.]", id)):
			t.Errorf("tile %v, which has no room, is:\n%s", id, text)
		case strings.Contains(text, "5 further tiles") != (i == 39):
			t.Errorf("tile %v says of further ones:\n%s", id, text)
		}
	}
	if some := run("max_result_chars=200"); len(some) != 45 || len(table(some[44])) > 200 || !strings.Contains(table(some[44]), "row") {
		t.Errorf("%d short tables, the last:\n%s", len(some), table(some[len(some)-1]))
	}
	if last := run("tile_ids=46&max_result_chars=0"); len(last) != 1 || table(last[0]) != whole {
		t.Errorf("the last tile alone: %v", last)
	}
	if results := run("output_format=json&max_result_chars=-1"); len(results) != 45 {
		t.Errorf("%d results as JSON", len(results))
	}
	for given, want := range map[string]string{
		"x": "max_result_chars must be an integer.", "-1": "max_result_chars must be zero or greater.", "199": "max_result_chars must be 200 or greater, or zero for the whole table.",
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/run_insights/?max_result_chars="+given, "")
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "detail") != want {
			t.Errorf("max_result_chars=%s: %d %s", given, answer.Code, answer.Body)
		}
	}
}

// TestWritesWithoutResults: a successful write is answered as such, whatever happens to the result shown in the answer.
func TestWritesWithoutResults(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:write", "dashboard:write", "query:read")
	old, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{ // of an older version
		Query: registry.To(json.RawMessage(`{"kind": "TrendsQuery", "series": "a"}`)),
	}, w.Key.ID, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(answer *httptest.ResponseRecorder) string {
		status, _ := apitest.FieldOf(t, answer, "query_status").(map[string]any)
		return fmt.Sprint(answer.Code, " ", apitest.FieldOf(t, answer, "result"), " ", status["error"], " ", status["error_code"])
	}
	const wrong = `{"query": {"kind": "HogQLQuery", "query": "select nosuch"}}`
	oldRoute := fmt.Sprintf("/api/projects/1/insights/%d/", old.ID)
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"a new one whose query is wrong", http.MethodPost, "/api/projects/1/insights/?refresh=blocking", wrong, "201 <nil> true hogql_query_error"},
		{"a change to such a query", http.MethodPatch, "/api/projects/1/insights/1/?refresh=blocking", wrong, "200 <nil> true hogql_query_error"},
		{"a name for one that can't be read", http.MethodPatch, oldRoute, `{"name": "a"}`, "200 <nil> true parse_error"},
		{"a name with overrides for it", http.MethodPatch, oldRoute + `?filters_override={%22date_from%22:%22-7d%22}`, `{"name": "b"}`, "200 <nil> true parse_error"},
	} {
		if got := shown(w.Send(t, tt.method, tt.path, tt.body)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	const right = `{"query": {"kind": "HogQLQuery", "query": "select 1"}}`
	if got := shown(w.Send(t, http.MethodPost, "/api/projects/1/insights/?refresh=force_blocking", right)); got != "201 <nil> true error" {
		t.Errorf("without an allowance: %s", got)
	}
	board := w.Send(t, http.MethodPatch, "/api/projects/1/dashboards/1/?refresh=force_blocking", `{"name": "a"}`)
	if tiles, _ := apitest.FieldOf(t, board, "tiles").([]any); board.Code != http.StatusOK || len(tiles) != 1 {
		t.Errorf("a dashboard without an allowance: %d %s", board.Code, board.Body)
	}
}

func TestDashboardFromTemplate(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	for body, want := range map[string]string{
		`{"use_template": "DEFAULT"}`:                     "use_template: Invalid template provided: DEFAULT",
		`{"use_dashboard": 99}`:                           "use_dashboard: Invalid value provided",
		`{"use_dashboard": "one"}`:                        "use_dashboard: A valid integer is required.",
		`{"use_dashboard": 1, "use_template": "DEFAULT"}`: "<nil>: `use_dashboard` and `use_template` cannot be used together",
		`{"use_template": null}`:                          "use_template: This field may not be null.",
	} {
		answer := w.Send(t, http.MethodPost, "/api/projects/1/dashboards/", body)
		if got := fmt.Sprintf("%v: %v", apitest.FieldOf(t, answer, "attr"), apitest.FieldOf(t, answer, "detail")); answer.Code != http.StatusBadRequest || got != want {
			t.Errorf("%s: %d %s, want %s", body, answer.Code, got, want)
		}
	}
	answer := w.Send(t, http.MethodPost, "/api/projects/1/dashboards/", `{"name": "Copy", "use_template": "", "use_dashboard": "1", "duplicate_tiles": false}`)
	if mode := apitest.FieldOf(t, answer, "creation_mode"); answer.Code != http.StatusCreated || mode != "duplicate" || len(apitest.FieldOf(t, answer, "tiles").([]any)) != 1 {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if mode := apitest.FieldOf(t, w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/", ""), "creation_mode"); mode != "default" {
		t.Errorf("the first dashboard has the creation mode %v", mode)
	}
}

// TestTransparentTiles: a tile keeps whether it has a background, also in a copy of its dashboard.
func TestTransparentTiles(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	shown := func(method, path, body string) any {
		t.Helper()
		answer := w.Send(t, method, "/api/projects/1/dashboards/"+path, body)
		tiles, ok := apitest.FieldOf(t, answer, "tiles").([]any)
		if !ok || len(tiles) != 1 {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		return tiles[0].(map[string]any)["transparent_background"]
	}
	for _, step := range []struct {
		method, path, body string
		want               any
	}{
		{http.MethodGet, "1/", "", nil},
		{http.MethodPatch, "1/", `{"tiles": [{"id": 1, "transparent_background": true}]}`, true},
		{http.MethodPatch, "1/", `{"tiles": [{"id": 1, "color": "blue"}]}`, true},
		{http.MethodPost, "", `{"use_dashboard": 1}`, true},
		{http.MethodPatch, "1/", `{"tiles": [{"id": 1, "transparent_background": false}]}`, false},
		{http.MethodPatch, "1/", `{"tiles": [{"id": 1, "transparent_background": null}]}`, nil},
	} {
		if got := shown(step.method, step.path, step.body); got != step.want {
			t.Errorf("%s %s %s: %v, want %v", step.method, step.path, step.body, got, step.want)
		}
	}
}

// TestReorderTiles: only the tiles that are named get another place.
func TestReorderTiles(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	const second = `{"sm":{"h":2,"w":3,"x":7,"y":40}}`
	tile := registry.TileFields{Text: registry.To(new("text")), Layouts: registry.To(json.RawMessage(second))}
	if _, err := w.Registry.AddText(t.Context(), w.Project.ID, 1, tile, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	const path = "/api/projects/1/dashboards/1/reorder_tiles/"
	answer := w.Send(t, http.MethodPost, path, `{"tile_order": [1], "layout": "three_column"}`)
	var got struct {
		Tiles []struct{ Layouts json.RawMessage }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || len(got.Tiles) != 2 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	want := []string{`{"sm":{"h":5,"w":4,"x":0,"y":0},"xs":{"h":5,"w":1,"x":0,"y":0}}`, second}
	if diff := cmp.Diff(want, []string{string(got.Tiles[0].Layouts), string(got.Tiles[1].Layouts)}); diff != "" {
		t.Errorf("layouts (-want +got):\n%s", diff)
	}
	answer = w.Send(t, http.MethodPost, path, `{"tile_order": [1], "layout": "four_column"}`)
	if attr := apitest.FieldOf(t, answer, "attr"); answer.Code != http.StatusBadRequest || attr != "layout" {
		t.Errorf("an unknown layout: %d %s", answer.Code, answer.Body)
	}
}

// TestTooManyTiles: tiles are counted before they are read.
func TestTooManyTiles(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	many := "[" + strings.Repeat("0,", registry.MaxTiles) + "0]"
	for _, name := range []string{"tiles", "duplicate_tiles"} {
		answer := w.Send(t, http.MethodPatch, "/api/projects/1/dashboards/1/", fmt.Sprintf(`{%q: %s}`, name, many))
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "detail") != "Ensure this field has no more than 500 elements." {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
}

// TestMistakenTiles: a mistake in one insight's query is reported in its tile, in every answer that is a dashboard, and the other insights have their
// results. A mistake in the request itself is reported for all.
func TestMistakenTiles(t *testing.T) {
	w, good := apitest.NewWithInsight(t)
	w.LoseClickHouse(t)
	w.RememberInsight(t, good, time.Now(), `[1,"x"]`)
	action, err := w.Registry.CreateAction(t.Context(), w.Project.ID, registry.ActionFields{Name: registry.To(new("Joined"))}, w.Key.ID, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	board := registry.DashboardFields{Tiles: []registry.TileFields{{Insight: good.ID}}}
	wrong := []struct{ query, code, message string }{
		{fmt.Sprintf(`{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": %d}]}`, action.ID), "invalid_input", fmt.Sprintf(`Action "Joined" (ID %d) was deleted.`, action.ID)},
		{`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode"}], "properties": [{"type": "cohort", "key": "id", "value": 99}]}`, "hogql_query_error", "Could not find cohort with ID 99"},
		{`{"kind": "HogQLQuery", "query": "selct 1"}`, "hogql_syntax_error", ""},
		{`{"kind": "TrendsQuery", "series": "a"}`, "parse_error", ""}, // of an older version
	}
	for _, each := range wrong {
		i, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Query: registry.To(json.RawMessage(each.query))}, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		board.Tiles = append(board.Tiles, registry.TileFields{Insight: i.ID})
	}
	if _, err := w.Registry.UpdateAction(t.Context(), w.Project.ID, action.ID, registry.ActionFields{Deleted: registry.To(true)}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, board, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, method, route, body, member string }{
		{"a dashboard", http.MethodGet, "1/?refresh=blocking", "", "tiles"},
		{"a run of it", http.MethodGet, "1/run_insights/?refresh=blocking&output_format=json", "", "results"},
		{"a change of it", http.MethodPatch, "1/?refresh=blocking", `{"name": "new"}`, "tiles"},
	} {
		answer := w.Send(t, tt.method, "/api/projects/1/dashboards/"+tt.route, tt.body)
		tiles, _ := apitest.FieldOf(t, answer, tt.member).([]any)
		if answer.Code != http.StatusOK || len(tiles) != 1+len(wrong) {
			t.Fatalf("%s: %d %s", tt.name, answer.Code, answer.Body)
		}
		for at, each := range tiles {
			tile := each.(map[string]any)
			insight := tile["insight"].(map[string]any)
			if at == 0 {
				if _, told := tile["error"]; told || fmt.Sprint(insight["result"]) != "[[1 x]]" || insight["query_status"] != nil {
					t.Errorf("%s: beside mistaken tiles: %v", tt.name, tile)
				}
				continue
			}
			told, _ := tile["error"].(map[string]any)
			status, _ := insight["query_status"].(map[string]any)
			message := fmt.Sprint(told["message"])
			got := fmt.Sprint(told["type"], " ", status["error_code"], " ", status["insight_id"], " ", status["dashboard_id"], " ", insight["result"], " ", insight["query"] != nil)
			if want := fmt.Sprint("ValidationError ", wrong[at-1].code, " ", at+1, " 1 <nil> true"); got != want || message == "" || message != status["error_message"] {
				t.Errorf("%s: tile %d: %s, want %s: %s, status %v", tt.name, at, got, want, message, status["error_message"])
			}
			if want := wrong[at-1].message; want != "" && message != want {
				t.Errorf("%s: tile %d: %s, want %s", tt.name, at, message, want)
			}
		}
	}
	for ids, want := range map[string]string{
		"1":       "1@0",
		"3, 1,,3": "1@0 3@2",
		" ":       "1@0 2@1 3@2 4@3 5@4",
		"1,x":     "400 tile_ids must be a comma-separated list of integers.",
		"1,99":    "400 The dashboard has no insight on a tile 99.",
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/run_insights/?tile_ids="+url.QueryEscape(ids), "")
		got := fmt.Sprint(answer.Code, " ", apitest.FieldOf(t, answer, "detail"))
		if answer.Code == http.StatusOK {
			var ran []string
			for _, each := range apitest.FieldOf(t, answer, "results").([]any) {
				tile := each.(map[string]any)
				ran = append(ran, fmt.Sprint(tile["id"], "@", tile["order"]))
			}
			got = strings.Join(ran, " ")
		}
		if got != want {
			t.Errorf("tile_ids=%s: %s, want %s", ids, got, want)
		}
	}
	for _, over := range []string{`filters_override={"bogus":1}`, `variables_override={"a":1}`} {
		if answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/?"+strings.ReplaceAll(over, `"`, "%22"), ""); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", over, answer.Code, answer.Body)
		}
	}
	// By itself and in a list, an insight is refused as before: contract api.md section 4.4.
	for _, route := range []string{"insights/2/", "insights/"} {
		if answer := w.Send(t, http.MethodGet, "/api/projects/1/"+route+"?refresh=blocking", ""); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", route, answer.Code, answer.Body)
		}
	}
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/1/dashboards/1/?refresh=force_blocking", ""); answer.Code != http.StatusTooManyRequests {
		t.Errorf("without an allowance: %d %s", answer.Code, answer.Body)
	}
}

// TestInsightOnDashboards: an insight says which dashboards it is on, and whether its tile was restored.
func TestInsightOnDashboards(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	places := func() any {
		return apitest.FieldOf(t, w.Send(t, http.MethodGet, "/api/projects/1/insights/1/", ""), "dashboard_tiles")
	}
	if diff := cmp.Diff([]any{map[string]any{"id": 1.0, "dashboard_id": 1.0, "deleted": nil}}, places()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Send(t, http.MethodPost, "/api/projects/1/dashboards/1/delete_tile/", `{"tile_id": 1}`)
	if diff := cmp.Diff([]any{}, places()); diff != "" {
		t.Errorf("after it was deleted (-want +got):\n%s", diff)
	}
	w.Send(t, http.MethodPatch, "/api/projects/1/dashboards/1/", `{"tiles": [{"id": 1, "deleted": "no"}]}`)
	if diff := cmp.Diff([]any{map[string]any{"id": 1.0, "dashboard_id": 1.0, "deleted": false}}, places()); diff != "" {
		t.Errorf("after it was restored (-want +got):\n%s", diff)
	}
}

// TestVariablesOfAnInsight: the query of saved SQL is shown with the existing variables.
func TestVariablesOfAnInsight(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	v, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: w.Project.ID, Name: "v", Type: registry.VariableString}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	const old = "00000000-0000-4000-8000-000000000000"
	query := func(kind, id string) string {
		return fmt.Sprintf(`{"kind": %q, "source": {"kind": "HogQLQuery", "query": "select 1", "variables": {%q: {"variableId": %q, "code_name": "v", "value": "x"}, "gone": {"variableId": "gone", "code_name": "w"}}}}`, kind, id, id)
	}
	for _, tt := range []struct{ name, kind, id, want string }{
		{"one that is gone", "DataVisualizationNode", v.ID, `{"` + v.ID + `":{"code_name":"v","value":"x","variableId":"` + v.ID + `"}}`},
		{"one that was made anew", "DataVisualizationNode", old, `{"` + v.ID + `":{"code_name":"v","value":"x","variableId":"` + v.ID + `"}}`},
		{"another node", "DataTableNode", old, `{"` + old + `":{"code_name":"v","value":"x","variableId":"` + old + `"},"gone":{"code_name":"w","variableId":"gone"}}`},
	} {
		fields := registry.InsightFields{Query: registry.To(json.RawMessage(query(tt.kind, tt.id)))}
		if _, err := w.Registry.UpdateInsight(t.Context(), w.Project.ID, 1, fields, false, w.Key.ID, apitest.Began); err != nil {
			t.Fatal(err)
		}
		shown := apitest.FieldOf(t, w.Send(t, http.MethodGet, "/api/projects/1/insights/1/", ""), "query").(map[string]any)
		got, err := json.Marshal(shown["source"].(map[string]any)["variables"])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
