package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// notedValues keeps the kinds of values of one project in memory. It implements ingest.Values.
type notedValues struct {
	known bool
	kinds schema.PropertyValues
}

func (n *notedValues) Known() bool { return n.known }

// Changed returns nothing: only one session writes.
func (n *notedValues) Changed() []ingest.LearnedProperty { return nil }

func (n *notedValues) Begin(context.Context) error {
	n.known, n.kinds = true, schema.PropertyValues{}
	return nil
}

func (n *notedValues) Widen(_ context.Context, found []ingest.LearnedProperty, lost bool) error {
	if lost {
		return errors.New("values are lost")
	}
	scopes := map[string]schema.PropertyScope{"event": schema.EventProperty, "person": schema.PersonProperty, "group": schema.GroupProperty}
	for _, p := range found {
		n.kinds[schema.PropertyKey{Scope: scopes[p.Scope], Group: p.GroupTypeIndex, Name: p.Name}] |= p.Kinds
	}
	return nil
}

// valuesByKind are values that properties may have, as JSON.
var valuesByKind = map[physical.Kinds][]string{
	physical.Texts: {
		`""`, `"x"`, `"null"`, `"true"`, `"false"`, `"12"`, `" 12"`, `"1.5"`, `"1e3"`, `"nan"`, `"2024-01-02"`, `"2024-01-02T03:04:05Z"`, `"{\"a\":1}"`,
		`"[1]"`, `"\"quoted\""`, `"ü\n"`, `"9007199254740993"`,
	},
	physical.Wholes:    {`0`, `-1`, `5`, `12`, `-0`, `999999999999999`},
	physical.BigWholes: {`9007199254740993`, `-9007199254740993`, `9223372036854775807`, `9223372036854775808`, `18446744073709551615`},
	physical.Floats:    {`0.5`, `1.0`, `-2.25`, `1e3`, `1.5E-7`, `-0.0`, `0.1234567890123456789`, `12345678901234567890.5`},
	physical.Booleans:  {`true`, `false`},
	physical.Arrays:    {`[]`, `[1,2]`, `["a",null]`, `[1.5,"x"]`, `[true]`, `[{"a":1}]`, `[[1],[2]]`},
	physical.Objects:   {`{}`, `{"a":1}`, `{"a":{"b":"c"},"d":null}`, `{"a":"x","2":[1]}`},
}

// TestKnownValues: whatever values properties have, queries give the same with the kinds that were noted while the values came in as without, and
// with those that were found in the tables.
func TestKnownValues(t *testing.T) {
	const lines, names = 300, 24
	random := rand.New(rand.NewPCG(18, 3))
	kinds := slices.Sorted(maps.Keys(valuesByKind))
	choices := make([][]string, names) // the values of each property
	for n := range choices {
		for _, kind := range kinds {
			if n < len(kinds) && kinds[n] == kind || n >= len(kinds) && random.IntN(3) == 0 {
				choices[n] = append(choices[n], valuesByKind[kind]...)
			}
		}
	}
	object := func() string {
		var b strings.Builder
		for n, of := range choices {
			switch {
			case len(of) == 0 || random.IntN(2) == 0:
			case random.IntN(8) == 0:
				fmt.Fprintf(&b, `,"p%d":null`, n)
			default:
				fmt.Fprintf(&b, `,"p%d":%s`, n, of[random.IntN(len(of))])
			}
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	}
	var file strings.Builder
	for n := range lines {
		fmt.Fprintf(&file, `{"event":"e","distinct_id":"user %d","timestamp":"2024-03-01T00:%02d:00Z","properties":%s}`+"\n", n%9, n%60, object())
		switch n % 10 {
		case 0:
			fmt.Fprintf(&file, `{"type":"person","distinct_ids":["user %d"],"properties":%s}`+"\n", n%9, object())
		case 1:
			fmt.Fprintf(&file, `{"type":"group","group_type":"org","group_key":"o","properties":%s}`+"\n", object())
		}
	}
	of := clickhousetest.Project()
	noted := new(notedValues)
	options := ingest.Options{Project: of, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), LearnTypes: true, Values: noted}
	in := ingest.New(client)
	in.Alone = true
	if report, err := in.Import(t.Context(), options, ingesttest.Lines(file.String())); err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
	for n, kind := range kinds {
		if got := noted.kinds[schema.PropertyKey{Scope: schema.EventProperty, Name: fmt.Sprintf("p%d", n)}]; got&kind == 0 {
			t.Errorf("p%d has kinds %b, want %b among them", n, got, kind)
		}
	}

	compareWithKinds(t, of, names, noted.kinds)

	unnoted := clickhousetest.Project()
	options.Project, options.Values = unnoted, nil
	report, err := in.Import(t.Context(), options, ingesttest.Lines(file.String()))
	if err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
	found := storedValues(t, unnoted, report.Learned)
	for key, kinds := range noted.kinds {
		// A large number may be stored as a small one or as a float, and an empty object as nothing.
		if extra := found[key] &^ (kinds | physical.Wholes | physical.BigWholes | physical.Floats); extra != 0 && found[key] != physical.AllKinds {
			t.Errorf("%v was found to have %b, and has %b", key, found[key], kinds)
		}
	}
	compareWithKinds(t, unnoted, names, found)
}

