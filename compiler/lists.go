package compiler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/groups"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
)

// buildActors builds a list of actors.
func buildActors(n query.Node, env Env) (tree, error) {
	q := n.(*actors.Query)
	people, err := peopleOf(q, env)
	if err != nil {
		return tree{}, err
	}
	return listing(actors.Build(q, people, env.world(), env.most()))
}

// buildEvents builds a list of events.
func buildEvents(n query.Node, env Env) (tree, error) {
	q := n.(*events.Query)
	var people *insight.People
	if q.Source != nil {
		var err error
		if people, err = peopleBehind(q.Source, env); err != nil {
			return tree{}, err
		}
	}
	return listing(events.Build(q, people, env.world(), env.most()))
}

// buildGroups builds a list of groups.
func buildGroups(n query.Node, env Env) (tree, error) {
	return listing(groups.Build(n.(*groups.Query), env.world(), env.most()))
}

// buildPeople builds a drill-down on its own: the rows are ids, with what the insight says about each.
func buildPeople(n query.Node, env Env) (tree, error) {
	people, err := peopleBehind(n.(query.PeopleSource), env)
	if err != nil {
		return tree{}, err
	}
	limit := min(bind.DefaultRows, env.most())
	columns := append([]string{insight.ActorID}, people.Extra...)
	s := &hogql.Select{
		From: insight.From(people.Query), OrderBy: []*hogql.Order{{X: insight.Field(insight.ActorID)}},
		Limit: &hogql.Limit{N: insight.Const(int64(limit) + 1)},
	}
	for _, name := range columns {
		s.Columns = append(s.Columns, insight.Field(name))
	}
	return listing(&insight.Listing{Query: s, Limit: limit, Columns: columns}, nil)
}

// buildOptions asks for the values that the fields of a drill-down can have. As in PostHog, drill-downs into what is made of an insight have no
// choices.
func buildOptions(n query.Node, env Env) (tree, error) {
	source := n.(*query.ActorsOptions).Source
	built := insight.NoChoices()
	if choices := KindOf(source.Behind()).choices; choices != nil && KindOf(source).people == nil {
		var err error
		if built, err = choices(source.Behind(), env.world()); err != nil {
			return tree{}, err
		}
	}
	return tree{query: built.Query, answer: Compiled{Shape: built.Shape}}, nil
}

// listing returns the tree of a list of rows. It has its own limit, but reports it as a query without LIMIT does.
func listing(built *insight.Listing, err error) (tree, error) {
	if err != nil {
		return tree{}, err
	}
	return tree{query: built.Query, answer: Compiled{
		Columns: built.Columns, Limit: built.Limit, Offset: built.Offset, Probe: true, DefaultLimit: true,
		Row: built.Row, Types: built.Types, BareTypes: true, Missing: built.Missing,
	}}, nil
}

// most returns the highest limit of a query.
func (e *Env) most() int { return cmp.Or(e.MaxRows, bind.MaxRows) }

// peopleOf returns the query for the actors in a list; nil for all people.
func peopleOf(q *actors.Query, env Env) (*insight.People, error) {
	switch source := q.Source.(type) {
	case *query.HogQL:
		return peopleOfText(q, source, env)
	case query.PeopleSource:
		return peopleBehind(source, env)
	}
	return nil, nil
}

// idColumns are the column names in which a user's query may have the ids of actors, best first.
var idColumns = []string{insight.ActorID, "person_id", "id"}

// peopleOfText reads people from a user's query, one of whose columns holds their ids.
func peopleOfText(q *actors.Query, source *query.HogQL, env Env) (*insight.People, error) {
	t, err := buildHogQL(source, env)
	if err != nil {
		return nil, err
	}
	found, err := analyze(t, env, false)
	if err != nil {
		return nil, err
	}
	at := idColumn(found.outputs)
	if at < 0 {
		return nil, diag.Field(diag.QueryError, q.Field("source.query"), "The query needs a column actor_id, person_id or id with the ids of people")
	}
	s := &hogql.Select{From: insight.From(found.bound)}
	person := insight.Field(found.outputs[at].Name)
	if found.outputs[at].Type.Kind == hogql.String {
		person = insight.Call("toUUID", person)
	}
	s.Columns = []hogql.Expr{insight.As(person, insight.ActorID)}
	people := &insight.People{Query: s, Shaky: true}
	known := map[string]bool{}
	if name := found.outputs[at].Name; name == insight.ActorID || name == "id" {
		known[name] = true // the list has both names already
	}
	for _, output := range found.outputs {
		if !known[output.Name] {
			known[output.Name] = true
			s.Columns = append(s.Columns, insight.Field(output.Name))
			people.Extra = append(people.Extra, output.Name)
		}
	}
	return people, nil
}

// idColumn returns the position of the column with the ids of actors; -1 if there is none. Like PostHog, it falls back to the first column with "id" in its
// name, but only to one of UUIDs: distinct ids are no ids of people, and neither are those of events.
func idColumn(outputs []resolve.Output) int {
	for _, id := range idColumns {
		if at := slices.IndexFunc(outputs, func(o resolve.Output) bool { return o.Name == id }); at >= 0 {
			return at
		}
	}
	return slices.IndexFunc(outputs, func(o resolve.Output) bool {
		return o.Type.Kind == hogql.UUID && o.Name != "uuid" && strings.Contains(strings.ToLower(o.Name), "id")
	})
}
