package trigram_test

import (
	"math"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
)

// TestSimilarity has the example from PostgreSQL's documentation, "word" in "two words", and others counted by hand.
func TestSimilarity(t *testing.T) {
	tests := []struct {
		term, text string
		want       float64
	}{
		{"word", "word", 1},
		{"WORD", "two words", 0.8},
		{"word", "two words", 0.8},
		{"visitors", "Daily visitors by country", 1},
		{"visitros", "Daily visitors by country", 5.0 / 9},
		{"zebra", "Quokka smiles", 0},
		{"", "anything", 0},
		{"--", "anything", 0},
		{"anything", "", 0},
		{"größe", "Die GRÖSSE ist Größe", 1},
	}
	for _, tt := range tests {
		if got := trigram.New(tt.term).Similarity(tt.text); math.Abs(got-tt.want) > 0.001 {
			t.Errorf("New(%q).Similarity(%q) = %v, want %v", tt.term, tt.text, got, tt.want)
		}
	}
}

// FuzzSimilarity checks invariants for any two texts.
func FuzzSimilarity(f *testing.F) {
	f.Add("visitors", "Daily visitors")
	f.Add("a b a", "b a b a c")
	f.Add("\xff", "ß")
	f.Fuzz(func(t *testing.T, term, text string) {
		if len(term) > 200 || len(text) > 400 {
			return
		}
		got := trigram.New(term).Similarity(text)
		if got < 0 || got > 1 {
			t.Errorf("New(%q).Similarity(%q) = %v", term, text, got)
		}
		if whole := trigram.New(text).Similarity(text); whole != 0 && whole != 1 {
			t.Errorf("New(%q).Similarity of itself = %v", text, whole)
		}
	})
}
