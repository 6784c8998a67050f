package result_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// must fails the test if a write failed.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestRecallAfterWrites: a write invalidates exactly the plans that depend on what it changes.
func TestRecallAfterWrites(t *testing.T) {
	const none, runs, all = "none", "runs", "all"
	type made struct {
		*registry.Registry
		project, other int64
		variable       *registry.Variable
		cohort         *registry.Cohort
		action         *registry.Action
		key            *registry.Key
	}
	name := func(text string) registry.Field[*string] { return registry.To(&text) }
	active := false
	for _, tt := range []struct {
		name  string
		write func(ctx context.Context, m *made) error
		drops string
	}{
		{"nothing", func(context.Context, *made) error { return nil }, none},
		{"a new insight", func(ctx context.Context, m *made) error {
			_, err := m.CreateInsight(ctx, m.project, registry.InsightFields{Name: name("i")}, "", apitest.Began)
			return err
		}, none},
		{"a new dashboard", func(ctx context.Context, m *made) error {
			_, err := m.CreateDashboard(ctx, m.project, registry.DashboardFields{Name: name("d")}, "", apitest.Began)
			return err
		}, none},
		{"a new annotation", func(ctx context.Context, m *made) error {
			_, err := m.CreateAnnotation(ctx, m.project, registry.AnnotationFields{Content: name("a"), At: registry.To(apitest.Began)}, "", apitest.Began)
			return err
		}, none},
		{"a new endpoint", func(ctx context.Context, m *made) error {
			_, err := m.CreateEndpoint(ctx, registry.NewEndpoint{Project: m.project, Name: "another", Query: []byte(`{"kind": "HogQLQuery", "query": "select 2"}`)}, apitest.Began)
			return err
		}, none},
		{"a key that is used", func(ctx context.Context, m *made) error {
			m.Touch(m.key, apitest.Began.Add(48*time.Hour))
			return nil
		}, none},
		{"a revoked key", func(ctx context.Context, m *made) error {
			_, err := m.RevokeKey(ctx, m.key.ID, apitest.Began)
			return err
		}, none}, // each request looks its key up
		{"a variable of another project", func(ctx context.Context, m *made) error {
			_, err := m.CreateVariable(ctx, registry.NewVariable{Project: m.other, Name: "z", Type: registry.VariableNumber}, apitest.Began)
			return err
		}, none},
		{"the zone of another project", func(ctx context.Context, m *made) error {
			zone := "Asia/Tokyo"
			_, err := m.UpdateProject(ctx, m.other, registry.ProjectChange{Timezone: &zone})
			return err
		}, none},
		{"another version of the endpoint", func(ctx context.Context, m *made) error {
			_, err := m.UpdateEndpoint(ctx, m.project, "e", registry.EndpointUpdate{Query: []byte(`{"kind": "HogQLQuery", "query": "select 3"}`)}, apitest.Began)
			return err
		}, runs},
		{"an older version of the endpoint", func(ctx context.Context, m *made) error {
			_, err := m.Promote(ctx, m.project, "e", 1, nil, apitest.Began)
			return err
		}, runs},
		{"a version that is switched off", func(ctx context.Context, m *made) error {
			_, err := m.UpdateEndpoint(ctx, m.project, "e", registry.EndpointUpdate{Version: 1, Active: &active}, apitest.Began)
			return err
		}, runs},
		{"the freshness of the endpoint", func(ctx context.Context, m *made) error {
			seconds := 7
			_, err := m.UpdateEndpoint(ctx, m.project, "e", registry.EndpointUpdate{FreshnessSeconds: &seconds}, apitest.Began)
			return err
		}, runs},
		{"the default of a variable", func(ctx context.Context, m *made) error {
			_, err := m.UpdateVariable(ctx, m.project, m.variable.ID, registry.VariableUpdate{Default: []byte("2")})
			return err
		}, all},
		{"a variable that is deleted", func(ctx context.Context, m *made) error {
			return m.DeleteVariable(ctx, m.project, m.variable.ID)
		}, all},
		{"a variable that is new", func(ctx context.Context, m *made) error {
			_, err := m.CreateVariable(ctx, registry.NewVariable{Project: m.project, Name: "z", Type: registry.VariableNumber}, apitest.Began)
			return err
		}, all},
		{"the members of a cohort", func(ctx context.Context, m *made) error {
			_, err := m.SetCohortMembers(ctx, m.project, m.cohort.ID, 3, apitest.Began)
			return err
		}, all},
		{"the name of an action", func(ctx context.Context, m *made) error {
			_, err := m.UpdateAction(ctx, m.project, m.action.ID, registry.ActionFields{Name: name("other")}, apitest.Began)
			return err
		}, all},
		{"the type of a property", func(ctx context.Context, m *made) error {
			return m.SetProperty(ctx, m.project, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "p", Type: registry.PropertyNumeric})
		}, all},
		{"a group type", func(ctx context.Context, m *made) error {
			return m.Learn(ctx, m.project, nil, []registry.GroupType{{Index: 0, Name: "company"}})
		}, all},
		{"the zone", func(ctx context.Context, m *made) error {
			zone := "Asia/Tokyo"
			_, err := m.UpdateProject(ctx, m.project, registry.ProjectChange{Timezone: &zone})
			return err
		}, all},
		{"for how long events are kept", func(ctx context.Context, m *made) error {
			days := 90
			_, err := m.UpdateProject(ctx, m.project, registry.ProjectChange{Retention: &days})
			return err
		}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, ctx := apitest.New(t), t.Context()
			reg, id := w.Registry, w.Project.ID
			m := &made{Registry: reg, project: id, other: w.NewProject(t).ID}
			m.variable = must[*registry.Variable](t)(reg.CreateVariable(ctx, registry.NewVariable{Project: id, Name: "x", Type: registry.VariableNumber}, apitest.Began))
			m.cohort = must[*registry.Cohort](t)(reg.CreateCohort(ctx, registry.NewCohort{
				Project: id, CohortFields: registry.CohortFields{Name: name("c"), Static: registry.To(true)},
			}, apitest.Began))
			m.action = must[*registry.Action](t)(reg.CreateAction(ctx, id, registry.ActionFields{Name: name("a")}, "", apitest.Began))
			m.key, _ = w.NewKey(t, id, registry.Personal, "query:read")
			w.NewEndpoint(t, "e", "select 1")
			must[*registry.Endpoint](t)(reg.UpdateEndpoint(ctx, id, "e", registry.EndpointUpdate{Query: []byte(`{"kind": "HogQLQuery", "query": "select 2"}`)}, apitest.Began))
			run, asked := []byte("run"), []byte("query")
			before := w.Asks(http.MethodPost, "/")
			p, err := before.PlanRun(before.Snapshot.Endpoint(id, "e"), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.Plans.Put(run, p)
			if p, err = before.PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"}}`)); err != nil {
				t.Fatal(err)
			}
			w.Plans.Put(asked, p)

			if err := tt.write(ctx, m); err != nil {
				t.Fatal(err)
			}
			after := w.Asks(http.MethodPost, "/")
			after.Project = after.Snapshot.Project(id)
			if _, ok := after.Recall(run, after.Snapshot.Endpoint(id, "e")); ok != (tt.drops == none) {
				t.Errorf("the plan of a run is used: %t", ok)
			}
			if _, ok := after.Recall(asked, nil); ok != (tt.drops != all) {
				t.Errorf("the plan of a query is used: %t", ok)
			}
			// Requests from before the write are still answered with the earlier plan.
			if _, ok := before.Recall(run, before.Snapshot.Endpoint(id, "e")); !ok {
				t.Error("the plan of a run does not hold for a request from before the write")
			}
		})
	}
}

