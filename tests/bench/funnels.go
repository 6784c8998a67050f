package main

import (
	"fmt"
	"strings"
)

// funnelContests compare funnels over 90 days with a plain windowFunnel for the same steps, which only returns how far people
// get: no times between steps, no exclusions, no breakdown values.
func funnelContests() []*contest {
	const filter = `"funnelsFilter": {"exclusions": [{"kind": "EventsNode", "event": "event_20", "funnelFromStep": 0, "funnelToStep": 2}]}`
	return []*contest{
		funnelContest("funnel of 3 steps, 90 days", 3, ""),
		funnelContest("funnel of 6 steps, 90 days", 6, ""),
		funnelContest("the first, with an exclusion", 3, ", "+filter),
		funnelContest("the first, by a property, first touch", 3, `, "breakdownFilter": {"breakdown": "$browser", "breakdown_limit": 25}`),
	}
}

func funnelContest(name string, steps int, more string) *contest {
	names := []string{"$pageview"}
	for i := 1; i < steps; i++ {
		names = append(names, fmt.Sprintf("event_%02d", i))
	}
	var series, conditions, counts []string
	for i, event := range names {
		series = append(series, fmt.Sprintf(`{"kind": "EventsNode", "event": %q}`, event))
		conditions = append(conditions, fmt.Sprintf("event = '%s'", event))
		counts = append(counts, fmt.Sprintf("countIf(level >= %d)", i+1))
	}
	return &contest{
		name: name, goal: 1.5, numbers: func(v any) []float64 { return entered(v, more == "") },
		node: `{"kind": "FunnelsQuery", "dateRange": {"date_from": "2024-03-31", "date_to": "2024-06-28"}, "series": [` + strings.Join(series, ", ") + "]" + more + "}",
		hand: "SELECT " + strings.Join(counts, ", ") + " FROM (SELECT windowFunnel(1209600000000)(toUInt64(toUnixTimestamp64Micro(timestamp)), " + strings.Join(conditions, ", ") + ") AS level " +
			"FROM (SELECT timestamp, event, distinct_id, person_id FROM events WHERE team_id = 1 AND event IN ('" + strings.Join(names, "', '") + "') AND " +
			"timestamp >= toDateTime64('2024-03-31 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-28 23:59:59.999999', 6, 'UTC')) AS e " +
			"LEFT ANY JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides WHERE team_id = 1 " +
			"GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS o ON e.distinct_id = o.distinct_id " +
			"GROUP BY if(notEmpty(o.person_id), o.person_id, e.person_id))",
	}
}

// entered returns how many people entered; later steps differ, because windowFunnel treats nearly simultaneous events differently. With
// exclusions and values no numbers are comparable, and it only checks that there are any.
func entered(v any, exact bool) []float64 {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	n := list[0]
	if row, ok := n.([]any); ok {
		n = row[0]
	}
	if step, ok := n.(map[string]any); ok {
		n = step["count"]
	}
	count, ok := n.(float64)
	switch {
	case !ok || count <= 0:
		return nil
	case !exact:
		return []float64{1}
	}
	return []float64{count}
}
