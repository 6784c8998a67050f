package sqlite_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// releaseGolden is what the release read from the file that [sqlitetest.Released] unpacks.
const releaseGolden = "testdata/v14.json"

// openRegistry opens a registry that does nothing in the background, and closes it with the test.
func openRegistry(t *testing.T, path string) *registry.Registry {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(t.Context(), store, registry.Options{Poll: time.Hour, Gather: time.Hour, Purge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return r
}

func TestOpensWhatTheLastReleaseWrote(t *testing.T) {
	want, err := os.ReadFile(releaseGolden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), listing(t, openRegistry(t, sqlitetest.Released(t)))); diff != "" {
		t.Errorf("what the file holds (-want +got):\n%s", diff)
	}
}

// listing is all that a registry gives, deleted records too, by the names of the Go fields.
func listing(t *testing.T, r *registry.Registry) string {
	t.Helper()
	snap := r.Snapshot()
	var all []map[string]any
	for _, p := range snap.Projects() {
		out := map[string]any{
			"Project": p, "Keys": snap.Keys(p.ID), "TokenSecrets": snap.TokenSecrets(p.ID), "Endpoints": snap.Endpoints(p.ID), "Variables": snap.Variables(p.ID),
			"Properties": snap.PropertyDefinitions(p.ID), "GroupTypes": snap.GroupTypes(p.ID), "Cohorts": cohorts(snap, p.ID),
			"Defaults": snap.VariableDefaults(p.ID),
		}
		var insights []*registry.Insight
		var dashboards []*registry.Dashboard
		var live, liveBoards []int64
		tiles := make(map[int64][]*registry.Tile)
		for id := range int64(100) {
			if i := snap.AnyInsight(p.ID, id); i != nil {
				insights = append(insights, i)
				tiles[id] = snap.TilesOf(p.ID, id)
				if snap.AnyInsightByShortID(p.ID, i.ShortID) != i {
					t.Errorf("insight %d isn't found by its short id", id)
				}
			}
			if d := snap.AnyDashboard(p.ID, id); d != nil {
				dashboards = append(dashboards, d)
			}
		}
		for _, i := range snap.Insights(p.ID) {
			live = append(live, i.ID)
		}
		for _, d := range snap.Dashboards(p.ID) {
			liveBoards = append(liveBoards, d.ID)
		}
		for _, k := range snap.Keys(p.ID) {
			if found := snap.KeyByHash(k.Hash); (found != nil) != k.RevokedAt.IsZero() {
				t.Errorf("key %s, revoked %v, is found by its hash: %t", k.ID, k.RevokedAt, found != nil)
			}
		}
		activities, total, err := r.Activities(t.Context(), p.ID, registry.ActivityPage{Scope: registry.ScopeInsight, Limit: 1000})
		if err != nil || total != len(activities) {
			t.Fatalf("%d of %d activities: %v", len(activities), total, err)
		}
		views, err := r.Views(t.Context(), p.ID, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		out["Insights"], out["Dashboards"], out["NotDeleted"], out["TilesOf"] = insights, dashboards, [][]int64{live, liveBoards}, tiles
		out["Activities"], out["Views"] = activities, views
		all = append(all, out)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(plain(reflect.ValueOf(all))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plain converts a value to maps, lists, texts and numbers, whatever its type says about JSON.
func plain(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case time.Time:
		return value.Format(time.RFC3339Nano) + " " + value.Location().String()
	case json.RawMessage:
		if value == nil {
			return nil
		}
		return "JSON " + string(value)
	case [32]byte:
		return hex.EncodeToString(value[:])
	case registry.Rate:
		return value.String()
	}
	switch v.Kind() { //nolint:exhaustive // the others are as they are
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		out := make(map[string]any)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out[v.Type().Field(i).Name] = plain(v.Field(i))
			}
		}
		return out
	case reflect.Map:
		out := make(map[string]any)
		for _, k := range v.MapKeys() {
			key, _ := json.Marshal(k.Interface())
			out[string(key)] = plain(v.MapIndex(k))
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case reflect.Int64, reflect.Float64, reflect.Uint64: // of a default, where the type matters
		return map[string]any{v.Type().String(): v.Interface()}
	}
	return v.Interface()
}

// TestGoesOnWhereTheLastReleaseEnded: no number is reused, and what was unique still is.
func TestGoesOnWhereTheLastReleaseEnded(t *testing.T) {
	path := sqlitetest.Released(t)
	r := openRegistry(t, path)
	ctx, now := t.Context(), time.Now()
	i, err := r.CreateInsight(ctx, 1, registry.InsightFields{}, "", now)
	if err != nil || i.ID != 7 { // the sixth was purged
		t.Errorf("the next insight is %+v: %v", i, err)
	}
	d, err := r.CreateDashboard(ctx, 1, registry.DashboardFields{Tiles: []registry.TileFields{{Insight: i.ID}}}, "", now)
	if err != nil || d.ID != 6 || d.Tiles[0].ID != 11 { // the fifth, with the tenth tile, was purged
		t.Errorf("the next dashboard is %+v: %v", d, err)
	}
	k, _, err := r.CreateKey(ctx, registry.NewKey{Project: 3, Scopes: []string{"*"}}, now)
	if err != nil || k.User != 7 { // the sixth was purged
		t.Errorf("the next key is %+v: %v", k, err)
	}
	c, err := r.CreateCohort(ctx, registry.NewCohort{Project: 1, CohortFields: registry.CohortFields{Name: registry.To(new("deleted"))}}, now)
	if err != nil || c.ID != 43 { // that of the number 42 is deleted
		t.Errorf("the next cohort is %+v: %v", c, err)
	}
	if token := r.Snapshot().CaptureToken(1); token != "" {
		t.Errorf("the release had the capture token %q", token)
	}
	if err := r.AddCaptureTokens(ctx, now); err != nil || r.Snapshot().CaptureToken(1) == "" || r.Snapshot().CaptureToken(3) == "" {
		t.Errorf("AddCaptureTokens() = %v", err)
	}
	p, err := r.CreateProject(ctx, registry.NewProject{Name: "next"}, now)
	if err != nil || p.ID != 4 {
		t.Errorf("the next project is %+v: %v", p, err)
	}

	store, err := sqlite.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	changes, err := store.Load(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[registry.Kind]bool)
	for _, rec := range changes.Records {
		unique, err := registry.UniqueKeys(&rec)
		if err != nil {
			t.Error(err)
		}
		for _, key := range unique {
			kinds[rec.Kind] = true
			copied := rec
			copied.ID, copied.Unique = "9999", []string{key}
			if _, err := store.Write(ctx, &registry.Write{Put: []registry.Record{copied}}); err == nil || err.Error() != (&registry.ConflictError{Kind: rec.Kind}).Error() {
				t.Errorf("a second %s with the key %q: %v", rec.Kind, key, err)
			}
		}
	}
	if len(kinds) != 9 {
		t.Errorf("unique keys are tried of %d kinds", len(kinds))
	}
}

// cohorts returns the cohorts of a project by number, including deleted ones.
func cohorts(snap *registry.Snapshot, project int64) (all []*registry.Cohort) {
	for _, c := range snap.Schema(project).Cohorts {
		all = append(all, snap.AnyCohort(project, c.ID))
	}
	return all
}
