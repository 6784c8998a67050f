package query_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestParseMetadata(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     *query.Metadata
	}{
		{"a query", `{"kind": "HogQLMetadata", "language": "hogQL", "query": "select 1"}`, &query.Metadata{Language: query.LanguageHogQL, Query: "select 1"}},
		{
			"an expression with everything", `{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "event", "debug": true, "globals": {"n": 1},
			"sourceQuery": {"kind": "DataTableNode", "source": {"kind": "HogQLQuery", "query": "select * from events"}}, "filters": {"dateRange": {"date_from": "-7d"}},
			"variables": {"i": {"variableId": "i", "code_name": "c"}}, "modifiers": {"debug": true, "personsOnEventsMode": "disabled"}, "tags": {"scene": "s"}, "version": 1, "response": {}, "connectionId": null, "indexUsage": false}`,
			&query.Metadata{
				Language: query.LanguageExpr, Query: "event", Debug: true, Globals: map[string]any{"n": json.Number("1")},
				Source: &query.HogQL{Query: "select * from events"}, Filters: &query.Filters{DateFrom: "-7d"},
				Variables: map[string]query.Variable{"i": {VariableID: "i", CodeName: "c"}}, Modifiers: query.Modifiers{Persons: new(schema.PersonJoined), Given: map[string]any{"personsOnEventsMode": "disabled"}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compiler.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(query.Node(tt.want), got); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if got.Kind() != "HogQLMetadata" || got.Text() != tt.want.Query {
				t.Errorf("it is a %s of %q", got.Kind(), got.Text())
			}
		})
	}
}

