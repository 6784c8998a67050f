package compiler_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// FuzzInsight checks that every insight and every event list that can be read is compiled or refused as its author's mistake, and that the printed
// SQL is closed. What it uses can be found in any case.
func FuzzInsight(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "TrendsQuery", "series": [{"event": "1 as '` + strings.Repeat(`\\x80`, 41) + `%'"}]}`,
		`{"kind": "LifecycleQuery", "series": [{"event": "a"}], "interval": "week", "aggregation_group_type_index": 2, "dateRange": {"date_from": "all"}}`,
		`{"kind": "LifecycleQuery", "series": [{"properties": [{"type": "hogql", "key": "1 in (select 1)"}]}], "samplingFactor": 0.25}`,
		`{"kind": "StickinessQuery", "series": [{"math": "hogql", "math_hogql": "e.event"}, {"event": null}], "intervalCount": 3, "interval": "hour"}`,
		`{"kind": "StickinessQuery", "series": [{"event": "x"}], "compareFilter": {"compare": true}, "stickinessFilter": {"stickinessCriteria": {"operator": "exact", "value": 2}}}`,
		`{"kind": "EventsQuery", "select": ["*", "count()", "person", "max(timestamp) as m"], "where": ["m > 1"], "orderBy": ["m DESC"], "after": "-1d"}`,
		`{"kind": "TrendsQuery", "series": [{"event": "x", "math": "dau"}], "breakdownFilter": {"breakdown": "$browser"}}`,
		`{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": null, "optionalInFunnel": true}, {"event": "c"}], "funnelsFilter": {"exclusions": [{"event": "x", "funnelFromStep": 0, "funnelToStep": 2}]}}`,
		`{"kind": "FunnelsQuery", "series": [{"event": "a", "math": "first_time_for_user"}, {"event": "a"}], "breakdownFilter": {"breakdown": ["p", "q"]}, "funnelsFilter": {"funnelOrderType": "unordered", "funnelVizType": "trends", "breakdownAttributionType": "step"}}`,
		`{"kind": "FunnelsActorsQuery", "funnelStep": -2, "funnelStepBreakdown": ["Other"], "source": {"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "breakdownFilter": {"breakdown": "p"}, "funnelsFilter": {"funnelOrderType": "strict"}}}`,
		`{"kind": "ActorsQuery", "select": ["person", "properties.a as b", "count()"], "orderBy": ["b desc"], "search": "x", "properties": [{"type": "person", "key": "k", "value": 1}]}`,
		`{"kind": "ActorsQuery", "source": {"kind": "InsightActorsQuery", "day": "2024-05-30", "breakdown": "$$_posthog_breakdown_other_$$", "source": {"kind": "TrendsQuery", "series": [{"math": "first_time_for_user"}], "breakdownFilter": {"breakdown": "b"}}}}`,
		`{"kind": "InsightActorsQuery", "day": "2024-05-30", "status": "dormant", "source": {"kind": "LifecycleQuery", "series": [{}]}}`,
		`{"kind": "ActorsQuery", "source": {"kind": "HogQLQuery", "query": "select person_id, 1 as n from events"}, "select": ["actor", "n", "created_at"]}`,
		`{"kind": "StickinessActorsQuery", "day": 2, "operator": "lte", "source": {"kind": "StickinessQuery", "series": [{}], "intervalCount": 2}}`,
		`{"kind": "RetentionQuery", "retentionFilter": {"targetEntity": {"id": null}, "period": "Week", "retentionCustomBrackets": [1, 2.5]}, "breakdownFilter": {"breakdown": "b"}}`,
		`{"kind": "RetentionQuery", "dateRange": {"date_from": "all"}, "retentionFilter": {"retentionType": "retention_first_ever_occurrence", "timeWindowMode": "24_hour_windows"}}`,
		`{"kind": "InsightActorsQuery", "interval": 0, "source": {"kind": "RetentionQuery", "retentionFilter": {"aggregationType": "avg", "aggregationProperty": "n", "minimumOccurrences": 2}}}`,
		`{"kind": "PathsQuery", "dateRange": {"date_from": "all"}, "pathsFilter": {"includeEventTypes": ["$screen", "hogql"], "pathsHogQLExpression": "properties.a", "excludeEvents": ["b"]}}`,
		`{"kind": "PathsQuery", "pathsFilter": {"startPoint": "/", "endPoint": "/b", "stepLimit": 1, "pathGroupings": ["*", "/a*["], "localPathCleaningFilters": [{"regex": "(a)|b", "alias": "\\1"}]}}`,
		`{"kind": "PathsQuery", "funnelPathsFilter": {"funnelPathType": "funnel_path_after_step", "funnelStep": -2, "funnelSource": {"series": [{"event": "a"}, {"event": "b"}]}}}`,
		`{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "properties", "funnelCorrelationNames": ["$all", "x"], "funnelCorrelationExcludeNames": ["y"], "source": {"kind": "FunnelsActorsQuery", "source": {"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "aggregation_group_type_index": 1}}}`,
		`{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "event_with_properties", "funnelCorrelationEventNames": ["$autocapture"], "source": {"kind": "FunnelsActorsQuery", "source": {"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}}}`,
		`{"kind": "ActorsQuery", "source": {"kind": "FunnelCorrelationActorsQuery", "funnelCorrelationPersonConverted": true, "funnelCorrelationPersonEntity": {"event": "c"}, "source": {"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source": {"kind": "FunnelsActorsQuery", "source": {"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}}}}}`,
		`{"kind": "TrendsQuery", "series": [{"event": "x", "math_property": "n"}, {"math_property": "$session_duration"}], "trendsFilter": {"display": "BoxPlot"}, "dateRange": {"date_from": "all"}}`,
		`{"kind": "CalendarHeatmapQuery", "series": [{"math": "dau", "properties": [{"type": "hogql", "key": "day > 1"}]}], "conversionGoal": {"customEventName": "a"}, "dateRange": {"date_from": "all"}}`,
		`{"kind": "ActorsQuery", "source": {"kind": "InsightActorsQuery", "includeRecordings": true, "source": {"kind": "PathsQuery", "pathsFilter": {"pathStartKey": "1_a", "pathEndKey": "2_b"}}}}`,
		`{"kind": "WebOverviewQuery", "properties": [{"key": "$pathname", "value": "/a"}], "compareFilter": {"compare": true, "compare_to": "-1y"}, "conversionGoal": {"customEventName": "x"}}`,
		`{"kind": "WebOverviewQuery", "properties": [], "dateRange": {"date_from": "all"}, "sampling": {"enabled": true, "forceSamplingRate": {"numerator": 1, "denominator": 10}}, "includeRevenue": true}`,
		`{"kind": "WebStatsTableQuery", "properties": [{"key": "$pathname", "value": "/a"}], "breakdownBy": "Page", "includeBounceRate": true, "includeScrollDepth": true, "orderBy": ["BounceRate", "ASC"], "offset": 3}`,
		`{"kind": "WebStatsTableQuery", "properties": [], "breakdownBy": "Language", "doPathCleaning": true, "conversionGoal": {"actionId": "1"}, "filterTestAccounts": true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := compiler.Parse(raw)
		if err != nil || len(raw) > 4096 {
			return
		}
		w := world{Timezone: "America/New_York"}
		compiler.UsesOf(n, w.env(t))
		c, err := compiler.Compile(n, w.env(t))
		switch {
		case err == nil:
			checkClosed(t, string(raw), c.SQL)
		case compiler.Mistakes(err) == nil:
			t.Errorf("%s is refused with a bug: %v", raw, err)
		}
	})
}
