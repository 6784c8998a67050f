package registrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func newInsight(project int64, shortID string) registry.Insight {
	return registry.Insight{
		ShortID: shortID, Project: project, Name: new("Größe ' \" \x00"), DerivedName: new(""), Description: new("d"),
		Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select 'ä\u0000'"}`), Filters: json.RawMessage(`{"a":1}`), Order: new(-3),
		Favorited: true, Saved: true, NeedsQueryScope: true, Tags: []string{"b", "a"}, CreatedAt: at, UpdatedAt: at, LastModifiedAt: at, CreatedBy: "key", LastModifiedBy: "key",
	}
}

func newDashboard(project int64) registry.Dashboard {
	return registry.Dashboard{
		Project: project, Name: new("Board"), Description: "d", Pinned: true, Filters: json.RawMessage(`{"date_from":"-7d"}`),
		Variables: json.RawMessage(`{}`), BreakdownColor: json.RawMessage(`[{"a":1}]`), ColorTheme: new(2), Tags: []string{"t"},
		CreatedAt: at, CreatedBy: "key",
	}
}

func newTile(project, dashboard, insight int64) registry.Tile {
	return registry.Tile{
		Project: project, Dashboard: dashboard, Insight: insight, Layouts: json.RawMessage(`{"sm":{"x":1}}`), Color: new("blue"),
		ShowDescription: new(false), FilterOverrides: json.RawMessage(`{}`),
	}
}

func newText(project, dashboard int64) registry.Tile {
	return registry.Tile{
		Project: project, Dashboard: dashboard, Text: &registry.Text{Body: new("# Sales"), CreatedBy: "key", LastModifiedAt: at},
		Layouts: json.RawMessage(`{}`), FilterOverrides: json.RawMessage(`{}`),
	}
}

// addInsight adds an insight, and returns it with its number.
func addInsight(t exam, s registry.Store, i registry.Insight) registry.Insight {
	t.Helper()
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		i.ID, err = tx.InsertInsight(ctx, i)
		return err
	})
	return i
}

func testInsights(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	full := addInsight(t, s, newInsight(p.ID, "AbCd1234"))
	elsewhere := addInsight(t, s, newInsight(other.ID, "AbCd1234")) // a short id is one project's
	bare := addInsight(t, s, registry.Insight{
		ShortID: "bare0000", Project: p.ID, Filters: json.RawMessage(`{}`), Tags: []string{}, CreatedAt: at, UpdatedAt: at, LastModifiedAt: at,
	})
	if got := []int64{full.ID, elsewhere.ID, bare.ID}; !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("insights got the numbers %v, want 1 to 3", got)
	}
	there := registry.ProjectRecord{Project: other, Insights: []registry.Insight{elsewhere}}
	expect(t, s, registry.ProjectRecord{Project: p, Insights: []registry.Insight{full, bare}}, there)

	later := at.Add(time.Hour)
	full.Name, full.DerivedName, full.Description, full.Query, full.Order = nil, new("derived"), nil, nil, nil
	full.Filters, full.Favorited, full.Saved, full.Deleted, full.Tags = json.RawMessage(`{}`), false, false, true, []string{}
	full.NeedsQueryScope = false
	full.UpdatedAt, full.LastModifiedAt, full.LastModifiedBy = later, later, "another"
	write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.UpdateInsight(ctx, full) })
	expect(t, s, registry.ProjectRecord{Project: p, Insights: []registry.Insight{full, bare}}, there)
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Insight(ctx, p.ID, full.ID)
		if diff := cmp.Diff(full, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Insight(%d) (-want +got):\n%s", full.ID, diff)
		}
		return err
	})
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictShortID}, func(ctx context.Context, tx registry.Tx) error {
		_, err := tx.InsertInsight(ctx, newInsight(p.ID, "AbCd1234")) // a deleted one keeps its short id
		return err
	})
}

