package registrytest

import (
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// testDefinitions keeps what people wrote about events and properties.
func testDefinitions(t exam) {
	p := newPair(t)
	ctx, shop := t.Context(), p.project()
	event := registry.Definition{ID: "11111111-0000-7000-8000-000000000001", Project: shop.ID, Event: "größe"}
	amount := registry.Definition{
		ID: "11111111-0000-7000-8000-000000000002", Project: shop.ID,
		Property: registry.PropertyDefinition{Scope: registry.EventProperty, Name: "amount", Type: registry.PropertyNumeric},
	}
	must(p.CreateEvent(ctx, event, registry.DefinitionFields{Verified: registry.To(true)}, "key", at))(t)
	p.refused("an event that is there", &registry.FieldError{Field: "name", Code: registry.CodeUnique, Message: "Event definition with this name already exists."}, func() error {
		_, err := p.CreateEvent(ctx, event, registry.DefinitionFields{}, "key", at)
		return err
	})
	must(p.Define(ctx, amount, registry.DefinitionFields{
		Description: registry.To(new("in euro")), Tags: registry.To([]string{" Money", "money", ""}), Type: registry.To(registry.PropertyDuration),
	}, "key", at))(t)
	p.refused("what is hidden and verified", &registry.FieldError{Code: registry.CodeInvalid, Message: "A property cannot be both hidden and verified"}, func() error {
		_, err := p.Define(ctx, amount, registry.DefinitionFields{Hidden: registry.To(true), Verified: registry.To(true)}, "key", at)
		return err
	})
	p.refused("no such type", &registry.FieldError{Field: "property_type", Code: registry.CodeNotChoice, Message: `"Colour" is not a valid choice.`}, func() error {
		_, err := p.Define(ctx, amount, registry.DefinitionFields{Type: registry.To(registry.PropertyType("Colour"))}, "key", at)
		return err
	})
	p.refused("an unknown project", registry.ErrNotFound, func() error {
		_, err := p.Define(ctx, registry.Definition{ID: "x", Project: 99, Event: "e"}, registry.DefinitionFields{}, "key", at)
		return err
	})
	wantEvent, wantAmount := event, amount
	wantEvent.Verified, wantEvent.VerifiedBy, wantEvent.VerifiedAt, wantEvent.UpdatedBy, wantEvent.UpdatedAt, wantEvent.CreatedBy, wantEvent.CreatedAt = true, "key", at, "key", at, "key", at
	wantAmount.Property.Type, wantAmount.ShownType, wantAmount.Description, wantAmount.Tags = "", registry.PropertyDuration, new("in euro"), []string{"money"}
	wantAmount.UpdatedBy, wantAmount.UpdatedAt = "key", at
	now := p.settled()[0]
	same(t, "definitions", []registry.Definition{wantAmount, wantEvent}, now.Definitions)
	same(t, "the type", []registry.PropertyDefinition{{Scope: registry.EventProperty, Name: "amount", Type: registry.PropertyString}}, now.Properties)

	later := at.Add(time.Hour)
	must(p.Define(ctx, event, registry.DefinitionFields{Hidden: registry.To(true)}, "other", later))(t)
	wantEvent.Verified, wantEvent.VerifiedBy, wantEvent.VerifiedAt, wantEvent.Hidden, wantEvent.UpdatedBy, wantEvent.UpdatedAt = false, "", time.Time{}, true, "other", later
	same(t, "what is hidden is not verified", wantEvent, p.settled()[0].Definitions[1])
}

// testAnnotations keeps annotations.
func testAnnotations(t exam) {
	p := newPair(t)
	ctx, shop, other := t.Context(), p.project(), p.project()
	i := p.insight(shop.ID, registry.InsightFields{Query: registry.To(trend)})
	first := must(p.CreateAnnotation(ctx, shop.ID, registry.AnnotationFields{Content: registry.To(new("größe")), At: registry.To(at), Insight: registry.To(&i.ID)}, "key", at))(t)
	second := must(p.CreateAnnotation(ctx, shop.ID, registry.AnnotationFields{
		At: registry.To(at.Add(time.Hour)), Scope: registry.To(registry.OnProject), Origin: registry.To("GIT"), Emoji: registry.To("🎉"), Hidden: registry.To(new(true)),
	}, "key", at))(t)
	want := registry.Annotation{
		ID: first.ID, Project: shop.ID, Content: new("größe"), At: at, Scope: registry.OnInsight, Origin: "USR", Insight: &i.ID, CreatedBy: "key", CreatedAt: at, UpdatedAt: at,
	}
	same(t, "the latest first", []registry.Annotation{*second, want}, p.settled()[0].Annotations)
	for _, tt := range []struct {
		field string
		code  registry.Code
		f     registry.AnnotationFields
	}{
		{"", registry.CodeInvalid, registry.AnnotationFields{Scope: registry.To(registry.AnnotationScope("recording"))}},
		{"scope", registry.CodeNotChoice, registry.AnnotationFields{Scope: registry.To(registry.AnnotationScope("galaxy"))}},
		{"creation_type", registry.CodeNotChoice, registry.AnnotationFields{Origin: registry.To("X")}},
		{"dashboard_id", registry.CodeInvalid, registry.AnnotationFields{Dashboard: registry.To(new(int64(99)))}},
		{"dashboard_item", registry.CodeNoObject, registry.AnnotationFields{Insight: registry.To(new(int64(99)))}},
		{"content", registry.CodeTooLong, registry.AnnotationFields{Content: registry.To(new(strings.Repeat("x", 8193)))}},
	} {
		p.refused("a bad "+tt.field, &registry.FieldError{Field: tt.field, Code: tt.code}, func() error {
			_, err := p.UpdateAnnotation(ctx, shop.ID, first.ID, tt.f, at)
			return err
		})
	}
	p.refused("an annotation of another project", registry.ErrNotFound, func() error {
		_, err := p.UpdateAnnotation(ctx, other.ID, first.ID, registry.AnnotationFields{Deleted: registry.To(true)}, at)
		return err
	})
	must(p.UpdateAnnotation(ctx, shop.ID, second.ID, registry.AnnotationFields{Deleted: registry.To(true)}, at))(t)
	same(t, "without the one that is deleted", []registry.Annotation{want}, p.settled()[0].Annotations)
	must(p.UpdateInsight(ctx, shop.ID, i.ID, registry.InsightFields{Deleted: registry.To(true)}, false, "key", at))(t)
	same(t, "without that of a deleted insight", 0, len(p.settled()[0].Annotations))
	if purged := must(p.Purge(ctx, shop.ID, at.Add(time.Hour)))(t); purged.Annotations != 2 {
		t.Errorf("%d annotations were purged, want the one that was deleted and that of the insight", purged.Annotations)
	}
	p.settled()
}
