package schema

import (
	"iter"
	"slices"
	"strings"
)

// catalogue holds every function by its name, derived aggregates too. It is made once and never changes, so that any
// number of goroutines may read it.
type catalogue struct {
	byName   map[string]*Function
	folded   map[string]*Function // by lower-case name, those whose case does not matter
	native   map[string]*Operator // nil for most
	names    []string             // in the order of the table, the derived last
	reducing []string             // the aggregates that arrayReduce takes, sorted
	longest  int                  // bytes of the longest name: anything longer is unknown at once
}

var functions = newCatalogue(table)

func newCatalogue(rows []Function) *catalogue {
	c := &catalogue{
		byName: make(map[string]*Function, 2*len(rows)),
		folded: make(map[string]*Function),
		native: make(map[string]*Operator, 2*len(rows)),
	}
	for i := range rows {
		c.add(&rows[i])
	}
	for i := range rows {
		for _, chain := range rows[i].Chains {
			c.derive(&rows[i], chain)
		}
		for _, chain := range rows[i].Reduces {
			c.reducing = append(c.reducing, rows[i].Name+chain)
		}
	}
	slices.Sort(c.reducing)
	for _, name := range resolverNatives {
		c.allow(name, nil)
	}
	return c
}

// derive adds base with a chain of combinators. A row of its own goes before: sumMap also takes two arrays. Of two ways
// to make one name, the longer base goes before: sumMapIf is sumMap with If.
func (c *catalogue) derive(base *Function, chain string) {
	if known := c.byName[base.Name+chain]; known == nil || len(known.Base) < len(base.Name) && known.Base != "" {
		c.add(derive(base, chain))
	}
}

func (c *catalogue) add(f *Function) {
	if c.byName[f.Name] == nil {
		c.names = append(c.names, f.Name)
	}
	c.byName[f.Name] = f
	if f.Fold {
		c.folded[strings.ToLower(f.Name)] = f
	}
	c.allow(f.ClickHouse(), f.Operator)
	for _, cast := range f.Casts {
		c.allow(cast, nil)
	}
	c.longest = max(c.longest, len(f.Name))
}

// allow lets the printer write a function of ClickHouse. It is an operator if one of the rows that compile to it is.
func (c *catalogue) allow(native string, op *Operator) {
	if native != "" && c.native[native] == nil {
		c.native[native] = op
	}
}

// LookupFunction finds a function by the name that its caller wrote: exactly, else without regard to case where the
// function allows that. Aggregates with combinators (sumIf, countDistinctStateIf) are found as any other.
func LookupFunction(name string) (*Function, bool) {
	if f, ok := functions.byName[name]; ok {
		return f, true
	}
	if len(name) > functions.longest {
		return nil, false
	}
	f, ok := functions.folded[strings.ToLower(name)]
	return f, ok
}

// NativeFunction reports whether the printer may write a function of ClickHouse: it must be what a row of the table
// compiles to, or one of the few that the resolver adds by itself.
func NativeFunction(name string) bool {
	_, known := functions.native[name]
	return known
}

// NativeOperator returns how a function of ClickHouse is written as an operator; nil when it is not one.
func NativeOperator(name string) *Operator { return functions.native[name] }

// Functions yields every function, hidden ones too, family by family; the aggregates that combinators make come after
// all that have rows of their own.
func Functions() iter.Seq[*Function] {
	return func(yield func(*Function) bool) {
		for _, name := range functions.names {
			if !yield(functions.byName[name]) {
				return
			}
		}
	}
}

// FunctionNames yields the names of the functions that are shown to people.
func FunctionNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for f := range Functions() {
			if !f.Hidden() && !yield(f.Name) {
				return
			}
		}
	}
}
