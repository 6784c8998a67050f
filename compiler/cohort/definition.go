// Package cohort reads cohort definitions, and builds the query for their members:
//
//	filters ─▶ [Read] ─▶ Definition ─▶ [Build] ─▶ tree ─▶ resolve ─▶ sql
package cohort

import "github.com/caddy-analytics/caddy-analytics/compiler/query"

// Definition says who is in a cohort. It is immutable and safe for concurrent use.
type Definition struct {
	// Root is what the members satisfy; nil for a cohort without members.
	Root Node
}

// Node is a condition on people, which defines a set of them.
//
//sumtype:decl
type Node interface{ node() }

// Group combines conditions.
type Group struct {
	// Or reports whether one member is enough.
	Or bool
	// All are the members, at least one.
	All []Node
}

// Leaf is what all conditions other than groups have in common.
type Leaf struct {
	// At is the place in the JSON of the cohort, such as filters.properties.values.0.
	At string
	// Negated asks for everyone who does not satisfy the condition.
	Negated bool
}

// Person is a condition on the properties of a person.
type Person struct {
	Leaf
	Filter *query.Condition
}

// Created is a condition on a person's creation time.
type Created struct {
	Leaf
	Filter *query.Condition
}

// Member is a condition on membership in another cohort.
type Member struct {
	Leaf
	Cohort int64
}

// Behavior is a condition on the events of a person.
type Behavior struct {
	Leaf
	Kind  Kind
	Event Entity
	// Filters must also hold for the events; nil for none.
	Filters *query.Condition
	Window  Window
	// Operator compares the number of events with Times; "" for kinds that do not count.
	Operator string
	Times    int
	// Then is the second event of a Sequence.
	Then Entity
	// Recent is the recent window of Stopped and Restarted, and the longest time between the two events of a Sequence.
	Recent Span
	// Periods is how many periods of the window's length a Regularly looks at, and Enough is in how many of them the event must occur.
	Periods, Enough int
}

// Kind is the API's word for a behavior (contract: cohorts.md, section 3).
type Kind string

// The kinds of behavior.
const (
	Performed Kind = "performed_event"
	Multiple  Kind = "performed_event_multiple"
	FirstTime Kind = "performed_event_first_time"
	Sequence  Kind = "performed_event_sequence"
	Stopped   Kind = "stopped_performing_event"
	Restarted Kind = "restarted_performing_event"
	Regularly Kind = "performed_event_regularly"
)

// Entity is an event or an action.
type Entity struct {
	Event string
	// Action is the number of an action; 0 for an event.
	Action int64
}

// Unit is a unit of time, as the API names it.
type Unit string

// The units.
const (
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
	Week   Unit = "week"
	Month  Unit = "month"
	Year   Unit = "year"
)

// Span is a length of time; the zero Span is none.
type Span struct {
	Count int
	Unit  Unit
}

// seconds is the length of a unit for comparing or measuring: a month has 30 days, a year 365.
var seconds = map[Unit]int64{Minute: 60, Hour: 3600, Day: 86400, Week: 7 * 86400, Month: 30 * 86400, Year: 365 * 86400}

// Seconds returns the length, with months of 30 days and years of 365.
func (s Span) Seconds() int64 { return int64(s.Count) * seconds[s.Unit] }

// Window is the time in which events count.
type Window struct {
	// Span reaches back from now; it is ignored if From is set.
	Span Span
	// From and To are dates (contract: api.md, section 2.2). An empty To means now.
	From, To string
}

func (*Group) node()    {}
func (*Person) node()   {}
func (*Created) node()  {}
func (*Member) node()   {}
func (*Behavior) node() {}
