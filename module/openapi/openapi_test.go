package openapi_test

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/internal/golden"
	"github.com/caddy-analytics/caddy-analytics/module/openapi"
)

var site = openapi.Site{URL: "https://api.example.com"}

// common are the schemas that every document has.
var common = []string{"Error", "RunError", "DashboardFilter", "PropertyFilter"}

// TestGolden compares the operations and schemas of documents with golden files, without what all have in common. A case is one endpoint with a
// document of its own, or a list of endpoints that share one.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/*/*.txtar", []string{"endpoints"}, []string{"operations", "answer", "example", "schemas"}, func(t *testing.T, in map[string]string) map[string]string {
		t.Helper()
		var given []described
		decoder := json.NewDecoder(strings.NewReader(in["endpoints"]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&given); err != nil {
			t.Fatal(err)
		}
		all := make([]*openapi.Endpoint, len(given))
		for i := range given {
			all[i] = given[i].endpoint(t)
		}
		doc := openapi.All(all, "Endpoints of shop", "2026-01-10T12:00:00Z", site)
		if len(all) == 1 {
			doc = openapi.One(all[0], site)
		}
		checkDocument(t, []byte(mustMarshal(t, doc)))
		out := map[string]string{"operations": fmt.Sprintf("%s, version %s: %s\n", doc.Info.Title, doc.Info.Version, doc.Info.Description)}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
			op := doc.Paths.Value(path).Post
			required := ""
			if op.RequestBody.Value.Required {
				required = ", required"
			}
			for media, answer := range op.Responses.Value("200").Value.Content {
				out["operations"] += fmt.Sprintf("%s %s (%s)\n\t%s%s -> %s", path, op.OperationID, op.Summary,
					op.RequestBody.Value.Content.Get("application/json").Schema.Ref, required, media)
				if results := answer.Schema.Value.Properties["results"]; results != nil {
					out["operations"] += " " + mustMarshal(t, results)
				}
				out["operations"] += "\n"
				if len(all) == 1 && strings.HasSuffix(path, "/run") {
					delete(answer.Schema.Value.Properties, "results")
					out["answer"] = mustMarshal(t, answer.Schema)
				}
				if answer.Example != nil && len(all) == 1 {
					out["example"] += mustMarshal(t, answer.Example) + "\n"
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
			if !slices.Contains(common, name) {
				out["schemas"] += name + " " + mustMarshal(t, doc.Components.Schemas[name]) + "\n"
			}
		}
		return out
	})
}

// described is an endpoint of a case, with a description of its query.
type described struct {
	openapi.Endpoint
	Kind, Viz                  string
	Breakdown, Cohort, Cohorts bool
	TrendsFilter               map[string]any
}

// endpoint returns the endpoint as its case describes it.
func (d *described) endpoint(t *testing.T) *openapi.Endpoint {
	t.Helper()
	filter := map[string]any{}
	switch {
	case d.Cohorts || d.Cohort:
		filter = map[string]any{"breakdown_type": "cohort", "breakdown": []int{1}}
	case d.Breakdown:
		filter["breakdown"] = "plan"
	}
	q := map[string]any{"kind": d.Kind}
	switch d.Kind {
	case "HogQLQuery":
		return &d.Endpoint
	case "TrendsQuery":
		q["series"], q["breakdownFilter"], q["trendsFilter"] = []any{}, filter, d.TrendsFilter
	case "FunnelsQuery":
		q["series"], q["breakdownFilter"], q["funnelsFilter"] = []any{}, filter, map[string]any{"funnelVizType": stdcmp.Or(d.Viz, "steps")}
	case "RetentionQuery":
		q["retentionFilter"] = map[string]any{}
	case "StickinessQuery", "LifecycleQuery":
		q["series"] = []any{}
	}
	node, err := compiler.Parse([]byte(mustMarshal(t, q)))
	if err != nil {
		t.Fatal(err)
	}
	kind := compiler.KindOf(node)
	results := kind.Form(node.(query.Insight))
	d.Results, d.HasMore = &results, kind.HasMore
	return &d.Endpoint
}

