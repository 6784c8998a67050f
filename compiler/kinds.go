package compiler

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/correlation"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/groups"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/heatmap"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/weboverview"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/webstats"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Kind describes a kind of query. Code that treats kinds differently looks at these fields.
type Kind struct {
	query.Kind
	// Wrapper is the kind of node that displays answers of this kind; empty for none.
	Wrapper string
	// ListName is the value of the filter "insight" in lists of insights for this kind, such as TRENDS. Kinds without one are listed as JSON.
	ListName string
	// HogQL reports whether the query is HogQL text.
	HogQL bool
	// Endpoint reports whether an endpoint can run it.
	Endpoint bool
	// Materialized reports whether the rows of an endpoint of this kind can be stored in a table.
	Materialized bool
	// Listed reports whether a static cohort can be filled with the people in its rows.
	Listed bool
	// OptionalBreakdowns reports whether an endpoint of this kind may let callers leave breakdowns out.
	OptionalBreakdowns bool
	// HasMore reports whether answers say if values were cut off.
	HasMore bool
	// EmptyError reports whether the field "error" of an answer without one is an empty text instead of null.
	EmptyError bool

	build  func(query.Node, Env) (tree, error)                               // nil for kinds without rows
	people func(query.PeopleSource, *insight.World) (*insight.People, error) // of an insight; or of the drill-down itself, where it does not ask the insight
	// choices asks for the values that the fields of a drill-down can have; nil for a kind whose drill-downs have no choices.
	choices func(query.Insight, *insight.World) (*insight.Built, error)
	form    func(query.Insight) form.Form
	table   func(query.Node, []byte) ([][]string, error) // nil for kinds whose rows are the answer
}

