package clickhouse

import (
	"cmp"
	"math"
	"slices"
	"strings"
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

// typeLearner learns the type of each property from its first value that is not null.
type typeLearner struct {
	known map[propertyKey]bool
	found map[propertyKey]string
	learn bool
	most  int  // how many properties may be known
	full  bool // there were more
}

// maxLearnedName is how many bytes a name may have whose type is learned: four for each of the 400 characters of a definition.
const maxLearnedName = 1600

func newTypeLearner(known []LearnedProperty, learn bool, most int) typeLearner {
	l := typeLearner{known: map[propertyKey]bool{}, found: map[propertyKey]string{}, learn: learn, most: cmp.Or(most, math.MaxInt)}
	for _, p := range known {
		l.known[propertyKey{p.Scope, p.GroupTypeIndex, p.Name}] = true
	}
	return l
}

// observe looks at the properties of an event, person or group.
func (l *typeLearner) observe(scope string, group int, properties object) {
	if !l.learn {
		return
	}
	for _, m := range properties {
		if scope == eventScope && notAProperty(m.key) {
			continue
		}
		key := propertyKey{scope, group, m.key}
		if l.known[key] || string(m.value) == "null" || len(m.key) > maxLearnedName {
			continue
		}
		if len(l.known) >= l.most {
			l.full = true
			continue
		}
		l.known[key] = true
		l.found[key] = typeOf(m.value)
	}
}

// notAProperty tells the parts of an event's properties that speak about its person and groups.
func notAProperty(name string) bool {
	switch name {
	case "$set", "$set_once", "$unset", "$groups", "$group_set", "$elements", "$elements_chain":
		return true
	}
	index, ok := strings.CutPrefix(name, "$group_")
	return ok && len(index) == 1 && index[0] >= '0' && index[0] < '0'+maxGroupTypes
}

// typeOf is the type that a value of canonical JSON shows.
func typeOf(value []byte) string {
	switch c := value[0]; {
	case c == 't' || c == 'f':
		return "Boolean"
	case c == '-' || c >= '0' && c <= '9':
		return "Numeric"
	case c == '"':
		if s, ok := unquote(value); ok {
			if _, ok := parseTime(s); ok {
				return "DateTime"
			}
		}
	}
	return "String"
}

// learned lists what was found, in the order of scope, group and name.
func (l *typeLearner) learned() []LearnedProperty {
	list := make([]LearnedProperty, 0, len(l.found))
	for key, typ := range l.found {
		list = append(list, LearnedProperty{Scope: key.scope, GroupTypeIndex: key.group, Name: key.name, Type: typ})
	}
	slices.SortFunc(list, func(a, b LearnedProperty) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex), cmp.Compare(a.Name, b.Name))
	})
	return list
}
