package taxonomy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// RecentValues says which event values to suggest: those of the last seven days.
type RecentValues struct {
	// Property is the property whose values are wanted. If Column is not empty, it is the column of events to use instead: one of Columns.
	Property, Column string
	Search           string   // a part of the value, in any case; empty for all
	Events           []string // names of events; none for all
	// Others maps other properties of the events to values, of which each event must have one.
	Others map[string][]string
}

// Columns are the columns of events whose values can be suggested.
var Columns = []string{"event", "distinct_id", "person_mode", "$session_id", "$window_id", "elements_chain"}

// maxRecentValues is the most values suggested.
const maxRecentValues = 10

// Query returns the query for the values: shortest first if Search is given, otherwise the most frequent first. A row is a value as text, and the
// number of events with it.
func (v *RecentValues) Query() *query.HogQL {
	q := &query.HogQL{Values: map[string]any{"property": v.Property}}
	value := "toString(properties[{property}])"
	if v.Column != "" {
		value = "`" + v.Column + "`"
	}
	where := []string{"timestamp > now() - interval 7 day", value + " is not null", value + " != ''"}
	order := "count() desc, value"
	if v.Search != "" {
		where, order = append(where, value+" ilike {pattern}"), "length(value), value"
		q.Values["pattern"] = filter.Containing(v.Search)
	}
	if len(v.Events) > 0 {
		where = append(where, "event in {events}")
		q.Values["events"] = list(v.Events)
	}
	for i, name := range slices.Sorted(maps.Keys(v.Others)) {
		where = append(where, fmt.Sprintf("toString(properties[{name_%d}]) in {values_%d}", i, i))
		q.Values[fmt.Sprint("name_", i)], q.Values[fmt.Sprint("values_", i)] = name, list(v.Others[name])
	}
	q.Query = "select " + value + " as value, count() from events where " + strings.Join(where, " and ") + " group by value order by " + order + " limit " + strconv.Itoa(maxRecentValues)
	return q
}

// maxPersonValues is the most person values suggested.
const maxPersonValues = 20

// SuggestedPersonValues returns the query for the most frequent values of a person property. search is part of the value, in any case; empty for all.
// A row is a value as text, and the number of people with it.
func SuggestedPersonValues(property, search string) *query.HogQL {
	q := &query.HogQL{Values: map[string]any{"property": property}}
	const value = "toString(properties[{property}])"
	where := value + " is not null and " + value + " != ''"
	if search = strings.TrimSpace(search); search != "" {
		where += " and " + value + " ilike {pattern}"
		q.Values["pattern"] = filter.Containing(search)
	}
	q.Query = "select " + value + " as value, count() from persons where " + where + " group by value order by count() desc, value limit " + strconv.Itoa(maxPersonValues)
	return q
}
