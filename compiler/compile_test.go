package compiler_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestCompiledFacts(t *testing.T) {
	t.Parallel()
	type facts struct {
		Limit                         int
		Probe, DefaultLimit, SetQuery bool
		HogQL                         string
	}
	tests := []struct {
		name, text string
		pages      bool
		want       facts
	}{
		{"no limit", "select event from events", false, facts{Limit: 100, Probe: true, DefaultLimit: true, HogQL: "SELECT event FROM events LIMIT 101"}},
		{"for pages", "select event from events", true, facts{Limit: 50_000, Probe: true, DefaultLimit: true, HogQL: "SELECT event FROM events LIMIT 50001"}},
		{"a limit", "select now() limit 3", false, facts{Limit: 3, HogQL: "SELECT now() LIMIT 3"}},
		{"a set", "select 1 union all select 2", true, facts{Limit: 200, SetQuery: true, HogQL: "SELECT 1 LIMIT 100 UNION ALL SELECT 2 LIMIT 100"}},
		{"variables", "select {variables.b}, {variables.a}, {variables.b} limit 1", false, facts{Limit: 1, HogQL: "SELECT 'y', 'x', 'y' LIMIT 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := world{Timezone: "UTC", Variables: map[string]any{"a": "x", "b": "y"}, Pages: tt.pages}
			c, err := compiler.Compile(&query.HogQL{Query: tt.text, Variables: map[string]query.Variable{
				"1": {CodeName: "a"}, "2": {CodeName: "b"},
			}}, w.env(t))
			if err != nil {
				t.Fatal(err)
			}
			got := facts{c.Limit, c.Probe, c.DefaultLimit, c.SetQuery, c.HogQL}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Compile(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// TestPlainRows: only rows of endpoints that have a column of breakdown values are changed.
func TestPlainRows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text        string
		plain, want bool
	}{
		{"select event as breakdown_value from events", true, true},
		{"select event as breakdown_value from events", false, false},
		{"select event from events", true, false},
	} {
		compiled, err := compiler.Compile(&query.HogQL{Query: tt.text}, compiler.Env{Database: &schema.Database{Project: 7}, PlainValues: tt.plain})
		if err != nil {
			t.Fatal(err)
		}
		if got := compiled.Row != nil; got != tt.want {
			t.Errorf("rows of %q, plain %t, are changed: %t", tt.text, tt.plain, got)
		}
	}
}

// TestCompiledCohorts: a query reports the cohorts whose members it reads, wherever it uses them.
func TestCompiledCohorts(t *testing.T) {
	cohorts := schema.NewCohorts([]schema.Cohort{{ID: 5, Name: "a", Version: 1}, {ID: 6, Name: "b"}, {ID: 7, Static: true}, {ID: 8}}, false)
	env := compiler.Env{Database: &schema.Database{Project: 1, Location: time.UTC, Cohorts: cohorts}, Now: compileNow}
	tests := []struct {
		body string
		want []int64
	}{
		{`{"kind": "HogQLQuery", "query": "select 1 from events where person_id in cohort 'b' or person_id not in cohort 5 or person_id in cohort 6"}`, []int64{5, 6}},
		{`{"kind": "HogQLQuery", "query": "select count() from events"}`, nil},
		{`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "properties": [{"type": "cohort", "key": "id", "value": 7}]}], "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [8, "all"]}}`, []int64{7, 8}},
	}
	for _, tt := range tests {
		n, err := compiler.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := compiler.Compile(n, env)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, compiled.Reads.Cohorts); diff != "" {
			t.Errorf("%s: cohorts (-want +got):\n%s", tt.body, diff)
		}
	}
}

// TestCompileListed: lists of actors return people's ids, whatever else they select, and whatever their source is.
func TestCompileListed(t *testing.T) {
	env := compiler.Env{Database: &schema.Database{Project: 1, Location: time.UTC}, Now: compileNow}
	tests := []struct{ name, body, want string }{
		{"people", `{"kind": "ActorsQuery"}`, "SELECT id AS person_id FROM persons ORDER BY id"},
		{"other columns", `{"kind": "ActorsQuery", "select": ["properties.a"], "orderBy": []}`, "SELECT id AS person_id FROM persons ORDER BY id"},
		{
			"of a trend", `{"kind": "ActorsQuery", "select": ["id"], "source": {"kind": "InsightActorsQuery", "day": "2024-05-01", "source":
				{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}]}}}`, "SELECT id AS person_id, event_distinct_ids",
		},
		{
			"of a funnel", `{"kind": "ActorsQuery", "source": {"kind": "FunnelsActorsQuery", "funnelStep": 1, "source":
				{"kind": "FunnelsQuery", "series": [{"kind": "EventsNode", "event": "a"}, {"kind": "EventsNode", "event": "b"}]}}}`, "SELECT id AS person_id FROM (SELECT actor_id",
		},
		{"events of the namespace", `{"kind": "HogQLQuery", "query": "select event from posthog.events"}`, "person_id AS person_id FROM posthog.events"},
		{"a limit", `{"kind": "ActorsQuery", "limit": 7}`, "SELECT id AS person_id FROM persons ORDER BY id LIMIT 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, err := compiler.Parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compiler.CompileListed(n, env)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(compiled.HogQL, tt.want) {
				t.Errorf("HogQL %q, want it with %q", compiled.HogQL, tt.want)
			}
			if limited := strings.Contains(compiled.HogQL, "LIMIT"); limited != strings.Contains(tt.want, "LIMIT") {
				t.Errorf("HogQL %q: it has a limit: %t", compiled.HogQL, limited)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	got, err := compiler.Variables("select {variables.b} from events where {variables.a ? 1 : {variables.b}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("Variables (-want +got):\n%s", diff)
	}
	if _, err := compiler.Variables("select from"); compiler.Mistakes(err) == nil {
		t.Errorf("got %v, want the mistakes of the text", err)
	}
}

// TestFiltersGivenTwice checks that a request cannot define {filters} in two ways.
func TestFiltersGivenTwice(t *testing.T) {
	t.Parallel()
	w := world{Timezone: "UTC"}
	_, err := compiler.Compile(&query.HogQL{
		Query: "select 1", Values: map[string]any{"filters": "x"}, Filters: &query.Filters{},
	}, w.env(t))
	want := "values.filters: The query has 'filters' both in its values and as its filters"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

var (
	// inBackquotes is a quoted identifier of printed SQL.
	inBackquotes = regexp.MustCompile("`(?:[^`\\\\]|\\\\.)*`")
	// parameter is a bound parameter of printed SQL.
	parameter = regexp.MustCompile(`\{p\d+:[A-Za-z()0-9]+\}`)
	// scanned is a physical table of printed SQL, where a table is expected.
	scanned = regexp.MustCompile(`(FROM|JOIN|IN) \(?(events|person|person_distinct_id2|person_distinct_id_overrides|groups)\b`)
	// guarded is a physical table with the guard of project 7.
	guarded = regexp.MustCompile(`FROM (events|person|person_distinct_id2|person_distinct_id_overrides|groups)(?: AS \w+)?` +
		`(?: SAMPLE [0-9./ ]+)?(?: (?:LEFT )?ARRAY JOIN .*?)? WHERE team_id = 7(?: AND | GROUP | HAVING | WINDOW | ORDER | LIMIT | UNION | INTERSECT | EXCEPT |\)|$)`)
)

// checkClosed fails if printed SQL contains the author's text outside of quoted identifiers and parameters, or a physical table without the
// project's guard directly around it.
func checkClosed(t *testing.T, text, printed string) {
	t.Helper()
	bare := parameter.ReplaceAllString(inBackquotes.ReplaceAllString(printed, "q"), "p")
	if i := strings.IndexAny(bare, "'\"`;{}\\#@?$"); i >= 0 {
		t.Errorf("%q prints %q, which holds %q outside of quotes", text, printed, bare[i:i+1])
	}
	if strings.Contains(bare, "--") || strings.Contains(bare, "/*") {
		t.Errorf("%q prints %q, which holds a comment", text, printed)
	}
	if scans, guards := len(scanned.FindAllString(bare, -1)), len(guarded.FindAllString(bare, -1)); scans != guards {
		t.Errorf("%q prints %q: %d tables are read, %d are guarded", text, printed, scans, guards)
	}
}

// goldenQueries returns the texts of all golden cases.
func goldenQueries(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no golden files: %v", err)
	}
	var texts []string
	for _, file := range files {
		archive, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, section := range txtar.Parse(archive).Files {
			if section.Name == "query" {
				texts = append(texts, string(section.Data))
			}
		}
	}
	return texts
}

// intrusions are queries that try to read rows of other projects, one per line.
func intrusions(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile("testdata/injection/queries.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func FuzzCompile(f *testing.F) {
	for _, text := range slices.Concat(goldenQueries(f), intrusions(f)) {
		f.Add(text, "' or 1=1 --")
	}
	for _, h := range hostile(f) {
		f.Add(h.text, "x")
	}
	w := world{
		Timezone: "Europe/Berlin", Variables: map[string]any{"x": "y"},
		Event: map[string]string{"n": "Numeric", "ok": "Boolean", "at": "DateTime"},
	}
	env := w.env(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		compiled, err := measured(t, &query.HogQL{
			Query: text, Values: map[string]any{"e": value, "list": []any{value, nil}},
			Variables: map[string]query.Variable{"x": {CodeName: "x", Value: value, HasValue: true}},
			Filters:   &query.Filters{DateFrom: "-7d", Properties: []query.Property{{Type: "event", Key: value, Operator: "exact", Value: value}}},
		}, env)
		if err != nil {
			if len(compiler.Mistakes(err)) == 0 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		checkClosed(t, text, compiled.SQL)
	})
}

// TestClosed checks the goldens and the intrusions like the fuzzer.
func TestClosed(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, text := range slices.Concat(goldenQueries(t), intrusions(t)) {
		w := world{Timezone: "UTC"}
		compiled, err := compiler.Compile(&query.HogQL{Query: text}, w.env(t))
		if err != nil {
			if compiler.Mistakes(err) == nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		seen++
		checkClosed(t, text, compiled.SQL)
	}
	if seen < 100 {
		t.Errorf("only %d queries compile", seen)
	}
}

// TestLongList checks that a long list of values remains one parameter, wherever it comes from.
func TestLongList(t *testing.T) {
	t.Parallel()
	values := make([]any, 50_000)
	for i := range values {
		values[i] = strings.Repeat("v", 1+i%9)
	}
	w := world{Timezone: "UTC"}
	for _, text := range []string{
		"select 1 from events where event in {list}", "select 1 from events where properties.x in {list}",
		"select 1 from events where properties.x not in {list}",
	} {
		c, err := compiler.Compile(&query.HogQL{Query: text, Values: map[string]any{"list": values}}, w.env(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.SQL) > 1000 || len(c.Params) > 4 {
			t.Errorf("%q compiles to %d bytes with %d parameters", text, len(c.SQL), len(c.Params))
		}
		if !slices.ContainsFunc(c.Params, func(p compilerParam) bool { return strings.HasPrefix(p.Type, "Array(") }) {
			t.Errorf("%q has no array among its parameters", text)
		}
	}
}
