package routes_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FuzzWrites: a write to an endpoint, a variable, an action or a dashboard, in JSON or as a form, is done or refused as the client's mistake, whatever its body, and what there is
// then can be shown.
func FuzzWrites(f *testing.F) {
	w := apitest.New(f)
	w.LoseTables(f, schema.NativeLayout())
	w.NewEndpoint(f, "e", "select 1")
	v, err := w.Registry.CreateVariable(f.Context(), registry.NewVariable{Project: w.Project.ID, Name: "v", Type: registry.VariableList, Values: []byte(`["a", 1]`)}, apitest.Began)
	if err != nil {
		f.Fatal(err)
	}
	w.Key, w.Secret = w.NewKey(f, w.Project.ID, registry.Personal, "endpoint:write", "insight_variable:write", "action:write", "dashboard:write")
	w.NewAction(f, `{"name": "a"}`)
	const form = 1 << 7 // of the number that says where a body is sent: it is a form
	targets := []struct{ method, path string }{
		{http.MethodPost, "endpoints/"},
		{http.MethodPatch, "endpoints/e/"},
		{http.MethodPost, "endpoints/e/promote/"},
		{http.MethodPost, "insight_variables/"},
		{http.MethodPatch, "insight_variables/" + v.ID + "/"},
		{http.MethodPost, "actions/"},
		{http.MethodPatch, "actions/1/"},
		{http.MethodPost, "dashboards/"},
		{http.MethodPatch, "dashboards/1/"},
		{http.MethodPost, "dashboards/1/create_text_tile/"},
		{http.MethodPost, "dashboards/1/update_text_tile/"},
		{http.MethodPost, "dashboards/1/delete_tile/"},
		{http.MethodPost, "dashboards/2/copy_tile/"},
		{http.MethodPatch, "dashboards/1/move_tile/"},
	}
	text := registry.TileFields{Text: registry.To(new("text"))}
	for range 2 {
		if _, err := w.Registry.CreateDashboard(f.Context(), w.Project.ID, registry.DashboardFields{Tiles: []registry.TileFields{text, text}}, w.Key.ID, apitest.Began); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(uint8(0), `{"name": "a", "query": {"kind": "HogQLQuery", "query": "select {variables.v}", "variables": {"`+v.ID+`": {"variableId": "`+v.ID+`", "code_name": "v", "value": ["a"]}}}, "tags": ["t"]}`)
	f.Add(uint8(0), `{"name": "b", "query": {"kind": "TrendsQuery", "series": [{"event": "x"}], "breakdownFilter": {"breakdown": "p"}}, "optional_breakdown_properties": ["p"]}`)
	f.Add(uint8(0), `{"name": "c", "query": {"kind": "HogQLQuery", "query": "select 1"}, "deprecated_at": "2026-01-01T00:00:00Z", "sunset_at": "9999-12-31T23:59:59-14:00"}`)
	f.Add(uint8(1), `{"query": {"kind": "HogQLQuery", "query": "select 2"}, "draft": true, "data_freshness_seconds": 1e3, "is_active": null}`)
	f.Add(uint8(1), `{"version": 1, "is_active": false, "description": "\u0000", "bucket_overrides": {}}`)
	f.Add(uint8(2), `{"version": 2, "refuse_breaking": true}`)
	f.Add(uint8(3), `{"name": "n", "type": "Number", "default_value": "18446744073709551615"}`)
	f.Add(uint8(3), `{"name": "m", "type": "List", "values": [null, ["a"], 1e300], "is_multi": true, "default_value": []}`)
	f.Add(uint8(5), `{"name": "n", "tags": ["t"], "steps": [{"event": "$autocapture", "selector": "a > [id='x']", "text": "(", "text_matching": "regex", "properties": [{"key": "k", "value": [1], "type": "person"}]}]}`)
	f.Add(uint8(6), `{"deleted": true, "pinned_at": 1, "steps": [{"url": "\u0000", "url_matching": "exact", "properties": [{"type": "hogql", "key": "1 = {x}"}]}]}`)
	f.Add(uint8(4), `{"values": ["b"], "default_value": "a", "type": "String"}`)
	f.Add(uint8(7), `{"name": 5, "pinned": "yes", "use_dashboard": "1", "duplicate_tiles": [1], "use_template": ""}`)
	f.Add(uint8(8), `{"duplicate_tiles": [{"id": 1, "layouts": {"sm": {"y": 1e300}}}], "tiles": [{"id": 2, "text": {"body": "x"}}]}`)
	f.Add(uint8(9), `{"body": " a ", "layouts": {"sm": {"x": "1", "y": 2.0}, "xs": {}}, "color": ""}`)
	f.Add(uint8(10), `{"tile_id": 1, "layouts": {"sm": {"y": -9223372036854775808, "h": 9223372036854775807}}}`)
	f.Add(uint8(11), `{"tile_id": 2}`)
	f.Add(uint8(12), `{"fromDashboardId": 1, "tileId": "1"}`)
	f.Add(uint8(13), `{"toDashboard": 2, "tile": {"id": 1}}`)
	f.Add(uint8(form+8), `name=x&pinned=on&tags=a&tags=b&filters=%7B%7D&tiles=[{"id":1}]`)
	f.Add(uint8(form+13), `to_dashboard=2&tile={"id":"1"}`)
	f.Add(uint8(form+5), `name=n&steps=[{"event":"x"}]&deleted=`)
	f.Add(uint8(form+1), `query={"kind":"HogQLQuery","query":"select 2"}&is_active=&data_freshness_seconds=9e2`)
	f.Add(uint8(form+3), `name=n&type=Number&default_value=5&values=`)
	const project = "/api/projects/@current/"
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		target := targets[int(which%form)%len(targets)]
		var header []string
		if which >= form {
			header = []string{"Content-Type", "application/x-www-form-urlencoded"}
		}
		answer := w.Send(t, target.method, project+target.path, body, header...)
		if answer.Code >= http.StatusInternalServerError || answer.Code != http.StatusNoContent && !json.Valid(answer.Body.Bytes()) {
			t.Errorf("%s %s answers %d %s", target.method, target.path, answer.Code, answer.Body)
		}
		for _, list := range []string{"endpoints/", "endpoints/openapi.json", "insight_variables/", "actions/", "dashboards/"} {
			if answer := w.Send(t, http.MethodGet, project+list, ""); answer.Code != http.StatusOK || !json.Valid(answer.Body.Bytes()) {
				t.Errorf("afterwards %s answers %d %s", list, answer.Code, answer.Body)
			}
		}
	})
}