func TestMetadataMistakes(t *testing.T) {
	t.Parallel()
	const one = "JSON parse error - 1 validation error for QueryRequest\nquery.HogQLMetadata."
	tests := []struct {
		name, in string
		code     diag.Code
		want     string
	}{
		{"no language", `{"kind": "HogQLMetadata", "query": ""}`, diag.ParseError, one + "language\n  Field required [type=missing]"},
		{"no query", `{"kind": "HogQLMetadata", "language": "hogQL"}`, diag.ParseError, one + "query\n  Field required [type=missing]"},
		{"an unknown language", `{"kind": "HogQLMetadata", "language": "sql", "query": ""}`, diag.ParseError, one + "language\n  Input should be 'hog', 'hogJson', 'hogQL', 'hogQLExpr', 'hogTemplate' or 'liquid' [type=enum]"},
		{"a language that is not offered", `{"kind": "HogQLMetadata", "language": "hogTemplate", "query": ""}`, diag.InvalidInput, "Unsupported language: hogTemplate. There are hogQL, a query, and hogQLExpr, an expression"},
		{"an extra field", `{"kind": "HogQLMetadata", "language": "hogQL", "query": "", "values": {}}`, diag.ParseError, one + "values\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"a source that is no query", `{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "", "sourceQuery": {"kind": "DatabaseSchemaQuery"}}`, diag.ParseError, one + "sourceQuery\n  Input should be a HogQLQuery [type=value_error]"},
		{"a source with a mistake", `{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "", "sourceQuery": {"kind": "HogQLQuery"}}`, diag.ParseError, one + "sourceQuery.HogQLQuery.query\n  Field required [type=missing]"},
		{"a source of a kind that cannot be run", `{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "", "sourceQuery": {"kind": "WebGoalsQuery"}}`, diag.InvalidInput, "Unsupported query kind: WebGoalsQuery"},
		{"another database", `{"kind": "HogQLMetadata", "language": "hogQL", "query": "", "connectionId": "x"}`, diag.ParseError, one + "connectionId\n  Queries to other databases are not supported [type=value_error]"},
		{"a schema with more", `{"kind": "DatabaseSchemaQuery", "tables": []}`, diag.ParseError, strings.Replace(one, "HogQLMetadata", "DatabaseSchemaQuery", 1) + "tables\n  Extra inputs are not permitted [type=extra_forbidden]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mistake := insighttest.MistakeIn(t, tt.in)
			if diff := cmp.Diff([]string{string(tt.code), tt.want}, []string{string(mistake.Code), mistake.Detail}); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseAutocomplete(t *testing.T) {
	t.Parallel()
	const given = `{"kind": "HogQLAutocomplete", "language": "liquid", "query": "é {{ a }}", "startPosition": 4, "endPosition": 5, "globals": {"a": 1},
		"filters": {"dateRange": {"date_from": "-7d"}}, "modifiers": {"personsOnEventsMode": "disabled"}, "tags": {}, "version": 1, "response": null, "connectionId": null, "sourceQuery": %s}`
	want := func(source query.Node) query.Node {
		return &query.Autocomplete{
			Language: "liquid", Query: "é {{ a }}", Start: 4, End: 5, Globals: map[string]any{"a": json.Number("1")}, Source: source,
			Modifiers: query.Modifiers{Persons: new(schema.PersonJoined), Given: map[string]any{"personsOnEventsMode": "disabled"}},
		}
	}
	for source, node := range map[string]query.Node{
		`{"kind": "HogQLQuery", "query": "select 1 as team_id"}`: &query.HogQL{Query: "select 1 as team_id"},
		`{"kind": "HogQLQuery"}`:                                 nil, // an invalid source is not a mistake
		`{"kind": "EventsNode"}`:                                 nil,
		`7`:                                                      nil,
		`null`:                                                   nil,
	} {
		got, err := compiler.Parse([]byte(strings.Replace(given, "%s", source, 1)))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(want(node), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
	const one = "JSON parse error - 1 validation error for QueryRequest\nquery.HogQLAutocomplete."
	for in, want := range map[string]string{
		`{"kind": "HogQLAutocomplete", "language": "hogQL", "query": "", "endPosition": 0}`:                                    one + "startPosition\n  Field required [type=missing]",
		`{"kind": "HogQLAutocomplete", "language": "hogQL", "query": "", "startPosition": "a", "endPosition": 0}`:              one + "startPosition\n  Input should be a valid integer [type=int_type]",
		`{"kind": "HogQLAutocomplete", "language": "hogQL", "startPosition": 0, "endPosition": 0}`:                             one + "query\n  Field required [type=missing]",
		`{"kind": "HogQLAutocomplete", "language": "sql", "query": "", "startPosition": 0, "endPosition": 0}`:                  one + "language\n  Input should be 'hog', 'hogJson', 'hogQL', 'hogQLExpr', 'hogTemplate' or 'liquid' [type=enum]",
		`{"kind": "HogQLAutocomplete", "language": "hogQL", "query": "", "startPosition": 0, "endPosition": 0, "position": 1}`: one + "position\n  Extra inputs are not permitted [type=extra_forbidden]",
	} {
		if mistake := insighttest.MistakeIn(t, in); mistake.Detail != want {
			t.Errorf("%s: %s", in, mistake.Detail)
		}
	}
}

func TestDescriptionsAreCanonical(t *testing.T) {
	t.Parallel()
	base := canonical(t, `{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "a", "sourceQuery": {"kind": "HogQLQuery", "query": "select 1"}}`)
	for in, same := range map[string]bool{
		`{"sourceQuery": {"query": "select 1", "kind": "HogQLQuery", "name": "n"}, "kind": "HogQLMetadata", "query": "a", "language": "hogQLExpr", "debug": false}`: true,
		`{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "a"}`:                                                                                          false,
		`{"kind": "HogQLMetadata", "language": "hogQL", "query": "a", "sourceQuery": {"kind": "HogQLQuery", "query": "select 1"}}`:                                  false,
		`{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "a", "debug": true, "sourceQuery": {"kind": "HogQLQuery", "query": "select 1"}}`:               false,
		`{"kind": "HogQLMetadata", "language": "hogQLExpr", "query": "a", "globals": {"a": 1}, "sourceQuery": {"kind": "HogQLQuery", "query": "select 1"}}`:         false,
		`{"kind": "DatabaseSchemaQuery"}`: false,
		`{"kind": "HogQLAutocomplete", "language": "hogQLExpr", "query": "a", "startPosition": 0, "endPosition": 0, "sourceQuery": {"kind": "HogQLQuery", "query": "select 1"}}`: false,
	} {
		if got := bytes.Equal(base, canonical(t, in)); got != same {
			t.Errorf("%s is the same: %t, want %t", in, got, same)
		}
	}
	if got := string(canonical(t, `{"kind": "DatabaseSchemaQuery", "version": 1}`)); got != `{"kind":"DatabaseSchemaQuery"}` {
		t.Errorf("the schema's canonical form is %s", got)
	}
}
