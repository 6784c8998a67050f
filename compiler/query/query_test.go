package query_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     *query.HogQL
	}{
		{"the least", `{"kind": "HogQLQuery", "query": "select 1"}`, &query.HogQL{Query: "select 1"}},
		{
			"everything", `{"kind": "HogQLQuery", "query": "q", "name": "n", "version": 3, "response": {"x": 1}, "explain": false,
			"tags": {"scene": "s", "productKey": null}, "values": {"a": [1, "x", null], "b": 5.0},
			"variables": {"id": {"variableId": "id", "code_name": "c", "value": 1}, "z": {"variableId": "z", "code_name": "d", "isNull": true}},
			"filters": {"dateRange": {"date_from": "-7d", "date_to": null, "explicitDate": true}, "filterTestAccounts": true,
				"properties": [{"key": "k", "type": "group", "operator": "exact", "value": ["v", 1], "group_type_index": 2, "label": "l"}, {}]},
			"modifiers": {"debug": true, "personsJoinMode": "left", "timings": null}, "connectionId": null, "sendRawQuery": false}`,
			&query.HogQL{
				Query:  "q",
				Values: map[string]any{"a": []any{json.Number("1"), "x", nil}, "b": json.Number("5.0")},
				Variables: map[string]query.Variable{
					"id": {VariableID: "id", CodeName: "c", Value: json.Number("1"), HasValue: true},
					"z":  {VariableID: "z", CodeName: "d", IsNull: true},
				},
				Filters: &query.Filters{DateFrom: "-7d", FilterTestAccounts: true, Properties: []query.Property{
					{Type: "group", Key: "k", Operator: "exact", Value: []any{"v", json.Number("1")}, Group: 2},
				}},
				Modifiers: query.Modifiers{Given: map[string]any{"personsJoinMode": "left"}},
			},
		},
		{
			"wrapped", `{"kind": "DataTableNode", "full": true, "source": {"kind": "DataVisualizationNode", "display": "x",
			"source": {"kind": "HogQLQuery", "query": "select 1"}}}`,
			&query.HogQL{Query: "select 1"},
		},
		{
			"older forms of filters by cohort", `{"kind": "HogQLQuery", "query": "q", "filters": {"properties": [{"key": "id", "type": "static-cohort", "value": 5},
				{"key": "id", "type": "precalculated-cohort", "value": 6, "negation": true}, {"key": "id", "type": "cohort", "value": 7, "operator": "in", "negation": false}]}}`,
			&query.HogQL{Query: "q", Filters: &query.Filters{Properties: []query.Property{
				{Type: "cohort", Key: "id", Value: json.Number("5")},
				{Type: "cohort", Key: "id", Value: json.Number("6"), Operator: "not_in"},
				{Type: "cohort", Key: "id", Value: json.Number("7"), Operator: "in"},
			}}},
		},
		{"nulls are absent", `{"kind": "HogQLQuery", "query": "q", "values": null, "variables": null, "filters": null, "name": null}`, &query.HogQL{Query: "q"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compiler.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(query.Node(tt.want), got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMistakes(t *testing.T) {
	t.Parallel()
	one := "JSON parse error - 1 validation error for QueryRequest\n"
	tests := []struct{ name, in, attr, want string }{
		{"no JSON", `{"kind": "HogQLQuery", }`, "", "JSON parse error - invalid character '}' looking for beginning of object key string: line 1 column 24 (char 23)"},
		{"half of it", "{\n \"kind\": ", "", "JSON parse error - unexpected end of JSON input: line 2 column 10 (char 11)"},
		{"more than one", `{} {}`, "", "JSON parse error - extra data: line 1 column 5 (char 4)"},
		{"too deep", strings.Repeat("[", 65), "", "JSON parse error - nested too deeply: line 1 column 65 (char 64)"},
		{
			"too many values", "[" + strings.Repeat("1,", 1_000_000) + "1]", "",
			"JSON parse error - more than 1000000 values or 100000 objects: line 1 column 1999999 (char 1999998)",
		},
		{
			"too many lists", "[" + strings.Repeat("[],", 500_000) + "1]", "",
			"JSON parse error - more than 1000000 values or 100000 objects: line 1 column 1499999 (char 1499998)",
		},
		{
			"too many objects", "[" + strings.Repeat(`{"":","},`, 100_001) + "1]", "",
			"JSON parse error - more than 1000000 values or 100000 objects: line 1 column 900002 (char 900001)",
		},
		{"no object", `[]`, "", one + "query\n  Input should be a valid dictionary or object to extract fields from [type=model_attributes_type]"},
		{"no kind", `{"query": "select 1"}`, "", one + "query\n  Unable to extract tag using discriminator 'kind' [type=union_tag_not_found]"},
		{"no query", `{"kind": "HogQLQuery"}`, "query", one + "query.HogQLQuery.query\n  Field required [type=missing]"},
		{"query null", `{"kind": "HogQLQuery", "query": null}`, "query", one + "query.HogQLQuery.query\n  Input should be a valid string [type=string_type]"},
		{"an extra field", `{"kind": "HogQLQuery", "query": "", "limit": 3}`, "limit", one + "query.HogQLQuery.limit\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{
			"several", `{"kind": "HogQLQuery", "query": 1, "values": [], "variables": {"v": {"code_name": 2, "isNull": "x"}}, "filters": {"dateRange": {"date_from": 1}, "x": 1}}`,
			"query", "JSON parse error - 7 validation errors for QueryRequest\n" +
				"query.HogQLQuery.query\n  Input should be a valid string [type=string_type]\n" +
				"query.HogQLQuery.values\n  Input should be a valid dictionary [type=dict_type]\n" +
				"query.HogQLQuery.variables.v.variableId\n  Field required [type=missing]\n" +
				"query.HogQLQuery.variables.v.code_name\n  Input should be a valid string [type=string_type]\n" +
				"query.HogQLQuery.variables.v.isNull\n  Input should be a valid boolean [type=bool_type]\n" +
				"query.HogQLQuery.filters.dateRange.date_from\n  Input should be a valid string [type=string_type]\n" +
				"query.HogQLQuery.filters.x\n  Extra inputs are not permitted [type=extra_forbidden]",
		},
		{
			"inside a wrapper", `{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "", "modifiers": {"nope": 1}}}`,
			"source.modifiers.nope", one + "query.DataVisualizationNode.source.HogQLQuery.modifiers.nope\n  Extra inputs are not permitted [type=extra_forbidden]",
		},
		{"an empty wrapper", `{"kind": "InsightVizNode"}`, "source", one + "query.InsightVizNode.source\n  Field required [type=missing]"},
		{
			"another database", `{"kind": "HogQLQuery", "query": "", "connectionId": "x"}`,
			"connectionId", one + "query.HogQLQuery.connectionId\n  Queries to other databases are not supported [type=value_error]",
		},
		{
			"a filter of an unknown type", `{"kind": "HogQLQuery", "query": "", "filters": {"properties": [{"type": "moon", "key": "k", "value": {}}]}}`,
			"filters.properties.0.type", "JSON parse error - 2 validation errors for QueryRequest\n" +
				"query.HogQLQuery.filters.properties.0.type\n  Input tag 'moon' found using 'type' does not match any of the expected tags: " +
				"'event', 'person', 'group', 'session', 'cohort', 'behavioral', 'element', 'event_metadata', 'person_metadata', 'feature', 'hogql' [type=union_tag_invalid]\n" +
				"query.HogQLQuery.filters.properties.0.value\n  Input should be a string, a number, a boolean or a list of them [type=value_error]",
		},
		{"a kind that cannot be run", `{"kind": "SavedInsightNode", "shortId": "x"}`, "", "Unsupported query kind: SavedInsightNode"},
		{"a kind that PostHog's own client turns into another request", `{"kind": "PersonsNode", "search": "a"}`, "", "Unsupported query kind: PersonsNode"},
		{"the same in a table", `{"kind": "DataTableNode", "source": {"kind": "PersonsNode"}}`, "source", "Unsupported query kind: PersonsNode"},
		{"a kind about sessions", `{"kind": "SessionsQuery", "select": ["*"]}`, "", "Unsupported query kind: SessionsQuery"},
		{"a kind about values", `{"kind": "PropertyValuesQuery", "property_key": "a"}`, "", "Unsupported query kind: PropertyValuesQuery"},
		{"a kind that is not offered", `{"kind": "DataTableNode", "source": {"kind": "WebGoalsQuery"}}`, "source", "Unsupported query kind: WebGoalsQuery"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mistake := insighttest.MistakeIn(t, tt.in)
			if diff := cmp.Diff([]string{tt.attr, tt.want}, []string{mistake.Attr, mistake.Detail}); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
			want := diag.ParseError
			if strings.HasPrefix(tt.want, "Unsupported") {
				want = diag.InvalidInput
			}
			if mistake.Code != want {
				t.Errorf("code %s, want %s", mistake.Code, want)
			}
		})
	}
}

func TestParseUnknownKind(t *testing.T) {
	t.Parallel()
	_, err := compiler.Parse([]byte(`{"kind": "Tomato Soup"}`))
	want := "JSON parse error - 1 validation error for QueryRequest\nquery\n" +
		"  Input tag 'Tomato Soup' found using 'kind' does not match any of the expected tags: 'HogQLQuery', 'TrendsQuery', 'FunnelsQuery', " +
		"'RetentionQuery', 'PathsQuery', 'StickinessQuery', 'LifecycleQuery', 'WebOverviewQuery', 'WebStatsTableQuery', 'EventsQuery', 'ActorsQuery', 'GroupsQuery' and others [type=union_tag_invalid]"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for kind, meant := range map[string]string{"TrendQuery": "TrendsQuery", "trends": "TrendsQuery", "hogqlquery": "HogQLQuery", "Funnel": "FunnelsQuery", "EventNode": "EventsNode"} {
		_, err := compiler.Parse([]byte(`{"kind": "` + kind + `"}`))
		if want := "[type=union_tag_invalid]: did you mean '" + meant + "'?"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want it to end with %s", kind, err, want)
		}
	}
	for text, meant := range map[string]string{
		`{"kind": "TrendsQuery", "series": [], "intervall": "day"}`:                                                   "interval",
		`{"kind": "TrendsQuery", "series": [], "interval": "days"}`:                                                   "day",
		`{"kind": "TrendsQuery", "series": [], "properties": [{"type": "event", "key": "a", "operator": "is_nott"}]}`: "is_not",
	} {
		_, err := compiler.Parse([]byte(text))
		if want := "]: did you mean '" + meant + "'?"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want it to end with %s", text, err, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	base := `{"kind": "HogQLQuery", "query": "select {a}", "values": {"a": 1, "b": "<x>"}, "variables": {"i": {"variableId": "i", "code_name": "c", "value": 2}}}`
	tests := []sameness{
		{"other order", `{"variables": {"i": {"value": 2, "code_name": "c", "variableId": "i"}}, "values": {"b": "<x>", "a": 1}, "query": "select {a}", "kind": "HogQLQuery"}`, true},
		{"labels and nulls", base[:len(base)-1] + `, "name": "n", "tags": {"scene": "s"}, "version": 2, "filters": null, "modifiers": {"debug": true}}`, true},
		{"another text", strings.Replace(base, "{a}", "{b}", 1), false},
		{"another value", strings.Replace(base, `"a": 1`, `"a": 2`, 1), false},
		{"a float for an integer", strings.Replace(base, `"a": 1`, `"a": 1.0`, 1), false},
		{"text for a number", strings.Replace(base, `"a": 1`, `"a": "1"`, 1), false},
		{"another variable's value", strings.Replace(base, `"value": 2`, `"value": 3`, 1), false},
		{"a variable's default", strings.Replace(base, `, "value": 2`, ``, 1), false},
		{"a variable that is NULL", strings.Replace(base, `"value": 2`, `"value": 2, "isNull": true`, 1), false},
		{"filters", base[:len(base)-1] + `, "filters": {"dateRange": {"date_from": "-7d"}}}`, false},
		{"a modifier", base[:len(base)-1] + `, "modifiers": {"personsJoinMode": "left"}}`, false},
	}
	checkCanonical(t, base, tests)
}

func TestEqual(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"order of keys", `{"a": 1, "b": [true, null]}`, `{"b":[true,null],"a":1}`, true},
		{"order of items", `[1, 2]`, `[2, 1]`, false},
		{"forms of a number", `[1, 1e2, -0.5]`, `[1.0, 100, -5e-1]`, true},
		{"large integers", `9007199254740993`, `9007199254740992`, false},
		{"null is not absent", `{"a": null}`, `{}`, false},
		{"null for another key", `{"a": null}`, `{"b": null}`, false},
		{"text is not a number", `"1"`, `1`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
				got, err := query.Equal([]byte(pair[0]), []byte(pair[1]))
				if err != nil || got != tt.want {
					t.Errorf("Equal(%s, %s) = %t, %v, want %t", pair[0], pair[1], got, err, tt.want)
				}
			}
		})
	}
	if _, err := query.Equal([]byte(`{`), []byte(`{}`)); err == nil {
		t.Error("half a JSON is taken for JSON")
	}
}

