package insight

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// NoSeriesCode is the code of an insight without a series, for kinds that need one.
const NoSeriesCode diag.Code = "insight_requires_at_least_one_series"

// Events is the table events, or a sample of it if the insight has a sampling factor.
func Events(c *query.Common) hogql.Table {
	t := &hogql.TableName{Chain: []hogql.Name{{Text: "events"}}}
	if c.Sampling != nil && *c.Sampling > 0 && *c.Sampling < 1 {
		t.Sample = &hogql.Sample{Ratio: Const(*c.Sampling)}
	}
	return t
}

// Scale returns the factor by which counts must be multiplied because of sampling.
func Scale(c *query.Common) float64 {
	if c.Sampling != nil && *c.Sampling > 0 && *c.Sampling < 1 {
		return 1 / *c.Sampling
	}
	return 1
}

// Scaled multiplies a count by a Scale and rounds it, halves to even. With a Scale of 1 the count stays as it is.
func Scaled(n, scale float64) float64 {
	if scale == 1 {
		return n
	}
	return math.RoundToEven(n * scale)
}

// Actor returns what counts as one actor: the person, or the group of a type. For a group, it also returns the condition that an event
// names one; nil for people.
func Actor(group *int) (actor, named hogql.Expr) {
	if group == nil {
		return Field("person_id"), nil
	}
	key := "$group_" + strconv.Itoa(*group)
	return Field(key), Compare(Field(key), hogql.NotEquals, Const(""))
}

// Conditions returns what all events of an insight must satisfy besides its date range: its own filters and, if it asks for that, the
// project's condition against test accounts; nil for none. The error is a *diag.Error.
func (w *World) Conditions(c *query.Common) (hogql.Expr, error) {
	own, err := w.Condition(c.Properties)
	if err != nil {
		return nil, err
	}
	if !c.FilterTestAccounts {
		return own, nil
	}
	against, err := w.Condition(w.TestAccounts)
	if err != nil {
		return nil, err
	}
	return And(own, against), nil
}

// Series returns what the events of a series must satisfy: the name of the event and the filters of the series; nil for all events. The
// error is a *diag.Error.
func (w *World) Series(s *query.Series) (hogql.Expr, error) {
	name, err := w.Named(s)
	if err != nil {
		return nil, err
	}
	filters, err := w.Filters(s)
	if err != nil {
		return nil, err
	}
	return And(name, filters), nil
}

// Filters returns the condition of a series' filters, without the name of its event; nil for none. The error is a *diag.Error.
func (w *World) Filters(s *query.Series) (hogql.Expr, error) {
	own, err := w.Condition(s.Properties)
	if err != nil {
		return nil, err
	}
	fixed, err := w.Condition(s.Fixed)
	if err != nil {
		return nil, err
	}
	return And(own, fixed), nil
}

// Named returns the condition that an event belongs to a series, leaving out the filters of the series: it has the name, matches the
// action, or satisfies a member of the group. It returns nil for all events. The error is a *diag.Error.
func (w *World) Named(s *query.Series) (hogql.Expr, error) {
	switch s.Kind {
	case query.EventsNode:
		if s.Event == nil {
			return nil, nil
		}
		return Eq(Field("event"), Const(*s.Event)), nil
	case query.GroupNode:
		members := make([]hogql.Expr, len(s.Members))
		for i := range s.Members {
			member, err := w.Series(&s.Members[i])
			if err != nil {
				return nil, err
			}
			if member == nil {
				return nil, nil // all events
			}
			members[i] = member
		}
		return Or(members...), nil
	case query.ActionsNode:
		return w.Action(s.Action, s.At+".id")
	}
	panic("BUG: a series of kind " + string(s.Kind))
}

// Label returns the name of a series that was given none: its event, or its action.
func (w *World) Label(s *query.Series) string {
	switch {
	case s.Kind == query.GroupNode:
		names := make([]string, len(s.Members))
		for i := range s.Members {
			names[i] = w.Label(&s.Members[i])
		}
		return strings.Join(names, ", ")
	case s.Kind == query.ActionsNode:
		return w.Actions.Get(s.Action).Label()
	case s.Event == nil:
		return "All events"
	}
	return *s.Event
}

