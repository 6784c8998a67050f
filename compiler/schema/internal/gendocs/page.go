package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

const intro = `# Functions

<!-- Generated from compiler/schema by go generate; change the table there. -->

These are the functions that a HogQL query may call. Any other name is an error that suggests the nearest one. Names are
case-sensitive unless marked "any case". Functions marked "zone" read or show times in the project's time zone unless the
last argument names another. NULL, constants in ` + "`toDateTime`" + ` and the first day of the week follow the rules of HogQL,
not those of ClickHouse.
`

const combinators = `## Combinators

A suffix turns an aggregate into another one. %s take every chain of suffixes; the tables name those that other aggregates take.

| Suffix | What it does | Arguments |
| --- | --- | --- |
| If | only rows that meet the condition count | one more, last: the condition |
| Array | each element of the arrays counts like a row | arrays |
| Map | the values of each key are aggregated on their own | a map |
| ForEach | the elements at each position of the arrays are aggregated on their own | arrays |
| State | returns the intermediate state instead of the result | the same |
| Merge | continues from states | a state |
| OrDefault | the type's default when there are no rows | the same |
| OrNull | NULL when there are no rows | the same |
| ArgMin, ArgMax | only the rows with the least or the greatest key count | one more, last: the key |

If, OrDefault and OrNull may follow Array, Map, State, Merge, ForEach, ArgMin and ArgMax; If may also follow OrDefault and
OrNull: ` + "`sumStateOrDefaultIf(x, condition)`" + `.

` + "`arrayReduce('name', array, …)`" + ` takes a few aggregates only: %s.
`

// functionsPage returns the whole page as Markdown.
func functionsPage() []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	var all []string // aggregates that take every chain
	family := ""
	for f := range schema.Functions() {
		if f.Hidden() || f.Base != "" {
			continue
		}
		if f.Family != family {
			family = f.Family
			fmt.Fprintf(&b, "\n## %s\n\n| Function | Arguments | ClickHouse | Notes |\n| --- | --- | --- | --- |\n", family)
		}
		if takesAll(f) {
			all = append(all, "`"+f.Name+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, arguments(f), native(f), strings.Join(notes(f), "; "))
	}
	fmt.Fprintf(&b, "\n"+combinators, strings.Join(all, ", "), "`"+strings.Join(schema.ReducingAggregates(), "`, `")+"`")
	return b.Bytes()
}

// arguments describes how many arguments a function takes, and how many parameters if it takes any.
func arguments(f *schema.Function) string {
	args := count(f.MinArgs, f.MaxArgs)
	if f.MaxParams == 0 {
		return args
	}
	return fmt.Sprintf("(%s)(%s)", count(f.MinParams, f.MaxParams), args)
}

func count(low, high int) string {
	switch {
	case high == schema.Any:
		return fmt.Sprintf("%d or more", low)
	case low == high:
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// native describes what a function compiles to.
func native(f *schema.Function) string {
	switch {
	case f.Rule == schema.RuleMacro:
		return "`" + strings.ReplaceAll(f.Macro, "|", `\|`) + "`"
	case f.Rule == schema.RuleTag:
		return fmt.Sprintf("the tag `<%v>`", f.Extra[0])
	case len(f.Extra) > 0:
		extra := make([]string, len(f.Extra))
		for i, constant := range f.Extra {
			extra[i] = fmt.Sprintf(", '%v'", constant)
		}
		return fmt.Sprintf("`%s(…%s)`", f.ClickHouse(), strings.Join(extra, ""))
	case f.Rule == schema.RuleDatePart:
		return "the function of that part, such as `toYear`"
	case f.Native == "":
		return "the same"
	}
	return "`" + f.ClickHouse() + "`"
}

func notes(f *schema.Function) []string {
	var notes []string
	if f.Fold {
		notes = append(notes, "any case")
	}
	if f.Zone > 0 {
		notes = append(notes, "zone")
	}
	if f.WindowOnly {
		notes = append(notes, "needs OVER")
	}
	switch f.Result.Nulls {
	case schema.NullsNever:
		notes = append(notes, "never NULL")
	case schema.NullsAlways:
		notes = append(notes, "may be NULL")
	case schema.NullsPropagate, schema.NullsButLast:
	}
	switch {
	case takesAll(f):
		notes = append(notes, "every combinator")
	case len(f.Chains) > 0:
		notes = append(notes, "with "+strings.Join(f.Chains, ", "))
	}
	return notes
}

// takesAll reports whether an aggregate takes every chain of combinators.
func takesAll(f *schema.Function) bool { return slices.Contains(f.Chains, "ArgMaxOrNullIf") }
