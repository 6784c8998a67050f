package schema

// resolverNatives are the ClickHouse functions that the resolver writes itself and that are in no entry of the table. Add a name here when a
// rewrite needs it, but never one with a side effect or with access to anything outside of the query: no settings, no server state, no
// files.
var resolverNatives = []string{
	// Values of native JSON columns.
	"dynamicElement", "dynamicType",
	// Conversions of properties and constants.
	"toDateOrNull", "toDateTimeOrNull", "toDateTime64OrNull", "parseDateTime64BestEffort", "fromUnixTimestamp64Micro",
	"toBool", "toFloat64", "toFloat64OrNull", "toInt64", "toInt64OrNull", "toUUID", "toUUIDOrNull",
	// NULL-safe comparison and access.
	"isDistinctFrom", "isNotDistinctFrom", "arrayElementOrNull",
	// The totals in the rows of GROUPING SETS.
	"grouping",
	// Intervals of units without an entry.
	"toIntervalMicrosecond", "toIntervalMillisecond",
}
