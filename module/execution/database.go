package execution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Databases keeps the virtual schema of each project for as long as what it follows from stays the same.
type Databases struct{ byProject sync.Map } // project id → *knownDatabase

type knownDatabase struct {
	of     *registry.ProjectSchema
	layout *schema.Layout
	db     *schema.Database
}

// Database is the virtual schema that a project's queries see. The error is that of a ClickHouse that can't be asked.
func (e *Executor) Database(ctx context.Context, of *registry.ProjectSchema) (*schema.Database, error) {
	layout, err := e.Warehouse.Layout(ctx)
	if err != nil {
		return nil, err
	}
	if found, ok := e.Databases.byProject.Load(of.Project.ID); ok {
		if known, _ := found.(*knownDatabase); known.of == of && known.layout == layout {
			return known.db, nil
		}
	}
	db := &schema.Database{
		Project: of.Project.ID, Location: of.Location, WeekStart: of.Project.WeekStart, Layout: layout, Cohorts: CohortsOf(of.Cohorts, layout),
		Properties: make(schema.PropertyTypes, len(of.Properties)), GroupTypes: make(map[string]int, len(of.GroupTypes)),
	}
	for _, d := range of.Properties {
		key := schema.PropertyKey{Scope: propertyScopes[d.Scope], Group: d.GroupTypeIndex, Name: d.Name}
		db.Properties[key] = schema.PropertyType(d.Type)
	}
	for _, g := range of.GroupTypes {
		db.GroupTypes[g.Name] = g.Index
	}
	e.Databases.byProject.Store(of.Project.ID, &knownDatabase{of, layout, db})
	return db, nil
}

// CohortsOf are the cohorts that queries can ask for. Tables that another product fills may hold more than those with names.
func CohortsOf(cohorts []registry.SchemaCohort, layout *schema.Layout) schema.Cohorts {
	list := make([]schema.Cohort, len(cohorts))
	for i, c := range cohorts {
		list[i] = schema.Cohort(c)
	}
	return schema.NewCohorts(list, layout != nil && layout.Foreign())
}

var propertyScopes = map[registry.PropertyScope]schema.PropertyScope{
	registry.EventProperty: schema.EventProperty, registry.PersonProperty: schema.PersonProperty, registry.GroupProperty: schema.GroupProperty,
}

// compilerEnv is the world that a project's queries are compiled for.
func compilerEnv(snap *registry.Snapshot, project int64, db *schema.Database, now time.Time) compiler.Env {
	of := snap.Schema(project)
	return compiler.Env{
		Database: db, Now: now, Variables: snap.VariableDefaults(project), MaxRows: MaxRows,
		TestAccounts: of.TestAccounts, PathCleaning: of.PathCleaning,
	}
}

// SchemaMark is the part of a cache key that changes with what a project's queries mean: its zone, its week, its filters
// against test accounts and rules of path cleaning, its property definitions, group types and cohorts.
func SchemaMark(of *registry.ProjectSchema) string {
	text, err := json.Marshal([]any{
		of.Project.Timezone, of.Project.WeekStart, of.Project.TestAccountFilters, of.Project.PathCleaningFilters, of.Properties, of.GroupTypes,
		of.Cohorts,
	})
	if err != nil {
		panic("BUG: encoding a project's schema: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
