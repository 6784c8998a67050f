package schema

import (
	"iter"
	"slices"
	"strings"
)

// catalog holds every function by name, including derived aggregates. It is built once and never modified, so any number of goroutines may
// read it.
type catalog struct {
	byName   map[string]*Function
	folded   map[string]*Function // the case-insensitive functions by lower-case name
	native   map[string]*Operator // nil for most
	names    []string             // in table order, derived functions last
	reducing []string             // the aggregates that arrayReduce accepts, sorted
	longest  int                  // bytes of the longest name; longer names are not looked up
}

var functions = newCatalog(table)

func newCatalog(rows []Function) *catalog {
	c := &catalog{
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

// derive adds base with a chain of combinators. An entry in the table takes precedence: sumMap also takes two arrays. If a name can be derived in two
// ways, the longer base wins: sumMapIf is sumMap with If.
func (c *catalog) derive(base *Function, chain string) {
	if known := c.byName[base.Name+chain]; known == nil || len(known.Base) < len(base.Name) && known.Base != "" {
		c.add(derive(base, chain))
	}
}

func (c *catalog) add(f *Function) {
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

// allow lets the printer write a ClickHouse function. It is an operator if one of the entries that compile to it is.
func (c *catalog) allow(native string, op *Operator) {
	if native != "" && c.native[native] == nil {
		c.native[native] = op
	}
}

// LookupFunction finds a function by the name that its caller wrote: first exactly, then ignoring case if the function allows that. Aggregates with
// combinators (sumIf, countDistinctStateIf) are found like any other function.
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

// NativeFunction reports whether the printer may write a ClickHouse function: an entry of the table must compile to it, or it must be one of the few
// that the resolver adds itself.
func NativeFunction(name string) bool {
	_, known := functions.native[name]
	return known
}

// NativeOperator returns how a ClickHouse function is written as an operator; nil if it is not one.
func NativeOperator(name string) *Operator { return functions.native[name] }

// Functions yields every function, including hidden ones, family by family. Derived aggregates come last.
func Functions() iter.Seq[*Function] {
	return func(yield func(*Function) bool) {
		for _, name := range functions.names {
			if !yield(functions.byName[name]) {
				return
			}
		}
	}
}

// FunctionNames yields the names of the functions that are not hidden.
func FunctionNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for f := range Functions() {
			if !f.Hidden() && !yield(f.Name) {
				return
			}
		}
	}
}
