package taxonomy

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// EventPage says which events of a list are wanted.
type EventPage struct {
	Event      string // the name; empty for any
	DistinctID string // empty for any
	Person     string // the id of a person; empty for any
	// After and Before bound the time, both exclusive; a zero After is no bound.
	After, Before time.Time
	// OldestFirst sorts by ascending time instead of descending. Events with the same time are sorted by id.
	OldestFirst   bool
	Limit, Offset int
}

// ShownProperties are the person properties shown with an event.
var ShownProperties = []string{"email", "name", "username"}

// Query returns the query for the page. A row is the event's id, name, properties as JSON text, time, distinct id, element chain and person id,
// then 1 if the person exists, 1 if it is identified, and its ShownProperties. {filters} are further conditions.
func (p *EventPage) Query() *query.HogQL {
	q := &query.HogQL{Values: map[string]any{}}
	conditions := []string{"{filters}"}
	condition := func(text, name string, value any) {
		conditions, q.Values[name] = append(conditions, text), value
	}
	if p.Event != "" {
		condition("event = {event}", "event", p.Event)
	}
	if p.DistinctID != "" {
		condition("distinct_id = {distinct_id}", "distinct_id", p.DistinctID)
	}
	if p.Person != "" {
		condition("person_id = {person}", "person", p.Person)
	}
	if !p.After.IsZero() {
		condition("timestamp > "+timeOf("after"), "after", timeText(p.After))
	}
	condition("timestamp < "+timeOf("before"), "before", timeText(p.Before))
	order, edge := "timestamp desc, uuid", "timestamp >= (select min(timestamp)"
	if p.OldestFirst {
		order, edge = "timestamp, uuid", "timestamp <= (select max(timestamp)"
	}
	where := strings.Join(conditions, " and ")
	// Of the events beyond the page, only the times are read.
	edge += fmt.Sprintf(" from (select timestamp from events where %s order by %s limit %d))", where, order, p.Limit+p.Offset)
	q.Query = withPeople(fmt.Sprintf("where %s and %s order by %s limit %d offset %d", where, edge, order, p.Limit, p.Offset), order, p.Limit)
	return q
}

// OneEvent returns the query for the event with an id, as a row of EventPage. If several have the id, it is the latest.
func OneEvent(id string) *query.HogQL {
	return &query.HogQL{
		Query:  withPeople("where uuid = {id} order by timestamp desc limit 1", "timestamp", 1),
		Values: map[string]any{"id": id},
	}
}

// withPeople returns the query for events together with the current state of their people.
func withPeople(rest, order string, limit int) string {
	page := "select uuid, event, properties, timestamp, distinct_id, elements_chain, person_id from events " + rest
	shown, known := make([]string, len(ShownProperties)), make([]string, len(ShownProperties))
	for i, name := range ShownProperties {
		shown[i], known[i] = "p."+name, "properties."+name+" as "+name
	}
	return fmt.Sprintf("select e.uuid, e.event, e.properties, e.timestamp, e.distinct_id, e.elements_chain, e.person_id, p.known, p.identified, %[5]s from (%[1]s) e "+
		"left join (select id, 1 as known, if(is_identified, 1, 0) as identified, %[2]s from persons where id in (select person_id from (%[1]s))) p on p.id = e.person_id "+
		"order by %[3]s limit %[4]d",
		page, strings.Join(known, ", "), strings.ReplaceAll("e."+order, ", ", ", e."), limit, strings.Join(shown, ", "))
}

// timeOf returns the expression for a placeholder whose value is a timeText.
func timeOf(name string) string { return "toDateTime64({" + name + "}, 6, 'UTC')" }

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }

// LastSeen returns the query for the time of a person's latest event. It has no rows for a person without events.
func LastSeen(person string) *query.HogQL {
	return &query.HogQL{
		Query:  "select max(timestamp) as latest from events where person_id = {person} having count() > 0",
		Values: map[string]any{"person": person},
	}
}
