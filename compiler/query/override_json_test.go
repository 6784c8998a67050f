package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestOverlaid compares the JSON with overrides applied with the wanted text, and its meaning with the overrides applied to the parsed query.
func TestOverlaid(t *testing.T) {
	t.Parallel()
	const trends = `{"kind":"TrendsQuery","series":[{"event":"a"}]}`
	tests := []struct{ name, in, filters, variables, want string }{
		{"nothing", trends, ``, ``, trends},
		{"dates", trends, `{"date_from":"-30d","date_to":null}`, ``, `{"dateRange":{"date_from":"-30d"},"kind":"TrendsQuery","series":[{"event":"a"}]}`},
		{
			"either date replaces both, in a wrapper",
			`{"kind":"InsightVizNode","full":true,"source":{"kind":"LifecycleQuery","dateRange":{"date_from":"-7d","explicitDate":true},"series":[{"event":"a"}]}}`,
			`{"date_to":"-1d"}`, ``,
			`{"full":true,"kind":"InsightVizNode","source":{"dateRange":{"date_to":"-1d"},"kind":"LifecycleQuery","series":[{"event":"a"}]}}`,
		},
		{
			"all time is not compared", `{"kind":"TrendsQuery","series":[{"event":"a"}],"compareFilter":{"compare":true}}`, `{"date_from":"all"}`, ``,
			`{"dateRange":{"date_from":"all"},"kind":"TrendsQuery","series":[{"event":"a"}]}`,
		},
		{
			"a comparison", trends, `{"compareFilter":{"compare":true,"compare_to":"-1w"}}`, ``,
			`{"compareFilter":{"compare":true,"compare_to":"-1w"},"kind":"TrendsQuery","series":[{"event":"a"}]}`,
		},
		{"no comparison of its own", trends, `{"compareFilter":null,"date_from":"-30d"}`, ``, `{"dateRange":{"date_from":"-30d"},"kind":"TrendsQuery","series":[{"event":"a"}]}`},
		{
			"no comparison", `{"kind":"StickinessQuery","series":[{"event":"a"}],"compareFilter":{"compare":true}}`, `{"compareFilter":{"compare":false}}`, ``,
			`{"compareFilter":{"compare":false},"kind":"StickinessQuery","series":[{"event":"a"}]}`,
		},
		{
			"a comparison of all time", `{"kind":"TrendsQuery","series":[{"event":"a"}],"dateRange":{"date_from":"all"}}`, `{"compareFilter":{"compare":true}}`, ``,
			`{"dateRange":{"date_from":"all"},"kind":"TrendsQuery","series":[{"event":"a"}]}`,
		},
		{
			"a comparison, and other dates than all time", `{"kind":"TrendsQuery","series":[{"event":"a"}],"dateRange":{"date_from":"all"}}`,
			`{"date_from":"-7d","compareFilter":{"compare":true}}`, ``,
			`{"compareFilter":{"compare":true},"dateRange":{"date_from":"-7d"},"kind":"TrendsQuery","series":[{"event":"a"}]}`,
		},
		{
			"a comparison of a map", `{"kind":"TrendsQuery","series":[{"event":"a"}],"trendsFilter":{"display":"WorldMap"}}`, `{"compareFilter":{"compare":true}}`, ``,
			`{"kind":"TrendsQuery","series":[{"event":"a"}],"trendsFilter":{"display":"WorldMap"}}`,
		},
		{
			"a metric shows its change", `{"kind":"TrendsQuery","series":[{"event":"a"}],"trendsFilter":{"display":"Metric"}}`, `{"compareFilter":{"compare":false,"compare_to":"-1w"}}`, ``,
			`{"compareFilter":{"compare":false,"compare_to":"-1w"},"kind":"TrendsQuery","series":[{"event":"a"}],"trendsFilter":{"display":"Metric"}}`,
		},
		{
			"a metric of all time, over other dates",
			`{"kind":"TrendsQuery","series":[{"event":"a"}],"dateRange":{"date_from":"all"},"trendsFilter":{"display":"Metric"},"compareFilter":{"compare":false,"compare_to":"-1w"}}`,
			`{"date_from":"-7d"}`, ``,
			`{"compareFilter":{"compare":false,"compare_to":"-1w"},"dateRange":{"date_from":"-7d"},"kind":"TrendsQuery","series":[{"event":"a"}],"trendsFilter":{"display":"Metric"}}`,
		},
		{
			"a kind without comparisons", `{"kind":"LifecycleQuery","series":[{"event":"a"}]}`, `{"compareFilter":{"compare":true},"date_from":"all"}`, ``,
			`{"dateRange":{"date_from":"all"},"kind":"LifecycleQuery","series":[{"event":"a"}]}`,
		},
		{
			"properties are added", `{"kind":"TrendsQuery","series":[{"event":"a"}],"properties":[{"key":"k"}]}`, `{"properties":[{"key":"l"}]}`, ``,
			`{"kind":"TrendsQuery","properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"k"}]},{"type":"AND","values":[{"key":"l"}]}]},"series":[{"event":"a"}]}`,
		},
		{
			"properties where there are none", `{"kind":"TrendsQuery","series":[{"event":"a"}],"properties":[]}`,
			`{"properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"l"}]}]}}`, ``,
			`{"kind":"TrendsQuery","properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"l"}]}]},"series":[{"event":"a"}]}`,
		},
		{
			"a breakdown, an interval and the filters of the project", trends, `{"breakdown_filter":{"breakdown":"x"},"interval":"week","filterTestAccounts":true}`, ``,
			`{"breakdownFilter":{"breakdown":"x"},"filterTestAccounts":true,"interval":"week","kind":"TrendsQuery","series":[{"event":"a"}]}`,
		},
		{
			"a breakdown of a kind without", `{"kind":"LifecycleQuery","series":[{"event":"a"}]}`, `{"breakdown_filter":{"breakdown":"x"}}`, ``,
			`{"kind":"LifecycleQuery","series":[{"event":"a"}]}`,
		},
		{
			"SQL", `{"kind":"DataVisualizationNode","source":{"kind":"HogQLQuery","query":"select 1","filters":{"properties":[{"type":"event","key":"k"}]},` +
				`"variables":{"v":{"variableId":"v","code_name":"c","value":1},"w":{"variableId":"w","code_name":"d"}}}}`,
			`{"date_from":"-3d","properties":{"type":"AND","values":[{"type":"AND","values":[{"type":"event","key":"l"}]}]}}`, `{"v":{"variableId":"v","code_name":"c","isNull":true},"x":{"variableId":"x","code_name":"y"}}`,
			`{"kind":"DataVisualizationNode","source":{"filters":{"dateRange":{"date_from":"-3d"},"properties":[{"type":"event","key":"k"},{"type":"event","key":"l"}]},"kind":"HogQLQuery",` +
				`"query":"select 1","variables":{"v":{"code_name":"c","isNull":true,"variableId":"v"},"w":{"variableId":"w","code_name":"d"}}}}`,
		},
		{
			"a variable by its code name, as its id is another now", `{"kind":"HogQLQuery","query":"select 1","variables":{"v":{"variableId":"v","code_name":"c","value":1},"w":{"variableId":"w","code_name":"d"}}}`, ``,
			`{"new":{"variableId":"new","code_name":"c","value":2},"w":{"variableId":"w","code_name":"c","value":3},"x":{"variableId":"x","code_name":"d","value":4}}`,
			`{"kind":"HogQLQuery","query":"select 1","variables":{"v":{"code_name":"c","value":2,"variableId":"v"},"w":{"code_name":"d","value":3,"variableId":"w"}}}`,
		},
		{
			"events", `{"kind":"DataTableNode","source":{"kind":"EventsQuery","select":["event"],"before":"-1d","properties":[{"key":"k"}]}}`,
			`{"date_from":"-3d","properties":[{"key":"l"}],"interval":"week","filterTestAccounts":true}`, ``,
			`{"kind":"DataTableNode","source":{"after":"-3d","filterTestAccounts":true,"kind":"EventsQuery",` +
				`"properties":{"type":"AND","values":[{"type":"AND","values":[{"key":"k"}]},{"type":"AND","values":[{"key":"l"}]}]},"select":["event"]}}`,
		},
		{
			"events of the actors behind an insight", `{"kind":"EventsQuery","select":["event"],"source":{"kind":"InsightActorsQuery","source":` + trends + `}}`, `{"date_to":"-3d"}`, ``,
			`{"before":"-3d","kind":"EventsQuery","select":["event"],"source":{"kind":"InsightActorsQuery","source":` + trends + `}}`,
		},
		{
			"actors behind an insight", `{"kind":"ActorsQuery","select":["id"],"properties":[{"key":"p","type":"person"}],"source":{"kind":"InsightActorsQuery","source":` + trends + `}}`,
			`{"date_from":"-3d","properties":[{"key":"l"}]}`, ``,
			`{"kind":"ActorsQuery","properties":[{"key":"p","type":"person"}],"select":["id"],"source":{"kind":"InsightActorsQuery","source":` +
				`{"dateRange":{"date_from":"-3d"},"kind":"TrendsQuery","properties":[{"key":"l"}],"series":[{"event":"a"}]}}}`,
		},
		{
			"actors behind stickiness", `{"kind":"StickinessActorsQuery","source":{"kind":"StickinessQuery","series":[{"event":"a"}]}}`, `{"date_from":"-3d"}`, ``,
			`{"kind":"StickinessActorsQuery","source":{"dateRange":{"date_from":"-3d"},"kind":"StickinessQuery","series":[{"event":"a"}]}}`,
		},
		{
			"actors behind a correlation", `{"kind":"ActorsQuery","source":{"kind":"FunnelCorrelationActorsQuery","source":{"kind":"FunnelCorrelationQuery","funnelCorrelationType":"events",` +
				`"source":{"kind":"FunnelsActorsQuery","source":{"kind":"FunnelsQuery","series":[{"event":"a"},{"event":"b"}]}}}}}`, `{"date_from":"-3d"}`, ``,
			`{"kind":"ActorsQuery","source":{"kind":"FunnelCorrelationActorsQuery","source":{"funnelCorrelationType":"events","kind":"FunnelCorrelationQuery",` +
				`"source":{"kind":"FunnelsActorsQuery","source":{"dateRange":{"date_from":"-3d"},"kind":"FunnelsQuery","series":[{"event":"a"},{"event":"b"}]}}}}}`,
		},
		{
			"actors that SQL finds", `{"kind":"ActorsQuery","source":{"kind":"HogQLQuery","query":"select id from persons where {filters}"}}`, `{"date_from":"-3d"}`, ``,
			`{"kind":"ActorsQuery","source":{"filters":{"dateRange":{"date_from":"-3d"}},"kind":"HogQLQuery","query":"select id from persons where {filters}"}}`,
		},
		{"all people", `{"kind": "ActorsQuery", "select": ["id"]}`, `{"date_from":"-3d"}`, ``, `{"kind": "ActorsQuery", "select": ["id"]}`},
		{"a kind that takes none", `{"kind": "HogQLMetadata", "language": "hogQL", "query": "select 1"}`, `{"date_from":"-3d"}`, ``, `{"kind": "HogQLMetadata", "language": "hogQL", "query": "select 1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compiler.Overlaid([]byte(tt.in), []byte(tt.filters), []byte(tt.variables))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(string(applied(t, tt.in, tt.filters, tt.variables)), string(insighttest.Node[query.Node](t, string(got)).Canonical())); diff != "" {
				t.Errorf("meaning (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := compiler.Overlaid([]byte(trends), []byte(`{"date_form":"-7d"}`), nil); err == nil {
		t.Error("an override that does not exist is taken")
	}
}

// applied returns the canonical form of a query to which overrides were applied after parsing.
func applied(t *testing.T, in, filters, variables string) []byte {
	t.Helper()
	node := insighttest.Node[query.Node](t, in)
	over := &query.Overrides{}
	given := map[string]query.Variable{}
	var err error
	if filters != "" {
		if over, err = query.ParseOverrides([]byte(filters)); err != nil {
			t.Fatal(err)
		}
	}
	if variables != "" {
		if given, err = query.ParseVariables([]byte(variables)); err != nil {
			t.Fatal(err)
		}
	}
	if filters != "" {
		applied, err := over.ApplyTo(node)
		if err != nil {
			t.Fatal(err)
		}
		if applied != nil {
			node = applied
		}
	}
	if q, ok := node.(*query.HogQL); ok {
		node = q.WithSavedVariables(given)
	}
	return node.Canonical()
}

// FuzzOverlaid: the resulting JSON means the same as the overrides applied to the parsed query.
func FuzzOverlaid(f *testing.F) {
	f.Add(`{"kind":"TrendsQuery","series":[{"event":"a"}],"properties":[{"key":"k"}]}`, `{"properties":{"type":"OR","values":[]},"date_from":"all"}`)
	f.Add(`{"kind":"InsightVizNode","source":{"kind":"FunnelsQuery","series":[{"event":"a"},{"event":"b"}]}}`, `{"breakdown_filter":{"breakdown":"x"},"interval":"hour","explicitDate":true}`)
	f.Add(`{"kind":"DataTableNode","source":{"kind":"HogQLQuery","query":"select 1","filters":{"properties":[]}}}`, `{"date_to":"-1d","properties":[{"key":"k"}],"filterTestAccounts":false}`)
	f.Add(`{"kind":"ActorsQuery","source":{"kind":"InsightActorsQuery","source":{"kind":"PathsQuery","pathsFilter":{}}}}`, `{"date_to":"-1d","properties":[{"key":"k"}]}`)
	f.Add(`{"kind":"EventsQuery","select":["*"],"after":"all","properties":{"type":"OR","values":[]}}`, `{"date_to":"-1d","properties":[{"key":"k"}],"filterTestAccounts":true}`)
	f.Fuzz(func(t *testing.T, in, filters string) {
		node, err := compiler.Parse([]byte(in))
		over, overErr := query.ParseOverrides([]byte(filters))
		if err != nil || overErr != nil {
			return
		}
		if node, err = over.ApplyTo(node); node == nil || err != nil {
			return
		}
		got, err := compiler.Overlaid([]byte(in), []byte(filters), nil)
		if err != nil {
			t.Fatalf("Overlaid: %v", err)
		}
		read, err := compiler.Parse(got)
		if err != nil {
			t.Fatalf("%s is no query: %v", got, err)
		}
		if string(read.Canonical()) != string(node.Canonical()) {
			t.Errorf("%s means\n%s\nwant\n%s", got, read.Canonical(), node.Canonical())
		}
	})
}
