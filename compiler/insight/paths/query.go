package paths

import (
	"fmt"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query shows the paths that people take from step to step within a session (contract: paths.md).
type Query struct {
	query.Common
	// Include are the kinds of events that count; nil for all events.
	Include []EventKind `json:"include,omitempty"`
	// Expression is a HogQL expression that names the step of an event; empty for none.
	Expression string `json:"expression,omitempty"`
	// Start and End are the steps that a path begins and ends with; empty for any.
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
	// Exclude are names of steps that are left out. Without Include they are kinds of events that keep their own names.
	Exclude []string `json:"exclude,omitempty"`
	// Groupings are patterns in which * stands for any text. A step that matches one gets the pattern as its name.
	Groupings []string `json:"groupings,omitempty"`
	// Steps is the maximum length of a path, Edges the maximum number of edges in the answer.
	Steps int `json:"steps"`
	Edges int `json:"edges"`
	// MinWeight and MaxWeight are the bounds of the value of an edge; 0 for no bound.
	MinWeight int `json:"min_weight,omitempty"`
	MaxWeight int `json:"max_weight,omitempty"`
	// Replacements applies the project's cleaning rules before those of the query.
	Replacements bool `json:"replacements,omitempty"`
	// Cleaning are the query's own rules, in the order in which they apply.
	Cleaning []query.PathCleaning `json:"cleaning,omitempty"`
	// StartKey, EndKey and DropoffKey are the keys of steps in the answer, such as 2_/pricing. They select the actors to list; empty for
	// none.
	StartKey   string `json:"start_key,omitempty"`
	EndKey     string `json:"end_key,omitempty"`
	DropoffKey string `json:"dropoff_key,omitempty"`
	// Funnel keeps only the events before, between or after steps of a funnel; nil for all events.
	Funnel *Funnel `json:"funnel,omitempty"`
}

// Funnel is a step of a funnel that paths end at, begin at, or lead to from the step before (contract: paths.md, section 8).
type Funnel struct {
	// At is the field funnelPathsFilter in the JSON.
	At     string         `json:"-"`
	Type   FunnelType     `json:"type"`
	Source *funnels.Query `json:"source"`
	// Step is the number of the step that the actors reached, from 1. A negative number, from -2, is a step that they did not reach after
	// the one before.
	Step int `json:"step"`
}

// FunnelType says which events count, relative to the step of the funnel.
type FunnelType string

// The types of funnels in paths.
const (
	BeforeStep   FunnelType = "funnel_path_before_step"
	BetweenSteps FunnelType = "funnel_path_between_steps"
	AfterStep    FunnelType = "funnel_path_after_step"
)

// EventKind is a kind of events that paths are made of.
type EventKind string

// The kinds of events.
const (
	Pageviews EventKind = "$pageview"
	Screens   EventKind = "$screen"
	// Custom are the events whose names do not begin with a dollar sign.
	Custom EventKind = "custom_event"
	// Named names the steps by Expression, whatever the event.
	Named EventKind = "hogql"
)

// The default and the maximum number of steps and edges.
const (
	defaultPathSteps = 5
	defaultPathEdges = 50
	maxPathSteps     = 1000
	maxPathEdges     = 50_000
)

// Kind returns PathsQuery.
func (*Query) Kind() string { return "PathsQuery" }

// Canonical leaves out what only changes how the answer is shown.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Query) Parts() query.Parts { return query.Parts{Common: &q.Common} }

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a PathsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Common: r.Common(o), Steps: defaultPathSteps, Edges: defaultPathEdges}
	if given, ok := o.Take("pathsFilter"); ok {
		pathsFilter(r, q, given, o.Field("pathsFilter"))
	}
	if given, ok := o.Take("funnelPathsFilter"); ok {
		q.Funnel = pathFunnel(r, given, o.Field("funnelPathsFilter"))
	}
	o.Close()
	return q
}

