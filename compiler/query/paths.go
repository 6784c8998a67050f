package query

import (
	"fmt"
	"strconv"
)

// Paths shows the ways that people take from step to step within a session (contract: paths.md).
type Paths struct {
	Common
	// Include are the kinds of events that count; nil for all events.
	Include []PathEvents `json:"include,omitempty"`
	// Expression is a HogQL expression that names the step of an event; empty for none.
	Expression string `json:"expression,omitempty"`
	// Start and End are the steps that a path begins and ends with; empty for any.
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
	// Exclude are names of steps that are left out. Without Include they are kinds of events that keep their own names instead.
	Exclude []string `json:"exclude,omitempty"`
	// Groupings are patterns, in which * is any text. A step that one matches gets the pattern as its name.
	Groupings []string `json:"groupings,omitempty"`
	// Steps is how long a path can be, Edges how many edges the answer has at most.
	Steps int `json:"steps"`
	Edges int `json:"edges"`
	// MinWeight and MaxWeight bound the value of an edge; 0 for no bound.
	MinWeight int `json:"min_weight,omitempty"`
	MaxWeight int `json:"max_weight,omitempty"`
	// Replacements puts the project's rules of cleaning before those of the query.
	Replacements bool `json:"replacements,omitempty"`
	// Cleaning are the query's own rules, in the order in which they are applied.
	Cleaning []PathCleaning `json:"cleaning,omitempty"`
	// StartKey, EndKey and DropoffKey are nodes and edges of the answer, such as 2_/pricing. They say whose actors are meant
	// when the actors are asked for; empty for none.
	StartKey   string `json:"start_key,omitempty"`
	EndKey     string `json:"end_key,omitempty"`
	DropoffKey string `json:"dropoff_key,omitempty"`
	// Funnel keeps the events before, between or after steps of a funnel; nil for all.
	Funnel *PathFunnel `json:"funnel,omitempty"`
}

// PathFunnel is a step of a funnel that paths end at, begin at, or lead to from the step before (contract: paths.md, section 8).
type PathFunnel struct {
	// At is the place of the funnelPathsFilter in the JSON.
	At     string         `json:"-"`
	Type   PathFunnelType `json:"type"`
	Source *Funnels       `json:"source"`
	// Step is the number of a step, from 1, that the actors reached. A negative one is the step that they did not reach after
	// the one before, from -2.
	Step int `json:"step"`
}

// PathFunnelType says which events count, by the time of the step of a funnel.
type PathFunnelType string

// The types of funnels in paths.
const (
	BeforeStep   PathFunnelType = "funnel_path_before_step"
	BetweenSteps PathFunnelType = "funnel_path_between_steps"
	AfterStep    PathFunnelType = "funnel_path_after_step"
)

// PathEvents is a kind of events that paths are made of.
type PathEvents string

// The kinds of events.
const (
	PathPageviews PathEvents = "$pageview"
	PathScreens   PathEvents = "$screen"
	// PathCustom are the events whose names do not begin with a dollar sign.
	PathCustom PathEvents = "custom_event"
	// PathHogQL names the steps by Expression, whatever the event.
	PathHogQL PathEvents = "hogql"
)

// The number of steps and edges when none is given, and at most.
const (
	defaultPathSteps = 5
	defaultPathEdges = 50
	maxPathSteps     = 1000
	maxPathEdges     = 50_000
)

// maxPathItems bounds the steps that are left out, the groupings and the rules of cleaning, each.
const maxPathItems = 200

// Kind returns PathsQuery.
func (*Paths) Kind() string { return "PathsQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Paths) Text() string { return "" }

func (*Paths) node() {}

// Canonical leaves out what only changes how the answer is shown.
func (q *Paths) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Paths) Parts() Parts { return Parts{Common: &q.Common} }

// Clone gives a copy.
func (q *Paths) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) paths(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Paths{Common: r.common(o), Steps: defaultPathSteps, Edges: defaultPathEdges}
	if given, ok := o.take("pathsFilter"); ok {
		r.pathsFilter(q, given, o.field("pathsFilter"))
	}
	if given, ok := o.take("funnelPathsFilter"); ok {
		q.Funnel = r.pathFunnel(given, o.field("funnelPathsFilter"))
	}
	o.close()
	return q
}

