package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// large returns a valid query of about that many bytes.
func large(bytes int) json.RawMessage { return query(strings.Repeat("x", bytes)) }

// code is the code of a mistake; empty for none.
func code(t *testing.T, err error) registry.Code {
	t.Helper()
	if found := mistake(t, err); found != nil {
		return found.Code
	}
	return ""
}

// TestRecordsAreBounded writes records that are too large by each method that writes one. Nothing of them stays.
func TestRecordsAreBounded(t *testing.T) {
	r, p := fresh(t)
	ctx := t.Context()
	i := createInsight(t, r, p.ID, named("i"))
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	must(r.CreateEndpoint(ctx, registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	v := must(r.CreateVariable(ctx, registry.NewVariable{Project: p.ID, Name: "v", Type: registry.VariableString}, now))(t)
	a := must(r.CreateAction(ctx, p.ID, registry.ActionFields{}, "k", now))(t)
	c := must(r.CreateCohort(ctx, registry.NewCohort{Project: p.ID, CohortFields: staticCohort("c")}, now))(t)
	checked := false
	before := r.Snapshot()
	too := large(registry.MaxRecord)
	text := string(json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", registry.MaxSmallRecord))))
	object := json.RawMessage(`{"a":` + text + `}`)
	tags := strings.Fields(strings.Repeat("tag ", 1))
	for n := range registry.MaxRecord / 200 {
		tags = append(tags, fmt.Sprintf("%0200d", n))
	}
	for name, do := range map[string]func() error{
		"an alert": func() error {
			_, err := r.CreateAlert(ctx, p.ID, registry.AlertFields{Insight: registry.To(i.ID), Config: registry.To(object)}, "k", now)
			return err
		},
		"a new insight": func() error {
			_, err := r.CreateInsight(ctx, p.ID, registry.InsightFields{Query: registry.To(too)}, "k", now)
			return err
		},
		"a changed insight": func() error {
			_, err := r.UpdateInsight(ctx, p.ID, i.ID, registry.InsightFields{Query: registry.To(too)}, false, "k", now)
			return err
		},
		"the tags of an insight": func() error {
			_, err := r.UpdateInsight(ctx, p.ID, i.ID, registry.InsightFields{Tags: registry.To(tags)}, false, "k", now)
			return err
		},
		"a new dashboard": func() error {
			_, err := r.CreateDashboard(ctx, p.ID, registry.DashboardFields{Filters: registry.To(too)}, "k", now)
			return err
		},
		"a changed dashboard": func() error {
			_, err := r.UpdateDashboard(ctx, p.ID, d.ID, registry.DashboardFields{Description: registry.To(string(too))}, "k", now)
			return err
		},
		"a tile": func() error {
			_, err := r.UpdateDashboard(ctx, p.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: d.Tiles[0].ID, Layouts: registry.To(object)}}}, "k", now)
			return err
		},
		"the layouts of a tile": func() error {
			layouts := json.RawMessage(`{"md":{"a":"` + strings.Repeat("x", 4<<10) + `"}}`)
			_, err := r.UpdateDashboard(ctx, p.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: d.Tiles[0].ID, Layouts: registry.To(layouts)}}}, "k", now)
			return err
		},
		"a new tile": func() error {
			_, err := r.CreateDashboard(ctx, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID, FilterOverrides: registry.To(object)}}}, "k", now)
			return err
		},
		"a new endpoint": func() error {
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: p.ID, Name: "f", Query: too}, now)
			return err
		},
		"a new version": func() error {
			check := func(_, _ *registry.Version) error { checked = true; return nil }
			_, err := r.UpdateEndpoint(ctx, p.ID, "e", registry.EndpointUpdate{Query: too, Check: check}, now)
			return err
		},
		"a new cohort": func() error {
			fields := registry.CohortFields{Filters: registry.To(too), Check: func(*registry.Snapshot, *registry.Cohort) error { checked = true; return nil }}
			_, err := r.CreateCohort(ctx, registry.NewCohort{Project: p.ID, CohortFields: fields}, now)
			return err
		},
		"a changed cohort": func() error {
			fields := registry.CohortFields{Groups: registry.To(too), Check: func(*registry.Snapshot, *registry.Cohort) error { checked = true; return nil }}
			_, err := r.UpdateCohort(ctx, p.ID, c.ID, fields, now)
			return err
		},
		"a changed action": func() error {
			check := func(*registry.Snapshot, *registry.Action) error { checked = true; return nil }
			_, err := r.UpdateAction(ctx, p.ID, a.ID, registry.ActionFields{Description: registry.To(string(too)), Check: check}, now)
			return err
		},
		"a description": func() error {
			_, err := r.UpdateEndpoint(ctx, p.ID, "e", registry.EndpointUpdate{Description: new(string(too))}, now)
			return err
		},
		"the tags of an endpoint": func() error {
			_, err := r.UpdateEndpoint(ctx, p.ID, "e", registry.EndpointUpdate{Tags: &tags}, now)
			return err
		},
		"a new action": func() error {
			_, err := r.CreateAction(ctx, p.ID, registry.ActionFields{Steps: registry.To([]registry.ActionStep{{Selector: new(string(too))}})}, "k", now)
			return err
		},
		"an action that is deleted": func() error {
			_, err := r.UpdateAction(ctx, p.ID, a.ID, registry.ActionFields{Description: registry.To(string(too)), Deleted: registry.To(true)}, now)
			return err
		},
		"a batch": func() error {
			return r.Apply(ctx, p.ID, registry.Batch{NewEndpoints: []registry.NewEndpoint{{Name: "g", Query: too}}}, now)
		},
		"a new variable": func() error {
			_, err := r.CreateVariable(ctx, registry.NewVariable{
				Project: p.ID, Name: "w", Type: registry.VariableString, Default: json.RawMessage(text),
				Check: func(*registry.Variable) error { checked = true; return nil },
			}, now)
			return err
		},
		"a changed variable": func() error {
			_, err := r.UpdateVariable(ctx, p.ID, v.ID, registry.VariableUpdate{
				Default: json.RawMessage(text), Check: func(*registry.Variable) error { checked = true; return nil },
			})
			return err
		},
	} {
		if got := code(t, do()); got != registry.CodeTooBig {
			t.Errorf("%s: %q, want %q", name, got, registry.CodeTooBig)
		}
	}
	if checked {
		t.Error("something was checked that is too large")
	}
	checkSame(t, before, r.Snapshot())
	fits := large(registry.MaxRecord - 100)
	must(r.UpdateInsight(ctx, p.ID, i.ID, registry.InsightFields{Query: registry.To(fits)}, false, "k", now))(t)
	must(r.UpdateEndpoint(ctx, p.ID, "e", registry.EndpointUpdate{Query: fits}, now))(t)
}

