package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// BeginNotes starts to note the values of a project that already has some. It calls note in turn with all other writes to the project, when everything written
// before is in the tables and nothing is being written. What note changes has all later values noted.
func (i *Ingester) BeginNotes(ctx context.Context, options Options, note func(context.Context) error) error {
	state, s, done, err := i.captured(ctx, options)
	if err != nil {
		return err
	}
	defer done()
	state.settled = false // so that an insert whose answer was lost is waited for
	if err := state.inTurn(ctx, s, note); err != nil {
		state.delivery = nil
		i.layout.Store(nil)
		return fmt.Errorf("beginning to note values of project %d: %w", options.Project, err)
	}
	return nil
}

// PropertyColumn is a column that holds the properties of a scope.
type PropertyColumn struct {
	Table, Column string
	scope         string
	Group         int // the group type of group properties; else 0
}

// PropertyColumns lists all columns with properties. Those of events may hold older properties of a person or group than its own row.
func PropertyColumns() []PropertyColumn {
	columns := []PropertyColumn{
		{Table: physical.Events, Column: "properties", scope: eventScope},
		{Table: physical.Events, Column: "person_properties", scope: personScope},
		{Table: "person", Column: "properties", scope: personScope},
	}
	for n := range physical.GroupTypes {
		columns = append(columns, PropertyColumn{physical.Events, fmt.Sprintf("group%d_properties", n), groupScope, n}, PropertyColumn{"groups", "group_properties", groupScope, n})
	}
	return columns
}

// Stored collects which kinds of values properties have in the tables.
type Stored struct {
	kinds map[propertyKey]physical.Kinds
}

// Add adds the kinds of values that a key has in the objects of a column, as ClickHouse stores them.
func (f *Stored) Add(in PropertyColumn, key string, kinds physical.Kinds) {
	if f.kinds == nil {
		f.kinds = map[propertyKey]physical.Kinds{}
	}
	f.kinds[propertyKey{in.scope, in.Group, key}] |= kinds
}

// Of lists the properties that were found, and the known ones without a value. A name with a dot or a percent sign may be the stored form of another name: its
// kinds include [physical.Earlier], which means that they are not known.
func (f *Stored) Of(known []LearnedProperty) []LearnedProperty {
	all := map[propertyKey]physical.Kinds{}
	for _, p := range known {
		if key := (propertyKey{p.Scope, p.GroupTypeIndex, p.Name}); key.noted() && !key.ambiguous() {
			all[key] = 0
		}
	}
	for key, kinds := range f.kinds {
		if !key.noted() {
			continue
		}
		if key.ambiguous() {
			kinds |= physical.Earlier
			if !slices.ContainsFunc(known, func(p LearnedProperty) bool { return key == propertyKey{p.Scope, p.GroupTypeIndex, p.Name} }) {
				key.name = strings.ReplaceAll(key.name, "%2E", ".")
			}
		}
		all[key] |= kinds
	}
	list := make([]LearnedProperty, 0, len(all))
	for key, kinds := range all {
		list = append(list, LearnedProperty{Scope: key.scope, GroupTypeIndex: key.group, Name: key.name, Kinds: kinds})
	}
	slices.SortFunc(list, LearnedProperty.compare)
	return list
}

// noted reports whether the values of a property are noted.
func (k propertyKey) noted() bool {
	return k.name != "" && (k.scope != eventScope || !physical.NotAProperty(k.name))
}

// ambiguous reports whether what is stored under a name may belong to another property. Invalid UTF-8 is read as U+FFFD.
func (k propertyKey) ambiguous() bool { return strings.ContainsAny(k.name, ".%\uFFFD") }
