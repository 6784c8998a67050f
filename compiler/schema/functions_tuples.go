package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var tupleFunctions = family("Tuples",
	fn("tuple", 0, Any, tuple.never()),
	fn("tupleElement", 2, 3, unknown),
	fn("tuplePlus", 2, 2, tuple),
	fn("tupleMinus", 2, 2, tuple),
	fn("tupleMultiply", 2, 2, tuple),
	fn("tupleDivide", 2, 2, tuple),
	fn("tupleMultiplyByNumber", 2, 2, tuple),
	fn("tupleDivideByNumber", 2, 2, tuple),
	fn("tupleNegate", 1, 1, tuple),
	fn("tupleHammingDistance", 2, 2, integer),
	fn("tupleToNameValuePairs", 1, 1, arrayWith(hogql.TupleKind)),
	fn("dotProduct", 2, 2, float),
)

var mapFunctions = family("Maps",
	fn("map", 0, Any, mapping),
	fn("mapFromArrays", 2, 2, mapping),
	fn("mapAdd", 2, Any, mapping),
	fn("mapSubtract", 2, Any, mapping),
	fn("mapPopulateSeries", 1, 3, mapping),
	fn("mapContains", 2, 2, boolean.never()),
	fn("mapContainsKeyLike", 2, 2, boolean),
	fn("mapExtractKeyLike", 2, 2, mapping),
	fn("mapKeys", 1, 1, array),
	fn("mapValues", 1, 1, array),
	fn("mapApply", 2, 2, mapping).rule(RuleLambda),
	fn("mapFilter", 2, 2, mapping).rule(RuleLambda),
	fn("mapUpdate", 2, 2, mapping),
)
