// Package schema holds the virtual database that queries see, as data: tables, fields, functions, and how a project's
// properties are typed and stored.
package schema

import (
	"fmt"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Any is the argument count of a function that takes any number.
const Any = -1

// Function is one row of the table of functions (contract: hogql.md, section 14). A function that has no row cannot be
// called, and a ClickHouse name that no row holds cannot be printed. Rows are shared: never change one.
type Function struct {
	Name    string // as its caller writes it
	Native  string // ClickHouse's name; empty when it is the same
	MinArgs int
	MaxArgs int // Any: no upper bound
	// MinParams and MaxParams bound the first list of f(p)(x).
	MinParams, MaxParams int
	Fold                 bool // the name's case does not matter
	Aggregate            bool
	WindowOnly           bool // needs OVER
	Volatile             bool // calls with the same arguments may differ: now, today, rand
	// Extra are constants put after the arguments: toInt(x) is accurateCastOrNull(x, 'Int64').
	Extra []any
	// Zone is the number of arguments from which on the caller has given the time zone; with fewer, the project's zone is
	// put last. 0: the function takes no zone.
	Zone int
	// ZoneAt is the argument, from 1, that is a time zone where the caller gives it: the constant name of one that
	// LookupZone finds. Every function that takes a zone has it, or its caller's text would reach the engine's loader of
	// zones, which opens files. 0: no argument is one.
	ZoneAt int
	// OriginAt says that the argument at ZoneAt may also be a time: the origin of toStartOfInterval.
	OriginAt bool
	// TypeLast says that the last argument is the text of a type, a constant that typetext reads.
	TypeLast bool
	// NamesAt are the arguments, from 1, that must be one of Names.
	NamesAt []int
	Names   *Names
	// Casts are ClickHouse conversions put around the arguments, by position and empty for none: the engine takes only
	// UInt32 as the second argument of timeSlots, and a constant has the least type that holds it.
	Casts []string
	// KeepsText says that the first argument is a property's text whatever its declared type is.
	KeepsText bool
	// Op is the operator that a function with RuleCompare stands for.
	Op hogql.CompareOp
	// Operator is how ClickHouse writes a call; nil for a function that is not an operator.
	Operator *Operator
	// WholeDays says that the result is an interval of whole days: a date with it added stays a date.
	WholeDays bool
	// Path says how a function with RuleJSON reads what lies at the end of its keys.
	Path Path
	// Lookup is the dictionary of a function with RuleLookup.
	Lookup Lookup
	// Numbers is how many arguments, from the first on, must be numbers.
	Numbers int
	// Bot is what a function with RuleBot says about a user agent.
	Bot BotFact
	// Missing is the HogQL text of the last argument where a call does not give it; NULL where that means nothing.
	Missing string
	// LambdaElems says that the result is an array of what the lambda gives, LambdaFolds that the lambda takes an accumulator first, whose
	// initial value is the last argument.
	LambdaElems, LambdaFolds bool
	// Gathers says what an aggregate collects in an array, which then may have ORDER BY.
	Gathers Gathers
	// Conditional says that the last argument is a condition: sumIf.
	Conditional bool
	// Macro is the HogQL text that a call stands for, with its arguments as {a}, {b}, {c} and so on; set where Rule is
	// RuleMacro. See Expand.
	Macro  string
	Result Result
	Rule   Rule
	// Family is the heading under which the function is documented.
	Family string
	// Chains are the combinators that may follow the name of an aggregate: If, StateIf.
	Chains []string
	// Reduces are the chains, "" for none, with which arrayReduce takes the name of an aggregate.
	Reduces []string
	// Base is the aggregate of which combinators made this one: sum for sumIf; empty for rows of their own.
	Base string
}

// ClickHouse returns the name that the printer writes; empty for a macro, which has none of its own.
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

// Hidden reports whether the function is callable but not advertised: its name starts with an underscore.
func (f *Function) Hidden() bool { return strings.HasPrefix(f.Name, "_") }

// CheckArity returns what is wrong with a call of so many arguments and parameters, in PostHog's words (hogql.md,
// section 16), or "" when nothing is. For f(x) params is 0, for f(p)(x) the length of the first list.
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

// Result says how the type of a call follows from its arguments. At most one of Like, ElemOf and ArrayOf is set; they
// count arguments from 1, and where Rule is RuleLambda the lambda does not count.
type Result struct {
	Kind    hogql.Kind // of the result, unless Like or ElemOf is set; Float also for numbers of a kind that depends
	Elem    hogql.Kind // of the elements of an array, where that is always the same
	Like    int        // the result has the type of this argument
	ElemOf  int        // the result has the type of the elements of this argument, an array
	ArrayOf int        // the result is an array whose elements have the type of this argument; aggregates leave out NULLs
	Nulls   Nulls
}

// Nulls says when a call gives NULL.
type Nulls uint8

// The ways of NULL through a function.
const (
	NullsPropagate Nulls = iota // when an argument is NULL: ClickHouse's default
	NullsNever
	NullsAlways  // may be NULL whatever the arguments are, as the …OrNull functions
	NullsButLast // when an argument but the last is NULL: the condition of sumIf is false then
)

// Operator is how ClickHouse writes a function as an operator, which it turns back into this very function.
type Operator struct {
	Sign     string
	Level    Level
	Operands int  // 2: the sign is between them; 1: it is before it
	Set      bool // the right operand is a set
}

// Level says how tightly an operator binds. An operand is put in parentheses unless it binds more tightly than its operator.
type Level uint8

// The levels, the loosest first.
const (
	LevelWhole Level = iota // whole expressions: no parentheses needed
	LevelOr
	LevelAnd
	LevelNot
	LevelCompare // does not chain; those after it, and AND and OR, group to the left
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

// Path says how a function reads what lies at the end of a path of keys in a document.
type Path uint8

// The ways to read it.
const (
	PathRaw    Path = iota // as JSON
	PathTyped              // as JSON, with a type after the keys
	PathScalar             // as a value that is neither an object nor an array
	PathText               // as text, empty where there is none
	PathExists             // not at all: whether there is anything
)

// Lookup is how a name is looked up among those of channels.
type Lookup struct {
	// Kind says that the name is a source, whose kind is looked up first.
	Kind bool
	// In has what the name, or the kind of the source, means; nil for the kind itself.
	In *ChannelDictionary
	// Otherwise is the meaning of all other names; NULL when it is empty.
	Otherwise string
}

// Rule names the rewrite that a call needs beyond its new name; the resolver holds one file for each.
type Rule uint8

// The rules. A row's Native, Extra, Casts and Zone hold under each of them, unless its words say otherwise.
const (
	RuleRename  Rule = iota // the new name is all
	RuleCompare             // equals, less, like, in …: NULL-safe as their operators are
	RuleAnd                 // constants fold under it, as under the next two
	RuleOr
	RuleNot
	RuleToFloat     // a number of a property is read as it is stored, and stays what it is
	RuleJSON        // the keys go into the reading of a document in ClickHouse's JSON type: see Path
	RulePlainText   // a property as text, whatever its declared type
	RuleConcat      // NULL counts as '', other types go through toString
	RuleToDateTime  // depends on the argument being a constant, a string or a time
	RuleToDate      // toDate of a time, else toDateOrNull
	RuleDateTime64  // the scale, second, is 6 unless given; the zone comes after it
	RuleParseTime   // f(x[, zone]) is Native(x, 6, zone)
	RuleNow         // now64(6, zone)
	RuleStartOfWeek // the project's first day of the week is the default mode
	RuleInterval    // the first argument is a constant that names a Unit: dateDiff, dateTrunc, age, dateName
	RuleDatePart    // date_part('unit', x) is the Part of the Unit: toYear(x)
	RuleDateAdd     // f(time, interval) is Native(time, interval), f('unit', n, time) is Native(time, interval of n units)
	RuleTumble      // the first argument is taken as plain DateTime; where it is the only one it is a window, and stays
	RuleLagLead     // lag and lead as PostgreSQL has them
	RuleCount       // count(*) and count(DISTINCT x)
	RuleArrayReduce // the first argument is a constant for which ReducibleBy holds
	RuleLambda      // the first argument may be a lambda over the elements of the arrays after it
	RuleIf          // the result is of the type of the branches
	RuleCoalesce    // the result is not nullable when one argument is not
	RuleArithmetic  // plus, minus, …: typed as their operators are
	RuleDecimal     // toDecimal(x, scale) is accurateCastOrNull(x, 'Decimal64(scale)'), the scale a constant from 0 to 18
	RuleMacro       // the call stands for what Expand gives
	RuleTag         // a tag for user interfaces: Extra are its name and those of its attributes, in the order of the arguments
	RuleFuzzy       // f(text, distance, patterns), the distance and the patterns constant and short: the engine keeps what it makes of them
	RuleLookup      // a search in a dictionary of names
	RuleBot         // a search for a bot in a user agent
	RuleAddress     // the first argument is made an address that no range contains where it is not one
	RuleExists      // exists(query) is whether the query has rows
	RuleSurvey      // getSurveyResponse(index[, id[, multiple]])
	RuleSurveySent  // uniqueSurveySubmissionsFilter(survey[, from[, to]])
)
