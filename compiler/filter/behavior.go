package filter

import (
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// BehavioralType is the type of filters on what a person did.
const BehavioralType = "behavioral"

// Behavior is what a behavioral filter asks for: people with an event within some time. It means the same as in the filters of a cohort,
// evaluated at the time of the query.
type Behavior struct {
	// Event is the name of the event; Action is the number of an action instead.
	Event  string `json:",omitempty"`
	Action int64  `json:",omitempty"`
	// Operator compares the number of events with Times: gte, lte, gt, lt or eq; "" for at least one.
	Operator string `json:",omitempty"`
	Times    int    `json:",omitempty"`
	// Count and Unit, such as 30 and day, are a time that ends now; From and To are dates, an empty To meaning now. From takes precedence.
	Count    int    `json:",omitempty"`
	Unit     string `json:",omitempty"`
	From, To string `json:",omitempty"`
	// Filters must also hold for the events.
	Filters []Property `json:",omitempty"`
	// Negated asks for everyone else.
	Negated bool `json:",omitempty"`
}

// behaviorUnits maps the units of a Behavior to the unit letters of relative dates.
var behaviorUnits = map[string]string{"day": "d", "week": "w", "month": "m", "year": "y"}

// IsBehaviorUnit reports whether a word is a unit of a Behavior.
func IsBehaviorUnit(word string) bool { return behaviorUnits[word] != "" }

// behaviorOperators are the operators of behaviors.
var behaviorOperators = map[string]hogql.CompareOp{
	"gte": hogql.GreaterOrEquals, "lte": hogql.LessOrEquals, "gt": hogql.Greater, "lt": hogql.Less, "eq": hogql.Equals,
}

// BehaviorOperator returns the operator for a word of a request; no word means eq. It returns false for unknown words.
func BehaviorOperator(word string) (string, bool) {
	if word == "" || word == "exact" {
		return "eq", true
	}
	_, ok := behaviorOperators[word]
	return word, ok
}

// BehaviorComparison returns the comparison for an operator returned by BehaviorOperator.
func BehaviorComparison(operator string) hogql.CompareOp { return behaviorOperators[operator] }

// behaviorFilters are the types of filters allowed on the events of a Behavior.
var behaviorFilters = []string{"event", "person", "element", "feature", "hogql"}

// behaviorNodes is roughly how many nodes the condition has, not counting the filters on the events.
const behaviorNodes = 20

// behaviorCondition returns the condition that a person is among those with the events. The error is a *diag.Error.
func behaviorCondition(b *Behavior, s Subject) (hogql.Expr, error) {
	if b == nil {
		return nil, s.refuse("A filter of type '%s' cannot be used here", BehavioralType)
	}
	s.Spend.Nodes(behaviorNodes)
	s.Spend.Bytes(len(b.Event))
	events := s
	events.People, events.Table = false, ""
	where, err := b.window(events)
	if err != nil {
		return nil, err
	}
	if b.Action != 0 {
		where = append(where, &hogql.Call{Pos: s.At, Name: schema.MatchesAction, Args: []hogql.Expr{s.constant(b.Action)}})
	} else {
		where = append(where, &hogql.Compare{Pos: s.At, Op: hogql.Equals, Left: events.field("event"), Right: s.constant(b.Event)})
	}
	for i, f := range b.Filters {
		events.Attr = s.Attr + ".event_filters." + strconv.Itoa(i)
		if !slices.Contains(behaviorFilters, f.Type) {
			return nil, events.refuse("The events of a behavioral filter cannot have a filter of type '%s': use event, person, element, feature or hogql", f.Type)
		}
		condition, err := Condition(f, events)
		if err != nil {
			return nil, err
		}
		where = append(where, condition)
	}
	person := events.field("person_id")
	people := &hogql.Select{
		Columns: []hogql.Expr{person}, From: &hogql.TableName{Chain: []hogql.Name{{Pos: s.At, Text: "events"}}},
		Where: &hogql.Logic{Pos: s.At, Args: where}, GroupBy: &hogql.GroupBy{Keys: []hogql.Expr{person}},
	}
	if b.Operator != "" {
		people.Having = &hogql.Compare{Pos: s.At, Op: behaviorOperators[b.Operator], Left: &hogql.Call{Pos: s.At, Name: "count"}, Right: s.constant(int64(b.Times))}
	}
	out := &hogql.Compare{Pos: s.At, Op: hogql.In, Left: s.field("person_id"), Right: &hogql.Subquery{Pos: s.At, Query: people}}
	if s.People {
		out.Left = s.field("id")
	}
	if b.Negated {
		out.Op = hogql.NotIn
	}
	return out, nil
}

func (s Subject) constant(v any) hogql.Expr { return &hogql.Const{Pos: s.At, Value: v} }

// window returns the condition on the time of the events, as in cohorts (contract: cohorts.md, section 3): whole days, except that counted events
// go up to the current moment.
func (b *Behavior) window(s Subject) ([]hogql.Expr, error) {
	at := func(op hogql.CompareOp, t time.Time) hogql.Expr {
		return &hogql.Compare{Pos: s.At, Op: op, Left: s.field("timestamp"), Right: s.constant(t)}
	}
	now, counted := s.Now.In(s.Location), b.Operator != ""
	to := StartOfDay(now, 1).Add(-time.Microsecond)
	if counted {
		to = now
	}
	if b.From == "" {
		from, ok := Date("-"+strconv.Itoa(b.Count)+behaviorUnits[b.Unit], now, s.Location, s.WeekStart)
		if !ok {
			from = time.Date(FirstYear, time.January, 1, 0, 0, 0, 0, s.Location)
		}
		if counted {
			return []hogql.Expr{at(hogql.Greater, from), at(hogql.LessOrEquals, to)}, nil
		}
		return []hogql.Expr{at(hogql.GreaterOrEquals, StartOfDay(from, 0)), at(hogql.LessOrEquals, to)}, nil
	}
	from, err := s.moment(b.From, "explicit_datetime")
	if err != nil {
		return nil, err
	}
	switch {
	case counted:
	case from.Unit == 'h':
		from.Time = StartOfHour(from.Time)
	default:
		from.Time = StartOfDay(from.Time, 0)
	}
	if b.To != "" {
		end, err := s.moment(b.To, "explicit_datetime_to")
		if err != nil {
			return nil, err
		}
		to = StartOfDay(end.Time, 1).Add(-time.Microsecond)
	}
	return []hogql.Expr{at(hogql.GreaterOrEquals, from.Time), at(hogql.LessOrEquals, to)}, nil
}

// moment reads a date in a field of the filter. The error is a *diag.Error.
func (s Subject) moment(text, field string) (Moment, error) {
	m, ok := ReadDate(text, s.Now, s.Location, s.WeekStart)
	if !ok {
		s.Attr += "." + field
		return m, s.refuse("The date of a behavioral filter is neither ISO 8601 nor relative, such as -7d")
	}
	return m, nil
}

// StartOfWeek returns the first moment of the week of t. first is its first day, 0 for Sunday.
func StartOfWeek(t time.Time, first int) time.Time {
	return StartOfDay(t, -((int(t.Weekday()) - first + 7) % 7))
}

// StartOfDay returns the first moment of the day that is days after the day of t, or before it if days is negative. That is midnight, except where
// the clock is moved across midnight, as in Havana, Cairo and Santiago: then it is the moment of that change.
func StartOfDay(t time.Time, days int) time.Time {
	year, month, day := t.Date()
	midnight := time.Date(year, month, day+days, 0, 0, 0, 0, time.UTC)
	start := time.Date(year, month, day+days, 0, 0, 0, 0, t.Location())
	_, offset := start.Zone()
	switch shown := start.Add(time.Duration(offset) * time.Second); {
	case shown.Before(midnight):
		_, start = start.ZoneBounds()
	case shown.After(midnight):
		start, _ = start.ZoneBounds()
	}
	return start
}

// StartOfHour works on the instant, since an hour may occur twice in a day. After the clock is moved by part of an hour, as on Lord Howe Island,
// the hours of that day count from the change, as in ClickHouse.
func StartOfHour(t time.Time) time.Time {
	if moved, _ := t.ZoneBounds(); !moved.IsZero() && t.Sub(moved) < 24*time.Hour {
		start := StartOfDay(t, 0)
		_, before := start.Zone()
		if _, now := t.Zone(); (now-before)%3600 != 0 && start.Before(moved) {
			return moved.Add(t.Sub(moved).Truncate(time.Hour))
		}
	}
	return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
}
