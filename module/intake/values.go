package intake

import (
	"context"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// propertyValues stores the kinds of values of a project's properties in the registry. It implements ingest.Values. What it returns is as of the last
// refresh of the registry: each batch begins with one, for its group types.
type propertyValues struct {
	*registry.Registry
	project int64
	last    *registry.ProjectSchema // that was last returned
}

func (v *propertyValues) Known() bool {
	p := v.Snapshot().Project(v.project)
	return p != nil && p.ValuesKnown
}

func (v *propertyValues) Changed() []ingest.LearnedProperty {
	now := v.Snapshot().Schema(v.project)
	if now == v.last {
		return nil
	}
	v.last = now
	return knownTypes(now)
}

func (v *propertyValues) Begin(ctx context.Context) error { return v.KnowValues(ctx, v.project) }

func (v *propertyValues) Widen(ctx context.Context, found []ingest.LearnedProperty, lost bool) error {
	list := make([]registry.PropertyValues, len(found))
	for n, l := range found {
		list[n] = registry.PropertyValues{PropertyDefinition: definition(l), Kinds: l.Kinds}
	}
	err := v.Registry.Widen(ctx, v.project, list, lost)
	if _, full := errors.AsType[*registry.FieldError](err); !full {
		return err
	}
	for n := range list { // there is no room for new ones: the values are written nevertheless
		list[n].Type = ""
	}
	return v.Registry.Widen(ctx, v.project, list, true)
}
