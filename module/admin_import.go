package module

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// adminImport reads NDJSON from the request's body into a project. What it learns of properties is recorded even when the import breaks
// off: those lines are in.
func adminImport(rt *runtime, w http.ResponseWriter, r *http.Request) (any, error) {
	// Caddy gives admin requests ten seconds; an import takes as long as its file, as long as its lines come.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	bePatient(w, r, importPause)
	snap := rt.registry.Snapshot()
	project, err := adminProject(snap, r.URL.Query().Get("project"))
	if err != nil {
		return nil, err
	}
	if _, err := rt.Warehouse.Layout(r.Context()); err != nil {
		return nil, err
	}
	options := rt.ingestOptions(snap, project.ID)
	options.LearnTypes = r.URL.Query().Get("learn_types") != "false"
	report, err := rt.Warehouse.Import(r.Context(), rt.Places, options, r.Body)
	if learnErr := rt.learn(r.Context(), project.ID, &report); err == nil {
		err = learnErr
	}
	if countErr := rt.countMembers(r.Context(), project.ID, report.Filled); err == nil {
		err = countErr
	}
	rt.Cache.Purge(project.ID)
	if err != nil {
		return nil, err
	}
	out := adminapi.Import{
		Events: report.Events, Duplicates: report.Duplicates, Persons: report.Persons, Groups: report.Groups,
		Cohorts: report.Cohorts, Members: report.Members, Bad: report.Bad, BadLines: []adminapi.BadLine{}, TooOld: report.TooOld,
		LeftOut: report.LeftOut, LeftOutAt: report.LeftOutAt, Untyped: report.Untyped,
		Learned: []adminapi.Property{}, GroupTypes: []adminapi.GroupType{}, Seconds: time.Since(options.Now).Seconds(),
	}
	for _, bad := range report.BadLines {
		out.BadLines = append(out.BadLines, adminapi.BadLine(bad))
	}
	for _, g := range report.GroupTypes {
		out.GroupTypes = append(out.GroupTypes, adminapi.GroupType(g))
	}
	for _, l := range report.Learned {
		out.Learned = append(out.Learned, adminapi.Property{Project: project.ID, Type: l.Scope, Group: l.GroupTypeIndex, Name: l.Name, As: l.Type})
	}
	return out, nil
}

// countMembers records that static cohorts have new members.
func (rt *runtime) countMembers(ctx context.Context, project int64, filled map[int64]bool) error {
	for id := range filled {
		if known := rt.registry.Snapshot().Cohort(project, id); known == nil || !known.Static {
			continue
		}
		place, err := rt.Places.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			return err
		}
		count, err := rt.Warehouse.CountMembers(ctx, place, project, id)
		place.Leave()
		if err != nil {
			return err
		}
		if _, err := rt.registry.SetCohortMembers(ctx, project, id, count, time.Now()); err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	return nil
}

// keepGroupTypes records group types of a project before anything is written by their index, and returns all that the servers of the
// registry have recorded.
func (rt *runtime) keepGroupTypes(project int64) func(context.Context, []ingest.GroupType) ([]ingest.GroupType, error) {
	return func(ctx context.Context, found []ingest.GroupType) ([]ingest.GroupType, error) {
		if len(found) == 0 {
			if err := rt.registry.Refresh(ctx); err != nil {
				return nil, err
			}
			if rt.registry.Snapshot().Project(project) == nil { // it was deleted: nothing is to be written any more
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

// learn records the property types that were found.
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

func knownTypes(snap *registry.Snapshot, project int64) []ingest.LearnedProperty {
	var known []ingest.LearnedProperty
	for _, d := range snap.PropertyDefinitions(project) {
		known = append(known, ingest.LearnedProperty{
			Scope: string(d.Scope), GroupTypeIndex: d.GroupTypeIndex, Name: d.Name, Type: string(d.Type),
		})
	}
	return known
}

// cohortIDs lists the cohorts that people are put into, and those that are computed.
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