// TestListsAreBoundedBeforeAWrite: a list that is too long for its record is refused before the registry looks for the record, which would be ErrNotFound.
func TestListsAreBoundedBeforeAWrite(t *testing.T) {
	r, _ := fresh(t)
	ctx := t.Context()
	const none = 99 // no project
	many := slices.Repeat([]string{"tag"}, registry.MaxRecord/len("tag"))
	values := json.RawMessage("[0" + strings.Repeat(",0", registry.MaxSmallRecord/2) + "]")
	tags := registry.To(many)
	for name, do := range map[string]func() error{
		"the tags of a new insight": func() error {
			_, err := r.CreateInsight(ctx, none, registry.InsightFields{Tags: tags}, "k", now)
			return err
		},
		"the tags of an insight": func() error {
			_, err := r.UpdateInsight(ctx, none, 1, registry.InsightFields{Tags: tags}, false, "k", now)
			return err
		},
		"the tags of a dashboard": func() error {
			_, err := r.UpdateDashboard(ctx, none, 1, registry.DashboardFields{Tags: tags}, "k", now)
			return err
		},
		"the tags of an action": func() error {
			_, err := r.UpdateAction(ctx, none, 1, registry.ActionFields{Tags: tags}, now)
			return err
		},
		"the tags of a definition": func() error {
			_, err := r.Define(ctx, registry.Definition{Project: none, Event: "e"}, registry.DefinitionFields{Tags: tags}, "k", now)
			return err
		},
		"the values of a variable": func() error {
			_, err := r.UpdateVariable(ctx, none, "v", registry.VariableUpdate{Values: values})
			return err
		},
		"the tags of a new endpoint": func() error {
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: none, Name: "e", Query: query("select 1"), Tags: many}, now)
			return err
		},
		"the tags of an endpoint": func() error {
			_, err := r.UpdateEndpoint(ctx, none, "e", registry.EndpointUpdate{Tags: &many}, now)
			return err
		},
		"the optional breakdowns of an endpoint": func() error {
			_, err := r.UpdateEndpoint(ctx, none, "e", registry.EndpointUpdate{OptionalBreakdowns: &many}, now)
			return err
		},
	} {
		if got := code(t, do()); got != registry.CodeTooBig {
			t.Errorf("%s: %q, want %q", name, got, registry.CodeTooBig)
		}
	}
	tiles := make([]registry.TileFields, registry.MaxTiles+1)
	for name, do := range map[string]func() error{
		"the tiles of a dashboard": func() error {
			_, err := r.UpdateDashboard(ctx, none, 1, registry.DashboardFields{Tiles: tiles}, "k", now)
			return err
		},
		"the tiles to duplicate": func() error {
			_, err := r.UpdateDashboard(ctx, none, 1, registry.DashboardFields{Duplicate: tiles}, "k", now)
			return err
		},
		"the dashboards of an insight": func() error {
			_, err := r.UpdateInsight(ctx, none, 1, registry.InsightFields{Dashboards: registry.To(make([]int64, registry.DefaultRecords+1))}, false, "k", now)
			return err
		},
	} {
		if got := code(t, do()); got != registry.CodeTooLong {
			t.Errorf("%s: %q, want %q", name, got, registry.CodeTooLong)
		}
	}
}

