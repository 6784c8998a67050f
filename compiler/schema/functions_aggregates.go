package schema

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// The combinators of groups of aggregates.
var (
	withIf    = []string{"If"}
	withState = []string{"If", "State", "Merge", "StateIf", "MergeIf"}
)

var state = Result{Kind: hogql.State, Nulls: NullsNever}

var basicAggregates = family("Aggregates",
	agg("count", 0, 1, integer.never(), allChains...).rule(RuleCount).fold().reduces("", "Map", "MapState"),
	agg("countDistinct", 1, 1, integer.never(), allChains...).as("uniqExact"),
	agg("sum", 1, 1, same, append(slices.Clone(allChains), "ForEachState", "ForEachMerge")...).fold().reduces("").numbers(),
	agg("min", 1, 1, same, allChains...).fold().reduces(""),
	agg("max", 1, 1, same, allChains...).fold().reduces(""),
	agg("avg", 1, 1, float, allChains...).fold().arrayOrNull().reduces("", "State").numbers(),
	agg("_avg", 1, 1, float, "IfForEach", "ArrayForEach").as("avg"),
	agg("avgWeighted", 2, 2, float, withIf...).numbers(),
	agg("sumWithOverflow", 1, 1, same, withIf...).numbers(),
	agg("deltaSum", 1, 1, same.never(), withIf...).numbers(),
	agg("deltaSumTimestamp", 2, 2, same.never(), withIf...).numbers(),
	aggMacro("every", 1, "toBool(min({a}))"),
)

var anyAggregates = family("Aggregates: one value",
	agg("any", 1, 1, same, withIf...),
	agg("anyHeavy", 1, 1, same, withIf...),
	agg("anyLast", 1, 1, same, withIf...),
	agg("argMin", 2, 2, same, withState...),
	agg("argMax", 2, 2, same, withState...),
)

var arrayAggregates = family("Aggregates: arrays",
	agg("groupArray", 1, 1, arrayOf(1), withIf...).params(0, 1).gathers(GathersAll),
	agg("_groupArray", 1, 1, arrayOf(1), "IfForEach").as("groupArray").gathers(GathersAll),
	agg("array_agg", 1, 1, arrayOf(1)).as("groupArray").gathers(GathersAll),
	agg("groupUniqArray", 1, 1, arrayOf(1), withIf...).params(0, 1).gathers(GathersDistinct),
	agg("groupUniqArrayArray", 1, 1, sameArray, withIf...).params(0, 1),
	agg("groupArrayInsertAt", 2, 2, arrayOf(1), withIf...).params(0, 2),
	agg("groupArrayMovingAvg", 1, 1, arrayOf(1), withIf...).params(0, 1).numbers(),
	agg("groupArrayMovingSum", 1, 1, arrayOf(1), withIf...).params(0, 1).numbers(),
	agg("groupArraySample", 1, 1, arrayOf(1), withIf...).params(1, 2),
	agg("topK", 1, 1, arrayOf(1)).params(1, 1),
	agg("_topK", 1, 1, arrayOf(1), withIf...).as("topK").params(1, 1),
	aggMacro("string_agg", 2, "arrayStringConcat(groupArray({a}), {b})"),
	aggMacro("json_agg", 1, "toJSONString(groupArray({a}))"),
)

var distinctAggregates = family("Aggregates: distinct values",
	agg("uniq", 1, Any, integer.never(), withState...).reduces("", "State"),
	agg("uniqExact", 1, Any, integer.never(), withState...),
	agg("uniqHLL12", 1, Any, integer.never(), withState...),
	agg("uniqTheta", 1, Any, integer.never(), withState...).as("uniq"),
)

var statisticsAggregates = family("Aggregates: statistics",
	agg("stddevPop", 1, 1, float, withIf...).numbers(),
	agg("stddevSamp", 1, 1, float, withIf...).numbers(),
	agg("varPop", 1, 1, float, withIf...).numbers(),
	agg("varSamp", 1, 1, float, withIf...).numbers(),
	agg("skewPop", 1, 1, float, withIf...).numbers(),
	agg("skewSamp", 1, 1, float, withIf...).numbers(),
	agg("kurtPop", 1, 1, float, withIf...).numbers(),
	agg("kurtSamp", 1, 1, float, withIf...).numbers(),
	agg("covarPop", 2, 2, float, withIf...).numbers(),
	agg("covarSamp", 2, 2, float, withIf...).numbers(),
	agg("corr", 2, 2, float, withIf...).numbers(),
	agg("simpleLinearRegression", 2, 2, tuple, withIf...).numbers(),
	agg("contingency", 2, 2, float, withIf...),
	agg("cramersV", 2, 2, float, withIf...),
	agg("cramersVBiasCorrected", 2, 2, float, withIf...),
	agg("theilsU", 2, 2, float, withIf...),
	agg("maxIntersections", 2, 2, integer, withIf...),
	agg("maxIntersectionsPosition", 2, 2, same, withIf...),
)

var quantileAggregates = family("Aggregates: quantiles",
	agg("quantile", 1, 1, float, withIf...).params(1, 1).numbers(),
	agg("quantileExact", 1, 1, same).params(1, 1).numbers(),
	agg("_quantileExact", 1, 1, same, withIf...).as("quantileExact").params(1, 1).numbers(),
	agg("_quantileInclusive", 1, 1, float, "If", "IfForEach", "ArrayForEach").as("quantileExactInclusive").params(1, 1),
	agg("quantiles", 1, 1, array, withState...).params(1, Any).numbers(),
	agg("median", 1, 1, float, allChains...).arrayOrNull().reduces("").numbers(),
	agg("medianExact", 1, 1, same, withIf...).numbers(),
	agg("medianExactLow", 1, 1, same, withIf...),
	agg("medianExactHigh", 1, 1, same, withIf...),
	agg("medianExactWeighted", 2, 2, same, withIf...),
	agg("medianTiming", 1, 1, float, withIf...).numbers(),
	agg("medianTimingWeighted", 2, 2, float, withIf...),
	agg("medianDeterministic", 2, 2, float, withIf...),
	agg("medianTDigest", 1, 1, float, withIf...).numbers(),
	agg("medianTDigestWeighted", 2, 2, float, withIf...),
	agg("medianBFloat16", 1, 1, float, withIf...).numbers(),
	agg("medianBFloat16Weighted", 2, 2, float, withIf...),
)

var mapAggregates = family("Aggregates: maps",
	agg("sumMap", 1, 2, unknown.never(), withState...).reduces("", "State"),
	agg("minMap", 1, 2, unknown.never(), withState...).reduces("", "State"),
	agg("maxMap", 1, 2, unknown.never(), withState...).reduces("", "State"),
	agg("avgMap", 1, 1, mapping, withState...).reduces("", "State"),
	agg("uniqMap", 1, 1, mapping, withState...).reduces("", "State"),
)

var bitAggregates = family("Aggregates: bits",
	agg("groupBitAnd", 1, 1, integer, withIf...),
	agg("groupBitOr", 1, 1, integer, withIf...),
	agg("groupBitXor", 1, 1, integer, withIf...),
	agg("groupBitmap", 1, 1, integer, "If", "State"),
	agg("groupBitmapAnd", 1, 1, integer.never(), "If", "State"),
	agg("groupBitmapOr", 1, 1, integer.never(), "If", "State"),
	agg("groupBitmapXor", 1, 1, integer.never(), "If", "State"),
)

var otherAggregates = family("Aggregates: sequences",
	agg("windowFunnel", 1, 99, integer).params(1, Any),
	agg("_windowFunnel", 1, 99, integer, withIf...).as("windowFunnel").params(1, Any),
)
