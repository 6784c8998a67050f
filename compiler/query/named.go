package query

import (
	"cmp"
	"strconv"
	"strings"
)

// Named is the name of an event or of a property in a node.
type Named struct {
	Name string
	// Type is the type of a property, as in a filter: event, person or group, or one whose properties are not stored. It is empty for the name of an
	// event.
	Type  string
	Group int    // the index of the group type
	Attr  string // the dotted field
}

// Namer is a part of a node that names events or properties in its own fields, not counting its inner parts.
type Namer interface{ Names() []Named }

// Names returns the event, and the property of the math.
func (s Series) Names() []Named {
	of, _ := strings.CutSuffix(cmp.Or(s.Math.PropertyType, "event_properties"), "_properties")
	names := []Named{{Name: s.Math.Property, Type: of, Attr: below(s.At, "math_property")}}
	return append(EventNames(s.Event, below(s.At, cmp.Or(s.EventField, "event"))), names...)
}

// Names returns the property of a filter; for a behavioral filter, its event and the properties of the filters on that event.
func (c Condition) Names() []Named {
	if c.Filter == nil {
		return nil
	}
	if b := c.Filter.Behavior; b != nil {
		names := []Named{{Name: b.Event, Attr: below(c.At, "key")}}
		for i := range b.Filters {
			names = append(names, Condition{At: below(c.At, "event_filters."+strconv.Itoa(i)), Filter: &b.Filters[i]}.Names()...)
		}
		return names
	}
	return []Named{{Name: c.Filter.Key, Type: c.Filter.Type, Group: c.Filter.Group, Attr: below(c.At, "key")}}
}

// Names returns the property.
func (b Breakdown) Names() []Named {
	return []Named{{Name: b.Property, Type: b.Type, Group: b.Group, Attr: b.At}}
}

// EventNames returns the name of an event in a field; none for nil.
func EventNames(event *string, attr string) []Named {
	if event == nil {
		return nil
	}
	return []Named{{Name: *event, Attr: attr}}
}

func below(at, field string) string { return strings.TrimPrefix(at+"."+field, ".") }
