package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestDashboards(t *testing.T) {
	r, p := fresh(t)
	i, j := createInsight(t, r, p.ID, named("i")), createInsight(t, r, p.ID, named("j"))
	layout := json.RawMessage(`{"sm":{"x":0,"y":1}}`)
	d := createDashboard(t, r, p.ID, registry.DashboardFields{
		Name: registry.To(new("Board")), Filters: registry.To(json.RawMessage(`{ "date_from": "-7d" }`)), Tags: registry.To([]string{"t", "T "}),
		Tiles: []registry.TileFields{{Insight: i.ID, Layouts: registry.To(layout)}},
	})
	empty := json.RawMessage(`{}`)
	want := &registry.Dashboard{
		ID: 1, Project: p.ID, Name: new("Board"), Filters: json.RawMessage(`{"date_from":"-7d"}`), Variables: empty, BreakdownColor: json.RawMessage(`[]`),
		Tags: []string{"t"}, CreatedAt: moment, CreatedBy: "author",
		Tiles: []registry.Tile{{ID: 1, Project: p.ID, Dashboard: 1, Insight: i.ID, Layouts: layout, FilterOverrides: empty}},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("CreateDashboard() (-want +got):\n%s", diff)
	}
	update := func(f registry.DashboardFields) *registry.Dashboard {
		t.Helper()
		return must(r.UpdateDashboard(t.Context(), p.ID, d.ID, f, "editor", now))(t)
	}
	got := update(registry.DashboardFields{Pinned: registry.To(true), Tiles: []registry.TileFields{
		{ID: 1, Color: registry.To(new("blue"))}, {Insight: j.ID, ShowDescription: registry.To(new(true))},
	}})
	want.Pinned, want.Tiles[0].Color = true, new("blue")
	want.Tiles = append(want.Tiles, registry.Tile{
		ID: 2, Project: p.ID, Dashboard: 1, Insight: j.ID, Layouts: empty, FilterOverrides: empty, ShowDescription: new(true),
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("UpdateDashboard() (-want +got):\n%s", diff)
	}
	update(registry.DashboardFields{Tiles: []registry.TileFields{{ID: 2, Deleted: registry.To(true)}}})
	if len(on(r, j)) != 0 || len(on(r, i)) != 1 {
		t.Errorf("after a tile was taken off: %v and %v", on(r, i), on(r, j))
	}
	if back := update(registry.DashboardFields{Tiles: []registry.TileFields{{Insight: j.ID}}}); back.Tiles[1].ID != 2 || back.Tiles[1].Deleted || !*back.Tiles[1].ShowDescription {
		t.Errorf("the tile that was put back is %+v", back.Tiles[1])
	}
	update(registry.DashboardFields{Deleted: registry.To(true)})
	if len(on(r, i)) != 0 || r.Snapshot().Dashboard(p.ID, 1) != nil || len(r.Snapshot().Dashboards(p.ID)) != 0 || r.Snapshot().Insight(p.ID, i.ID) == nil {
		t.Errorf("after the dashboard was deleted: insight on %v", on(r, i))
	}
	if _, err := r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Pinned: registry.To(true)}, "editor", now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("changing a deleted dashboard: %v", err)
	}
	if update(registry.DashboardFields{Deleted: registry.To(false)}); len(on(r, i)) != 1 || len(on(r, j)) != 1 {
		t.Errorf("after the dashboard was restored: %v and %v", on(r, i), on(r, j))
	}
}

func TestTextTiles(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}, {Text: registry.To(new("# A"))}, {Text: registry.To(new(""))}}})
	later := now.Add(time.Hour)
	got := must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{
		{ID: 2, Text: registry.To[*string](nil), Color: registry.To(new("blue"))}, {ID: 3, Deleted: registry.To(true)}, {Text: registry.To(new("# A"))},
	}}, "editor", later))(t)
	empty := json.RawMessage(`{}`)
	then := later.UTC().Truncate(time.Microsecond)
	want := []registry.Tile{
		{ID: 1, Insight: i.ID},
		{ID: 2, Text: &registry.Text{CreatedBy: "author", LastModifiedBy: "editor", LastModifiedAt: then}, Color: new("blue")},
		{ID: 3, Text: &registry.Text{Body: new(""), CreatedBy: "author", LastModifiedAt: moment}, Deleted: true, DeletedAt: then},
		{ID: 4, Text: &registry.Text{Body: new("# A"), CreatedBy: "editor", LastModifiedAt: then}},
	}
	for n := range want {
		want[n].Project, want[n].Dashboard, want[n].Layouts, want[n].FilterOverrides = p.ID, d.ID, empty, empty
	}
	if diff := cmp.Diff(want, got.Tiles); diff != "" {
		t.Errorf("tiles (-want +got):\n%s", diff)
	}
	if places := r.Snapshot().TilesOf(p.ID, 0); places != nil {
		t.Errorf("TilesOf(no insight) = %v", places)
	}
	for range 2 { // deleting and restoring pass over the texts
		must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Deleted: registry.To(true), DeleteInsights: true}, "editor", later))(t)
		back := must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Deleted: registry.To(false)}, "editor", later))(t)
		if diff := cmp.Diff(want, back.Tiles); diff != "" {
			t.Errorf("restored tiles (-want +got):\n%s", diff)
		}
	}
}