// TestManyTags: as many tags as fit are written, each once.
func TestManyTags(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	var given, want []string
	for n := range 60_000 {
		tag := fmt.Sprint(n)
		given, want = append(given, tag, tag), append(want, tag)
	}
	i = must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Tags: registry.To(given)}, false, "k", now))(t)
	if !slices.Equal(want, i.Tags) {
		t.Errorf("of %d tags, each given twice, %d are kept", len(want), len(i.Tags))
	}
}

// TestRecordsOfAProjectAreBounded adds records of each kind until the project has as many as it may. Deleting frees nothing, purging does.
func TestRecordsOfAProjectAreBounded(t *testing.T) {
	r, p := fresh(t)
	other := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Other"}, now))(t)
	r.SetLimits(registry.Limits{Records: 3})
	ctx := t.Context()
	for name, add := range map[string]func(project int64, n int) error{
		"insights": func(project int64, _ int) error {
			_, err := r.CreateInsight(ctx, project, named("i"), "k", now)
			return err
		},
		"dashboards": func(project int64, _ int) error {
			_, err := r.CreateDashboard(ctx, project, registry.DashboardFields{}, "k", now)
			return err
		},
		"endpoints": func(project int64, n int) error {
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: project, Name: fmt.Sprintf("e%d", n), Query: query("select 1")}, now)
			return err
		},
		"endpoints of a batch": func(project int64, n int) error {
			return r.Apply(ctx, project, registry.Batch{NewEndpoints: []registry.NewEndpoint{{Name: fmt.Sprintf("b%d", n), Query: query("select 1")}}}, now)
		},
		"insight variables": func(project int64, n int) error {
			_, err := r.CreateVariable(ctx, registry.NewVariable{Project: project, Name: fmt.Sprintf("v%d", n), Type: registry.VariableString}, now)
			return err
		},
		"keys": func(project int64, _ int) error {
			_, _, err := r.CreateKey(ctx, registry.NewKey{Project: project, Scopes: []string{"*"}}, now)
			return err
		},
		"actions": func(project int64, _ int) error {
			_, err := r.CreateAction(ctx, project, registry.ActionFields{}, "k", now)
			return err
		},
		"cohorts": func(project int64, n int) error {
			_, err := r.CreateCohort(ctx, registry.NewCohort{Project: project, CohortFields: staticCohort(fmt.Sprint(n))}, now)
			return err
		},
	} {
		var err error
		added := 0
		for n := 0; n < 5 && err == nil; n++ {
			if err = add(p.ID, n); err == nil {
				added++
			}
		}
		if got := code(t, err); got != registry.CodeLimit || added > 3 {
			t.Errorf("%s: added %d, then %q: %v", name, added, got, err)
		}
	}
	if _, err := r.CreateInsight(ctx, other.ID, named("i"), "k", now); err != nil {
		t.Errorf("another project: %v", err)
	}
	// Writes that do not change the number go on, even under a lower limit.
	r.SetLimits(registry.Limits{Records: 1})
	first := r.Snapshot().Insights(p.ID)[0]
	must(r.UpdateInsight(ctx, p.ID, first.ID, registry.InsightFields{Description: registry.To(new("d"))}, false, "k", now))(t)
	r.SetLimits(registry.Limits{Records: 3})
	must(r.UpdateInsight(ctx, p.ID, first.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "k", now))(t)
	if _, err := r.CreateInsight(ctx, p.ID, named("i"), "k", now); code(t, err) != registry.CodeLimit {
		t.Errorf("after deleting one: %v", err)
	}
	purged := must(r.Purge(ctx, p.ID, now.Add(time.Second)))(t)
	if diff := cmp.Diff([]int64{first.ID}, purged.Insights); diff != "" {
		t.Errorf("purged (-want +got):\n%s", diff)
	}
	must(r.CreateInsight(ctx, p.ID, named("i"), "k", now))(t)
}

