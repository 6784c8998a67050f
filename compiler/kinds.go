package compiler

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Kind is a kind of query: what sets it apart from the others. Whoever treats kinds differently asks their rows.
type Kind struct {
	query.Kind
	// Wrapper is the kind of node that shows the answers of this one; empty for none.
	Wrapper string
	// OptionalBreakdowns tells that an endpoint may let its callers leave breakdowns out.
	OptionalBreakdowns bool
	// HasMore tells that answers say whether values were cut off.
	HasMore bool
	// EmptyError tells that the field error of an answer without one is an empty text, not null.
	EmptyError bool

	build  func(query.Node, Env) (tree, error) // nil for kinds that give no rows
	people func(query.PeopleSource, *insight.World) (*insight.People, error)
	form   func(query.Insight) form.Form
	table  func(query.Insight, []byte) ([][]string, error)
}

// kinds are all kinds that can be asked, in the order in which mistakes list them.
var kinds = []Kind{
	{
		Kind: query.Kind{Name: "HogQLQuery", Read: query.ReadHogQL}, Wrapper: "DataVisualizationNode", build: buildHogQL,
	},
	{
		Kind:  query.Kind{Name: "TrendsQuery", Read: trends.Read, Insight: true, Actors: query.ReadInsightActors},
		build: built(trends.Build), people: behind(trends.Actors), form: answer(trends.Form), table: table(series[*trends.Query]), Wrapper: vizNode, OptionalBreakdowns: true, HasMore: true, EmptyError: true,
	},
	{
		Kind:  query.Kind{Name: "FunnelsQuery", Read: funnels.Read, Insight: true, Actors: funnels.ReadActors},
		build: built(funnels.Build), people: behind(funnels.Actors), form: answer(funnels.Form), table: table(funnels.Table), Wrapper: vizNode,
	},
	{
		Kind:  query.Kind{Name: "RetentionQuery", Read: retention.Read, Insight: true, Actors: query.ReadInsightActors},
		build: built(retention.Build), people: behind(retention.Actors), form: answer(retention.Form), table: table(retention.Table), Wrapper: vizNode, OptionalBreakdowns: true,
	},
	{
		Kind:  query.Kind{Name: "PathsQuery", Read: paths.Read, Insight: true, Actors: query.ReadInsightActors},
		build: built(paths.Build), people: behind(paths.Actors), form: answer(paths.Form), table: table(paths.Table), Wrapper: vizNode,
	},
	{
		Kind:  query.Kind{Name: "StickinessQuery", Read: stickiness.Read, Insight: true, Actors: stickiness.ReadActors},
		build: built(stickiness.Build), people: behind(stickiness.Actors), form: answer(stickiness.Form), table: table(series[*stickiness.Query]), Wrapper: vizNode,
	},
	{
		Kind:  query.Kind{Name: "LifecycleQuery", Read: lifecycle.Read, Insight: true, Actors: query.ReadInsightActors},
		build: built(lifecycle.Build), people: behind(lifecycle.Actors), form: answer(lifecycle.Form), table: table(series[*lifecycle.Query]), Wrapper: vizNode,
	},
	{Kind: query.Kind{Name: "EventsQuery", Read: events.Read}, build: buildEvents},
	{Kind: query.Kind{Name: "ActorsQuery", Read: actors.Read}, build: buildActors},
	{Kind: query.Kind{Name: "InsightActorsQuery", Read: query.ReadActorsOf(), Drills: true, Unlisted: true}, build: buildPeople},
	{Kind: query.Kind{Name: "FunnelsActorsQuery", Read: query.ReadActorsOf("FunnelsQuery"), Drills: true, Unlisted: true}, build: buildPeople},
	{Kind: query.Kind{Name: "StickinessActorsQuery", Read: query.ReadActorsOf("StickinessQuery"), Drills: true, Unlisted: true}, build: buildPeople},
	{Kind: query.Kind{Name: "HogQLMetadata", Read: query.ReadMetadata, Unlisted: true}},
	{Kind: query.Kind{Name: "DatabaseSchemaQuery", Read: query.ReadDatabaseSchema, Unlisted: true}},
}

// vizNode is the kind of node that shows insights.
const vizNode = "InsightVizNode"

var (
	byName  = map[string]*Kind{}
	readers query.Kinds
)

func init() {
	for i := range kinds {
		byName[kinds[i].Name] = &kinds[i]
		readers = append(readers, kinds[i].Kind)
	}
}

// KindNames gives the names of the kinds for which wanted holds.
func KindNames(wanted func(*Kind) bool) []string {
	var names []string
	for i := range kinds {
		if wanted(&kinds[i]) {
			names = append(names, kinds[i].Name)
		}
	}
	return names
}

// KindOf gives the kind of a query.
func KindOf(q query.Node) *Kind { return byName[q.Kind()] }

// HasRows reports whether queries of the kind have a result, and are not about other queries.
func (k *Kind) HasRows() bool { return k.build != nil }

// Form is the form of the results of an insight of the kind.
func (k *Kind) Form(q query.Insight) form.Form { return k.form(q) }

// Table writes the results of an insight of the kind as the lines of a table of texts; an empty line parts two tables.
func (k *Kind) Table(q query.Insight, results []byte) ([][]string, error) { return k.table(q, results) }

// Parse reads a query of any kind: see query.Kinds.Parse.
func Parse(raw []byte) (query.Node, error) { return readers.Parse(raw) }

// Overlaid puts overrides over the JSON of a query of any kind: see query.Kinds.Overlaid.
func Overlaid(raw, filters, variables []byte) ([]byte, error) {
	return readers.Overlaid(raw, filters, variables)
}

// built makes the build of an insight kind's row. An insight needs no limit: its buckets and values are bounded where it is built.
func built[Q query.Insight](build func(Q, *insight.World) (*insight.Built, error)) func(query.Node, Env) (tree, error) {
	return func(n query.Node, env Env) (tree, error) {
		b, err := build(n.(Q), env.world())
		if err != nil {
			return tree{}, err
		}
		return tree{query: b.Query, answer: Compiled{Shape: b.Shape}}, nil
	}
}

// behind makes the people of an insight kind's row.
func behind[Q query.Insight, A query.PeopleSource](
	actors func(Q, A, *insight.World) (*insight.People, error),
) func(query.PeopleSource, *insight.World) (*insight.People, error) {
	return func(at query.PeopleSource, w *insight.World) (*insight.People, error) {
		return actors(at.Behind().(Q), at.(A), w)
	}
}

// peopleBehind asks for the actors behind a number of an insight. The error is a *diag.Error.
func peopleBehind(at query.PeopleSource, env Env) (*insight.People, error) {
	return KindOf(at.Behind()).people(at, env.world())
}

// answer makes the form of an insight kind's row.
func answer[Q query.Insight](of func(Q) form.Form) func(query.Insight) form.Form {
	return func(q query.Insight) form.Form { return of(q.(Q)) }
}

// table makes the table of an insight kind's row.
func table[Q query.Insight](of func(Q, []byte) ([][]string, error)) func(query.Insight, []byte) ([][]string, error) {
	return func(q query.Insight, results []byte) ([][]string, error) { return of(q.(Q), results) }
}

// series is the table of a kind whose results are series.
func series[Q query.Insight](_ Q, results []byte) ([][]string, error) {
	return insight.SeriesTable(results)
}
