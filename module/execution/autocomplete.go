package execution

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/complete"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Complete finds what can be written at a position in a text. It takes its turn like any compile, but does not wait for ClickHouse: until the tables
// are known, it assumes our own layout. readable reports whether the caller may read a held table.
func (e *Executor) Complete(
	ctx context.Context, c *Caller, asked *query.Autocomplete, readable func(table string) bool,
) (*complete.Completion, error) {
	of := c.Snapshot.Schema(c.Project.ID)
	db := *e.databaseWith(of, cmp.Or(e.Shards.Of(of.Project.ID).Known(), schema.NativeLayout()))
	db.Readable = readable
	env := e.compilerEnv(c.Snapshot, c.Project.ID, &db, c.Start)
	catalog := compiler.Catalog{Properties: propertiesOf(of.Properties)}
	return compileWith(ctx, e.CompilesOf(c), env, func(env compiler.Env) (*complete.Completion, error) {
		return compiler.Complete(asked, env, catalog)
	})
}

// propertiesOf lists the property definitions of a scope. all is sorted by scope, group type index and name, so that the definitions of a scope are
// adjacent.
func propertiesOf(all []registry.PropertyDefinition) func(schema.PropertyScope, int) iter.Seq2[string, schema.PropertyType] {
	return func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType] {
		first := registry.PropertyDefinition{GroupTypeIndex: max(group, 0)}
		for name, known := range propertyScopes {
			if known == scope {
				first.Scope = name
			}
		}
		return func(yield func(string, schema.PropertyType) bool) {
			at, _ := slices.BinarySearchFunc(all, first, func(a, b registry.PropertyDefinition) int {
				return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex))
			})
			for _, d := range all[at:] {
				if d.Scope != first.Scope || group >= 0 && d.GroupTypeIndex != group || !yield(d.Name, schema.PropertyType(d.Type)) {
					return
				}
			}
		}
	}
}