// TestPartsOfAProjectAreBounded: tiles and versions take memory too, however small they are.
func TestPartsOfAProjectAreBounded(t *testing.T) {
	r, p := fresh(t)
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 0")}, now))(t)
	r.SetLimits(registry.Limits{Records: 2})
	fifteen := registry.DashboardFields{Tiles: slices.Repeat([]registry.TileFields{{Text: registry.To(new("x"))}}, 15)}
	must(r.CreateDashboard(t.Context(), p.ID, fifteen, "k", now))(t)
	_, err := r.CreateDashboard(t.Context(), p.ID, fifteen, "k", now)
	if code(t, err) != registry.CodeLimit || !strings.Contains(err.Error(), "This would bring the project to 30 tiles of dashboards; the limit is 20. Delete some") {
		t.Errorf("with 30 tiles: %v", err)
	}
	r.SetLimits(registry.Limits{Records: 1})
	five := registry.DashboardFields{Tiles: fifteen.Tiles[:5]}
	_, err = r.UpdateDashboard(t.Context(), p.ID, 1, five, "k", now)
	if code(t, err) != registry.CodeLimit || !strings.Contains(err.Error(), "This would bring the project to 20 tiles of dashboards; the limit is 10. Delete some") {
		t.Errorf("with 20 tiles under a lower limit: %v", err)
	}
	r.SetLimits(registry.Limits{Records: 2})
	must(r.UpdateDashboard(t.Context(), p.ID, 1, five, "k", now))(t)
	_, err = r.UpdateDashboard(t.Context(), p.ID, 1, five, "k", now)
	if code(t, err) != registry.CodeLimit || !strings.Contains(err.Error(), "This project has 20 tiles of dashboards, which is the most it can have. Delete some") {
		t.Errorf("with 25 tiles: %v", err)
	}
	versions := 0
	for err = nil; err == nil; versions++ {
		_, err = r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: query(fmt.Sprint("select ", versions+1))}, now)
	}
	if code(t, err) != registry.CodeLimit || versions != 20 {
		t.Errorf("after %d versions: %v", versions, err)
	}
}

func TestBytesOfAProjectAreBounded(t *testing.T) {
	r, p := fresh(t)
	r.SetLimits(registry.Limits{Bytes: 3 << 20})
	var err error
	added := 0
	for err == nil && added < 10 {
		if _, err = r.CreateInsight(t.Context(), p.ID, registry.InsightFields{Name: registry.To(new("i")), Query: registry.To(large(1_000_000))}, "k", now); err == nil {
			added++
		}
	}
	if got := code(t, err); got != registry.CodeLimit || added != 3 {
		t.Errorf("added %d of 1 MB to a project that may take 3, then %v", added, err)
	}
	if _, err := r.UpdateInsight(t.Context(), p.ID, 1, registry.InsightFields{Query: registry.To(query("select 1"))}, false, "k", now); err != nil {
		t.Errorf("making one smaller: %v", err)
	}
}