func testDashboards(t exam) {
	s := open(t)
	p := addProject(t, s)
	i, j := addInsight(t, s, newInsight(p.ID, "one00001")), addInsight(t, s, newInsight(p.ID, "two00002"))
	d := newDashboard(p.ID)
	bare := registry.Dashboard{
		Project: p.ID, Filters: json.RawMessage(`{}`), Variables: json.RawMessage(`{}`), BreakdownColor: json.RawMessage(`[]`), Tags: []string{}, CreatedAt: at,
	}
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		if d.ID, err = tx.InsertDashboard(ctx, d); err != nil {
			return err
		}
		if bare.ID, err = tx.InsertDashboard(ctx, bare); err != nil {
			return err
		}
		for _, tile := range []registry.Tile{
			newTile(p.ID, d.ID, i.ID), newTile(p.ID, d.ID, j.ID),
			newText(p.ID, d.ID),
			{Project: p.ID, Dashboard: bare.ID, Insight: i.ID, Layouts: json.RawMessage(`{}`), FilterOverrides: json.RawMessage(`{}`)},
		} {
			if tile.ID, err = tx.InsertTile(ctx, tile); err != nil {
				return err
			}
			on := &d
			if tile.Dashboard == bare.ID {
				on = &bare
			}
			on.Tiles = append(on.Tiles, tile)
		}
		return nil
	})
	whole := func() registry.ProjectRecord {
		return registry.ProjectRecord{Project: p, Insights: []registry.Insight{i, j}, Dashboards: []registry.Dashboard{d, bare}}
	}
	expect(t, s, whole())

	d.Name, d.Description, d.Pinned, d.Deleted, d.ColorTheme, d.Tags = nil, "", false, true, nil, []string{"u"}
	d.Filters, d.Variables, d.BreakdownColor = json.RawMessage(`{}`), json.RawMessage(`{"v":{}}`), json.RawMessage(`null`)
	d.DeletedAt = at
	tile := d.Tiles[1]
	tile.Layouts, tile.Color, tile.ShowDescription, tile.Deleted = json.RawMessage(`{}`), nil, nil, true
	tile.FilterOverrides, tile.DeletedAt = json.RawMessage(`{"date_to":"-1d"}`), at.Add(time.Hour)
	text := d.Tiles[2]
	text.Text = &registry.Text{CreatedBy: "key", LastModifiedBy: "another", LastModifiedAt: at.Add(time.Hour)}
	d.Tiles = []registry.Tile{d.Tiles[0], tile, text}
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		if err := tx.UpdateDashboard(ctx, d); err != nil {
			return err
		}
		if err := tx.UpdateTile(ctx, tile); err != nil {
			return err
		}
		return tx.UpdateTile(ctx, text)
	})
	expect(t, s, whole())
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		got, err := tx.Dashboard(ctx, p.ID, d.ID)
		if diff := cmp.Diff(d, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Dashboard(%d) (-want +got):\n%s", d.ID, diff)
		}
		if err != nil {
			return err
		}
		tiles, err := tx.TilesOf(ctx, p.ID, i.ID)
		if diff := cmp.Diff([]registry.Tile{d.Tiles[0], bare.Tiles[0]}, tiles); diff != "" {
			t.Errorf("TilesOf(%d) (-want +got):\n%s", i.ID, diff)
		}
		return err
	})
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictTile}, func(ctx context.Context, tx registry.Tx) error {
		_, err := tx.InsertTile(ctx, newTile(p.ID, d.ID, j.ID))
		return err
	})
}

