package compiler_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/internal/golden"
	"github.com/caddy-analytics/caddy-analytics/internal/golden/layout"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// world is the section env of a golden file: the project that the query is compiled for. Missing fields are empty, except that the time zone is
// then UTC.
type world struct {
	Timezone  string            `json:"timezone"`
	WeekStart int               `json:"week_start"`
	Variables map[string]any    `json:"variables"`
	Event     map[string]string `json:"event"`  // declared types of event properties
	Person    map[string]string `json:"person"` // and of person properties
	Group     map[string]string `json:"group"`  // and of properties of group 0
	Pages     bool              `json:"pages"`
	// Values are the kinds of values that properties have had, by the property's scope (1 event, 2 person, 3 group 0) and name.
	Values  map[schema.PropertyScope]map[string][]string `json:"values"`
	Actions []action                                     `json:"actions"`
	// Cohorts are by id. A name means a cohort with current version 3, or one of another product if there are Columns; or the value is an object.
	Cohorts map[int64]worldCohort `json:"cohorts"`
	// Columns are the server's physical columns, as table.name type [= expression that fills it]; none means our own tables.
	Columns []string `json:"columns"`
}

// kindNames are the kinds of values as golden files name them.
var kindNames = map[string]physical.Kinds{
	"texts": physical.Texts, "wholes": physical.Wholes, "big wholes": physical.BigWholes, "floats": physical.Floats, "booleans": physical.Booleans,
	"arrays": physical.Arrays, "objects": physical.Objects,
}

// action is an action in a golden file, as in the API.
type action struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
	Steps   []struct {
		Event        string          `json:"event"`
		URL          string          `json:"url"`
		URLMatching  query.Matching  `json:"url_matching"`
		Properties   json.RawMessage `json:"properties"`
		Selector     string          `json:"selector"`
		TagName      *string         `json:"tag_name"`
		Text         *string         `json:"text"`
		TextMatching query.Matching  `json:"text_matching"`
		Href         *string         `json:"href"`
		HrefMatching query.Matching  `json:"href_matching"`
	} `json:"steps"`
}

// actionsOf converts the actions of a golden file to the compiler's.
func actionsOf(tb testing.TB, list []action) *query.Actions {
	tb.Helper()
	out := make([]query.Action, len(list))
	for i, a := range list {
		out[i] = query.Action{ID: a.ID, Name: a.Name, Deleted: a.Deleted}
		for _, s := range a.Steps {
			step := query.ActionStep{
				Event: s.Event, URL: s.URL, URLMatching: s.URLMatching, Selector: s.Selector, TagName: s.TagName,
				Text: s.Text, TextMatching: s.TextMatching, Href: s.Href, HrefMatching: s.HrefMatching,
			}
			if s.Properties != nil {
				var err error
				if step.Properties, err = query.ParseActionProperties(s.Properties); err != nil {
					tb.Fatal(err)
				}
			}
			out[i].Steps = append(out[i].Steps, step)
		}
	}
	return query.NewActions(out)
}

var compileNow = time.Date(2024, 5, 31, 13, 45, 10, 0, time.UTC)

// worldCohort is a cohort of a world.
type worldCohort struct {
	schema.Cohort

	named bool // by its name alone
}

func (c *worldCohort) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &c.Name) == nil {
		c.named = true
		return nil
	}
	return json.Unmarshal(text, &c.Cohort)
}

func (w world) env(tb testing.TB) compiler.Env {
	tb.Helper()
	zone, err := time.LoadLocation(w.Timezone)
	if err != nil {
		tb.Fatal(err)
	}
	db := &schema.Database{
		Project: 7, Location: zone, WeekStart: w.WeekStart,
		Properties: schema.PropertyTypes{}, GroupTypes: map[string]int{"organization": 0, "project": 1},
		Held: func(table string) ([][]any, error) { return [][]any{{1, table}}, nil },
	}
	for scope, types := range map[schema.PropertyScope]map[string]string{
		schema.EventProperty: w.Event, schema.PersonProperty: w.Person, schema.GroupProperty: w.Group,
	} {
		for name, typ := range types {
			db.Properties[schema.PropertyKey{Scope: scope, Name: name}] = schema.PropertyType(typ)
		}
	}
	for scope, of := range w.Values {
		for name, kinds := range of {
			if db.Values == nil {
				db.Values = schema.PropertyValues{}
			}
			for _, kind := range kinds {
				db.Values[schema.PropertyKey{Scope: scope, Name: name}] |= kindNames[kind]
			}
		}
	}
	var cohorts []schema.Cohort
	for id, c := range w.Cohorts {
		if c.named {
			c.Static, c.Version = len(w.Columns) > 0, 3
		}
		c.ID = id
		cohorts = append(cohorts, c.Cohort)
	}
	db.Cohorts = schema.NewCohorts(cohorts, len(w.Columns) > 0)
	if len(w.Columns) > 0 {
		var columns []physical.Column
		for _, text := range w.Columns {
			place, rest, _ := strings.Cut(text, " ")
			table, name, _ := strings.Cut(place, ".")
			typ, expression, _ := strings.Cut(rest, " = ")
			column := physical.Column{Table: table, Name: name, Type: typ, DefaultExpression: expression}
			if expression != "" {
				column.DefaultKind = "MATERIALIZED"
			}
			columns = append(columns, column)
		}
		db.Layout = schema.NewLayout(columns)
	}
	env := compiler.Env{Database: db, Now: compileNow, Variables: w.Variables, Actions: actionsOf(tb, w.Actions)}
	if w.Pages {
		env.Mode = compiler.Pages
	}
	return env
}

