package trends

import "testing"

func TestNatural(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		want       int
	}{
		{"letters", "edge", "safari", -1},
		{"case says nothing", "Edge", "eDGE", 0},
		{"case does not come first", "edge", "Safari", -1},
		{"numbers by their size", "v9", "V10", -1},
		{"numbers within a text", "a10b", "a9c", 1},
		{"numbers before letters", "9", "a", -1},
		{"leading zeros", "007", "7", 0},
		{"zero and nothing", "a", "a0", -1},
		{"a front of the other", "a1", "a1b", -1},
		{"more digits than a number of 64 bits has", "99999999999999999999", "100000000000000000000", -1},
		{"empty", "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := natural(tt.a, tt.b); got != tt.want {
				t.Errorf("natural(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
			}
			if got := natural(tt.b, tt.a); got != -tt.want {
				t.Errorf("natural(%q, %q) = %d, want %d", tt.b, tt.a, got, -tt.want)
			}
		})
	}
}
