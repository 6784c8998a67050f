package api

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
