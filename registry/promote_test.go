package registry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// states reports which version of an endpoint is the current one, and since when each is published.
type states struct {
	Current   int
	Published []time.Time
}

func statesOf(e *registry.Endpoint) states {
	s := states{Current: e.CurrentVersion}
	for i := range e.Versions {
		s.Published = append(s.Published, e.Versions[i].PublishedAt)
	}
	return s
}

// TestPromoteAndRollBack follows an endpoint through a draft, its promotion, and back.
func TestPromoteAndRollBack(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	draft := registry.EndpointUpdate{Query: query("select 2"), Draft: true}
	never := time.Time{}
	second, third := moment.Add(time.Minute), moment.Add(2*time.Minute)
	steps := []struct {
		name string
		do   func() (*registry.Endpoint, error)
		want states
	}{
		{"draft", func() (*registry.Endpoint, error) { return r.UpdateEndpoint(t.Context(), p.ID, "e", draft, now) }, states{1, []time.Time{moment, never}}},
		{"the same draft again", func() (*registry.Endpoint, error) {
			return r.UpdateEndpoint(t.Context(), p.ID, "e", draft, now)
		}, states{1, []time.Time{moment, never}}},
		{"promote", func() (*registry.Endpoint, error) { return r.Promote(t.Context(), p.ID, "e", 2, nil, second) }, states{2, []time.Time{moment, second}}},
		{"promote again", func() (*registry.Endpoint, error) { return r.Promote(t.Context(), p.ID, "e", 2, nil, third) }, states{2, []time.Time{moment, second}}},
		{"roll back", func() (*registry.Endpoint, error) { return r.Promote(t.Context(), p.ID, "e", 1, nil, third) }, states{1, []time.Time{third, second}}},
		{"publish after that", func() (*registry.Endpoint, error) {
			return r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query("select 3")}, third)
		}, states{3, []time.Time{third, second, third}}},
	}
	for _, step := range steps {
		e := must(step.do())(t)
		if diff := cmp.Diff(step.want, statesOf(e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(e, r.Snapshot().Endpoint(p.ID, "e")); diff != "" {
			t.Errorf("%s: Endpoint() (-returned +found):\n%s", step.name, diff)
		}
	}
	checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
}

func TestPromoteRefuses(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	for _, sql := range []string{"select 2", "select 3"} {
		must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query(sql)}, now))(t)
	}
	must(r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Version: 2, Active: new(false)}, now))(t)
	before := records(r.Snapshot())
	mine := errors.New("mine")
	var asked [][2]int
	check := func(from, to *registry.Version) error {
		asked = append(asked, [2]int{from.Number, to.Number})
		return mine
	}
	field := func(text string) *registry.FieldError {
		return &registry.FieldError{Field: "version", Code: registry.CodeInvalid, Message: text}
	}
	for version, want := range map[int]*registry.FieldError{
		0: field("Version 0 not found"), -1: field("Version -1 not found"), 4: field("Version 4 not found"),
		2: field("Version 2 is inactive and cannot become the current one."),
	} {
		_, err := r.Promote(t.Context(), p.ID, "e", version, check, now)
		if diff := cmp.Diff(want, mistake(t, err)); diff != "" {
			t.Errorf("Promote(%d) mistake (-want +got):\n%s", version, diff)
		}
	}
	if _, err := r.Promote(t.Context(), p.ID, "e", 1, check, now); !errors.Is(err, mine) {
		t.Errorf("Promote(1) = %v, want the check's error", err)
	}
	update := registry.EndpointUpdate{Query: query("select 4"), Check: check}
	if _, err := r.UpdateEndpoint(t.Context(), p.ID, "e", update, now); !errors.Is(err, mine) {
		t.Errorf("UpdateEndpoint() = %v, want the check's error", err)
	}
	if diff := cmp.Diff([][2]int{{3, 1}, {3, 4}}, asked); diff != "" {
		t.Errorf("checks were asked about (-want +got):\n%s", diff)
	}
	if _, err := r.Promote(t.Context(), p.ID, "x", 1, nil, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("Promote() of an unknown endpoint = %v, want %v", err, registry.ErrNotFound)
	}
	if diff := cmp.Diff(before, records(r.Snapshot())); diff != "" {
		t.Errorf("refused promotions changed something (-before +after):\n%s", diff)
	}
}

