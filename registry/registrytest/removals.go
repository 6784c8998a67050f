package registrytest

import (
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// testRemovals deletes a project: all of its records go, the state of its data is noted, and its number is not reused.
func testRemovals(t exam) {
	p := newPair(t)
	ctx, stays, shop := t.Context(), p.project(), p.project()
	p.key(registry.NewKey{Project: shop.ID, Kind: registry.Personal, Label: "gone"})
	p.endpoint(shop.ID, "gone")
	p.endpoint(stays.ID, "kept")
	p.refused("a deletion by another name", &registry.FieldError{Code: registry.CodeInvalid, Field: "confirm"}, func() error {
		_, err := p.DeleteProject(ctx, shop.ID, "shop", at)
		return err
	})
	p.refused("a deletion of no project", registry.ErrNotFound, func() error {
		_, err := p.DeleteProject(ctx, 99, shop.Name, at)
		return err
	})
	before, behind := p.settled(), openRegistry(t)
	removal := must(p.other.DeleteProject(ctx, shop.ID, shop.Name, at.Add(time.Hour)))(t)
	if err := p.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "the projects that are left", before[:1], p.settled())
	for kind, want := range map[registry.Kind]int{"project": 1, "key": 1, "endpoint": 1} {
		if removal.Records[kind] != want {
			t.Errorf("the project had %d records of the kind %s, want %d: %v", removal.Records[kind], kind, want, removal.Records)
		}
	}
	want := registry.Removal{Project: shop.ID, Records: removal.Records, RequestedAt: at.Add(time.Hour)}
	same(t, "what is known of it", want, *p.Snapshot().Removal(shop.ID))
	if _, err := p.DeleteProject(ctx, shop.ID, shop.Name, at); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("deleting it again: %v, want ErrNotFound", err)
	}
	if err := p.ForgetProject(ctx, shop.ID); err != nil {
		t.Fatal(err)
	}
	p.refused("a key from a process that has not seen the deletion", registry.ErrNotFound, func() error {
		_, _, err := behind.CreateKey(ctx, registry.NewKey{Project: shop.ID, Kind: registry.Personal, Label: "late", Scopes: []string{"*"}}, at)
		return err
	})
	want.RemovedAt, want.ErasedAt = at.Add(2*time.Hour), at.Add(3*time.Hour)
	err := p.NoteRemoval(ctx, shop.ID, func(r *registry.Removal) { r.RemovedAt, r.ErasedAt = want.RemovedAt, want.ErasedAt })
	if err != nil {
		t.Fatal(err)
	}
	all := openRegistry(t).Snapshot().Removals()
	if len(all) != 1 {
		t.Fatalf("there are %d projects that were deleted, want 1", len(all))
	}
	same(t, "what is known of it in the end", want, *all[0])
	if err := p.NoteRemoval(ctx, stays.ID, func(*registry.Removal) {}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a note on a project that is there: %v, want ErrNotFound", err)
	}
	if next := p.project(); next.ID <= shop.ID {
		t.Errorf("a new project has the number %d of one that was deleted", next.ID)
	}
}

// testRetention: how long events are kept is a setting, and the days are those of the project's zone.
func testRetention(t exam) {
	p := newPair(t)
	ctx, shop := t.Context(), p.project()
	from := func() time.Time { return p.Snapshot().Schema(shop.ID).EventsFrom(at) }
	if !from().IsZero() {
		t.Errorf("a project that keeps all shows its events from %s", from())
	}
	must(p.UpdateProject(ctx, shop.ID, registry.ProjectChange{Retention: new(30), At: at}))(t)
	same(t, "the days", 30, p.settled()[0].Project.Retention)
	// It is the evening of February 2 in New York.
	same(t, "the earliest events", time.Date(2026, 1, 3, 5, 0, 0, 0, time.UTC), from())
	same(t, "until when", time.Date(2026, 2, 3, 5, 0, 0, 0, time.UTC), p.Snapshot().Schema(shop.ID).EventsUntil(at))
	must(p.UpdateProject(ctx, shop.ID, registry.ProjectChange{Retention: new(0), At: at}))(t)
	if !from().IsZero() {
		t.Errorf("a project that keeps all again shows its events from %s", from())
	}
}
