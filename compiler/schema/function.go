// Package schema describes the virtual database that queries see, as data: tables, fields, functions, and how a project's properties are typed and
// stored.
package schema

import (
	"fmt"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Any is the maximum argument count of a function that takes any number.
const Any = -1

// Function is one entry of the table of functions (contract: hogql.md, section 14). Functions without an entry cannot be called, and a ClickHouse
// name that is in no entry cannot be printed. Entries are shared: do not modify them.
type Function struct {
	Name    string // as callers write it
	Native  string // ClickHouse's name; empty if it is the same
	MinArgs int
	MaxArgs int // Any: no upper bound
	// MinParams and MaxParams bound the first list of f(p)(x).
	MinParams, MaxParams int
	Fold                 bool // the name is case-insensitive
	Aggregate            bool
	WindowOnly           bool // needs OVER
	Volatile             bool // calls with the same arguments may differ: now, today, rand
	// Extra are constants appended to the arguments: toInt(x) is accurateCastOrNull(x, 'Int64').
	Extra []any
	// Zone is the number of arguments from which the caller has given the time zone; with fewer, the project's zone is appended. 0 if the function
	// takes no zone.
	Zone int
	// ZoneAt is the argument, from 1, that is a time zone if given: a constant name that LookupZone finds. Every function that takes a zone must set
	// it, or a caller's text would reach the engine's zone loader, which opens files. 0 if there is none.
	ZoneAt int
	// OriginAt reports that the argument at ZoneAt may also be a time: the origin of toStartOfInterval.
	OriginAt bool
	// UTC reports that the result is a time in UTC, which ClickHouse makes from a number.
	UTC bool
	// TypeLast reports that the last argument is the text of a type, a constant that typetext parses.
	TypeLast bool
	// NamesAt are the arguments, from 1, that must be one of Names.
	NamesAt []int
	Names   *Names
	// Casts are ClickHouse conversions applied to the arguments, by position and empty for none: the engine only accepts UInt32 as the second argument
	// of timeSlots, and a constant has the smallest type that it fits into.
	Casts []string
	// KeepsText reports that the first argument is a property's text, whatever its declared type.
	KeepsText bool
	// Op is the equivalent operator of a function with RuleCompare.
	Op hogql.CompareOp
	// Operator is how ClickHouse writes a call; nil if the function is not an operator.
	Operator *Operator
	// WholeDays reports that the result is an interval of whole days: a date plus it stays a date.
	WholeDays bool
	// Path says how a function with RuleJSON reads the value at the end of its keys.
	Path Path
	// Lookup is the dictionary of a function with RuleLookup.
	Lookup Lookup
	// Numbers is how many of the first arguments must be numbers.
	Numbers int
	// Bot is what a function with RuleBot returns about a user agent.
	Bot BotFact
	// Missing is the HogQL text of the last argument's default; NULL where that text has no meaning.
	Missing string
	// LambdaElems reports that the result is an array of the lambda's results, LambdaFolds that the lambda's first parameter is an accumulator,
	// whose initial value is the last argument.
	LambdaElems, LambdaFolds bool
	// LambdaValue reports that the result has the type of the lambda's results, if there is a lambda.
	LambdaValue bool
	// Gathers says what an aggregate collects in an array, which may then have ORDER BY.
	Gathers Gathers
	// Conditional reports that the last argument is a condition: sumIf.
	Conditional bool
	// Macro is the HogQL text that replaces a call, with its arguments as {a}, {b}, {c} and so on; set if Rule is RuleMacro. See Expand.
	Macro  string
	Result Result
	Rule   Rule
	// Family is the heading that the function is documented under.
	Family string
	// Chains are the combinators that may follow the name of an aggregate: If, StateIf.
	Chains []string
	// Reduces are the chains, "" for none, that arrayReduce accepts after the name of an aggregate.
	Reduces []string
	// ArrayOrNull reports that the aggregate of no rows, with Array, is NULL: it would be NaN.
	ArrayOrNull bool
	// Base is the aggregate that this one is derived from by combinators: sum for sumIf; empty for entries that are not derived.
	Base string
}

// ClickHouse returns the name that the printer writes; empty for a macro, which has none.
func (f *Function) ClickHouse() string {
	switch {
	case f.Rule == RuleMacro:
		return ""
	case f.Native == "":
		return f.Name
	}
	return f.Native
}

// Windowed reports whether the value of a call depends on the rows around it, whether or not OVER is written.
func (f *Function) Windowed() bool {
	return f.WindowOnly || f.Rule == RuleMacro && strings.Contains(f.Macro, " over ")
}

// Hidden reports whether the function can be called but is not documented: its name starts with an underscore.
func (f *Function) Hidden() bool { return strings.HasPrefix(f.Name, "_") }

// CheckArity returns what is wrong with the number of arguments and parameters of a call, in PostHog's words (hogql.md, section 16), or "" if nothing
// is. For f(x), params is 0; for f(p)(x), it is the length of the first list.
func (f *Function) CheckArity(args, params int) string {
	if wrong := f.checkCount(params, f.MinParams, f.MaxParams, "parameter"); wrong != "" {
		return wrong
	}
	return f.checkCount(args, f.MinArgs, f.MaxArgs, "argument")
}

func (f *Function) checkCount(found, low, high int, noun string) string {
	var bound string
	want := low
	switch {
	case found >= low && (high == Any || found <= high):
		return ""
	case low == high:
	case found < low:
		bound = "at least "
	default:
		bound, want = "at most ", high
	}
	term := "Function"
	if f.Aggregate {
		term = "Aggregation"
	}
	plural := "s"
	if want == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s '%s' expects %s%d %s%s, found %d", term, f.Name, bound, want, noun, plural, found)
}

// Result says how the type of a call depends on its arguments. At most one of Like, ElemOf and ArrayOf is set; they count arguments from 1, not
// counting the lambda if Rule is RuleLambda.
type Result struct {
	Kind    hogql.Kind // of the result, unless Like or ElemOf is set; Float also for numbers of a varying kind
	Elem    hogql.Kind // of the elements of an array, if that is always the same
	Like    int        // the result has the type of this argument
	ElemOf  int        // the result has the type of the elements of this argument, an array
	ArrayOf int        // the result is an array whose elements have the type of this argument; aggregates skip NULLs
	Nulls   Nulls
}

// Nulls says when a call returns NULL.
type Nulls uint8

// The ways in which functions handle NULL.
const (
	NullsPropagate Nulls = iota // if an argument is NULL: ClickHouse's default
	NullsNever
	NullsAlways  // may be NULL whatever the arguments, as in the …OrNull functions
	NullsButLast // if an argument except the last is NULL: the condition of sumIf is then false
)

// Operator is how ClickHouse writes a function as an operator, which it converts back to the same function.
type Operator struct {
	Sign     string
	Level    Level
	Operands int  // 2: the sign is between them; 1: it comes first
	Set      bool // the right operand is a set
}

// Level is how tightly an operator binds. An operand is put in parentheses unless it binds more tightly than its operator.
type Level uint8

// The levels, loosest first.
const (
	LevelWhole Level = iota // whole expressions: no parentheses needed
	LevelOr
	LevelAnd
	LevelNot
	LevelCompare // does not chain; the levels after it, and AND and OR, are left-associative
	LevelSum
	LevelProduct
	LevelTight // names, literals, calls
)

// Gathers says which values an aggregate collects in an array.
type Gathers uint8

// What aggregates collect.
const (
	GathersNothing Gathers = iota
	GathersAll
	GathersDistinct
)

// Path says how a function reads the value at the end of a path of keys in a document.
type Path uint8

// The ways to read it.
const (
	PathRaw    Path = iota // as JSON
	PathTyped              // as JSON, with a type after the keys
	PathScalar             // as a value that is neither an object nor an array
	PathText               // as text, empty if there is none
	PathExists             // not at all: only whether there is a value
)

// Lookup says how a name is looked up in the channel dictionaries.
type Lookup struct {
	// Kind reports that the name is a source, whose kind is looked up first.
	Kind bool
	// In maps the name, or the kind of the source, to its meaning; nil for the kind itself.
	In *ChannelDictionary
	// Otherwise is the meaning of all other names; NULL if it is empty.
	Otherwise string
}

// Rule is the rewrite that a call needs in addition to its new name. The resolver has one file for each.
type Rule uint8

// The rules. An entry's Native, Extra, Casts and Zone apply under all of them, unless documented otherwise.
const (
	RuleRename  Rule = iota // only the name changes
	RuleCompare             // equals, less, like, in …: NULL-safe as their operators are
	RuleAnd                 // folds constants, like the next two
	RuleOr
	RuleNot
	RuleToFloat     // a number in a property is read as it is stored, and stays what it is
	RuleJSON        // the keys become part of reading a document in ClickHouse's JSON type: see Path
	RulePlainText   // a property as text, whatever its declared type
	RuleConcat      // NULL counts as '', other types go through toString
	RuleToDateTime  // depends on the argument being a constant, a string or a time
	RuleToDate      // toDate of a time, else toDateOrNull
	RuleDateTime64  // the scale, second, is 6 unless given; the zone comes after it
	RuleParseTime   // f(x[, zone]) is Native(x, 6, zone)
	RuleNow         // now64(6, zone)
	RuleStartOfWeek // the project's first day of the week is the default mode
	RuleInterval    // the first argument is a constant that names a Unit: dateDiff, age, dateName
	RuleTruncate    // the same, and the result is a date if the unit is longer than a day: dateTrunc
	RuleIntervals   // f(time, interval[, zone or origin]): the result is a date if the interval's unit is longer than a day, unless there is an origin
	RuleDatePart    // date_part('unit', x) is the Part of the Unit: toYear(x)
	RuleDateAdd     // f(time, interval) is Native(time, interval), f('unit', n, time) is Native(time, interval of n units)
	RuleTumble      // the first argument is taken as plain DateTime; if it is the only one it is a window, and stays
	RuleLagLead     // lag and lead as in PostgreSQL
	RuleCount       // count(*) and count(DISTINCT x)
	RuleArrayReduce // the first argument is a constant that ReducibleBy accepts
	RuleLambda      // the first argument may be a lambda over the elements of the arrays after it
	RuleIf          // the result has the type of the branches
	RuleCoalesce    // the result is not nullable if one argument is not
	RuleArithmetic  // plus, minus, …: typed as their operators are
	RuleDecimal     // toDecimal(x, scale) is accurateCastOrNull(x, 'Decimal64(scale)'), the scale a constant from 0 to 18
	RuleMacro       // the call is replaced by the result of Expand
	RuleTag         // a tag for user interfaces: Extra are its name and its attributes' names, in the order of the arguments
	RuleFuzzy       // f(text, distance, patterns), with short constant distance and patterns: the engine caches what it builds from them
	RuleLookup      // a lookup in a dictionary of names
	RuleBot         // a search for a bot in a user agent
	RuleAddress     // a first argument that is not an address becomes one that no range contains
	RuleExists      // exists(query) reports whether the query has rows
	RuleSurvey      // getSurveyResponse(index[, id[, multiple]])
	RuleSurveySent  // uniqueSurveySubmissionsFilter(survey[, from[, to]])
)