// kinds are all kinds, in the order in which error messages list them.
var kinds = []Kind{
	{
		Kind: query.Kind{Name: "HogQLQuery", Read: query.ReadHogQL}, Wrapper: query.SQLWrapper, ListName: "SQL", HogQL: true, Endpoint: true,
		Materialized: true, Listed: true,
		build: buildHogQL,
	},
	insightRow[*trends.Query, *query.InsightActors]{
		Kind: Kind{Materialized: true, OptionalBreakdowns: true, HasMore: true, EmptyError: true}, name: "TrendsQuery", read: trends.Read,
		build: trends.Build, people: trends.Actors, choices: trends.Choices, form: trends.Form, table: trends.Table,
	}.kind(),
	insightRow[*funnels.Query, *funnels.ActorsQuery]{
		Kind: Kind{Materialized: true}, name: "FunnelsQuery", read: funnels.Read, readActors: funnels.ReadActors,
		build: funnels.Build, people: funnels.Actors, choices: funnels.Choices, form: funnels.Form, table: funnels.Table,
	}.kind(),
	insightRow[*retention.Query, *query.InsightActors]{
		Kind: Kind{Materialized: true, OptionalBreakdowns: true}, name: "RetentionQuery", read: retention.Read,
		build: retention.Build, people: retention.Actors, form: retention.Form, table: retention.Table,
	}.kind(),
	insightRow[*paths.Query, *query.InsightActors]{
		Kind: Kind{Materialized: true}, name: "PathsQuery", read: paths.Read, build: paths.Build, people: paths.Actors, form: paths.Form, table: paths.Table,
	}.kind(),
	insightRow[*stickiness.Query, *stickiness.ActorsQuery]{
		Kind: Kind{Materialized: true}, name: "StickinessQuery", read: stickiness.Read, readActors: stickiness.ReadActors,
		build: stickiness.Build, people: stickiness.Actors, form: stickiness.Form,
	}.kind(),
	insightRow[*lifecycle.Query, *query.InsightActors]{
		Kind: Kind{Materialized: true}, name: "LifecycleQuery", read: lifecycle.Read, build: lifecycle.Build, people: lifecycle.Actors,
		choices: lifecycle.Choices, form: lifecycle.Form,
	}.kind(),
	insightRow[*weboverview.Query, query.PeopleSource]{
		name: "WebOverviewQuery", read: weboverview.Read, build: weboverview.Build, form: weboverview.Form, table: weboverview.Table,
	}.kind(),
	insightRow[*webstats.Query, query.PeopleSource]{
		Kind: Kind{HasMore: true}, name: "WebStatsTableQuery", read: webstats.Read, build: webstats.Build, form: webstats.Form, table: webstats.Table,
	}.kind(),
	{Kind: query.Kind{Name: "EventsQuery", Read: events.Read}, build: buildEvents},
	{Kind: query.Kind{Name: "ActorsQuery", Read: actors.Read}, Listed: true, build: buildActors},
	{Kind: query.Kind{Name: "GroupsQuery", Read: groups.Read}, build: buildGroups},
	{Kind: query.Kind{Name: "InsightActorsQuery", Read: query.ReadActorsOf(), Drills: true, Unlisted: true}, build: buildPeople},
	{Kind: query.Kind{Name: "FunnelsActorsQuery", Read: query.ReadActorsOf("FunnelsQuery"), Drills: true, Unlisted: true}, build: buildPeople},
	{
		Kind: query.Kind{Name: "FunnelCorrelationActorsQuery", Read: correlation.ReadActors, Drills: true, Unlisted: true}, build: buildPeople,
		people: func(at query.PeopleSource, w *insight.World) (*insight.People, error) {
			return correlation.Actors(at.(*correlation.ActorsQuery), w)
		},
	},
	{Kind: query.Kind{Name: "StickinessActorsQuery", Read: query.ReadActorsOf("StickinessQuery"), Drills: true, Unlisted: true}, build: buildPeople},
	{
		Kind: query.Kind{Name: "InsightActorsQueryOptions", Read: query.ReadActorsOptions, Unlisted: true}, build: buildOptions,
		table: func(query.Node, []byte) ([][]string, error) { return nil, nil }, // its answer has no results
	},
	answerRow[*correlation.Query]{name: "FunnelCorrelationQuery", read: correlation.Read, build: correlation.Build, table: correlation.Table}.kind(),
	answerRow[*heatmap.Query]{name: "CalendarHeatmapQuery", read: heatmap.Read, build: heatmap.Build, table: heatmap.Table}.kind(),
	{Kind: query.Kind{Name: "HogQLMetadata", Read: query.ReadMetadata, Unlisted: true}},
	{Kind: query.Kind{Name: "HogQLAutocomplete", Read: query.ReadAutocomplete, Unlisted: true}},
	{Kind: query.Kind{Name: "DatabaseSchemaQuery", Read: query.ReadDatabaseSchema, Unlisted: true}},
}

// insightRow is the entry of an insight kind, with the types of its node and of the node that asks for its actors.
type insightRow[Q query.Insight, A query.PeopleSource] struct {
	Kind       // fields shared with other kinds
	name       string
	read       func(*query.Reader, *query.Object) query.Node
	readActors func(*query.Reader, *query.Object, query.Drill, query.Insight) query.PeopleSource // nil: query.ReadInsightActors
	build      func(Q, *insight.World) (*insight.Built, error)                                   // needs no limit: it bounds its buckets and values
	people     func(Q, A, *insight.World) (*insight.People, error)                               // nil if there are no people behind a number, as in web analytics
	choices    func(Q, *insight.World) (*insight.Built, error)                                   // nil: drill-downs have no choices
	form       func(Q) form.Form
	table      func(Q, []byte) ([][]string, error) // nil: insight.SeriesTable
}