func TestTilesAndVersionsAreBounded(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	tiles := make([]registry.TileFields, registry.MaxTiles)
	for n := range tiles {
		tiles[n].Text = registry.To(new("x"))
	}
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: tiles})
	_, err := r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Dashboards: registry.To([]int64{d.ID})}, false, "k", now)
	if code(t, err) != registry.CodeLimit {
		t.Errorf("one tile more by its insight: %v", err)
	}
	_, err = r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Tiles: tiles[:1]}, "k", now)
	if code(t, err) != registry.CodeLimit {
		t.Errorf("one tile more: %v", err)
	}
	must(r.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: "e", Query: query("select 1")}, now))(t)
	batch := registry.Batch{}
	for n := range registry.MaxVersions {
		batch.Endpoints = append(batch.Endpoints, registry.NamedEndpointUpdate{Name: "e", EndpointUpdate: registry.EndpointUpdate{Query: query(fmt.Sprint("select ", n+2))}})
	}
	if err := r.Apply(t.Context(), p.ID, batch, now); code(t, err) != registry.CodeLimit {
		t.Errorf("a version too many: %v", err)
	}
}

func TestLearnedPropertiesAreBounded(t *testing.T) {
	r, p := fresh(t)
	defs := make([]registry.PropertyDefinition, registry.MaxProperties+500)
	for n := range defs {
		defs[n] = registry.PropertyDefinition{Scope: registry.EventProperty, Name: fmt.Sprintf("p%05d", n), Type: registry.PropertyNumeric}
	}
	for range 2 {
		if err := r.Learn(t.Context(), p.ID, defs, []registry.GroupType{{Name: "org"}}); err != nil {
			t.Fatal(err)
		}
		if n := len(r.Snapshot().PropertyDefinitions(p.ID)); n != registry.MaxProperties {
			t.Errorf("%d properties have a type, want %d", n, registry.MaxProperties)
		}
	}
	if err := r.SetProperty(t.Context(), p.ID, defs[len(defs)-1]); code(t, err) != registry.CodeLimit {
		t.Errorf("setting one more: %v", err)
	}
	other := defs[0]
	other.Type = registry.PropertyBoolean
	if err := r.SetProperty(t.Context(), p.ID, other); err != nil {
		t.Errorf("setting one that is there: %v", err)
	}
	widen := func(d registry.PropertyDefinition) {
		t.Helper()
		if err := r.Widen(t.Context(), p.ID, []registry.PropertyValues{{PropertyDefinition: d, Kinds: physical.Texts}}, false); err != nil {
			t.Error(err)
		}
	}
	if err := r.KnowValues(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	widen(other)
	if !r.Snapshot().Project(p.ID).ValuesKnown {
		t.Error("nothing is noted any more after the values of a property that is there")
	}
	widen(defs[len(defs)-1])
	if s := r.Snapshot(); s.Project(p.ID).ValuesKnown || s.ValuesOf(p.ID, other) != physical.Texts || len(s.PropertyDefinitions(p.ID)) != registry.MaxProperties {
		t.Error("all is noted still after the values of a property too many")
	}
}

// TestActivityLogIsBounded: values that are too large for the log are named by their size.
func TestActivityLogIsBounded(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Query: registry.To(large(500_000))}, false, "k", now))(t)
	entries, _, err := r.Activities(t.Context(), p.ID, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 1})
	if err != nil || len(entries) != 1 || len(entries[0].Changes) != 1 {
		t.Fatalf("%+v: %v", entries, err)
	}
	if got := string(entries[0].Changes[0].After); !strings.Contains(got, "bytes, too many for the log") {
		t.Errorf("the log shows %.100s", got)
	}
	if got := r.Snapshot().Insight(p.ID, i.ID); len(got.Query) < 500_000 {
		t.Errorf("the insight itself was cut: %.100s", got.Query)
	}
}

// TestPurge: the snapshot after a purge is the one that a new process reads.
func TestPurge(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	i, kept := createInsight(t, r, p.ID, named("i")), createInsight(t, r, p.ID, named("kept"))
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}, {Insight: kept.ID}, {Text: registry.To(new("x"))}}})
	gone := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: kept.ID}}})
	k, text, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	must(r.RevokeKey(t.Context(), k.ID, now))(t)
	must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "k", now))(t)
	must(r.UpdateDashboard(t.Context(), p.ID, gone.ID, registry.DashboardFields{Deleted: registry.To(true)}, "k", now))(t)
	must(r.Purge(t.Context(), p.ID, now.Add(-time.Hour)))(t)
	if r.Snapshot().AnyInsight(p.ID, i.ID) == nil || r.Snapshot().AnyDashboard(p.ID, gone.ID) == nil {
		t.Error("a purge took what was deleted later")
	}
	must(r.Purge(t.Context(), p.ID, now))(t)
	snap := r.Snapshot()
	if snap.AnyInsight(p.ID, i.ID) != nil || snap.AnyDashboard(p.ID, gone.ID) != nil || snap.KeyByID(p.ID, k.ID) != nil || snap.KeyByHash(registry.HashKey(text)) != nil {
		t.Error("the snapshot has what was purged")
	}
	if left := snap.Dashboard(p.ID, d.ID); left == nil || len(left.Tiles) != 2 {
		t.Errorf("the other dashboard: %+v", left)
	}
	checkSame(t, openAt(t, path, quiet).Snapshot(), snap)
	if _, err := r.Purge(t.Context(), 99, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a purge of no project: %v", err)
	}
}

