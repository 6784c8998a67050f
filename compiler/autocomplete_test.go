package compiler_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/complete"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// catalogOf lists the properties of a schema in order.
func catalogOf(db *schema.Database) compiler.Catalog {
	return compiler.Catalog{
		Properties: func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType] {
			return func(yield func(string, schema.PropertyType) bool) {
				keys := slices.SortedFunc(maps.Keys(db.Properties), func(a, b schema.PropertyKey) int { return strings.Compare(a.Name, b.Name) })
				for _, key := range keys {
					if key.Scope == scope && (group < 0 || key.Group == group) && !yield(key.Name, db.Properties[key]) {
						return
					}
				}
			}
		},
	}
}

// cursor removes the bars from a text: a single one is the cursor, two are the ends of a word.
func cursor(t *testing.T, marked string) (text string, start, end int) {
	t.Helper()
	parts := strings.Split(marked, "|")
	start = utf8.RuneCountInString(parts[0])
	end = start
	switch len(parts) {
	case 2:
	case 3:
		end += utf8.RuneCountInString(parts[1])
	default:
		t.Fatalf("%q needs one bar or two", marked)
	}
	return strings.Join(parts, ""), start, end
}

func completed(t *testing.T, q *query.Autocomplete) *complete.Completion {
	t.Helper()
	env := asked.env(t)
	env.Variables = map[string]any{"country": "NO", "plan": nil}
	env.Database.Readable = func(table string) bool { return table != "system.cohorts" }
	got, err := compiler.Complete(q, env, catalogOf(env.Database))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// labels returns the suggestions before the functions, each as label:detail, and a + for the functions.
func labels(c *complete.Completion) string {
	var out []string
	for _, s := range c.Suggestions {
		out = append(out, s.Label+":"+s.Detail)
	}
	if c.Functions != nil {
		out = append(out, "+")
	}
	return strings.Join(out, " ")
}

func TestComplete(t *testing.T) {
	t.Parallel()
	const (
		event   = "uuid:UUID event:String properties:JSON timestamp:DateTime distinct_id:String elements_chain:String created_at:DateTime"
		persons = "id:UUID created_at:DateTime properties:JSON is_identified:Boolean pdi:Table"
	)
	tests := []struct{ name, text, want string }{
		{"before everything", "|select * from events", ""},
		{"fields and functions", "select | from events", event + "…"},
		{"a word", "select |ev| from events", event + "…"},
		{"a whole word", "select |event| from events", event + "…"},
		{"without FROM", "select |", event + "…"},
		{"a word without FROM", "select |ev|", event + "…"},
		{"another table", "select | from persons", persons + "…"},
		{"a table that does not exist", "select | from nowhere", "+"},
		{"no FROM can be added", "select 1 where |", "+"},
		{"properties of events", "select properties.| from events", "browser:String due:DateTime paid:Boolean price:Numeric"},
		{"properties that contain the word", "select properties.|ai| from events", "paid:Boolean"},
		{"properties of a part of a word", "select properties.ai| from events", "paid:Boolean"},
		{"properties of persons", "select properties.| from persons", "email:String"},
		{"properties of the person of an event", "select person.properties.| from events", "email:String"},
		{"properties far away", "select pdi.person.properties.| from events", "email:String"},
		{"properties of groups", "select properties.| from groups", "size:Numeric"},
		{"properties of the group of an event", "select group_0.properties.| from events", "size:Numeric"},
		{"properties compared with a word", "select 1 from events where properties.| = 'x'", "browser:String due:DateTime paid:Boolean price:Numeric"},
		{"properties through a subquery", "select p.| from (select properties as p from persons)", "email:String"},
		{"properties through an alias", "select properties as p, p.| from events", "browser:String due:DateTime paid:Boolean price:Numeric"},
		{"nothing below a property", "select properties.price.| from events", ""},
		{"nothing below a text", "select event.| from events", ""},
		{"a joined table", "select pdi.| from events", "distinct_id:String person_id:UUID person:Table"},
		{"a joined person", "select person.| from events", "id:UUID created_at:DateTime properties:JSON…"},
		{"the name of the table", "select events.| from events", event + "…"},
		{"a name that is no table", "select o.| from events", ""},
		{"aliases of tables", "select | from events e left join persons p on e.person_id = p.id", "e:Table p:Table"},
		{"a word beside an alias", "select |ev| from events e", "e:Table " + event + "…"},
		{"below an alias", "select p.| from events e left join persons p on e.person_id = p.id", persons + "…"},
		{"below an alias in ON", "select p.id from events e left join persons p on e.person_id = p.|", persons + "…"},
		{"an unknown alias", "select o.| from events e", ""},
		{"tables", "select event from |", "tables"},
		{"a word of a table", "select event from |ev|", "tables"},
		{"tables to join", "select event from events join |", "tables"},
		{"tables below a name", "select * from system.|", "alerts:Table dashboards:Table information_schema.columns:Table information_schema.data_types:Table " +
			"information_schema.metrics:Table information_schema.relationships:Table " +
			"information_schema.tables:Table insight_variables:Table insights:Table teams:Table"},
		{"tables below PostHog's namespace", "select * from posthog.|", "cohort_people:Table events:Table…"},
		{"nothing below a table", "select event from events.|", ""},
		{"a held table", "select | from system.teams", "id:Int64 name:String timezone:String…"},
		{"tables of WITH", "with a as (select 1 as one), b as (select 2) select * from |", "a:Table b:Table tables"},
		{"columns of WITH", "with a as (select event, 1 as one from events) select | from a", "event:String one:Int64 +"},
		{"a WITH is no table of itself", "with a as (select * from |) select 1 from a", "tables"},
		{"a value of WITH", "with 1 as one select | from numbers(3)", "number:Int64 one:unknown +"},
		{"columns of a subquery", "select |e| from (select event, 'x' as potato from events)", "event:String potato:String +"},
		{"the inner table", "select event, (select | from persons) as blah from events", persons + "…"},
		{"the outer table", "select |, (select id from persons) as blah from events", event + "…"},
		{"aliases of the SELECT", "select 1 as one from numbers(3) order by |", "number:Int64 one:Int64 +"},
		{"the parameter of a lambda", "select arrayMap(x -> |, [1]) from numbers(3)", "number:Int64 x:Int64 +"},
		{"variables", "select {|}", "variables.country:Variable variables.plan:Variable"},
		{"variables in an open brace", "select event from events where event = {|", "variables.country:Variable variables.plan:Variable"},
		{"a part of the word variables", "select {|vari|}", "variables.country:Variable variables.plan:Variable"},
		{"another word", "select {|filt|}", ""},
		{"below variables", "select {variables.|}", "country:Variable plan:Variable"},
		{"a text", "select 'a|' from events", ""},
		{"a comment", "select 1 -- a| \n from events", ""},
		{"a number", "select 1| from events", ""},
		{"an alias", "select event a| from events", ""},
		{"a broken text", "select ((|( from", ""},
		{"nothing", "|", ""},
		{"other letters before", "select 'é🐢', properties.| from persons", "email:String"},
		{"a set", "select 1 union all select | from persons", persons + "…"},
		{"the name of a function", "select cou|(event) from events", ""},
		{"the argument of an unknown function", "select foo(|) from persons", persons + "…"},
		{"mistakes elsewhere", "select nope(1, 2), nothing, properties.| from events where evnt = {x}", "browser:String due:DateTime paid:Boolean price:Numeric"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, start, end := cursor(t, tt.text)
			c := completed(t, &query.Autocomplete{Language: "hogQL", Query: text, Start: start, End: end})
			got := labels(c)
			if want, cut := strings.CutSuffix(tt.want, "…"); cut && strings.HasPrefix(got, want) {
				return
			}
			if want, ok := strings.CutSuffix(tt.want, "tables"); ok {
				for _, name := range []string{"events", "persons", "groups", "sessions", "query_log", "system.insights"} {
					want, got = want+name, strings.Replace(got, name+":Table", "", 1)
				}
				if c.Functions != nil || strings.Contains(got, "system.cohorts") || !strings.Contains(got, "cohort_people") || strings.Contains(got, "events") {
					t.Errorf("%q gives %q", tt.text, labels(c))
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestCompletePlainValues(t *testing.T) {
	t.Parallel()
	c := completed(t, &query.Autocomplete{Language: "hogQL", Query: "select  from events", Start: 7, End: 7})
	byLabel := map[string]complete.Suggestion{}
	for s := range c.All() {
		byLabel[s.Label] = s
	}
	for _, want := range []complete.Suggestion{
		{Label: "event", Insert: "event", Kind: "Variable", Detail: "String"},
		{Label: "$session_id", Insert: "`$session_id`", Kind: "Variable", Detail: "String"},
		{Label: "toDateTime", Insert: "toDateTime()", Kind: "Function"},
	} {
		if diff := cmp.Diff(want, byLabel[want.Label]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Label, diff)
		}
	}
	for _, hidden := range []string{"team_id", "event_person_id", "_plainText"} {
		if _, shown := byLabel[hidden]; shown {
			t.Errorf("%s is suggested", hidden)
		}
	}
}

// Functions are ranked only where they are compared with a value of a known type.
func TestCompleteRanks(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"select * from events where timestamp > ", "select * from events where toDateTime('2024-01-01') = "} {
		c := completed(t, &query.Autocomplete{Language: "hogQL", Query: text, Start: len(text), End: len(text)})
		sorts := map[string]string{}
		for s := range c.All() {
			if s.Kind == complete.Function {
				sorts[s.Label] = s.Sort
			}
		}
		want := map[string]string{
			"now": "2-0-now", "toDateTime": "2-0-toDateTime", "today": "2-1-today", "concat": "2-3-concat", "length": "2-4-length", "if": "2-2-if",
		}
		got := map[string]string{}
		for name := range want {
			got[name] = sorts[name]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for s := range completed(t, &query.Autocomplete{Language: "hogQL", Query: "select  from events", Start: 7, End: 7}).All() {
		if s.Sort != "" {
			t.Fatalf("%s is ranked without a comparison", s.Label)
		}
	}
}

func TestCompleteExpression(t *testing.T) {
	t.Parallel()
	source := func(text string) query.Node { return &query.HogQL{Query: text} }
	tests := []struct {
		name, text string
		source     query.Node
		want       string
	}{
		{"over events", "properties.|", nil, "browser:String due:DateTime paid:Boolean price:Numeric"},
		{"over a query", "properties.|", source("select * from persons"), "email:String"},
		{"over a query with more than one SELECT", "|", source("select 1 as one union all select 2"), "one:Int64 +"},
		{"over a query with a mistake", "properties.|", source("select select"), "browser:String due:DateTime paid:Boolean price:Numeric"},
		{"the names of the query are no place", "1|", source("select id, id, id from persons"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, start, end := cursor(t, tt.text)
			got := labels(completed(t, &query.Autocomplete{Language: "hogQLExpr", Query: text, Start: start, End: end, Source: tt.source}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// TestCompleteUsing: a placeholder for the first table leaves USING without a left side.
func TestCompleteUsing(t *testing.T) {
	t.Parallel()
	text, start, end := cursor(t, "select | from {t} join events using (event)")
	completed(t, &query.Autocomplete{Language: "hogQL", Query: text, Start: start, End: end})
}

func TestCompleteOthers(t *testing.T) {
	t.Parallel()
	globals := map[string]any{
		"event": map[string]any{"name": "$pageview", "tags": []any{"a"}, "long": strings.Repeat("é", 30)}, "n": 1.5,
	}
	const top = "event:Object n:1.5"
	tests := []struct{ name, language, text, want string }{
		{"HogQL", "hogQL", "select {|}", top + " variables.country:Variable variables.plan:Variable"},
		{"below a global in HogQL", "hogQL", "select event.| from events", `long:"ééééééééééééééééééé... name:"$pageview" tags:Array`},
		{"variables of a program", "hog", "let a := 3; let b := 5; print(|v|)", "a: b: " + top + " +"},
		{"a variable that comes later", "hog", "let a := 3; |let b := 5", "a: " + top + " +"},
		{"a block", "hog", "let a := 1; if (a) { let b := 2; | } let c", "a: b: " + top + " +"},
		{"behind a block", "hog", "if (1) { let b := 2; } |", top + " +"},
		{"a function", "hog", "fun f(x, y) { let z := 1; | }", "f: x: y: z: " + top + " +"},
		{"a loop", "hog", "for (let i in [1]) { | } ", "i: " + top + " +"},
		{"behind a loop", "hog", "for (let i in [1]) { } |", top + " +"},
		{"below a global", "hog", "print(event.|)", `long:"ééééééééééééééééééé... name:"$pageview" tags:Array`},
		{"below what is no global", "hog", "print(evnt.|)", ""},
		{"below a call", "hog", "f(1).|", ""},
		{"a text in a program", "hog", "print('a|')", ""},
		{"outside of the braces", "hogTemplate", "this isn't| a {concat(eve)}", ""},
		{"in the braces", "hogTemplate", "this isn't a {concat(|eve|)} <- this is", top + " +"},
		{"an escaped brace", "hogTemplate", `a \{ |`, ""},
		{"an open brace", "hogTemplate", "a {event.|", `long:"ééééééééééééééééééé... name:"$pageview" tags:Array`},
		{"liquid", "liquid", "{{ event.| }}", `long:"ééééééééééééééééééé... name:"$pageview" tags:Array`},
		{"liquid has no functions", "liquid", "a {{ | }}", top},
		{"a text of JSON", "hogJson", "{\n \"key\": \"val_{|event|.distinct_id}_ue\" }", top},
		{"a key of JSON", "hogJson", `{ "ke|y": "val_{event}_ue" }`, ""},
		{"JSON outside of a text", "hogJson", `{ | "key": "{event}" }`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, start, end := cursor(t, tt.text)
			got := labels(completed(t, &query.Autocomplete{Language: query.Language(tt.language), Query: text, Start: start, End: end, Globals: globals}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// At most 1000 keys of a global value are listed, each counts as work, and a variable of the same name comes before them.
func TestCompleteManyGlobals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		there, listed int
		incomplete    bool
	}{{1000, 1000, false}, {1001, 1001, false}, {1002, 1001, true}} {
		globals := map[string]any{}
		for i := range tt.there {
			globals[fmt.Sprintf("k%04d", i)] = i
		}
		text, start, end := cursor(t, "let k0001 := 3; |")
		got := completed(t, &query.Autocomplete{Language: "hog", Query: text, Start: start, End: end, Globals: globals})
		if len(got.Suggestions) != tt.listed || got.Incomplete != tt.incomplete {
			t.Errorf("of %d keys %d are listed, incomplete %t", tt.there, len(got.Suggestions), got.Incomplete)
		}
	}
	globals := map[string]any{}
	for i := range 10_000 {
		globals[strconv.Itoa(i)] = i
	}
	env, looks := asked.env(t), 0
	env.Expired = func() error { looks++; return nil }
	if _, err := compiler.Complete(&query.Autocomplete{Language: "hog", Globals: globals}, env, catalogOf(env.Database)); err != nil || looks == 0 {
		t.Errorf("the clock was looked at %d times: %v", looks, err)
	}
}

// At most 220 properties are listed, and the answer says that there are more.
func TestCompleteManyProperties(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		there, listed int
		incomplete    bool
	}{{219, 219, false}, {220, 220, false}, {221, 220, true}} {
		w := world{Timezone: "UTC", Event: map[string]string{}}
		for i := range tt.there {
			w.Event[fmt.Sprintf("p%03d", i)] = "String"
		}
		env := w.env(t)
		got, err := compiler.Complete(&query.Autocomplete{Language: "hogQL", Query: "select properties. from events", Start: 18, End: 18}, env, catalogOf(env.Database))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Suggestions) != tt.listed || got.Incomplete != tt.incomplete {
			t.Errorf("of %d there are %d, incomplete %t", tt.there, len(got.Suggestions), got.Incomplete)
		}
	}
}

// FuzzComplete completes any text at any place: it never fails, and only suggests valid text.
func FuzzComplete(f *testing.F) {
	languages := []string{"hogQL", "hogQLExpr", "hog", "hogTemplate", "hogJson", "liquid"}
	for i, text := range []string{
		"select properties. from events", "select  from events e join persons p on e.person_id = p.", "person.properties.", "let a := 1; fun f(x) { for (let i in x) { i. } }",
		"a {event.} \\{ {concat('}', )}", "{\"a\": \"{event.é}\"}\n{\"b\": \"{}\"}", "{{ event. }}", "with recursive a as (select 1 union all select n from a) select a. from a as a",
		"select {variables.}, {(select  from {t})} from {t} where {filters}", "select x -> , columns('a'), * exclude (a.) from numbers()", "select <a b={}>{ } </a>",
		"select `a.`, properties.`` from events array join [1] as , properties[] as b", "select count() over (partition by  order by w.) from events window w as ()",
	} {
		for end := range len(text) + 1 {
			f.Add(text, i%len(languages), end, end)
		}
		f.Add(text, i, -1, 1<<40)
	}
	env := asked.env(f)
	env.Variables = map[string]any{"plan": nil}
	catalog := catalogOf(env.Database)
	f.Fuzz(func(t *testing.T, text string, language, start, end int) {
		if len(text) > 2_000 {
			return
		}
		q := &query.Autocomplete{
			Language: query.Language(languages[uint(language)%uint(len(languages))]), Query: text, Start: start, End: end,
			Globals: map[string]any{"event": map[string]any{"é": text}},
		}
		if start%2 == 0 {
			q.Source = &query.HogQL{Query: text}
		}
		got, err := compiler.Complete(q, env, catalog)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, s := range got.Suggestions {
			if !utf8.ValidString(s.Label) || !utf8.ValidString(s.Detail) || s.Label == "" || s.Insert == "" || s.Kind == "" {
				t.Fatalf("%q gives %+v", text, s)
			}
			if strings.Contains(s.Label, "HERE") && !strings.Contains(text, "HERE") {
				t.Fatalf("%q gives the filler: %+v", text, s)
			}
		}
		if raw := got.AppendJSON(nil); !json.Valid(raw) {
			t.Fatalf("%q gives %s", text, raw)
		}
	})
}

// BenchmarkComplete completes texts in a project with 10,000 event properties.
func BenchmarkComplete(b *testing.B) {
	env := world{Timezone: "UTC"}.env(b)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("property_%05d", i)
	}
	catalog := compiler.Catalog{Properties: func(schema.PropertyScope, int) iter.Seq2[string, schema.PropertyType] {
		return func(yield func(string, schema.PropertyType) bool) {
			for _, name := range names {
				if !yield(name, schema.StringProperty) {
					return
				}
			}
		}
	}}
	for _, tt := range []struct{ name, before, after string }{
		{"fields", "select ", " from events"},
		{"properties", "select properties.", " from events"},
		{"the last property", "select properties.y_09999", " from events"},
		{"a longer query", "with people as (select id, properties.email as email from persons) select event, count() as n from events e left join people p on p.id = e.person_id " +
			"where e.timestamp > now() - interval 7 day and e.properties.", " = 'x' group by event order by n desc limit 10"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			q := &query.Autocomplete{Language: "hogQL", Query: tt.before + tt.after, Start: len(tt.before), End: len(tt.before)}
			var answer []byte
			for b.Loop() {
				got, err := compiler.Complete(q, env, catalog)
				if err != nil {
					b.Fatal(err)
				}
				answer = got.AppendJSON(answer[:0])
			}
		})
	}
}
