package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var jsonFunctions = family("JSON",
	fn("isValidJSON", 1, 1, boolean),
	fn("JSONHas", 1, Any, boolean),
	fn("JSONLength", 1, Any, integer),
	fn("JSONArrayLength", 1, 1, integer.orNull()),
	fn("JSONType", 1, Any, text),
	fn("JSONExtract", 2, Any, unknown).typeLast(),
	fn("JSONExtractUInt", 1, Any, integer),
	fn("JSONExtractInt", 1, Any, integer),
	fn("JSONExtractFloat", 1, Any, float),
	fn("JSONExtractBool", 1, Any, boolean),
	fn("JSONExtractString", 1, Any, text),
	fn("JSONExtractKey", 1, Any, text).as("JSONKey"),
	fn("JSONExtractKeys", 1, Any, arrayWith(hogql.String)),
	fn("JSONExtractRaw", 1, Any, text),
	fn("JSONExtractArrayRaw", 1, Any, arrayWith(hogql.String)),
	fn("JSONExtractKeysAndValues", 2, 3, arrayWith(hogql.TupleKind)).typeLast(),
	fn("JSONExtractKeysAndValuesRaw", 1, Any, arrayWith(hogql.TupleKind)),
	fn("JSON_VALUE", 2, Any, text),
)
