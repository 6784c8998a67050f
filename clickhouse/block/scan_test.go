package block

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzObject reads JSON objects: what is understood has the values that encoding/json finds, under the same paths.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":1,"b":"x","c":true,"d":null,"e":1.5,"f":[1,null,2],"g":["a"],"h":{"i":{"j":false}}}`, `{"a":1,"a":2}`, `{"a":{}}`, `{"a":[]}`,
		`{"a.b":"\u00e4\n\"","a":{"b":1}}`, `{"a":"\ud83d\ude00"}`, `{"a":-0}`, `{"a":01}`, `{"a":1e}`, `{"a":12345678901234567890}`, `{"a":1}x`, `{"a":[{"b":1}]}`, `{"":1}`, `{"a":nul}`,
	} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		c := newPathsColumn("JSON", 100)
		for _, text := range []string{first, second, second} {
			if !c.read(text) {
				continue
			}
			got := map[string]any{}
			for _, f := range c.scan.found {
				got[f.path.name] = c.scan.plain(f)
			}
			c.add()
			if !json.Valid([]byte(text)) || !utf8.ValidString(text) || repeats(text) {
				continue // what is inserted was written by package record
			}
			want := map[string]any{}
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			var object map[string]any
			if err := d.Decode(&object); err != nil {
				t.Fatal(err)
			}
			flatten(want, "", object)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
		c.write(nil, c.rows)
	})
}

// repeats reports whether an object in a text has a key twice.
func repeats(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	var object func() bool
	value := func() bool {
		switch token, _ := d.Token(); token {
		case json.Delim('{'):
			return object()
		case json.Delim('['):
			for d.More() { // those that are understood have scalars only
				_, _ = d.Token()
			}
			_, _ = d.Token()
		}
		return false
	}
	object = func() (again bool) {
		keys := map[json.Token]bool{}
		for d.More() {
			key, _ := d.Token()
			again = again || keys[key]
			keys[key] = true
			again = value() || again
		}
		_, _ = d.Token()
		return again
	}
	return value()
}

// plain returns a value as encoding/json has it.
func (s *scanner) plain(f found) any {
	if f.kind < arrays {
		return plainScalar(f.kind, f.scalar)
	}
	list := []any{}
	for _, i := range s.items[f.from:f.to] {
		list = append(list, plainScalar(i.kind, i.scalar))
	}
	return list
}

func plainScalar(k kind, s scalar) any {
	switch k {
	case text:
		return s.text
	case integer:
		return float64(int64(s.bits))
	case float:
		return math.Float64frombits(s.bits)
	case boolean:
		return s.bits == 1
	case none, arrays:
	}
	return nil
}

func flatten(into map[string]any, prefix string, object map[string]any) {
	for key, value := range object {
		name := prefix + strings.ReplaceAll(key, ".", "%2E")
		switch value := value.(type) {
		case nil:
		case map[string]any:
			flatten(into, name+".", value)
		case []any:
			for i := range value {
				value[i] = asFloat(value[i])
			}
			into[name] = value
		default:
			into[name] = asFloat(value)
		}
	}
}

func asFloat(value any) any {
	if n, ok := value.(json.Number); ok {
		f, _ := n.Float64()
		return f
	}
	return value
}

func TestLeftToTheEngine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{
		{`{}`, true},
		{`{"a":1,"b":[1,null],"c":{"d":"e"},"f":null}`, true},
		{`{"a":999999999999999999}`, true},
		{`{"a":1000000000000000000}`, false},
		{`{"a":1e400}`, false},
		{`{"a":-0}`, false},
		{`{"a":[]}`, false},
		{`{"a":[null]}`, false},
		{`{"a":[1,1.5]}`, false},
		{`{"a":[[1]]}`, false},
		{`{"a":[{"b":1}]}`, false},
		{`{"a":{}}`, false},
		{`{"a":"\ud83d\ude00"}`, false},
		{`{"a":1,"a":2}`, false},
		{`{"a.b":1,"a%2Eb":2}`, false},
		{`{"":1}`, false},
		{`{"a": 1}`, false},
		{`{"a":1} `, false},
		{`{"a":01}`, false},
		{`{"a":1.}`, false},
		{`{"a":"x}`, false},
		{`{"a"`, false},
		{`[1]`, false},
		{``, false},
		{strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat(`}`, 20), false},
		{`{"p1":1,"p2":1,"p3":1,"p4":1}`, false}, // more paths than the column keeps apart
	} {
		if got := newPathsColumn("JSON", 3).read(tt.text); got != tt.want {
			t.Errorf("%s is understood: %t, want %t", tt.text, got, tt.want)
		}
	}
}

func TestUnknownTypes(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"JSON(a UInt8)", "JSON(max_dynamic_paths=8, max_dynamic_types=2)", "DateTime64(3, 'UTC')", "Nullable(String)", "UInt16", "Object('json')"} {
		if _, ok := New([]Column{{Name: "a", Type: typ}}); ok {
			t.Errorf("%s is encoded", typ)
		}
	}
	rows, ok := New([]Column{{Name: "a", Type: "UInt64"}})
	if !ok || rows.Append([]any{int64(1)}) || rows.Append([]any{"1"}) || rows.Append(nil) || !rows.Append([]any{uint64(1)}) {
		t.Error("a column takes values of other types")
	}
}
