package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestSnapshotIsWhatTheStoreHas makes random writes through two registries on one store, and checks that the snapshots
// that they patch are what a registry shows that reads the store afresh. Each write waits for the disk, so there are few
// rounds unless -rapid.checks asks for more.
func TestSnapshotIsWhatTheStoreHas(t *testing.T) {
	if rounds := flag.Lookup("rapid.checks"); rounds.Value.String() == rounds.DefValue {
		if err := rounds.Value.Set("15"); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(rt *rapid.T) {
		files++ // shrinking must begin with an empty store too
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files))
		open := func() *registry.Registry {
			return must(registry.Open(t.Context(), openStore(t, path), quiet))(t)
		}
		both := []*registry.Registry{open(), open()}
		defer func() {
			for _, r := range both {
				if err := r.Close(); err != nil {
					rt.Errorf("Close() = %v", err)
				}
			}
		}()
		must(both[0].CreateProject(t.Context(), registry.NewProject{Name: "first"}, now))(t)
		at := now
		rt.Repeat(writes(t.Context(), both, &at))
		fresh := open()
		for i, r := range both {
			if err := r.Refresh(t.Context()); err != nil {
				rt.Fatalf("Refresh() = %v", err)
			}
			if diff := difference(fresh.Snapshot(), r.Snapshot()); diff != "" {
				rt.Errorf("registry %d is not what the store has (-store +snapshot):\n%s", i, diff)
			}
		}
		if err := fresh.Close(); err != nil {
			rt.Errorf("Close() = %v", err)
		}
	})
}

