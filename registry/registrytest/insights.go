package registrytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testInsights(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	full := p.insight(shop.ID, registry.InsightFields{
		Name: registry.To(new("Größe ' \" \x00")), DerivedName: registry.To(new("")), Description: registry.To(new("d")), Query: registry.To(odd("")), NoQueryScope: true,
		Filters: registry.To(json.RawMessage(`{"a":1}`)), Order: registry.To(new(3)), Favorited: registry.To(true), Tags: registry.To([]string{"b", "a"}),
	})
	same(t, "a new insight", registry.Insight{
		ID: 1, ShortID: full.ShortID, Project: shop.ID, Name: new("Größe ' \" \x00"), DerivedName: new(""), Description: new("d"), Query: odd(""), NeedsQueryScope: true,
		Filters: json.RawMessage(`{"a":1}`), Order: new(3), Favorited: true, Saved: true, Tags: []string{"b", "a"}, CreatedAt: at, UpdatedAt: at, LastModifiedAt: at,
		CreatedBy: "key", LastModifiedBy: "key",
	}, full)
	elsewhere := p.insight(other.ID, named("theirs"))
	bare := p.insight(shop.ID, registry.InsightFields{Saved: registry.To(false), Order: registry.To(new(-3))})
	last := p.insight(shop.ID, named("last"))
	if got := []int64{full.ID, elsewhere.ID, bare.ID, last.ID}; !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("insights got the numbers %v, want 1 to 4", got)
	}
	are := func(listed []int64, want ...registry.Insight) {
		t.Helper()
		all := p.settled()
		same(t, "insights", [][]registry.Insight{want, {elsewhere}}, [][]registry.Insight{all[0].Insights, all[1].Insights})
		same(t, "insights in a list", listed, all[0].Listed)
	}
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
	later := at.Add(time.Hour)
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{
		Name: registry.To[*string](nil), DerivedName: registry.To(new("derived")), Query: registry.To[json.RawMessage](nil), Filters: registry.To(json.RawMessage(`{}`)),
		Order: registry.To[*int](nil), Favorited: registry.To(false), Saved: registry.To(false), Tags: registry.To([]string{}),
	}, false, "another", later))(t)
	if full.Query != nil || full.Name != nil || full.NeedsQueryScope || !full.UpdatedAt.Equal(later) || full.LastModifiedBy != "another" {
		t.Errorf("the changed insight is %+v", full)
	}
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
	if got := p.other.Snapshot().Insight(shop.ID, full.ID).Query; got != nil {
		t.Errorf("a query that is not there has become %s", got)
	}
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", later))(t)
	are([]int64{bare.ID, last.ID}, full, bare, last)
	full = *must(p.UpdateInsight(ctx, shop.ID, full.ID, registry.InsightFields{Deleted: registry.To(false)}, true, "key", later))(t)
	are([]int64{bare.ID, full.ID, last.ID}, full, bare, last)
}

