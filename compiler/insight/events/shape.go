package events

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// field is one member of an object: its name in the answer, and where its value comes from.
type field struct {
	name  string
	chain []string // nil for the display name of the event's person
	json  bool     // the value is a text that contains JSON
}

func (b builder) field(f field) hogql.Expr {
	if f.chain == nil {
		return b.calledBy()
	}
	return insight.Field(f.chain...)
}

// calledBy returns the display name of an event's person.
func (b builder) calledBy() hogql.Expr {
	var names []hogql.Expr
	for _, property := range b.world.DisplayProperties() {
		names = append(names, insight.Call("nullIf", insight.Call("toString", insight.Field("person", "properties", property)), insight.Const("")))
	}
	return insight.Call("coalesce", append(names, insight.Field("distinct_id"))...)
}

// objects can be selected as one value: a whole event, the person of an event, and the person's display name.
var objects = map[string][]field{
	"*": {
		{name: "uuid", chain: []string{"uuid"}},
		{name: "event", chain: []string{"event"}},
		{name: "properties", chain: []string{"properties"}, json: true},
		{name: "timestamp", chain: []string{"timestamp"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
		{name: "elements_chain", chain: []string{"elements_chain"}},
		{name: "created_at", chain: []string{"created_at"}},
	},
	"person": {
		{name: "uuid", chain: []string{"person_id"}},
		{name: "created_at", chain: []string{"person", "created_at"}},
		{name: "properties", chain: []string{"person", "properties"}, json: true},
		{name: "distinct_id", chain: []string{"distinct_id"}},
	},
	insight.DisplayName: {
		{name: "display_name"},
		{name: "id", chain: []string{"person_id"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
	},
}

// titled removes the title of a column, which follows --.
func titled(column string) string {
	name, _, _ := strings.Cut(column, "--")
	return strings.TrimSpace(name)
}

// objectOf returns the members of a column that is selected as one value.
func objectOf(column string) ([]field, bool) {
	fields, ok := objects[titled(column)]
	return fields, ok
}

// shapes returns a function that turns the tuples of a row into objects; nil if no column is an object.
func shapes(columns []string) func(row []byte) ([]byte, error) {
	wanted := map[int]insight.Object{}
	for i, column := range columns {
		fields, ok := objectOf(column)
		if !ok {
			continue
		}
		members := make([]insight.Member, len(fields))
		for k, f := range fields {
			members[k] = insight.Member{Name: f.name, JSON: f.json}
		}
		wanted[i] = insight.ObjectOf(members)
	}
	return insight.Objects(len(columns), wanted)
}
