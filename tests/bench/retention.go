package main

import "fmt"

// retentionContests compare twelve weeks of people who view a page and return to any page or to another event. The handwritten SQL also keeps the weeks of
// each person as bits, and counts people with the same bits together.
func retentionContests() []*contest {
	const (
		weeks  = 12
		within = "team_id = 1 AND timestamp >= toDateTime64('2024-03-31 00:00:00', 6, 'UTC') AND timestamp < toDateTime64('2024-06-23 00:00:00', 6, 'UTC')"
		bit    = "bitShiftLeft(toUInt16(1), intDiv(toDate(timestamp) - toDate('2024-03-31'), 7))"
		merged = "ANY LEFT JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides WHERE team_id = 1 " +
			"GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS o ON e.distinct_id = o.distinct_id"
		person = "if(notEmpty(o.person_id), o.person_id, e.person_id)"
	)
	node := func(comeback string) string {
		return fmt.Sprintf(`{"kind": "RetentionQuery", "dateRange": {"date_to": "2024-06-22"}, "retentionFilter": {"period": "Week", "totalIntervals": %d, "returningEntity": {"id": %q}}}`,
			weeks, comeback)
	}
	return []*contest{
		{
			name: "retention over 12 weeks", goal: 1.1, node: node("$pageview"), numbers: cellCounts,
			hand: "SELECT row, column, sum(people) FROM (SELECT arrayJoin(bitPositionsToArray(weeks)) AS row, arrayJoin(bitPositionsToArray(bitShiftRight(weeks, row))) AS column, people FROM " +
				"(SELECT weeks, count() AS people FROM (SELECT groupBitOr(" + bit + ") AS weeks FROM (SELECT distinct_id, person_id, timestamp FROM events WHERE event = '$pageview' AND " +
				within + ") AS e " + merged + " GROUP BY " + person + ") GROUP BY weeks)) GROUP BY row, column",
		},
		{
			name: "the same, coming back to another event", goal: 1.1, node: node("event_01"), numbers: cellCounts,
			hand: "SELECT row, column, sum(people) FROM (SELECT arrayJoin(bitPositionsToArray(starts)) AS row, arrayJoin(arrayConcat([0], arrayFilter(c -> c > 0, " +
				"bitPositionsToArray(bitShiftRight(returns, row))))) AS column, people FROM (SELECT starts, returns, count() AS people FROM " +
				"(SELECT groupBitOrIf(" + bit + ", event = '$pageview') AS starts, groupBitOrIf(" + bit + ", event = 'event_01') AS returns FROM " +
				"(SELECT distinct_id, person_id, timestamp, event FROM events WHERE event IN ('$pageview', 'event_01') AND " + within + ") AS e " + merged +
				" GROUP BY " + person + " HAVING starts != 0) GROUP BY starts, returns)) GROUP BY row, column",
		},
	}
}

// cellCounts returns the counts above zero in the cells of a retention, or in a row of handwritten SQL: row, column, count.
func cellCounts(v any) []float64 {
	switch v := v.(type) {
	case []any:
		if len(v) == 3 {
			if count, ok := v[2].(float64); ok {
				return []float64{count}
			}
		}
		var out []float64
		for _, e := range v {
			out = append(out, cellCounts(e)...)
		}
		return out
	case map[string]any:
		if count, ok := v["count"].(float64); ok {
			return positive(count)
		}
		return cellCounts(v["values"])
	}
	return nil
}