func testActivities(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	entry := func(project int64, n int, item string) registry.Activity {
		return registry.Activity{
			ID: fmt.Sprintf("id-%02d", n), Project: project, Scope: registry.ScopeInsight, Item: item, Activity: registry.ActivityUpdated, Name: "n", ShortID: "AbCd1234",
			At: at, By: "key", Changes: []registry.FieldChange{{Type: "Insight", Action: "changed", Field: "name", Before: json.RawMessage(`null`), After: json.RawMessage(`"ä"`)}},
		}
	}
	mine := []registry.Activity{entry(p.ID, 1, "1"), entry(p.ID, 2, "2"), entry(p.ID, 3, "1"), entry(p.ID, 4, "10")}
	mine[1].Changes = nil
	before := write(t, s, func(ctx context.Context, tx registry.Tx) error {
		for _, a := range append(slices.Clone(mine), entry(other.ID, 5, "1")) {
			if err := tx.InsertActivity(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if before != 0 {
		t.Errorf("an entry of the log has revision %d: Load does not give it", before)
	}
	for _, tt := range []struct {
		page  registry.ActivityPage
		want  []registry.Activity
		total int
	}{
		{registry.ActivityPage{Limit: 3}, []registry.Activity{mine[3], mine[2], mine[1]}, 4},
		{registry.ActivityPage{Limit: 3, Offset: 3}, mine[:1], 4},
		{registry.ActivityPage{Limit: 9, Offset: 9}, nil, 4},
		{registry.ActivityPage{Item: "1", Limit: 9}, []registry.Activity{mine[2], mine[0]}, 2},
		{registry.ActivityPage{Item: "7", Limit: 9}, nil, 0},
	} {
		tt.page.Scope = registry.ScopeInsight
		got, total, err := s.Activities(t.Context(), p.ID, tt.page)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || total != tt.total {
			t.Errorf("Activities(%+v) has %d in all, want %d (-want +got):\n%s", tt.page, total, tt.total, diff)
		}
	}
}

func testViews(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	i, j := addInsight(t, s, newInsight(p.ID, "one00001")), addInsight(t, s, newInsight(p.ID, "two00002"))
	k := addInsight(t, s, newInsight(other.ID, "three003"))
	view := func(project int64, viewer string, when time.Time, insights ...int64) {
		t.Helper()
		revision := write(t, s, func(ctx context.Context, tx registry.Tx) error {
			return tx.RecordViews(ctx, project, viewer, insights, when)
		})
		if revision != 0 {
			t.Errorf("a view has revision %d: Load does not give it", revision)
		}
	}
	view(p.ID, "a", at, i.ID, j.ID)
	view(p.ID, "b", at.Add(time.Hour), i.ID)
	view(p.ID, "a", at.Add(2*time.Hour), j.ID)
	view(p.ID, "a", at.Add(time.Minute), j.ID) // never back
	view(other.ID, "a", at, k.ID)
	all := []registry.View{{Insight: j.ID, Viewer: "a", At: at.Add(2 * time.Hour)}, {Insight: i.ID, Viewer: "b", At: at.Add(time.Hour)}, {Insight: i.ID, Viewer: "a", At: at}}
	for _, tt := range []struct {
		since time.Time
		want  []registry.View
	}{{time.Time{}, all}, {at, all}, {at.Add(time.Hour), all[:2]}, {at.Add(3 * time.Hour), nil}} {
		got, err := s.Views(t.Context(), p.ID, tt.since)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Views(%s) (-want +got):\n%s", tt.since, diff)
		}
	}
}

func testUsers(t exam) {
	s := open(t)
	p := addProject(t, s)
	first := newKey(p.ID, "first")
	first.User = 7
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		if n, err := tx.NextUser(ctx); n != 1 || err != nil {
			t.Errorf("NextUser() = %d, %v, want 1", n, err)
		}
		if err := tx.InsertKey(ctx, first); err != nil {
			return err
		}
		if err := tx.InsertKey(ctx, newKey(p.ID, "nobody")); err != nil {
			return err
		}
		if n, err := tx.NextUser(ctx); n != 8 || err != nil {
			t.Errorf("NextUser() = %d, %v, want 8", n, err)
		}
		return nil
	})
	expect(t, s, registry.ProjectRecord{Project: p, Keys: []registry.Key{first, newKey(p.ID, "nobody")}})
	refuse(t, s, &registry.ConflictError{Field: registry.ConflictUser}, func(ctx context.Context, tx registry.Tx) error {
		taken := newKey(p.ID, "taken")
		taken.User = 7
		return tx.InsertKey(ctx, taken)
	})
}
