package registrytest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testActions(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	ctx := t.Context()
	steps := []registry.ActionStep{{}, {
		Event: new("$autocapture "), Properties: json.RawMessage(`[ {"key": "ä\u0000", "value": [1.0, 123456789012345678901234567890]} ]`),
		Selector: new("a > [id='x']"), TagName: new("a"), Text: new("' \" ; -- <b>"), TextMatching: new(registry.MatchRegex), Href: new(""),
		HrefMatching: new(registry.MatchContains), URL: new("%_"), URLMatching: new(registry.MatchExact),
	}}
	stored := slices.Clone(steps)
	stored[1].Properties = json.RawMessage(`[{"key":"ä\u0000","value":[1.0,123456789012345678901234567890]}]`)
	full := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{
		Name: registry.To(new("Größe ≤ 1")), Description: registry.To("d"), Tags: registry.To([]string{"b", "a", "b"}), PostToSlack: registry.To(true),
		SlackMessageFormat: registry.To("[event]"), Steps: registry.To(steps), Pinned: registry.To(true),
	}, "key", at))(t)
	want := registry.Action{
		ActionDefinition: registry.ActionDefinition{ID: 1, Name: new("Größe ≤ 1"), Steps: stored}, Project: shop.ID, Description: "d", Tags: []string{"b", "a"},
		PostToSlack: true, SlackMessageFormat: "[event]", CreatedAt: at, CreatedBy: "key", ChangedAt: at, PinnedAt: new(at),
	}
	same(t, "a new action", want, *full)
	later := at.Add(time.Minute)
	empty := must(p.CreateAction(ctx, shop.ID, registry.ActionFields{}, "key", later))(t)
	must(p.CreateAction(ctx, other.ID, registry.ActionFields{Name: registry.To(full.Name)}, "key", at))(t)
	got := p.settled()
	same(t, "actions", []registry.Action{want, *empty}, got[0].Actions)
	same(t, "the newest first", []int64{2, 1}, got[0].Newest)

	taken := &registry.FieldError{Field: "name", Code: registry.CodeUnique}
	p.refused("a name that is taken", taken, func() error {
		_, err := p.UpdateAction(ctx, shop.ID, empty.ID, registry.ActionFields{Name: registry.To(full.Name)}, later)
		return err
	})
	p.refused("a name that another registry gave", taken, func() error {
		_, err := p.other.CreateAction(ctx, shop.ID, registry.ActionFields{Name: registry.To(full.Name)}, "key", later)
		return err
	})
	gone := must(p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Deleted: registry.To(true), Pinned: registry.To(false)}, later))(t)
	want.Deleted, want.DeletedAt, want.ChangedAt, want.PinnedAt = true, later, later, nil
	same(t, "one that is deleted", want, *gone)
	must(p.UpdateAction(ctx, shop.ID, empty.ID, registry.ActionFields{Name: registry.To(full.Name)}, later))(t)
	p.refused("restoring one whose name is taken", taken, func() error {
		_, err := p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Deleted: registry.To(false)}, later)
		return err
	})
	same(t, "those that lists show", []int64{2}, p.settled()[0].Newest)
	back := must(p.UpdateAction(ctx, shop.ID, full.ID, registry.ActionFields{Name: registry.To(new("x")), Deleted: registry.To(false)}, later.Add(1*time.Second)))(t)
	want.Name, want.Deleted, want.DeletedAt, want.ChangedAt = new("x"), false, time.Time{}, later.Add(time.Second)
	same(t, "one that is restored", want, *back)
	p.settled()
}
