package registrytest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usage asks what a project keeps; kinds without records are left out.
func usage(t exam, s registry.Store, project int64) registry.Usage {
	t.Helper()
	var out registry.Usage
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		out, err = tx.Usage(ctx, project)
		return err
	})
	for kind, stored := range out {
		if stored.Records == 0 {
			if stored.Bytes != 0 {
				t.Errorf("no %s takes %d bytes", kind, stored.Bytes)
			}
			delete(out, kind)
		}
	}
	return out
}

func counts(u registry.Usage) map[registry.Kind]int {
	out := make(map[registry.Kind]int, len(u))
	for kind, stored := range u {
		out[kind] = stored.Records
	}
	return out
}

// fill adds one or more records of each kind to a project.
func fill(t exam, s registry.Store, project int64, name string) (insight, dashboard int64) {
	t.Helper()
	write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
		if insight, err = tx.InsertInsight(ctx, newInsight(project, name)); err != nil {
			return err
		}
		if dashboard, err = tx.InsertDashboard(ctx, newDashboard(project)); err != nil {
			return err
		}
		if _, err = tx.InsertTile(ctx, newTile(project, dashboard, insight)); err != nil {
			return err
		}
		if _, err = tx.InsertTile(ctx, newText(project, dashboard)); err != nil {
			return err
		}
		steps := []error{
			tx.InsertEndpoint(ctx, newEndpoint(project, name, name)), tx.InsertVersion(ctx, name, newVersion(name, 2)),
			tx.InsertVariable(ctx, newVariable(project, name, name)), tx.InsertKey(ctx, newKey(project, name)),
			tx.InsertActivity(ctx, registry.Activity{ID: name, Project: project, Scope: registry.ScopeInsight, Item: "1", Activity: registry.ActivityCreated, At: at}),
			tx.RecordViews(ctx, project, name, []int64{insight}, at),
		}
		if _, err := tx.InsertCohort(ctx, newCohort(project, 0, name)); err != nil {
			return err
		}
		if _, err := tx.PutProperties(ctx, project, []registry.PropertyDefinition{{Scope: registry.EventProperty, Name: name, Type: registry.PropertyNumeric}}, true); err != nil {
			return err
		}
		return firstOf(steps)
	})
	return insight, dashboard
}

func firstOf(all []error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func testUsage(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	if got := usage(t, s, p.ID); len(got) != 0 {
		t.Errorf("an empty project keeps %v", got)
	}
	insight, _ := fill(t, s, p.ID, "one00000")
	fill(t, s, other.ID, "two00000")
	versions := len(newEndpoint(p.ID, "x", "x").Versions) + 1
	want := map[registry.Kind]int{
		registry.KindInsight: 1, registry.KindDashboard: 1, registry.KindTile: 2, registry.KindEndpoint: 1, registry.KindVersion: versions,
		registry.KindVariable: 1, registry.KindKey: 1, registry.KindCohort: 1, registry.KindProperty: 1, registry.KindActivity: 1,
	}
	before := usage(t, s, p.ID)
	if diff := cmp.Diff(want, counts(before)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	const size = 100_000
	large := json.RawMessage(`{"kind":"` + strings.Repeat("x", size) + `"}`)
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		i, err := tx.Insight(ctx, p.ID, insight)
		if err != nil {
			return err
		}
		i.Query, i.Deleted = large, true
		if err := tx.UpdateInsight(ctx, i); err != nil {
			return err
		}
		return tx.DeleteVariable(ctx, p.ID, "one00000")
	})
	grown := usage(t, s, p.ID)
	if more := grown[registry.KindInsight].Bytes - before[registry.KindInsight].Bytes; grown[registry.KindInsight].Records != 1 || more < size/2 || more > 2*size {
		t.Errorf("a query with %d bytes more takes %d more; %d insights", size, more, grown[registry.KindInsight].Records)
	}
	if _, there := grown[registry.KindVariable]; there {
		t.Errorf("a variable that was removed counts: %v", grown)
	}
	if got := usage(t, s, other.ID); got[registry.KindInsight] != before[registry.KindInsight] {
		t.Errorf("another project's insights count as %v", got[registry.KindInsight])
	}
}

