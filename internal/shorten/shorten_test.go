package shorten_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		name, in  string
		most      int
		cut, text string
	}{
		{"nothing", "", 0, "", ""},
		{"shorter", "ab", 3, "ab", "ab"},
		{"as long", "abc", 3, "abc", "abc"},
		{"longer", "abcd", 3, "abc", "abc…"},
		{"no room", "abcd", 0, "", "…"},
		{"as long, of several bytes", "€", 3, "€", "€"},
		{"half a character at the end", "a€b", 2, "a", "a…"},
		{"almost a whole character at the end", "a€b", 3, "a", "a…"},
		{"a whole character at the end", "a€b", 4, "a€", "a€…"},
		{"no room for the first character", "😀😀", 3, "", "…"},
		{"not UTF-8, and short enough", "a\xff", 2, "a\xff", "a\xff"},
		{"not UTF-8, and too long", "a\xffbc", 3, "ab", "ab…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shorten.Cut(tt.in, tt.most); got != tt.cut {
				t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.cut)
			}
			if got := shorten.Text(tt.in, tt.most); got != tt.text {
				t.Errorf("Text(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.text)
			}
		})
	}
}
