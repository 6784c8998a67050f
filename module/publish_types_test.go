package module

import "testing"

func TestWidest(t *testing.T) {
	tests := []struct{ name, a, b, want string }{
		{"the same", "UInt8", "UInt8", "UInt8"},
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
		{"intervals are no numbers", "IntervalDay", "Int64", ""},
		{"not known", "", "UInt8", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := widest(tt.a, tt.b); got != tt.want {
				t.Errorf("widest(%s, %s) = %q, want %q", tt.a, tt.b, got, tt.want)
			}
		})
	}
}