// TestPurgeInTheBackground: what was deleted long ago goes without anybody asking.
func TestPurgeInTheBackground(t *testing.T) {
	r := openAt(t, sqlitetest.Path(t), registry.Options{Poll: time.Hour, Gather: time.Hour, Purge: 10 * time.Millisecond})
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	old, recent := createInsight(t, r, p.ID, named("old")), createInsight(t, r, p.ID, named("recent"))
	must(r.UpdateInsight(t.Context(), p.ID, recent.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "k", time.Now()))(t)
	must(r.UpdateInsight(t.Context(), p.ID, old.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "k", time.Now().Add(-registry.PurgeAfter-time.Hour)))(t)
	ended := time.Now().Add(-registry.PurgeSessionsAfter - time.Hour)
	session, _, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Scopes: []string{"*"}, Session: true, ExpiresAt: ended}, ended.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "the old ones are purged", func() bool {
		snap := r.Snapshot()
		return snap.AnyInsight(p.ID, old.ID) == nil && snap.KeyByID(p.ID, session.ID) == nil
	})
	if r.Snapshot().AnyInsight(p.ID, recent.ID) == nil {
		t.Error("what was just deleted is purged")
	}
}

// countedEntries counts the queries of logs.
type countedEntries struct {
	registry.Store

	asked atomic.Int64
	hangs int64 // from this query on, no answer comes; 0: never
}

func (s *countedEntries) Entries(ctx context.Context, project int64, log string, page registry.EntryPage) ([]registry.Entry, int, error) {
	if n := s.asked.Add(1); s.hangs > 0 && n >= s.hangs {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	return s.Store.Entries(ctx, project, log, page)
}

// openCounted opens a registry whose queries of logs are counted.
func openCounted(t *testing.T) (*registry.Registry, *countedEntries) {
	t.Helper()
	path := sqlitetest.Path(t)
	store, err := registry.OpenStore(t.Context(), "sqlite:"+path, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedEntries{Store: store}
	r, err := registry.Open(t.Context(), counted, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, counted
}

// createSessions adds keys of sessions to a project, and returns their ids.
func createSessions(t *testing.T, r *registry.Registry, project int64, n int, until time.Time) (ids []string) {
	t.Helper()
	for range n {
		k, _, err := r.CreateKey(t.Context(), registry.NewKey{Project: project, Scopes: []string{"*"}, Session: true, ExpiresAt: until}, now)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.ID)
	}
	return ids
}

// TestPurgeOfManyKeys: a purge looks up some hundred keys at most in the activity log, and later ones look up the others. A key that stays is not looked up
// twice, and one that a record names is not looked up at all.
func TestPurgeOfManyKeys(t *testing.T) {
	r, counted := openCounted(t)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	soon := now.Add(time.Hour)
	const authors, keys = 4, 524
	ids := createSessions(t, r, p.ID, keys, soon)
	i := must(r.CreateInsight(t.Context(), p.ID, named("i"), ids[0], now))(t)
	must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Tags: registry.To([]string{"x"})}, false, ids[keys-1], now))(t) // only the log says so
	must(r.CreateDashboard(t.Context(), p.ID, registry.DashboardFields{}, ids[1], now))(t)
	must(r.CreateVariable(t.Context(), registry.NewVariable{Project: p.ID, Name: "v", Type: registry.VariableString, CreatedBy: ids[2]}, now))(t)
	must(r.CreateAction(t.Context(), p.ID, registry.ActionFields{}, ids[3], now))(t)
	left := func() int { return len(r.Snapshot().Keys(p.ID)) }
	asked := func() int64 { return counted.asked.Swap(0) }
	asked()
	for round, want := range []struct {
		left  []int // the key that is in the log may be among those of the first purge
		asked int64
	}{{[]int{authors + 20, authors + 21}, 500}, {[]int{authors + 1}, 20}, {[]int{authors + 1}, 0}} {
		must(r.PurgeSessions(t.Context(), p.ID, soon))(t)
		if n := asked(); !slices.Contains(want.left, left()) || n != want.asked {
			t.Errorf("after purge %d, %d keys are left, and the log was asked %d times; want %d and %d", round+1, left(), n, want.left, want.asked)
		}
	}
}

