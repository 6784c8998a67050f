package materialize

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// split is a breakdown of a trend whose value is a variable.
type split struct {
	name string
	at   int // its index among the values of a row, from 1
}

// longest is the longest value, in characters, that the table can tell from a longer one.
const longest = 399

// serves reports whether the rows of a value equal what the insight returns for that value alone. A missing value does not: it may be a missing
// property, or an empty text.
func (s *split) serves(value any) bool {
	text, ok := value.(string)
	return ok && text != "" && len(text) <= longest
}

// insight plans an insight: the table stores its rows.
func (p *Plan) insight(env compiler.Env, o Options) error {
	n := p.node.(query.Insight)
	if err := p.breakdowns(n, env, o); err != nil {
		return err
	}
	env.AllValues = len(p.split) > 0
	var tree hogql.Query
	_, _, err := compiler.CompileRemade(n, env, func(q hogql.Query) (hogql.Query, error) {
		tree = q
		return q, nil
	})
	if err != nil {
		return err
	}
	if s, ok := tree.(*hogql.Select); ok {
		b := &builder{plan: p, node: n, env: env, sel: s, left: hogql.Conjuncts(s.Where), taken: identifiers(s)}
		err = (&reader{builder: b}).build()
	} else {
		b := &builder{plan: p, node: n, env: env, sel: &hogql.Select{}, taken: map[string]bool{}}
		err = (&reader{builder: b}).set(tree)
	}
	if err != nil {
		return err
	}
	p.show(o)
	return nil
}

// set plans a query made of several.
func (r *reader) set(q hogql.Query) error {
	return r.finish(q, &hogql.Select{}, nil)
}

// breakdowns finds the breakdowns that are variables. A run gives values for all of them, or for none if the version declares them optional.
func (p *Plan) breakdowns(n query.Insight, env compiler.Env, o Options) error {
	list := n.Parts().Breakdowns
	if list == nil || *list == nil {
		return nil
	}
	t, isTrend := n.(*trends.Query)
	if _, isRetention := n.(*retention.Query); !isTrend && !isRetention {
		return nil
	}
	var names, required []string
	for _, f := range (*list).Fields {
		if f.Type == query.CohortType {
			continue
		}
		names = append(names, f.Property)
		if !slices.Contains(o.Optional, f.Property) {
			required = append(required, f.Property)
		}
	}
	if len(required) == 0 {
		return nil
	}
	if !isTrend {
		return refuse("Breakdowns of RetentionQuery are not supported for materialization, unless they are optional")
	}
	for i := range (*list).Fields {
		f := &(*list).Fields[i]
		if reason := unsuited(f, env.Database); reason != "" {
			return refuse("%s", reason)
		}
		if slices.Contains(names[:i], f.Property) {
			return refuse("Two breakdowns by '%s' cannot be materialized", f.Property)
		}
		p.split = append(p.split, split{f.Property, i + 1})
	}
	if t.DateRange.From == "all" {
		return refuse("Breakdowns of the date range 'all' are not supported for materialization, unless they are optional")
	}
	for i := range t.Series {
		if math := t.Series[i].Math.Kind; firstTimes[math] {
			return refuse("Breakdowns of the math '%s' are not supported for materialization, unless they are optional", math)
		}
	}
	p.Required = slices.Sorted(slices.Values(required))
	return nil
}

// firstTimes are the maths that look for someone's first event. A condition on a value would change which event that is.
var firstTimes = map[string]bool{
	"first_time_for_user": true, "first_matching_event_for_user": true, "first_time_for_group": true, "first_matching_event_for_group": true,
	"first_time_for_user_with_filters": true,
}

// unsuited returns why the rows of one breakdown value differ from what the insight returns for that value alone; empty if they do not.
func unsuited(f *query.Breakdown, db *schema.Database) string {
	scope, known := map[string]schema.PropertyScope{"event": schema.EventProperty, "person": schema.PersonProperty}[f.Type]
	switch {
	case f.Type == query.CohortType:
		return "Cohort breakdowns are not supported for materialized endpoints."
	case !known:
		return "Breakdowns of type '" + f.Type + "' are not supported for materialization, unless they are optional"
	case f.Bins > 0, f.NormalizeURL, f.CleanPath:
		return "Breakdowns by bins, and by URLs or paths that are cleaned, are not supported for materialization, unless they are optional"
	}
	typ := db.Properties.Of(schema.PropertyKey{Scope: scope, Name: f.Property})
	if typ == schema.NumericProperty || typ == schema.BooleanProperty || typ == schema.DateTimeProperty {
		return "Breakdowns by properties of type " + string(typ) + " are not supported for materialization, unless they are optional"
	}
	return ""
}

// valuesColumn is the column of a trend's rows that has the breakdown values.
const valuesColumn = "breakdown"

// readInsight compiles the query that a run of an insight reads. Its rows are shaped like those of the insight with the values of the run, at the
// time of filling.
func (p *Plan) readInsight(r Run, env compiler.Env) (*compiler.Compiled, error) {
	env.AllValues = len(p.split) > 0
	read := *p.read
	conditions := hogql.Conjuncts(read.Where)
	for _, s := range p.split {
		value := &hogql.Index{X: field(p.name, valuesColumn), Index: &hogql.Const{Value: int64(s.at)}}
		conditions = append(conditions, &hogql.Compare{Op: hogql.Equals, Left: value, Right: insight.Const(r.Values[s.name])})
	}
	read.Where = logic(conditions)
	bound, err := query.Bind(p.node.(query.Insight), r.Values)
	if err != nil {
		return nil, err
	}
	compiled, _, err := compiler.CompileRemade(bound, env, func(hogql.Query) (hogql.Query, error) { return &read, nil })
	return compiled, err
}
