package compiler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// compileActors builds the tree of a list of actors, which then goes the way of any other query.
func compileActors(q *query.Actors, env Env) (*Compiled, error) {
	modifiers := q.Modifiers
	switch source := q.Source.(type) {
	case query.PeopleSource:
		modifiers = over(modifiers, modifiersOf(source))
	case *query.HogQL:
		modifiers = over(modifiers, source.Modifiers)
	}
	env.Database = modified(env.Database, modifiers)
	w := env.world()
	people, err := peopleOf(q, w, env)
	if err != nil {
		return nil, err
	}
	built, err := actors.Build(q, people, w, cmp.Or(env.MaxRows, bind.MaxRows))
	if err != nil {
		return nil, err
	}
	return compileListing(built, env)
}

// compilePeople builds the tree of a drill-down that stands alone: the rows are ids, and what the insight says of them.
func compilePeople(q query.PeopleSource, env Env) (*Compiled, error) {
	env.Database = modified(env.Database, modifiersOf(q))
	people, err := actors.People(q, env.world())
	if err != nil {
		return nil, err
	}
	limit := min(bind.DefaultRows, cmp.Or(env.MaxRows, bind.MaxRows))
	columns := append([]string{insight.ActorID}, people.Extra...)
	s := &hogql.Select{
		From: insight.From(people.Query), OrderBy: []*hogql.Order{{X: insight.Field(insight.ActorID)}},
		Limit: &hogql.Limit{N: insight.Const(int64(limit) + 1)},
	}
	for _, name := range columns {
		s.Columns = append(s.Columns, insight.Field(name))
	}
	return compileListing(&insight.Listing{Query: s, Limit: limit, Columns: columns}, env)
}

// peopleOf is the query for the actors that a list asks for; nil for all people.
func peopleOf(q *query.Actors, w *insight.World, env Env) (*insight.People, error) {
	switch source := q.Source.(type) {
	case nil:
		return nil, nil
	case *query.HogQL:
		return peopleOfText(q, source, env)
	case query.PeopleSource:
		return actors.People(source, w)
	}
	panic("BUG: no way to list the actors of a " + q.Source.Kind())
}

// idColumns are the names that the ids of actors go by in a query of the user's own, the best first.
var idColumns = []string{insight.ActorID, "person_id", "id"}

// peopleOfText reads a query of the user's own, one of whose columns has the ids of people.
func peopleOfText(q *query.Actors, source *query.HogQL, env Env) (*insight.People, error) {
	parsed, err := hogql.ParseWithin(source.Query, env.spend)
	if err != nil {
		return nil, err
	}
	found, err := analyze(source, parsed, env, false)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found.outputs))
	for i, output := range found.outputs {
		names[i] = output.Name
	}
	for _, id := range idColumns {
		at := slices.Index(names, id)
		if at < 0 {
			continue
		}
		s := &hogql.Select{From: insight.From(found.bound)}
		person := insight.Field(id)
		if found.outputs[at].Type.Kind == hogql.String {
			person = insight.Call("toUUID", person)
		}
		s.Columns = []hogql.Expr{insight.As(person, insight.ActorID)}
		people := &insight.People{Query: s, Shaky: true}
		for i, name := range names {
			if i != at && slices.Index(names, name) == i {
				s.Columns = append(s.Columns, insight.Field(name))
				people.Extra = append(people.Extra, name)
			}
		}
		return people, nil
	}
	return nil, diag.Field(diag.QueryError, q.Field("source.query"), "The query needs a column actor_id, person_id or id with the ids of people")
}

// modifiersOf are those of a drill-down: the insight's own go before those of the node around it.
func modifiersOf(q query.PeopleSource) map[string]any {
	return over(q.OwnModifiers(), q.Behind().Parts().Modifiers)
}

// over puts some modifiers over others.
func over(below, above map[string]any) map[string]any {
	if len(below) == 0 {
		return above
	}
	out := maps.Clone(below)
	maps.Copy(out, above)
	return out
}