func (r *reader) pathFunnel(v any, at place) *PathFunnel {
	f := r.object(v, at)
	f.required("funnelPathType", "funnelSource", "funnelStep")
	out := &PathFunnel{
		At: at.attr, Type: PathFunnelType(f.choice("funnelPathType", "", string(BeforeStep), string(BetweenSteps), string(AfterStep))),
	}
	out.Step, _ = f.integer("funnelStep")
	if given, ok := f.take("funnelSource"); ok {
		source := f.field("funnelSource")
		m, isObject := given.(map[string]any)
		switch kind, given := m["kind"]; {
		case !isObject:
			r.add(source, "model_type", "Input should be a valid dictionary")
		case given && kind != "FunnelsQuery":
			r.add(source.below("kind", true), "literal_error", "Input should be 'FunnelsQuery'")
		default:
			out.Source, _ = r.funnels(m, source).(*Funnels)
		}
	}
	f.close()
	if out.Source == nil || f.m["funnelStep"] == nil {
		return out
	}
	least, most := 1, len(out.Source.Series)
	if out.Type == BetweenSteps {
		least = 2
	}
	if step := out.Step; step > most || step < least && (out.Type == BetweenSteps || step > -2 || -step > most) {
		r.add(f.field("funnelStep"), "value_error", fmt.Sprintf("Input should be a step of the funnel, from %d to %d", least, most))
	}
	return out
}

func (r *reader) pathsFilter(q *Paths, v any, at place) {
	f := r.object(v, at)
	for i, item := range f.list("includeEventTypes") {
		word := f.word(item, f.field("includeEventTypes").below(strconv.Itoa(i), true),
			string(PathPageviews), string(PathScreens), string(PathCustom), string(PathHogQL))
		q.Include = append(q.Include, PathEvents(word))
	}
	q.Expression, q.Start, q.End = f.text("pathsHogQLExpression"), f.text("startPoint"), f.text("endPoint")
	q.Exclude, q.Groupings = r.pathNames(f, "excludeEvents"), r.pathNames(f, "pathGroupings")
	for i, pattern := range q.Groupings {
		if pattern == "" {
			r.add(f.field("pathGroupings").below(strconv.Itoa(i), true), "string_too_short", "String should have at least 1 character")
		}
	}
	q.Steps = r.pathLimit(f, "stepLimit", defaultPathSteps, maxPathSteps)
	q.Edges = r.pathLimit(f, "edgeLimit", defaultPathEdges, maxPathEdges)
	q.MinWeight, q.MaxWeight = r.pathWeight(f, "minEdgeWeight"), r.pathWeight(f, "maxEdgeWeight")
	q.Replacements = f.flag("pathReplacements")
	q.Cleaning = r.pathCleaning(f, "localPathCleaningFilters")
	q.StartKey, q.EndKey, q.DropoffKey = f.text("pathStartKey"), f.text("pathEndKey"), f.text("pathDropoffKey")
	f.flag("showFullUrls")
	f.close()
}

// pathLimit reads a number of which null and 0 are the default.
func (r *reader) pathLimit(f *object, name string, without, most int) int {
	n, ok := f.integer(name)
	if !ok || n == 0 {
		return without
	}
	if n < 0 || n > most {
		r.add(f.field(name), "value_error", fmt.Sprintf("Input should be from 1 to %d", most))
	}
	return n
}

func (r *reader) pathWeight(f *object, name string) int {
	n, _ := f.integer(name)
	if n < 0 {
		r.add(f.field(name), "greater_than_equal", "Input should be greater than or equal to 0")
	}
	return n
}

func (r *reader) pathItems(f *object, name string) []any {
	list := f.list(name)
	if len(list) > maxPathItems {
		r.add(f.field(name), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxPathItems, len(list)))
		return nil
	}
	return list
}

func (r *reader) pathNames(f *object, name string) []string {
	var out []string
	for i, item := range r.pathItems(f, name) {
		text, ok := item.(string)
		if !ok {
			r.add(f.field(name).below(strconv.Itoa(i), true), "string_type", "Input should be a valid string")
		}
		out = append(out, text)
	}
	return out
}
