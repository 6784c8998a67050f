package endpointfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// whole is a file with every field.
const whole = `# the board of our customers
name: daily-active
description: |
  How many people came,
  a day.
query: |
  select toDate(timestamp) as day, count(distinct person_id) as people
  from events where properties.plan = {variables.plan} and timestamp > {variables.since}
  group by day
variables:
  - name: plan
    type: List
    default: pro
    values: [pro, free, 3]
    is_multi: true
  - {name: since, type: date, default: 2026-01-31, value: null}
data_freshness_seconds: 900
is_active: false
tags: [board, "2026"]
optional_breakdown_properties: [plan]
rate_limit: 60/m
`

func TestParse(t *testing.T) {
	got, err := endpointfile.Parse("a.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := &endpointfile.File{
		Path: "a.yaml", Name: "daily-active", Description: "How many people came,\na day.\n",
		Query: json.RawMessage(`{"kind":"HogQLQuery","query":"select toDate(timestamp) as day, count(distinct person_id) as people\n` +
			`from events where properties.plan = {variables.plan} and timestamp > {variables.since}\ngroup by day\n"}`),
		Variables: []endpointfile.Variable{
			{Name: "plan", Type: registry.VariableList, Default: json.RawMessage(`"pro"`), Values: json.RawMessage(`["pro","free",3]`), Multi: true, Line: 11},
			{Name: "since", Type: registry.VariableDate, Default: json.RawMessage(`"2026-01-31"`), Value: json.RawMessage(`null`), Line: 16},
		},
		Freshness: 15 * time.Minute, Tags: []string{"board", "2026"}, OptionalBreakdowns: []string{"plan"},
		RateLimit: registry.Rate{Queries: 60, Per: time.Minute},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(endpointfile.File{})); diff != "" {
		t.Errorf("Parse() (-want +got):\n%s", diff)
	}
}

