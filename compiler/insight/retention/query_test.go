package retention_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	view, a := "$pageview", "a"
	tests := []struct {
		name, fields string
		want         *retention.Query
	}{
		{"nothing but defaults", `"retentionFilter": {}`, &retention.Query{
			Start:  query.Series{At: "retentionFilter.targetEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Return: query.Series{At: "retentionFilter.returningEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Type:   retention.Recurring, Period: query.Day, Intervals: 8, Minimum: 1,
		}},
		{"numbers that are 0 or null, and a sum of no property", `"retentionFilter": {"totalIntervals": null, "minimumOccurrences": 0, "aggregationType": "sum", "aggregationProperty": ""}`, &retention.Query{
			Start:  query.Series{At: "retentionFilter.targetEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Return: query.Series{At: "retentionFilter.returningEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Type:   retention.Recurring, Period: query.Day, Intervals: 7, Minimum: 1,
		}},
		{"no intervals", `"retentionFilter": {"totalIntervals": 0}`, &retention.Query{
			Start:  query.Series{At: "retentionFilter.targetEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Return: query.Series{At: "retentionFilter.returningEntity", Kind: query.EventsNode, EventField: "id", Event: &view},
			Type:   retention.Recurring, Period: query.Day, Intervals: 7, Minimum: 1,
		}},
		{
			"everything", `"dateRange": {"date_from": "-3m"}, "retentionFilter": {"retentionType": "retention_first_ever_occurrence", "period": "Month",
				"totalIntervals": null, "minimumOccurrences": 3, "cumulative": true, "timeWindowMode": "24_hour_windows", "retentionCustomBrackets": [1, 2.9],
				"aggregationType": "avg", "aggregationProperty": "revenue", "aggregationPropertyType": "person",
				"targetEntity": {"id": "a", "type": "events", "kind": "EventsNode", "name": "n", "custom_name": "c", "order": 0, "uuid": "u", "properties": [{"key": "k", "operator": "is_set"}]},
				"returningEntity": {"id": null},
				"retentionReference": "previous", "meanRetentionCalculation": "weighted", "dashboardDisplay": "all", "display": "ActionsBar", "selectedInterval": 2,
				"showTrendLines": true, "goalLines": []}, "breakdownFilter": {"breakdown": "b"}`,
			&retention.Query{
				Common: query.Common{DateRange: query.DateRange{From: "-3m"}},
				Start: query.Series{
					At: "retentionFilter.targetEntity", Kind: query.EventsNode, EventField: "id", Event: &a, Name: "n", CustomName: "c",
					Properties: &query.Condition{At: "retentionFilter.targetEntity.properties", All: []query.Condition{{
						At: "retentionFilter.targetEntity.properties.0", Filter: &query.Property{Type: "event", Key: "k", Operator: "is_set"},
					}}},
				},
				Return: query.Series{At: "retentionFilter.returningEntity", Kind: query.EventsNode, EventField: "id"},
				Type:   retention.FirstEver, Period: query.Month, Intervals: 7, Minimum: 3, Cumulative: true, Rolling: true, Brackets: []int{1, 2},
				Values:     &retention.Values{Mean: true, Property: "revenue", Person: true},
				Breakdowns: &query.Breakdowns{At: "breakdownFilter", Fields: []query.Breakdown{{At: "breakdownFilter.breakdown", Type: "event", Property: "b"}}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := insighttest.Node[*retention.Query](t, `{"kind": "RetentionQuery", `+tt.fields+`}`)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("retention (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadDisplay checks that fields that only change how a retention is shown do not change the query.
func TestReadDisplay(t *testing.T) {
	t.Parallel()
	canonical := func(fields string) string {
		return string(insighttest.Node[*retention.Query](t, `{"kind": "RetentionQuery", "retentionFilter": {`+fields+`}}`).Canonical())
	}
	plain := canonical(``)
	if shown := canonical(`"retentionReference": "previous", "meanRetentionCalculation": "simple", "display": "ActionsLineGraph",
		"cohortLabelStartIndex": 1`); shown != plain {
		t.Errorf("shown another way, it is another query:\n%s\n%s", plain, shown)
	}
	if other := canonical(`"minimumOccurrences": 2`); other == plain {
		t.Errorf("another minimum is the same query: %s", other)
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	filter := func(fields string) string { return `"retentionFilter": {` + fields + `}` }
	const at = "retentionFilter."
	tests := []struct{ name, fields, attr, want string }{
		{"no filter", `"interval": "day"`, "retentionFilter", "Field required"},
		{"a filter that is no object", `"retentionFilter": []`, "retentionFilter", "Input should be a valid dictionary"},
		{"an unknown field", filter(`"interval": "day"`), at + "interval", "Extra inputs are not permitted"},
		{"less than no intervals", filter(`"totalIntervals": -1`), at + "totalIntervals", "Input should be from 1 to 1000"},
		{"too many intervals", filter(`"totalIntervals": 10000`), at + "totalIntervals", "Input should be from 1 to 1000"},
		{"half an interval", filter(`"totalIntervals": 1.5`), at + "totalIntervals", "Input should be a valid integer"},
		{"an unknown period", filter(`"period": "Year"`), at + "period", "Input should be 'Hour', 'Day', 'Week' or 'Month'"},
		{"an unknown type", filter(`"retentionType": "often"`), at + "retentionType", "Input should be 'retention_recurring', 'retention_first_time' or 'retention_first_ever_occurrence'"},
		{"an unknown mode", filter(`"timeWindowMode": "48"`), at + "timeWindowMode", "Input should be 'strict_calendar_dates' or '24_hour_windows'"},
		{"an unknown reference", filter(`"retentionReference": "next"`), at + "retentionReference", "Input should be 'total' or 'previous'"},
		{"less than no occurrence", filter(`"minimumOccurrences": -1`), at + "minimumOccurrences", "Input should be greater than or equal to 0"},
		{"a bracket of no number", filter(`"retentionCustomBrackets": [1, "2"]`), at + "retentionCustomBrackets.1", "Input should be a valid number"},
		{"a bracket of nothing", filter(`"retentionCustomBrackets": [0.9]`), at + "retentionCustomBrackets.0", "Brackets should cover 1 period each at least, and 1000 together at most"},
		{"brackets of too much", filter(`"retentionCustomBrackets": [999, 1e300]`), at + "retentionCustomBrackets.1", "Brackets should cover 1 period each at least, and 1000 together at most"},
		{"brackets that are no list", filter(`"retentionCustomBrackets": 3`), at + "retentionCustomBrackets", "Input should be a valid list"},
		{"an unknown aggregation", filter(`"aggregationType": "max"`), at + "aggregationType", "Input should be 'count', 'sum' or 'avg'"},
		{"a table of a data warehouse", filter(`"targetEntity": {"id": "t", "type": "data_warehouse"}`), at + "targetEntity.type", "Entities of type 'data_warehouse' are not supported: use events"},
		{"an action without its id", filter(`"targetEntity": {"kind": "ActionsNode"}`), at + "targetEntity.id", "Field required"},
		{"an action by its name", filter(`"targetEntity": {"id": "a", "type": "actions"}`), at + "targetEntity.id", "Input should be a valid integer"},
		{"an entity that is no object", filter(`"returningEntity": "a"`), at + "returningEntity", "Input should be a valid dictionary"},
		{"an entity with a number", filter(`"returningEntity": {"id": 3}`), at + "returningEntity.id", "Input should be a valid string"},
		{"an entity with an unknown field", filter(`"returningEntity": {"math": "dau"}`), at + "returningEntity.math", "Extra inputs are not permitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mistake := insighttest.MistakeIn(t, `{"kind": "RetentionQuery", `+tt.fields+`}`)
			if mistake.Code != diag.ParseError {
				t.Errorf("code %s, want %s", mistake.Code, diag.ParseError)
			}
			if mistake.Attr != tt.attr || !strings.Contains(mistake.Detail, "query.RetentionQuery."+tt.attr+"\n  "+tt.want+" [") {
				t.Errorf("got %s: %s\nwant %s: %s", mistake.Attr, mistake.Detail, tt.attr, tt.want)
			}
		})
	}
}
