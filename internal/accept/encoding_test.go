package accept_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/accept"
)

func TestWeight(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   int
	}{
		{"", 0},
		{"br", 1000},
		{"gzip, BR", 1000},
		{"gzip;q=1.0, br;q=0.25", 250},
		{"br ; Q=0.5", 500},
		{"*", 1000},
		{"*;q=0.1, br;q=0", 0},
		{"br;q=0, *", 0},
		{"gzip, *;q=0.3", 300},
		{"gzip", 0},
		{"br;q=2", 0},
		{"br;q=0.1234, gzip", 0},
		{"brotli, xbr", 0},
		{" , ,br", 1000},
	} {
		if got := accept.Weight(tt.header, "br"); got != tt.want {
			t.Errorf("Weight(%q, br) = %d, want %d", tt.header, got, tt.want)
		}
	}
}

func FuzzNextEncoding(f *testing.F) {
	for _, seed := range []string{"gzip;q=1.0, br;q=0.25", "*;q=0.1,,br", ";;,q=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for rest := header; rest != ""; {
			name, weight, after := accept.NextEncoding(rest)
			if len(after) >= len(rest) || weight < 0 || weight > accept.Full || name == "" && after != "" {
				t.Fatalf("NextEncoding(%q) = %q, %d, %q", rest, name, weight, after)
			}
			rest = after
		}
	})
}
