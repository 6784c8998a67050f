package trigram_test

import (
	"math"
	"strings"
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
		{"ab zq", "ab ab ab ab", 0.5},
		{"ab zq", "ab x zq", 0.75},
	}
	for _, tt := range tests {
		if got := trigram.New(tt.term).Similarity(tt.text); math.Abs(got-tt.want) > 0.001 {
			t.Errorf("New(%q).Similarity(%q) = %v, want %v", tt.term, tt.text, got, tt.want)
		}
	}
}

// TestSimilarityOfLongTexts has texts of 1 MiB in which the term's trigrams are everywhere: a comparison of all parts would take 10¹¹ steps.
func TestSimilarityOfLongTexts(t *testing.T) {
	for _, tt := range longTexts() {
		if got := trigram.New(tt.term).Similarity(tt.text); math.Abs(got-tt.want) > 0.001 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

type longText struct {
	name, term, text string
	want             float64
}

func longTexts() []longText {
	var words []string // with different trigrams, three each
	for i := range rune(50) {
		words = append(words, string([]rune{'㐀' + 2*i, '㐁' + 2*i}))
	}
	const length = 1 << 20
	again := func(part string) string { return strings.Repeat(part, length/len(part)) }
	term := strings.Join(words, " ")
	return []longText{
		{"few trigrams", "ab zq", again("ab "), 0.5},
		{"the whole term", term, again(term + " "), 1},
		{"half of the term among other words", term, again(strings.Join(words[:25], " ") + strings.Repeat(" x y z", 100) + " "), 0.5},
	}
}

// bestOfAllParts is Similarity by definition.
func bestOfAllParts(term, text string) float64 {
	wanted := map[string]bool{}
	for _, gram := range trigram.Split(term) {
		wanted[gram] = true
	}
	grams, best := trigram.Split(text), 0.0
	for begin := range grams {
		seen, common := map[string]bool{}, 0
		for _, gram := range grams[begin:] {
			if !seen[gram] && wanted[gram] {
				common++
			}
			seen[gram] = true
			best = max(best, float64(common)/float64(len(wanted)+len(seen)-common))
		}
	}
	return best
}

func BenchmarkSimilarity(b *testing.B) {
	for _, tt := range longTexts() {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			term := trigram.New(tt.term)
			for b.Loop() {
				term.Similarity(tt.text)
			}
		})
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
		if want := bestOfAllParts(term, text); got != want {
			t.Errorf("New(%q).Similarity(%q) = %v, want %v", term, text, got, want)
		}
		if got < 0 || got > 1 {
			t.Errorf("New(%q).Similarity(%q) = %v", term, text, got)
		}
		if whole := trigram.New(text).Similarity(text); whole != 0 && whole != 1 {
			t.Errorf("New(%q).Similarity of itself = %v", text, whole)
		}
	})
}