// TestParseInsight: an insight's node is JSON written as YAML, and files of PostHog's tool use words for the freshness.
func TestParseInsight(t *testing.T) {
	got, err := endpointfile.Parse("b.yml", []byte(`
name: views
query_definition:
  kind: TrendsQuery
  series: [{kind: EventsNode, event: $pageview}]
  dateRange: {date_from: 2026-01-01, explicitDate: true}
  samplingFactor: 0.50
materialization: {enabled: true, schedule: 6hour}
bucket_overrides: {timestamp: hour, "a b": week}
description: ~
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &endpointfile.File{
		Path: "b.yml", Name: "views", Freshness: 6 * time.Hour, Active: true,
		Materialized: true, Buckets: map[string]string{"timestamp": "hour", "a b": "week"},
		Query: json.RawMessage(`{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"$pageview"}],` +
			`"dateRange":{"date_from":"2026-01-01","explicitDate":true},"samplingFactor":0.50}`),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(endpointfile.File{})); diff != "" {
		t.Errorf("Parse() (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "name: e\nquery: select 1\n"
	tests := []struct{ name, text, want string }{
		{"nothing", "", "f.yaml: the file is empty"},
		{"a comment", "# nothing\n", "f.yaml: the file is empty"},
		{"broken YAML", "name: e\nquery: [select\nx: 1\n", "f.yaml:2: did not find expected ',' or ']'"},
		{"a tab", "name: e\n\tquery: x\n", "f.yaml:2: found a tab character that violates indentation"},
		{"two documents", head + "---\n" + head, "f.yaml:3: a file holds one endpoint; put each into a file of its own"},
		{"a text", "select 1", "f.yaml:1: an endpoint is a list of fields such as name: value"},
		{"an unknown field", head + "querry: x\n", "f.yaml:3: an endpoint has no field querry"},
		{"a field twice", head + "name: f\n", "f.yaml:3: name stands here twice"},
		{"no name", "query: select 1\n", "f.yaml:1: name is missing"},
		{"a bad name", "name: 1a\nquery: select 1\n", `f.yaml:1: "1a" is not a valid endpoint name: it begins with a letter and has letters, digits, - and _, at most 128`},
		{"a number for a name", "name: 7\nquery: select 1\n", "f.yaml:1: name is a text; put it into quotation marks\n" + `f.yaml:1: "7" is not a valid endpoint name: it begins with a letter and has letters, digits, - and _, at most 128`},
		{"an odd character first", "@", "f.yaml:1: found character that cannot start any token"},
		{"no query", "name: e\n", "f.yaml:1: query is missing: a HogQL text, or query_definition for an insight"},
		{"two queries", head + "query_definition: {kind: TrendsQuery}\n", "f.yaml:3: query and query_definition say the same; leave one of them out"},
		{
			"a mistake in a block", "name: e\nquery: |\n  select event,\n    from from events\n",
			"f.yaml:4: Unexpected 'from', expected a table",
		},
		{"a mistake in a line", "name: e\nquery: select (\n", "f.yaml:2: Unexpected end of the query, expected an expression"},
		{"a kind that gives no rows", "name: e\nquery: {kind: HogQLMetadata, language: hogQL, query: select 1}\n", "f.yaml:2: an endpoint cannot run a query of kind HogQLMetadata"},
		{"variables by id", "name: e\nquery_definition:\n  kind: HogQLQuery\n  query: select 1\n  variables: {}\n", "f.yaml:5: variables stand beside the query in a file, with their definitions"},
		{"freshness 0", head + "data_freshness_seconds: 0\n", "f.yaml:3: data_freshness_seconds is between 1 and 604800, not 0"},
		{"freshness in words", head + "data_freshness_seconds: 5m\n", `f.yaml:3: data_freshness_seconds is a whole number, not "5m"`},
		{"a table said twice", head + "is_materialized: true\nmaterialization:\n  enabled: false\n", "f.yaml:5: enabled and is_materialized say different things; leave one of them out"},
		{"a table of nothing", head + "is_materialized: true\nis_active: false\n", "f.yaml:4: an endpoint that is not active cannot be materialized"},
		{"an odd bucket", head + "is_materialized: true\nbucket_overrides: {timestamp: decade}\n", `f.yaml:4: a bucket is one of minute, fifteen_minutes, hour, day, week, month, not "decade"`},
		{"buckets in a row", head + "bucket_overrides: [day]\n", "f.yaml:3: bucket_overrides is a list of columns such as timestamp: hour"},
		{"an odd schedule", head + "materialization: {schedule: 2min}\n", `f.yaml:3: schedule is one of 15min, 30min, 1hour, 6hour, 12hour, 24hour and 7day, not "2min"`},
		{"two schedules", head + "data_freshness_seconds: 60\nmaterialization: {schedule: 1hour}\n", "f.yaml:4: schedule and data_freshness_seconds say different things; leave one of them out"},
		{"a word for a truth", head + "is_active: maybe\n", "f.yaml:3: is_active is true or false"},
		{"a tag that is a number", head + "tags: [a, 1]\n", "f.yaml:3: tags is a list of texts; put each into quotation marks"},
		{"a rate a day", head + "rate_limit: 60/d\n", `f.yaml:3: rate_limit: "60/d" is not a valid rate (want, for example, 240/m)`},
		{"an empty rate", head + "rate_limit: ''\n", `f.yaml:3: rate_limit: "" is not a valid rate (want, for example, 240/m)`},
		{"a number for a rate", head + "rate_limit: 60\n", `f.yaml:3: rate_limit: "60" is not a valid rate (want, for example, 240/m)`},
		{"an anchor", head + "description: &x y\n", "f.yaml:3: anchors and references (& and *) are not supported"},
		{"a tag of YAML", head + "description: !!binary aGk=\n", "f.yaml:3: tags such as !!binary are not supported"},
		{"a number that JSON lacks", head + "variables: [{name: a, type: Number, default: .nan}]\n", `f.yaml:3: ".nan" is not a value that JSON has`},
		{"variables as an object", head + "variables: {a: 1}\n", "f.yaml:3: variables is a list"},
		{"a variable without a name", head + "variables:\n  - type: Number\n", "f.yaml:4: a variable needs a name"},
		{"a variable's bad name", head + "variables: [{name: My Year, type: Number}]\n", `f.yaml:3: "My Year" is not a valid variable name: it has lower-case letters, digits and _, as in {variables.my_year}`},
		{"a variable's bad type", head + "variables: [{name: a, type: object}]\n", `f.yaml:3: the type of a variable is String, Number, Boolean, List or Date, not "object"`},
		{"a variable twice", head + "variables:\n- {name: a, type: Date}\n- {name: a, type: Date}\n", "f.yaml:5: the variable a stands here twice"},
		{"values of a text", head + "variables: [{name: a, type: String, values: [b]}]\n", "f.yaml:3: values is a list, of a variable of type List"},
		{"all mistakes at once", "name: 1\nis_active: 2\nfoo: 3\nquery: select 1\n", "f.yaml:3: an endpoint has no field foo\nf.yaml:1: name is a text; put it into quotation marks\n" +
			`f.yaml:1: "1" is not a valid endpoint name: it begins with a letter and has letters, digits, - and _, at most 128` + "\nf.yaml:2: is_active is true or false"},
		{"a huge file", strings.Repeat("#", 1<<20+1), "f.yaml: the file is larger than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := endpointfile.Parse("f.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("Parse() refuses nothing")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("Parse() mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseRefusesUnknownKind: the server's own message, which lists all kinds, follows the line of the file.
func TestParseRefusesUnknownKind(t *testing.T) {
	_, err := endpointfile.Parse("f.yaml", []byte("name: e\nquery:\n  kind: Tomato\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:3: JSON parse error") || !strings.Contains(err.Error(), "'Tomato'") {
		t.Errorf("Parse() = %v", err)
	}
}

// TestReadDirAndParseAll reads a folder whose files contradict each other.
func TestReadDirAndParseAll(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":    "name: e\nquery: select 1\nvariables: [{name: v, type: Number, default: 1}]\n",
		"b.yml":     "name: e\nquery: select 2\nvariables: [{name: v, type: Number, default: 1.0, value: 7}]\n",
		"c.yaml":    "name: f\nquery: select 3\nvariables:\n- {name: v, type: Number}\n",
		"README.md": "no endpoint",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	sources, err := endpointfile.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = endpointfile.ParseAll(sources)
	a, b, c := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yml"), filepath.Join(dir, "c.yaml")
	want := b + ":1: the endpoint e stands in " + a + " too\n" + c + ":4: the variable v is another one in " + b + ":3; a project has one of a name"
	if err == nil || err.Error() != want {
		t.Errorf("ParseAll() = %v\nwant %s", err, want)
	}
	files, err := endpointfile.ParseAll([]endpointfile.Source{sources[2], sources[0]})
	if err == nil {
		t.Errorf("ParseAll() of two files that define a variable differently gives %d files", len(files))
	}
	if _, err := endpointfile.ReadDir(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("ReadDir() finds a folder that is not there")
	}
}

// TestDocumentedFile reads the file that the documentation shows.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile("../../docs/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n    name: orders\n")
	text, _, ended := strings.Cut("    name: orders\n"+text, "\n\n")
	if !found || !ended {
		t.Fatal("the documentation shows no file")
	}
	f, err := endpointfile.Parse("docs", []byte(strings.ReplaceAll(text, "\n    ", "\n")[4:]))
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "orders" || len(f.Variables) != 2 || f.Freshness != 15*time.Minute {
		t.Errorf("the documented file reads as %+v", f)
	}
}

func TestMarshal(t *testing.T) {
	text := `name: daily-active
description: People
query: |-
  select 1
    from events
variables:
  - name: plan
    type: List
    default: pro
    values:
      - pro
      - "3"
    value: null
    is_multi: true
data_freshness_seconds: 900
is_active: false
tags: [board, "true"]
rate_limit: 60/m
`
	f, err := endpointfile.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := endpointfile.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Errorf("Marshal() (-want +got):\n%s", diff)
	}
}

// TestSame changes one field of a file at a time.
func TestSame(t *testing.T) {
	file := func(text string) *endpointfile.File {
		t.Helper()
		f, err := endpointfile.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	original := file(whole)
	if !original.Same(file("# other words\n" + whole)) {
		t.Error("a comment makes it another one")
	}
	for _, change := range [][2]string{
		{"daily-active", "weekly"},
		{"a day", "a week"},
		{"as people", "as p"},
		{"default: pro", "default: free"},
		{", 3]", "]"},
		{"is_multi: true", "is_multi: false"},
		{"value: null", "value: 2026-01-30"},
		{": 900", ": 901"},
		{"is_active: false", "is_active: true"},
		{"[board, ", "[boards, "},
		{"[plan]", "[plans]"},
		{"60/m", "60/h"},
	} {
		if text := strings.Replace(whole, change[0], change[1], 1); text == whole || original.Same(file(text)) {
			t.Errorf("%s for %s makes no difference", change[1], change[0])
		}
	}
}

// FuzzParse reads any text. A file that can be read can be written, and reads back the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		whole, "name: e\nquery: select 1 \t\n", "name: e\nquery: \"select '\\r\\n\\0\\u2028'\"\n", "name: e\nquery: |2\n    select 1\n", "&a {name: *a}",
		"name: e\nquery_definition: {kind: LifecycleQuery, series: [{kind: EventsNode, event: \"a\\nb \"}], dateRange: {date_from: \"2026-01-01\"}}",
		"name: e\nquery: select 1\nvariables: [{name: a, type: Number, default: 0x1F, value: 1e3}]", "name: e\nquery: select 1\ntags: [\"\\n\", ' a', '']",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		file, err := endpointfile.Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		written, err := endpointfile.Marshal(file)
		if err != nil {
			t.Fatalf("Marshal() = %v of\n%s", err, text)
		}
		again, err := endpointfile.Parse("f.yaml", written)
		if err != nil || !again.Same(file) {
			t.Fatalf("it reads back as another one: %v\n%s\n%s", err, text, written)
		}
	})
}