// TestPurgeWithASlowLog: if the activity log does not answer in time, the keys that were not looked up stay, and all else goes.
func TestPurgeWithASlowLog(t *testing.T) {
	t.Parallel()
	r, counted := openCounted(t)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	soon := now.Add(time.Hour)
	createSessions(t, r, p.ID, 3, soon)
	i := must(r.CreateInsight(t.Context(), p.ID, named("i"), "k", now))(t)
	must(r.UpdateInsight(t.Context(), p.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "k", now))(t)
	counted.hangs = counted.asked.Load() + 2
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if purged := must(r.Purge(ctx, p.ID, soon))(t); len(purged.Insights) != 1 || len(purged.Keys) != 1 {
		t.Errorf("purged: %+v", purged)
	}
}

// TestPurgeSessions: keys of sessions go a day after they ended, whether they were revoked or expired, unless something names them.
func TestPurgeSessions(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, quiet)
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "Shop"}, now))(t)
	key := func(label string, session bool, expires time.Time) string {
		t.Helper()
		k, _, err := r.CreateKey(t.Context(), registry.NewKey{Project: p.ID, Label: label, Scopes: []string{"*"}, Session: session, ExpiresAt: expires}, now)
		if err != nil {
			t.Fatal(err)
		}
		return k.ID
	}
	soon, later := now.Add(time.Hour), now.Add(48*time.Hour)
	key("expired", true, soon)
	revoked := key("revoked", true, later)
	must(r.RevokeKey(t.Context(), revoked, soon))(t)
	author := key("author", true, soon)
	must(r.CreateInsight(t.Context(), p.ID, named("i"), author, now))(t)
	key("open", true, later)
	key("made to be kept", false, soon)
	labels := func(snap *registry.Snapshot) (out []string) {
		for _, k := range snap.Keys(p.ID) {
			out = append(out, k.Label)
		}
		slices.Sort(out)
		return out
	}
	must(r.PurgeSessions(t.Context(), p.ID, soon.Add(-time.Second)))(t)
	if got := labels(r.Snapshot()); len(got) != 5 {
		t.Errorf("a purge that was too early left %q", got)
	}
	if purged := must(r.PurgeSessions(t.Context(), p.ID, soon))(t); len(purged.Keys) != 2 {
		t.Errorf("purged: %+v", purged)
	}
	if diff := cmp.Diff([]string{"author", "made to be kept", "open"}, labels(r.Snapshot())); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	checkSame(t, openAt(t, path, quiet).Snapshot(), r.Snapshot())
	for _, wrong := range []registry.NewKey{
		{Project: p.ID, Scopes: []string{"*"}, Session: true},
		{Project: p.ID, Kind: registry.Secret, Scopes: []string{"endpoint:read"}, Session: true, ExpiresAt: soon},
	} {
		if _, _, err := r.CreateKey(t.Context(), wrong, now); err == nil {
			t.Errorf("a session has the key %+v", wrong)
		}
	}
}

// TestVersionFits: what an update removes does not count.
func TestVersionFits(t *testing.T) {
	r, p := fresh(t)
	given := registry.NewEndpoint{Project: p.ID, Name: "e", Query: large(100), Description: strings.Repeat("d", registry.MaxRecord*6/10)}
	must(r.CreateEndpoint(t.Context(), given, now))(t)
	if _, err := r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: large(registry.MaxRecord / 2)}, now); err == nil {
		t.Error("a large query with the large description is not refused")
	}
	if _, err := r.UpdateEndpoint(t.Context(), p.ID, "e", registry.EndpointUpdate{Query: large(registry.MaxRecord / 2), Description: new(string)}, now); err != nil {
		t.Errorf("a large query in place of the large description: %v", err)
	}
}
