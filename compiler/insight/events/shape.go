package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/elements"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// field is one member of an object: its name in the answer, and where its value comes from.
type field struct {
	name  string
	chain []string
	expr  func(builder) hogql.Expr // instead of chain
	json  bool                     // the value is a text that contains JSON
}

func (b builder) field(f field) hogql.Expr {
	if f.expr != nil {
		return f.expr(b)
	}
	return b.of(f.chain...)
}

// calledBy returns the display name of an event's person.
func (b builder) calledBy() hogql.Expr {
	property := func(name string) hogql.Expr { return b.of("person", "properties", name) }
	return b.world.PersonName(property, b.of("distinct_id"))
}

// personMode says how an event's person was recorded: full, or without a profile.
const personMode = "person_mode"

// hasMode reports whether the table of events has personMode.
func (b builder) hasMode() bool {
	events, ok := b.world.Database.Table("events")
	if ok {
		_, ok = b.world.Database.Field(events, personMode)
	}
	return ok
}

// objects can be selected as one value: a whole event, and the display name of its person. The person itself is joined: see withPeople.
var objects = map[string][]field{
	eventColumn: {
		{name: "uuid", chain: []string{"uuid"}},
		{name: "event", chain: []string{"event"}},
		{name: "properties", chain: []string{"properties"}, json: true},
		{name: "timestamp", chain: []string{"timestamp"}},
		{name: "team_id", chain: []string{"team_id"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
		{name: "elements_chain", chain: []string{"elements_chain"}},
		{name: "created_at", chain: []string{"created_at"}},
		{name: personMode, chain: []string{personMode}},
	},
	insight.DisplayName: {
		{name: "display_name", expr: builder.calledBy},
		{name: "id", chain: []string{"person_id"}},
		{name: "distinct_id", chain: []string{"distinct_id"}},
	},
}

// eventColumn is the column that shows a whole event, and eventElements the place of elements_chain among its members.
const (
	eventColumn   = "*"
	eventElements = 6
)

// wholeEvent builds the object for an event. One with elements has a list of them too.
func wholeEvent(members []insight.Member) insight.Object {
	event := insight.ObjectOf(members)
	return func(dst []byte, values []json.RawMessage) ([]byte, error) {
		dst, err := event(dst, values)
		if err != nil {
			return nil, err
		}
		var chain string
		if err := json.Unmarshal(values[eventElements], &chain); err != nil {
			return nil, fmt.Errorf("its elements: %w", err)
		}
		if chain == "" {
			return dst, nil
		}
		list, err := json.Marshal(elements.Of(chain))
		if err != nil {
			return nil, fmt.Errorf("its elements: %w", err)
		}
		dst = append(dst[:len(dst)-1], `,"elements":`...)
		return append(append(dst, list...), '}'), nil
	}
}

// somebody and nobody build the object for the person of an event: without a person, it is the distinct id alone.
var (
	somebody = insight.ObjectOf([]insight.Member{{Name: "uuid"}, {Name: "created_at"}, {Name: "properties", JSON: true}, {Name: "distinct_id"}})
	nobody   = insight.ObjectOf([]insight.Member{{Name: "distinct_id"}})
)

// personOrID builds the object for the person of an event from the tuple that withPeople selects.
func personOrID(dst []byte, values []json.RawMessage) ([]byte, error) {
	if len(values) > 0 && (string(values[0]) == "0" || string(values[0]) == "null") {
		return nobody(dst, values[len(values)-1:])
	}
	return somebody(dst, values[min(1, len(values)):])
}

// titled removes the title of a column, which follows --.
func titled(column string) string {
	name, _, _ := strings.Cut(column, "--")
	return strings.TrimSpace(name)
}

// objectOf returns the members of a column that is selected as one value.
func (b builder) objectOf(column string) ([]field, bool) {
	fields, ok := objects[titled(column)]
	if !b.hasMode() {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.name == personMode })
	}
	return fields, ok
}

// shapes returns a function that turns the tuples of a row into objects; nil if no column is an object.
func (b builder) shapes() func(row []byte) ([]byte, error) {
	columns := b.query.Select
	wanted := map[int]insight.Object{}
	for i, column := range columns {
		if titled(column) == personColumn {
			wanted[i] = personOrID
			continue
		}
		fields, ok := b.objectOf(column)
		if !ok {
			continue
		}
		members := make([]insight.Member, len(fields))
		for k, f := range fields {
			members[k] = insight.Member{Name: f.name, JSON: f.json}
		}
		wanted[i] = insight.ObjectOf(members)
		if titled(column) == eventColumn {
			wanted[i] = wholeEvent(members)
		}
	}
	return insight.Objects(len(columns), wanted)
}
