package engine_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pathFunnelProject is the project of the events around steps of a funnel.
const pathFunnelProject = 330

// aroundEvents are the events of five people. The first passes both steps, the second the first one only; the third passes them in
// two sessions; the last two do so together, as one group.
func aroundEvents() []trendEvent {
	var out []trendEvent
	add := func(id, session, group, clock, event string) {
		at, err := time.Parse(time.RFC3339, "2024-03-05T"+clock+"Z")
		if err != nil {
			panic(err)
		}
		e := trendEvent{Event: event, DistinctID: id, person: id, Timestamp: at, Properties: map[string]any{"$session_id": session}}
		if group != "" {
			e.Properties["$group_0"] = group
		}
		out = append(out, e)
	}
	add("id0", "s0", "", "10:00:00", "/before")
	add("id0", "s0", "", "10:01:00", "step one")
	add("id0", "s0", "", "10:02:00", "/between")
	add("id0", "s0", "", "10:03:00", "step two")
	add("id0", "s0", "", "10:43:00", "/after") // beyond half an hour, and within the funnel's window
	add("id0", "s0", "", "11:43:00", "/never")
	add("id1", "s1", "", "10:00:00", "/before")
	add("id1", "s1", "", "10:01:00", "step one")
	add("id1", "s1", "", "10:20:00", "/aside")
	add("id1", "s1", "", "11:01:00", "/late")
	add("id1", "s1", "", "11:02:00", "/later")
	add("id2", "s2", "", "10:01:00", "step one")
	add("id2", "s3", "", "10:03:00", "step two")
	add("id2", "s3", "", "10:04:00", "/third")
	add("id3", "s4", "org0", "10:01:00", "step one")
	add("id4", "s5", "org0", "10:02:00", "/fourth")
	add("id4", "s5", "org0", "10:03:00", "step two")
	add("id3", "s4", "org0", "10:04:00", "/x")
	add("id3", "s4", "org0", "10:05:00", "/y")
	return out
}

// TestPathsAroundFunnels asks for paths before, between and after steps (contract: paths.md, section 8).
func TestPathsAroundFunnels(t *testing.T) {
	importEvents(t, pathFunnelProject, aroundEvents())
	bySession := map[string]any{"funnelsFilter": map[string]any{"funnelWindowInterval": 1, "funnelWindowIntervalUnit": "hour", "funnelAggregateByHogQL": "properties.$session_id"}}
	byGroup := map[string]any{"aggregation_group_type_index": 0}
	const minute = 60000
	tests := []struct {
		name, kind string
		step       int
		fields     map[string]any // of the funnel
		want       []pathEdge
	}{
		{"before the first step", "before_step", 1, nil, []pathEdge{{"1_/before", "2_step one", 2, minute}}},
		{"before the second step", "before_step", 2, bySession, []pathEdge{
			{"1_/before", "2_step one", 1, minute}, {"2_step one", "3_/between", 1, minute}, {"3_/between", "4_step two", 1, minute},
		}},
		{"between both, in an hour's window", "between_steps", 2, bySession, []pathEdge{
			{"1_step one", "2_/between", 1, minute}, {"2_/between", "3_step two", 1, minute},
		}},
		{"between both, of people", "between_steps", 2, nil, []pathEdge{
			{"1_step one", "2_/between", 1, minute}, {"1_step one", "2_step two", 1, 2 * minute}, {"2_/between", "3_step two", 1, minute},
		}},
		{"after the second step", "after_step", 2, nil, []pathEdge{
			{"1_step two", "2_/after", 1, 40 * minute}, {"1_step two", "2_/third", 1, minute},
		}},
		{"after the second step, of sessions", "after_step", 2, bySession, []pathEdge{{"1_step two", "2_/after", 1, 40 * minute}}},
		{"after the second step of a group: paths are still those of people", "after_step", 2, byGroup, []pathEdge{{"1_/x", "2_/y", 1, minute}}},
		{"after leaving before the second step: when the window is over", "after_step", -2, map[string]any{"properties": []any{
			map[string]any{"type": "event", "key": "$session_id", "value": []string{"s0", "s1"}},
		}}, []pathEdge{{"1_/late", "2_/later", 1, minute}}},
		{"before leaving", "before_step", -2, map[string]any{"properties": []any{
			map[string]any{"type": "event", "key": "$session_id", "value": []string{"s0", "s1"}},
		}}, []pathEdge{{"1_/before", "2_step one", 1, minute}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			funnel := map[string]any{
				"kind": "FunnelsQuery", "dateRange": map[string]any{"date_from": "2024-03-05", "date_to": "2024-03-05"},
				"series":        []any{map[string]any{"kind": "EventsNode", "event": "step one"}, map[string]any{"kind": "EventsNode", "event": "step two"}},
				"funnelsFilter": map[string]any{"funnelWindowInterval": 1, "funnelWindowIntervalUnit": "hour"},
			}
			maps.Copy(funnel, tt.fields)
			raw, err := json.Marshal(map[string]any{
				"kind": "PathsQuery", "dateRange": map[string]any{"date_from": "2024-03-01", "date_to": "2024-03-10"},
				"funnelPathsFilter": map[string]any{"funnelPathType": "funnel_path_" + tt.kind, "funnelStep": tt.step, "funnelSource": funnel},
			})
			if err != nil {
				t.Fatal(err)
			}
			compiled, rows := runNode(t, &trendQuery{zone: "UTC"}, pathFunnelProject, raw)
			answer, err := compiled.Shape(rows.all)
			if err != nil {
				t.Fatal(err)
			}
			var got []pathEdge
			if err := json.Unmarshal(answer.Results, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%s\nresults (-want +got):\n%s", raw, compiled.SQL, diff)
			}
		})
	}
}
