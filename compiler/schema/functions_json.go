package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var jsonFunctions = family("JSON",
	fn("isValidJSON", 1, 1, boolean),
	fn("JSONHas", 1, Any, boolean).path(PathExists),
	fn("JSONLength", 1, Any, integer).path(PathRaw),
	fn("JSONArrayLength", 1, 1, integer.orNull()),
	fn("JSONType", 1, Any, text).path(PathRaw),
	fn("JSONExtract", 2, Any, unknown).typeLast().path(PathTyped),
	fn("JSONExtractUInt", 1, Any, integer).path(PathScalar),
	fn("JSONExtractInt", 1, Any, integer).path(PathScalar),
	fn("JSONExtractFloat", 1, Any, float).path(PathScalar),
	fn("JSONExtractBool", 1, Any, boolean).path(PathScalar),
	fn("JSONExtractString", 1, Any, text).path(PathText),
	fn("JSONExtractKey", 1, Any, text).as("JSONKey"),
	fn("JSONExtractKeys", 1, Any, arrayWith(hogql.String)).path(PathRaw),
	fn("JSONExtractRaw", 1, Any, text).path(PathRaw),
	fn("JSONExtractArrayRaw", 1, Any, arrayWith(hogql.String)).path(PathRaw),
	fn("JSONExtractKeysAndValues", 2, 3, arrayWith(hogql.TupleKind)).typeLast().path(PathTyped),
	fn("JSONExtractKeysAndValuesRaw", 1, Any, arrayWith(hogql.TupleKind)).path(PathRaw),
	fn("JSON_VALUE", 2, Any, text),
)