// TestHitsSeeEveryWrite sends runs continuously while their meaning changes: a run that begins after a write never shows the state before it.
func TestHitsSeeEveryWrite(t *testing.T) {
	ask := func(query string, variable *registry.Variable) json.RawMessage {
		node := map[string]any{"kind": "HogQLQuery", "query": query}
		if variable != nil {
			node["variables"] = map[string]any{variable.ID: map[string]any{"variableId": variable.ID, "code_name": variable.CodeName}}
		}
		return jsontext.Append(nil, node)
	}
	for _, tt := range []struct {
		name string
		// begin creates the endpoint e, and returns a function that changes it.
		begin func(t *testing.T, w *apitest.World) (change func(round int))
	}{
		{"versions", func(t *testing.T, w *apitest.World) func(int) {
			t.Helper()
			w.NewEndpoint(t, "e", "select 0")
			return func(round int) {
				must[*registry.Endpoint](t)(w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "e",
					registry.EndpointUpdate{Query: ask(fmt.Sprintf("select %d", round), nil)}, apitest.Began))
			}
		}},
		{"the default of a variable", func(t *testing.T, w *apitest.World) func(int) {
			t.Helper()
			v := must[*registry.Variable](t)(w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: w.Project.ID, Name: "x", Type: registry.VariableNumber}, apitest.Began))
			must[*registry.Endpoint](t)(w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: "e", Query: ask("select {variables.x}", v)}, apitest.Began))
			return func(round int) {
				must[*registry.Variable](t)(w.Registry.UpdateVariable(t.Context(), w.Project.ID, v.ID, registry.VariableUpdate{Default: jsontext.Append(nil, round)}))
			}
		}},
		{"the members of a cohort", func(t *testing.T, w *apitest.World) func(int) {
			t.Helper()
			c := must[*registry.Cohort](t)(w.Registry.CreateCohort(t.Context(), registry.NewCohort{
				Project: w.Project.ID, CohortFields: registry.CohortFields{Static: registry.To(true)},
			}, apitest.Began))
			w.NewEndpoint(t, "e", fmt.Sprintf("select count() from events where person_id in cohort %d", c.ID))
			return func(round int) {
				must[*registry.Cohort](t)(w.Registry.SetCohortMembers(t.Context(), w.Project.ID, c.ID, int64(round), apitest.Began))
			}
		}},
		{"another endpoint of the name", func(t *testing.T, w *apitest.World) func(int) {
			t.Helper()
			w.NewEndpoint(t, "e", "select 0")
			return func(round int) {
				if err := w.Registry.DeleteEndpoint(t.Context(), w.Project.ID, "e", apitest.Began); err != nil {
					t.Fatal(err)
				}
				w.NewEndpoint(t, "e", "select 0")
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.New(t)
			change := tt.begin(t, w)
			shown := func() (round int, ok bool) {
				answer := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/e/run", `{"limit": 10}`)
				if answer.Code != http.StatusOK {
					return 0, false // nothing is stored yet, and ClickHouse is unavailable
				}
				var body struct{ Results [][]any }
				if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || len(body.Results) != 1 {
					t.Errorf("answered %s: %v", answer.Body, err)
					return 0, false
				}
				n, _ := body.Results[0][0].(float64)
				return int(n), true
			}
			var done atomic.Int64 // the last round whose change has returned
			stop := make(chan struct{})
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						least := int(done.Load())
						if round, ok := shown(); ok && round < least {
							t.Errorf("a run that apitest.Began after change %d shows what was so after change %d", least, round)
							return
						}
					}
				})
			}
			for round := 1; round <= 20 && !t.Failed(); round++ {
				change(round)
				done.Store(int64(round))
				must[*registry.Annotation](t)(w.Registry.CreateAnnotation(t.Context(), w.Project.ID, registry.AnnotationFields{At: registry.To(apitest.Began)}, "", apitest.Began))
				p, err := w.PlanAs(w.Key, "e", `{"limit": 10}`)
				if err != nil {
					t.Fatal(err)
				}
				w.Remember(t, p, time.Now(), fmt.Sprintf(`[%d, "round"]`, round))
				if got, ok := shown(); !ok || got != round {
					t.Errorf("after change %d: shows %d, %t", round, got, ok)
				}
			}
			close(stop)
			readers.Wait()
		})
	}
}

