package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shown describes the tiles of a dashboard that are not deleted: number, insight or text with its number, place and color.
func shown(r *registry.Registry, project, dashboard int64) []string {
	var out []string
	for _, t := range r.Snapshot().AnyDashboard(project, dashboard).Tiles {
		if t.Deleted {
			continue
		}
		what := fmt.Sprint("insight ", t.Insight)
		if t.Text != nil {
			what = fmt.Sprintf("text %d %q by %s %s", t.TextID(), *t.Text.Body, t.Text.CreatedBy, t.Text.LastModifiedBy)
		}
		color := "-"
		if t.Color != nil {
			color = *t.Color
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", t.ID, strings.TrimSpace(what), t.Layouts, color)))
	}
	return out
}

func expectTiles(t *testing.T, r *registry.Registry, project, dashboard int64, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, shown(r, project, dashboard)); diff != "" {
		t.Errorf("dashboard %d (-want +got):\n%s", dashboard, diff)
	}
}

func text(body string) registry.TileFields { return registry.TileFields{Text: registry.To(&body)} }

// boards is a project with an insight on the first of two dashboards.
func boards(t *testing.T) (r *registry.Registry, p *registry.Project, i *registry.Insight, from, to *registry.Dashboard) {
	t.Helper()
	r, p = fresh(t)
	i = createInsight(t, r, p.ID, named("i"))
	from = createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID, Color: registry.To(new("red"))}}})
	to = createDashboard(t, r, p.ID, registry.DashboardFields{})
	return r, p, i, from, to
}

func TestTextOnSeveralDashboards(t *testing.T) {
	r, p, _, from, to := boards(t)
	ctx := t.Context()
	f := text("one")
	f.Color, f.Layouts = registry.To(new("blue")), registry.To(json.RawMessage(`{ "sm": {"y": 3} }`))
	added := must(r.AddText(ctx, p.ID, from.ID, f, "author", now))(t)
	must(r.CopyTile(ctx, p.ID, from.ID, added.ID, to.ID))(t)
	expectTiles(t, r, p.ID, to.ID, `3 text 2 "one" by author {"sm":{"y":3}} blue`)
	if _, err := r.CopyTile(ctx, p.ID, from.ID, added.ID, to.ID); mistake(t, err).Message != "This text card is already on the destination dashboard." {
		t.Errorf("a second copy: %v", err)
	}
	// A change of either text changes both, even if one is deleted; what is not the text is each one's own.
	changed := text("two")
	changed.Color = registry.To[*string](nil)
	must(r.ChangeText(ctx, p.ID, to.ID, 3, changed, "editor", now.Add(time.Hour)))(t)
	expectTiles(t, r, p.ID, from.ID, "1 insight 1 {} red", `2 text 2 "two" by author editor {"sm":{"y":3}} blue`)
	expectTiles(t, r, p.ID, to.ID, `3 text 2 "two" by author editor {"sm":{"y":3}} -`)
	if err := r.DeleteTile(ctx, p.ID, from.ID, 2, now); err != nil {
		t.Fatal(err)
	}
	three := registry.TileFields{ID: 3, Text: registry.To(new("three"))}
	must(r.UpdateDashboard(ctx, p.ID, to.ID, registry.DashboardFields{Tiles: []registry.TileFields{three}}, "third", now))(t)
	must(r.CopyTile(ctx, p.ID, to.ID, 3, from.ID))(t) // uses the older tile
	expectTiles(t, r, p.ID, from.ID, "1 insight 1 {} red", `2 text 2 "three" by author third {"sm":{"y":3}} -`)
	if back := r.Snapshot().Dashboard(p.ID, from.ID).Tiles[1]; !back.Restored || !back.DeletedAt.IsZero() || back.Text.ID != 0 {
		t.Errorf("the tile that was put back is %+v of the text %+v", back, back.Text)
	}
	must(r.ChangeText(ctx, p.ID, from.ID, 2, registry.TileFields{}, "fourth", now))(t) // says who, and changes nothing
	expectTiles(t, r, p.ID, to.ID, `3 text 2 "three" by author fourth {"sm":{"y":3}} -`)
}

