// Package trigram finds texts that are like a search term: by runs of three characters, as PostgreSQL's pg_trgm does.
package trigram

import (
	"slices"
	"strings"
	"unicode"
)

// Term is a search term, ready to be compared with many texts.
type Term struct{ grams map[string]bool }

// New reads a term. Case does not matter, nor does what is neither letter nor digit.
func New(text string) Term {
	t := Term{grams: map[string]bool{}}
	for _, gram := range split(text) {
		t.grams[gram] = true
	}
	return t
}

// split gives the trigrams of a text in order: those of each word, as if two spaces stood before it and one behind.
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

// Similarity tells from 0 to 1 how near the term is to the part of the text that is most like it: the trigrams that both
// have over those that either has.
func (t Term) Similarity(text string) float64 {
	if len(t.grams) == 0 {
		return 0
	}
	grams := split(text)
	var shared []int // where the text has a trigram of the term: a best part begins and ends with one
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
			break // what begins later shares no more than these
		}
	}
	return best
}

// Contains tells whether any of the texts holds the term as it was written, whatever the case.
func Contains(term string, texts ...string) bool {
	term = strings.ToLower(term)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), term) })
}