// storedValues are the kinds of values that are found in the tables.
func storedValues(t *testing.T, project int64, known []ingest.LearnedProperty) schema.PropertyValues {
	t.Helper()
	wh := warehouse.With(clickhousetest.Open(t, clickhouse.Config{DSN: dsn}), schema.NativeLayout())
	stored, err := wh.StoredValues(t.Context(), admission.New(admission.Limits{Places: 1, Project: 1, Queue: 1}), project)
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]schema.PropertyScope{"event": schema.EventProperty, "person": schema.PersonProperty, "group": schema.GroupProperty}
	found := schema.PropertyValues{}
	for _, p := range stored.Of(known) {
		kinds := p.Kinds
		if !kinds.Known() {
			kinds = physical.AllKinds
		}
		found[schema.PropertyKey{Scope: scopes[p.Scope], Group: p.GroupTypeIndex, Name: p.Name}] = kinds
	}
	return found
}

// TestNamesThatAreNotNoted: where all kinds of values are noted, queries find the values of properties of which none are.
func TestNamesThatAreNotNoted(t *testing.T) {
	of := clickhousetest.Project()
	noted := new(notedValues)
	options := ingest.Options{Project: of, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), LearnTypes: true, Values: noted}
	in := ingest.New(client)
	in.Alone = true
	names := []string{"$elements", "$group_set", "a.b", "\uFFFD", strings.Repeat("n", 1700), strings.Repeat("ü", 300)}
	var line strings.Builder
	for _, name := range names {
		fmt.Fprintf(&line, `,%q:12`, name)
	}
	file := `{"event":"e","distinct_id":"u","timestamp":"2024-03-01T00:00:00Z","properties":{"x":"y"` + line.String() + `}}`
	if report, err := in.Import(t.Context(), options, ingesttest.Lines(file)); err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
	db := schema.Database{Project: of, Location: time.UTC, Values: noted.kinds, ValuesComplete: true}
	for _, name := range append(names, "x") {
		quoted := "`" + name + "`"
		node := &query.HogQL{Query: "select toString(properties." + quoted + "), toFloat(properties." + quoted + ") from events"}
		want := "[\"12\", 12]\n"
		if name == "x" {
			want = "[\"y\", null]\n"
		}
		if got, err := allRows(t, of, compiledFor(t, node, &db)); !strings.HasSuffix(got, "\n"+want) || err != nil {
			t.Errorf("%.20s: %q, want %q, %v", name, got, want, err)
		}
	}
}

