package compiler_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// namedIn returns what may name a property in a query, and whether it may read any property.
func namedIn(n query.Node, env compiler.Env) (names map[string]bool, all bool) {
	names = map[string]bool{}
	uses := compiler.NamesOf(n, env, func(name string) { names[name] = true })
	return names, uses.AllProperties
}

// TestNamesOfGoldens: each property whose type a compile looks up is named by the query, or among the compiler's own.
func TestNamesOfGoldens(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]string{}
		for _, f := range txtar.Parse(text).Files {
			in[f.Name] = string(f.Data)
		}
		if in["filters"] != "" {
			continue // of a cohort
		}
		compiled, err := compileCase(t, in)
		if err != nil {
			continue
		}
		names, all := namedIn(node(t, in), worldOf(t, in).env(t))
		for key := range compiled.Reads.Types {
			seen++
			if !all && !names[key.Name] && !slices.Contains(compiler.OwnProperties, key.Name) {
				t.Errorf("%s: the compile looks up %q, which the query does not name", file, key.Name)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d types were looked up", seen)
	}
}

// TestNames checks which properties a query may read, in each place that can name one.
func TestNames(t *testing.T) {
	t.Parallel()
	env := usesEnv(t)
	env.Actions = query.NewActions([]query.Action{{ID: 1, Name: "one", Steps: []query.ActionStep{{Properties: stepProperties(t, `[{"type": "event", "key": "wanted"}]`)}}}})
	accounts, err := query.ParseTestAccounts([]byte(`[{"type": "person", "key": "wanted", "value": "a", "operator": "exact"}]`))
	if err != nil {
		t.Fatal(err)
	}
	env.TestAccounts, env.Variables = accounts, map[string]any{"of": "wanted"}
	sql := func(text string) string { return `{"kind": "HogQLQuery", "query": ` + text + `}` }
	trend := func(fields string) string {
		return `{"kind": "TrendsQuery", "series": [{"event": "a"}], ` + fields + `}`
	}
	tests := []struct {
		name, in string
		want     bool
	}{
		{"nothing", sql(`"select count() from events where properties.unwanted = 1"`), false},
		{"a field", sql(`"select properties.wanted from events"`), true},
		{"a field of a person", sql(`"select person.properties.wanted from events"`), true},
		{"a subscript", sql(`"select properties['wanted'] from events"`), true},
		{"in backquotes", sql("\"select properties.`wanted` from events\""), true},
		{"with an escape", sql(`"select properties['w\\x61nted'] from events"`), true},
		{"with an escape in backquotes", sql("\"select properties.`w\\\\x61nted` from events\""), true},
		{"in a condition", sql(`"select count() from events where properties.wanted > 3"`), true},
		{"in a template", sql(`"select f'{properties.wanted}' from events"`), true},
		{"by a value", `{"kind": "HogQLQuery", "query": "select properties[{name}] from events", "values": {"name": "wanted"}}`, true},
		{"by a variable", `{"kind": "HogQLQuery", "query": "select properties[{variables.of}] from events",
			"variables": {"1": {"variableId": "1", "code_name": "of", "value": "wanted"}}}`, true},
		{"by a default", `{"kind": "HogQLQuery", "query": "select properties[{variables.of}] from events",
			"variables": {"1": {"variableId": "1", "code_name": "of"}}}`, true},
		{"by a value in an object", `{"kind": "HogQLQuery", "query": "select properties[{p.name}] from events", "values": {"p": {"name": "wanted"}}}`, true},
		{"by a computed value", sql(`"select properties[{concat('wan', 'ted')}] from events"`), true},
		{"by a computed variable", `{"kind": "HogQLQuery", "query": "select properties[{lower(variables.of)}] from events",
			"variables": {"1": {"variableId": "1", "code_name": "of", "value": "WANTED"}}}`, true},
		{"before a space of Unicode", sql(`"select properties.wanted\u00a0> 3 from events"`), true},
		{"in filters", `{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"properties": [{"type": "event", "key": "wanted", "value": 1}]}}`, true},
		{"by the test accounts", `{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"filterTestAccounts": true}}`, true},
		{"in a filter", trend(`"properties": [{"type": "event", "key": "wanted", "value": 1, "operator": "exact"}]`), true},
		{"a filter of a feature", trend(`"properties": [{"type": "feature", "key": "other", "value": "a", "operator": "exact"}]`), false},
		{"a filter of another", trend(`"properties": [{"type": "event", "key": "unwanted", "value": "wanted", "operator": "exact"}]`), false},
		{"in a filter of a person", trend(`"properties": [{"type": "person", "key": "wanted", "value": 1, "operator": "exact"}]`), true},
		{"in a filter of HogQL", trend(`"properties": [{"type": "hogql", "key": "properties.wanted > 3"}]`), true},
		{"by the test accounts of an insight", trend(`"filterTestAccounts": true`), true},
		{"a breakdown", trend(`"breakdownFilter": {"breakdown": "wanted", "breakdown_type": "event"}`), true},
		{"a breakdown by HogQL", trend(`"breakdownFilter": {"breakdown": "properties['w\\x61nted']", "breakdown_type": "hogql"}`), true},
		{"several breakdowns", trend(`"breakdownFilter": {"breakdowns": [{"property": "a"}, {"property": "wanted", "type": "person"}]}`), true},
		{"a math", `{"kind": "TrendsQuery", "series": [{"event": "a", "math": "sum", "math_property": "wanted"}]}`, true},
		{"a math by HogQL", `{"kind": "TrendsQuery", "series": [{"event": "a", "math": "hogql", "math_hogql": "sum(properties.wanted)"}]}`, true},
		{"a step of an action", `{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1}]}`, true},
		{"an action in HogQL", sql(`"select count() from events where matchesAction('one')"`), true},
		{"the source of a list", `{"kind": "ActorsQuery", "select": ["person"], "source": {"kind": "HogQLQuery", "query": "select person_id from events where properties.wanted = 1"}}`, true},
		{"a column of a list", `{"kind": "EventsQuery", "select": ["event", "properties.wanted"]}`, true},
		{"the order of a list", `{"kind": "EventsQuery", "select": ["event"], "orderBy": ["properties.wanted DESC"]}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, err := compiler.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			names, all := namedIn(n, env)
			if tt.name == "a filter of a feature" && !names["$feature/other"] {
				t.Error("the property of a feature is not named")
			}
			if names["wanted"] != tt.want || all {
				t.Errorf("named is %t and all %t, want %t: %s", names["wanted"], all, tt.want, tt.in)
			}
		})
	}
}

// TestQuotedNames: each spelling of a name gives the name itself, and a piece of a query that is not a name gives none.
func TestQuotedNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"select properties.`a b` from events":               "a b",
		"select properties['a b'] from events":              "a b",
		`select properties."a b" from events`:               "a b",
		"select properties['it''s'], '' from events":        "it's",
		"select properties['''s'] from events":              "'s",
		"select properties['s'''] from events":              "s'",
		"select properties.`a``b` from events":              "a`b",
		"select properties['-'] from events":                "-",
		"select properties.`größe` from events":             "größe",
		`select properties['a\'b'] from events`:             "a'b",
		"select '', properties['a \"b\"'] from events":      `a "b"`,
		"select properties.größe, properties.a from events": "a",
	} {
		names, all := namedIn(&query.HogQL{Query: text}, compiler.Env{})
		if !names[want] || all {
			t.Errorf("%s does not name %q", text, want)
		}
		for _, other := range []string{"select properties", "from events", " ", "."} {
			if names[other] {
				t.Errorf("%s names %q", text, other)
			}
		}
	}
}