// TestHitsSeeWhatTheirKeyMay sends hits continuously while their key loses rights: none that begins afterwards is answered.
func TestHitsSeeWhatTheirKeyMay(t *testing.T) {
	for _, tt := range []struct {
		name string
		take func(ctx context.Context, reg *registry.Registry, key *registry.Key) error
		want int
	}{
		{"revoked", func(ctx context.Context, reg *registry.Registry, key *registry.Key) error {
			_, err := reg.RevokeKey(ctx, key.ID, time.Now())
			return err
		}, http.StatusUnauthorized},
		{"rolled", func(ctx context.Context, reg *registry.Registry, key *registry.Key) error {
			_, _, err := reg.RollKey(ctx, key.ID, nil, time.Now())
			return err
		}, http.StatusUnauthorized},
		{"another scope", func(ctx context.Context, reg *registry.Registry, key *registry.Key) error {
			_, err := reg.UpdateKey(ctx, key.ID, registry.KeyUpdate{Scopes: []string{"insight:read"}}, time.Now())
			return err
		}, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.New(t)
			w.NewEndpoint(t, "e", "select 1")
			p, err := w.PlanAs(w.Key, "e", "")
			if err != nil {
				t.Fatal(err)
			}
			w.Remember(t, p, time.Now(), `[1, "row"]`)
			for range 10 {
				key, secret := w.NewKey(t, w.Project.ID, registry.Personal, "endpoint:read")
				var taken atomic.Bool
				var served atomic.Int64
				var readers sync.WaitGroup
				for range 4 {
					readers.Go(func() {
						for {
							after := taken.Load()
							code := w.RunWith(t, secret, "e", "").Code
							switch {
							case after && code != tt.want:
								t.Errorf("answered %d after the key was %s, want %d", code, tt.name, tt.want)
								return
							case after:
								return
							case !slices.Contains([]int{http.StatusOK, tt.want}, code):
								t.Errorf("answered %d", code)
								return
							}
							served.Add(1)
						}
					})
				}
				for deadline := time.Now().Add(10 * time.Second); served.Load() < 8 && time.Now().Before(deadline); {
					must[*registry.Annotation](t)(w.Registry.CreateAnnotation(t.Context(), w.Project.ID, registry.AnnotationFields{At: registry.To(apitest.Began)}, "", apitest.Began))
				}
				if err := tt.take(t.Context(), w.Registry, key); err != nil {
					t.Fatal(err)
				}
				taken.Store(true)
				readers.Wait()
			}
		})
	}
}

// TestRecallTellsAddressesFromHeaders: a field may ask for another format than a header, but not than the address.
func TestRecallTellsAddressesFromHeaders(t *testing.T) {
	const header, address = "200 by the header", "400 by the address"
	for _, order := range [][]string{{header, address, header}, {address, header, address}} {
		w := apitest.NewWithEndpoints(t)
		w.RememberMine(t, "acme", 1, 3)
		for _, want := range order {
			path, accept := apitest.MinePath, "application/json;profile=objects"
			if want == address {
				path, accept = path+".objects", "*/*"
			}
			got := w.Send(t, http.MethodPost, path+"?format=csv", `{"variables": {"customer": "acme"}, "limit": 2}`, "Accept", accept)
			if fmt.Sprint(got.Code) != want[:3] {
				t.Errorf("%s: %d %s", want, got.Code, got.Body)
			}
		}
	}
}
