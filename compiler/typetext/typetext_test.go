package typetext_test

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/typetext"
)

// zones are two names of one zone, and a zone with a single name.
type zones map[string]string

func (z zones) Lookup(name string) (string, bool) { target, ok := z[name]; return target, ok }
func (z zones) Names() iter.Seq[string]           { return slices.Values([]string{"UTC", "US/Pacific"}) }

var known = zones{"UTC": "UTC", "US/Pacific": "America/Los_Angeles", "America/Los_Angeles": "America/Los_Angeles"}

var taken = []struct{ in, want string }{
	{"Int64", "Int64"},
	{" Int64\n", "Int64"},
	{"integer", "Int32"},
	{"VARCHAR", "String"},
	{"boolean", "Bool"},
	{"datetime", "DateTime"},
	{"Date32", "Date32"},
	{"DateTime('US/Pacific')", "DateTime('America/Los_Angeles')"},
	{"DateTime64", "DateTime64"},
	{"DateTime64(3)", "DateTime64(3)"},
	{"DateTime64( 6 , 'UTC' )", "DateTime64(6,'UTC')"},
	{"FixedString(4096)", "FixedString(4096)"},
	{"Decimal(18, 4)", "Decimal(18,4)"},
	{"decimal(5)", "Decimal(5)"},
	{"Decimal64(018)", "Decimal64(18)"},
	{"Array(Nullable(String))", "Array(Nullable(String))"},
	{"Map(String, LowCardinality(String))", "Map(String,LowCardinality(String))"},
	{"Tuple(Int8, String)", "Tuple(Int8,String)"},
	{"Tuple(a Int8, `b c` Tuple(\"d\" UUID))", "Tuple(`a` Int8,`b c` Tuple(`d` UUID))"},
	{"Tuple(Int8 Int8)", "Tuple(`Int8` Int8)"},
	{"Tuple(`a\\`b\\\\` IPv4, `c``d` IPv6)", "Tuple(`a\\`b\\\\` IPv4,`c\\`d` IPv6)"},
	{`Enum8('a' = 1, 'b\'\n' = -128)`, `Enum8('a'=1,'b\'\n'=-128)`},
	{`Enum('a', 'it''s')`, `Enum('a','it\'s')`},
	{"Enum16('\x00\xff')", "Enum16('\\0\xff')"},
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, tt := range taken {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			got, err := typetext.Rewrite(tt.in, known)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Rewrite(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

var refused = []struct{ in, at, want string }{
	{"", "", "Unexpected end in a type, expected the name of a type"},
	{"Strng", "Strng", "Unknown type: Strng"},
	{"string", "string", "Unknown type: string"},
	{"JSON", "JSON", "Unknown type: JSON"},
	{"Dynamic(max_types=3)", "Dynamic", "Unknown type: Dynamic"},
	{"Variant(Int8, String)", "Variant", "Unknown type: Variant"},
	{"Nested(a Int8)", "Nested", "Unknown type: Nested"},
	{"Object('json')", "Object", "Unknown type: Object"},
	{"AggregateFunction(sum, Int8)", "AggregateFunction", "Unknown type: AggregateFunction"},
	{"IntervalDay", "IntervalDay", "Unknown type: IntervalDay"},
	{"Time64(3)", "Time64", "Unknown type: Time64"},
	{"DateTime('file:/proc/self/fd/3')", "file:/proc/self/fd/3", "Unknown time zone: file:/proc/self/fd/3"},
	{"DateTime('utc')", "utc", "Unknown time zone: utc"},
	{"Array(DateTime64(3, 'Fixed/UTC+01:00:00'))", "Fixed/UTC+01:00:00", "Unknown time zone: Fixed/UTC+01:00:00"},
	{"DateTime(UTC)", "UTC", `Unexpected "UTC" in a type, expected the name of a time zone in quotes`},
	{"DateTime(6)", "6", `Unexpected "6" in a type, expected the name of a time zone in quotes`},
	{"DateTime64('UTC')", "'UTC'", `Unexpected "'UTC'" in the type DateTime64, expected a number from 0 to 9`},
	{"DateTime64(10)", "10", `Unexpected "10" in the type DateTime64, expected a number from 0 to 9`},
	{"FixedString(4097)", "4097", `Unexpected "4097" in the type FixedString, expected a number from 1 to 4096`},
	{"FixedString(0)", "0", `Unexpected "0" in the type FixedString, expected a number from 1 to 4096`},
	{"FixedString", "", `Unexpected end in a type, expected "("`},
	{"Decimal(77)", "77", `Unexpected "77" in the type Decimal, expected a number from 1 to 76`},
	{"Decimal(5, 6)", "6", `Unexpected "6" in the type Decimal, expected a number from 0 to 5`},
	{"Decimal32(99999999999999999999)", "99999999999999999999", `Unexpected "99999999999999999999" in the type Decimal32, expected a number from 0 to 9`},
	{"Enum8('a' = 128)", "128", `Unexpected "128" in the type Enum8, expected a number from -128 to 127`},
	{"Enum8(a = 1)", "a", `Unexpected "a" in the type Enum8, expected a text in quotes`},
	{"Int8(1)", "(", "The type Int8 has no parameters"},
	{"Array(Int8", "", `Unexpected end in a type, expected ")"`},
	{"Array()", ")", `Unexpected ")" in a type, expected the name of a type`},
	{"Map(String)", ")", `Unexpected ")" in a type, expected ","`},
	{"Int8, Int8", ",", `Unexpected "," in a type, expected its end`},
	{"Int8; drop", ";", "Unexpected ';' in a type"},
	{"Enum8('a", "'a", "A quote in a type is not closed"},
	{`Enum8('\x41')`, `\x`, `Unknown escape in a type: "\\x"`},
	{"Tuple(a)", "a", "Unknown type: a"},
	{strings.Repeat("Array(", 16) + "Int8" + strings.Repeat(")", 16), "Int8", "Types are nested at most 16 deep"},
	{"Tuple(Int8" + strings.Repeat(",Int16", 498) + ",String)", "String", "A type has at most 500 parts"},
	{"Enum16('a'" + strings.Repeat(",'b'", 999) + ",'c')", "'c'", "The type Enum16 has at most 1000 values"},
}

func TestRewriteMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range refused {
		t.Run(tt.in[:min(len(tt.in), 40)], func(t *testing.T) {
			t.Parallel()
			got, err := typetext.Rewrite(tt.in, known)
			if err == nil {
				t.Fatalf("Rewrite(%q) = %q, want a mistake", tt.in, got)
			}
			if diff := cmp.Diff([]string{tt.want, tt.at}, []string{err.Detail, tt.in[err.Start:err.End]}); diff != "" {
				t.Errorf("mistake of %q and its place (-want +got):\n%s", tt.in, diff)
			}
		})
	}
	if _, err := typetext.Rewrite(strings.Repeat(" ", 64<<10)+"Int8", known); err == nil {
		t.Error("a text of more than 64 KiB is taken")
	}
}

// FuzzRewrite: for any input, the output is the same type and is rewritten to itself; and it contains no other zone.
func FuzzRewrite(f *testing.F) {
	for _, tt := range taken {
		f.Add(tt.in)
	}
	for _, tt := range refused {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		printed, err := typetext.Rewrite(text, known)
		if err != nil {
			if err.Detail == "" || err.Start < 0 || err.End < err.Start || err.End > len(text) {
				t.Fatalf("mistake %+v for %q", err, text)
			}
			return
		}
		again, err := typetext.Rewrite(printed, known)
		if err != nil {
			t.Fatalf("Rewrite(%q), printed for %q: %v", printed, text, err)
		}
		if again != printed {
			t.Fatalf("%q became %q and then %q", text, printed, again)
		}
		if strings.ContainsRune(printed, '\n') {
			t.Fatalf("%q became %q, on several lines", text, printed)
		}
	})
}