// writes are the random writes. Those that name something that doesn't exist, or is taken, must be refused as such.
func writes(ctx context.Context, both []*registry.Registry, at *time.Time) map[string]func(*rapid.T) {
	one := func(rt *rapid.T) (*registry.Registry, int64, time.Time) {
		*at = at.Add(time.Second)
		return rapid.SampledFrom(both).Draw(rt, "registry"), rapid.Int64Range(1, 3).Draw(rt, "project"), *at
	}
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	check := func(rt *rapid.T, err error) {
		if _, mistaken := errors.AsType[*registry.FieldError](err); err != nil && !mistaken && !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrRevoked) {
			rt.Fatalf("a write failed: %v", err)
		}
	}
	anyKey := func(rt *rapid.T, r *registry.Registry, project int64) string {
		if keys := r.Snapshot().Keys(project); len(keys) > 0 {
			return rapid.SampledFrom(keys).Draw(rt, "key").ID
		}
		return "none"
	}
	anyVariable := func(rt *rapid.T, r *registry.Registry, project int64) string {
		if all := r.Snapshot().Variables(project); len(all) > 0 {
			return rapid.SampledFrom(all).Draw(rt, "variable").ID
		}
		return "none"
	}
	dashboards := func(rt *rapid.T, r *registry.Registry, project int64) []int64 {
		var ids []int64
		for _, d := range r.Snapshot().Dashboards(project) {
			if rapid.Bool().Draw(rt, "on it") {
				ids = append(ids, d.ID)
			}
		}
		return ids
	}
	def := rapid.Custom(func(rt *rapid.T) registry.PropertyDefinition {
		d := registry.PropertyDefinition{
			Scope: rapid.SampledFrom([]registry.PropertyScope{registry.EventProperty, registry.GroupProperty}).Draw(rt, "scope"),
			Name:  name.Draw(rt, "name"),
			Type:  rapid.SampledFrom([]registry.PropertyType{registry.PropertyNumeric, registry.PropertyString}).Draw(rt, "type"),
		}
		if d.Scope == registry.GroupProperty {
			d.GroupTypeIndex = rapid.IntRange(0, 4).Draw(rt, "group")
		}
		return d
	})
	return map[string]func(*rapid.T){
		"project": func(rt *rapid.T) {
			r, _, at := one(rt)
			_, err := r.CreateProject(ctx, registry.NewProject{Name: "p"}, at)
			check(rt, err)
		},
		"key": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, _, err := r.CreateKey(ctx, registry.NewKey{Project: p, Kind: registry.Secret, Label: name.Draw(rt, "label"), Scopes: []string{"endpoint:read"}}, at)
			check(rt, err)
		},
		"roll": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, _, err := r.RollKey(ctx, anyKey(rt, r, p), nil, at)
			check(rt, err)
		},
		"revoke": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.RevokeKey(ctx, anyKey(rt, r, p), at)
			check(rt, err)
		},
		"endpoint": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.CreateEndpoint(ctx, registry.NewEndpoint{Project: p, Name: name.Draw(rt, "name"), Query: query("select 1")}, at)
			check(rt, err)
		},
		"update endpoint": func(rt *rapid.T) {
			r, p, at := one(rt)
			u := registry.EndpointUpdate{Description: new(name.Draw(rt, "description")), Active: new(rapid.Bool().Draw(rt, "active"))}
			if rapid.Bool().Draw(rt, "new query") {
				u.Query = query("select " + name.Draw(rt, "query"))
			} else {
				u.Version = rapid.IntRange(0, 3).Draw(rt, "version")
			}
			_, err := r.UpdateEndpoint(ctx, p, name.Draw(rt, "name"), u, at)
			check(rt, err)
		},
		"draft": func(rt *rapid.T) {
			r, p, at := one(rt)
			u := registry.EndpointUpdate{Query: query("select " + name.Draw(rt, "query")), Draft: true, SunsetAt: &at}
			_, err := r.UpdateEndpoint(ctx, p, name.Draw(rt, "name"), u, at)
			check(rt, err)
		},
		"promote": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.Promote(ctx, p, name.Draw(rt, "name"), rapid.IntRange(1, 3).Draw(rt, "version"), nil, at)
			check(rt, err)
		},
		"batch": func(rt *rapid.T) {
			r, p, at := one(rt)
			check(rt, r.Apply(ctx, p, registry.Batch{
				NewVariables: []registry.NewVariable{{Name: name.Draw(rt, "variable"), Type: registry.VariableNumber}},
				NewEndpoints: []registry.NewEndpoint{{Name: name.Draw(rt, "new"), Query: query("select 1")}},
				Deleted:      []string{name.Draw(rt, "deleted")},
			}, at))
		},
		"delete endpoint": func(rt *rapid.T) {
			r, p, at := one(rt)
			check(rt, r.DeleteEndpoint(ctx, p, name.Draw(rt, "name"), at))
		},
		"variable": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.CreateVariable(ctx, registry.NewVariable{Project: p, Name: name.Draw(rt, "name"), Type: registry.VariableNumber, Default: json.RawMessage(`1.0`)}, at)
			check(rt, err)
		},
		"update variable": func(rt *rapid.T) {
			r, p, _ := one(rt)
			_, err := r.UpdateVariable(ctx, p, anyVariable(rt, r, p), registry.VariableUpdate{Name: new(name.Draw(rt, "name")), Default: json.RawMessage(`[1e3]`)})
			check(rt, err)
		},
		"delete variable": func(rt *rapid.T) {
			r, p, _ := one(rt)
			check(rt, r.DeleteVariable(ctx, p, anyVariable(rt, r, p)))
		},
		"learn": func(rt *rapid.T) {
			r, p, _ := one(rt)
			g := registry.GroupType{Name: name.Draw(rt, "group type"), Index: rapid.IntRange(0, 2).Draw(rt, "index")}
			check(rt, r.Learn(ctx, p, rapid.SliceOfN(def, 0, 4).Draw(rt, "definitions"), []registry.GroupType{g}))
		},
		"insight": func(rt *rapid.T) {
			r, p, at := one(rt)
			f := registry.InsightFields{Name: registry.To(new(name.Draw(rt, "name"))), Dashboards: registry.To(dashboards(rt, r, p))}
			_, err := r.CreateInsight(ctx, p, f, "key", at)
			check(rt, err)
		},
		"update insight": func(rt *rapid.T) {
			r, p, at := one(rt)
			f := registry.InsightFields{Deleted: registry.To(rapid.Bool().Draw(rt, "deleted"))}
			if rapid.Bool().Draw(rt, "move") {
				f.Dashboards = registry.To(dashboards(rt, r, p))
			}
			_, err := r.UpdateInsight(ctx, p, rapid.Int64Range(1, 5).Draw(rt, "insight"), f, true, "key", at)
			check(rt, err)
		},
		"dashboard": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.CreateDashboard(ctx, p, registry.DashboardFields{Name: registry.To(new(name.Draw(rt, "name")))}, "key", at)
			check(rt, err)
		},
		"update dashboard": func(rt *rapid.T) {
			r, p, at := one(rt)
			f := registry.DashboardFields{Deleted: registry.To(rapid.Bool().Draw(rt, "deleted")), DeleteInsights: rapid.Bool().Draw(rt, "insights")}
			if rapid.Bool().Draw(rt, "tile") {
				f.Tiles = []registry.TileFields{{Insight: rapid.Int64Range(1, 5).Draw(rt, "insight"), Deleted: registry.To(rapid.Bool().Draw(rt, "off"))}}
			}
			_, err := r.UpdateDashboard(ctx, p, rapid.Int64Range(1, 3).Draw(rt, "dashboard"), f, "key", at)
			check(rt, err)
		},
		"view": func(rt *rapid.T) {
			r, p, at := one(rt)
			check(rt, r.RecordViews(ctx, p, "key", []int64{rapid.Int64Range(1, 5).Draw(rt, "insight")}, at))
		},
		"cohort": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.CreateCohort(ctx, registry.NewCohort{Project: p, ID: rapid.Int64Range(0, 3).Draw(rt, "id"), CohortFields: staticCohort(name.Draw(rt, "name"))}, at)
			check(rt, err)
		},
		"update cohort": func(rt *rapid.T) {
			r, p, at := one(rt)
			f := staticCohort(name.Draw(rt, "name"))
			f.Static, f.Deleted = registry.To(rapid.Bool().Draw(rt, "static")), registry.To(rapid.Bool().Draw(rt, "deleted"))
			_, err := r.UpdateCohort(ctx, p, rapid.Int64Range(1, 3).Draw(rt, "id"), f, at)
			check(rt, err)
		},
		"compute cohort": func(rt *rapid.T) {
			r, p, at := one(rt)
			c, err := r.BeginCohort(ctx, p, rapid.Int64Range(1, 3).Draw(rt, "id"))
			if check(rt, err); err != nil {
				return
			}
			if rapid.Bool().Draw(rt, "fails") {
				_, err = r.FailCohort(ctx, p, c.ID, c.PendingVersion, "wrong", at)
			} else {
				_, err = r.SwapCohort(ctx, p, c.ID, c.PendingVersion, 1, at)
			}
			check(rt, err)
		},
		"cohort members": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.SetCohortMembers(ctx, p, rapid.Int64Range(1, 3).Draw(rt, "id"), 1, at)
			check(rt, err)
		},
		"action": func(rt *rapid.T) {
			r, p, at := one(rt)
			_, err := r.CreateAction(ctx, p, registry.ActionFields{Name: registry.To(new(name.Draw(rt, "name")))}, "key", at)
			check(rt, err)
		},
		"update action": func(rt *rapid.T) {
			r, p, at := one(rt)
			f := registry.ActionFields{Deleted: registry.To(rapid.Bool().Draw(rt, "deleted")), Pinned: registry.To(rapid.Bool().Draw(rt, "pinned"))}
			if rapid.Bool().Draw(rt, "define") {
				f.Name = registry.To(new(name.Draw(rt, "name")))
				f.Steps = registry.To([]registry.ActionStep{{Event: new(name.Draw(rt, "event")), Properties: json.RawMessage(`[ {} ]`)}})
			}
			_, err := r.UpdateAction(ctx, p, rapid.Int64Range(1, 5).Draw(rt, "action"), f, at)
			check(rt, err)
		},
		"set property": func(rt *rapid.T) {
			r, p, _ := one(rt)
			check(rt, r.SetProperty(ctx, p, def.Draw(rt, "definition")))
		},
	}
}
