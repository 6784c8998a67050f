package main

import "strings"

// pathsContest compares the default paths of half a year. The handwritten SQL also has to collect, sort and split the events of
// each person.
func pathsContest() *contest {
	const (
		page   = "ifNull(properties.`$current_url`.:String, '')"
		screen = "ifNull(properties.`$screen_name`.:String, '')"
		steps  = "SELECT if(notEmpty(o.person_id), o.person_id, e.person_id) AS person, toUnixTimestamp64Micro(timestamp) AS time, " +
			"if(event = '$pageview', if(endsWith(page, '/') AND length(page) > 1, substring(page, 1, length(page) - 1), page), if(event = '$screen', screen, toString(event))) AS name " +
			"FROM (SELECT distinct_id, person_id, timestamp, event, " + page + " AS page, " + screen + " AS screen FROM events WHERE team_id = 1 AND " +
			"timestamp >= toDateTime64('2024-01-01 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-28 23:59:59.999999', 6, 'UTC')) AS e " +
			"LEFT ANY JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides WHERE team_id = 1 " +
			"GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS o ON e.distinct_id = o.distinct_id"
		sorted   = "SELECT arraySort((n, t) -> t, names, times) AS n, arraySort(times) AS t FROM (SELECT groupArray(name) AS names, groupArray(time) AS times FROM (" + steps + ") GROUP BY person)"
		sessions = "SELECT arrayJoin(arraySplit((s, gap) -> gap >= 1800000000, arrayZip(t, n), arrayDifference(t))) AS session FROM (" + sorted + ")"
		paths    = "SELECT arraySlice(arrayFilter((s, next) -> s.2 != next, session, arrayPopFront(arrayPushBack(session.2, ''))), 1, 5) AS path FROM (" + sessions + ")"
		edges    = "SELECT arrayJoin(arrayPopFront(arrayZip(arrayEnumerate(path), arrayPopBack(arrayPushFront(path.2, '')), path.2, arrayDifference(path.1)))) AS edge FROM (" + paths + ")"
		heaviest = "SELECT concat(toString(edge.1 - 1), '_', edge.2) AS source, concat(toString(edge.1), '_', edge.3) AS target, count() AS value, avg(edge.4) / 1000 AS average " +
			"FROM (" + edges + ") GROUP BY source, target ORDER BY value DESC, source, target LIMIT 50"
	)
	return &contest{
		name: "default paths, half a year", goal: 1.1, hand: heaviest, numbers: firstEdges,
		node: `{"kind": "PathsQuery", "dateRange": {"date_from": "2024-01-01", "date_to": "2024-06-28"}, "pathsFilter": {}}`,
	}
}

// firstEdges returns the numbers of the edges out of first steps, which neither result omits.
func firstEdges(v any) []float64 {
	switch v := v.(type) {
	case map[string]any:
		return firstEdges([]any{v["source"], v["target"], v["value"], v["average_conversion_time"]})
	case []any:
		if len(v) == 4 {
			if source, ok := v[0].(string); ok {
				if !strings.HasPrefix(source, "1_") {
					return nil
				}
				return append(positive(v[2]), positive(v[3])...)
			}
		}
		var out []float64
		for _, e := range v {
			out = append(out, firstEdges(e)...)
		}
		return out
	}
	return nil
}