func testDashboards(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	i, j := p.insight(shop.ID, named("i")), p.insight(shop.ID, named("j"))
	d := p.dashboard(shop.ID, registry.DashboardFields{
		Name: registry.To(new("Board")), Description: registry.To("d"), Pinned: registry.To(true), Filters: registry.To(json.RawMessage(`{"date_from":"-7d"}`)),
		Variables: registry.To(json.RawMessage(`{"v":"<x>"}`)), BreakdownColor: registry.To(json.RawMessage(`[{"a":1}]`)), ColorTheme: registry.To(new(2)), Tags: registry.To([]string{"t"}),
		Tiles: []registry.TileFields{
			{
				Insight: i.ID, Layouts: registry.To(json.RawMessage(`{"sm":{"x":1}}`)), Color: registry.To(new("blue")), ShowDescription: registry.To(new(false)),
				Transparent: registry.To(new(true)), FilterOverrides: registry.To(json.RawMessage(`{"date_to":"-1d"}`)),
			},
			{Insight: j.ID},
			{Text: registry.To(new("# Sales <now>"))},
		},
	})
	empty := json.RawMessage(`{}`)
	same(t, "a new dashboard", registry.Dashboard{
		ID: 1, Project: shop.ID, Name: new("Board"), Description: "d", Pinned: true, Filters: json.RawMessage(`{"date_from":"-7d"}`), Variables: json.RawMessage(`{"v":"<x>"}`),
		BreakdownColor: json.RawMessage(`[{"a":1}]`), ColorTheme: new(2), Tags: []string{"t"}, CreatedAt: at, CreatedBy: "key",
		Tiles: []registry.Tile{
			{
				ID: 1, Project: shop.ID, Dashboard: 1, Insight: i.ID, Layouts: json.RawMessage(`{"sm":{"x":1}}`), Color: new("blue"), ShowDescription: new(false),
				Transparent: new(true), FilterOverrides: json.RawMessage(`{"date_to":"-1d"}`),
			},
			{ID: 2, Project: shop.ID, Dashboard: 1, Insight: j.ID, Layouts: empty, FilterOverrides: empty},
			{ID: 3, Project: shop.ID, Dashboard: 1, Text: &registry.Text{Body: new("# Sales <now>"), CreatedBy: "key", LastModifiedAt: at}, Layouts: empty, FilterOverrides: empty},
		},
	}, d)
	bare := p.dashboard(shop.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	are := func(tiles map[int64][]registry.Tile, want ...registry.Dashboard) {
		t.Helper()
		got := p.settled()[0]
		same(t, "dashboards", want, got.Dashboards)
		same(t, "tiles by insight", tiles, got.Tiles)
	}
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}, j.ID: {d.Tiles[1]}}, d, bare)
	// A second tile of an insight is the first one.
	same(t, "a dashboard that is given an insight again", d, *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: j.ID}}}, "key", at))(t))

	later := at.Add(time.Hour)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{
		Name: registry.To[*string](nil), Pinned: registry.To(false), BreakdownColor: registry.To(json.RawMessage(`null`)), ColorTheme: registry.To[*int](nil),
		Tiles: []registry.TileFields{
			{ID: 2, Layouts: registry.To(empty), Color: registry.To[*string](nil), Deleted: registry.To(true)}, {ID: 3, Text: registry.To[*string](nil)},
		},
	}, "another", later))(t)
	same(t, "tiles", []registry.Tile{
		{ID: 2, Project: shop.ID, Dashboard: 1, Insight: j.ID, Layouts: empty, FilterOverrides: empty, Deleted: true, DeletedAt: later},
		{ID: 3, Project: shop.ID, Dashboard: 1, Text: &registry.Text{CreatedBy: "key", LastModifiedBy: "another", LastModifiedAt: later}, Layouts: empty, FilterOverrides: empty},
	}, d.Tiles[1:])
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}}, d, bare)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", later))(t)
	are(map[int64][]registry.Tile{i.ID: {bare.Tiles[0]}}, d, bare)
	d = *must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Deleted: registry.To(false)}, "key", later))(t)
	are(map[int64][]registry.Tile{i.ID: {d.Tiles[0], bare.Tiles[0]}}, d, bare)
	// An insight's own list of dashboards moves its tiles, and uses older ones again.
	must(p.UpdateInsight(ctx, shop.ID, j.ID, registry.InsightFields{Dashboards: registry.To([]int64{d.ID, bare.ID})}, false, "key", later))(t)
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", later))(t)
	got := p.settled()[0]
	if len(got.Dashboards[0].Tiles) != 3 || got.Dashboards[0].Tiles[1].Deleted || len(got.Tiles[j.ID]) != 2 || len(got.Tiles[i.ID]) != 0 {
		t.Errorf("the dashboards are %+v, and the tiles %+v", got.Dashboards, got.Tiles)
	}
}

func testTiles(t exam) {
	p := newPair(t)
	shop := p.project()
	ctx := t.Context()
	i := p.insight(shop.ID, named("i"))
	from := p.dashboard(shop.ID, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}})
	to := p.dashboard(shop.ID, registry.DashboardFields{})
	text := *must(p.AddText(ctx, shop.ID, from.ID, registry.TileFields{Text: registry.To(new("one"))}, "key", at))(t)
	must(p.CopyTile(ctx, shop.ID, from.ID, text.ID, to.ID))(t)
	must(p.other.ChangeText(ctx, shop.ID, to.ID, 3, registry.TileFields{Text: registry.To(new("two"))}, "another", at))(t)
	must(p.CopyTile(ctx, shop.ID, from.ID, 1, to.ID))(t)
	if err := p.DeleteTile(ctx, shop.ID, to.ID, 4, at); err != nil {
		t.Fatal(err)
	}
	must(p.MoveTile(ctx, shop.ID, from.ID, 1, to.ID))(t)
	empty := json.RawMessage(`{}`)
	changed := registry.Text{Body: new("two"), CreatedBy: "key", LastModifiedBy: "another", LastModifiedAt: at}
	shared := changed
	shared.ID = text.ID
	insight := registry.Tile{ID: 1, Project: shop.ID, Dashboard: to.ID, Insight: i.ID, Layouts: empty, FilterOverrides: empty}
	from.Tiles = []registry.Tile{{ID: 2, Project: shop.ID, Dashboard: from.ID, Text: &changed, Layouts: empty, FilterOverrides: empty}}
	to.Tiles = []registry.Tile{insight, {ID: 3, Project: shop.ID, Dashboard: to.ID, Text: &shared, Layouts: empty, FilterOverrides: empty}}
	got := p.settled()[0]
	same(t, "dashboards", []registry.Dashboard{from, to}, got.Dashboards)
	same(t, "tiles by insight", map[int64][]registry.Tile{i.ID: {insight}}, got.Tiles)
	duplicate := p.dashboard(shop.ID, registry.DashboardFields{From: to.ID, CopyContents: true})
	got = p.settled()[0]
	same(t, "a duplicate", duplicate, got.Dashboards[2])
	if !duplicate.Duplicate || len(got.Insights) != 2 || len(duplicate.Tiles) != 2 || duplicate.Tiles[0].Insight != 2 || duplicate.Tiles[1].Text.ID != 0 {
		t.Errorf("the duplicate is %+v", duplicate)
	}
}