// checkDocument reads a document with the library, as any reader would, and looks for mistakes, also in the examples.
func checkDocument(t *testing.T, raw []byte) {
	t.Helper()
	read, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatalf("reading the document: %v", err)
	}
	if err := read.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
	ids := map[string]bool{}
	for path, item := range read.Paths.Map() {
		if ids[item.Post.OperationID] {
			t.Errorf("%s: there are two operations %s", path, item.Post.OperationID)
		}
		ids[item.Post.OperationID] = true
		for _, status := range []string{"400", "401", "403", "404", "429", "503", "default"} {
			if item.Post.Responses.Value(status) == nil {
				t.Errorf("%s has no answer %s", path, status)
			}
		}
	}
}

// TestExampleOfOtherTypes: a run whose columns have got other types is no example of the document, but one whose values its schemas describe is.
func TestExampleOfOtherTypes(t *testing.T) {
	for _, tt := range []struct {
		column, run, value string
		shown              bool
	}{
		{"Nullable(Float64)", "Nullable(String)", `"pro"`, false},
		{"String", "Nullable(String)", `null`, false},
		{"UInt8", "Int64", `5000000000`, false},
		{"UInt64", "Int64", `-5`, false},
		{"String", "String", `"pro"`, true},
		{"Nullable(Float64)", "UInt8", `7`, true},
		{"Int64", "UInt8", `7`, true},
		{"Nullable(String)", "String", `"pro"`, true},
		{"", "Array(String)", `["pro"]`, true},
	} {
		const at = "2026-01-10T12:00:00Z"
		example := fmt.Sprintf(`{"results": [[%s]], "columns": ["x"], "types": [["x", %q]], "hasMore": false, "limit": null, "offset": null, "next_cursor": null,
			"is_cached": true, "last_refresh": %[3]q, "next_allowed_client_refresh": %[3]q, "cache_target_age": %[3]q, "timezone": "UTC", "query": null, "name": "n",
			"execution_id": "6b1d3f0e-5d0a-4a53-9a58-0a1f0c2c7d11", "endpoint_version": 1, "endpoint_version_created_at": %[3]q}`, tt.value, tt.run, at)
		doc := openapi.One(&openapi.Endpoint{
			Project: 7, Name: "n", Version: 1, Columns: []openapi.Column{{Name: "x", Type: tt.column}}, Example: json.RawMessage(example),
		}, openapi.Site{URL: "https://api.example.com"})
		raw := mustMarshal(t, doc)
		checkDocument(t, []byte(raw))
		if shown := strings.Contains(raw, "6b1d3f0e"); shown != tt.shown {
			t.Errorf("a run with %s for %s is the example: %t", tt.run, tt.column, shown)
		}
	}
}

