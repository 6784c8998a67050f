package registry

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"
)

// PropertyScope tells what a property belongs to.
type PropertyScope string

// The scopes of properties.
const (
	EventProperty  PropertyScope = "event"
	PersonProperty PropertyScope = "person"
	GroupProperty  PropertyScope = "group"
)

// PropertyType is how a property reads in queries; one without a definition reads as PropertyString.
type PropertyType string

// The types of properties.
const (
	PropertyString   PropertyType = "String"
	PropertyNumeric  PropertyType = "Numeric"
	PropertyBoolean  PropertyType = "Boolean"
	PropertyDateTime PropertyType = "DateTime"
)

// PropertyDefinition is the type of one property of a project.
type PropertyDefinition struct {
	Scope          PropertyScope
	GroupTypeIndex int // of a group property, 0 to 4; else 0
	Name           string
	Type           PropertyType
}

// GroupType gives one of a project's five kinds of groups a name.
type GroupType struct {
	Name  string
	Index int // 0 to 4
}

const (
	maxPropertyName  = 400
	maxGroupType     = 400
	maxGroupTypes    = 5
	groupTypeIsTaken = "The group type, or its index, already stands for another one."
)

// SetProperty declares the type of a property, whatever it was before. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) SetProperty(ctx context.Context, project int64, d PropertyDefinition) error {
	switch {
	case d.Name == "":
		return required("name")
	case utf8.RuneCountInString(d.Name) > maxPropertyName:
		return tooLong("name", maxPropertyName)
	}
	if err := d.validate(); err != nil {
		return err
	}
	return r.putSchema(ctx, project, []PropertyDefinition{d}, nil, false)
}

// Learn records, in one write, what an import found out: types of properties, which never replace one that is there, and
// group types. Of two definitions of one property the first counts; those beyond MaxProperties count for nothing. Mistakes are *FieldError, a group type that contradicts
// one that is there among them; then nothing is recorded. An unknown project is ErrNotFound.
func (r *Registry) Learn(ctx context.Context, project int64, defs []PropertyDefinition, groups []GroupType) error {
	for _, d := range defs {
		if err := d.validate(); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := g.validate(); err != nil {
			return err
		}
	}
	return r.putSchema(ctx, project, defs, groups, true)
}

func (r *Registry) putSchema(ctx context.Context, project int64, defs []PropertyDefinition, groups []GroupType, learn bool) error {
	defs, groups = slices.Clone(defs), slices.Clone(groups)
	var newDefs []PropertyDefinition
	var newGroups []GroupType
	err := r.write(ctx, project, func(tx Tx) (err error) {
		if _, err := tx.Project(ctx, project); err != nil {
			return fmt.Errorf("project %d: %w", project, err)
		}
		if learn {
			if defs, err = r.learnable(ctx, tx, project, defs); err != nil {
				return err
			}
		}
		if newDefs, err = tx.PutProperties(ctx, project, defs, learn); err != nil {
			return err
		}
		newGroups, err = tx.PutGroupTypes(ctx, project, groups)
		return taken(err, ConflictGroupType, "group_type", groupTypeIsTaken)
	}, func(d *draft) { d.putSchema(project, newDefs, newGroups) })
	if err != nil {
		return fmt.Errorf("recording property definitions: %w", err)
	}
	return nil
}

// learnable gives those definitions that a project has room for. What an import learns beyond that reads as a String.
func (r *Registry) learnable(ctx context.Context, tx Tx, project int64, defs []PropertyDefinition) ([]PropertyDefinition, error) {
	usage, err := tx.Usage(ctx, project)
	if err != nil {
		return nil, err
	}
	defs = slices.DeleteFunc(slices.Clone(defs), func(d PropertyDefinition) bool { return utf8.RuneCountInString(d.Name) > maxPropertyName })
	room := max(MaxProperties-usage[KindProperty].Records, 0)
	if len(defs) <= room {
		return defs, nil
	}
	known := make(map[PropertyDefinition]bool) // with an empty type
	for _, d := range r.Snapshot().PropertyDefinitions(project) {
		d.Type = ""
		known[d] = true
	}
	fresh := slices.DeleteFunc(slices.Clone(defs), func(d PropertyDefinition) bool {
		d.Type = ""
		return known[d]
	})
	return fresh[:min(room, len(fresh))], nil
}

func (d PropertyDefinition) validate() error {
	switch d.Scope {
	case EventProperty, PersonProperty:
		if d.GroupTypeIndex != 0 {
			return invalid("group_type_index", "Only a group property has a group type index.")
		}
	case GroupProperty:
		if err := inRange("group_type_index", d.GroupTypeIndex, 0, maxGroupTypes-1); err != nil {
			return err
		}
	default:
		return notChoice("type", string(d.Scope))
	}
	switch d.Type {
	case PropertyString, PropertyNumeric, PropertyBoolean, PropertyDateTime:
		return nil
	}
	return notChoice("property_type", string(d.Type))
}

func (g GroupType) validate() error {
	switch {
	case g.Name == "":
		return required("group_type")
	case utf8.RuneCountInString(g.Name) > maxGroupType:
		return tooLong("group_type", maxGroupType)
	}
	return inRange("group_type_index", g.Index, 0, maxGroupTypes-1)
}