func testActivities(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	i, j := p.insight(shop.ID, named("ä")), p.insight(shop.ID, named("j"))
	p.insight(other.ID, named("theirs"))
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Name: registry.To[*string](nil), DerivedName: registry.To(new("derived"))}, false, "another", at.Add(time.Hour)))(t)
	wrote := func(n *registry.Insight, activity, name, by string, when time.Time, changes ...registry.FieldChange) registry.Activity {
		return registry.Activity{
			Project: shop.ID, Scope: registry.ScopeInsight, Item: strconv.FormatInt(n.ID, 10), Activity: activity, Name: name, ShortID: n.ShortID, At: when, By: by, Changes: changes,
		}
	}
	all := []registry.Activity{
		wrote(&i, registry.ActivityUpdated, "derived", "another", at.Add(time.Hour),
			registry.FieldChange{Type: "Insight", Action: "deleted", Field: "name", Before: json.RawMessage(`"ä"`), After: json.RawMessage(`null`)},
			registry.FieldChange{Type: "Insight", Action: "created", Field: "derived_name", Before: json.RawMessage(`null`), After: json.RawMessage(`"derived"`)}),
		wrote(&j, registry.ActivityCreated, "j", "key", at),
		wrote(&i, registry.ActivityCreated, "ä", "key", at),
	}
	for _, tt := range []struct {
		page  registry.ActivityPage
		want  []registry.Activity
		total int
	}{
		{registry.ActivityPage{Limit: 9}, all, 3},
		{registry.ActivityPage{Limit: 1, Offset: 1}, all[1:2], 3},
		{registry.ActivityPage{Limit: 9, Offset: 9}, nil, 3},
		{registry.ActivityPage{Item: strconv.FormatInt(i.ID, 10), Limit: 9}, []registry.Activity{all[0], all[2]}, 2},
		{registry.ActivityPage{Item: "7", Limit: 9}, nil, 0},
	} {
		tt.page.Scope = registry.ScopeInsight
		got, total, err := p.other.Activities(ctx, shop.ID, tt.page)
		if err != nil || total != tt.total {
			t.Errorf("Activities(%+v) has %d in all, want %d: %v", tt.page, total, tt.total, err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(registry.Activity{}, "ID")); diff != "" {
			t.Errorf("Activities(%+v) (-want +got):\n%s", tt.page, diff)
		}
	}
}

func testViews(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	i, j, k := p.insight(shop.ID, named("i")), p.insight(shop.ID, named("j")), p.insight(other.ID, named("k"))
	before := p.Snapshot().Revision
	view := func(project int64, viewer string, when time.Time, insights ...int64) {
		t.Helper()
		if err := p.RecordViews(t.Context(), project, viewer, insights, when); err != nil {
			t.Fatal(err)
		}
	}
	view(shop.ID, "a", at.Add(time.Hour), i.ID, j.ID, j.ID)
	view(shop.ID, "b", at.Add(2*time.Hour), i.ID, k.ID, 99)
	view(shop.ID, "a", at.Add(3*time.Hour), j.ID)
	view(shop.ID, "a", at.Add(time.Minute), j.ID) // never back
	if got := p.Snapshot().Revision; got != before {
		t.Errorf("views moved the revision from %d to %d", before, got)
	}
	all := []registry.View{
		{Insight: j.ID, Viewer: "a", At: at.Add(3 * time.Hour)},
		{Insight: i.ID, Viewer: "b", At: at.Add(2 * time.Hour)},
		{Insight: i.ID, Viewer: "a", At: at.Add(time.Hour)},
		{Insight: i.ID, Viewer: "key", At: at},
		{Insight: j.ID, Viewer: "key", At: at},
	}
	for _, tt := range []struct {
		since time.Time
		want  []registry.View
	}{{time.Time{}, all}, {at, all}, {at.Add(2 * time.Hour), all[:2]}, {at.Add(4 * time.Hour), nil}} {
		same(t, fmt.Sprintf("views since %v", tt.since), tt.want, must(p.other.Views(t.Context(), shop.ID, tt.since))(t))
	}
	same(t, "views of an insight", []registry.View{all[0], all[4]}, must(p.other.ViewsOf(t.Context(), shop.ID, []int64{j.ID, k.ID}))(t))
}
