package execution

import (
	"context"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Databases caches the virtual schema of each project for as long as its inputs stay the same.
type Databases struct {
	byProject sync.Map // project id → *knownDatabase
	schemas   sync.Map // project id → *knownSchema
	values    sync.Map // project id → *knownValues
	tables    knownTables
}

type knownDatabase struct {
	of     *registry.ProjectSchema
	layout *schema.Layout
	from   time.Time // the time of the earliest events
	db     *schema.Database
}

// Database returns the virtual schema that a project's queries see. The error is that of a ClickHouse that can't be asked.
func (e *Executor) Database(ctx context.Context, of *registry.ProjectSchema) (*schema.Database, error) {
	layout, err := e.Shards.Of(of.Project.ID).Layout(ctx)
	if err != nil {
		return nil, err
	}
	return e.databaseWith(of, layout), nil
}

// databaseWith is Database for tables whose layout of properties is known.
func (e *Executor) databaseWith(of *registry.ProjectSchema, layout *schema.Layout) *schema.Database {
	from := of.EventsFrom(time.Now())
	if found, ok := e.Databases.byProject.Load(of.Project.ID); ok {
		if known, _ := found.(*knownDatabase); known.of == of && known.layout == layout && known.from.Equal(from) {
			return known.db
		}
	}
	db := &schema.Database{
		Project: of.Project.ID, Location: of.Location, WeekStart: of.Project.WeekStart, EventsFrom: from, Layout: layout, Cohorts: CohortsOf(of.Cohorts, layout),
		Properties: make(schema.PropertyTypes, len(of.Properties)), GroupTypes: make(map[string]int, len(of.GroupTypes)),
	}
	for _, d := range of.Properties {
		key := schema.PropertyKey{Scope: propertyScopes[d.Scope], Group: d.GroupTypeIndex, Name: d.Name}
		db.Properties[key] = schema.PropertyType(d.Type)
	}
	for _, g := range of.GroupTypes {
		db.GroupTypes[g.Name] = g.Index
	}
	e.Databases.byProject.Store(of.Project.ID, &knownDatabase{of, layout, from, db})
	return db
}

// CohortsOf returns the cohorts that queries can refer to. Tables that another product fills may hold more than the named ones.
func CohortsOf(known []registry.SchemaCohort, layout *schema.Layout) schema.Cohorts {
	list := make([]schema.Cohort, len(known))
	for i, c := range known {
		list[i] = schema.Cohort(c)
	}
	return schema.NewCohorts(list, layout != nil && layout.Foreign())
}

var propertyScopes = map[registry.PropertyScope]schema.PropertyScope{
	registry.EventProperty: schema.EventProperty, registry.PersonProperty: schema.PersonProperty, registry.GroupProperty: schema.GroupProperty,
}

// compilerEnv returns the environment in which a project's queries are compiled.
func (e *Executor) compilerEnv(snap *registry.Snapshot, project int64, db *schema.Database, now time.Time) compiler.Env {
	of := snap.Schema(project)
	return compiler.Env{
		Database: db, Now: now, Variables: snap.VariableDefaults(project), MaxRows: MaxRows,
		TestAccounts: of.TestAccounts, Actions: e.Databases.schemaOf(of).actions, PathCleaning: of.PathCleaning, DisplayNames: of.DisplayNames,
	}
}
