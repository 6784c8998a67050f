package physical_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

func TestKindsOfType(t *testing.T) {
	for typ, want := range map[string]physical.Kinds{
		"String": physical.Texts, "Int64": physical.Wholes | physical.BigWholes, "UInt64": physical.BigWholes, "Float64": physical.Floats, "Bool": physical.Booleans,
		"Array(Nullable(Int64))": physical.Arrays, "Array(JSON(max_dynamic_types=16, max_dynamic_paths=64))": physical.Arrays, "Array(Dynamic)": physical.Arrays,
		"Date": physical.Earlier, "Int128": physical.Earlier, "": physical.Earlier, "Array(": physical.Earlier, "Nullable(String)": physical.Earlier,
	} {
		if got := physical.KindsOfType(typ); got != want {
			t.Errorf("%s: %b, want %b", typ, got, want)
		}
	}
}

// FuzzKindsOfType: a type has kinds, or is one that our values never get.
func FuzzKindsOfType(f *testing.F) {
	for _, typ := range []string{"String", "Array(Dynamic)", "Array", "Tuple(a Int64)", ""} {
		f.Add(typ)
	}
	f.Fuzz(func(t *testing.T, typ string) {
		kinds := physical.KindsOfType(typ)
		if kinds == 0 || kinds.Known() == (kinds == physical.Earlier) {
			t.Errorf("%q: %b", typ, kinds)
		}
	})
}
