package ingest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Scopes of property definitions.
const (
	eventScope  = "event"
	personScope = "person"
	groupScope  = "group"
)

// propertyKey names a property.
type propertyKey struct {
	scope string
	group int
	name  string
}

// typeLearner learns the type of each property from its first value that is not null, and notes which kinds of values it gets.
type typeLearner struct {
	known map[propertyKey]physical.Kinds // kinds of the properties that have a type, as of the turn of the batch; 0 if they are not known
	found map[propertyKey]string
	learn bool
	most  int  // how many properties may be known
	full  bool // there were more
	// The kinds that properties get but are not known to have had. They are noted for properties whose other kinds are known and, if all is set, for properties
	// that come for the first time.
	fresh map[propertyKey]physical.Kinds
	all   bool
	lost  bool // a property without a type has values that cannot be noted
}

// maxLearnedName is how many bytes a name may have for its type to be learned: four for each of the 400 characters of a definition.
const maxLearnedName = 1600

func newTypeLearner(known []LearnedProperty, learn bool, most int) typeLearner {
	l := typeLearner{
		known: make(map[propertyKey]physical.Kinds, len(known)), found: map[propertyKey]string{}, learn: learn, most: cmp.Or(most, math.MaxInt),
		fresh: map[propertyKey]physical.Kinds{},
	}
	l.know(known)
	return l
}

// know adds what is known about properties. Kinds only grow.
func (l *typeLearner) know(properties []LearnedProperty) {
	for _, p := range properties {
		l.known[propertyKey{p.Scope, p.GroupTypeIndex, p.Name}] |= p.Kinds
	}
}

// observe looks at the properties of an event, person or group.
func (l *typeLearner) observe(scope string, group int, properties record.Object) {
	for _, m := range properties {
		if scope == eventScope && physical.NotAProperty(m.Key) {
			continue
		}
		key := propertyKey{scope, group, m.Key}
		kinds := kindsOf(m.Value)
		known, there := l.known[key]
		switch {
		case kinds == 0, there && known == 0 && !l.all, known&kinds == kinds, len(m.Key) > maxLearnedName:
			continue
		case there:
		case !l.learn:
			l.lost = true
			continue
		case len(l.known) >= l.most:
			l.full, l.lost = true, true
			continue
		default:
			l.known[key] = 0
			l.found[key] = m.Value.Type()
			if !l.all {
				continue
			}
		}
		l.fresh[key] |= kinds
	}
}

// kindsOf returns the kind of a value; 0 for null.
func kindsOf(v record.Value) physical.Kinds {
	switch {
	case len(v) == 0 || v.IsNull():
		return 0
	case v[0] == '"':
		return physical.Texts
	case v[0] == '{':
		return physical.Objects
	case v[0] == '[':
		return physical.Arrays
	case v[0] == 't' || v[0] == 'f':
		return physical.Booleans
	case bytes.ContainsAny(v, "eE") || string(v) == "-0": // ClickHouse may store these either way
		return physical.Wholes | physical.Floats
	case bytes.IndexByte(v, '.') >= 0:
		return physical.Floats
	case len(v) > exactDigits:
		return physical.BigWholes
	}
	return physical.Wholes
}

// exactDigits is how many digits a whole number may have to surely be exact as a 64-bit float.
const exactDigits = 15

// Values keeps which kinds of values the properties of a project have had, so that queries read only these.
type Values interface {
	// Known reports whether all values of the project were noted. It is called in the turn of each batch.
	Known() bool
	// Changed returns all properties that have a type, with their kinds, if these may have grown since the last call or, at the first call, since
	// Options.KnownTypes. Otherwise it returns none. It is called in the turn of each batch, after KeepGroupTypes: a session has no other way to know what others
	// have noted since it began.
	Changed() []LearnedProperty
	// Begin says that the project has no values yet, so that from now on all will be noted.
	Begin(ctx context.Context) error
	// Widen notes kinds that properties are about to get, with the types of those that have none. lost says that there are also values of which nothing can be
	// noted. It returns when every query that reads the values will know of them.
	Widen(ctx context.Context, found []LearnedProperty, lost bool) error
}

// beginValues starts a batch with what others noted, and with whether all values are noted. They are not in a project that already has some, written by an
// earlier version or another program. An ingester that does not write alone cannot know what others write.
func (s *session) beginValues(ctx context.Context, p *projectState) error {
	values := s.options.Values
	s.types.all = values != nil && p.alone && values.Known()
	if values == nil || !p.alone {
		return nil
	}
	s.types.know(values.Changed())
	if s.types.all || p.old {
		return nil
	}
	empty, err := s.store.empty(ctx)
	if err != nil {
		return fmt.Errorf("checking whether the project has data: %w", err)
	}
	if !empty {
		p.old = true
		return nil
	}
	if err := values.Begin(ctx); err != nil {
		return err
	}
	s.types.all = true
	return nil
}

// empty reports whether no table has properties of the project.
func (s *store) empty(ctx context.Context) (bool, error) {
	empty := true
	for _, table := range []string{physical.Events, physical.Persons, "groups"} {
		err := s.query(ctx, "SELECT 1 FROM "+table+" WHERE "+physical.Project+" = {project:Int64} LIMIT 1", func([]clickhouse.Cell) error {
			empty = false
			return nil
		})
		if err != nil || !empty {
			return false, err
		}
	}
	return empty, nil
}

// keepValues keeps the kinds of values that a batch brings, before the values are written.
func (s *session) keepValues(ctx context.Context) error {
	l := &s.types
	for _, one := range s.people.persons {
		if one.changed {
			l.observe(personScope, 0, one.properties)
		}
	}
	for id, one := range s.groups.known {
		if one.changed {
			l.observe(groupScope, id.index, one.properties)
		}
	}
	lost := l.lost && l.all
	if s.options.Values == nil || len(l.fresh) == 0 && !lost {
		return nil
	}
	found := make([]LearnedProperty, 0, len(l.fresh))
	for key, kinds := range l.fresh {
		found = append(found, LearnedProperty{Scope: key.scope, GroupTypeIndex: key.group, Name: key.name, Type: l.found[key], Kinds: kinds})
	}
	slices.SortFunc(found, LearnedProperty.compare)
	if err := s.options.Values.Widen(ctx, found, lost); err != nil {
		return fmt.Errorf("keeping kinds of values: %w", err)
	}
	for key, kinds := range l.fresh {
		l.known[key] |= kinds
	}
	clear(l.fresh)
	l.lost = false
	return nil
}

// compare orders by scope, group and name.
func (p LearnedProperty) compare(other LearnedProperty) int {
	return cmp.Or(cmp.Compare(p.Scope, other.Scope), cmp.Compare(p.GroupTypeIndex, other.GroupTypeIndex), cmp.Compare(p.Name, other.Name))
}

// learned lists what was found, in the order of scope, group and name.
func (l *typeLearner) learned() []LearnedProperty {
	list := make([]LearnedProperty, 0, len(l.found))
	for key, typ := range l.found {
		list = append(list, LearnedProperty{Scope: key.scope, GroupTypeIndex: key.group, Name: key.name, Type: typ})
	}
	slices.SortFunc(list, LearnedProperty.compare)
	return list
}
