package trends

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// way is how a measure gets from events to numbers.
type way uint8

const (
	// direct: an aggregate over the events of a bucket.
	direct way = iota
	// alone: the same, in a SELECT of its own, since the expression is the user's.
	alone
	// perActor: a statistic over the events of each person.
	perActor
	// perSession: a statistic over sessions, each with its whole duration.
	perSession
	// window: actors seen in the days that end with the bucket.
	window
	// firstEver: actors by their first event of the series' name, if that satisfies its filters.
	firstEver
	// firstMatch: actors by their first event that satisfies the filters.
	firstMatch
	// firstInRange: actors by their first event in the range, for running totals.
	firstInRange
)

// merging is how the points of several values are merged into one.
type merging string

const (
	mergeSum merging = "sum"
	mergeMin merging = "min"
	mergeMax merging = "max"
	mergeAvg merging = "avg"
)

// measure is the math of a series (contract: trends.md, section 5).
type measure struct {
	way way
	// function is the aggregate, level the parameter of a quantile.
	function string
	level    float64
	// of is the argument of the aggregate; nil for a count.
	of hogql.Expr
	// actor is what is counted, named the condition that an event has one; nil for none. group is the type of the groups that are counted,
	// nil for people.
	actor, named hogql.Expr
	group        *int
	days         int // length of a window
	merge        merging
	// counts reports whether the number is taken as proportional to the sample, so that it has to be scaled up.
	counts bool
	// present reports whether the number is above 0 whenever there is an event.
	present bool
}

var quantiles = map[string]float64{"median": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}

// eventCount is the number of events. A math that lacks its property, group type or expression counts events too.
var eventCount = measure{function: "count", merge: mergeSum, counts: true, present: true}

// measureOf reads the math of a series. The error is a *diag.Error.
func (b *builder) measureOf(s *query.Series) (measure, error) {
	m := s.Math
	kind := b.mathKind(m.Kind)
	switch kind {
	case "", "total", "first_time_for_user_with_filters": // the last one is for funnels; here it is a plain count
		return eventCount, nil
	case "dau", "weekly_active", "monthly_active":
		return b.activeUsers(s, kind), nil
	case "unique_group":
		if m.Group == nil {
			return eventCount, nil
		}
		return b.uniqueActors(m.Group), nil
	case "unique_session":
		return measure{function: "uniqExact", of: insight.Field("$session_id"), merge: mergeSum, counts: true, present: true}, nil
	case "hogql":
		return b.expression(s)
	case "first_time_for_user", "first_matching_event_for_user", "first_time_for_group", "first_matching_event_for_group":
		return firstTime(s, kind), nil
	}
	if stat, ok := strings.CutSuffix(kind, "_count_per_actor"); ok {
		out := statistic(stat)
		out.way, out.merge, out.counts = perActor, mergeSum, false
		out.actor, out.named = insight.Actor(nil) // people, whatever the group type is
		return out, nil
	}
	return b.propertyMath(s, kind)
}

// mathKind returns the math of a series in the query's interval: with weekly buckets, for example, weekly active users are the users of
// each bucket.
func (b *builder) mathKind(kind string) string {
	switch {
	case kind == "weekly_active" && (b.q.Interval == query.Week || b.q.Interval.Months() > 0), kind == "monthly_active" && b.q.Interval.Months() > 0:
		return "dau"
	}
	return kind
}

// The codes of combinations that are not supported (contract: trends.md, section 1).
const (
	histogramCode diag.Code = "property_math_unsupported_with_histogram_breakdown"
	smoothingCode diag.Code = "days_of_week_unsupported_with_smoothing"
)

func (b *builder) activeUsers(s *query.Series, kind string) measure {
	out := b.uniqueActors(s.Math.Group)
	switch kind {
	case "weekly_active":
		out.way, out.days = window, 7
	case "monthly_active":
		out.way, out.days = window, 30
	}
	return out
}

// uniqueActors counts people or groups; a running total counts each only in its first bucket.
func (b *builder) uniqueActors(group *int) measure {
	out := measure{function: "uniqExact", group: group, merge: mergeSum, counts: true, present: true}
	out.actor, out.named = insight.Actor(group)
	out.of = out.actor
	if b.q.Display == CumulativeLine {
		out.way = firstInRange
	}
	return out
}

func firstTime(s *query.Series, kind string) measure {
	out := measure{way: firstEver, merge: mergeSum, counts: true, present: true}
	if strings.HasPrefix(kind, "first_matching") {
		out.way = firstMatch
	}
	if strings.HasSuffix(kind, "_group") {
		out.group = s.Math.Group // without one, people
	}
	out.actor, out.named = insight.Actor(out.group)
	return out
}

func (b *builder) expression(s *query.Series) (measure, error) {
	if strings.TrimSpace(s.Math.HogQL) == "" {
		return eventCount, nil
	}
	attr := s.At + ".math_hogql"
	e, err := filter.UserValue(s.Math.HogQL, b.w.Spend)
	if err != nil {
		return measure{}, diag.Field(err.Code, attr, "The aggregate expression %s", err.Detail)
	}
	if err := b.w.Known(e, attr); err != nil {
		return measure{}, err
	}
	return measure{way: alone, of: e, merge: mergeSum, counts: true}, nil
}

// statistic returns the aggregate that a word of the API stands for.
func statistic(word string) measure {
	if level, ok := quantiles[word]; ok {
		return measure{function: "_quantileInclusive", level: level, merge: mergeSum}
	}
	out := measure{function: word, merge: mergeSum}
	switch word {
	case "sum":
		out.counts = true
	case "min":
		out.merge = mergeMin
	case "max":
		out.merge = mergeMax
	case "avg":
		out.merge = mergeAvg
	}
	return out
}

// propertyMath returns a statistic over the values of a property: numbers, and texts that are numbers. It leaves out everything else.
func (b *builder) propertyMath(s *query.Series, kind string) (measure, error) {
	m := s.Math
	if m.Property == "" {
		return eventCount, nil
	}
	out := statistic(kind)
	if out.level > 0 && b.bins() {
		return out, diag.Field(histogramCode, s.At+".math", "The math '%s' is not supported together with a histogram breakdown", kind)
	}
	switch m.PropertyType {
	case "", "event_properties":
		if m.Property == "$session_duration" {
			out.way, out.of = perSession, insight.Field("session", m.Property)
			break
		}
		out.of = insight.Field("properties", m.Property)
	case "person_properties":
		out.of = insight.Field("person", "properties", m.Property)
	case "session_properties":
		out.way, out.of = perSession, insight.Field("session", m.Property)
	default:
		return out, diag.Field(diag.InvalidInput, s.At+".math_property_type",
			"Properties of type '%s' are not supported: use event_properties, person_properties or session_properties", m.PropertyType)
	}
	out.of = insight.Call("toFloat", out.of)
	if m.Multiplier != nil {
		out.of = &hogql.Binary{Op: hogql.Multiply, Left: out.of, Right: insight.Const(*m.Multiplier)}
	}
	return out, nil
}

// aggregate returns the number of a measure over of, for the rows that satisfy the condition; nil for all rows.
func (m *measure) aggregate(of, condition hogql.Expr) hogql.Expr {
	call := &hogql.Call{Name: m.function}
	if m.level > 0 {
		call.Params = []hogql.Expr{insight.Const(m.level)}
	}
	if of != nil {
		call.Args = append(call.Args, of)
	}
	if condition != nil {
		call.Name += "If"
		call.Args = append(call.Args, condition)
	}
	if m.present {
		return call
	}
	return insight.Call("ifNull", call, insight.Const(int64(0)))
}
