package registrytest

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testProjects(t exam) {
	p := newPair(t)
	first, second := p.project(), p.project()
	if first.ID != 1 || second.ID != 2 {
		t.Errorf("projects got the numbers %d and %d, want 1 and 2", first.ID, second.ID)
	}
	var want []project
	for id := range int64(2) {
		shop := registry.Project{ID: id + 1, Name: "Shop ' \" ; --", Timezone: "America/New_York", WeekStart: 1, CreatedAt: at}
		want = append(want, project{Project: shop, Captures: p.Snapshot().CaptureTokens(shop.ID)})
	}
	same(t, "projects", want, p.settled())
	change := registry.ProjectChange{
		Name: new("Other"), Timezone: new("UTC"), WeekStart: new(0), TestAccountFilters: new(`[{"key": "email", "value": "' \" ; --", "type": "person"}]`),
		PathCleaningFilters: new(`[{"regex": "/\\d+", "alias": "/:id"}]`), At: at.Add(time.Hour),
	}
	changed := *must(p.UpdateProject(t.Context(), 2, change))(t)
	want[1].Project = registry.Project{
		ID: 2, Name: "Other", Timezone: "UTC", CreatedAt: at, UpdatedAt: at.Add(time.Hour), TestAccountFilters: *change.TestAccountFilters, PathCleaningFilters: *change.PathCleaningFilters,
	}
	same(t, "the change", want[1].Project, changed)
	same(t, "projects", want, p.settled())
}

func testUnknownProject(t exam) {
	p := newPair(t)
	p.project()
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"a key": func() error {
			_, _, err := p.CreateKey(ctx, registry.NewKey{Project: 9, Scopes: []string{"*"}}, at)
			return err
		},
		"an endpoint": func() error {
			_, err := p.CreateEndpoint(ctx, registry.NewEndpoint{Project: 9, Name: "e", Query: odd("")}, at)
			return err
		},
		"a cohort": func() error {
			_, err := p.CreateCohort(ctx, registry.NewCohort{Project: 9, CohortFields: staticCohort("c")}, at)
			return err
		},
		"an action": func() error { _, err := p.CreateAction(ctx, 9, registry.ActionFields{}, "key", at); return err },
		"a variable": func() error {
			_, err := p.CreateVariable(ctx, registry.NewVariable{Project: 9, Name: "v", Type: registry.VariableList}, at)
			return err
		},
		"an insight":      func() error { _, err := p.CreateInsight(ctx, 9, named("i"), "key", at); return err },
		"a dashboard":     func() error { _, err := p.CreateDashboard(ctx, 9, registry.DashboardFields{}, "key", at); return err },
		"a capture token": func() error { _, err := p.RotateCaptureToken(ctx, 9, at); return err },
		"a secret":        func() error { _, err := p.TokenSecret(ctx, 9, at); return err },
		"a rotation":      func() error { _, err := p.RotateTokenSecret(ctx, 9, false, at); return err },
		"a property": func() error {
			return p.SetProperty(ctx, 9, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyNumeric})
		},
		"a group type":       func() error { return p.Learn(ctx, 9, nil, []registry.GroupType{{Name: "x"}}) },
		"a batch":            func() error { return p.Apply(ctx, 9, registry.Batch{}, at) },
		"a purge":            func() error { _, err := p.Purge(ctx, 9, at); return err },
		"a project's change": func() error { _, err := p.UpdateProject(ctx, 9, registry.ProjectChange{}); return err },
	} {
		p.refused(name, registry.ErrNotFound, do)
	}
}

