package schema

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Common result types.
var (
	unknown  = Result{}
	boolean  = Result{Kind: hogql.Bool}
	integer  = Result{Kind: hogql.Int}
	float    = Result{Kind: hogql.Float}
	text     = Result{Kind: hogql.String}
	uuid     = Result{Kind: hogql.UUID}
	date     = Result{Kind: hogql.Date}
	dateTime = Result{Kind: hogql.DateTime}
	interval = Result{Kind: hogql.IntervalKind}
	tuple    = Result{Kind: hogql.TupleKind}
	mapping  = Result{Kind: hogql.MapKind, Nulls: NullsNever}
	array    = Result{Kind: hogql.ArrayKind, Nulls: NullsNever}

	// same is the result type of a function that returns the type of its first argument, sameArray if that is an array.
	same      = Result{Like: 1}
	sameArray = same.never()
)

// arrayWith is the result of a function that always returns an array with elements of the same kind.
func arrayWith(elem hogql.Kind) Result {
	return Result{Kind: hogql.ArrayKind, Elem: elem, Nulls: NullsNever}
}

// elementOf is the result of a function that returns an element of its n-th argument, from 1.
func elementOf(n int) Result { return Result{ElemOf: n} }

// arrayOf is the result of a function that collects values of its n-th argument, from 1, in an array.
func arrayOf(n int) Result { return Result{Kind: hogql.ArrayKind, ArrayOf: n, Nulls: NullsNever} }

func (r Result) never() Result  { r.Nulls = NullsNever; return r }
func (r Result) orNull() Result { r.Nulls = NullsAlways; return r }

// fn starts the entry of a scalar function.
func fn(name string, minArgs, maxArgs int, result Result) Function {
	return Function{Name: name, MinArgs: minArgs, MaxArgs: maxArgs, Result: result}
}

// agg starts the entry of an aggregate function; chains are the combinators allowed after its name.
func agg(name string, minArgs, maxArgs int, result Result, chains ...string) Function {
	return Function{Name: name, MinArgs: minArgs, MaxArgs: maxArgs, Result: result, Aggregate: true, Chains: chains}
}

// window starts the entry of a function that needs OVER.
func window(name string, minArgs, maxArgs int, result Result) Function {
	return Function{Name: name, MinArgs: minArgs, MaxArgs: maxArgs, Result: result, WindowOnly: true}
}

// macro starts the entry of a function that is replaced by other HogQL; its arguments are {a}, {b}, {c} and so on.
func macro(name string, args int, hogQL string) Function {
	return Function{Name: name, MinArgs: args, MaxArgs: args, Rule: RuleMacro, Macro: hogQL}
}

// aggMacro starts the entry of a macro that is an aggregate.
func aggMacro(name string, args int, hogQL string) Function {
	f := macro(name, args, hogQL)
	f.Aggregate = true
	return f
}

func (f Function) as(native string) Function { f.Native = native; return f }
func (f Function) fold() Function            { f.Fold = true; return f }
func (f Function) volatile() Function        { f.Volatile = true; return f }
func (f Function) zone(from int) Function    { f.Zone, f.ZoneAt = from, from; return f }
func (f Function) zoneAt(arg int) Function   { f.ZoneAt = arg; return f }
func (f Function) orOrigin() Function        { f.OriginAt = true; return f }
func (f Function) utc() Function             { f.UTC = true; return f }
func (f Function) typeLast() Function        { f.TypeLast = true; return f }
func (f Function) named(list *Names, at ...int) Function {
	f.Names, f.NamesAt = list, at
	return f
}
func (f Function) keepsText() Function                  { f.KeepsText = true; return f }
func (f Function) gathers(what Gathers) Function        { f.Gathers = what; return f }
func (f Function) compares(op hogql.CompareOp) Function { f.Rule, f.Op = RuleCompare, op; return f }
func (f Function) path(p Path) Function                 { f.Rule, f.Path = RuleJSON, p; return f }
func (f Function) lookup(l Lookup) Function             { f.Rule, f.Lookup = RuleLookup, l; return f }
func (f Function) operator(o Operator) Function         { f.Operator = &o; return f }
func (f Function) wholeDays() Function                  { f.WholeDays = true; return f }
func (f Function) arrayOrNull() Function                { f.ArrayOrNull = true; return f }
func (f Function) reduces(chains ...string) Function    { f.Reduces = chains; return f }
func (f Function) lambdaElems() Function                { f.LambdaElems = true; return f }
func (f Function) lambdaValue() Function                { f.LambdaValue = true; return f }
func (f Function) lambdaFolds() Function                { f.LambdaFolds = true; return f }
func (f Function) missing(hogQL string) Function        { f.Missing = hogQL; return f }
func (f Function) rule(r Rule) Function                 { f.Rule = r; return f }
func (f Function) extra(constants ...any) Function      { f.Extra = constants; return f }
func (f Function) casts(to ...string) Function          { f.Casts = to; return f }
func (f Function) params(minimum, maximum int) Function {
	f.MinParams, f.MaxParams = minimum, maximum
	return f
}

// ofNumbers marks the arguments of all rows as numbers.
func ofNumbers(rows []Function) []Function {
	for i := range rows {
		rows[i] = rows[i].numbers()
	}
	return rows
}

// numbers marks all arguments as numbers, except the condition of If.
func (f Function) numbers() Function { f.Numbers = f.MinArgs; return f }

// infix and set return operators with two operands, prefix with one.
func infix(sign string, l Level) Operator { return Operator{Sign: sign, Level: l, Operands: 2} }

func set(sign string) Operator {
	return Operator{Sign: sign, Level: LevelCompare, Operands: 2, Set: true}
}
func prefix(sign string, l Level) Operator { return Operator{Sign: sign, Level: l, Operands: 1} }

func family(name string, rows ...Function) []Function {
	for i := range rows {
		rows[i].Family = name
	}
	return rows
}

//go:generate go run ./internal/gendocs

// table is every function that is not derived, family by family.
var table = slices.Concat(
	arithmeticFunctions,
	mathFunctions,
	roundingFunctions,
	logicFunctions,
	nullFunctions,
	conversionFunctions,
	dateParsingFunctions,
	datePartFunctions,
	dateTruncationFunctions,
	dateArithmeticFunctions,
	clockFunctions,
	timeWindowFunctions,
	stringFunctions,
	searchFunctions,
	replaceFunctions,
	jsonFunctions,
	urlFunctions,
	arrayFunctions,
	tupleFunctions,
	mapFunctions,
	bitFunctions,
	bitmapFunctions,
	vectorFunctions,
	geoFunctions,
	addressFunctions,
	otherFunctions,
	channelFunctions,
	botFunctions,
	basicAggregates,
	anyAggregates,
	arrayAggregates,
	distinctAggregates,
	statisticsAggregates,
	quantileAggregates,
	mapAggregates,
	bitAggregates,
	otherAggregates,
	windowFunctions,
)
