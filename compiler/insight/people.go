package insight

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// ActorID is the column of People.Query that identifies an actor.
const ActorID = "actor_id"

// Further columns about an actor.
const (
	// EventCount is the number of its events that count.
	EventCount = "event_count"
	// EventDistinctIDs are the distinct ids of these events.
	EventDistinctIDs = "event_distinct_ids"
	// LastSeen is the time of the last of these events.
	LastSeen = "last_seen"
	// MatchingEvents are some of these events: tuples of time, uuid, session and window (contract: paths.md, section 9).
	MatchingEvents = "matching_events"
)

// MostMatching is the maximum number of MatchingEvents of an actor.
const MostMatching = 100

// People is a query for the actors behind a number of an insight.
type People struct {
	// Query returns one row for each actor, over virtual tables, without a limit. Its first column is ActorID: the UUID of a person or the
	// key of a group. The columns of Extra follow.
	Query hogql.Query
	// Group is the type of the groups in the list; nil for people.
	Group *int
	// Extra are the names of the columns after the first, such as event_count.
	Extra []string
	// Always are the columns of Extra that every list of actors shows, even one that selects other columns.
	Always []string
	// Events are the events behind the number; nil for a kind that does not tell them from other events of its actors.
	Events *EventSet
	// Shaky reports whether the query may return different rows when it runs again.
	Shaky bool
}

// EventSet is the events of a table that satisfy a condition.
type EventSet struct {
	From  hogql.Table
	Where hogql.Expr
}

// PeopleOf returns a query for the actors of some events: people, or groups of a type. recordings adds MatchingEvents.
func PeopleOf(events EventSet, group *int, recordings bool) *People {
	actor, _ := Actor(group)
	s := &hogql.Select{From: events.From, Where: events.Where, GroupBy: GroupBy(actor)}
	out := &People{Query: s, Group: group, Extra: []string{EventCount}, Events: &events}
	s.Columns = []hogql.Expr{As(actor, ActorID), As(Call("count"), EventCount)}
	add := func(name string, x hogql.Expr) {
		s.Columns, out.Extra = append(s.Columns, As(x, name)), append(out.Extra, name)
	}
	if group == nil {
		add(EventDistinctIDs, Call("groupUniqArray", Field("distinct_id")))
		out.Always = []string{EventDistinctIDs}
	}
	add(LastSeen, Call("max", Field("timestamp")))
	if recordings {
		add(MatchingEvents, matching())
	}
	return out
}

// matching returns the aggregate for MatchingEvents.
func matching() hogql.Expr {
	return &hogql.Call{Name: "groupUniqArray", Params: []hogql.Expr{Const(int64(MostMatching))}, Args: []hogql.Expr{MatchingEvent()}}
}

// MatchingEvent returns an event as an element of MatchingEvents.
func MatchingEvent() hogql.Expr {
	return &hogql.Tuple{Items: []hogql.Expr{Field("timestamp"), Field("uuid"), Field("$session_id"), Field("$window_id")}}
}

// ReadDay reads a time that identifies a bucket: ISO 8601, in the project's zone unless it has an offset of its own. The error is a
// *diag.Error.
func ReadDay(w *World, text, attr string) (time.Time, error) {
	m, ok := filter.ReadDate(text, w.Now, w.Zone(), w.Database.WeekStart)
	if !ok || m.Relative() {
		return m.Time, diag.Field(diag.InvalidInput, attr, "The time '%s' is not ISO 8601, such as 2026-01-31", diag.Shown(text))
	}
	return m.Time, nil
}

// DisplayName is the name of a person in an object: see PersonName.
const DisplayName = "person_display_name"

// PersonName returns the display name of a person: the first of the display properties that is not empty, or else fallback. property returns
// a property of the person.
func (w *World) PersonName(property func(name string) hogql.Expr, fallback hogql.Expr) hogql.Expr {
	var names []hogql.Expr
	for _, name := range w.displayProperties() {
		names = append(names, Call("nullIf", Call("toString", property(name)), Const("")))
	}
	return Call("coalesce", append(names, fallback)...)
}

// displayProperties returns the person properties that serve as a display name, the preferred one first.
func (w *World) displayProperties() []string {
	if len(w.DisplayNames) > 0 {
		return w.DisplayNames
	}
	return []string{"email", "name", "username"}
}
