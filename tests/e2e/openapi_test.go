package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestAnswersAsDescribed publishes queries of all kinds, runs them, and checks the answers against the document.
func TestAnswersAsDescribed(t *testing.T) {
	demo := demoProject(t)
	steps := []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}, map[string]any{"kind": "EventsNode", "event": "commit landed"}}
	split := map[string]any{"breakdown": "component", "breakdown_type": "event", "breakdown_limit": 3}
	commit := map[string]any{"id": "commit authored", "type": "events"}
	year := map[string]any{"date_from": "2025-01-01", "date_to": "2025-12-31"}
	kinds := map[string]map[string]any{
		"SQL": {"kind": "HogQLQuery", "query": `select uuid, event, timestamp, toDate(timestamp) as day, properties.branch as branch, person.properties as everything,
			length(event) as l, l / 3 as third, l > 3 as long, [event, null] as list, (event, l) as pair, map('k', l) as dict, toDecimal(l, 2) as price,
			null as nothing, 1/0 as infinite, quantiles(0.5, 0.9)(l) over () as q from events order by timestamp limit 20`},
		"trends":             {"kind": "TrendsQuery", "series": steps[:1], "interval": "month", "dateRange": year, "breakdownFilter": split, "compareFilter": map[string]any{"compare": true}},
		"trends as a number": {"kind": "TrendsQuery", "series": steps[:1], "dateRange": year, "trendsFilter": map[string]any{"display": "BoldNumber"}},
		"a formula":          {"kind": "TrendsQuery", "series": steps, "interval": "month", "dateRange": year, "trendsFilter": map[string]any{"formula": "A/B"}},
		"a formula's number": {"kind": "TrendsQuery", "series": steps, "dateRange": year, "trendsFilter": map[string]any{"formula": "A/B", "display": "BoldNumber"}},
		"lifecycle":          {"kind": "LifecycleQuery", "series": steps[:1], "interval": "month", "dateRange": year},
		"stickiness":         {"kind": "StickinessQuery", "series": steps[:1], "interval": "month", "dateRange": year},
		"retention":          {"kind": "RetentionQuery", "retentionFilter": map[string]any{"period": "Month", "totalIntervals": 3, "targetEntity": commit, "returningEntity": commit}, "dateRange": year},
		"paths":              {"kind": "PathsQuery", "pathsFilter": map[string]any{"includeEventTypes": []string{"custom_event"}}, "dateRange": year},
		"a funnel":           {"kind": "FunnelsQuery", "series": steps, "dateRange": year},
		"a funnel, split":    {"kind": "FunnelsQuery", "series": steps, "dateRange": year, "breakdownFilter": split},
		"a funnel over time": {"kind": "FunnelsQuery", "series": steps, "interval": "month", "dateRange": year, "funnelsFilter": map[string]any{"funnelVizType": "trends"}},
		"times of a funnel":  {"kind": "FunnelsQuery", "series": steps, "dateRange": year, "funnelsFilter": map[string]any{"funnelVizType": "time_to_convert"}},
	}
	for name, query := range kinds {
		t.Run(name, func(t *testing.T) {
			const endpoint = "endpoints/as-described/"
			if answer := demo.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "as-described", "query": query}); answer.Status != http.StatusCreated {
				t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
			}
			defer demo.Do(t, http.MethodDelete, endpoint, nil)
			paths := []string{"run"}
			if query["kind"] == "HogQLQuery" {
				paths = []string{"run", "run.objects", "run?int64=string", "run.objects?int64=string"}
			}
			for _, path := range paths {
				answer := demo.Do(t, http.MethodPost, endpoint+path, map[string]any{})
				if answer.Status != http.StatusOK {
					t.Fatalf("%s: %d %s", path, answer.Status, answer.Raw)
				}
				if results, _ := answer.Body["results"].([]any); len(results) == 0 && name != "times of a funnel" {
					t.Errorf("%s: no results, which prove nothing: %.300s", path, answer.Raw)
				}
				path, parameters, _ := strings.Cut(path, "?")
				describe(t, demo, endpoint+"openapi.json?"+parameters, path, answer)
			}
		})
	}
}

