// Package cohort reads what a cohort asks for, and builds the query for its members:
//
//	filters ─▶ [Read] ─▶ Definition ─▶ [Build] ─▶ tree ─▶ resolve ─▶ sql
package cohort

import "github.com/caddy-analytics/caddy-analytics/compiler/query"

// Definition says who is in a cohort. It is immutable and safe for concurrent use.
type Definition struct {
	// Root is what the members satisfy; nil for a cohort without members.
	Root Node
}

// Node is a condition on people: a set of them.
//
//sumtype:decl
type Node interface{ node() }

// Group joins conditions.
type Group struct {
	// Or reports whether one of the members is enough.
	Or bool
	// All are the members, at least one.
	All []Node
}

// Leaf is what all conditions that are no groups have.
type Leaf struct {
	// At is the place in the JSON of the cohort, such as filters.properties.values.0.
	At string
	// Negated asks for everybody who does not satisfy the condition.
	Negated bool
}

// Person is a condition on the properties of a person.
type Person struct {
	Leaf
	Filter *query.Condition
}

// Created is a condition on the time when a person was created.
type Created struct {
	Leaf
	Filter *query.Condition
}

// Member asks who is in another cohort.
type Member struct {
	Leaf
	Cohort int64
}

// Behavior is a condition on the events of a person.
type Behavior struct {
	Leaf
	Kind  Kind
	Event Entity
	// Filters are what the events have to satisfy beside that; nil for nothing.
	Filters *query.Condition
	Window  Window
	// Operator compares how often the event occurs with Times; "" for the kinds that don't count.
	Operator string
	Times    int
	// Then is the second event of a Sequence.
	Then Entity
	// Recent is the recent window of Stopped and Restarted, and the most between the two events of a Sequence.
	Recent Span
	// Periods is how many periods of the window's length a Regularly looks at, and Enough in how many of them the event has to occur.
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

// Unit is a unit of time in the API's words.
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

// seconds are those of one unit where lengths are compared or measured: a month has 30 days, a year 365.
var seconds = map[Unit]int64{Minute: 60, Hour: 3600, Day: 86400, Week: 7 * 86400, Month: 30 * 86400, Year: 365 * 86400}

// Seconds is the length with months of 30 days and years of 365.
func (s Span) Seconds() int64 { return int64(s.Count) * seconds[s.Unit] }

// Window is the time in which events count.
type Window struct {
	// Span reaches back from now; it does not count when From is given.
	Span Span
	// From and To are dates: contract api.md, section 2.2. To is empty for now.
	From, To string
}

func (*Group) node()    {}
func (*Person) node()   {}
func (*Created) node()  {}
func (*Member) node()   {}
func (*Behavior) node() {}
