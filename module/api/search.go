package api

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
)

// maxSearch is the longest search, in characters: contract api.md section 4.2.
const maxSearch = 200

// SearchText returns what a list is searched for, by the parameter search; empty for no search. The error is a response.
func SearchText(in *Input) (string, error) {
	text := strings.TrimSpace(in.URL.Query().Get("search"))
	if utf8.RuneCountInString(text) > maxSearch {
		return "", Invalid("search", "invalid_input", "Search query must be %d characters or fewer.", maxSearch)
	}
	return text, nil
}

// NameSimilarity is the similarity from which a name that does not contain a search counts as similar.
const NameSimilarity = 0.3

// MatchName returns how a search, with its trigrams, finds a name: "exact", "similar" or, if it does not, nil.
func MatchName(search string, term trigram.Term, name string) *string {
	switch {
	case trigram.Contains(search, name):
		return new("exact")
	case term.Similarity(name) >= NameSimilarity:
		return new("similar")
	}
	return nil
}

// Words are what a text has to contain, in lower case.
type Words []string

// SearchWords returns the words of SearchText, which spaces and commas separate.
func SearchWords(in *Input) (Words, error) {
	text, err := SearchText(in)
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
	slices.Sort(words)
	return slices.Compact(words), err
}

// In reports whether a text contains all words, in any case.
func (w Words) In(text string) bool {
	if len(w) == 0 {
		return true
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(w, func(word string) bool { return !strings.Contains(text, word) })
}
