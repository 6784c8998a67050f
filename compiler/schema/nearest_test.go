package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestNearest(t *testing.T) {
	fields := []string{"timestamp", "distinct_id", "event", "events", "uuid", "größe", "id"}
	tests := []struct{ name, in, want string }{
		{"swapped characters", "evnet", "event"},
		{"a missing character", "timestmp", "timestamp"},
		{"an additional character", "uuiid", "uuid"},
		{"a wrong character", "avent", "event"},
		{"another case", "TIMESTAMP", "timestamp"},
		{"another case and a mistake", "Distinct_Ids", "distinct_id"},
		{"three mistakes in a long name", "distinkt_idds", "distinct_id"},
		{"four mistakes", "distinkt_iddss", ""},
		{"the nearer of two", "eventz", "event"},
		{"the nearer goes before the first by alphabet", "eventss", "events"},
		{"characters, not bytes", "grösse", "größe"},
		{"too short to be near", "ix", ""},
		{"short, in another case", "ID", "id"},
		{"nothing near", "revenue", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := schema.Nearest(tt.in, slices.Values(fields)); got != tt.want {
				t.Errorf("Nearest(%q) = %q, want %q", tt.in, got, tt.want)
			}
			slices.Reverse(fields) // the order of the names does not matter
			if got := schema.Nearest(tt.in, slices.Values(fields)); got != tt.want {
				t.Errorf("Nearest(%q) of the names in reverse = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestNearestLong checks that a name of any length costs next to nothing.
func TestNearestLong(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	if allocs := testing.AllocsPerRun(3, func() {
		if got := schema.Nearest(long, schema.FunctionNames()); got != "" {
			t.Errorf("a long name is near %q", got)
		}
	}); allocs > 5 {
		t.Errorf("a long name costs %v allocations", allocs)
	}
	if got := schema.Nearest("aaaa", slices.Values([]string{long})); got != "" {
		t.Error("a long name is near")
	}
}

func TestNearestFunction(t *testing.T) {
	tests := []struct{ in, want string }{
		{"cuont", "count"},
		{"toIntOrNull", "toInt64OrNull"}, // and not countOrNull, which is as near
		{"toStrng", "toString"},
		{"TOYEAR", "toYear"},
		{"countif", "countIf"},
		{"_toInt", "toInt"}, // hidden functions are not suggested
		{"sleep", ""},
		{"dictGet", ""},
	}
	for _, tt := range tests {
		if got := schema.Nearest(tt.in, schema.FunctionNames()); got != tt.want {
			t.Errorf("Nearest(%q) of functions = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("evnet", "event")
	f.Add("\xff\xfe", "ß")
	f.Fuzz(func(t *testing.T, name, candidate string) {
		got := schema.Nearest(name, slices.Values([]string{candidate}))
		if got != "" && got != candidate {
			t.Errorf("Nearest(%q) of %q alone = %q", name, candidate, got)
		}
		if name != "" && len(name) <= 64 && strings.ToLower(name) == candidate && got != candidate {
			t.Errorf("Nearest(%q) does not find %q", name, candidate)
		}
	})
}
