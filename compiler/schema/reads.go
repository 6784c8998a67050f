package schema

// Reads is the data that the rows of a query depend on.
type Reads struct {
	// Cohorts are the ids of the cohorts whose members are read, in order.
	Cohorts []int64
	// Tables are the physical tables that are read, in order.
	Tables []string
	// Volatile reports whether the rows may differ even if no table changes, because of a function such as now or rand.
	Volatile bool
	// Beyond reports whether a row may depend on events that do not satisfy the condition of its SELECT: on whole sessions, or on the events of a
	// query inside an expression.
	Beyond bool
	// Overrides reports whether the reassigned distinct ids are read directly, and not only to find the persons of events.
	Overrides bool
	// Persons is how many times the table of persons is read.
	Persons int
	// Created reports whether persons are only read for when those with events in the span, sent with a profile, were created.
	Created bool
	// Types are the property types that the query was resolved with.
	Types PropertyTypes
	// Values are the kinds of values that properties were assumed to have; see Database.Values. The query misses values of a property that
	// has had other kinds since.
	Values PropertyValues
}
