package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCanonical pins how values are written, whatever form they come in.
func TestCanonical(t *testing.T) {
	many := make([]string, 0, 60)
	for n := range 60 {
		many = append(many, fmt.Sprintf(`"k%d":%d`, n%30, n))
	}
	tests := []struct{ name, in, want string }{
		{"blanks", "{ \"a\" : [ 1 , { } , [ ] ] }", `{"a":[1,{},[]]}`},
		{"escapes", `{"a":"\u00e9\/\b\f\n\r\t\"\\\u001f"}`, `{"a":"é/\b\f\n\r\t\"\\\u001F"}`},
		{"a pair of surrogates", `{"a":"\ud83d\ude00"}`, `{"a":"😀"}`},
		{"lone surrogates", `{"a":"\ud83d x \ude00","b":"\ud83d\ud83d\ude00","c":"\ude00\ud83d"}`, `{"a":"� x �","b":"�😀","c":"��"}`},
		{"NUL", `{"a":"\u0000","b\u0000":{"c\u0000":1}}`, "{\"a\":\"\\u0000\",\"b\uFFFD\":{\"c\uFFFD\":1}}"},
		{"invalid UTF-8", "{\"a\":\"x\xff\xfey\"}", `{"a":"x�y"}`},
		{"line separators", "{\"a\":\"\u2028\u2029é\"}", `{"a":"\u2028\u2029é"}`},
		{"integers of 64 bits", `{"a":[18446744073709551615,-9223372036854775808,0,-0]}`, `{"a":[18446744073709551615,-9223372036854775808,0,-0]}`},
		{"larger integers", `{"a":18446744073709551616}`, `{"a":1.8446744073709552e+19}`},
		{"floats stay", `{"a":[1.50,1E5,-0.0e-1]}`, `{"a":[1.50,1E5,-0.0e-1]}`},
		{"the last of a key counts, in the place of the first", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"also within values", `{"x":{"a":1,"b":{"c":1,"c":{"d":0,"d":1}},"a":[3]}}`, `{"x":{"a":[3],"b":{"c":{"d":1}}}}`},
		{"also written differently", `{"x":{"a":1,"\u0061":2}}`, `{"x":{"a":2}}`},
		{"also of many", "{" + strings.Join(many, ",") + "}", "{" + strings.Join(many[30:], ",") + "}"},
		{"also of many within values", `{"x":{` + strings.Join(many, ",") + "}}", `{"x":{` + strings.Join(many[30:], ",") + "}}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parseObject([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.JSON()); diff != "" {
				t.Errorf("parseObject(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestNotJSON(t *testing.T) {
	for _, in := range []string{
		"", "[", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":tru}`, `{"a":01}`, `{"a":1.}`,
		`{"a":1e}`, `{"a":-}`, `{"a":+1}`, `{"a":.5}`, `{"a":"`, `{"a":"\`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u123"}`, "{\"a\":\"\n\"}", "{\"a\":\"\\\n\"}",
		`{"a":nul`, `{'a':1}`, `{"a":1}}`, `{"a":1} 2`, `{1:2}`, `{"a":NaN}`,
	} {
		if o, err := parseObject([]byte(in)); err == nil {
			t.Errorf("parseObject(%q) = %s, want an error", in, o.JSON())
		}
	}
}

// TestBounds reads what is valid but too much, and then what follows it.
func TestBounds(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"depth", `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", "nested more than 64 deep"},
		{"depth of objects", strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), "nested more than 64 deep"},
		{"names", `{"properties":{` + manyNames(1_000_000) + "}}", "more than 2000 property names"},
		{"names within a value", `{"properties":{"x":[{` + manyNames(3000) + "}]}}", "more than 2000 property names"},
		{"names after repeated ones", `{"properties":{"x":[` + strings.Repeat(`{"a":1},`, 3000) + `{` + manyNames(3000) + "}]}}", "more than 2000 property names"},
		{"depth after repeated names", `{"properties":{"x":[` + strings.Repeat(`{"a":1},`, 3000) + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "]}}", "nested more than 64 deep"},
		{"a number", `{"a":{"b":1e999}}`, "the number"},
		{"length", `{"a":"` + strings.Repeat("x", 64<<20) + `"}`, "too long"},
		{"length of a number", `{"a":` + strings.Repeat("1", 64<<20) + "}", "too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader([]byte("[" + tt.in + `,{"event":"next"}]`))
			var errs []error
			var last Object
			err := r.Items(func() error {
				fields, _, err := r.Event(nil, nil, 32<<20)
				errs, last = append(errs, err), fields
				if _, ok := errors.AsType[*BoundError](err); ok || errors.Is(err, ErrLong) {
					return nil
				}
				return err
			})
			if err != nil || len(errs) != 2 || errs[1] != nil || last.JSON() != `{"event":"next"}` {
				t.Fatalf("read %v, then %s: %v", errs, last.JSON(), err)
			}
			if errs[0] == nil || !strings.Contains(errs[0].Error(), tt.want) {
				t.Errorf("the error is %v, want one with %q", errs[0], tt.want)
			}
		})
	}
}

// TestNames counts names: the objects of a list share theirs.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
	}{
		{`1`, 0},
		{`"a:b"`, 0},
		{`[":",{}]`, 0},
		{`{"a":":\\\":"}`, 1},
		{`{"a":1,"b":{"a":1,"b":2}}`, 4},
		{`[{"a":1},{"a":2,"b":3},[{"b":{"c":1}}]]`, 3},
		{`{"x":[{"a":{"b":1}},{"a":{"c":"b"}}],"y":{"a":{"b":1}}}`, 7},
		{`{"":{"":{"":1}}}`, 3},
	} {
		if got := Value(tt.in).Names(); got != tt.want {
			t.Errorf("%s has %d names, want %d", tt.in, got, tt.want)
		}
	}
}

// TestRepeatedNames reads lists of similar objects, of which only the different names count.
func TestRepeatedNames(t *testing.T) {
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	frames := list(10_000, `{"function":"f","in_app":true,"code":{"line":1,"text":"{\":\"}"}}`)
	for _, tt := range []struct {
		name, properties string
		many             bool
	}{
		{"frames", `{"list":[{"stacktrace":{"frames":` + frames + `}}]}`, false},
		{"frames, with blanks", strings.ReplaceAll(`{"list" : `+frames+`, "other": 1}`, `":`, `" : `), false},
		{"with as many others as can be", `{"list":` + frames + `,` + manyNames(MaxNames-6) + `}`, false},
		{"with one more", `{"list":` + frames + `,` + manyNames(MaxNames-5) + `}`, true},
		{"within the list", `{"list":[` + strings.Trim(frames, "[]") + `,{` + manyNames(MaxNames-6) + `}]}`, false},
		{"one more within the list", `{"list":[` + strings.Trim(frames, "[]") + `,{` + manyNames(MaxNames-5) + `}]}`, true},
		{"under different names", `{"a":` + list(2000, `{"x":1}`) + `,"b":{` + manyNames(MaxNames-3) + `}}`, false},
		{"one more under different names", `{"a":` + list(2000, `{"x":1}`) + `,"b":{` + manyNames(MaxNames-2) + `}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader([]byte(`{"event":"e","properties":` + tt.properties + `} {"event":"next"}`))
			_, properties, err := r.Event(nil, nil, 8<<20)
			if err != nil || properties.ManyNames() != tt.many {
				t.Errorf("Event: %v, many names: %v", err, properties.ManyNames())
			}
			if next, _, err := r.Event(nil, nil, 8<<20); err != nil || next.JSON() != `{"event":"next"}` {
				t.Errorf("the next event is %s: %v", next.JSON(), err)
			}
			var p Parser
			if _, err := p.Parse([]byte(`{"event":"e","distinct_id":"d","timestamp":"2024-01-01T00:00:00Z","properties":` + tt.properties + `}`)); (err != nil) != tt.many {
				t.Errorf("Parse: %v", err)
			}
			if o := Value(tt.properties).Object(); o.ManyNames() != tt.many {
				t.Errorf("Object: many names: %v", o.ManyNames())
			}
		})
	}
}

// TestKeptKeys: a parser remembers short keys alone, however many lines a file has.
func TestKeptKeys(t *testing.T) {
	var p Parser
	long := strings.Repeat("k", maxKeyBytes)
	for _, key := range []string{"a", long, long + "1", strings.Repeat(long, 1000), "b"} {
		for range 2 {
			fields, _, err := p.Fields(fmt.Appendf(nil, `{%q:1}`, key))
			if err != nil || len(fields) != 1 || fields[0].Key != key {
				t.Fatalf("a key of %d bytes is read as %.200v: %v", len(key), fields, err)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "a", "b": "b", long: long}, p.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func manyNames(n int) string {
	b := make([]byte, 0, 12*n)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"k%d":1`, i)
	}
	return string(b)
}

// FuzzSkip compares where a value ends when it is passed over and when it is read.
func FuzzSkip(f *testing.F) {
	for _, seed := range []string{`{"a":["}\"",{}],"b":"\\"} 1`, `[[]]]`, `"x\"y" `, `1.5,`, `null]`, `{"a":"\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := NewReader(text)
		read.names = maxRecordNames
		if _, err := read.Value(); err != nil {
			return
		}
		passed := NewReader(text)
		if err := passed.Skip(); err != nil || passed.Pos() != read.Pos() {
			t.Fatalf("%q: read to %d, passed over to %d: %v", text, read.Pos(), passed.Pos(), err)
		}
	})
}

// TestKeys: of a list, the strings are keys, whatever the other items are. Lists of ids are read whole or not at all.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		in          string
		keys, texts []string
	}{
		{`["a","b\"c"]`, []string{"a", `b"c`}, []string{"a", `b"c`}},
		{`["a",null]`, []string{"a"}, nil},
		{`[true,"a"]`, []string{"a"}, nil},
		{`[["b"],{"c":1},"a"]`, []string{"a"}, nil},
		{`["a",""]`, []string{"a", ""}, nil},
		{`["a",1]`, []string{"a"}, []string{"a", "1"}},
		{`[]`, nil, nil},
		{`{"a":1,"b":null}`, []string{"a", "b"}, nil},
		{`"a"`, nil, nil},
		{`null`, nil, nil},
		{``, nil, nil},
	} {
		if diff := cmp.Diff(tt.keys, Value(tt.in).Keys()); diff != "" {
			t.Errorf("keys of %s (-want +got):\n%s", tt.in, diff)
		}
		if diff := cmp.Diff(tt.texts, Value(tt.in).Texts()); diff != "" {
			t.Errorf("texts of %s (-want +got):\n%s", tt.in, diff)
		}
	}
}