// TestApply makes a batch of every kind of change, and the same batch with a mistake at its end, which leaves nothing.
func TestApply(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	for _, name := range []string{"old", "changed"} {
		must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: name, Query: query("select 1")}, now))(t)
	}
	v := must(r.CreateVariable(t.Context(), registry.NewVariable{Project: p.ID, Name: "year", Type: registry.VariableNumber}, now))(t)
	batch := registry.Batch{
		NewVariables: []registry.NewVariable{{ID: "0198a000-0000-7000-8000-000000000001", Name: "branch", Type: registry.VariableString, Default: json.RawMessage(`"main"`)}},
		Variables:    []registry.NamedVariableUpdate{{ID: v.ID, VariableUpdate: registry.VariableUpdate{Default: json.RawMessage(`2026`)}}},
		NewEndpoints: []registry.NewEndpoint{{Name: "new", Query: query("select 2")}},
		Endpoints:    []registry.NamedEndpointUpdate{{Name: "changed", EndpointUpdate: registry.EndpointUpdate{Query: query("select 3")}}},
		Deleted:      []string{"old"},
	}
	before := records(r.Snapshot())

	preview := must(r.Snapshot().Preview(p.ID, batch, now))(t)
	if diff := cmp.Diff(map[string]any{"branch": "main", "year": int64(2026)}, preview.VariableDefaults(p.ID)); diff != "" {
		t.Errorf("defaults in the preview (-want +got):\n%s", diff)
	}
	if preview.VariableByCode(p.ID, "branch").ID != batch.NewVariables[0].ID {
		t.Error("the new variable has not the id that it was given")
	}

	for name, broken := range map[string]func(*registry.Batch){
		"an unknown endpoint to delete": func(b *registry.Batch) { b.Deleted = append(b.Deleted, "x") },
		"an unknown endpoint to change": func(b *registry.Batch) {
			b.Endpoints = append(b.Endpoints, registry.NamedEndpointUpdate{Name: "x"})
		},
		"an unknown variable": func(b *registry.Batch) { b.Variables = append(b.Variables, registry.NamedVariableUpdate{ID: "x"}) },
	} {
		b := batch
		broken(&b)
		if err := r.Apply(t.Context(), p.ID, b, now); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("Apply() with %s = %v, want %v", name, err, registry.ErrNotFound)
		}
	}
	taken := batch
	taken.NewEndpoints = append(taken.NewEndpoints, registry.NewEndpoint{Name: "changed", Query: query("select 2")})
	want := &registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "An endpoint with this name already exists for this team."}
	if diff := cmp.Diff(want, mistake(t, r.Apply(t.Context(), p.ID, taken, now))); diff != "" {
		t.Errorf("Apply() with a taken name (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, records(r.Snapshot())); diff != "" {
		t.Errorf("refused batches changed something (-before +after):\n%s", diff)
	}

	if err := r.Apply(t.Context(), p.ID, batch, now); err != nil {
		t.Fatalf("Apply() = %v", err)
	}
	s := r.Snapshot()
	got := map[string]int{}
	for _, e := range s.Endpoints(p.ID) {
		got[e.Name] = e.CurrentVersion
	}
	if diff := cmp.Diff(map[string]int{"new": 1, "changed": 2}, got); diff != "" {
		t.Errorf("endpoints and their versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(preview.VariableDefaults(p.ID), s.VariableDefaults(p.ID)); diff != "" {
		t.Errorf("defaults (-preview +applied):\n%s", diff)
	}
	checkSame(t, openAt(t, path, quiet).Snapshot(), s)
}
