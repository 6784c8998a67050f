// Package taxonomy has the queries about what a project's data contains: its events, their properties, and the values of
// these. Names from callers are always placeholder values, never part of the text.
package taxonomy

import (
	"encoding/json"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Events returns the query for the events seen, by name. A row is a name, and the times of its first and last event.
func Events() *query.HogQL {
	return &query.HogQL{Query: "select event, min(timestamp), max(timestamp) from events group by event order by event limit 50000"}
}

// Cohorts returns the query for the cohorts that have members. A row is a cohort's number, how many people are in it, and how many of these
// were computed.
func Cohorts() *query.HogQL {
	return &query.HogQL{
		Query: "select cohort_id, count(), sum(computed) from (select cohort_id, person_id, max(source) as computed from " +
			"(select cohort_id, person_id, 0 as source from static_cohort_people union all select cohort_id, person_id, 1 as source from cohort_people) " +
			"group by cohort_id, person_id) group by cohort_id order by cohort_id limit 50000",
	}
}

// CohortsOf returns the query for the cohorts of a person. A row is the number of a cohort.
func CohortsOf(person string) *query.HogQL {
	return &query.HogQL{
		Query: "select distinct cohort_id from (select cohort_id, person_id from static_cohort_people union all select cohort_id, person_id from cohort_people) " +
			"where person_id = {person} order by cohort_id limit 50000",
		Values: map[string]any{"person": person},
	}
}

// Properties returns the query for the properties of the latest events with some names. A row is the name of a property.
func Properties(events []string) *query.HogQL {
	return properties("event in {events}", map[string]any{"events": list(events)})
}

// ActionProperties is Properties for the events that match an action.
func ActionProperties(action int64) *query.HogQL {
	return properties(matchesAction, map[string]any{"action": number(action)})
}

const matchesAction = "matchesAction({action})"

// properties lists the properties of the latest events that satisfy a condition.
func properties(condition string, values map[string]any) *query.HogQL {
	return &query.HogQL{
		Query: "select distinct arrayJoin(JSONExtractKeys(properties)) from " +
			"(select properties from events where " + condition + " order by timestamp desc limit 1000) limit 50000",
		Values: values,
	}
}

// PropertiesByEvent returns the query for the properties of events, except those set by SDKs, whose names begin with $. It reads the latest 50
// events of each name among the latest million. A row is the name of an event, the name of a property, and the first characters of its values
// as JSON, without null.
func PropertiesByEvent() *query.HogQL {
	const order = "order by timestamp desc, uuid"
	latest := "select uuid from (select event, timestamp, uuid from events " + order + " limit 1000000) " + order + " limit 50 by event limit 1000000"
	return &query.HogQL{
		Query: "select event, tupleElement(pair, 1) as name, arraySort(groupUniqArray(substring(tupleElement(pair, 2), 1, 1))) from " +
			"(select event, arrayJoin(JSONExtractKeysAndValuesRaw(properties)) as pair from events where uuid in (" + latest + ")) " +
			"where not startsWith(tupleElement(pair, 1), '$') and tupleElement(pair, 2) != 'null' group by event, name order by event, name limit 50000",
	}
}

// EventValues returns the query for the most frequent values of a property in the events with some names. A row is a value as text, and the number
// of events with it.
func EventValues(property string, events []string) *query.HogQL {
	return values(propertyValue, "events", "event in {events}", map[string]any{"property": property, "events": list(events)})
}

// ActionValues is EventValues for the events that match an action.
func ActionValues(property string, action int64) *query.HogQL {
	return values(propertyValue, "events", matchesAction, map[string]any{"property": property, "action": number(action)})
}

// PersonValues returns the query for the most frequent values of a person property. A row is a value as text, and the number of people with it.
func PersonValues(property string) *query.HogQL {
	return values(propertyValue, "persons", "", map[string]any{"property": property})
}

// GroupValues is PersonValues for the groups of the type with an index.
func GroupValues(property string, index int) *query.HogQL {
	return values(propertyValue, "groups", "index = {index}", map[string]any{"property": property, "index": number(int64(index))})
}

// SessionFields returns the fields of sessions that SELECT * has.
func SessionFields() []schema.Field {
	var fields []schema.Field
	sessions, _ := new(schema.Database).Table("sessions")
	for _, f := range sessions.Fields {
		if !f.Hidden {
			fields = append(fields, f)
		}
	}
	return fields
}

// SessionValues returns the query for the most frequent values of one of SessionFields in the sessions of the last seven days. A row is a value as text, and the
// number of sessions with it.
func SessionValues(field string) *query.HogQL {
	return values(schema.QuotedName(field), "sessions", "$start_timestamp > now() - interval 7 day", nil)
}

const propertyValue = "properties[{property}]"

// values counts the values of an expression in the rows of a table that satisfy a condition; empty for all rows.
func values(expr, table, condition string, given map[string]any) *query.HogQL {
	if condition != "" {
		condition += " and "
	}
	return &query.HogQL{
		Query: "select toString(" + expr + ") as value, count() from " + table +
			" where " + condition + "toString(" + expr + ") is not null group by value order by count() desc, value limit 25",
		Values: given,
	}
}

// number returns the placeholder value for a number.
func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// list returns the placeholder value for a list of texts.
func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}
