package api

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestSearchWords: each word of a search counts once, and a search is short: lists look for its words in every record.
func TestSearchWords(t *testing.T) {
	tests := []struct {
		search, text string
		want         bool
	}{
		{"", "anything", true},
		{" ,\t", "anything", true},
		{"Sign up", "user SIGNED_UP", true},
		{"up,sign", "signed up", true},
		{"sign out", "signed up", false},
		{strings.Repeat("ä ", 100), "Ä", true},
	}
	for _, tt := range tests {
		words, err := SearchWords(&Input{Request: httptest.NewRequest("GET", "/?search="+url.QueryEscape(tt.search), nil)})
		if err != nil || words.In(tt.text) != tt.want {
			t.Errorf("%q finds %q: %t, %v, want %t", tt.search, tt.text, !tt.want, err, tt.want)
		}
		if len(words) > 2 {
			t.Errorf("%q has %d words", tt.search, len(words))
		}
	}
	if _, err := SearchWords(&Input{Request: httptest.NewRequest("GET", "/?search="+strings.Repeat("a", 201), nil)}); err == nil {
		t.Error("201 characters are searched for")
	}
}