func testMissing(t exam) {
	p := newPair(t)
	mine, other := p.project(), p.project()
	ctx := t.Context()
	i := p.insight(other.ID, named("i"))
	d := p.dashboard(other.ID, registry.DashboardFields{})
	must(p.CreateCohort(ctx, registry.NewCohort{Project: other.ID, ID: 5, CohortFields: staticCohort("theirs")}, at))(t)
	a := must(p.CreateAction(ctx, other.ID, registry.ActionFields{}, "key", at))(t)
	p.endpoint(other.ID, "theirs")
	v := must(p.CreateVariable(ctx, registry.NewVariable{Project: other.ID, Name: "v", Type: registry.VariableString}, at))(t)
	p.endpoint(mine.ID, "gone")
	if err := p.DeleteEndpoint(ctx, mine.ID, "gone", at); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"rolling a key":  func() error { _, _, err := p.RollKey(ctx, "k", nil, at); return err },
		"revoking a key": func() error { _, err := p.RevokeKey(ctx, "k", at); return err },
		"changing a key": func() error { _, err := p.UpdateKey(ctx, "k", registry.KeyUpdate{}, at); return err },
		"changing an endpoint of another project": func() error {
			_, err := p.UpdateEndpoint(ctx, mine.ID, "theirs", registry.EndpointUpdate{}, at)
			return err
		},
		"changing an endpoint that is deleted": func() error {
			_, err := p.UpdateEndpoint(ctx, mine.ID, "gone", registry.EndpointUpdate{}, at)
			return err
		},
		"promoting an endpoint that is deleted":   func() error { _, err := p.Promote(ctx, mine.ID, "gone", 1, nil, at); return err },
		"deleting an endpoint of another project": func() error { return p.DeleteEndpoint(ctx, mine.ID, "theirs", at) },
		"deleting an endpoint that is deleted":    func() error { return p.DeleteEndpoint(ctx, mine.ID, "gone", at) },
		"changing a variable of another project":  func() error { _, err := p.UpdateVariable(ctx, mine.ID, v.ID, registry.VariableUpdate{}); return err },
		"deleting a variable of another project":  func() error { return p.DeleteVariable(ctx, mine.ID, v.ID) },
		"renaming a cohort of another project":    func() error { _, err := p.UpdateCohort(ctx, mine.ID, 5, staticCohort("mine"), at); return err },
		"computing a cohort of another project":   func() error { _, err := p.AwaitCohort(ctx, mine.ID, 5); return err },
		"filling a cohort of another project":     func() error { _, err := p.SetCohortMembers(ctx, mine.ID, 5, 1, at); return err },
		"changing an action of another project": func() error {
			_, err := p.UpdateAction(ctx, mine.ID, a.ID, registry.ActionFields{}, at)
			return err
		},
		"changing an insight of another project": func() error {
			_, err := p.UpdateInsight(ctx, mine.ID, i.ID, named("mine"), true, "key", at)
			return err
		},
		"changing a dashboard of another project": func() error {
			_, err := p.UpdateDashboard(ctx, mine.ID, d.ID, registry.DashboardFields{}, "key", at)
			return err
		},
	} {
		p.refused(name, registry.ErrNotFound, do)
	}
	p.refused("an insight on another project's dashboard", &registry.FieldError{Field: "dashboards", Code: registry.CodeNoObject}, func() error {
		_, err := p.CreateInsight(ctx, mine.ID, registry.InsightFields{Dashboards: registry.To([]int64{d.ID})}, "key", at)
		return err
	})
	p.refused("another project's insight on a dashboard", &registry.FieldError{Field: "tiles.0.insight", Code: registry.CodeNoObject}, func() error {
		_, err := p.CreateDashboard(ctx, mine.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}}, "key", at)
		return err
	})
	p.refused("a tile of an insight that is not there", &registry.FieldError{Field: "tiles.0.insight", Code: registry.CodeNoObject}, func() error {
		_, err := p.UpdateDashboard(ctx, other.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: 9}}}, "key", at)
		return err
	})
	p.refused("a version that is not there", &registry.FieldError{Field: "version", Code: registry.CodeInvalid}, func() error {
		_, err := p.UpdateEndpoint(ctx, other.ID, "theirs", registry.EndpointUpdate{Version: 2}, at)
		return err
	})
}