// TestDeleteInsights deletes with a dashboard the insights that are on no other one, and restores them with it.
func TestDeleteInsights(t *testing.T) {
	r, p := fresh(t)
	only, both := createInsight(t, r, p.ID, named("only")), createInsight(t, r, p.ID, named("both"))
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: only.ID}, {Insight: both.ID}}})
	createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: both.ID}}})
	must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Deleted: registry.To(true), DeleteInsights: true}, "editor", now))(t)
	if r.Snapshot().Insight(p.ID, only.ID) != nil || r.Snapshot().Insight(p.ID, both.ID) == nil {
		t.Error("the wrong insights are deleted")
	}
	must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Deleted: registry.To(false)}, "editor", now))(t)
	if r.Snapshot().Insight(p.ID, only.ID) == nil || len(on(r, only)) != 1 {
		t.Error("the insight did not come back")
	}
	want := []string{"author created", "author created", "editor deleted deleted=true", "editor restored deleted=false"}
	if diff := cmp.Diff(want, activities(t, r, p.ID)); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
}

// TestTilesThatAreGone: a client that saves what it shows does not lose its changes because another client removed a tile.
func TestTilesThatAreGone(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	red, layouts := new("red"), json.RawMessage(`{"sm": {"x": 1}}`)
	d = must(r.UpdateDashboard(t.Context(), p.ID, d.ID, registry.DashboardFields{Name: registry.To(new("new")), Tiles: []registry.TileFields{
		{ID: 98, Color: registry.To(red), Layouts: registry.To(layouts)},
		{ID: 97, Insight: i.ID},
		{ID: d.Tiles[0].ID, Color: registry.To(red)},
		{ID: 99, Text: registry.To(new("a text"))},
	}}, "editor", now))(t)
	if len(d.Tiles) != 2 || *d.Name != "new" || *d.Tiles[0].Color != "red" || d.Tiles[1].Text == nil || *d.Tiles[1].Text.Body != "a text" || d.Tiles[1].ID == 99 {
		t.Errorf("the dashboard is %+v", d)
	}
	copied := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: d.Tiles[0].ID, Insight: i.ID, Color: registry.To(red)}}})
	if len(copied.Tiles) != 1 || copied.Tiles[0].ID == d.Tiles[0].ID || copied.Tiles[0].Insight != i.ID {
		t.Errorf("a dashboard with the tile of another has %+v", copied.Tiles)
	}
}

func TestDashboardMistakes(t *testing.T) {
	r, p := fresh(t)
	i := createInsight(t, r, p.ID, named("i"))
	other := must(r.CreateProject(t.Context(), registry.NewProject{Name: "other"}, now))(t)
	theirs := createInsight(t, r, other.ID, named("theirs"))
	gone := createInsight(t, r, p.ID, registry.InsightFields{Deleted: registry.To(true)})
	list := json.RawMessage(`[]`)
	tile := func(f registry.TileFields) registry.DashboardFields {
		return registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}, f}}
	}
	noObject := func(field, id string) registry.FieldError {
		return registry.FieldError{Field: field, Code: registry.CodeNoObject, Message: `Invalid pk "` + id + `" - object does not exist.`}
	}
	tests := []struct {
		name   string
		fields registry.DashboardFields
		want   registry.FieldError
	}{
		{"name", registry.DashboardFields{Name: registry.To(new(strings.Repeat("x", 401)))}, registry.FieldError{Field: "name", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 400 characters."}},
		{"filters", registry.DashboardFields{Filters: registry.To(list)}, registry.FieldError{Field: "filters", Code: registry.CodeInvalid, Message: "Filters must be a dictionary"}},
		{"variables", registry.DashboardFields{Variables: registry.To(list)}, registry.FieldError{Field: "variables", Code: registry.CodeInvalid, Message: "Variables must be a dictionary"}},
		{"colors", registry.DashboardFields{BreakdownColor: registry.To(json.RawMessage(`{`))}, registry.FieldError{Field: "breakdown_colors", Code: registry.CodeInvalid, Message: "Value must be valid JSON."}},
		{"layouts", tile(registry.TileFields{Insight: i.ID, Layouts: registry.To(list)}), registry.FieldError{Field: "tiles.1.layouts", Code: registry.CodeInvalid, Message: "Layouts must be a dictionary"}},
		{"a tile of nothing", tile(registry.TileFields{}), registry.FieldError{Field: "tiles.1.insight", Code: registry.CodeRequired, Message: "This field is required."}},
		{"a text and an insight", tile(registry.TileFields{Insight: i.ID, Text: registry.To(new("a"))}), registry.FieldError{Field: "tiles.1.text", Code: registry.CodeInvalid, Message: "A tile shows an insight or a text, not both."}},
		{"a long text", tile(registry.TileFields{Text: registry.To(new(strings.Repeat("ä", 4001)))}), registry.FieldError{Field: "tiles.1.text.body", Code: registry.CodeTooLong, Message: "Ensure this field has no more than 4000 characters."}},
		{"no such insight", tile(registry.TileFields{Insight: 99}), noObject("tiles.1.insight", "99")},
		{"a deleted insight", tile(registry.TileFields{Insight: gone.ID}), noObject("tiles.1.insight", "3")},
		{"another project's insight", tile(registry.TileFields{Insight: theirs.ID}), noObject("tiles.1.insight", "2")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.CreateDashboard(t.Context(), p.ID, tt.fields, "author", now)
			if diff := cmp.Diff(&tt.want, mistake(t, err)); diff != "" {
				t.Errorf("CreateDashboard() (-want +got):\n%s", diff)
			}
		})
	}
	if left := r.Snapshot().Dashboards(p.ID); len(left) != 0 {
		t.Errorf("refused dashboards are there: %v", left)
	}
}
