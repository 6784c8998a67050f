package paths_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := insighttest.Node[*paths.Query](t, `{"kind": "InsightVizNode", "source": {"kind": "PathsQuery", "aggregation_group_type_index": 1, "pathsFilter": {
		"includeEventTypes": ["$pageview", "hogql", "custom_event", "$screen"], "pathsHogQLExpression": "event", "startPoint": "/a/", "endPoint": "/b",
		"excludeEvents": ["x"], "pathGroupings": ["/c*"], "stepLimit": 7, "edgeLimit": 70, "minEdgeWeight": 2, "maxEdgeWeight": 2, "pathReplacements": true,
		"localPathCleaningFilters": [{"alias": "\\1\\x", "regex": "(a|b)+", "order": 3}, {"regex": ""}], "showFullUrls": true,
		"pathStartKey": "1_/a", "pathEndKey": "2_/b", "pathDropoffKey": "3_/c"}}}`)
	group := 1
	want := &paths.Query{
		Common: query.Common{At: "source", Group: &group}, Include: []paths.EventKind{paths.Pageviews, paths.Named, paths.Custom, paths.Screens},
		Expression: "event", Start: "/a/", End: "/b", Exclude: []string{"x"}, Groupings: []string{"/c*"}, Steps: 7, Edges: 70, MinWeight: 2, MaxWeight: 2,
		Replacements: true, Cleaning: []query.PathCleaning{{Regex: "(a|b)+", Alias: `\1\x`}, {}}, StartKey: "1_/a", EndKey: "2_/b", DropoffKey: "3_/c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, in := range []string{
		`{"kind": "PathsQuery"}`, `{"kind": "PathsQuery", "pathsFilter": null}`, `{"kind": "PathsQuery", "pathsFilter": {"stepLimit": 5.0, "edgeLimit": 5e1}}`, `{"kind": "PathsQuery", "funnelPathsFilter": null, "pathsFilter": {"stepLimit": 0, "edgeLimit": null, "includeEventTypes": []}}`,
	} {
		if diff := cmp.Diff(&paths.Query{Steps: 5, Edges: 50}, insighttest.Node[*paths.Query](t, in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// TestReadMistakes checks what is refused before anything runs: each mistake names its field.
func TestReadMistakes(t *testing.T) {
	t.Parallel()
	rule := func(regex, alias string) string {
		return fmt.Sprintf(`{"localPathCleaningFilters": [{"regex": "a", "alias": "b"}, {"regex": %q, "alias": %q}]}`, regex, alias)
	}
	many := `{"excludeEvents": ["` + strings.Repeat(`a", "`, 200) + `"]}`
	tests := []struct{ name, filter, attr, want string }{
		{"no object", `[]`, "", "Input should be a valid dictionary [type=model_type]"},
		{"an unknown field", `{"edges": 3}`, ".edges", "Extra inputs are not permitted [type=extra_forbidden]"},
		{"an unknown kind of events", `{"includeEventTypes": ["$screen", "$autocapture"]}`, ".includeEventTypes.1", "Input should be '$pageview', '$screen', 'custom_event' or 'hogql' [type=enum]"},
		{"kinds that are no list", `{"includeEventTypes": "$screen"}`, ".includeEventTypes", "Input should be a valid list [type=list_type]"},
		{"a negative number of steps", `{"stepLimit": -1}`, ".stepLimit", "Input should be from 1 to 1000 [type=value_error]"},
		{"too many steps", `{"stepLimit": 1001}`, ".stepLimit", "Input should be from 1 to 1000 [type=value_error]"},
		{"half a step", `{"stepLimit": 1.5}`, ".stepLimit", "Input should be a valid integer [type=int_type]"},
		{"too many edges", `{"edgeLimit": 50001}`, ".edgeLimit", "Input should be from 1 to 50000 [type=value_error]"},
		{"a negative weight", `{"maxEdgeWeight": -2}`, ".maxEdgeWeight", "Input should be greater than or equal to 0 [type=greater_than_equal]"},
		{"a start that is no text", `{"startPoint": 3}`, ".startPoint", "Input should be a valid string [type=string_type]"},
		{"a step that is no text", `{"excludeEvents": ["a", null]}`, ".excludeEvents.1", "Input should be a valid string [type=string_type]"},
		{"too many steps left out", many, ".excludeEvents", "List should have at most 200 items after validation, not 201 [type=too_long]"},
		{"an empty pattern", `{"pathGroupings": ["*", ""]}`, ".pathGroupings.1", "String should have at least 1 character [type=string_too_short]"},
		{"a rule without an expression", `{"localPathCleaningFilters": [{"alias": "a"}]}`, ".localPathCleaningFilters.0.regex", "Field required [type=missing]"},
		{"a rule with more", `{"localPathCleaningFilters": [{"regex": "a", "flags": "i"}]}`, ".localPathCleaningFilters.0.flags", "Extra inputs are not permitted [type=extra_forbidden]"},
		{
			"a broken regex", rule("a(b", ""), ".localPathCleaningFilters.1.regex",
			"Input should be a regular expression in the syntax of RE2: error parsing regexp: missing closing ): `a(b` [type=value_error]",
		},
		{
			"an expression of another dialect", rule("(?=a)", ""), ".localPathCleaningFilters.1.regex",
			"Input should be a regular expression in the syntax of RE2: error parsing regexp: invalid or unsupported Perl syntax: `(?=` [type=value_error]",
		},
		{"a long expression", rule(strings.Repeat("ab", 2049), ""), ".localPathCleaningFilters.1.regex", "Input should be a regular expression of at most 4096 bytes [type=value_error]"},
		{"an expression that grows", rule(`[\pL\pN]{900}`, ""), ".localPathCleaningFilters.1.regex", "Input should be a smaller regular expression [type=value_error]"},
		{"an unknown group", rule("(a)(b)", `\2\\9\3`), ".localPathCleaningFilters.1.alias", "The alias refers to group 3 of a regular expression with 2 [type=value_error]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkPathsMistake(t, "pathsFilter", tt.filter, tt.attr, tt.want)
		})
	}
}

// checkPathsMistake reads a PathsQuery with one field that has one mistake.
func checkPathsMistake(t *testing.T, field, value, below, want string) {
	t.Helper()
	mistake := insighttest.MistakeIn(t, `{"kind": "PathsQuery", "`+field+`": `+value+`}`)
	attr := field + below
	want = "JSON parse error - 1 validation error for QueryRequest\nquery.PathsQuery." + attr + "\n  " + want
	if diff := cmp.Diff([]string{attr, want}, []string{mistake.Attr, mistake.Detail}); diff != "" {
		t.Errorf("attr and detail (-want +got):\n%s", diff)
	}
}

func TestReadFunnelMistakes(t *testing.T) {
	t.Parallel()
	funnel := func(kind, step string) string {
		return `{"funnelPathType": "funnel_path_` + kind + `", "funnelStep": ` + step + `, "funnelSource": {"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}}`
	}
	tests := []struct{ name, filter, attr, want string }{
		{"no step", funnel("after_step", "null"), ".funnelStep", "Field required [type=missing]"},
		{"no funnel", `{"funnelPathType": "funnel_path_after_step", "funnelStep": 1}`, ".funnelSource", "Field required [type=missing]"},
		{"a trend", `{"funnelPathType": "funnel_path_after_step", "funnelStep": 1, "funnelSource": {"kind": "TrendsQuery"}}`, ".funnelSource.kind", "Input should be 'FunnelsQuery' [type=literal_error]"},
		{"an unknown type", funnel("at_step", "1"), ".funnelPathType", "Input should be 'funnel_path_before_step', 'funnel_path_between_steps' or 'funnel_path_after_step' [type=enum]: did you mean 'funnel_path_after_step'?"},
		{"a step after the last", funnel("before_step", "3"), ".funnelStep", "Input should be a step of the funnel, from 1 to 2 [type=value_error]"},
		{"no step at all", funnel("after_step", "0"), ".funnelStep", "Input should be a step of the funnel, from 1 to 2 [type=value_error]"},
		{"nobody leaves at the first", funnel("after_step", "-1"), ".funnelStep", "Input should be a step of the funnel, from 1 to 2 [type=value_error]"},
		{"leaving after the last", funnel("after_step", "-3"), ".funnelStep", "Input should be a step of the funnel, from 1 to 2 [type=value_error]"},
		{"nothing before the first", funnel("between_steps", "1"), ".funnelStep", "Input should be a step of the funnel, from 2 to 2 [type=value_error]"},
		{"a mistake in the funnel", `{"funnelPathType": "funnel_path_after_step", "funnelStep": 1, "funnelSource": {"series": [{"event": 3}]}}`, ".funnelSource.series.0.event", "Input should be a valid string [type=string_type]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkPathsMistake(t, "funnelPathsFilter", tt.filter, tt.attr, tt.want)
		})
	}
	got := insighttest.Node[*paths.Query](t, `{"kind": "PathsQuery", "funnelPathsFilter": `+funnel("after_step", "-2")+`}`)
	if got.Funnel.Step != -2 || got.Funnel.Type != paths.AfterStep || got.Funnel.At != "funnelPathsFilter" || len(got.Funnel.Source.Series) != 2 {
		t.Errorf("got %+v", got.Funnel)
	}
}
