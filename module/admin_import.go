package module

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// adminImport imports a file from the request's body into a project.
func adminImport(rt *runtime, w http.ResponseWriter, r *http.Request) (any, error) {
	// Caddy gives admin requests ten seconds; an import may take as long as its file keeps coming.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	limitStalls(w, r, importPause)
	query := r.URL.Query()
	project, err := adminProject(rt.registry.Snapshot(), query.Get("project"))
	if err != nil {
		return nil, err
	}
	format, err := formats.ParseFormat(query.Get("format"))
	if err != nil {
		return nil, badRequest("%w", err)
	}
	mapping, err := formats.ParseMapping(query["map"])
	if err != nil {
		return nil, badRequest("%w", err)
	}
	request := imports.Request{Project: project.ID, Name: query.Get("name"), Format: string(format), Map: mapping}
	if request.DryRun, err = api.ParseFlag(query.Get("dry_run"), false); err != nil {
		return nil, badRequest("dry_run: %w", err)
	}
	if request.LearnTypes, err = api.ParseFlag(query.Get("learn_types"), true); err != nil {
		return nil, badRequest("learn_types: %w", err)
	}
	progress, end := rt.imports.runs.begin(query.Get("run"))
	defer end()
	report, err := rt.imports.run(r.Context(), request, r.Body, progress)
	if err != nil {
		return nil, err
	}
	return report, nil
}

// adminImportProgress reports the progress of a command's import.
func adminImportProgress(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	found, ok := rt.imports.runs.of(r.URL.Query().Get("run"))
	if !ok {
		return nil, fmt.Errorf("the import: %w", registry.ErrNotFound)
	}
	return found, nil
}

// countMembers records the new number of members of static cohorts.
func (rt *runtime) countMembers(ctx context.Context, project int64, filled map[int64]bool) error {
	for id := range filled {
		if known := rt.registry.Snapshot().Cohort(project, id); known == nil || !known.Static {
			continue
		}
		place, err := rt.Places.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			return err
		}
		_, err = cohorts.CountStatic(ctx, rt.registry, rt.Shards.Of(project), place, project, id)
		place.Leave()
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	return nil
}

// keepGroupTypes records group types of a project before anything is written with their index, and returns all group types that the servers of the
// registry have recorded.
func (rt *runtime) keepGroupTypes(project int64) func(context.Context, []ingest.GroupType) ([]ingest.GroupType, error) {
	return func(ctx context.Context, found []ingest.GroupType) ([]ingest.GroupType, error) {
		if len(found) == 0 {
			if err := rt.registry.Refresh(ctx); err != nil {
				return nil, err
			}
			if rt.registry.Snapshot().Project(project) == nil { // it was deleted: nothing may be written any more
				return nil, fmt.Errorf("project %d: %w", project, registry.ErrNotFound)
			}
			return groupTypes(rt.registry.Snapshot(), project), nil
		}
		types := make([]registry.GroupType, len(found))
		for n, g := range found {
			types[n] = registry.GroupType(g)
		}
		err := rt.registry.Learn(ctx, project, nil, types)
		return groupTypes(rt.registry.Snapshot(), project), err
	}
}

// learn records the types of new properties.
func (rt *runtime) learn(ctx context.Context, project int64, report *ingest.Report) error {
	if len(report.Learned) == 0 {
		return nil
	}
	defs := make([]registry.PropertyDefinition, len(report.Learned))
	for n, l := range report.Learned {
		defs[n] = registry.PropertyDefinition{
			Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name, Type: registry.PropertyType(l.Type),
		}
	}
	return rt.registry.Learn(ctx, project, defs, nil)
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
		list[n] = registry.PropertyValues{PropertyDefinition: registry.PropertyDefinition{
			Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name, Type: registry.PropertyType(l.Type),
		}, Kinds: l.Kinds}
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

// cohortIDs returns the static cohorts, which people are added to, and the computed ones.
func cohortIDs(snap *registry.Snapshot, project int64) (static, computed []int64) {
	for _, c := range snap.Cohorts(project) {
		if c.Static {
			static = append(static, c.ID)
		} else {
			computed = append(computed, c.ID)
		}
	}
	return static, computed
}

func groupTypes(snap *registry.Snapshot, project int64) []ingest.GroupType {
	var types []ingest.GroupType
	for _, g := range snap.GroupTypes(project) {
		types = append(types, ingest.GroupType(g))
	}
	return types
}