func TestCopyInsightTile(t *testing.T) {
	r, p, i, from, to := boards(t)
	ctx := t.Context()
	must(r.CopyTile(ctx, p.ID, from.ID, 1, to.ID))(t)
	expectTiles(t, r, p.ID, to.ID, "2 insight 1 {} red")
	expectTiles(t, r, p.ID, from.ID, "1 insight 1 {} red")
	if got := on(r, i); len(got) != 2 {
		t.Errorf("the insight is on %v", got)
	}
	if _, err := r.CopyTile(ctx, p.ID, from.ID, 1, to.ID); mistake(t, err).Message != "This insight is already on the destination dashboard." {
		t.Errorf("a second copy: %v", err)
	}
	must(r.UpdateInsight(ctx, p.ID, i.ID, registry.InsightFields{Dashboards: registry.To([]int64{from.ID})}, false, "a", now))(t)
	must(r.CopyTile(ctx, p.ID, from.ID, 1, to.ID))(t)
	expectTiles(t, r, p.ID, to.ID, "2 insight 1 {} red")
}

func TestMoveTile(t *testing.T) {
	r, p, i, from, to := boards(t)
	ctx := t.Context()
	added := must(r.AddText(ctx, p.ID, from.ID, text("one"), "author", now))(t)
	if left := must(r.MoveTile(ctx, p.ID, from.ID, 1, to.ID))(t); len(left.Tiles) != 1 || left.ID != from.ID {
		t.Errorf("the dashboard that was left is %+v", left)
	}
	must(r.MoveTile(ctx, p.ID, from.ID, added.ID, to.ID))(t)
	expectTiles(t, r, p.ID, from.ID)
	expectTiles(t, r, p.ID, to.ID, "1 insight 1 {} red", `2 text 2 "one" by author {} -`)
	if got := on(r, i); !slices.Equal(got, []int64{to.ID}) {
		t.Errorf("the insight is on %v", got)
	}
	must(r.MoveTile(ctx, p.ID, to.ID, 1, to.ID))(t) // stays
	expectTiles(t, r, p.ID, to.ID, "1 insight 1 {} red", `2 text 2 "one" by author {} -`)
	// An older tile with the same contents makes room if it is deleted.
	must(r.CopyTile(ctx, p.ID, to.ID, 1, from.ID))(t)
	if _, err := r.MoveTile(ctx, p.ID, to.ID, 1, from.ID); mistake(t, err).Message != "Invalid request data for moving tile." {
		t.Errorf("a move to where it is: %v", err)
	}
	if err := r.DeleteTile(ctx, p.ID, from.ID, 3, now); err != nil {
		t.Fatal(err)
	}
	must(r.MoveTile(ctx, p.ID, to.ID, 1, from.ID))(t)
	expectTiles(t, r, p.ID, from.ID, "1 insight 1 {} red")
	if all := r.Snapshot().Dashboard(p.ID, from.ID).Tiles; len(all) != 1 {
		t.Errorf("the dashboard has the tiles %+v", all)
	}
}

func TestDeleteTile(t *testing.T) {
	r, p := fresh(t)
	place := func(y int) registry.TileFields {
		f := text("a")
		f.Layouts = registry.To(json.RawMessage(fmt.Sprintf(`{"sm":{"x":0,"y":%d,"w":12,"h":2}}`, y)))
		return f
	}
	d := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{place(0), place(2), place(4)}})
	if err := r.DeleteTile(t.Context(), p.ID, d.ID, 2, now); err != nil {
		t.Fatal(err)
	}
	expectTiles(t, r, p.ID, d.ID, `1 text 1 "a" by author {"sm":{"x":0,"y":0,"w":12,"h":2}} -`, `3 text 3 "a" by author {"sm":{"h":2,"w":12,"x":0,"y":2}} -`)
	if err := r.DeleteTile(t.Context(), p.ID, d.ID, 2, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a second time: %v", err)
	}
}

