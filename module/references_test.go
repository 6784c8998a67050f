package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usersOf says in short what uses an action: types, numbers or names, and versions.
func (w *world) usersOf(tb testing.TB, action int) string {
	tb.Helper()
	answer := w.send(tb, http.MethodGet, fmt.Sprintf("%s%d/references/", actionsPath, action), "")
	type record struct {
		Type     string
		ID       any
		Name     *string
		URL      *string
		Versions []int
	}
	var plain, shown []record
	if err := json.Unmarshal(answer.Body.Bytes(), &plain); err != nil || answer.Code != http.StatusOK {
		tb.Fatalf("references: %d %s", answer.Code, answer.Body)
	}
	body := w.send(tb, http.MethodGet, fmt.Sprintf("%s%d/", actionsPath, action), "")
	raw, err := json.Marshal(fieldOf(tb, body, "used_by"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(plain, shown); diff != "" {
		tb.Errorf("references and used_by differ:\n%s", diff)
	}
	if got := fieldOf(tb, body, "reference_count"); got != float64(len(plain)) {
		tb.Errorf("reference_count is %v of %d", got, len(plain))
	}
	var out []string
	for _, r := range plain {
		text := r.Type
		if id, ok := r.ID.(float64); ok {
			text += fmt.Sprintf(" %v", id)
		}
		if r.Name != nil {
			text += " " + *r.Name
		}
		if r.URL != nil {
			text += " " + strings.TrimPrefix(*r.URL, fmt.Sprintf("/api/projects/%d", w.project.ID))
		}
		if r.Versions != nil {
			text += fmt.Sprint(" ", r.Versions)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestUsedBy: an action says what uses it itself, and nothing of what was deleted or belongs to another project.
func TestUsedBy(t *testing.T) {
	w := actionsWorld(t)
	ctx, reg := t.Context(), w.rt.registry
	w.key, w.secret = w.newKey(t, w.project.ID, registry.Personal, "*")
	w.newAction(t, `{"name": "club", "steps": [{"event": "a"}]}`)
	const own = `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`
	insight := func(project int64, name, query string) *registry.Insight {
		t.Helper()
		i, err := reg.CreateInsight(ctx, project, registry.InsightFields{Name: registry.To(&name), Query: registry.To(json.RawMessage(query))}, w.key.ID, began)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	expect := func(what string, action int, want string) {
		t.Helper()
		if diff := cmp.Diff(want, w.usersOf(t, action)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing", 1, "")
	first := insight(w.project.ID, "series", own)
	insight(w.project.ID, "another", strings.Replace(own, `"id": 1`, `"id": 2`, 1))
	insight(w.newProject(t).ID, "theirs", own)
	insight(w.project.ID, "in a text", `{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "select 1 from events where matchesAction('club')"}}`)
	expect("insights", 1, "insight 1 series /insights/1/; insight 4 in a text /insights/4/")

	w.newEndpoint(t, "e", "select 1 from events where matchesAction(1)")
	for _, query := range []string{`{"kind": "HogQLQuery", "query": "select 2"}`, own} {
		if _, err := reg.UpdateEndpoint(ctx, w.project.ID, "e", registry.EndpointUpdate{Query: json.RawMessage(query)}, began); err != nil {
			t.Fatal(err)
		}
	}
	const insights = "insight 1 series /insights/1/; insight 4 in a text /insights/4/"
	expect("versions of an endpoint", 1, insights+"; endpoint e /endpoints/e/ [1 3]")
	if _, err := reg.UpdateEndpoint(ctx, w.project.ID, "e", registry.EndpointUpdate{Version: 1, Active: new(false)}, began); err != nil {
		t.Fatal(err)
	}
	expect("a version that cannot be run", 1, insights+"; endpoint e /endpoints/e/ [3]")

	if answer := w.send(t, http.MethodPatch, actionsPath+"1/", `{"name": "society"}`); answer.Code != http.StatusOK {
		t.Fatal(answer.Body)
	}
	expect("a name that is no longer that of the action", 1, "insight 1 series /insights/1/; endpoint e /endpoints/e/ [3]")
	w.newAction(t, `{"name": "club"}`)
	expect("the action that has it now", 2, "insight 2 another /insights/2/; insight 4 in a text /insights/4/")
	if _, err := reg.UpdateInsight(ctx, w.project.ID, first.ID, registry.InsightFields{Deleted: registry.To(true)}, false, w.key.ID, began); err != nil {
		t.Fatal(err)
	}
	expect("an insight that was deleted", 1, "endpoint e /endpoints/e/ [3]")

	filters := json.RawMessage(`{"properties": [{"type": "hogql", "key": "matchesAction(1)"}]}`)
	name := "board"
	if _, err := reg.CreateDashboard(ctx, w.project.ID, registry.DashboardFields{Name: registry.To(&name), Filters: registry.To(filters)}, w.key.ID, began); err != nil {
		t.Fatal(err)
	}
	accounts := `[{"type": "hogql", "key": "not matchesAction(1)"}]`
	if _, err := reg.UpdateProject(ctx, w.project.ID, registry.ProjectChange{TestAccountFilters: &accounts}); err != nil {
		t.Fatal(err)
	}
	const rest = "dashboard 1 board /dashboards/1/; endpoint e /endpoints/e/ [3]; test_account_filters 1 Filters against test accounts /"
	expect("filters", 1, rest)
	w.key, w.secret = w.newKey(t, w.project.ID, registry.Personal, "action:read", "dashboard:read")
	expect("a key that may not read everything", 1, "dashboard 1 board /dashboards/1/; endpoint [3]; test_account_filters 1")
}

// TestUsedByIsBounded: what uses an action a hundred times is counted, and its first uses are shown.
func TestUsedByIsBounded(t *testing.T) {
	w := actionsWorld(t)
	w.newAction(t, `{"name": "a"}`)
	query := json.RawMessage(`{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`)
	for range 60 {
		if _, err := w.rt.registry.CreateInsight(t.Context(), w.project.ID, registry.InsightFields{Query: registry.To(query)}, "", began); err != nil {
			t.Fatal(err)
		}
	}
	answer := w.send(t, http.MethodGet, actionsPath+"1/", "")
	shown, _ := fieldOf(t, answer, "used_by").([]any)
	if len(shown) != 50 || fieldOf(t, answer, "reference_count") != 60.0 {
		t.Errorf("%d of %v are shown, want 50 of 60", len(shown), fieldOf(t, answer, "reference_count"))
	}
}
