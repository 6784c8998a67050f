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

// RecentValues says which values of events are suggested: those of the last seven days.
type RecentValues struct {
	// Property is whose values are asked for; Column is the column of events in its place, if it is not empty. It must be one of Columns.
	Property, Column string
	Search           string   // a part of the value, in any case; empty for all
	Events           []string // names of events; none for all
	// Others are values of other properties of the events, of which each must have one.
	Others map[string][]string
}

// Columns are the columns of events whose values can be asked for.
var Columns = []string{"event", "distinct_id", "person_mode", "$session_id", "$window_id", "elements_chain"}

// maxRecentValues is how many values are suggested.
const maxRecentValues = 10

// Query asks for the values: the shortest first if a part of them is given, else the most frequent. A row is a value as text, and how many
// events have it.
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

// maxPersonValues is how many values of people are suggested.
const maxPersonValues = 20

// SuggestedPersonValues asks for the most frequent values that people have for a property. search is a part of the value, in any case; empty
// for all. A row is a value as text, and how many have it.
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
