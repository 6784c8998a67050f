package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// PropertyScope says what a property belongs to.
type PropertyScope string

// The scopes of properties.
const (
	EventProperty  PropertyScope = "event"
	PersonProperty PropertyScope = "person"
	GroupProperty  PropertyScope = "group"
)

// PropertyType is how queries read a property; one without a definition reads as PropertyString.
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
	Scope          PropertyScope `json:"scope"`
	GroupTypeIndex int           `json:"group_type_index"` // of a group property, 0 to 4; else 0
	Name           string        `json:"name"`
	Type           PropertyType  `json:"type"`
}

// property is the record of a property definition.
type property struct {
	PropertyDefinition

	Kinds physical.Kinds `json:"kinds,omitempty"`

	project int64
	id      string // of a record that is removed
}

// propertyState is what is known about a property.
type propertyState struct {
	typ   PropertyType
	kinds physical.Kinds // of its values; 0 if they are not known
}

func readProperty(rec *Record) (entity, error) {
	p := &property{project: rec.Project, id: rec.ID}
	return p, decode(rec, p)
}

func (p *property) name() recordName {
	id := p.id
	if id == "" {
		id = fmt.Sprintf("%s/%d/%s", p.Scope, p.GroupTypeIndex, IDText(p.Name))
	}
	return recordName{p.project, KindProperty, id}
}

func (p *property) unique() []string { return nil }
func (p *property) size() int        { return len(p.Name) }
func (p *property) checkSize() error { return nil } // the name has a limit

func (p *property) put(_ *draft, in *projectState) (Stored, error) {
	was, place := Stored{}, p.place()
	before, there := in.properties.Get(place)
	if there {
		was = Stored{1, int64(p.size())}
	}
	if now := (propertyState{p.Type, p.Kinds}); before != now {
		in.properties = in.properties.Set(place, now)
		in.schemaChanged()
	}
	return was, nil
}

// remove does nothing: a property never loses its type.
func (p *property) remove(*draft, *projectState) Stored { return Stored{} }

// place is a definition without its type.
func (d PropertyDefinition) place() PropertyDefinition {
	d.Type = ""
	return d
}

// propertyOrder orders by scope, group type index and name.
type propertyOrder struct{}

func (propertyOrder) Compare(a, b PropertyDefinition) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex), cmp.Compare(a.Name, b.Name))
}

// GroupType names one of a project's five kinds of groups.
type GroupType struct {
	Name  string `json:"name"`
	Index int    `json:"index"` // 0 to 4
}

// groupType is the record of a group type.
type groupType struct {
	GroupType

	project int64
}

func readGroupType(rec *Record) (entity, error) {
	index, err := number(rec)
	if err != nil {
		return nil, err
	}
	g := &groupType{GroupType{Index: int(index)}, rec.Project}
	return g, decode(rec, g)
}

func (g *groupType) name() recordName {
	return recordName{g.project, KindGroupType, digits(int64(g.Index))}
}

func (g *groupType) unique() []string { return []string{within(g.project, IDText(g.Name))} }
func (g *groupType) size() int        { return 0 } // there are at most five
func (g *groupType) checkSize() error { return nil }

func (g *groupType) put(d *draft, p *projectState) (Stored, error) {
	if slices.Contains(p.settings.GroupTypes, g.GroupType) {
		return Stored{1, 0}, nil
	}
	was := g.remove(d, p)
	p.settings.GroupTypes = append(slices.Clone(p.settings.GroupTypes), g.GroupType)
	slices.SortFunc(p.settings.GroupTypes, func(a, b GroupType) int { return cmp.Compare(a.Index, b.Index) })
	p.schemaChanged()
	return was, nil
}

func (g *groupType) remove(_ *draft, p *projectState) Stored {
	before := p.settings.GroupTypes
	p.settings.GroupTypes = slices.DeleteFunc(slices.Clone(before), func(other GroupType) bool { return other.Index == g.Index })
	if len(before) == len(p.settings.GroupTypes) {
		return Stored{}
	}
	p.schemaChanged()
	return Stored{1, 0}
}

// schemaChanged invalidates the schema, which is made again on its next use.
func (p *projectState) schemaChanged() {
	p.querySerial = serials.Add(1)
	next, properties, cohorts, actions := p.settings, p.properties, p.cohorts.byID, p.actions.byID
	p.schema = sync.OnceValue(func() *ProjectSchema {
		next.Properties = make([]PropertyDefinition, 0, properties.Len())
		for each := properties.Iterator(); !each.Done(); {
			def, state, _ := each.Next()
			if state.kinds != 0 {
				if next.Values == nil {
					next.Values = map[PropertyDefinition]physical.Kinds{}
				}
				next.Values[def] = state.kinds
			}
			def.Type = state.typ
			next.Properties = append(next.Properties, def)
		}
		for _, c := range valuesOf(cohorts, nil) {
			next.Cohorts = append(next.Cohorts, c.schema())
		}
		for _, a := range valuesOf(actions, nil) {
			next.Actions = append(next.Actions, a.ActionDefinition)
		}
		return &next
	})
}

