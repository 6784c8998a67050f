package execution

import (
	"context"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Compiler compiles the queries of projects, each in the project's turn. It caches what derives from a project's schema. It must not be copied.
type Compiler struct {
	Shards *warehouse.Shards // they know the layout of the tables
	// Registry knows which kinds of values properties have had. Nil: assume any.
	Registry *registry.Registry

	known known
}

// known is what a Compiler caches, each for as long as its inputs stay the same. The zero value is empty.
type known struct {
	databases sync.Map // project id → *knownDatabase
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

// ForgetProject drops what is cached about the schema of a deleted project.
func (c *Compiler) ForgetProject(project int64) {
	c.known.databases.Delete(project)
	c.known.schemas.Delete(project)
	c.known.values.Delete(project)
}

// Database returns the virtual schema that a project's queries see. The error is that of a ClickHouse that can't be asked.
func (c *Compiler) Database(ctx context.Context, of *registry.ProjectSchema) (*schema.Database, error) {
	layout, err := c.Shards.Of(of.Project.ID).Layout(ctx)
	if err != nil {
		return nil, err
	}
	return c.databaseWith(of, layout), nil
}

// databaseWith is Database for tables whose layout of properties is known.
func (c *Compiler) databaseWith(of *registry.ProjectSchema, layout *schema.Layout) *schema.Database {
	from := of.EventsFrom(time.Now())
	if found, ok := c.known.databases.Load(of.Project.ID); ok {
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
	c.known.databases.Store(of.Project.ID, &knownDatabase{of, layout, from, db})
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
func (c *Compiler) compilerEnv(snap *registry.Snapshot, project int64, db *schema.Database, now time.Time) compiler.Env {
	of := snap.Schema(project)
	return compiler.Env{
		Database: db, Now: now, Variables: snap.VariableDefaults(project), MaxRows: MaxRows,
		TestAccounts: of.TestAccounts, Actions: c.known.schemaOf(of).actions, PathCleaning: of.PathCleaning, DisplayNames: of.DisplayNames,
	}
}

// Compile compiles a query in its turn. A mistake in the query is returned as a *QueryError, with the query's text.
func (c *Compiler) Compile(ctx context.Context, snap *registry.Snapshot, by *Compiles, q *Query, now time.Time) (*compiler.Compiled, error) {
	return c.compileFor(ctx, snap, by, q, now, nil)
}

// compileFor is Compile for properties that have only had the known values; nil for any. The caller must check kindsUnchanged before it uses the rows.
func (c *Compiler) compileFor(
	ctx context.Context, snap *registry.Snapshot, by *Compiles, q *Query, now time.Time, known *knownValues,
) (*compiler.Compiled, error) {
	db, err := c.Database(ctx, snap.Schema(by.project))
	if err != nil {
		return nil, err
	}
	if q.Held != nil || known != nil {
		own := *db
		if known != nil {
			own.Values, own.ValuesComplete = known.values, known.complete
		}
		if q.Held != nil {
			own.Held, own.Readable = q.Held.Rows, q.Held.Readable
		}
		db = &own
	}
	env := c.compilerEnv(snap, by.project, db, now)
	env.Mode, env.PlainValues = q.Rows, q.Endpoint != nil
	compiled, err := compileWith(ctx, by, env, func(env compiler.Env) (*compiler.Compiled, error) { return compiler.Compile(q.Node, env) })
	if err != nil {
		return nil, &QueryError{Text: q.Text, Err: err}
	}
	return compiled, nil
}

// CompileCohort compiles the query for the members of a cohort in the project's turn. Mistakes of the cohort's author are a *diag.Error or
// diag.Errors.
func (c *Compiler) CompileCohort(ctx context.Context, snap *registry.Snapshot, project int64, d *cohort.Definition, now time.Time) (*compiler.Compiled, error) {
	db, err := c.Database(ctx, snap.Schema(project))
	if err != nil {
		return nil, err
	}
	env := c.compilerEnv(snap, project, db, now)
	return compileWith(ctx, Uncounted(project), env, func(env compiler.Env) (*compiler.Compiled, error) { return compiler.CompileCohort(d, env) })
}

// CompileListed compiles the query of a static cohort, in the project's turn, into one that adds the people it lists to the cohort. Mistakes of the
// query's author are a *diag.Error or diag.Errors.
func (c *Compiler) CompileListed(ctx context.Context, snap *registry.Snapshot, of *registry.Cohort, now time.Time) (clickhouse.Fill, error) {
	node, err := compiler.Parse(of.Query)
	if err != nil {
		return clickhouse.Fill{}, err
	}
	db, err := c.Database(ctx, snap.Schema(of.Project))
	if err != nil {
		return clickhouse.Fill{}, err
	}
	env := c.compilerEnv(snap, of.Project, db, now)
	compiled, err := compileWith(ctx, Uncounted(of.Project), env, func(env compiler.Env) (*compiler.Compiled, error) {
		return compiler.CompileListed(node, env)
	})
	if err != nil {
		return clickhouse.Fill{}, err
	}
	return clickhouse.StaticFill(QueryOf(compiled, of.Project, ""), of.ID), nil
}
