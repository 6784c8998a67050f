package execution

import (
	"context"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// errOtherValues reports that a property may have had other kinds of values when the query ran than the query was compiled for.
var errOtherValues = errors.New("a property has values of another kind now")

// knownValues caches the kinds of values of a project's properties for as long as its schema stays the same.
type knownValues struct {
	of       *registry.ProjectSchema
	values   schema.PropertyValues
	complete bool // see schema.Database.ValuesComplete
}

// valuesOf returns the kinds of values that the properties of a project have had so far; nil if none are known, as on shards that others write to as well.
//
// A batch records the kinds before it is written. So a query that has read a value, or should have, finds the value's kind in the registry when it
// asks again afterwards, whatever was known when it was compiled: see kindsUnchanged. A result computed earlier is right for the data of its time, so no
// part of the cache has to know.
func (c *Compiler) valuesOf(project int64) *knownValues {
	if c.Registry == nil || !c.Shards.Alone() {
		return nil
	}
	of := c.Registry.Snapshot().Schema(project)
	if of == nil {
		return nil
	}
	if found, ok := c.known.values.Load(project); ok {
		if known, _ := found.(*knownValues); known.of == of {
			return known
		}
	}
	known := &knownValues{of: of, values: make(schema.PropertyValues, len(of.Values)), complete: of.Project.ValuesKnown && !of.Project.ValuesProbe.Open}
	for d, kinds := range of.Values {
		switch {
		case !kinds.Known() && !known.complete:
			continue
		case !kinds.Known():
			kinds = physical.AllKinds
		}
		known.values[schema.PropertyKey{Scope: propertyScopes[d.Scope], Group: d.GroupTypeIndex, Name: d.Name}] = kinds
	}
	c.known.values.Store(project, known)
	return known
}

// kindsUnchanged reports whether properties have had no other kinds of values so far. It asks the store of the registry, where the servers that share it
// record theirs. If the store does not answer, the result is false.
func (c *Compiler) kindsUnchanged(ctx context.Context, project int64, values schema.PropertyValues) bool {
	if len(values) == 0 {
		return true
	}
	if err := c.Registry.Refresh(ctx); err != nil {
		return false
	}
	now := c.valuesOf(project)
	if now == nil {
		return false
	}
	for key, kinds := range values {
		if has := now.values[key]; !has.Only(kinds) && (has != 0 || !now.complete) {
			return false
		}
	}
	return true
}
