// Package trigram finds texts similar to a search term by their trigrams, as PostgreSQL's pg_trgm does.
package trigram

import (
	"slices"
	"strings"
	"unicode"
)

// Term is a search term, prepared for comparison with many texts.
type Term struct{ grams map[string]bool }

// New returns the term for a text. It ignores case and everything that is not a letter or digit.
func New(text string) Term {
	t := Term{grams: map[string]bool{}}
	for _, gram := range split(text) {
		t.grams[gram] = true
	}
	return t
}

// split returns the trigrams of a text in order. Each word is padded with two spaces before it and one after it.
func split(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	var grams []string
	for _, word := range words {
		padded := []rune("  " + word + " ")
		for i := range len(padded) - 2 {
			grams = append(grams, string(padded[i:i+3]))
		}
	}
	return grams
}

// Similarity returns the similarity, from 0 to 1, of the term and the most similar part of the text: the number of
// trigrams in both, divided by the number in either.
func (t Term) Similarity(text string) float64 {
	if len(t.grams) == 0 {
		return 0
	}
	grams := split(text)
	var shared []int // positions of the term's trigrams in the text; the best part begins and ends with one
	for i, gram := range grams {
		if t.grams[gram] {
			shared = append(shared, i)
		}
	}
	best := 0.0
	for from, begin := range shared {
		seen, common := map[string]bool{}, 0
		next := begin
		for _, end := range shared[from:] {
			for ; next <= end; next++ {
				if !seen[grams[next]] {
					seen[grams[next]] = true
					if t.grams[grams[next]] {
						common++
					}
				}
			}
			best = max(best, float64(common)/float64(len(t.grams)+len(seen)-common))
		}
		if left := len(shared) - from; float64(left)/float64(len(t.grams)) <= best {
			break // parts that begin later share no more than these
		}
	}
	return best
}

// Contains reports whether any of the texts contains the term, ignoring case.
func Contains(term string, texts ...string) bool {
	term = strings.ToLower(term)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), term) })
}
