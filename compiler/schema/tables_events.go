package schema

import (
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// eventsTable is the name of the table of events, and of the physical table behind it.
const eventsTable = physical.Events

// events is the table of events in each person mode.
var events = func() map[PersonMode]*Table {
	byMode := make(map[PersonMode]*Table, len(PersonModes))
	for _, mode := range PersonModes {
		t := &Table{Name: eventsTable, Physical: eventsTable, Fields: eventFields(mode)}
		t.index()
		byMode[mode] = t
	}
	return byMode
}()

var overrideJoin = &LazyJoin{
	Name: "override", Table: "person_distinct_id_overrides", Local: "distinct_id", Foreign: "distinct_id", Unique: true, Group: -1, Overrides: true,
}

// recordedPerson returns the fields of a person as recorded in an event, below the name path.
func recordedPerson(path string) []Field {
	return slices.Concat([]Field{
		{Name: "id", Column: "person_id", Type: uuidType},
		{Name: "created_at", Column: "person_created_at", Type: timeType},
		{Name: "properties", Column: "person_properties", Type: jsonType, Scope: PersonProperty},
	}, initialFields(path+".properties"))
}

// eventPerson returns the fields of events that identify the person.
func eventPerson(mode PersonMode) (id, person Field) {
	id = Field{Name: "person_id", Type: uuidType}
	recorded := recordedPerson("person")
	recorded[0] = Field{Name: "id", Same: "person_id", Type: uuidType}
	person = Field{Name: "person", Fields: recorded}
	switch mode {
	case PersonOverridden:
		id.Override = overrideJoin
	case PersonOverriddenJoined:
		id.Override = overrideJoin
		person.Fields, person.Join = nil, &LazyJoin{
			Name: "person", Table: "persons", Local: "person_id", Foreign: "id", Unique: true, Group: -1,
		}
	case PersonRecorded:
	case PersonJoined:
		id.Same = "pdi.person_id"
		person = Field{Name: "person", Same: "pdi.person"}
	}
	return id, person
}

// issueOfEvent is the issue that an exception was sent with. Issues are never merged.
var issueOfEvent = formula("toUUID(properties.$exception_issue_id)")

// userAgent is the property that the fields about the sender of an event read. As in PostHog, an event without it was sent by a program without a user
// agent, which counts as a bot.
const userAgent = "properties.$raw_user_agent"

func eventFields(mode PersonMode) []Field {
	personID, person := eventPerson(mode)
	fields := []Field{
		{Name: "uuid", Type: uuidType},
		{Name: "event", Type: stringType},
		{Name: "properties", Type: jsonType, Scope: EventProperty},
		{Name: "timestamp", Type: timeType},
		project,
		{Name: "distinct_id", Type: stringType},
		{Name: "elements_chain", Type: stringType},
		{Name: "created_at", Type: timeType},
		{Name: "inserted_at", Type: timeType, Hidden: true},
		{Name: "$session_id", Type: stringType},
		{Name: "$session_id_uuid", Type: uuidType, Hidden: true, Formula: formula("toUUID($session_id)")},
		{Name: "$window_id", Type: stringType},
		{Name: "person_mode", Type: stringType},
		personID,
		{Name: "event_person_id", Column: "person_id", Type: uuidType, Hidden: true},
	}
	for i := range groupTypes {
		fields = append(fields, Field{Name: "$group_" + strconv.Itoa(i), Type: stringType})
	}
	fields = append(fields,
		Field{Name: "elements_chain_href", Type: stringType},
		Field{Name: "elements_chain_texts", Type: stringsOf},
		Field{Name: "elements_chain_ids", Type: stringsOf},
		Field{Name: "elements_chain_elements", Type: stringsOf},
		Field{Name: "pdi", Join: &LazyJoin{
			Name: "pdi", Table: "person_distinct_ids", Local: "distinct_id", Foreign: "distinct_id", Inner: true, Unique: true, Group: -1,
		}},
		person,
		Field{Name: "_current_person", Hidden: true, Join: &LazyJoin{
			Name: "current_person", Table: "persons", Local: "person_id", Foreign: "id", Unique: true, Group: -1,
		}},
		Field{Name: "$virt_is_bot", Type: boolType, Hidden: true, Formula: formula("isLikelyBot(" + userAgent + ")")},
		Field{Name: "$virt_traffic_type", Type: stringType, Hidden: true, Formula: formula("getTrafficType(" + userAgent + ")")},
		Field{Name: "$virt_traffic_category", Type: stringType, Hidden: true, Formula: formula("getTrafficCategory(" + userAgent + ")")},
		Field{Name: "$virt_bot_name", Type: stringType, Hidden: true, Formula: formula("getBotName(" + userAgent + ")")},
		Field{Name: "$virt_bot_operator", Type: stringType, Hidden: true, Formula: formula("getBotOperator(" + userAgent + ")")},
		Field{Name: "event_issue_id", Type: uuidType, Hidden: true, Formula: issueOfEvent},
		Field{Name: "issue_id", Type: uuidType, Hidden: true, Formula: issueOfEvent},
		Field{Name: "poe", Fields: recordedPerson("poe")},
		Field{Name: "override", Join: overrideJoin},
		Field{Name: "session", Join: &LazyJoin{
			Name: "session", Table: "sessions", Local: "$session_id", Foreign: "session_id", Unique: true, Group: -1,
		}},
	)
	for i := range groupTypes {
		n := strconv.Itoa(i)
		fields = append(fields,
			Field{Name: "group_" + n, Join: &LazyJoin{
				Name: "group_" + n, Table: "groups", Local: "$group_" + n, Foreign: "key", Unique: true, Group: i,
			}},
			Field{Name: "goe_" + n, Fields: []Field{
				{Name: "key", Column: "$group_" + n, Type: stringType},
				{Name: "created_at", Column: "group" + n + "_created_at", Type: timeType},
				{Name: "properties", Column: "group" + n + "_properties", Type: jsonType, Scope: GroupProperty, Group: i},
			}},
		)
	}
	return fields
}

// IsGroups reports whether the rows of the table are groups, of all types.
func (t *Table) IsGroups() bool { return t.Physical == "groups" }

// IsEvents reports whether the rows of the table are events.
func (t *Table) IsEvents() bool { return t.Name == eventsTable }
