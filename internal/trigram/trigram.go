// Package trigram finds texts similar to a search term by their trigrams, as PostgreSQL's pg_trgm does.
package trigram

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Term is a search term, prepared for comparison with many texts.
type Term struct{ grams map[string]int } // with their numbers, from 0

// New returns the term for a text. It ignores case and everything that is not a letter or digit.
func New(text string) Term {
	numbers := map[string]int{}
	for _, gram := range split(text) {
		if _, ok := numbers[gram]; !ok {
			numbers[gram] = len(numbers)
		}
	}
	return Term{numbers}
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
// trigrams in both, divided by the number in either. The time it takes grows with the text and with the term, but not with the
// square of either.
func (t Term) Similarity(text string) float64 {
	if len(t.grams) == 0 {
		return 0
	}
	grams, kinds := t.number(split(text))
	best := 0.0
	seenFrom := make([]int, kinds) // 1 + where the last part that has the trigram begins
	for begin, first := range grams {
		if first >= len(t.grams) {
			continue // the best part begins with a trigram of the term
		}
		seen, common := 0, 0
		for at, gram := range grams[begin:] {
			if at > 0 && gram == first {
				break // a part that begins after first has the same trigrams from here on
			}
			if seenFrom[gram] == begin+1 {
				continue
			}
			seenFrom[gram] = begin + 1
			seen++
			if gram < len(t.grams) {
				common++
				best = max(best, float64(common)/float64(len(t.grams)+seen-common))
			}
			if float64(len(t.grams))/float64(seen) <= best {
				break // longer parts are no better, even if they have the whole term
			}
		}
	}
	return best
}

// number returns a number for each of the grams, the same for equal ones, and how many different ones there are. Those of the term have the lowest numbers.
func (t Term) number(grams []string) (numbers []int, kinds int) {
	known := maps.Clone(t.grams)
	numbers = make([]int, len(grams))
	for i, gram := range grams {
		n, ok := known[gram]
		if !ok {
			n = len(known)
			known[gram] = n
		}
		numbers[i] = n
	}
	return numbers, len(known)
}

// Contains reports whether any of the texts contains the term, ignoring case.
func Contains(term string, texts ...string) bool {
	term = strings.ToLower(term)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), term) })
}
