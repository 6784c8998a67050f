package references_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usersOf summarizes what uses an action: types, ids or names, and versions.
func usersOf(tb testing.TB, w *apitest.World, action int) string {
	tb.Helper()
	answer := w.Send(tb, http.MethodGet, fmt.Sprintf("%s%d/references/", apitest.ActionsPath, action), "")
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
	body := w.Send(tb, http.MethodGet, fmt.Sprintf("%s%d/", apitest.ActionsPath, action), "")
	raw, err := json.Marshal(apitest.FieldOf(tb, body, "used_by"))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(plain, shown); diff != "" {
		tb.Errorf("references and used_by differ:\n%s", diff)
	}
	if got := apitest.FieldOf(tb, body, "reference_count"); got != float64(len(plain)) {
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
			text += " " + strings.TrimPrefix(*r.URL, fmt.Sprintf("/api/projects/%d", w.Project.ID))
		}
		if r.Versions != nil {
			text += fmt.Sprint(" ", r.Versions)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestUsedBy: an action lists what uses it directly, without deleted things and those of other projects.
func TestUsedBy(t *testing.T) {
	w := apitest.NewForActions(t)
	ctx, reg := t.Context(), w.Registry
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "*")
	w.NewAction(t, `{"name": "club", "steps": [{"event": "a"}]}`)
	const own = `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`
	insight := func(project int64, name, query string) *registry.Insight {
		t.Helper()
		i, err := reg.CreateInsight(ctx, project, registry.InsightFields{Name: registry.To(&name), Query: registry.To(json.RawMessage(query))}, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	expect := func(what string, action int, want string) {
		t.Helper()
		if diff := cmp.Diff(want, usersOf(t, w, action)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing", 1, "")
	first := insight(w.Project.ID, "series", own)
	insight(w.Project.ID, "another", strings.Replace(own, `"id": 1`, `"id": 2`, 1))
	insight(w.NewProject(t).ID, "theirs", own)
	insight(w.Project.ID, "in a text", `{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "select 1 from events where matchesAction('club')"}}`)
	expect("insights", 1, "insight 1 series /insights/1/; insight 4 in a text /insights/4/")

	w.NewEndpoint(t, "e", "select 1 from events where matchesAction(1)")
	for _, query := range []string{`{"kind": "HogQLQuery", "query": "select 2"}`, own} {
		if _, err := reg.UpdateEndpoint(ctx, w.Project.ID, "e", registry.EndpointUpdate{Query: json.RawMessage(query)}, apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	const insights = "insight 1 series /insights/1/; insight 4 in a text /insights/4/"
	expect("versions of an endpoint", 1, insights+"; endpoint e /endpoints/e/ [1 3]")
	if _, err := reg.UpdateEndpoint(ctx, w.Project.ID, "e", registry.EndpointUpdate{Version: 1, Active: new(false)}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	expect("a version that cannot be run", 1, insights+"; endpoint e /endpoints/e/ [3]")

	if answer := w.Send(t, http.MethodPatch, apitest.ActionsPath+"1/", `{"name": "society"}`); answer.Code != http.StatusOK {
		t.Fatal(answer.Body)
	}
	expect("a name that is no longer that of the action", 1, "insight 1 series /insights/1/; endpoint e /endpoints/e/ [3]")
	w.NewAction(t, `{"name": "club"}`)
	expect("the action that has it now", 2, "insight 2 another /insights/2/; insight 4 in a text /insights/4/")
	if _, err := reg.UpdateInsight(ctx, w.Project.ID, first.ID, registry.InsightFields{Deleted: registry.To(true)}, false, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	expect("an insight that was deleted", 1, "endpoint e /endpoints/e/ [3]")

	filters := json.RawMessage(`{"properties": [{"type": "hogql", "key": "matchesAction(1)"}]}`)
	name := "board"
	if _, err := reg.CreateDashboard(ctx, w.Project.ID, registry.DashboardFields{Name: registry.To(&name), Filters: registry.To(filters)}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	accounts := `[{"type": "hogql", "key": "not matchesAction(1)"}]`
	if _, err := reg.UpdateProject(ctx, w.Project.ID, registry.ProjectChange{TestAccountFilters: &accounts}); err != nil {
		t.Fatal(err)
	}
	const rest = "dashboard 1 board /dashboards/1/; endpoint e /endpoints/e/ [3]; test_account_filters 1 Filters against test accounts /"
	expect("filters", 1, rest)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "action:read", "dashboard:read")
	expect("a key that may not read everything", 1, "dashboard 1 board /dashboards/1/; endpoint [3]; test_account_filters 1")
}

// TestUsedByIsBounded: if a hundred things use an action, they are counted, and only the first are shown.
func TestUsedByIsBounded(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "a"}`)
	query := json.RawMessage(`{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`)
	for range 60 {
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Query: registry.To(query)}, "", apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	answer := w.Send(t, http.MethodGet, apitest.ActionsPath+"1/", "")
	shown, _ := apitest.FieldOf(t, answer, "used_by").([]any)
	if len(shown) != 50 || apitest.FieldOf(t, answer, "reference_count") != 60.0 {
		t.Errorf("%d of %v are shown, want 50 of 60", len(shown), apitest.FieldOf(t, answer, "reference_count"))
	}
}

// newCohort adds a computed cohort with the given conditions.
func newCohort(tb testing.TB, w *apitest.World, name string, conditions ...string) *registry.Cohort {
	tb.Helper()
	filters := `{"properties": {"type": "AND", "values": [` + strings.Join(conditions, ", ") + `]}}`
	c, err := w.Registry.CreateCohort(tb.Context(), registry.NewCohort{
		Project: w.Project.ID, CohortFields: registry.CohortFields{Name: registry.To(&name), Filters: registry.To(json.RawMessage(filters))},
	}, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

const (
	performsAction = `{"type": "behavioral", "key": %d, "event_type": "actions", "value": "performed_event", "time_value": 30, "time_interval": "day"}`
	performsEvent  = `{"type": "behavioral", "key": "a", "event_type": "events", "value": "performed_event", "time_value": 30, "time_interval": "day"}`
	inCohort       = `{"type": "cohort", "key": "id", "value": %d}`
)

// TestUsersOfCohorts: cohorts and actions use each other, and what is used can't be deleted.
func TestUsersOfCohorts(t *testing.T) {
	w := apitest.NewForActions(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "*")
	w.NewAction(t, `{"name": "club"}`)
	members := newCohort(t, w, "members", fmt.Sprintf(performsAction, 1))
	outer := newCohort(t, w, "outer", fmt.Sprintf(inCohort, members.ID))
	if diff := cmp.Diff("cohort 1 members /cohorts/1/", usersOf(t, w, 1)); diff != "" {
		t.Errorf("users of the action (-want +got):\n%s", diff)
	}
	refused := func(cohort int64, key *registry.Key) string {
		t.Helper()
		err := w.References.Of(w.Registry.Snapshot(), w.Project.ID).RefuseDeletion(cohort, key)
		if err == nil {
			return ""
		}
		return api.ErrorOf(err).Detail
	}
	expect := func(what string, cohort int64, key *registry.Key, want string) {
		t.Helper()
		if diff := cmp.Diff(want, refused(cohort, key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("a cohort that nothing uses", outer.ID, nil, "")
	expect("a cohort in a cohort", members.ID, w.Key, "This cohort is used as criteria in 1 other cohort(s): outer. Change or delete these first.")
	w.NewAction(t, `{"name": "step", "steps": [{"event": "a", "properties": [`+fmt.Sprintf(inCohort, members.ID)+`]}]}`)
	query := fmt.Sprintf(`{"kind": "TrendsQuery", "series": [{"event": "a"}], "properties": [`+inCohort+`]}`, members.ID)
	for n := range 7 {
		name := fmt.Sprint("insight ", n+1)
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{Name: registry.To(&name), Query: registry.To(json.RawMessage(query))}, "", apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	w.NewEndpoint(t, "e", fmt.Sprintf("select 1 from persons where id in cohort %d", members.ID))
	accounts := fmt.Sprintf(`[`+inCohort+`]`, members.ID)
	if _, err := w.Registry.UpdateProject(t.Context(), w.Project.ID, registry.ProjectChange{TestAccountFilters: &accounts}); err != nil {
		t.Fatal(err)
	}
	expect("all kinds of users", members.ID, w.Key,
		"This cohort is used in 7 insight(s): insight 1, insight 2, insight 3, insight 4, insight 5 and 2 more; as criteria in 1 other cohort(s): outer; "+
			"in the project's filters against test accounts; in 1 endpoint(s): e (version 1); in the steps of 1 action(s): step. Change or delete these first.")
	reader, _ := w.NewKey(t, w.Project.ID, registry.Personal, "cohort:write")
	if got := refused(members.ID, reader); strings.Contains(got, "insight 1") || strings.Contains(got, "step.") || !strings.Contains(got, "outer") {
		t.Errorf("a key that may read cohorts alone is told: %s", got)
	}
}

// TestCohortRoutesKnowUsers: the routes of cohorts show what uses a cohort, and refuse to delete it.
func TestCohortRoutesKnowUsers(t *testing.T) {
	w := apitest.NewForActions(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "cohort:write", "action:write")
	members, path := newCohort(t, w, "members", performsEvent), "/api/projects/@current/cohorts/"
	w.NewAction(t, `{"name": "step", "steps": [{"event": "a", "properties": [`+fmt.Sprintf(inCohort, members.ID)+`]}]}`)
	shown := w.Send(t, http.MethodGet, path+"1/", "")
	if users, _ := apitest.FieldOf(t, shown, "used_by").([]any); len(users) != 1 || apitest.FieldOf(t, shown, "reference_count") != 1.0 {
		t.Errorf("the record says %s", shown.Body)
	}
	refused := w.Send(t, http.MethodPatch, path+"1/", `{"deleted": true}`)
	const want = "This cohort is used in the steps of 1 action(s): step. Change or delete these first."
	if refused.Code != http.StatusBadRequest || apitest.FieldOf(t, refused, "detail") != want || apitest.FieldOf(t, refused, "attr") != "deleted" {
		t.Errorf("deleting it: %d %s", refused.Code, refused.Body)
	}
	looping := fmt.Sprintf(`{"filters": {"properties": {"type": "AND", "values": [`+performsAction+`]}}}`, 1)
	if answer := w.Send(t, http.MethodPatch, path+"1/", looping); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "in a loop") {
		t.Errorf("a loop over an action: %d %s", answer.Code, answer.Body)
	}
	if w.Registry.Snapshot().Cohort(w.Project.ID, 1) == nil {
		t.Fatal("the cohort is gone")
	}
	w.Send(t, http.MethodPatch, apitest.ActionsPath+"1/", `{"deleted": true}`)
	if answer := w.Send(t, http.MethodPatch, path+"1/", `{"deleted": true}`); answer.Code != http.StatusOK {
		t.Errorf("deleting what nothing uses: %d %s", answer.Code, answer.Body)
	}
}

// TestCohortOfNoAction: a cohort that refers to a deleted action is refused with the action's name.
func TestCohortOfNoAction(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "Joined the club", "steps": [{"event": "join"}]}`)
	w.NewAction(t, `{"steps": [{"event": "join"}]}`)
	for _, route := range []string{"1/", "2/"} {
		w.Send(t, http.MethodPatch, apitest.ActionsPath+route, `{"deleted": true}`)
	}
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "cohort:write")
	for id, want := range map[int]string{
		1: `Action "Joined the club" (ID 1) was deleted.`,
		2: "Action ID 2 was deleted.",
		3: "Action ID 3 does not exist!",
	} {
		body := fmt.Sprintf(`{"name": "c", "filters": {"properties": {"type": "AND", "values": [`+performsAction+`]}}}`, id)
		answer := w.Send(t, http.MethodPost, "/api/projects/@current/cohorts/", body)
		if got := apitest.FieldOf(t, answer, "detail"); answer.Code != http.StatusBadRequest || got != want {
			t.Errorf("%d: %d %v, want %s", id, answer.Code, got, want)
		}
	}
}

// TestLoopsOverActions: an action can't depend on itself in any way.
func TestLoopsOverActions(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "a", "steps": [{"event": "x"}]}`)
	w.NewAction(t, `{"name": "b", "steps": [{"properties": [{"type": "hogql", "key": "matchesAction('a')"}]}]}`)
	members := newCohort(t, w, "members", fmt.Sprintf(performsAction, 1))
	outer := newCohort(t, w, "outer", fmt.Sprintf(inCohort, members.ID))
	for what, filter := range map[string]string{
		"itself":                    `{"type": "hogql", "key": "matchesAction(1)"}`,
		"itself by its name":        `{"type": "hogql", "key": "matchesAction('a')"}`,
		"an action that asks back":  `{"type": "hogql", "key": "matchesAction(2)"}`,
		"a cohort":                  fmt.Sprintf(inCohort, members.ID),
		"a cohort of a cohort":      fmt.Sprintf(inCohort, outer.ID),
		"a cohort in an expression": `{"type": "hogql", "key": "person_id in cohort 'outer'"}`,
	} {
		before := w.Registry.Snapshot().Revision
		answer := w.Send(t, http.MethodPatch, apitest.ActionsPath+"1/", `{"steps": [{"event": "x"}, {"properties": [`+filter+`]}]}`)
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "detail") != "Actions and cohorts cannot reference each other in a loop." {
			t.Errorf("%s: %d %s", what, answer.Code, answer.Body)
		}
		if w.Registry.Snapshot().Revision != before {
			t.Errorf("%s: what was refused was written", what)
		}
	}
	if answer := w.Send(t, http.MethodPatch, apitest.ActionsPath+"2/", `{"steps": [{"properties": [`+fmt.Sprintf(inCohort, outer.ID)+`]}]}`); answer.Code != http.StatusOK {
		t.Errorf("a cohort that does not ask back: %d %s", answer.Code, answer.Body)
	}
	for _, step := range []struct {
		path, body string
		want       int
	}{
		{"1/", `{"deleted": true}`, http.StatusOK},
		{"2/", `{"steps": [{"event": "y"}]}`, http.StatusOK},
		{"1/", `{"steps": [{"properties": [{"type": "hogql", "key": "matchesAction(2)"}]}]}`, http.StatusOK},
		{"1/", `{"deleted": false}`, http.StatusOK},
		{"2/", `{"steps": [{"properties": [{"type": "hogql", "key": "matchesAction(1)"}]}]}`, http.StatusBadRequest},
	} {
		if answer := w.Send(t, http.MethodPatch, apitest.ActionsPath+step.path, step.body); answer.Code != step.want {
			t.Errorf("%s %s: %d %s, want %d", step.path, step.body, answer.Code, answer.Body, step.want)
		}
	}
}

// changesOf returns the codes and details of the changes in an endpoint's record.
func changesOf(t *testing.T, w *apitest.World, path string) string {
	t.Helper()
	answer := w.Send(t, http.MethodGet, "/api/projects/@current/"+path, "")
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	found, _ := apitest.FieldOf(t, answer, "changes").(map[string]any)
	var out []string
	for _, kind := range []string{"breaking", "compatible"} {
		list, _ := found[kind].([]any)
		for _, one := range list {
			change, _ := one.(map[string]any)
			out = append(out, fmt.Sprintf("%s %s: %s", kind, change["code"], change["detail"]))
		}
	}
	return strings.Join(out, "; ")
}

// TestEndpointsTellOfActions: an endpoint's record reports what happened to what its query uses since it was published.
func TestEndpointsTellOfActions(t *testing.T) {
	w := apitest.NewForActions(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "*")
	w.NewAction(t, `{"name": "club", "steps": [{"event": "a"}]}`)
	members := newCohort(t, w, "members", fmt.Sprintf(performsAction, 1))
	w.NewEndpoint(t, "direct", "select count() from events where matchesAction(1)")
	w.NewEndpoint(t, "through", fmt.Sprintf("select count() from events where person_id in cohort %d", members.ID))
	w.NewEndpoint(t, "neither", "select 1")
	// Everything in a world was created long ago, so what is written now comes later.
	made := apitest.Began.Add(-time.Hour)
	actions := func(f registry.ActionFields, at time.Time) {
		t.Helper()
		if _, err := w.Registry.UpdateAction(t.Context(), w.Project.ID, 1, f, at); err != nil {
			t.Fatal(err)
		}
	}
	actions(registry.ActionFields{Name: registry.To(new("a"))}, made)
	actions(registry.ActionFields{Name: registry.To(new("club"))}, made)
	expect := func(what string, want map[string]string) {
		t.Helper()
		for path, text := range want {
			if diff := cmp.Diff(text, changesOf(t, w, path)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", what, path, diff)
			}
		}
	}
	expect("nothing", map[string]string{"endpoints/direct/": "", "endpoints/through/": "", "endpoints/neither/": ""})
	actions(registry.ActionFields{Description: registry.To("d")}, apitest.Began.Add(time.Hour))
	expect("a description", map[string]string{"endpoints/direct/": "", "endpoints/through/": ""})
	actions(registry.ActionFields{Steps: registry.To([]registry.ActionStep{{Event: new("b")}})}, apitest.Began.Add(2*time.Hour))
	const changed = `compatible action_changed: action "club" (ID 1) was changed after version 1 was published`
	expect("new steps", map[string]string{"endpoints/direct/": changed, "endpoints/direct/?version=1": changed, "endpoints/through/": changed, "endpoints/neither/": ""})
	actions(registry.ActionFields{Deleted: registry.To(true)}, apitest.Began.Add(3*time.Hour))
	const deleted = `breaking action_deleted: action "club" (ID 1) was deleted`
	expect("a deletion", map[string]string{"endpoints/direct/": deleted, "endpoints/through/": deleted, "endpoints/neither/": ""})
	if _, err := w.Registry.UpdateCohort(t.Context(), w.Project.ID, members.ID, registry.CohortFields{Deleted: registry.To(true)}, apitest.Began.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	expect("a cohort that is deleted", map[string]string{"endpoints/through/": `breaking cohort_deleted: cohort "members" (ID 1) was deleted`})

	// Publishing a version that uses something deleted breaks callers.
	if _, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "direct", registry.EndpointUpdate{Query: json.RawMessage(`{"kind": "HogQLQuery", "query": "select 2"}`)}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	refused := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/direct/promote/", `{"version": 1, "refuse_breaking": true}`)
	if refused.Code != http.StatusBadRequest || !strings.Contains(refused.Body.String(), `action \"club\" (ID 1) was deleted`) {
		t.Errorf("going back to it: %d %s", refused.Code, refused.Body)
	}
}
