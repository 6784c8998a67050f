package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestParams sends values of every kind and reads them back. A value never becomes part of the query.
func TestParams(t *testing.T) {
	list := make([]string, 50_000)
	for i := range list {
		list[i] = fmt.Sprintf("'value %d'", i)
	}
	tests := []struct{ name, typ, value, want string }{
		{"plain", "String", "tsdb", `"tsdb"`},
		{"empty", "String", "", `""`},
		{"an attack", "String", "' OR 1=1 --", `"' OR 1=1 --"`},
		{"a backslash attack", "String", `\' OR 1=1 --`, `"\\' OR 1=1 --"`},
		{"all that TSV escapes", "String", "a\tb\nc\rd\x00e\\f\\N\\t'\"", `"a\tb\nc\rd\u0000e\\f\\N\\t'\""`},
		{"the text NULL", "String", "NULL", `"NULL"`},
		{"what stands for NULL", "String", `\N`, `"\\N"`},
		{"NULL", "Nullable(String)", `\N`, `null`},
		{"a nullable text", "Nullable(String)", `a\b`, `"a\\b"`},
		{"unicode", "String", "é😀", `"é😀"`},
		{"bytes of a URL", "String", "a&b=c%20+;#?", `"a&b=c%20+;#?"`},
		{"braces", "String", "{p:String}", `"{p:String}"`},
		{"a number", "Int64", "-9223372036854775808", `-9223372036854775808`},
		{"a float", "Float64", "1e-7", `1e-7`},
		{"a time", "DateTime64(6, 'UTC')", "2020-01-02 03:04:05.000001", `"2020-01-02T03:04:05.000001Z"`},
		{"a uuid", "UUID", "be349c38-5f7e-41eb-9f47-57f1fa0d45e8", `"be349c38-5f7e-41eb-9f47-57f1fa0d45e8"`},
		{"a list", "Array(String)", `['it\'s','a\\b','x	y']`, `["it's","a\\b","x\ty"]`},
		{"a list with NULL", "Array(Nullable(String))", `['a',NULL]`, `["a",null]`},
		{"a map", "Map(String, Int64)", `{'it\'s':1}`, `{"it's":1}`},
		{"just below the limit of URLs", "String", strings.Repeat("é", 4000), `"` + strings.Repeat("é", 4000) + `"`},
		{"one megabyte", "String", strings.Repeat("0123456789abcde\n", 1<<16), `"` + strings.Repeat(`0123456789abcde\n`, 1<<16) + `"`},
		{"a long attack", "String", strings.Repeat("' \r\n--", 10_000), `"` + strings.Repeat(`' \r\n--`, 10_000) + `"`},
	}
	c := client(t)
	p := project()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, c, p, "SELECT {p:"+tt.typ+"}, 'end'", clickhouse.Param{Name: "p", Type: tt.typ, Value: tt.value})
			if diff := cmp.Diff([]string{"[" + tt.want + `, "end"]`}, got); diff != "" {
				t.Errorf("row (-want +got):\n%.2000s", diff)
			}
		})
	}
	t.Run("fifty thousand items", func(t *testing.T) {
		got := ask(t, c, p, "SELECT length({p:Array(String)}), {p:Array(String)}[50000], {q:String}",
			clickhouse.Param{Name: "p", Type: "Array(String)", Value: "[" + strings.Join(list, ",") + "]"},
			clickhouse.Param{Name: "q", Type: "String", Value: "other"})
		if diff := cmp.Diff([]string{`[50000, "value 49999", "other"]`}, got); diff != "" {
			t.Errorf("row (-want +got):\n%s", diff)
		}
	})
}

// FuzzParam sends any text and reads it back.
func FuzzParam(f *testing.F) {
	for _, seed := range []string{"", "a", `\`, `\N`, "'", "\x00", "\t\r\n", "é", "{p:String}", "%00&x=1"} {
		f.Add(seed)
	}
	c := client(f)
	f.Fuzz(func(t *testing.T, value string) {
		got := ask(t, c, 1, "SELECT {p:String}", clickhouse.Param{Name: "p", Type: "String", Value: value})
		var row []string
		if err := json.Unmarshal([]byte(got[0]), &row); err != nil {
			t.Fatal(err)
		}
		want := oneReplacement(value)
		if row[0] != want {
			t.Errorf("%q came back as %q", value, row[0])
		}
	})
}

// oneReplacement returns s as a JSON string can represent it.
func oneReplacement(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func TestDescribe(t *testing.T) {
	c := client(t)
	got, err := c.Describe(t.Context(), clickhouse.Query{
		SQL: "SELECT event, count() AS n, {p:String} AS p FROM events GROUP BY event", Project: project(),
		Params: []clickhouse.Param{{Name: "p", Type: "String", Value: "x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []clickhouse.Column{{Name: "event", Type: "LowCardinality(String)"}, {Name: "n", Type: "UInt64"}, {Name: "p", Type: "String"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}