const (
	maxPropertyName  = 400
	maxGroupType     = 400
	groupTypeIsTaken = "Another group type has this name or this index already."
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

// Learn records, in one write, what an import found: types of properties, which never replace an existing one, and group types. Of two definitions of one
// property the first counts; those beyond MaxProperties are ignored. Mistakes are *FieldError, including a group type that contradicts an existing one; then
// nothing is recorded. An unknown project is ErrNotFound.
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
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		if err := t.putProperties(p, defs, learn); err != nil {
			return err
		}
		for _, g := range groups {
			i := slices.IndexFunc(p.settings.GroupTypes, func(known GroupType) bool { return known.Index == g.Index || known.Name == g.Name })
			switch {
			case i < 0:
				if err := t.put(&groupType{g, project}); err != nil {
					return err
				}
			case p.settings.GroupTypes[i] != g:
				return &FieldError{Field: "group_type", Code: CodeUnique, Message: groupTypeIsTaken}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording property definitions: %w", err)
	}
	return nil
}

// PropertyValues says which kinds of values a property is about to get.
type PropertyValues struct {
	PropertyDefinition // with the type for a property that has none yet; without a type it gets none

	Kinds physical.Kinds
}

// Widen notes, in one write, which kinds of values properties are about to get, and the types of those that have none. It must be called before the values are
// written, in the turn of the project's writer: then what [ProjectSchema] says of a property covers all of its values that can be read. lost says that there
// are also values of which nothing can be noted; properties for which the project has no room count as such. From then on, nothing is noted of properties
// without noted kinds. An unknown project is ErrNotFound.
func (r *Registry) Widen(ctx context.Context, project int64, list []PropertyValues, lost bool) error {
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		all := p.settings.Project.ValuesKnown && !lost
		for _, v := range list {
			before, there := p.properties.Get(v.place())
			next := property{PropertyDefinition: v.PropertyDefinition, Kinds: before.kinds, project: t.project}
			switch {
			case there:
				next.Type = before.typ
			case utf8.RuneCountInString(v.Name) > maxPropertyName: // nothing is ever noted of it
				continue
			case v.Type == "" || p.properties.Len() >= MaxProperties:
				all = false
				continue
			}
			if all && before.kinds == 0 && p.settings.Project.ValuesProbe.Open {
				next.Kinds = physical.Earlier
			}
			if all || before.kinds != 0 {
				next.Kinds |= v.Kinds
			}
			if err := next.validate(); err != nil {
				return err
			}
			if there && next.Kinds == before.kinds {
				continue
			}
			if err := t.put(&next); err != nil {
				return err
			}
		}
		if all == p.settings.Project.ValuesKnown {
			return nil
		}
		return t.putValuesKnown(p, all)
	})
	if err != nil {
		return fmt.Errorf("recording kinds of values: %w", err)
	}
	return nil
}

// KnowValues says that a project is empty, so that what is noted of its properties from now on is complete: nothing was ever written to it, or all was taken
// out again. It must be called in the turn of the project's writer. An unknown project is ErrNotFound.
func (r *Registry) KnowValues(ctx context.Context, project int64) error {
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		if p.settings.Project.ValuesProbe.Open {
			changed := p.settings.Project
			changed.ValuesKnown, changed.ValuesProbe.Open = true, false
			changed.ValuesProbe.Number++ // the result of a probe in progress is not wanted
			return t.put(&changed)
		}
		return t.putValuesKnown(p, true)
	})
	if err != nil {
		return fmt.Errorf("recording that kinds of values are known: %w", err)
	}
	return nil
}

// BeginValuesProbe starts to note the values of a project that already has some, and starts a probe for these. It must be called in the turn of the project's
// writer, when nothing is being written. From then on, a property of which nothing is noted has [physical.Earlier]. What can be read of the project afterwards
// includes all values that are not noted. The number is for [Registry.EndValuesProbe]. An unknown project is ErrNotFound.
func (r *Registry) BeginValuesProbe(ctx context.Context, project int64) (number int64, err error) {
	err = r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		var unknown []property
		for each := p.properties.Iterator(); !each.Done(); {
			def, state, _ := each.Next()
			if state.kinds == 0 && (!p.settings.Project.ValuesKnown || p.settings.Project.ValuesProbe.Open) {
				def.Type = state.typ
				unknown = append(unknown, property{PropertyDefinition: def, Kinds: physical.Earlier, project: project})
			}
		}
		for n := range unknown {
			if err := t.put(&unknown[n]); err != nil {
				return err
			}
		}
		changed := p.settings.Project
		changed.ValuesProbe.Open = changed.ValuesProbe.Open || !changed.ValuesKnown
		changed.ValuesKnown = true
		changed.ValuesProbe.Number++
		number = changed.ValuesProbe.Number
		return t.put(&changed)
	})
	if err != nil {
		return 0, fmt.Errorf("recording that a probe for values begins: %w", err)
	}
	return number, nil
}

