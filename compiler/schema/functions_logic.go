package schema

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

var logicFunctions = family("Comparison and logic",
	fn("equals", 2, 2, boolean.never()).compares(hogql.Equals).operator(infix("=", LevelCompare)),
	fn("notEquals", 2, 2, boolean.never()).compares(hogql.NotEquals).operator(infix("!=", LevelCompare)),
	fn("less", 2, 2, boolean.never()).compares(hogql.Less).operator(infix("<", LevelCompare)),
	fn("lessOrEquals", 2, 2, boolean.never()).compares(hogql.LessOrEquals).operator(infix("<=", LevelCompare)),
	fn("greater", 2, 2, boolean.never()).compares(hogql.Greater).operator(infix(">", LevelCompare)),
	fn("greaterOrEquals", 2, 2, boolean.never()).compares(hogql.GreaterOrEquals).operator(infix(">=", LevelCompare)),
	fn("like", 2, 2, boolean.never()).compares(hogql.Like).operator(infix("LIKE", LevelCompare)),
	fn("notLike", 2, 2, boolean.never()).compares(hogql.NotLike).operator(infix("NOT LIKE", LevelCompare)),
	fn("ilike", 2, 2, boolean.never()).compares(hogql.ILike).operator(infix("ILIKE", LevelCompare)),
	fn("notILike", 2, 2, boolean.never()).compares(hogql.NotILike).operator(infix("NOT ILIKE", LevelCompare)),
	fn("in", 2, 2, boolean.never()).compares(hogql.In).operator(set("IN")),
	fn("notIn", 2, 2, boolean.never()).compares(hogql.NotIn).operator(set("NOT IN")),
	fn("and", 2, Any, boolean).rule(RuleAnd).operator(infix("AND", LevelAnd)),
	fn("or", 2, Any, boolean).rule(RuleOr).operator(infix("OR", LevelOr)),
	fn("not", 1, 1, boolean).rule(RuleNot).fold().operator(prefix("NOT", LevelNot)),
	fn("xor", 2, Any, boolean),
	fn("exists", 1, 1, boolean.never()).as("greater").rule(RuleExists),
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
