package intake

import (
	"context"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// keepGroupTypes records group types of a project before anything is written with their index, and returns all group types that the servers of the
// registry have recorded.
func (i *Intake) keepGroupTypes(project int64) func(context.Context, []ingest.GroupType) ([]ingest.GroupType, error) {
	return func(ctx context.Context, found []ingest.GroupType) ([]ingest.GroupType, error) {
		if len(found) == 0 {
			if err := i.Registry.Refresh(ctx); err != nil {
				return nil, err
			}
			if i.Registry.Snapshot().Project(project) == nil { // it was deleted: nothing may be written any more
				return nil, fmt.Errorf("project %d: %w", project, registry.ErrNotFound)
			}
			return groupTypes(i.Registry.Snapshot(), project), nil
		}
		types := make([]registry.GroupType, len(found))
		for n, g := range found {
			types[n] = registry.GroupType(g)
		}
		err := i.Registry.Learn(ctx, project, nil, types)
		return groupTypes(i.Registry.Snapshot(), project), err
	}
}

func groupTypes(snap *registry.Snapshot, project int64) []ingest.GroupType {
	var types []ingest.GroupType
	for _, g := range snap.GroupTypes(project) {
		types = append(types, ingest.GroupType(g))
	}
	return types
}

// learn records the types of new properties.
func (i *Intake) learn(ctx context.Context, project int64, report *ingest.Report) error {
	if len(report.Learned) == 0 {
		return nil
	}
	defs := make([]registry.PropertyDefinition, len(report.Learned))
	for n, l := range report.Learned {
		defs[n] = definition(l)
	}
	return i.Registry.Learn(ctx, project, defs, nil)
}

// definition returns a property as the registry records it, without its kinds.
func definition(l ingest.LearnedProperty) registry.PropertyDefinition {
	return registry.PropertyDefinition{
		Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name, Type: registry.PropertyType(l.Type),
	}
}

// knownTypes returns the properties of a project; nil for none.
func knownTypes(of *registry.ProjectSchema) []ingest.LearnedProperty {
	if of == nil {
		return nil
	}
	known := make([]ingest.LearnedProperty, len(of.Properties))
	for n, d := range of.Properties {
		known[n] = ingest.LearnedProperty{Scope: string(d.Scope), GroupTypeIndex: d.GroupTypeIndex, Name: d.Name, Type: string(d.Type)}
		d.Type = ""
		known[n].Kinds = of.Values[d]
	}
	return known
}
