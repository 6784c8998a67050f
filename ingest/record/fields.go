package record

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Names of the fields that a line can have, by what it describes.
var fieldNames = map[Kind][]string{
	Event:  {"type", "event", "distinct_id", "timestamp", propertiesField, "uuid", "person_id", "elements_chain"},
	Person: {"type", "distinct_ids", "distinct_id", propertiesField, "created_at", "person_id"},
	Group:  {"type", "group_type", "group_type_index", "group_key", propertiesField, "created_at"},
	Cohort: {"type", "cohort_id", "distinct_ids", propertiesField},
}

// FieldNames lists the fields that lines can have.
func FieldNames() []string {
	var all []string
	for kind := Event; kind <= Cohort; kind++ {
		all = append(all, fieldNames[kind]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (k Kind) hasField(name string) bool { return slices.Contains(fieldNames[k], name) }

// Fields reads a JSON object into its members. If its field properties is an object, its members are returned apart. fields is valid until the next call.
func (p *Parser) Fields(text []byte) (fields, properties Object, err error) {
	if p.keys == nil {
		p.keys = map[string]string{}
	}
	in := Reader{in: text, out: make([]byte, 0, len(text)), names: maxRecordNames, most: maxRecordNames, shared: true, keys: p.keys}
	if in.Kind() != '{' {
		return nil, nil, errNoObject
	}
	fields, properties, err = in.members(p.fields[:0], propertiesField, make(Object, 0, p.size))
	p.fields, p.size = fields, len(properties)
	if err != nil {
		return nil, nil, err
	}
	return fields, properties, in.End()
}

// propertiesOf checks the properties that Fields read.
func propertiesOf(fields, properties Object) (Object, error) {
	switch given := fields.Get(propertiesField); {
	case !given.given():
		return nil, nil
	case given[0] != '{':
		return nil, errors.New("its properties are not a JSON object")
	case properties.ManyNames():
		return nil, errManyNames
	}
	return properties, nil
}

// ParseObject reads the text of a JSON object that becomes properties.
func ParseObject(text []byte) (Object, error) {
	o, err := parseObject(text)
	if err == nil && o.ManyNames() {
		err = errManyNames
	}
	return o, err
}

// Given reports whether there is a value other than null.
func (v Value) Given() bool { return v.given() }

// personField reads the id of a person. It may be left out, empty or null.
func personField(o Object) (uuid.UUID, error) {
	text, given, err := textField(o, "person_id")
	if err != nil || !given || text == "" {
		return uuid.Nil, err
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("its person_id %s is not a UUID", Quoted(text))
	}
	return id, nil
}
