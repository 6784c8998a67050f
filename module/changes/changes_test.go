package changes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// columns reads names and types such as "n integer, day date=Date32", with the type in ClickHouse if it is known.
func columns(text string) []registry.Column {
	if text == "" {
		return nil
	}
	var out []registry.Column
	for column := range strings.SplitSeq(text, ", ") {
		name, typ, _ := strings.Cut(column, " ")
		typ, stored, _ := strings.Cut(typ, "=")
		out = append(out, registry.Column{Name: name, Type: typ, ClickHouse: stored})
	}
	return out
}

// hogql returns a query that declares variables, each given as a code name and optionally the query's value for it.
func hogql(variables ...string) string {
	declared := map[string]any{}
	for _, text := range variables {
		name, value, given := strings.Cut(text, "=")
		v := map[string]any{"variableId": name, "code_name": name}
		if given {
			v["value"] = value
		}
		declared[name] = v
	}
	text, err := json.Marshal(map[string]any{"kind": "HogQLQuery", "query": "select 1", "variables": declared})
	if err != nil {
		panic(err)
	}
	return string(text)
}

const trends = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan"}}`

func TestBetween(t *testing.T) {
	t.Parallel()
	plain := hogql()
	tests := []struct {
		name                 string
		from, to             string // queries
		fromColumns          string
		toColumns            string
		breaking, compatible []string
	}{
		{name: "nothing", from: plain, to: plain, fromColumns: "a integer", toColumns: "a integer"},
		{
			name: "another column at the same place", from: plain, to: plain, fromColumns: "a integer, b string", toColumns: "a integer, c string",
			breaking: []string{"column_renamed b (b → c): column b is renamed to c"},
		},
		{
			name: "a column at the end", from: plain, to: plain, fromColumns: "a integer", toColumns: "a integer, b string",
			compatible: []string{"column_added b ( → string): column b is added"},
		},
		{
			name: "a column in front", from: plain, to: plain, fromColumns: "a integer", toColumns: "b string, a integer",
			breaking: []string{"column_moved a (1 → 2): column a moves from place 1 to 2"}, compatible: []string{"column_added b ( → string): column b is added"},
		},
		{
			name: "a column moves to where another was", from: plain, to: plain, fromColumns: "b string, a integer", toColumns: "a integer, c string",
			breaking:   []string{"column_removed b (string → ): column b is removed", "column_moved a (2 → 1): column a moves from place 2 to 1"},
			compatible: []string{"column_added c ( → string): column c is added"},
		},
		{
			name: "the first column moves to where another was", from: plain, to: plain, fromColumns: "a integer, b string", toColumns: "c date, a integer",
			breaking:   []string{"column_moved a (1 → 2): column a moves from place 1 to 2", "column_removed b (string → ): column b is removed"},
			compatible: []string{"column_added c ( → date): column c is added"},
		},
		{
			name: "fewer columns", from: plain, to: plain, fromColumns: "a integer, b string", toColumns: "a integer",
			breaking: []string{"column_removed b (string → ): column b is removed"},
		},
		{
			name: "another type", from: plain, to: plain, fromColumns: "a integer, b unknown, c date", toColumns: "a float, b date, c unknown",
			breaking: []string{"column_retyped a (integer → float): column a is float, before it was integer"},
		},
		{name: "a type that an older release named otherwise", from: plain, to: plain, fromColumns: "a array=Tuple(UInt8)", toColumns: "a json=Tuple(UInt8)"},
		{
			name: "another type in ClickHouse", from: plain, to: plain, fromColumns: "a array=Tuple(UInt8)", toColumns: "a array=Array(UInt8)",
			breaking: []string{"column_retyped a (json → array): column a is array, before it was json"},
		},
		{
			name: "a decimal, which is a string in rows", from: plain, to: plain, fromColumns: "a float=Float64", toColumns: "a float=Nullable(Decimal(18,4))",
			breaking: []string{"column_retyped a (float → decimal): column a is decimal, before it was float"},
		},
		{name: "another decimal", from: plain, to: plain, fromColumns: "a float=Decimal(9,2)", toColumns: "a float=Decimal(18,4)"},
		{name: "a decimal in place of a type that is not known in ClickHouse", from: plain, to: plain, fromColumns: "a float", toColumns: "a float=Decimal(9,2)"},
		{name: "columns with one name", from: plain, to: plain, fromColumns: "a integer, a integer", toColumns: "a integer, a integer"},
		{name: "columns that are not known", from: plain, to: plain, toColumns: "a integer"},
		{
			name: "another kind", from: plain, to: trends, fromColumns: "a integer",
			breaking: []string{"kind_changed TrendsQuery (HogQLQuery → TrendsQuery): the answer becomes that of a TrendsQuery, before it was that of a HogQLQuery"},
			compatible: []string{
				"variable_added date_from ( → ): variable date_from is added", "variable_added date_to ( → ): variable date_to is added",
				"variable_added plan ( → ): variable plan is added",
			},
		},
		{
			name: "another breakdown", from: trends, to: strings.Replace(trends, "plan", "city", 1),
			breaking:   []string{"variable_removed plan ( → ): variable plan is removed"},
			compatible: []string{"variable_added city ( → ): variable city is added"},
		},
		{
			name: "a variable without a default", from: plain, to: hogql("city"),
			breaking: []string{"variable_required city ( → String): variable city is needed, for it has no default"},
		},
		{
			name: "variables with a default, or a value in the query", from: plain, to: hogql("limit", "city=Bonn"),
			compatible: []string{"variable_added city ( → String): variable city is added", "variable_added limit ( → Number): variable limit is added"},
		},
		{
			name: "the value of a variable goes", from: hogql("city=Bonn"), to: hogql("city"),
			breaking: []string{"variable_required city ( → String): variable city is needed, for it has no default"},
		},
		{
			name: "a variable of another type", from: hogql("retyped=1"), to: hogql("retyped=1"),
			breaking: []string{"variable_retyped retyped (String → Number): variable retyped is a Number, before it was a String"},
		},
		{name: "variables without a definition", from: hogql("gone"), to: hogql("lost")},
		{name: "queries of an older program", from: `{"kind": "Old"}`, to: `{"kind": "Older"}`, fromColumns: "a integer", toColumns: "a integer"},
	}
	definitions := func(retyped registry.VariableType) func(string) *registry.Variable {
		defined := map[string]*registry.Variable{
			"city": {Type: registry.VariableString}, "limit": {Type: registry.VariableNumber, Default: 10}, "retyped": {Type: retyped},
		}
		return func(codeName string) *registry.Variable { return defined[codeName] }
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := changes.Between(
				changes.Side{Version: &registry.Version{Number: 3, Query: []byte(tt.from), Columns: columns(tt.fromColumns)}, Variables: definitions(registry.VariableString)},
				changes.Side{Version: &registry.Version{Number: 5, Query: []byte(tt.to), Columns: columns(tt.toColumns)}, Variables: definitions(registry.VariableNumber)},
			)
			if diff := cmp.Diff([][]string{tt.breaking, tt.compatible}, [][]string{texts(got.Breaking), texts(got.Compatible)}); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got.From != 3 || got.To != 5 || got.Any() != (len(tt.breaking)+len(tt.compatible) > 0) {
				t.Errorf("from %d to %d there is something: %t", got.From, got.To, got.Any())
			}
		})
	}
}

func texts(all []changes.Change) []string {
	var out []string
	for _, c := range all {
		out = append(out, string(c.Code)+" "+c.Name+" ("+c.Before+" → "+c.After+"): "+c.Detail)
	}
	return out
}