// describe checks an answer against a document.
func describe(t *testing.T, c *harness.Client, document, path string, answer harness.Answer) {
	t.Helper()
	got := c.Do(t, http.MethodGet, document, nil)
	doc, err := openapi3.NewLoader().LoadFromData(got.Raw)
	if err != nil {
		t.Fatalf("the document: %d, %v", got.Status, err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Errorf("the document, with this run as its example: %v", err)
	}
	for at, item := range doc.Paths.Map() {
		if !strings.HasSuffix(at, "/"+path) {
			continue
		}
		var body any
		if err := json.Unmarshal(answer.Raw, &body); err != nil {
			t.Fatal(err)
		}
		if err := item.Post.Responses.Value("200").Value.Content.Get("application/json").Schema.Value.VisitJSON(body); err != nil {
			t.Errorf("%s: %v\n%.500s", path, err, answer.Raw)
		}
		return
	}
	t.Errorf("the document has no %s", path)
}

// TestWideIntegers requests integers too large for JavaScript numbers, as numbers and as strings, in each format.
func TestWideIntegers(t *testing.T) {
	demo := demoProject(t)
	const sql = `select 18446744073709551615 as n, [-9007199254740993] as list, toMonth(toDate('2026-07-01')) as small from numbers(2)`
	if answer := demo.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "wide", "query": map[string]any{"kind": "HogQLQuery", "query": sql}}); answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	defer demo.Do(t, http.MethodDelete, "endpoints/wide/", nil)
	const object = `{"n":"18446744073709551615","list":["-9007199254740993"],"small":7}`
	for path, want := range map[string]string{
		"run":                               `[18446744073709551615, [-9007199254740993], 7]`,
		"run?int64=number":                  `[18446744073709551615, [-9007199254740993], 7]`,
		"run?int64=string":                  `["18446744073709551615",["-9007199254740993"],7]`,
		"run.objects?int64=string":          object,
		"run.ndjson?int64=string":           object + "\n",
		"run.ndjson?int64=string&limit=1":   object + "\n",
		"run?int64=string&limit=1&offset=1": `["18446744073709551615",["-9007199254740993"],7]`,
		"run.csv?int64=string":              "18446744073709551615",
	} {
		for range 2 { // the second is cached
			answer := demo.Do(t, http.MethodPost, "endpoints/wide/"+path, map[string]any{})
			if answer.Status != http.StatusOK || !strings.Contains(string(answer.Raw), want) {
				t.Errorf("%s: %d %s, want %s", path, answer.Status, answer.Raw, want)
			}
		}
	}
	for _, path := range []string{"run", "openapi.json"} {
		if answer := demo.Do(t, http.MethodGet, "endpoints/wide/"+path+"?int64=text", nil); answer.Status != http.StatusBadRequest || answer.Body["attr"] != "int64" {
			t.Errorf("%s?int64=text: %d %s", path, answer.Status, answer.Raw)
		}
	}
}

// TestTypesOfVariables: columns computed from variables have types that fit every value.
func TestTypesOfVariables(t *testing.T) {
	c := newProject(t)
	for name, typ := range map[string]string{"count": "Number", "word": "String", "day": "Date", "flag": "Boolean"} {
		body := map[string]any{"name": name, "type": typ}
		if name == "count" {
			body["default_value"] = 2
		}
		if answer := c.Do(t, http.MethodPost, "insight_variables/", body); answer.Status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, answer.Status, answer.Raw)
		}
	}
	publish(t, c, "typed", `select {variables.count} as given, number * {variables.count} as product, {variables.word} as word, [{variables.count}] as list,
		toDate({variables.day}) as day, count() as plain from numbers(3) where {variables.flag} or not {variables.flag} group by number limit 2`)
	record := c.Do(t, http.MethodGet, "endpoints/typed/", nil)
	columns, _ := record.Body["columns"].([]any)
	got := map[string]any{}
	for _, column := range columns {
		c, _ := column.(map[string]any)
		got[fmt.Sprint(c["name"])] = [2]any{c["type"], c["clickhouse_type"]}
	}
	want := map[string]any{
		"given": [2]any{"integer", "Nullable(Float64)"}, "product": [2]any{"integer", "Nullable(Float64)"}, "word": [2]any{"string", "Nullable(String)"},
		"list": [2]any{"array", "Array(Nullable(Float64))"}, "day": [2]any{"date", "Nullable(Date)"}, "plain": [2]any{"integer", "UInt64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for _, variables := range []string{`{"count": 1.5, "word": "x", "day": "2026-01-31", "flag": true}`, `{"count": null, "word": null, "day": null, "flag": true}`} {
		answer := c.Do(t, http.MethodPost, "endpoints/typed/run.objects", `{"variables": `+variables+`}`)
		if answer.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", variables, answer.Status, answer.Raw)
		}
		describe(t, c, "endpoints/typed/openapi.json", "run.objects", answer)
	}
}
