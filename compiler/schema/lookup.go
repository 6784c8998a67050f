package schema

import (
	"iter"
	"strings"
)

// catalogue holds every function by its name, derived aggregates too. It is made once and never changes, so that any
// number of goroutines may read it.
type catalogue struct {
	byName  map[string]*Function
	folded  map[string]*Function // by lower-case name, those whose case does not matter
	native  map[string]bool
	names   []string // in the order of the table, the derived behind
	longest int      // bytes of the longest name: anything longer is unknown at once
}

var functions = newCatalogue(table)

func newCatalogue(rows []Function) *catalogue {
	c := &catalogue{
		byName: make(map[string]*Function, 2*len(rows)),
		folded: make(map[string]*Function),
		native: make(map[string]bool, 2*len(rows)),
	}
	for i := range rows {
		c.add(&rows[i])
	}
	for i := range rows {
		for _, chain := range rows[i].Chains {
			c.derive(&rows[i], chain)
		}
	}
	for _, name := range resolverNatives {
		c.native[name] = true
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
	if native := f.ClickHouse(); native != "" {
		c.native[native] = true
	}
	for _, cast := range f.Casts {
		if cast != "" {
			c.native[cast] = true
		}
	}
	c.longest = max(c.longest, len(f.Name))
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
func NativeFunction(name string) bool { return functions.native[name] }

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