// node builds the query node of a golden file from the section query and the additional fields in the section request. A request with a kind is the
// whole node.
func node(t *testing.T, in map[string]string) query.Node {
	t.Helper()
	body := map[string]any{}
	if in["request"] != "" {
		if err := json.Unmarshal([]byte(in["request"]), &body); err != nil {
			t.Fatal(err)
		}
	}
	if body["kind"] == nil {
		body["kind"], body["query"] = "HogQLQuery", in["query"]
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	n, err := compiler.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// worldOf reads the section env of a golden file.
func worldOf(t *testing.T, in map[string]string) world {
	t.Helper()
	w := world{Timezone: "UTC"}
	if in["env"] != "" {
		d := json.NewDecoder(strings.NewReader(in["env"]))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&w); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func compileCase(t *testing.T, in map[string]string) (*compiler.Compiled, error) {
	t.Helper()
	w := worldOf(t, in)
	if in["filters"] == "" {
		return compiler.Compile(node(t, in), w.env(t))
	}
	d, err := cohort.Read([]byte(in["filters"]), nil)
	if err != nil {
		return nil, err
	}
	return compiler.CompileCohort(d, w.env(t))
}

// piecesCase is the query for some pieces of a query, which a golden file gives as JSON.
func piecesCase(t *testing.T, compiled *compiler.Compiled, text string) *compiler.Compiled {
	t.Helper()
	var places []int
	if err := json.Unmarshal([]byte(text), &places); err != nil {
		t.Fatal(err)
	}
	if compiled.Pieces == nil {
		t.Fatal("the query has no pieces")
	}
	query, err := compiled.Pieces.Compile(places)
	if err != nil {
		t.Fatal(err)
	}
	return query
}

var (
	// Filters are a cohort's filters; places are the indexes of the requested pieces.
	goldenInputs  = []string{"query", "request", "filters", "env", "places"}
	goldenOutputs = []string{"sql", "args", "columns", "mistakes"}
)

func TestGolden(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/*/*.txtar", goldenInputs, goldenOutputs, func(t *testing.T, in map[string]string) map[string]string {
		t.Helper()
		compiled, err := compileCase(t, in)
		if err != nil {
			return map[string]string{"mistakes": layout.Text(t, mistakes(t, in["query"], err))}
		}
		if in["places"] != "" {
			compiled = piecesCase(t, compiled, in["places"])
		}
		if in["filters"] != "" {
			checkClosed(t, in["filters"], compiled.SQL)
		}
		var args strings.Builder
		for _, p := range compiled.Params {
			fmt.Fprintf(&args, "%s %s %q\n", p.Name, p.Type, p.Value)
		}
		if columns := strings.Join(compiled.Columns, ""); strings.Contains(columns, "\n") {
			t.Errorf("a column of %q is more than a line", compiled.Columns)
		}
		return map[string]string{"sql": layout.SQL(t, compiled.SQL), "args": args.String(), "columns": strings.Join(compiled.Columns, "\n")}
	})
}

// TestGoldenLines: a golden file can be read without scrolling.
func TestGoldenLines(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if length := utf8.RuneCountInString(line); length > layout.MaxLine {
				t.Errorf("%s:%d has %d characters, more than %d", file, i+1, length, layout.MaxLine)
			}
		}
	}
}

// mistakes lists the mistakes of a query as line:column: code: detail, each with the text that it points at.
func mistakes(t *testing.T, text string, err error) string {
	t.Helper()
	all := compiler.Mistakes(err)
	if all == nil {
		t.Fatalf("a bug, not a mistake: %v", err)
	}
	var b strings.Builder
	for _, m := range all {
		at := diag.Locate(text, m.Span.Start)
		fmt.Fprintf(&b, "%d:%d: %s: %s\n", at.Line, at.Column, m.Code, m.Detail)
		if m.Span.End > m.Span.Start && m.Span.End <= len(text) {
			fmt.Fprintf(&b, "\tat %s\n", text[m.Span.Start:m.Span.End])
		}
		if m.Hint != "" {
			fmt.Fprintf(&b, "\thint %s\n", m.Hint)
		}
	}
	return b.String()
}
