package compiler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

var asked = world{
	Timezone: "UTC", Variables: map[string]any{"plan": "free"},
	Event:  map[string]string{"browser": "String", "price": "Numeric", "paid": "Boolean", "due": "DateTime"},
	Person: map[string]string{"email": "String"},
	Group:  map[string]string{"size": "Numeric"},
}

// lines formats notices one per line, as start:end: message → fix.
func lines(list []compiler.Notice) string {
	var b strings.Builder
	for _, n := range list {
		if n.Start != nil {
			fmt.Fprintf(&b, "%d:%d: ", *n.Start, *n.End)
		}
		b.WriteString(n.Message)
		if n.Fix != nil {
			b.WriteString(" → " + *n.Fix)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func describe(t *testing.T, q *query.Metadata) *compiler.Metadata {
	t.Helper()
	m, err := compiler.Describe(q, asked.env(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Query != q.Query || m.Indices != "undecisive" || m.IsValid != (len(m.Errors) == 0) {
		t.Errorf("the answer is about %q, indices %s, valid %t with %d errors", m.Query, m.Indices, m.IsValid, len(m.Errors))
	}
	return m
}

func TestDescribeErrors(t *testing.T) {
	t.Parallel()
	const bounded = " from events where timestamp > '2024-01-01'"
	tests := []struct{ name, in, want string }{
		{"none", "select event" + bounded, ""},
		{"all of them", "select evnt, {x}, cuont(), 'a' from evnts where {filters.y} limit -1", "14:15: Unresolved placeholder: {x}\n" +
			"18:23: Unsupported function call 'cuont(...)'. Perhaps you meant 'count(...)'? → count\n" +
			"36:41: Unknown table `evnts`. → events\n" +
			"49:58: Unsupported filters placeholder `{filters.y}`: there are {filters}, {filters.dateRange.from} and {filters.dateRange.to} → filters\n" +
			"66:68: LIMIT takes a whole number that is not negative\n"},
		{"a placeholder is no further mistake", "select dateDiff({unit}, timestamp, now())" + bounded, "17:21: Unresolved placeholder: {unit}\n"},
		{"a table that is a placeholder hides its columns", "select evnt from {t}", "18:19: Unresolved placeholder: {t}\n"},
		{"syntax", "select event form events", "18:24: Unexpected 'events', expected the end of the query\n"},
		{"an empty text", " ", "The query is empty\n"},
		{"characters, not bytes", "select 'é☃🐢', evnt, `ünknown`" + bounded, "14:18: Unable to resolve field: evnt → event\n20:29: Unable to resolve field: ünknown\n"},
		{"lines", "select\n\t'é',\n\tevnt" + bounded, "14:18: Unable to resolve field: evnt → event\n"},
		{"a name that needs quotes", "select `$sesion_id`" + bounded, "7:19: Unable to resolve field: $sesion_id → $session_id\n"},
		{"a text and a number", "select 1" + bounded + " and properties.browser > 5", "56:74: Cannot compare text with a number: write toFloat(properties.browser) → toFloat(properties.browser)\n"},
		{"a unit", "select dateDiff('dya', timestamp, now())" + bounded, "16:21: Unknown unit of time for 'dateDiff': dya → 'day'\n"},
		{"a variable", "select {variables.pln}", "18:21: Variable pln is missing from query. Did you mean: plan? → plan\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: tt.in, Variables: map[string]query.Variable{"1": {CodeName: "plan"}}})
			if diff := cmp.Diff(tt.want, lines(m.Errors)); diff != "" {
				t.Errorf("errors of %q (-want +got):\n%s", tt.in, diff)
			}
			mends(t, tt.in, m)
		})
	}
}

// mends applies every fix at its place: none of these mistakes may remain.
func mends(t *testing.T, text string, m *compiler.Metadata) {
	t.Helper()
	characters := []rune(text)
	mended := map[string]bool{}
	for _, n := range slices.Backward(m.Errors) {
		if n.Fix != nil {
			mended[n.Message] = true
			characters = append(characters[:*n.Start:*n.Start], append([]rune(*n.Fix), characters[*n.End:]...)...)
		}
	}
	again := describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: string(characters), Variables: map[string]query.Variable{"1": {CodeName: "plan"}}})
	for _, n := range again.Errors {
		if mended[n.Message] {
			t.Errorf("%q, mended to %q, still has: %s", text, string(characters), n.Message)
		}
	}
	if len(mended) == len(m.Errors) && !again.IsValid {
		t.Errorf("%q, mended to %q, is still wrong: %s", text, string(characters), lines(again.Errors))
	}
}

func TestDescribeExpression(t *testing.T) {
	t.Parallel()
	source := func(text string) *query.HogQL { return &query.HogQL{Query: text} }
	tests := []struct {
		name, in string
		source   *query.HogQL
		want     string
	}{
		{"over events", "timestamp", nil, ""},
		{"an unknown field", "1 + no_field", nil, "4:12: Unable to resolve field: no_field\n"},
		{"with an alias", "properties.price as p", nil, ""},
		{"a reserved alias", "1 as true", nil, "5:9: \"true\" cannot be an alias or identifier, as it's a reserved keyword\n"},
		{"a query", "select 1", nil, "0:6: Unexpected 'select', expected an expression\n"},
		{"over another table", "is_identified", source("select * from persons"), ""},
		{"a field of another table", "timestamp", source("select * from persons"), "0:9: Unable to resolve field: timestamp\n"},
		{"an alias of the query around it", "n + 1", source("select count() as n from events"), ""},
		{"over a union", "a + 1", source("select 1 as a union all select 2"), ""},
		{"a mistake in the query around it", "'é' + nope", source("select evnt from events"), "6:10: Unable to resolve field: nope\nIn the query around the expression: Unable to resolve field: evnt\n"},
		{"a query around it that does not parse", "1", source("select"), "In the query around the expression: Unexpected end of the query, expected an expression\n"},
		{"a placeholder of the query around it", "1", source("select {x} from events"), "In the query around the expression: Unresolved placeholder: {x}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := describe(t, &query.Metadata{Language: query.LanguageExpr, Query: tt.in, Source: tt.source})
			if diff := cmp.Diff(tt.want, lines(m.Errors)); diff != "" {
				t.Errorf("errors of %q (-want +got):\n%s", tt.in, diff)
			}
			if len(m.Warnings) > 0 {
				t.Errorf("an expression has warnings: %s", lines(m.Warnings))
			}
		})
	}
}

func TestDescribeNotices(t *testing.T) {
	t.Parallel()
	const unbounded = "There is no condition on the timestamp of events, so this reads all events of the project\n"
	tests := []struct {
		name, in          string
		warnings, notices string
	}{
		{
			"types of properties", "select properties.browser, 'é', properties['price'], person.properties.email, organization.properties.size, poe.properties.email from events where timestamp > properties.due", "",
			"18:25: Event property 'browser' is of type 'String'.\n43:50: Event property 'price' is of type 'Float'.\n71:76: Person property 'email' is of type 'String'.\n" +
				"102:106: Group property 'size' is of type 'Float'.\n123:128: Person property 'email' is of type 'String'.\n170:173: Event property 'due' is of type 'DateTime'.\n",
		},
		{
			"a property that is nearly defined", "select properties.brwser, properties['prise'], properties.other from events where timestamp > now()",
			"18:24: Event property 'brwser' has no definition in this project. Did you mean 'browser'? → browser\n" +
				"37:44: Event property 'prise' has no definition in this project. Did you mean 'price'? → 'price'\n", "",
		},
		{"with mistakes", "select nope, properties.paid from events where timestamp > now()", "", "24:28: Event property 'paid' is of type 'Boolean'.\n"},
		{"no time", "select event from events limit 3", "18:24: " + unbounded, ""},
		{"no time in a subquery", "select 1 from persons where id in (select person_id from events)", "57:63: " + unbounded, ""},
		{"other events", "with events as (select 1 as n) select n from events", "", ""},
		{"a large limit", "select 1 from persons limit 50001", "28:33: A query returns at most 50000 rows → 50000\n", ""},
		{"large limits of a union", "select 1 limit 70000 union all select 2 limit 50000", "15:20: A query returns at most 50000 rows → 50000\n", ""},
		{"the largest limit", "select 1 from persons limit 50000", "", ""},
		{"the limit of a subquery", "select 1 from (select 1 from persons limit 60000) as t", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: tt.in})
			if diff := cmp.Diff([]string{tt.warnings, tt.notices}, []string{lines(m.Warnings), lines(m.Notices)}); diff != "" {
				t.Errorf("warnings and notices of %q (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestDescribeStorage(t *testing.T) {
	t.Parallel()
	w := asked
	w.Columns = []string{
		"events.team_id Int64", "events.timestamp DateTime64(6, 'UTC')", "events.properties String",
		"events.mat_browser Nullable(String) = JSONExtract(properties, 'browser', 'Nullable(String)')",
	}
	const text = "select properties.browser, properties.price from events where timestamp > now()"
	for _, tt := range []struct {
		name string
		w    world
		want string
	}{
		{"String columns", w, "18:25: Event property 'browser' is of type 'String'. This property is materialized ⚡️.\n" +
			"38:43: Event property 'price' is of type 'Float'. This property is not materialized 🐢.\n"},
		{"JSON columns", asked, "18:25: Event property 'browser' is of type 'String'. This property is read from its own part of a JSON column ⚡️.\n" +
			"38:43: Event property 'price' is of type 'Float'. This property is read from its own part of a JSON column ⚡️.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := compiler.Describe(&query.Metadata{Language: query.LanguageHogQL, Query: text, Debug: true}, tt.w.env(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lines(m.Notices)); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeTables(t *testing.T) {
	t.Parallel()
	m := describe(t, &query.Metadata{
		Language: query.LanguageHogQL,
		Query:    "with x as (select id from persons) select e.group_0.key from events e join x on x.id = e.person_id where event in (select event from events)",
	})
	if diff := cmp.Diff([]string{"events", "persons"}, m.Tables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"events", "groups", "person", "person_distinct_id_overrides"}, m.Physical); diff != "" {
		t.Errorf("tables of ClickHouse (-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: "select"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"isValid":false,"query":"select","errors":[{"message":"Unexpected end of the query, expected an expression","start":6,"end":6,"fix":null}],` +
		`"warnings":[],"notices":[],"table_names":[],"ch_table_names":null,"isUsingIndices":"undecisive"}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
}

func TestDescribeGlobals(t *testing.T) {
	t.Parallel()
	q := &query.Metadata{
		Language: query.LanguageHogQL, Query: "select {n} from events where {filters} and event = {name}",
		Globals: map[string]any{"n": json.Number("1")}, Filters: &query.Filters{DateFrom: "-7d"},
	}
	want := "52:56: Placeholder {name} is not available in this context. You can use the following: n\n"
	m := describe(t, q)
	if diff := cmp.Diff(want, lines(m.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if len(m.Warnings) > 0 {
		t.Errorf("the date range is not seen: %s", lines(m.Warnings))
	}
}

func TestDescribeNamesOfGlobals(t *testing.T) {
	t.Parallel()
	globals := map[string]any{
		"region": "eu", "event": "hidden", "inputs": map[string]any{"n": json.Number("5"), "list": []any{json.Number("1"), "a"}, "deep": map[string]any{"none": nil}},
	}
	tests := []struct{ name, in, want string }{
		{"a name", "select region, {region} from events", ""},
		{"below a name", "select inputs.n + 1, inputs.list, inputs.deep.none, inputs.missing from events where event = inputs.n", "85:90: Cannot compare text with a number: write toFloat(event) → toFloat(event)\n"},
		{"a column first", "select event.x from events", "13:14: Unable to resolve field: x: there is nothing below a value that is not JSON, a tuple or a map\n"},
		{"an alias first", "select 1 as region, region.x from events", "27:28: Unable to resolve field: x: there is nothing below a value that is not JSON, a tuple or a map\n"},
		{"an object", "select inputs.deep from events", "7:18: Unable to resolve field: inputs.deep: an object is not a constant\n"},
		{"below a text", "select region.x from events", "7:15: Unable to resolve field: region.x: there is nothing below a value that is not an object\n"},
		{"an unknown name", "select regoin from events", "7:13: Unable to resolve field: regoin\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := describe(t, &query.Metadata{Language: query.LanguageHogQL, Query: tt.in, Globals: globals})
			if diff := cmp.Diff(tt.want, lines(m.Errors)); diff != "" {
				t.Errorf("errors of %q (-want +got):\n%s", tt.in, diff)
			}
		})
	}
	if m := describe(t, &query.Metadata{Language: query.LanguageExpr, Query: "event = inputs.n || region", Globals: globals}); !m.IsValid {
		t.Errorf("an expression with globals has errors: %s", lines(m.Errors))
	}
}

func TestDescribeMistakes(t *testing.T) {
	t.Parallel()
	const text = "select 'é', evnt, nope from events"
	_, err := compiler.Compile(&query.HogQL{Query: text}, asked.env(t))
	m := compiler.DescribeMistakes(text, compiler.Mistakes(err))
	if m.IsValid || lines(m.Errors) != "12:16: Unable to resolve field: evnt → event\n18:22: Unable to resolve field: nope\n" {
		t.Errorf("valid %t, errors %s", m.IsValid, lines(m.Errors))
	}
	if diff := cmp.Diff([]string{"events"}, m.Tables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

func TestCompileRefusesDescriptions(t *testing.T) {
	t.Parallel()
	for _, node := range []query.Node{&query.Metadata{Query: "select 1"}, &query.DatabaseSchema{}} {
		_, err := compiler.Compile(node, asked.env(t))
		if got, want := fmt.Sprint(err), "A "+node.Kind()+" gives no rows"; got != want {
			t.Errorf("Compile gives %q, want %q", got, want)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	for _, seed := range []string{
		"select properties.browser, evnt from events where {x} limit 60000", "1 + no_field", "select '☃', {variables.plan}", "select", "a b",
		"with events as (select 1) select * from events union all select {filters.x}",
	} {
		f.Add(seed)
	}
	w := asked
	f.Fuzz(func(t *testing.T, text string) {
		for _, language := range []query.Language{query.LanguageHogQL, query.LanguageExpr} {
			m, err := compiler.Describe(&query.Metadata{Language: language, Query: text, Debug: true}, w.env(t))
			if err != nil {
				t.Fatalf("Describe(%q): %v", text, err)
			}
			size := len([]rune(text))
			for _, list := range [][]compiler.Notice{m.Errors, m.Warnings, m.Notices} {
				for _, n := range list {
					if n.Start != nil && (*n.Start < 0 || *n.End < *n.Start || *n.End > size) {
						t.Fatalf("%q of %d characters: %s", text, size, lines(list))
					}
				}
			}
		}
	})
}

// TestDescribeActions: an action named by number has a notice with its name, and the other way round; a misspelled name has a fix.
func TestDescribeActions(t *testing.T) {
	t.Parallel()
	env := asked.env(t)
	env.Actions = query.NewActions([]query.Action{
		{ID: 5, Name: "it's done"}, {ID: 6, Name: "old", Deleted: true}, {ID: 7}, {ID: 8, Name: "twice"}, {ID: 9, Name: "twice"},
	})
	const from = " from events where timestamp > '2024-01-01'"
	tests := []struct{ name, in, errors, notices string }{
		{"by number", "select matchesAction(5)" + from, "", `21:22: Action #5 can also be specified as 'it\'s done' → 'it\'s done'` + "\n"},
		{"by name", `select countIf(matchesAction('it\'s done'))` + from, "", "29:41: Searching for action by name. Replace with numeric ID 5 to protect against renaming. → 5\n"},
		{"without a name", "select matchesAction(7)" + from, "", ""},
		{"a deleted one", "select matchesAction(6)" + from, "7:23: Action \"old\" (ID 6) was deleted.\n", ""},
		{"several", "select matchesAction('twice')" + from, "7:29: Found multiple actions with name 'twice'\n", ""},
		{"a wrong name", `select matchesAction('its done')` + from, `7:32: Could not find an action with the name 'its done' → matchesAction('it\'s done')` + "\n", ""},
		{"a placeholder", "select matchesAction({n})" + from, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := compiler.Describe(&query.Metadata{Language: query.LanguageHogQL, Query: tt.in, Globals: map[string]any{"n": 5}}, env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([2]string{tt.errors, tt.notices}, [2]string{lines(m.Errors), lines(m.Notices)}); diff != "" {
				t.Errorf("errors and notices (-want +got):\n%s", diff)
			}
		})
	}
}