func FuzzQueryParse(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "HogQLQuery", "query": "select 1", "values": {"a": [1, "x", null, 1e400]}}`,
		`{"kind": "DataTableNode", "source": {"kind": "HogQLQuery", "query": "", "filters": {"properties": [{"key": "k"}], "dateRange": {}}}}`,
		`{"kind": "HogQLQuery", "variables": {"": {"variableId": "", "code_name": "c", "value": {}}}, "modifiers": {"debug": 1}, "query": "\ud800"}`,
		`{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "a", "sourceQuery": {"kind": "HogQLQuery", "query": ""}, "globals": {"a": []}}`,
		`{"kind": "DatabaseSchemaQuery", "tags": {}, "modifiers": {}}`,
		`{"kind": "HogQLAutocomplete", "language": "hog", "query": "a", "startPosition": -1, "endPosition": 1e15, "sourceQuery": {"kind": "X"}, "globals": {"a": []}}`,
		`{"kind": "LifecycleQuery", "series": [{"kind": "GroupNode", "nodes": [{}, {"kind": "ActionsNode", "id": 1}]}], "properties": {"type": "OR", "values": [{"values": []}]}}`,
		`{"kind": "StickinessQuery", "series": [{"math": "hogql"}], "intervalCount": 2, "stickinessFilter": {"stickinessCriteria": {"operator": "gte", "value": 1}}}`,
		`{"kind": "EventsQuery", "select": ["*"], "properties": [{}], "limit": 1e2}`,
		`{"kind": "TrendsQuery"}`, `[[[[`, `{"kind": 1}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := compiler.Parse(raw)
		if err != nil {
			var mistake *diag.Error
			if !errors.As(err, &mistake) || mistake.Detail == "" {
				t.Fatalf("Parse(%q) gives %v, which is no mistake of its author", raw, err)
			}
			return
		}
		if !json.Valid(n.Canonical()) {
			t.Errorf("Parse(%q) has a canonical form that is not JSON: %s", raw, n.Canonical())
		}
		if same, err := query.Equal(raw, raw); err != nil || !same {
			t.Errorf("%q does not equal itself: %v", raw, err)
		}
	})
}
