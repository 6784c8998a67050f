package module

import (
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// importReport is what an import did.
type importReport struct {
	Events     int              `json:"events"`
	Duplicates int              `json:"duplicates"`
	Persons    int              `json:"persons"`
	Groups     int              `json:"groups"`
	Cohorts    int              `json:"cohorts"`                       // lines
	Members    int              `json:"members"`                       // people that are new in cohorts
	LeftOut    int              `json:"left_out_properties"`           // of people and groups that have as many as they can
	LeftOutAt  int              `json:"left_out_at,omitempty"`         // the first line with one
	Untyped    bool             `json:"types_limit_reached,omitempty"` // properties that are new beyond the limit have no type
	Bad        int              `json:"bad"`
	BadLines   []badLine        `json:"bad_lines"` // the first of them
	Learned    []propertyBody   `json:"learned_properties"`
	GroupTypes []knownGroupType `json:"group_types"` // all that the project has
	Seconds    float64          `json:"seconds"`
}

type badLine struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

type knownGroupType struct {
	Name  string `json:"group_type"`
	Index int    `json:"group_type_index"`
}

// adminImport reads NDJSON from the request's body into a project. What it learns of properties and group types is
// recorded even when the import breaks off: those lines are in.
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
	began := time.Now()
	options := clickhouse.ImportOptions{
		Project: project.ID, LearnTypes: r.URL.Query().Get("learn_types") != "false", Now: began,
		KnownTypes: knownTypes(snap, project.ID), MaxTypes: registry.MaxProperties, GroupTypes: groupTypes(snap, project.ID),
		Cohorts: cohortIDs(snap, project.ID),
	}
	report, err := rt.Warehouse.Import(r.Context(), rt.Places, options, r.Body)
	if learnErr := rt.learn(r, project.ID, &report); err == nil {
		err = learnErr
	}
	rt.Cache.Purge(project.ID)
	if err != nil {
		return nil, err
	}
	out := importReport{
		Events: report.Events, Duplicates: report.Duplicates, Persons: report.Persons, Groups: report.Groups,
		Cohorts: report.Cohorts, Members: report.Members, Bad: report.Bad, BadLines: []badLine{},
		LeftOut: report.LeftOut, LeftOutAt: report.LeftOutAt, Untyped: report.Untyped,
		Learned: []propertyBody{}, GroupTypes: []knownGroupType{}, Seconds: time.Since(began).Seconds(),
	}
	for _, bad := range report.BadLines {
		out.BadLines = append(out.BadLines, badLine(bad))
	}
	for _, g := range report.GroupTypes {
		out.GroupTypes = append(out.GroupTypes, knownGroupType(g))
	}
	for _, l := range report.Learned {
		out.Learned = append(out.Learned, propertyBody{Project: project.ID, Type: l.Scope, Group: l.GroupTypeIndex, Name: l.Name, As: l.Type})
	}
	return out, nil
}

// learn records the property types and group types that an import found.
func (rt *runtime) learn(r *http.Request, project int64, report *clickhouse.ImportReport) error {
	var defs []registry.PropertyDefinition
	for _, l := range report.Learned {
		defs = append(defs, registry.PropertyDefinition{
			Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name, Type: registry.PropertyType(l.Type),
		})
	}
	var groups []registry.GroupType
	for _, g := range report.GroupTypes {
		groups = append(groups, registry.GroupType(g))
	}
	if len(defs) == 0 && len(groups) == 0 {
		return nil
	}
	return rt.registry.Learn(r.Context(), project, defs, groups)
}

func knownTypes(snap *registry.Snapshot, project int64) []clickhouse.LearnedProperty {
	var known []clickhouse.LearnedProperty
	for _, d := range snap.PropertyDefinitions(project) {
		known = append(known, clickhouse.LearnedProperty{
			Scope: string(d.Scope), GroupTypeIndex: d.GroupTypeIndex, Name: d.Name, Type: string(d.Type),
		})
	}
	return known
}

func cohortIDs(snap *registry.Snapshot, project int64) []int64 {
	var ids []int64
	for _, c := range snap.Cohorts(project) {
		ids = append(ids, c.ID)
	}
	return ids
}

func groupTypes(snap *registry.Snapshot, project int64) []clickhouse.GroupType {
	var types []clickhouse.GroupType
	for _, g := range snap.GroupTypes(project) {
		types = append(types, clickhouse.GroupType(g))
	}
	return types
}