// Counted is how items of answers describe their series.
type Counted struct {
	// ID is the name of the event or of the group, a string, or the number of the action, an int64; nil for all events.
	ID any
	// Type is "events" or "actions".
	Type string
	Name string
}

// Counted describes a series.
func (w *World) Counted(s *query.Series) Counted {
	out := Counted{Type: "events", Name: w.Label(s)}
	switch {
	case s.Kind == query.ActionsNode:
		out.ID, out.Type = s.Action, "actions"
	case s.Kind == query.GroupNode:
		out.ID = out.Name
	case s.Event != nil:
		out.ID = *s.Event
	}
	return out
}

// CountedForm returns the form of the ids of some series.
func CountedForm(series []query.Series) form.Form {
	of := map[bool]bool{}
	for i := range series {
		of[series[i].Kind == query.ActionsNode] = true
	}
	event := form.Text().OrNull().Says("The event; null for all events.")
	action := form.Integer().Says("The number of the action.")
	switch {
	case of[true] && of[false]:
		return form.Either(event, action)
	case of[true]:
		return action
	}
	return event
}

// Condition returns the condition of a tree of property filters; nil for none. The error is a *diag.Error that names the filter.
func (w *World) Condition(c *query.Condition) (hogql.Expr, error) {
	return w.condition(c, w.subject)
}

// PersonCondition is like Condition, for the people of a table that has the name table in the query.
func (w *World) PersonCondition(c *query.Condition, table string) (hogql.Expr, error) {
	return w.condition(c, func(attr string) filter.Subject {
		s := w.subject(attr)
		s.People, s.Table = true, table
		return s
	})
}

// GroupCondition is like Condition, for the groups of a type in a table that has the name table in the query. All filters by properties are by
// those of the row.
func (w *World) GroupCondition(c *query.Condition, group int, table string) (hogql.Expr, error) {
	return w.condition(ofGroup(c, group), func(attr string) filter.Subject {
		s := w.subject(attr)
		s.Rows, s.Table = "groups", table
		return s
	})
}

// ofGroup returns a condition whose filters by properties of groups all name a type.
func ofGroup(c *query.Condition, group int) *query.Condition {
	if c == nil {
		return nil
	}
	out := *c
	if c.Filter != nil && c.Filter.Type == "group" {
		own := *c.Filter
		own.Group = group
		out.Filter = &own
	}
	out.All = slices.Clone(c.All)
	for i := range out.All {
		out.All[i] = *ofGroup(&out.All[i], group)
	}
	return &out
}

func (w *World) condition(c *query.Condition, subject func(attr string) filter.Subject) (hogql.Expr, error) {
	w.Spend.Nodes(1)
	if c == nil {
		return nil, nil
	}
	if c.Filter != nil {
		if !c.Filter.Complete() {
			return nil, nil // it counts as true
		}
		s := subject(c.At)
		if b := c.Filter.Behavior; b != nil && b.Action != 0 {
			if _, err := w.Action(b.Action, c.At+".key"); err != nil {
				return nil, err
			}
		}
		condition, err := filter.Condition(*c.Filter, s)
		if err == nil && c.Filter.Type == "hogql" && !s.People {
			err = w.Known(condition, c.At+".key")
		}
		return condition, err
	}
	members := make([]hogql.Expr, len(c.All))
	for i := range c.All {
		var err error
		if members[i], err = w.condition(&c.All[i], subject); err != nil {
			return nil, err
		}
		if members[i] == nil && c.Or {
			return nil, nil
		}
	}
	if c.Or {
		return Or(members...), nil
	}
	return And(members...), nil
}

func (w *World) subject(attr string) filter.Subject {
	return filter.Subject{
		Types: w.Database.Properties, Cohorts: w.Database.Cohorts, Now: w.Now, Location: w.Zone(), WeekStart: w.Database.WeekStart,
		Clean: Cleaner(w.PathCleaning), Spend: w.Spend, Attr: attr,
	}
}

// Cleaner returns a function that applies cleaning rules to a path, each to the result of the one before; nil if there are none.
func Cleaner(rules []query.PathCleaning) func(path hogql.Expr) hogql.Expr {
	if len(rules) == 0 {
		return nil
	}
	return func(path hogql.Expr) hogql.Expr {
		for _, rule := range rules {
			path = Call("replaceRegexpAll", path, Const(rule.Regex), Const(rule.Alias))
		}
		return path
	}
}