func pathFunnel(r *query.Reader, v any, at query.Place) *Funnel {
	f := r.Object(v, at)
	f.Required("funnelPathType", "funnelSource", "funnelStep")
	out := &Funnel{
		At: at.Attr, Type: FunnelType(f.Choice("funnelPathType", "", string(BeforeStep), string(BetweenSteps), string(AfterStep))),
	}
	out.Step, _ = f.Integer("funnelStep")
	if given, ok := f.Take("funnelSource"); ok {
		source := f.Field("funnelSource")
		m, isObject := given.(map[string]any)
		switch kind, given := m["kind"]; {
		case !isObject:
			r.Add(source, "model_type", "Input should be a valid dictionary")
		case given && kind != "FunnelsQuery":
			r.Add(source.Below("kind", true), "literal_error", "Input should be 'FunnelsQuery'")
		default:
			out.Source, _ = funnels.Read(r, r.Object(m, source)).(*funnels.Query)
		}
	}
	f.Close()
	if out.Source == nil || f.Given["funnelStep"] == nil {
		return out
	}
	least, most := 1, len(out.Source.Series)
	if out.Type == BetweenSteps {
		least = 2
	}
	if step := out.Step; step > most || step < least && (out.Type == BetweenSteps || step > -2 || -step > most) {
		r.Add(f.Field("funnelStep"), "value_error", fmt.Sprintf("Input should be a step of the funnel, from %d to %d", least, most))
	}
	return out
}

func pathsFilter(r *query.Reader, q *Query, v any, at query.Place) {
	f := r.Object(v, at)
	for i, item := range f.List("includeEventTypes") {
		word := f.Word(item, f.Field("includeEventTypes").Below(strconv.Itoa(i), true),
			string(Pageviews), string(Screens), string(Custom), string(Named))
		q.Include = append(q.Include, EventKind(word))
	}
	q.Expression, q.Start, q.End = f.Text("pathsHogQLExpression"), f.Text("startPoint"), f.Text("endPoint")
	q.Exclude, q.Groupings = pathNames(r, f, "excludeEvents"), pathNames(r, f, "pathGroupings")
	for i, pattern := range q.Groupings {
		if pattern == "" {
			r.Add(f.Field("pathGroupings").Below(strconv.Itoa(i), true), "string_too_short", "String should have at least 1 character")
		}
	}
	q.Steps = pathLimit(r, f, "stepLimit", defaultPathSteps, maxPathSteps)
	q.Edges = pathLimit(r, f, "edgeLimit", defaultPathEdges, maxPathEdges)
	q.MinWeight, q.MaxWeight = pathWeight(r, f, "minEdgeWeight"), pathWeight(r, f, "maxEdgeWeight")
	q.Replacements = f.Flag("pathReplacements")
	q.Cleaning = r.PathCleaning(f, "localPathCleaningFilters")
	q.StartKey, q.EndKey, q.DropoffKey = f.Text("pathStartKey"), f.Text("pathEndKey"), f.Text("pathDropoffKey")
	f.Flag("showFullUrls")
	f.Close()
}

// pathLimit reads a number; null and 0 mean the default.
func pathLimit(r *query.Reader, f *query.Object, name string, without, most int) int {
	n, ok := f.Integer(name)
	if !ok || n == 0 {
		return without
	}
	if n < 0 || n > most {
		r.Add(f.Field(name), "value_error", fmt.Sprintf("Input should be from 1 to %d", most))
	}
	return n
}

func pathWeight(r *query.Reader, f *query.Object, name string) int {
	n, _ := f.Integer(name)
	if n < 0 {
		r.Add(f.Field(name), "greater_than_equal", "Input should be greater than or equal to 0")
	}
	return n
}

func pathNames(r *query.Reader, f *query.Object, name string) []string {
	var out []string
	for i, item := range r.PathItems(f, name) {
		text, ok := item.(string)
		if !ok {
			r.Add(f.Field(name).Below(strconv.Itoa(i), true), "string_type", "Input should be a valid string")
		}
		out = append(out, text)
	}
	return out
}
