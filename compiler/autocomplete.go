package compiler

import (
	"iter"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/complete"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/groups"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Catalog holds the names that a completion offers in addition to the schema.
type Catalog struct {
	// Properties yields the defined properties of a scope, sorted by name; group -1 means the properties of all group types.
	Properties func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType]
}

// Complete finds what can be written at a place in a text. No text is an error: a returned error comes from Expired, or is a bug.
func Complete(q *query.Autocomplete, env Env, catalog Catalog) (found *complete.Completion, err error) {
	defer func() {
		if Mistakes(err) != nil { // the text is too large, or takes too long
			found, err = new(complete.Completion), nil
		}
	}()
	defer RecoverBug(&err)
	env.spend = budget.New(env.Expired).WithoutHints()
	env.Database = modified(env.Database, q.Modifiers)
	ask := &complete.Ask{
		Language: complete.Language(q.Language), Text: q.Query, Start: q.Start, End: q.End, Around: queryAround(q.Source), Globals: q.Globals,
	}
	return complete.At(ask, &complete.World{
		World: env.resolving(), Variables: slices.Sorted(maps.Keys(env.Variables)), Properties: catalog.Properties,
		Tables: func() []string { return tablesFor(env.Database) },
	})
}

// queryAround returns a HogQL query over the table whose fields an expression in source can use.
func queryAround(source query.Node) string {
	switch q := source.(type) {
	case *query.HogQL:
		return q.Query
	case *actors.Query:
		return "select id from persons"
	case *groups.Query:
		return "select key from groups"
	}
	return "select event from events"
}

// tablesFor returns the names of the tables that can be read, in order.
func tablesFor(db *schema.Database) []string {
	var names []string
	for name := range db.TableNames() {
		if t, ok := db.Table(name); ok && db.Stored(t) {
			names = append(names, name)
		}
	}
	for _, t := range db.ReadableHeld() {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
