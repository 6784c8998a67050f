package paths_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// read reads the fields of a PathsQuery.
func read(t *testing.T, fields string) *paths.Query {
	t.Helper()
	return insighttest.Node[*paths.Query](t, `{"kind": "PathsQuery", `+fields+`}`)
}

// build builds the query of such fields.
func build(t *testing.T, fields string) *insight.Built {
	t.Helper()
	built, err := paths.Build(read(t, fields), insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestShape(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2020, time.January, n, 0, 0, 0, 0, time.UTC) }
	end := day(10).Add(-time.Microsecond)
	tests := []struct {
		name, fields string
		rows         []string
		want         string
		span         insight.Span
	}{
		{"no edges", `"pathsFilter": {}`, nil, `[]`, insight.Span{From: day(2), To: end}},
		{
			"edges without a way from a first step are dropped, others stay in their order", `"dateRange": {"date_from": "-24h"}`,
			[]string{`["3_c", "4_d", 9, 4.5]`, `["2_b", "3_x", 8, 1]`, `["11_a", "12_b", 7, 1]`, `["12_b", "13_c", 6, 1]`, `["1_a", "2_b", 5, 0.001]`, `["2_a", "3_c", 4, 1]`},
			`[{"source": "2_b", "target": "3_x", "value": 8, "average_conversion_time": 1}, {"source": "1_a", "target": "2_b", "value": 5, "average_conversion_time": 0.001}]`,
			insight.Span{From: day(8), To: end},
		},
		{
			"values of samples are scaled and rounded", `"samplingFactor": 0.3, "dateRange": {"date_from": "2020-01-03", "date_to": "2020-01-03"}`,
			[]string{`["1_", "2_ä", 2, 60000]`, `["1_", "2_\"", 1, 60000.5]`},
			`[{"source": "1_", "target": "2_ä", "value": 7, "average_conversion_time": 60000}, {"source": "1_", "target": "2_\"", "value": 3, "average_conversion_time": 60000.5}]`,
			insight.Span{From: day(3), To: day(4).Add(-time.Microsecond)},
		},
		{
			"explicit dates begin at midnight too", `"dateRange": {"date_from": "2020-01-03T10:00:00", "date_to": "2020-01-04T09:00:00", "explicitDate": true}`, nil, `[]`,
			insight.Span{From: day(3), To: day(4).Add(9 * time.Hour)},
		},
		{
			"all time begins with the earliest event, which is no edge", `"dateRange": {"date_from": "all"}`,
			[]string{`["1_a", "2_b", 1, 0]`, `["", "", 1577977200, 0]`},
			`[{"source": "1_a", "target": "2_b", "value": 1, "average_conversion_time": 0}]`,
			insight.Span{From: day(2), To: end},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := insighttest.Shape(t, build(t, tt.fields), tt.rows...)
			if diff := cmp.Diff(insighttest.JSON(t, tt.want), insighttest.JSON(t, string(got.Results))); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tt.span, got.Range); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]string{
		`["1_a", 2, 3, 4]`:        "json: ",
		`["1_a", "2_b", 0.5, 4]`:  "json: ",
		`7`:                       "json: ",
		`["1_a", "2_b", 1]`:       "it has 3 cells, not 4",
		`["1_a", "2_b", 1, 2, 3]`: "it has 5 cells, not 4",
	} {
		_, err := build(t, `"pathsFilter": {}`).Shape(slices.Values([][]byte{[]byte(row)}))
		if err == nil || !strings.HasPrefix(err.Error(), "reading a row of paths: "+want) {
			t.Errorf("row %s gives the error %v, want %s", row, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{
			"half an expression", `"pathsFilter": {"pathsHogQLExpression": "concat("}`,
			"pathsFilter.pathsHogQLExpression: The HogQL expression of a path is invalid: 7:7: Unexpected end of the expression, expected an expression",
		},
		{
			"an expression with placeholders", `"pathsFilter": {"pathsHogQLExpression": "{x}"}`,
			"pathsFilter.pathsHogQLExpression: The HogQL expression of a path cannot hold placeholders",
		},
		{
			"an aggregation", `"pathsFilter": {"pathsHogQLExpression": "toString(max(event)) as page"}`,
			"pathsFilter.pathsHogQLExpression: The HogQL expression of a path names the step of one event, and cannot aggregate",
		},
		{
			"half an expression of a funnel", `"funnelPathsFilter": {"funnelPathType": "funnel_path_before_step", "funnelStep": 1, "funnelSource": {
			"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelAggregateByHogQL": "a."}}}`,
			"funnelPathsFilter.funnelSource.funnelsFilter.funnelAggregateByHogQL: The HogQL expression of the actors is invalid: 2:2: Unexpected end of the expression, expected a name",
		},
		{"a bad date", `"dateRange": {"date_to": "soon"}`, "dateRange.date_to: The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{
			"a filter that means nothing", `"properties": [{"type": "cohort", "key": "id", "value": 1}]`, "properties.0: Could not find cohort with ID 1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := paths.Build(read(t, tt.fields), insighttest.World())
			if got := insighttest.Mistake(t, err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestActorsMistakes(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"pathStartKey", "pathEndKey", "pathDropoffKey"} {
		for _, key := range []string{"/a", "0_/a", "-1_/a", "02_/a", "x_/a", "_/a", "99999999999_/a"} {
			_, err := paths.Actors(read(t, `"pathsFilter": {"`+field+`": "`+key+`"}`), &query.InsightActors{}, insighttest.World())
			want := "pathsFilter." + field + ": A step is named by its number and its name, such as 2_/pricing"
			if got := insighttest.Mistake(t, err); got != want {
				t.Errorf("%s: got %s, want %s", key, got, want)
			}
		}
	}
	got, err := paths.Actors(read(t, `"pathsFilter": {"pathStartKey": "12_"}`), &query.InsightActors{}, insighttest.World())
	if err != nil || !slices.Equal(got.Extra, []string{"event_count", "event_distinct_ids", "last_seen"}) || got.Group != nil {
		t.Errorf("a step without a name: %v, %v", got, err)
	}
}

// TestProjectCleaning checks that the project's rules come before those of the query, and only apply if the query asks for them.
func TestProjectCleaning(t *testing.T) {
	t.Parallel()
	w := insighttest.World()
	w.PathCleaning = []query.PathCleaning{{Regex: "first", Alias: "1"}, {Regex: "second"}}
	for fields, want := range map[string]string{
		`"pathsFilter": {}`:                         "",
		`"pathsFilter": {"pathReplacements": true}`: "replaceRegexpAll(replaceRegexpAll(name, 'first', '1'), 'second', '')",
		`"pathsFilter": {"pathReplacements": true, "localPathCleaningFilters": [{"regex": "third", "alias": "3"}]}`: "replaceRegexpAll(" +
			"replaceRegexpAll(replaceRegexpAll(name, 'first', '1'), 'second', ''), 'third', '3')",
		`"pathsFilter": {"localPathCleaningFilters": [{"regex": "third", "alias": "3"}]}`: "replaceRegexpAll(name, 'third', '3')",
	} {
		built, err := paths.Build(read(t, fields), w)
		if err != nil {
			t.Fatal(err)
		}
		text := hogql.Print(built.Query)
		if want == "" && strings.Contains(text, "replaceRegexpAll") || want != "" && !strings.Contains(text, "moment, "+want+" AS name") {
			t.Errorf("%s, want %s:\n%s", fields, want, text)
		}
	}
}
