package schema

// resolverNatives are the ClickHouse functions that the resolver writes by itself and that no row of the table brings.
// Add a name here when a rewrite needs it, never one with a side effect or a view outside the query: no settings, no
// server state, no files.
var resolverNatives = []string{
	// Values of native JSON columns.
	"dynamicElement", "dynamicType",
	// Conversions of properties and constants.
	"toDateOrNull", "toDateTimeOrNull", "toDateTime64OrNull", "parseDateTime64BestEffort", "fromUnixTimestamp64Micro",
	"toBool", "toFloat64", "toFloat64OrNull", "toInt64", "toInt64OrNull", "toUUID", "toUUIDOrNull",
	// NULL-safe comparison and access.
	"isDistinctFrom", "isNotDistinctFrom", "arrayElementOrNull",
	// The totals among the rows of GROUPING SETS.
	"grouping",
	// Intervals of units that have no row.
	"toIntervalMicrosecond", "toIntervalMillisecond",
}