func testTrim(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	entry := func(project int64, n int) registry.Activity {
		return registry.Activity{
			ID: fmt.Sprintf("%d-%03d", project, n), Project: project, Scope: registry.ScopeInsight, Item: "1", Activity: registry.ActivityUpdated, At: at,
			Changes: []registry.FieldChange{{Field: "name", Before: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`), After: json.RawMessage(`null`)}},
		}
	}
	trim := func(entries int, bytes int64) []string {
		write(t, s, func(ctx context.Context, tx registry.Tx) error { return tx.TrimActivities(ctx, p.ID, entries, bytes) })
		left, _, err := s.Activities(t.Context(), p.ID, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(left))
		for i, a := range left {
			ids[i] = a.ID[len(a.ID)-3:]
		}
		return ids
	}
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		for n := range 9 {
			if err := firstOf([]error{tx.InsertActivity(ctx, entry(p.ID, n)), tx.InsertActivity(ctx, entry(other.ID, n))}); err != nil {
				return err
			}
		}
		return nil
	})
	if diff := cmp.Diff([]string{"008", "007", "006", "005", "004"}, trim(5, 1<<30)); diff != "" {
		t.Errorf("five entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"008", "007"}, trim(100, 3000)); diff != "" {
		t.Errorf("3,000 bytes (-want +got):\n%s", diff)
	}
	if _, total, err := s.Activities(t.Context(), other.ID, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 1}); err != nil || total != 9 {
		t.Errorf("another project's log has %d entries: %v", total, err)
	}
}

// testPurge deletes one of each pair of records, and purges: first too early, then late enough.
func testPurge(t exam) {
	s := open(t)
	p, other := addProject(t, s), addProject(t, s)
	gone, goneBoard := fill(t, s, p.ID, "gone0000")
	kept, keptBoard := fill(t, s, p.ID, "kept0000")
	fill(t, s, other.ID, "they0000")
	late := newKey(p.ID, "expired")
	late.ExpiresAt = at
	author := newKey(p.ID, "author") // named by an insight that stays
	author.Kind, author.User, author.RevokedAt = registry.Personal, 70, at
	last := newKey(p.ID, "last")
	last.Kind, last.User, last.RevokedAt = registry.Personal, 90, at
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		for _, k := range []registry.Key{late, author, last} {
			if err := tx.InsertKey(ctx, k); err != nil {
				return err
			}
		}
		i, err := tx.Insight(ctx, p.ID, gone)
		if err != nil {
			return err
		}
		i.Deleted, i.UpdatedAt = true, at
		k, err := tx.Insight(ctx, p.ID, kept)
		if err != nil {
			return err
		}
		k.LastModifiedBy, k.UpdatedAt = "author", at
		d, err := tx.Dashboard(ctx, p.ID, goneBoard)
		if err != nil {
			return err
		}
		d.Deleted, d.DeletedAt = true, at
		on, err := tx.Dashboard(ctx, p.ID, keptBoard)
		if err != nil {
			return err
		}
		text := on.Tiles[1]
		text.Deleted, text.DeletedAt = true, at
		revoked, err := tx.Key(ctx, "gone0000")
		if err != nil {
			return err
		}
		revoked.RevokedAt = at
		return firstOf([]error{
			tx.UpdateInsight(ctx, i), tx.UpdateInsight(ctx, k), tx.UpdateDashboard(ctx, d), tx.UpdateTile(ctx, text), tx.UpdateKey(ctx, revoked),
			tx.DeleteEndpoint(ctx, "gone0000", at), tx.DeleteCohort(ctx, p.ID, 1, at),
		})
	})
	purge := func(before time.Time) (out registry.Purged, revision uint64) {
		revision = write(t, s, func(ctx context.Context, tx registry.Tx) (err error) {
			out, err = tx.Purge(ctx, p.ID, before)
			return err
		})
		return out, revision
	}
	if out, revision := purge(at.Add(-time.Second)); !out.Empty() || revision != 0 {
		t.Errorf("a purge of what was deleted before removed %+v, revision %d", out, revision)
	}
	tilesBefore := load(t, s, 0)
	out, revision := purge(at)
	slices.Sort(out.Keys)
	slices.Sort(out.Tiles)
	var tiles []int64
	for _, board := range tilesBefore.Projects[0].Dashboards {
		for _, tile := range board.Tiles {
			if board.ID == goneBoard || tile.Deleted {
				tiles = append(tiles, tile.ID)
			}
		}
	}
	slices.Sort(tiles)
	want := registry.Purged{
		Insights: []int64{gone}, Dashboards: []int64{goneBoard}, Tiles: tiles, Endpoints: 1, Keys: []string{"expired", "gone0000", "last"}, Cohorts: 1,
	}
	if diff := cmp.Diff(want, out); diff != "" || revision == 0 {
		t.Errorf("revision %d, purged (-want +got):\n%s", revision, diff)
	}
	left := usage(t, s, p.ID)
	versions := len(newEndpoint(p.ID, "x", "x").Versions) + 1
	wantLeft := map[registry.Kind]int{
		registry.KindInsight: 1, registry.KindDashboard: 1, registry.KindTile: 1, registry.KindEndpoint: 1, registry.KindVersion: versions,
		registry.KindVariable: 2, registry.KindKey: 2, registry.KindCohort: 1, registry.KindProperty: 2, registry.KindActivity: 2,
	}
	if diff := cmp.Diff(wantLeft, counts(left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	changes := load(t, s, 0)
	for _, rec := range changes.Projects {
		if rec.Project.ID == other.ID && (len(rec.Insights) != 1 || len(rec.Dashboards) != 1 || len(rec.Endpoints) != 1 || len(rec.Keys) != 1) {
			t.Errorf("another project lost something: %+v", rec)
		}
	}
	views, err := s.Views(t.Context(), p.ID, time.Time{})
	if diff := cmp.Diff([]registry.View{{Insight: kept, Viewer: "kept0000", At: at}}, views, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("views: %v (-want +got):\n%s", err, diff)
	}
	write(t, s, func(ctx context.Context, tx registry.Tx) error {
		user, err := tx.NextUser(ctx)
		if err != nil || user != 91 {
			t.Errorf("the next user is %d: %v", user, err)
		}
		i, err := tx.InsertInsight(ctx, newInsight(p.ID, "gone0000")) // the short id is free again
		if err != nil || i <= kept {
			t.Errorf("the next insight is %d: %v", i, err)
		}
		c, err := tx.InsertCohort(ctx, newCohort(p.ID, 0, "next"))
		if c != 3 {
			t.Errorf("the next cohort is %d", c)
		}
		return err
	})
}