// EndValuesProbe notes what the probe with a number has found, unless another one has begun since. The list has the kinds of all properties with values, and
// the properties without values, as far as they were asked for: their kinds are known now, unless they include [physical.Earlier]. Other properties stay as
// they are. An unknown project is ErrNotFound.
func (r *Registry) EndValuesProbe(ctx context.Context, project, number int64, list []PropertyValues, now time.Time) error {
	err := r.endProbe(ctx, project, number, now, func(t *tx, p *projectState, changed *Project) error {
		changed.ValuesProbe.Open = false
		for _, v := range list {
			before, there := p.properties.Get(v.place())
			if !there { // a probe gives it no type, and so its kinds have no place
				changed.ValuesProbe.Open = changed.ValuesProbe.Open || utf8.RuneCountInString(v.Name) <= maxPropertyName
				continue
			}
			if before.kinds&physical.Earlier == 0 && (before.kinds != 0 || !changed.ValuesKnown) {
				continue
			}
			next := property{PropertyDefinition: v.PropertyDefinition, Kinds: before.kinds&^physical.Earlier | v.Kinds, project: project}
			if next.Type = before.typ; next.Kinds == before.kinds {
				continue
			}
			if err := t.put(&next); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording what a probe for values has found: %w", err)
	}
	return nil
}

// FailValuesProbe notes that the probe with a number has ended without a result.
func (r *Registry) FailValuesProbe(ctx context.Context, project, number int64, now time.Time) error {
	err := r.endProbe(ctx, project, number, now, func(*tx, *projectState, *Project) error { return nil })
	if err != nil {
		return fmt.Errorf("recording that a probe for values has failed: %w", err)
	}
	return nil
}

// endProbe notes that the probe with a number has ended, with the changes of note. It does nothing if another probe has begun since.
func (r *Registry) endProbe(
	ctx context.Context, project, number int64, now time.Time, note func(t *tx, p *projectState, changed *Project) error,
) error {
	return r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		changed := p.settings.Project
		if changed.ValuesProbe.Number != number {
			return nil
		}
		changed.ValuesProbe.Ended = moment(now)
		if err := note(t, p, &changed); err != nil {
			return err
		}
		return t.put(&changed)
	})
}

func (t *tx) putValuesKnown(p *projectState, known bool) error {
	if p.settings.Project.ValuesKnown == known {
		return nil
	}
	changed := p.settings.Project
	changed.ValuesKnown = known
	return t.put(&changed)
}

// putProperties sets the types of properties. What an import learns never replaces a type; if the project has no room for it, the property reads as a String.
func (t *tx) putProperties(p *projectState, defs []PropertyDefinition, learn bool) error {
	for _, d := range defs {
		before, there := p.properties.Get(d.place())
		if there && (learn || before.typ == d.Type) || learn && (utf8.RuneCountInString(d.Name) > maxPropertyName || p.properties.Len() >= MaxProperties) {
			continue
		}
		if err := t.put(&property{PropertyDefinition: d, Kinds: before.kinds, project: t.project}); err != nil {
			return err
		}
	}
	return nil
}

func (d PropertyDefinition) validate() error {
	switch d.Scope {
	case EventProperty, PersonProperty:
		if d.GroupTypeIndex != 0 {
			return invalid("group_type_index", "Only a group property has a group type index.")
		}
	case GroupProperty:
		if err := inRange("group_type_index", d.GroupTypeIndex, 0, physical.GroupTypes-1); err != nil {
			return err
		}
	default:
		return notChoice("type", string(d.Scope))
	}
	if !slices.Contains([]PropertyType{PropertyString, PropertyNumeric, PropertyBoolean, PropertyDateTime}, d.Type) {
		return notChoice("property_type", string(d.Type))
	}
	return nil
}

func (g GroupType) validate() error {
	switch {
	case g.Name == "":
		return required("group_type")
	case utf8.RuneCountInString(g.Name) > maxGroupType:
		return tooLong("group_type", maxGroupType)
	}
	return inRange("group_type_index", g.Index, 0, physical.GroupTypes-1)
}
