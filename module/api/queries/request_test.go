package queries_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
)

// TestQueryActions tests the addresses besides POST query/: contract api.md, section 1.1.
func TestQueryActions(t *testing.T) {
	w := apitest.New(t)
	const unknown = "400 parse_error: JSON parse error - 1 validation error for QueryRequest\n"
	tests := []struct{ method, path, body, want string }{
		{"POST", "check_auth_for_async/", "", `200 {"user":"ok"}`},
		{"GET", "check_auth_for_async", "", "404 not_found: Query check_auth_for_async not found for team 1"},
		{"POST", "upgrade/", `{"query": {"query": "select 1", "kind": "HogQLQuery", "version": 1}}`, `200 {"query":{"query":"select 1","kind":"HogQLQuery","version":1}}`},
		{"POST", "upgrade/", `{"query": {"kind": "HogQLQuery"}}`, unknown + "query.HogQLQuery.query\n  Field required [type=missing]"},
		{"POST", "upgrade/", `{"query": {"kind": "HogQLQuery", "query": "select 1"}, "refresh": "async"}`, unknown + "refresh\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"POST", "upgrade/", `{}`, unknown + "query\n  Field required [type=missing]"},
		{"POST", "upgrade/", `[]`, "400 invalid_input: Query body must be a JSON object."},
		{"POST", "TrendsQuery/", `{"query": {"kind": "HogQLQuery"}}`, `400 invalid_input: Query kind mismatch: path kind "TrendsQuery" does not match body kind "HogQLQuery".`},
		{"POST", "TrendsQuery/", `{"query": 1}`, "400 invalid_input: Query must be a JSON object."},
		{"POST", "TrendsQuery/", `[1]`, "400 invalid_input: Query body must be a JSON object."},
		{"POST", "some-id/", `{}`, "404 not_found: Not found."},
		{"DELETE", "some-id/", "", `200 {"message":"Query some-id not found for team 1"}`},
		{"PUT", "some-id/", "", `405 method_not_allowed: Method "PUT" not allowed.`},
		{"GET", "", "", `405 method_not_allowed: Method "GET" not allowed.`},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path+" "+tt.body, func(t *testing.T) {
			answer := w.Send(t, tt.method, "/api/projects/1/query/"+tt.path, tt.body)
			got := fmt.Sprintf("%d %s", answer.Code, answer.Body)
			if answer.Code >= 400 {
				got = fmt.Sprintf("%d %s: %s", answer.Code, apitest.FieldOf(t, answer, "code"), apitest.FieldOf(t, answer, "detail"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClientQueryID(t *testing.T) {
	w := apitest.New(t)
	for id, good := range map[string]bool{
		`"2fbd4b19413342a4ad08c307155187bc"`: true, `""`: true, `null`: true, `"é ü:%2F?"`: true, `"` + strings.Repeat("é", result.MaxQueryID) + `"`: true,
		`7`: false, `"a/b"`: false, `".."`: false, `"a\nb"`: false, `"` + strings.Repeat("a", result.MaxQueryID+1) + `"`: false,
	} {
		body := `{"query": {"kind": "HogQLQuery", "query": "select 1"}, "client_query_id": ` + id + `}`
		p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
		if (err == nil) != good {
			t.Errorf("%s: %v", id, err)
		}
		if good && id != "null" && `"`+p.ClientID+`"` != id {
			t.Errorf("%s is read as %q", id, p.ClientID)
		}
	}
}

// TestLongQuery: a text that is too long to be compiled is refused before a background run begins.
func TestLongQuery(t *testing.T) {
	w := apitest.New(t)
	body := `{"query": {"kind": "HogQLQuery", "query": "` + strings.Repeat("<", 1<<20+1) + `"}, "refresh": "force_async"}`
	answer := w.Send(t, http.MethodPost, "/api/projects/1/query/", body)
	got := fmt.Sprintf("%d %s: %s", answer.Code, apitest.FieldOf(t, answer, "code"), apitest.FieldOf(t, answer, "detail"))
	if diff := cmp.Diff("400 hogql_syntax_error: The query is longer than 1048576 bytes", got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// TestOverrides: a query with overrides equals the query that itself contains them.
func TestOverrides(t *testing.T) {
	w := apitest.New(t)
	tests := []struct{ name, query, overrides, same string }{
		{
			"a variable", `{"kind": "HogQLQuery", "query": "select {variables.v}", "variables": {"a": {"variableId": "a", "code_name": "v", "value": 1}}}`,
			`"variables_override": {"a": {"variableId": "x", "code_name": "x", "value": 2}, "b": {"variableId": "b", "code_name": "v", "value": 3}}`,
			`{"kind": "HogQLQuery", "query": "select {variables.v}", "variables": {"a": {"variableId": "a", "code_name": "v", "value": 2}}}`,
		},
		{
			"a variable that is NULL", `{"kind": "HogQLQuery", "query": "select {variables.v}", "variables": {"a": {"variableId": "a", "code_name": "v", "value": 1}}}`,
			`"variables_override": {"a": {"variableId": "a", "code_name": "v", "isNull": true}}`,
			`{"kind": "HogQLQuery", "query": "select {variables.v}", "variables": {"a": {"variableId": "a", "code_name": "v", "isNull": true}}}`,
		},
		{
			"dates of SQL", `{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"dateRange": {"date_from": "-7d", "date_to": "-1d"}}}`,
			`"filters_override": {"date_from": "-30d"}`,
			`{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"dateRange": {"date_from": "-30d"}}}`,
		},
		{
			"properties of SQL", `{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"properties": [{"key": "a", "type": "event", "value": 1}]}}`,
			`"filters_override": {"properties": [{"key": "b", "type": "person", "value": "x"}], "filterTestAccounts": true}`,
			`{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"filterTestAccounts": true,
				"properties": [{"key": "a", "type": "event", "value": 1}, {"key": "b", "type": "person", "value": "x"}]}}`,
		},
		{
			"dates of SQL without filters", `{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "select 1 from events where {filters}"}}`,
			`"filters_override": {"date_to": "-1d"}, "variables_override": null`,
			`{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"dateRange": {"date_to": "-1d"}}}`,
		},
		{
			"an insight", `{"kind": "StickinessQuery", "series": [{"kind": "EventsNode"}], "interval": "day"}`,
			`"filters_override": {"interval": "week"}, "variables_override": {"a": {"variableId": "a", "code_name": "v"}}`,
			`{"kind": "StickinessQuery", "series": [{"kind": "EventsNode"}], "interval": "week"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			under, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": ` + tt.query + `, ` + tt.overrides + `}`))
			if err != nil {
				t.Fatal(err)
			}
			own, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": ` + tt.same + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(own.Node.Canonical()), string(under.Node.Canonical())); diff != "" {
				t.Errorf("the query under overrides (-want +got):\n%s", diff)
			}
			if under.Key != own.Key {
				t.Error("they do not share an answer")
			}
		})
	}
	const one = "400 parse_error: JSON parse error - 1 validation error for QueryRequest\n"
	for overrides, want := range map[string]string{
		`"variables_override": 7`: one + "variables_override\n  Input should be a valid dictionary [type=dict_type]",
		`"variables_override": {"a": {"variableId": "a", "code_name": "v", "vaule": 2}}`: one + "variables_override.a.vaule\n  Extra inputs are not permitted [type=extra_forbidden]: did you mean 'value'?",
		`"filters_override": {"date": 2}`:                                                one + "filters_override.date\n  Extra inputs are not permitted [type=extra_forbidden]",
	} {
		for _, kind := range []string{`{"kind": "HogQLQuery", "query": "select 1"}`, `{"kind": "StickinessQuery", "series": [{"kind": "EventsNode"}]}`} {
			_, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": ` + kind + `, ` + overrides + `}`))
			if err == nil {
				t.Errorf("%s is accepted for %s", overrides, kind)
				continue
			}
			if diff := cmp.Diff(want, api.ErrorOf(err).Error()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", overrides, diff)
			}
		}
	}
}
