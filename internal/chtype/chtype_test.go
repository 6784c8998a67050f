package chtype_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/internal/chtype"
)

func TestParts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		typ, name string
		args      []string
	}{
		{"", "", nil},
		{" UInt64 ", "UInt64", nil},
		{"Nullable(String)", "Nullable", []string{"String"}},
		{"DateTime64(6, 'Europe/Berlin')", "DateTime64", []string{"6", "'Europe/Berlin'"}},
		{"Map(String, Array(Tuple(a UInt8, b UInt8)))", "Map", []string{"String", "Array(Tuple(a UInt8, b UInt8))"}},
		{"Tuple(`b, c` UInt8, \"d)\" String)", "Tuple", []string{"`b, c` UInt8", "\"d)\" String"}},
		{`Enum8('a,(' = 1, 'b\'' = 2)`, "Enum8", []string{"'a,(' = 1", `'b\'' = 2`}},
		{"JSON(max_dynamic_paths=8, SKIP REGEXP '[,', a.b[1, 2] UInt8)", "JSON", []string{"max_dynamic_paths=8", "SKIP REGEXP '[,'", "a.b[1, 2] UInt8"}},
		{"Tuple()", "Tuple", nil},
		{"Array", "?", nil},
		{"Array()", "?", nil},
		{"Nullable(", "?", nil},
		{"LowCardinality", "?", nil},
		{"SimpleAggregateFunction()", "?", nil},
		{"Map(String)", "?", nil},
		{"Array(String", "Array", []string{"String"}},
		{"Enum8('a = 1, b = 2)", "Enum8", []string{"'a = 1, b = 2"}},
	}
	for _, tt := range tests {
		name, args := chtype.Parts(tt.typ)
		if name != tt.name {
			t.Errorf("Parts(%s) is named %s, want %s", tt.typ, name, tt.name)
		}
		if diff := cmp.Diff(tt.args, args); diff != "" {
			t.Errorf("Parts(%s) (-want +got):\n%s", tt.typ, diff)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	in := []string{"a UInt8", "b  Array(String)", "`c d` DateTime64(3, 'UTC')", "String", "DateTime64(3, 'UTC')", "`open", "Enum8('a b' = 1)"}
	want := []string{"UInt8", "Array(String)", "DateTime64(3, 'UTC')", "String", "DateTime64(3, 'UTC')", "`open", "Enum8('a b' = 1)"}
	if diff := cmp.Diff(want, chtype.Fields(in)); diff != "" {
		t.Errorf("Fields (-want +got):\n%s", diff)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	in := []string{"'a' = 1", `'it\'s' = -2`, `'back\\slash' = 3`, "'' = 4", "none", "'open"}
	if diff := cmp.Diff([]string{"a", "it's", `back\slash`, ""}, chtype.Words(in)); diff != "" {
		t.Errorf("Words (-want +got):\n%s", diff)
	}
}
