package registrytest

import (
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// testDeletions follows a deletion until it is erased, and purged.
func testDeletions(t exam) {
	p := newPair(t)
	ctx, shop, other := t.Context(), p.project(), p.project()
	names := []registry.DeletedName{{Name: "größe", Version: 101}, {Name: "b", Version: 3}}
	asked := registry.Deletion{Person: "0193a1de-0000-7000-8000-000000000001", Gone: true, Events: true, Names: names, Version: 7, DistinctIDs: 2, By: "key"}
	first := must(p.AddDeletions(ctx, shop.ID, []registry.Deletion{asked}, at))(t)[0]
	later := must(p.AddDeletions(ctx, shop.ID, []registry.Deletion{{Person: "2", Events: true}, {Person: "3", Gone: true}}, at.Add(time.Hour)))(t)
	want := asked
	want.ID, want.Project, want.RequestedAt = first.ID, shop.ID, at
	shown := p.settled()[0].Deletions
	same(t, "what was asked for", want, shown[2])
	same(t, "how many are under way", 3, len(p.Snapshot().PendingDeletions(shop.ID)))
	same(t, "those of another project", 0, len(p.Snapshot().Deletions(other.ID)))

	hidden := *first
	hidden.EventCount = 12
	if err := p.HideDeletions(ctx, shop.ID, []*registry.Deletion{&hidden}, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want.EventCount, want.HiddenAt = 12, at.Add(time.Minute)
	same(t, "what is hidden", want, p.settled()[0].Deletions[2])
	if err := p.EraseDeletions(ctx, shop.ID, []*registry.Deletion{&hidden, {ID: "unknown"}}, at.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	want.Names, want.ErasedAt = nil, at.Add(2*time.Minute)
	same(t, "what is erased", want, p.settled()[0].Deletions[2])
	pending := p.Snapshot().PendingDeletions(shop.ID)
	if len(pending) != 2 || pending[0].ID == first.ID || pending[1].ID == first.ID || pending[0].ID != later[0].ID && pending[0].ID != later[1].ID {
		t.Errorf("under way are %v, want the two that are not erased", pending)
	}

	p.refused("a deletion that is too large", &registry.FieldError{Code: registry.CodeTooBig}, func() error {
		_, err := p.AddDeletions(ctx, shop.ID, []registry.Deletion{{Names: []registry.DeletedName{{Name: strings.Repeat("x", registry.MaxRecord)}}}}, at)
		return err
	})
	p.refused("a deletion in no project", registry.ErrNotFound, func() error {
		_, err := p.AddDeletions(ctx, 99, []registry.Deletion{asked}, at)
		return err
	})
	if purged := must(p.Purge(ctx, shop.ID, at.Add(time.Hour)))(t); purged.Deletions != 1 {
		t.Errorf("the records of %d deletions were purged, want that of the one that is erased", purged.Deletions)
	}
	same(t, "how many are left", 2, len(p.settled()[0].Deletions))
}

// testDeletionRefills: no run reads what was filled before a deletion was hidden, nor what was being filled then.
func testDeletionRefills(t exam) {
	p := newPair(t)
	ctx, shop := t.Context(), p.project()
	e := must(p.CreateEndpoint(ctx, registry.NewEndpoint{Project: shop.ID, Name: "daily", Query: odd("1"), Table: registry.TableUpdate{On: new(true)}}, at))(t)
	begun := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	must(p.SwapFill(ctx, shop.ID, e.ID, 1, begun.Pending, registry.Table{AsOf: at, Rows: 3}))(t)
	running := must(p.BeginFill(ctx, shop.ID, e.ID, 1, at))(t)
	if err := p.HideDeletions(ctx, shop.ID, nil, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	table := p.settled()[0].Endpoints[0].Versions[0].Table
	if table.Fill != 0 || table.Running || table.Pending <= running.Pending || table.Rows != 0 {
		t.Errorf("the table is %+v after the deletion, want none that is read, and a fill that is awaited", table)
	}
	if must(p.SwapFill(ctx, shop.ID, e.ID, 1, running.Pending, registry.Table{AsOf: at}))(t) {
		t.Error("a fill that began before the deletion is read")
	}
}
