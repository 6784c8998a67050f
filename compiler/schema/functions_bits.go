package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var bitFunctions = family("Bits",
	fn("bitAnd", 2, 2, integer),
	fn("bitOr", 2, 2, integer),
	fn("bitXor", 2, 2, integer),
	fn("bitNot", 1, 1, integer),
	fn("bitShiftLeft", 2, 2, integer),
	fn("bitShiftRight", 2, 2, integer),
	fn("bitRotateLeft", 2, 2, integer),
	fn("bitRotateRight", 2, 2, integer),
	fn("bitSlice", 3, 3, text),
	fn("bitTest", 2, 2, boolean),
	fn("bitTestAll", 3, Any, boolean),
	fn("bitTestAny", 3, Any, boolean),
	fn("bitCount", 1, 1, integer),
	fn("bitHammingDistance", 2, 2, integer),
	fn("_bitPositionsToArray", 1, 1, arrayWith(hogql.Int)).as("bitPositionsToArray"),
)

var bitmap = Result{Kind: hogql.State, Nulls: NullsNever}

var bitmapFunctions = family("Bitmaps",
	fn("bitmapBuild", 1, 1, bitmap),
	fn("bitmapToArray", 1, 1, arrayWith(hogql.Int)),
	fn("bitmapCardinality", 1, 1, integer),
	fn("bitmapMin", 1, 1, integer),
	fn("bitmapMax", 1, 1, integer),
	fn("bitmapContains", 2, 2, boolean),
	fn("bitmapHasAny", 2, 2, boolean),
	fn("bitmapHasAll", 2, 2, boolean),
	fn("bitmapAnd", 2, 2, bitmap),
	fn("bitmapOr", 2, 2, bitmap),
	fn("bitmapXor", 2, 2, bitmap),
	fn("bitmapAndnot", 2, 2, bitmap),
	fn("bitmapAndCardinality", 2, 2, integer),
	fn("bitmapOrCardinality", 2, 2, integer),
	fn("bitmapXorCardinality", 2, 2, integer),
	fn("bitmapAndnotCardinality", 2, 2, integer),
	fn("bitmapSubsetInRange", 3, 3, bitmap),
	fn("bitmapSubsetLimit", 3, 3, bitmap),
	fn("subBitmap", 3, 3, bitmap),
	fn("bitmapTransform", 3, 3, bitmap),
)
