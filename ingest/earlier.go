package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// BeginNotes begins to note the values of a project that has some already. It calls note in turn with all that is written to the project, when what was
// written before is in the tables, and nothing is being written. Whatever comes later is noted by what note has changed.
func (i *Ingester) BeginNotes(ctx context.Context, options Options, note func(context.Context) error) error {
	room, s, done, err := i.captured(ctx, options)
	if err != nil {
		return err
	}
	defer done()
	room.settled = false // an insert whose answer was lost is waited for
	if err := room.inTurn(ctx, s, note); err != nil {
		room.delivery = nil
		i.layout.Store(nil)
		return fmt.Errorf("beginning to note values of project %d: %w", options.Project, err)
	}
	return nil
}

// PropertyColumn is a column that has the properties of a scope.
type PropertyColumn struct {
	Table, Column string
	scope         string
	Group         int // the group type of group properties; else 0
}

// PropertyColumns lists all of them. What a column of events has of a person or group may be older than what the person's own row has.
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

// Stored adds up which kinds of values properties have in the tables.
type Stored struct {
	kinds map[propertyKey]physical.Kinds
}

// Add adds what a key of the objects in a column has, as ClickHouse has it.
func (f *Stored) Add(in PropertyColumn, key string, kinds physical.Kinds) {
	if f.kinds == nil {
		f.kinds = map[propertyKey]physical.Kinds{}
	}
	f.kinds[propertyKey{in.scope, in.Group, key}] |= kinds
}

// Of lists what was found, beside those of the known properties that have no value. A name with a dot or a percent sign may be stored as another one is: its
// kinds have [physical.Earlier], and are not known.
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

// ambiguous reports whether what is stored under a name may be the property of another one. What is not UTF-8 is read as a sign of its own.
func (k propertyKey) ambiguous() bool { return strings.ContainsAny(k.name, ".%\uFFFD") }
