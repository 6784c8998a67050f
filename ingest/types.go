package ingest

import (
	"cmp"
	"math"
	"slices"
	"strings"

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
func (l *typeLearner) observe(scope string, group int, properties record.Object) {
	if !l.learn {
		return
	}
	for _, m := range properties {
		if scope == eventScope && notAProperty(m.Key) {
			continue
		}
		key := propertyKey{scope, group, m.Key}
		if l.known[key] || m.Value.IsNull() || len(m.Key) > maxLearnedName {
			continue
		}
		if len(l.known) >= l.most {
			l.full = true
			continue
		}
		l.known[key] = true
		l.found[key] = m.Value.Type()
	}
}

// notAProperty reports whether a property of an event speaks about its person and groups.
func notAProperty(name string) bool {
	switch name {
	case "$set", "$set_once", "$unset", "$groups", "$group_set", "$elements", "$elements_chain":
		return true
	}
	index, ok := strings.CutPrefix(name, "$group_")
	return ok && len(index) == 1 && index[0] >= '0' && index[0] < '0'+physical.GroupTypes
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