// compareWithKinds compares the rows of queries that were compiled for kinds of values with those of queries that were not.
func compareWithKinds(t *testing.T, of int64, names int, kinds schema.PropertyValues) {
	t.Helper()
	compared, other := 0, 0
	for n := range names {
		for _, typ := range []schema.PropertyType{schema.StringProperty, schema.NumericProperty, schema.BooleanProperty, schema.DateTimeProperty} {
			name := fmt.Sprintf("p%d", n)
			types := schema.PropertyTypes{}
			for _, scope := range []schema.PropertyScope{schema.EventProperty, schema.PersonProperty, schema.GroupProperty} {
				types[schema.PropertyKey{Scope: scope, Name: name}] = typ
			}
			plain := schema.Database{Project: of, Location: time.UTC, Properties: types, GroupTypes: map[string]int{"org": 0}}
			known := plain
			known.Values, known.ValuesComplete = kinds, true
			for _, node := range aboutProperty(name) {
				without, with := compiledFor(t, node, &plain), compiledFor(t, node, &known)
				compared++
				if without.SQL != with.SQL {
					other++
				}
				want, wantErr := allRows(t, of, without)
				got, err := allRows(t, of, with)
				if got != want || (err == nil) != (wantErr == nil) {
					t.Errorf("%s as %s, with %v:\nwithout: %.2000s %v\nwith:    %.2000s %v\n%s", name, typ, with.Reads.Values, want, wantErr, got, err, with.SQL)
				}
			}
		}
	}
	if other < compared/4 {
		t.Errorf("only %d of %d queries make use of the kinds", other, compared)
	}
}

// aboutProperty are queries that read a property of events, people and groups in every way.
func aboutProperty(name string) []query.Node {
	var nodes []query.Node
	for _, text := range []string{
		"select timestamp, properties.P, toString(properties.P), isNull(properties.P), person.properties.P, group_0.properties.P from events order by uuid",
		"select JSONExtractRaw(properties, 'P'), JSONExtractString(properties, 'P'), JSONHas(properties, 'P'), properties.P.a, properties.P.1 from events order by uuid",
		"select properties.P as p, count() from events group by p order by p",
		"select count() from events where toString(properties.P) = '12' or toFloat(properties.P) > 3 or toString(properties.P) in ('x', 'true')",
		"select sum(toFloat(properties.P)), max(toString(properties.P)), countIf(empty(toString(properties.P))) from events",
		"select count() from events where isNotNull(properties.P) and notEmpty(toString(properties.P)) and toString(properties.P) != 'x'",
		"select properties.P from (select properties, uuid from events) order by uuid",
		"select id, properties.P from persons order by id",
		"select key, properties.P from groups order by key",
	} {
		nodes = append(nodes, &query.HogQL{Query: strings.ReplaceAll(text, "P", name)})
	}
	return nodes
}

func compiledFor(t *testing.T, node query.Node, db *schema.Database) *compiler.Compiled {
	t.Helper()
	compiled, err := compiler.Compile(node, compiler.Env{Database: db, Now: time.Date(2024, 3, 2, 0, 0, 0, 0, time.UTC), Mode: compiler.Whole})
	if err != nil {
		t.Fatalf("%+v: %v", node, err)
	}
	return compiled
}

// allRows are the rows of a compiled query as one text, with the types of the columns. The error is that of the engine.
func allRows(t *testing.T, project int64, compiled *compiler.Compiled) (string, error) {
	t.Helper()
	q := clickhouse.Query{SQL: compiled.SQL, Project: project}
	for _, p := range compiled.Params {
		q.Params = append(q.Params, clickhouse.Param(p))
	}
	var rows textOfRows
	_, err := client.Query(t.Context(), q, &rows)
	return rows.String(), err
}

type textOfRows struct{ strings.Builder }

func (r *textOfRows) Columns(columns []clickhouse.Column) error {
	_, err := fmt.Fprintf(r, "%v\n", columns)
	return err
}

func (r *textOfRows) Row(row []byte) error {
	_, err := fmt.Fprintf(r, "%s\n", row)
	return err
}
