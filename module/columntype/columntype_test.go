package columntype_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/columntype"
)

func TestWire(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"UInt64": "integer", "Nullable(Float64)": "float", "LowCardinality(String)": "string", "LowCardinality(Nullable(String))": "string",
		"DateTime64(6, 'UTC')": "datetime", "Date": "date", "Bool": "boolean", "Array(String)": "array", "Tuple(UInt8, String)": "json",
		"Decimal(18, 4)": "float", "SimpleAggregateFunction(sum, UInt64)": "integer", "SimpleAggregateFunction(anyLast, Nullable(Tuple(UInt8, String)))": "json",
		"Map(String, UInt8)": "json", "JSON": "json", "UUID": "string", "IntervalDay": "unknown", "Nothing": "unknown", "": "unknown",
	} {
		if got := columntype.Wire(typ); got != want {
			t.Errorf("Wire(%s) = %s, want %s", typ, got, want)
		}
	}
}

func TestInRows(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"Decimal(18, 4)": "decimal", "Nullable(Decimal64(2))": "decimal", "SimpleAggregateFunction(sum, Decimal(38, 4))": "decimal",
		"Float64": "float", "Nullable(UInt8)": "integer", "": "unknown",
	} {
		if got := columntype.InRows(typ); got != want {
			t.Errorf("InRows(%s) = %s, want %s", typ, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"String":                         "String",
		"LowCardinality(String)":         "String",
		"LowCardinality(Nullable(UUID))": "Nullable(UUID)",
		"Array(LowCardinality(String))":  "Array(String)",
		"Map(LowCardinality(String), LowCardinality(FixedString(3)))": "Map(String, FixedString(3))",
		"Tuple(a LowCardinality(String), b Array(UInt8))":             "Tuple(a String, b Array(UInt8))",
		"LowCardinality(String":                                       "LowCardinality(String",
	} {
		if got := columntype.Plain(typ); got != want {
			t.Errorf("Plain(%s) = %s, want %s", typ, got, want)
		}
	}
}

func TestWidest(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, a, b, want string }{
		{"the same", "LowCardinality(String)", "LowCardinality(String)", "LowCardinality(String)"},
		{"NULL", "String", "Nullable(Nothing)", "Nullable(String)"},
		{"NULL at first", "Nullable(Nothing)", "UInt8", "Nullable(UInt8)"},
		{"NULL alone", "Nullable(Nothing)", "Nullable(Nothing)", "Nullable(Nothing)"},
		{"NULL of few values", "LowCardinality(String)", "LowCardinality(Nullable(String))", "Nullable(String)"},
		{"NULL in place of a list", "Array(UInt8)", "Nullable(Nothing)", "Nullable(Array(UInt8))"},
		{"integers", "UInt8", "Nullable(Int16)", "Nullable(Int64)"},
		{"a fraction", "Int64", "Float64", "Float64"},
		{"lists", "Array(Array(UInt8))", "Array(Array(Nullable(Nothing)))", "Array(Array(Nullable(UInt8)))"},
		{"lists of other things", "Array(UInt8)", "Array(String)", ""},
		{"a list and its item", "Array(UInt8)", "UInt8", ""},
		{"other things", "String", "UInt8", ""},
		{"intervals are not numbers", "IntervalDay", "Int64", ""},
		{"not known", "", "UInt8", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := columntype.Widest(tt.a, tt.b); got != tt.want {
				t.Errorf("Widest(%s, %s) = %q, want %q", tt.a, tt.b, got, tt.want)
			}
		})
	}
}