// TestTypes checks the schema of each ClickHouse type, and that the sample matches it.
func TestTypes(t *testing.T) {
	tests := []struct{ name, typ, wire, want string }{
		{"small integer", "UInt16", "", `{"format":"int32","type":"integer"}`},
		{"64 bits", "UInt64", "", `{"format":"uint64","minimum":0,"type":"integer"}`},
		{"more bits", "Int256", "", `{"description":"May exceed 64 bits. With the parameter int64=string it is a string.","type":"integer"}`},
		{"float, null where it is not finite", "Float64", "", `{"format":"double","nullable":true,"type":"number"}`},
		{"decimal", "Nullable(Decimal(18, 2))", "", `{"format":"decimal","nullable":true,"type":"string"}`},
		{"text", "LowCardinality(Nullable(String))", "", `{"nullable":true,"type":"string"}`},
		{"fixed text", "FixedString(3)", "", `{"type":"string"}`},
		{"time in a zone", "DateTime64(6, 'America/New_York')", "", `{"format":"date-time","type":"string"}`},
		{"day", "Date32", "", `{"format":"date","type":"string"}`},
		{"UUID", "UUID", "", `{"format":"uuid","type":"string"}`},
		{"enum", `Enum8('a\'b' = 1, 'c, (d)' = 2)`, "", `{"enum":["a'b","c, (d)"],"type":"string"}`},
		{"list", "Array(Nullable(UInt8))", "", `{"items":{"format":"int32","nullable":true,"type":"integer"},"type":"array"}`},
		{"tuple of one kind", "Tuple(UInt8, Nullable(Int8))", "", `{"items":{"format":"int32","nullable":true,"type":"integer"},"maxItems":2,"minItems":2,"type":"array"}`},
		{"named tuple", "Tuple(`a b` String, c UInt64)", "", `{"items":{"anyOf":[{"type":"string"},{"format":"uint64","minimum":0,"type":"integer"}]},"maxItems":2,"minItems":2,"type":"array"}`},
		{"nested", "Nested(a String, b Date)", "", `{"items":{"items":{"anyOf":[{"type":"string"},{"format":"date","type":"string"}]},"maxItems":2,"minItems":2,"type":"array"},"type":"array"}`},
		{"map", "Map(LowCardinality(String), Array(UInt64))", "", `{"additionalProperties":{"items":{"format":"uint64","minimum":0,"type":"integer"},"type":"array"},"type":"object"}`},
		{"JSON", "JSON(max_dynamic_paths=8)", "", `{"additionalProperties":true,"type":"object"}`},
		{"aggregate", "SimpleAggregateFunction(sum, UInt64)", "", `{"format":"uint64","minimum":0,"type":"integer"}`},
		{"interval", "IntervalDay", "", `{"format":"int64","type":"integer"}`},
		{"always null", "Nullable(Nothing)", "", `{"description":"Always null.","nullable":true,"type":"string"}`},
		{"anything", "Variant(String, UInt64)", "", `{"description":"ClickHouse type Variant(String, UInt64)"}`},
		{"broken off", "Array", "", `{"description":"ClickHouse type Array"}`},
		{"only named", "", "integer", `{"format":"int64","nullable":true,"type":"integer"}`},
		{"only named, a list", "", "array", `{"items":{},"type":"array"}`},
		{"unknown", "", "unknown", `{"description":"Its type is not known."}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := openapi.One(&openapi.Endpoint{
				Project: 1, Name: "e", Version: 1, Columns: []openapi.Column{{Name: "c", Type: tt.typ, Wire: tt.wire}},
			}, site)
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			checkDocument(t, raw)
			member := *doc.Components.Schemas["ERow"].Value.Properties["c"].Value
			member.Extensions = nil
			if diff := cmp.Diff(tt.want, mustMarshal(t, &member)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.typ, diff)
			}
		})
	}
}

// TestBreakdownValues: runs show null in a column of breakdown values in place of PostHog's text for a missing one, whatever its type, and in lists.
func TestBreakdownValues(t *testing.T) {
	for _, tt := range []struct{ column, typed, want string }{
		{"breakdown_value", "String", `{"nullable":true,"type":"string"}`},
		{"breakdown_value", "Array(String)", `{"items":{"nullable":true,"type":"string"},"nullable":true,"type":"array"}`},
		{"a", "String", `{"type":"string"}`},
		{"a", "Array(String)", `{"items":{"type":"string"},"type":"array"}`},
	} {
		doc := openapi.One(&openapi.Endpoint{Project: 1, Name: "e", Version: 1, Columns: []openapi.Column{{Name: tt.column, Type: tt.typed}}}, site)
		shown := doc.Components.Schemas["ERow"].Value.Properties[tt.column]
		shown.Value.Extensions = nil
		if got := mustMarshal(t, shown); got != tt.want {
			t.Errorf("%s of type %s: %s, want %s", tt.column, tt.typed, got, tt.want)
		}
	}
}

// TestFormsOfOneName: insights with other options can have another form of the same name, and no endpoint gets that of another.
func TestFormsOfOneName(t *testing.T) {
	item := func(value form.Form) *form.Form {
		return &form.Form{Type: "array", Items: &form.Form{Name: "Item", Type: "object", Members: form.Members{"value": value}}}
	}
	doc := openapi.All([]*openapi.Endpoint{
		{Project: 1, Name: "texts", Version: 1, Results: item(form.Text())},
		{Project: 1, Name: "numbers", Version: 1, Results: item(form.Number())},
		{Project: 1, Name: "more-texts", Version: 1, Results: item(form.Text())},
	}, "All", "1", site)
	shown := func(name string) string {
		return mustMarshal(t, doc.Components.Schemas[name].Value.Properties["value"])
	}
	if shown("Item") != `{"type":"string"}` || shown("Item2") != `{"format":"double","type":"number"}` || doc.Components.Schemas["Item3"] != nil {
		t.Errorf("the schemas are %s", mustMarshal(t, doc.Components.Schemas))
	}
	for name, want := range map[string]string{"texts": "Item", "numbers": "Item2", "more-texts": "Item"} {
		run := mustMarshal(t, doc.Paths.Value("/api/environments/1/endpoints/"+name+"/run"))
		if !strings.Contains(run, `"#/components/schemas/`+want+`"`) {
			t.Errorf("%s does not refer to %s: %s", name, want, run)
		}
	}
}

// TestValuesRoom: a document repeats a variable's values for each endpoint that has it, so those of later endpoints may be left out.
func TestValuesRoom(t *testing.T) {
	plans := openapi.Variable{Name: "plan", Type: "List", Values: []any{strings.Repeat("a", 100), "pro"}}
	pages := openapi.Variable{Name: "page", Type: "List", Values: []any{"home"}}
	room := openapi.ValuesRoom(200)
	var listed []int
	for range 3 {
		e := &openapi.Endpoint{Variables: []openapi.Variable{plans, pages}}
		before := e.Size()
		room.Fit(e)
		listed = append(listed, len(e.Variables[0].Values), len(e.Variables[1].Values))
		if lost := before - e.Size(); (lost > 100) != (len(e.Variables[0].Values) == 0) {
			t.Errorf("the size of an endpoint with %d plans is %d less than that with all", len(e.Variables[0].Values), lost)
		}
	}
	if diff := cmp.Diff([]int{2, 1, 0, 1, 0, 1}, listed); diff != "" {
		t.Errorf("listed values (-want +got):\n%s", diff)
	}
	if len(plans.Values) != 2 {
		t.Error("the definition of the variable lost its values")
	}
}

// TestWideAsText: integers of more than 53 bits are strings, and the operations request that.
func TestWideAsText(t *testing.T) {
	doc := openapi.One(&openapi.Endpoint{
		Project: 1, Name: "e", Version: 1,
		Columns: []openapi.Column{{Name: "a", Type: "Nullable(UInt64)"}, {Name: "b", Type: "Array(Int64)"}, {Name: "c", Type: "UInt32"}, {Name: "d", Wire: "integer"}},
	}, openapi.Site{URL: site.URL, WideAsText: true})
	checkDocument(t, []byte(mustMarshal(t, doc)))
	const wide = `{"pattern":"^-?[0-9]+$","type":"string"}`
	const nullable = `{"nullable":true,"pattern":"^-?[0-9]+$","type":"string"}`
	want := map[string]string{"a": nullable, "b": `{"items":` + wide + `,"type":"array"}`, "c": `{"format":"int64","type":"integer"}`, "d": nullable}
	got := map[string]string{}
	for name, member := range doc.Components.Schemas["ERow"].Value.Properties {
		member.Value.Extensions = nil
		got[name] = mustMarshal(t, member)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a row (-want +got):\n%s", diff)
	}
	asked := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		p := item.Post.Parameters.GetByInAndName("query", "int64")
		asked[path[strings.LastIndex(path, "/"):]] = p != nil && p.Required
	}
	if diff := cmp.Diff(map[string]bool{"/run": true, "/run.objects": true, "/run.ndjson": true, "/run.csv": false, "/run.parquet": false, "/run.arrow": false}, asked); diff != "" {
		t.Errorf("which operations ask for strings (-want +got):\n%s", diff)
	}
}

func mustMarshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// FuzzType: for any text as a type there is a valid schema.
func FuzzType(f *testing.F) {
	for _, typ := range []string{"Array(Tuple(a String, b Map(String, UInt8)))", "Enum8('a' = 1", "Nullable(", "Tuple(`", "Map(String)", "Tuple()", "LowCardinality(Nullable())"} {
		f.Add(typ)
	}
	f.Fuzz(func(t *testing.T, typ string) {
		if len(typ) > 1<<10 {
			return
		}
		doc := openapi.One(&openapi.Endpoint{
			Project: 1, Name: "e", Version: 1, Columns: []openapi.Column{{Name: "c", Type: typ}, {Name: "c", Type: typ}},
		}, site)
		for _, name := range []string{"ERow", "ECells"} {
			if err := doc.Components.Schemas[name].Validate(t.Context()); err != nil {
				t.Errorf("the schema %s of %q: %v", name, typ, err)
			}
		}
		mustMarshal(t, doc)
	})
}
