package upkeep

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestRoundGoesOn: a deleted project leaves the disk even if old events of another can't be removed.
func TestRoundGoesOn(t *testing.T) {
	k := still(t, connect(t, engine.DSN()))
	create(t, k, "keeps events for 30 days", 30)
	gone := create(t, k, "gone", 0)
	if err := k.Registry.Keep(t.Context(), doneName, []byte("not JSON")); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Registry.DeleteProject(t.Context(), gone.ID, gone.Name, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := k.round(""); err == nil {
		t.Error("the round does not tell that old events stay")
	}
	if r := k.Registry.Snapshot().Removal(gone.ID); r == nil || r.ErasedAt.IsZero() {
		t.Errorf("the removal is %+v", r)
	}
}

// TestCohortsAreRecalculatedOnce: while old events can't be removed, the cohorts of their project are not recomputed repeatedly.
func TestCohortsAreRecalculatedOnce(t *testing.T) {
	k := still(t, warehousetest.Nowhere(t, schema.NativeLayout()))
	p := create(t, k, "keeps events for 30 days", 30)
	c, err := k.Registry.CreateCohort(t.Context(), registry.NewCohort{
		Project: p.ID, CohortFields: registry.CohortFields{Filters: registry.To(json.RawMessage(`{"properties":{}}`))},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for try, awaited := range []bool{true, false} {
		now := k.Registry.Snapshot().Cohort(p.ID, c.ID)
		if _, err := k.Registry.SwapCohort(t.Context(), p.ID, c.ID, now.PendingVersion, 0, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := k.dropOutdated(t.Context(), ""); err == nil {
			t.Fatal("events are removed without ClickHouse")
		}
		if now = k.Registry.Snapshot().Cohort(p.ID, c.ID); (now.PendingVersion != 0) != awaited {
			t.Errorf("after try %d the pending version is %d", try+1, now.PendingVersion)
		}
	}
}

// TestOutdatedOfADeletedProject: Outdated is called with the time from which the project shows events, even if it is deleted at that moment.
func TestOutdatedOfADeletedProject(t *testing.T) {
	k := still(t, nil)
	p := create(t, k, "goes", 0)
	var told []time.Time
	var forgotten []int64
	k.Outdated = func(_ time.Time, from map[int64]time.Time) {
		if _, err := k.Registry.DeleteProject(t.Context(), p.ID, p.Name, time.Now()); err != nil {
			t.Error(err)
		}
		told = append(told, from[p.ID])
	}
	k.Forget = func(project int64) { forgotten = append(forgotten, project) }
	last := k.compare(seen{})
	if _, err := k.Registry.UpdateProject(t.Context(), p.ID, registry.ProjectChange{Retention: new(30)}); err != nil {
		t.Fatal(err)
	}
	want := k.Registry.Snapshot().Schema(p.ID).EventsFrom(time.Now())
	last = k.compare(last)
	if len(told) != 1 || !told[0].Equal(want) || len(forgotten) > 0 {
		t.Errorf("told %v, want %v; forgotten %v", told, want, forgotten)
	}
	k.compare(last)
	if len(told) != 1 || !slices.Equal(forgotten, []int64{p.ID}) {
		t.Errorf("after the deletion told %v, forgotten %v", told, forgotten)
	}
}

// TestOutdatedTogether: of projects whose limits move at the same time, what was computed is forgotten at once.
func TestOutdatedTogether(t *testing.T) {
	k := still(t, nil)
	one, other := create(t, k, "one", 0), create(t, k, "other", 0)
	create(t, k, "third", 0)
	var told []map[int64]time.Time
	k.Outdated = func(_ time.Time, from map[int64]time.Time) { told = append(told, from) }
	last := k.compare(seen{})
	for _, p := range []*registry.Project{one, other} {
		if _, err := k.Registry.UpdateProject(t.Context(), p.ID, registry.ProjectChange{Retention: new(30)}); err != nil {
			t.Fatal(err)
		}
	}
	k.compare(last)
	if len(told) != 1 || len(told[0]) != 2 || told[0][one.ID].IsZero() || told[0][other.ID].IsZero() {
		t.Errorf("told %v", told)
	}
}

// TestForgetsEndpoints: the counts of a deleted endpoint are forgotten once, whether it was deleted by itself or with its project, and even if
// another endpoint has its name.
func TestForgetsEndpoints(t *testing.T) {
	k := still(t, nil)
	p := create(t, k, "shop", 0)
	ids := map[string]string{}
	publish := func(name string) {
		t.Helper()
		e, err := k.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: p.ID, Name: name, Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select 1"}`)}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = name
	}
	remove := func(name string) {
		t.Helper()
		if err := k.Registry.DeleteEndpoint(t.Context(), p.ID, name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	var forgotten []string
	k.ForgetEndpoint = func(e *registry.Endpoint) { forgotten = append(forgotten, ids[e.ID]) }
	last := k.compare(seen{})
	look := func(what string, want ...string) {
		t.Helper()
		forgotten = nil
		last = k.compare(last)
		if slices.Sort(forgotten); !slices.Equal(forgotten, want) {
			t.Errorf("%s: forgotten %v, want %v", what, forgotten, want)
		}
	}
	publish("a")
	publish("b")
	publish("c")
	look("three are new")
	remove("a")
	look("one was deleted", "a")
	remove("b")
	publish("b")
	look("one was made anew", "b")
	look("nothing happened")
	if _, err := k.Registry.DeleteProject(t.Context(), p.ID, p.Name, time.Now()); err != nil {
		t.Fatal(err)
	}
	look("the project was deleted", "b", "c")
}

// TestPanics: a project whose data makes the work on it panic holds up no other, and what it makes panic each second is not tried again.
func TestPanics(t *testing.T) {
	k := still(t, connect(t, engine.DSN()))
	broken, gone := create(t, k, "broken", 0), create(t, k, "gone", 0)
	last := k.compare(seen{})
	for _, p := range []*registry.Project{broken, gone} {
		if _, err := k.Registry.DeleteProject(t.Context(), p.ID, p.Name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	var forgotten []int64
	k.Forget = func(project int64) {
		forgotten = append(forgotten, project)
		if project == broken.ID {
			panic("broken")
		}
	}
	for range 2 {
		last = k.compare(last)
	}
	if slices.Sort(forgotten); !slices.Equal(forgotten, []int64{broken.ID, gone.ID}) {
		t.Errorf("forgotten are %d, want each of two projects once", forgotten)
	}
	k.EraseImports = func(_ context.Context, project int64) error {
		if project == broken.ID {
			panic("broken")
		}
		return nil
	}
	if err := k.round(""); err != nil {
		t.Error(err)
	}
	if r := k.Registry.Snapshot().Removal(gone.ID); r == nil || r.ErasedAt.IsZero() {
		t.Errorf("the removal of the other project is %+v", r)
	}
}