func TestDashboardFromAnother(t *testing.T) {
	r, p := fresh(t)
	ctx := t.Context()
	i := must(r.CreateInsight(ctx, p.ID, registry.InsightFields{
		Name: registry.To(new(strings.Repeat("ä", 400))), Query: registry.To(query("select 1")), NoQueryScope: true, Tags: registry.To([]string{"t"}),
	}, "author", now))(t)
	gone := createInsight(t, r, p.ID, named("gone"))
	from := createDashboard(t, r, p.ID, registry.DashboardFields{
		Name: registry.To(new("From")), Filters: registry.To(json.RawMessage(`{"date_from":"-7d"}`)), Variables: registry.To(json.RawMessage(`{"v":{}}`)),
		BreakdownColor: registry.To(json.RawMessage(`[1]`)), ColorTheme: registry.To(new(4)),
		Tiles: []registry.TileFields{{Insight: i.ID, Color: registry.To(new("red"))}, text("one"), {Insight: gone.ID}},
	})
	must(r.UpdateInsight(ctx, p.ID, gone.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "a", now))(t)

	same := createDashboard(t, r, p.ID, registry.DashboardFields{From: from.ID, Filters: registry.To(json.RawMessage(`{}`))})
	expectTiles(t, r, p.ID, same.ID, "4 insight 1 {} red", `5 text 2 "one" by author {} -`)
	if !same.Duplicate || same.Name != nil || string(same.Filters) != `{"date_from":"-7d"}` || string(same.Variables) != `{"v":{}}` || string(same.BreakdownColor) != `[1]` || *same.ColorTheme != 4 {
		t.Errorf("the duplicate is %+v", same)
	}
	copies := must(r.CreateDashboard(ctx, p.ID, registry.DashboardFields{From: from.ID, CopyContents: true, Filters: registry.To(json.RawMessage(`{"date_from":"-1d"}`))}, "copier", now))(t)
	expectTiles(t, r, p.ID, copies.ID, "6 insight 3 {} red", `7 text 7 "one" by copier {} -`)
	if string(copies.Filters) != `{"date_from":"-1d"}` {
		t.Errorf("the filters are %s", copies.Filters)
	}
	made := r.Snapshot().Insight(p.ID, 3)
	if *made.Name != strings.Repeat("ä", 393)+" (Copy)" || string(made.Query) != string(i.Query) || !made.NeedsQueryScope || made.CreatedBy != "copier" || made.ShortID == i.ShortID || made.Tags[0] != "t" {
		t.Errorf("the copy of the insight is %+v", made)
	}
	twice := must(r.UpdateDashboard(ctx, p.ID, copies.ID, registry.DashboardFields{Duplicate: []registry.TileFields{{ID: 6}, {ID: 7, Layouts: registry.To(json.RawMessage(`{"sm":{}}`))}}}, "third", now))(t)
	if len(twice.Tiles) != 4 {
		t.Errorf("%d tiles", len(twice.Tiles))
	}
	expectTiles(t, r, p.ID, copies.ID, "6 insight 3 {} red", `7 text 7 "one" by copier {} -`, "8 insight 4 {} red", `9 text 9 "one" by third {"sm":{}} -`)
	for _, tt := range []struct {
		name   string
		fields registry.DashboardFields
		want   registry.FieldError
	}{
		{"from nowhere", registry.DashboardFields{From: 99}, registry.FieldError{Field: "use_dashboard", Code: registry.CodeInvalid, Message: "Invalid value provided"}},
		{"no such tile", registry.DashboardFields{Duplicate: []registry.TileFields{{ID: 1}}}, registry.FieldError{Field: "duplicate_tiles.0.id", Code: registry.CodeNoObject, Message: `Invalid pk "1" - object does not exist.`}},
	} {
		_, err := r.CreateDashboard(ctx, p.ID, tt.fields, "a", now)
		if diff := cmp.Diff(&tt.want, mistake(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestTilesStayInTheirProject: the number of another project, of a deleted dashboard or of nothing at all moves no tile.
func TestTilesStayInTheirProject(t *testing.T) {
	r, p, _, from, to := boards(t)
	other := must(r.CreateProject(t.Context(), registry.NewProject{Name: "other"}, now))(t)
	theirs := createDashboard(t, r, other.ID, registry.DashboardFields{Tiles: []registry.TileFields{text("theirs")}})
	added := must(r.AddText(t.Context(), p.ID, from.ID, text("one"), "author", now))(t)
	deleted := createDashboard(t, r, p.ID, registry.DashboardFields{Tiles: []registry.TileFields{text("deleted")}, Deleted: registry.To(true)})
	before := r.Snapshot().Revision
	type numbers struct{ project, dashboard, tile, to int64 }
	calls := map[string]func(ctx context.Context, n numbers) error{
		"AddText": func(ctx context.Context, n numbers) error {
			if n.project == p.ID && (n.dashboard == from.ID || n.dashboard == to.ID) {
				return registry.ErrNotFound // is there
			}
			_, err := r.AddText(ctx, n.project, n.dashboard, text("x"), "a", now)
			return err
		},
		"ChangeText": func(ctx context.Context, n numbers) error {
			if n.tile == added.ID && n.dashboard == from.ID && n.project == p.ID {
				return registry.ErrNotFound // is there
			}
			_, err := r.ChangeText(ctx, n.project, n.dashboard, n.tile, text("x"), "a", now)
			return err
		},
		"DeleteTile": func(ctx context.Context, n numbers) error {
			if n.tile == added.ID && n.dashboard == from.ID && n.project == p.ID {
				return registry.ErrNotFound // is there
			}
			return r.DeleteTile(ctx, n.project, n.dashboard, n.tile, now)
		},
		"CopyTile": func(ctx context.Context, n numbers) error {
			_, err := r.CopyTile(ctx, n.project, n.dashboard, n.tile, n.to)
			return err
		},
		"MoveTile": func(ctx context.Context, n numbers) error {
			_, err := r.MoveTile(ctx, n.project, n.dashboard, n.tile, n.to)
			return err
		},
	}
	for name, call := range calls {
		for _, n := range []numbers{
			{other.ID, from.ID, added.ID, theirs.ID},
			{p.ID, theirs.ID, theirs.Tiles[0].ID, to.ID},
			{p.ID, from.ID, added.ID, theirs.ID},
			{p.ID, from.ID, theirs.Tiles[0].ID, to.ID},
			{p.ID, deleted.ID, deleted.Tiles[0].ID, to.ID},
			{p.ID, from.ID, added.ID, deleted.ID},
			{p.ID, to.ID, added.ID, from.ID},
			{99, from.ID, added.ID, to.ID},
			{p.ID, 99, added.ID, to.ID},
			{p.ID, from.ID, 99, to.ID},
			{p.ID, from.ID, added.ID, 99},
		} {
			if err := call(t.Context(), n); !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("%s(%+v) = %v", name, n, err)
			}
		}
	}
	if now := r.Snapshot().Revision; now != before {
		t.Errorf("the revision went from %d to %d", before, now)
	}
}

func TestTextTileMistakes(t *testing.T) {
	r, p, _, from, to := boards(t)
	for _, tt := range []struct {
		name   string
		fields registry.TileFields
		want   registry.FieldError
	}{
		{"body", text(strings.Repeat("ä", 4001)), registry.FieldError{Field: "body", Code: registry.CodeTooLong, Message: "Text body cannot exceed 4000 characters"}},
		{"color", registry.TileFields{Color: registry.To(new(strings.Repeat("ä", 401)))}, registry.FieldError{Field: "color", Code: registry.CodeTooLong, Message: "Color cannot exceed 400 characters"}},
		{"layouts", registry.TileFields{Layouts: registry.To(json.RawMessage(`[]`))}, registry.FieldError{Field: "layouts", Code: registry.CodeInvalid, Message: "Layouts must be a dictionary"}},
	} {
		_, err := r.AddText(t.Context(), p.ID, from.ID, tt.fields, "a", now)
		if diff := cmp.Diff(&tt.want, mistake(t, err)); diff != "" {
			t.Errorf("AddText: %s (-want +got):\n%s", tt.name, diff)
		}
		_, err = r.ChangeText(t.Context(), p.ID, from.ID, 1, tt.fields, "a", now)
		if diff := cmp.Diff(&tt.want, mistake(t, err)); diff != "" {
			t.Errorf("ChangeText: %s (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, err := r.ChangeText(t.Context(), p.ID, from.ID, 1, text("x"), "a", now); mistake(t, err).Message != "Tile is not a text tile." {
		t.Errorf("an insight's tile: %v", err)
	}
	full := make([]registry.TileFields, registry.MaxTiles)
	for i := range full {
		full[i] = text("x")
	}
	must(r.UpdateDashboard(t.Context(), p.ID, to.ID, registry.DashboardFields{Tiles: full}, "a", now))(t)
	for name, err := range map[string]error{
		"AddText":  second(r.AddText(t.Context(), p.ID, to.ID, text("x"), "a", now)),
		"CopyTile": second(r.CopyTile(t.Context(), p.ID, from.ID, 1, to.ID)),
		"MoveTile": second(r.MoveTile(t.Context(), p.ID, from.ID, 1, to.ID)),
	} {
		if got := mistake(t, err); got.Code != registry.CodeLimit {
			t.Errorf("%s on a full dashboard: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
