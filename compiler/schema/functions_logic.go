package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var logicFunctions = family("Comparison and logic",
	fn("equals", 2, 2, boolean.never()).compares(hogql.Equals),
	fn("notEquals", 2, 2, boolean.never()).compares(hogql.NotEquals),
	fn("less", 2, 2, boolean.never()).compares(hogql.Less),
	fn("lessOrEquals", 2, 2, boolean.never()).compares(hogql.LessOrEquals),
	fn("greater", 2, 2, boolean.never()).compares(hogql.Greater),
	fn("greaterOrEquals", 2, 2, boolean.never()).compares(hogql.GreaterOrEquals),
	fn("like", 2, 2, boolean.never()).compares(hogql.Like),
	fn("notLike", 2, 2, boolean.never()).compares(hogql.NotLike),
	fn("ilike", 2, 2, boolean.never()).compares(hogql.ILike),
	fn("notILike", 2, 2, boolean.never()).compares(hogql.NotILike),
	fn("in", 2, 2, boolean.never()).compares(hogql.In),
	fn("notIn", 2, 2, boolean.never()).compares(hogql.NotIn),
	fn("and", 2, Any, boolean).rule(RuleAnd),
	fn("or", 2, Any, boolean).rule(RuleOr),
	fn("not", 1, 1, boolean).rule(RuleNot).fold(),
	fn("xor", 2, Any, boolean),
	fn("if", 3, 3, unknown).rule(RuleIf).fold(),
	fn("multiIf", 3, Any, unknown).rule(RuleIf),
	fn("least", 2, 2, same).fold(),
	fn("greatest", 2, 2, same).fold(),
)

var nullFunctions = family("NULL",
	fn("isNull", 1, 1, boolean.never()).fold(),
	fn("isNotNull", 1, 1, boolean.never()),
	fn("ifNull", 2, 2, unknown).rule(RuleCoalesce).fold(),
	fn("nullIf", 2, 2, same.orNull()).fold(),
	fn("coalesce", 1, Any, unknown).rule(RuleCoalesce).fold(),
	fn("assumeNotNull", 1, 1, same.never()),
	fn("toNullable", 1, 1, same.orNull()),
)