func (r insightRow[Q, A]) kind() Kind {
	k := r.Kind
	k.Kind = query.Kind{Name: r.name, Read: r.read, Insight: true}
	k.Wrapper = "InsightVizNode"
	if r.people != nil {
		r.productAnalytics(&k)
	}
	k.build = func(n query.Node, env Env) (tree, error) {
		b, err := r.build(n.(Q), env.world())
		if err != nil {
			return tree{}, err
		}
		return tree{query: b.Query, pieces: b.Pieces, answer: Compiled{Shape: b.Shape, ByClock: b.ByClock}}, nil
	}
	if r.choices != nil {
		k.choices = func(q query.Insight, w *insight.World) (*insight.Built, error) { return r.choices(q.(Q), w) }
	}
	k.form = func(q query.Insight) form.Form { return r.form(q.(Q)) }
	k.table = func(q query.Node, results []byte) ([][]string, error) {
		if r.table == nil {
			return insight.SeriesTable(results)
		}
		return r.table(q.(Q), results)
	}
	return k
}

// productAnalytics sets the fields by which insights of product analytics differ from those of web analytics.
func (r insightRow[Q, A]) productAnalytics(k *Kind) {
	k.Actors = r.readActors
	if k.Actors == nil {
		k.Actors = query.ReadInsightActors
	}
	k.ListName, k.Endpoint = strings.ToUpper(strings.TrimSuffix(r.name, "Query")), true
	k.people = func(at query.PeopleSource, w *insight.World) (*insight.People, error) {
		return r.people(at.Behind().(Q), at.(A), w)
	}
}

// answerRow is the entry of a kind that is not an insight: it can be saved, as in PostHog, but not published, and its answer has more than rows.
type answerRow[Q query.Node] struct {
	name  string
	read  func(*query.Reader, *query.Object) query.Node
	build func(Q, *insight.World) (*insight.Built, error)
	table func([]byte) ([][]string, error)
}

func (r answerRow[Q]) kind() Kind {
	return Kind{
		Kind: query.Kind{Name: r.name, Read: r.read, Unlisted: true},
		build: func(n query.Node, env Env) (tree, error) {
			b, err := r.build(n.(Q), env.world())
			if err != nil {
				return tree{}, err
			}
			return tree{query: b.Query, answer: Compiled{Shape: b.Shape, ByClock: b.ByClock}}, nil
		},
		table: func(_ query.Node, results []byte) ([][]string, error) { return r.table(results) },
	}
}

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

// KindNames returns the names of the kinds for which wanted returns true.
func KindNames(wanted func(*Kind) bool) []string {
	var names []string
	for i := range kinds {
		if wanted(&kinds[i]) {
			names = append(names, kinds[i].Name)
		}
	}
	return names
}

// KindOf returns the kind of a query.
func KindOf(q query.Node) *Kind { return byName[q.Kind()] }

// KindNamed returns the kind with a name, such as TrendsQuery; nil for none.
func KindNamed(name string) *Kind { return byName[name] }

// HasRows reports whether queries of the kind have a result of their own, instead of being about other queries.
func (k *Kind) HasRows() bool { return k.build != nil }

// Form returns the form of the results of an insight of the kind.
func (k *Kind) Form(q query.Insight) form.Form { return k.form(q) }

// Table writes the results of a query of the kind as the lines of a text table, for kinds whose results are not their rows. An empty line
// separates two tables.
func (k *Kind) Table(q query.Node, results []byte) ([][]string, error) { return k.table(q, results) }

// Parse reads a query of any kind: see query.Kinds.Parse.
func Parse(raw []byte) (query.Node, error) { return readers.Parse(raw) }

// Overlaid puts overrides over the JSON of a query of any kind: see query.Kinds.Overlaid.
func Overlaid(raw, filters, variables []byte) ([]byte, error) {
	return readers.Overlaid(raw, filters, variables)
}

// peopleBehind asks for the actors behind a number of an insight, or of what is made of one. The error is a *diag.Error.
func peopleBehind(at query.PeopleSource, env Env) (*insight.People, error) {
	people := KindOf(at).people
	if people == nil {
		people = KindOf(at.Behind()).people
	}
	return people(at, env.world())
}
