package compiler

import (
	"iter"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/complete"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Catalog is what a completion names beside the schema.
type Catalog struct {
	// Properties yields the defined properties of a scope by their names, in order; a group of -1 asks for those of all types of groups.
	Properties func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType]
}

// Complete finds what can be written at a place in a text. Whatever the text is, that is no error; the error is what Expired returned, or a bug.
func Complete(q *query.Autocomplete, env Env, catalog Catalog) (found *complete.Completion, err error) {
	defer func() {
		if Mistakes(err) != nil { // the text is too large, or takes too long
			found, err = new(complete.Completion), nil
		}
	}()
	defer recoverBug(&err)
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

// queryAround is a HogQL query over the table whose fields an expression of a query can use.
func queryAround(source query.Node) string {
	switch q := source.(type) {
	case *query.HogQL:
		return q.Query
	case *actors.Query:
		return "select id from persons"
	}
	return "select event from events"
}

// tablesFor names the tables that can be read, in order.
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
