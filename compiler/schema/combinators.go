package schema

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// combinator is a suffix that derives another aggregate function: sum, sumIf.
type combinator struct {
	suffix string
	then   []string // the combinators that may follow it
	apply  func(*Function)
}

var combinators = []combinator{
	{"If", nil, (*Function).addCondition},
	{"Array", []string{"If", "OrDefault", "OrNull"}, (*Function).overElements},
	{"Map", []string{"If", "OrDefault", "OrNull"}, (*Function).overMap},
	{"State", []string{"If", "OrDefault", "OrNull"}, func(f *Function) { f.Result = state }},
	{"Merge", []string{"If", "OrDefault", "OrNull"}, (*Function).mergeStates},
	{"ForEach", []string{"If", "OrDefault", "OrNull"}, (*Function).overPositions},
	{"OrDefault", []string{"If"}, func(*Function) {}},
	{"OrNull", []string{"If"}, (*Function).nullWhenEmpty},
	{"ArgMin", []string{"If", "OrDefault", "OrNull"}, (*Function).addKey},
	{"ArgMax", []string{"If", "OrDefault", "OrNull"}, (*Function).addKey},
}

// allChains are all chains of combinators that PostHog allows after sum, count and similar functions: sumStateIf has the chain StateIf.
var allChains = chainsFrom(nil)

// chainsFrom returns the chains that begin with one of the given combinators, or with any if none is given.
func chainsFrom(first []string) []string {
	var chains []string
	for _, c := range combinators {
		if first != nil && !slices.Contains(first, c.suffix) {
			continue
		}
		chains = append(chains, c.suffix)
		if c.then == nil {
			continue
		}
		for _, rest := range chainsFrom(c.then) {
			chains = append(chains, c.suffix+rest)
		}
	}
	return chains
}

// derive returns the entry of base with a chain of combinators after its name.
func derive(base *Function, chain string) *Function {
	f := *base
	f.Base, f.Name = base.Name, base.Name+chain
	if base.Native != "" {
		f.Native = base.Native + chain
	}
	if rest, ok := strings.CutPrefix(chain, "Array"); ok && base.ArrayOrNull && (rest == "" || rest == "If") {
		f.Native = base.ClickHouse() + "ArrayOrNull" + rest
	}
	f.Fold = false
	f.Rule = RuleRename
	f.Chains, f.Reduces, f.ArrayOrNull = nil, nil, false
	f.Conditional = strings.HasSuffix(chain, "If")
	if chain != "If" {
		f.Gathers = GathersNothing
	}
	for chain != "" {
		c := combinatorAt(chain)
		c.apply(&f)
		chain = strings.TrimPrefix(chain, c.suffix)
	}
	return &f
}

// combinatorAt returns the first combinator of a chain.
func combinatorAt(chain string) combinator {
	for _, c := range combinators {
		if strings.HasPrefix(chain, c.suffix) {
			return c
		}
	}
	panic("BUG: no combinator at the start of " + chain)
}

func (f *Function) addArgument() {
	f.MinArgs++
	if f.MaxArgs != Any {
		f.MaxArgs++
	}
}

// addCondition applies If: a condition is the last argument, and NULL counts as false.
func (f *Function) addCondition() {
	if f.Result.Nulls == NullsPropagate {
		f.Result.Nulls = NullsButLast
	}
	f.addArgument()
}

// addKey applies ArgMin or ArgMax: only the rows with the least or greatest last argument count.
func (f *Function) addKey() { f.addArgument() }

// overElements applies Array: the arguments are arrays, and each element counts like a row.
func (f *Function) overElements() {
	f.needArgument()
	switch {
	case f.Result.Like != 0:
		f.Result = elementOf(f.Result.Like)
	case f.Result.Nulls == NullsPropagate:
		f.Result.Nulls = NullsAlways // an element may be NULL
	}
}

// overPositions applies ForEach: the elements at each position of the arrays are aggregated separately.
func (f *Function) overPositions() {
	f.needArgument()
	f.Result = array
}

// overMap applies Map: the values of each key are aggregated separately.
func (f *Function) overMap() {
	f.needArgument()
	f.Result = mapping
}

// mergeStates applies Merge: the argument is the result of State.
func (f *Function) mergeStates() {
	f.MinArgs, f.MaxArgs = 1, 1
	if f.Result.Like != 0 {
		f.Result = unknown
	}
	if f.Result.Nulls != NullsNever {
		f.Result.Nulls = NullsAlways
	}
}

// nullWhenEmpty applies OrNull; states, arrays and maps cannot be NULL.
func (f *Function) nullWhenEmpty() {
	switch f.Result.Kind {
	case hogql.State, hogql.ArrayKind, hogql.MapKind:
	default:
		f.Result.Nulls = NullsAlways
	}
}

// needArgument makes the optional argument of count required.
func (f *Function) needArgument() { f.MinArgs = max(f.MinArgs, 1) }

// ReducibleBy reports whether arrayReduce accepts the named aggregate.
func ReducibleBy(aggregate string) bool { return slices.Contains(functions.reducing, aggregate) }

// ReducingAggregates returns the sorted aggregates for which ReducibleBy returns true.
func ReducingAggregates() []string { return slices.Clone(functions.reducing) }
