package rows_test

import (
	"encoding/json"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

func TestWide(t *testing.T) {
	for name, c := range map[string]struct {
		types     []string
		row, want string
	}{
		"no integers":         {[]string{"String", "UInt32"}, `["a",1]`, ""},
		"signed and unsigned": {[]string{"Int64", "UInt64", "Float64"}, `[-9223372036854775808,18446744073709551615,1]`, `["-9223372036854775808","18446744073709551615",1]`},
		"null and a text":     {[]string{"Nullable(Int64)", "LowCardinality(String)"}, `[null,"1"]`, `[null,"1"]`},
		"an array":            {[]string{"Array(Nullable(UInt64))"}, `[[1,null,3]]`, `[["1",null,"3"]]`},
		"an empty array":      {[]string{"Array(UInt64)", "Map(String, Int64)"}, `[[],{}]`, `[[],{}]`},
		"a tuple":             {[]string{"Tuple(UInt64, Float64, Int8)"}, `[[1,2,3]]`, `[["1",2,3]]`},
		"a named tuple":       {[]string{"Tuple(a UInt64, `b c` Array(Float64), d Int64)"}, `[{"a":1,"b c":[2],"d":3}]`, `[{"a":"1","b c":[2],"d":"3"}]`},
		"a map":               {[]string{"Map(String, UInt64)"}, `[{"x,\"}":1,"y":2}]`, `[{"x,\"}":"1","y":"2"}]`},
		"a map of floats":     {[]string{"Map(String, Float64)", "UInt128"}, `[{"x":1},2]`, `[{"x":1},"2"]`},
		"a state's value":     {[]string{"SimpleAggregateFunction(sum, UInt64)"}, `[7]`, `["7"]`},
		"blanks":              {[]string{"UInt64", "Array(Int64)"}, `[ 1 , [ 2 , 3 ] ]`, `["1",["2","3"]]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := rows.NewWide(c.types)
			if w == nil {
				if c.want != "" {
					t.Fatal("no column is said to have such integers")
				}
				return
			}
			got, err := w.Append(nil, []byte(c.row))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

func TestWideMalformed(t *testing.T) {
	w := rows.NewWide([]string{"UInt64", "Map(String, UInt64)"})
	for _, row := range []string{``, `[`, `[1`, `[1,{"a"}]`, `[1,{"a":1]`, `[1,{}]]`, `1`} {
		if got, err := w.Append(nil, []byte(row)); err == nil && !json.Valid(got) {
			t.Errorf("%s became %s", row, got)
		}
	}
}

// FuzzWide: JSON stays JSON.
func FuzzWide(f *testing.F) {
	f.Add("Tuple(a UInt64, b Map(String, Int64))", `[{"a":1,"b":{"x":-2}}]`)
	f.Add("Array(Nullable(UInt64))", `[[1,null]]`)
	f.Fuzz(func(t *testing.T, typ, row string) {
		w := rows.NewWide([]string{typ})
		if w == nil || !json.Valid([]byte(row)) {
			return
		}
		if got, err := w.Append(nil, []byte(row)); err == nil && !json.Valid(got) {
			t.Errorf("%q of type %q became %q", row, typ, got)
		}
	})
}
