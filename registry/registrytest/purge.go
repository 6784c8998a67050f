package registrytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// testUsage fills a project to its limits: what counts in one process counts in another, deleted or not.
func testUsage(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	for _, r := range []*registry.Registry{p.Registry, p.other} {
		r.SetLimits(registry.Limits{Records: 2, Bytes: 1 << 20})
	}
	query := func(n int) registry.InsightFields {
		return registry.InsightFields{Query: registry.To(json.RawMessage(`{"kind":"` + strings.Repeat("x", n) + `"}`))}
	}
	i := p.insight(shop.ID, query(100_000))
	p.insight(shop.ID, named("second"))
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", at))(t)
	p.endpoint(shop.ID, "deleted")
	if err := p.DeleteEndpoint(ctx, shop.ID, "deleted", at); err != nil {
		t.Fatal(err)
	}
	p.endpoint(shop.ID, "second")
	full := &registry.FieldError{Code: registry.CodeLimit}
	again := openRegistry(t)
	again.SetLimits(registry.Limits{Records: 2, Bytes: 1 << 20})
	for name, r := range map[string]*registry.Registry{"the registry that wrote": p.Registry, "another": p.other, "one that reads all": again} {
		p.refused("a third insight by "+name, full, func() error { _, err := r.CreateInsight(ctx, shop.ID, named("third"), "key", at); return err })
		p.refused("a third endpoint by "+name, full, func() error {
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "third", Query: odd("")}, at)
			return err
		})
	}
	p.insight(other.ID, named("of another project"))
	d := p.dashboard(shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))})
	p.refused("too many bytes", full, func() error {
		_, err := p.other.CreateDashboard(ctx, shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))}, "key", at)
		return err
	})
	must(p.UpdateDashboard(ctx, shop.ID, d.ID, registry.DashboardFields{Description: registry.To("")}, "key", at))(t)
	must(p.other.CreateDashboard(ctx, shop.ID, registry.DashboardFields{Description: registry.To(strings.Repeat("x", 500_000))}, "key", at))(t)
	if err := p.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	must(p.Purge(ctx, shop.ID, at))(t)
	p.insight(shop.ID, named("in the place of what was purged"))
	p.endpoint(shop.ID, "third")
	p.settled()

	// What is purged along with something else, versions and tiles, no longer counts either, in any process.
	fill := func(r *registry.Registry, n int) {
		t.Helper()
		name := fmt.Sprint("many", n)
		must(r.CreateEndpoint(ctx, registry.NewEndpoint{Project: other.ID, Name: name, Query: odd("0")}, at))(t)
		for v := range 5 {
			must(r.UpdateEndpoint(ctx, other.ID, name, registry.EndpointUpdate{Query: odd(fmt.Sprint("v", v))}, at))(t)
		}
		board := must(r.CreateDashboard(ctx, other.ID, registry.DashboardFields{Tiles: slices.Repeat([]registry.TileFields{{Text: registry.To(new("x"))}}, 6)}, "key", at))(t)
		if r == p.other {
			return
		}
		must(r.UpdateDashboard(ctx, other.ID, board.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", at))(t)
		if err := r.DeleteEndpoint(ctx, other.ID, name, at); err != nil {
			t.Fatal(err)
		}
		p.settled()
		must(r.Purge(ctx, other.ID, at))(t)
		p.settled()
	}
	for _, r := range []*registry.Registry{p.Registry, p.other} {
		r.SetLimits(registry.Limits{Records: 1}) // and ten versions and tiles
	}
	fill(p.Registry, 0)
	fill(p.other, 1)
}

// testPurge deletes one of each pair of records, and purges: first too early, then late enough.
func testPurge(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	fill := func(project int64, name string) (insight registry.Insight, board registry.Dashboard, key registry.Key) {
		t.Helper()
		insight = p.insight(project, named(name))
		board = p.dashboard(project, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: insight.ID}, {Text: registry.To(&name)}}})
		key = p.key(registry.NewKey{Project: project, Label: name})
		p.endpoint(project, name)
		must(p.UpdateEndpoint(ctx, project, name, registry.EndpointUpdate{Query: odd("2")}, at))(t)
		must(p.CreateVariable(ctx, registry.NewVariable{Project: project, Name: name, Type: registry.VariableString}, at))(t)
		must(p.CreateCohort(ctx, registry.NewCohort{Project: project, CohortFields: staticCohort(name)}, at))(t)
		must(p.CreateAction(ctx, project, registry.ActionFields{Name: registry.To(&name)}, key.ID, at))(t)
		if err := errors.Join(p.RecordViews(ctx, project, key.ID, []int64{insight.ID}, at), p.RecordViews(ctx, project, key.ID, []int64{1}, at)); err != nil {
			t.Fatal(err)
		}
		return insight, board, key
	}
	gone, goneBoard, goneKey := fill(shop.ID, "gone")
	kept, keptBoard, keptKey := fill(shop.ID, "kept")
	fill(other.ID, "they")
	late := p.key(registry.NewKey{Project: shop.ID, Label: "expired", ExpiresAt: time.Now().Add(time.Hour)})
	author := p.key(registry.NewKey{Project: shop.ID, Label: "named by an insight that stays"})
	logged := p.key(registry.NewKey{Project: shop.ID, Label: "named by the activity log"})
	last := p.key(registry.NewKey{Project: shop.ID, Label: "the last user"})
	secret := p.key(registry.NewKey{Project: shop.ID, Kind: registry.Secret, Label: "secret", Scopes: []string{"endpoint:read"}})
	must(p.UpdateInsight(ctx, shop.ID, kept.ID, named("kept by another"), false, author.ID, at))(t)
	must(p.UpdateInsight(ctx, shop.ID, gone.ID, registry.InsightFields{Tags: registry.To([]string{"x"})}, false, logged.ID, at))(t)
	end := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Microsecond) // when the key has expired too
	must(p.UpdateInsight(ctx, shop.ID, gone.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", end))(t)
	must(p.UpdateDashboard(ctx, shop.ID, goneBoard.ID, registry.DashboardFields{Deleted: registry.To(true)}, "key", end))(t)
	must(p.UpdateDashboard(ctx, shop.ID, keptBoard.ID, registry.DashboardFields{Tiles: []registry.TileFields{{ID: keptBoard.Tiles[1].ID, Deleted: registry.To(true)}}}, "key", end))(t)
	must(p.UpdateAction(ctx, shop.ID, 1, registry.ActionFields{Deleted: registry.To(true)}, end))(t)
	for _, k := range []registry.Key{goneKey, author, logged, last, secret} {
		must(p.RevokeKey(ctx, k.ID, end))(t)
	}
	if err := errors.Join(p.DeleteEndpoint(ctx, shop.ID, "gone", end), deleteCohort(p, shop.ID, 1, end)); err != nil {
		t.Fatal(err)
	}

	before := p.settled()
	if early := must(p.Purge(ctx, shop.ID, at))(t); !early.Empty() {
		t.Errorf("a purge of what was deleted before removed %+v", early)
	}
	same(t, "after a purge that was too early", before, p.settled())
	out := must(p.Purge(ctx, shop.ID, end))(t)
	slices.Sort(out.Keys)
	slices.Sort(out.Tiles)
	wantKeys := []string{late.ID, goneKey.ID, last.ID, secret.ID}
	slices.Sort(wantKeys)
	wantTiles := []int64{goneBoard.Tiles[0].ID, goneBoard.Tiles[1].ID, keptBoard.Tiles[1].ID}
	same(t, "purged", registry.Purged{
		Insights: []int64{gone.ID}, Dashboards: []int64{goneBoard.ID}, Tiles: wantTiles, Endpoints: 1, Keys: wantKeys, Cohorts: 1, Actions: 1,
	}, out)
	after := p.settled()
	same(t, "another project", before[1], after[1])
	left := after[0]
	if len(left.Insights) != 1 || len(left.Dashboards) != 1 || len(left.Dashboards[0].Tiles) != 1 || len(left.Endpoints) != 1 || len(left.Endpoints[0].Versions) != 2 ||
		len(left.Variables) != 2 || len(left.Keys) != 3 || len(left.Cohorts) != 1 || left.Cohorts[0].ID != 2 || len(left.Actions) != 1 {
		t.Errorf("left is %+v", left)
	}
	for _, v := range must(p.Views(ctx, shop.ID, time.Time{}))(t) {
		if v.Insight == gone.ID || v.Viewer == goneKey.ID {
			t.Errorf("a view of what was purged is left: %+v", v)
		}
	}
	if views := must(p.ViewsOf(ctx, shop.ID, []int64{kept.ID}))(t); !slices.ContainsFunc(views, func(v registry.View) bool { return v.Viewer == keptKey.ID }) {
		t.Errorf("the views of what stays are %+v", views)
	}
	// No number is reused; short ids, names and labels are free.
	if k := p.key(registry.NewKey{Project: shop.ID}); k.User != last.User+1 {
		t.Errorf("the next user is %d, after %d", k.User, last.User)
	}
	if i := p.insight(shop.ID, named("next")); i.ID != 4 {
		t.Errorf("the next insight is %d", i.ID)
	}
	if c := must(p.CreateCohort(ctx, registry.NewCohort{Project: shop.ID, CohortFields: staticCohort("gone")}, at))(t); c.ID != 3 {
		t.Errorf("the next cohort is %d", c.ID)
	}
	if a := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{Name: registry.To(new("gone"))}, "key", at))(t); a.ID != 4 {
		t.Errorf("the next action is %d", a.ID)
	}
	p.endpoint(shop.ID, "gone")
	p.settled()
}
