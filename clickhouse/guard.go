package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	errOpenQuote = errors.New("an unclosed quote")
	errUnopened  = errors.New("a parenthesis that closes none of its own")
)

// checkText refuses SQL that could override the settings sent with it. Even with readonly=1 the engine accepts a
// SETTINGS clause in a subquery, and in it another additional_table_filters. The compiler writes no such clause,
// no comments, no heredocs, and quotes all names. So anything outside quotes that could be that keyword, or hide it
// from this check, is refused.
//
// It also refuses a parenthesis that closes more than was opened, which would end the subquery that the text is put into.
func checkText(sql string) error {
	depth := 0
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == '\'' || c == '`' || c == '"':
			end := endOfQuote(sql, i)
			if end < 0 {
				return errOpenQuote
			}
			i = end
		case c >= utf8.RuneSelf || c == '$' || c == '#' || c == ';':
			return fmt.Errorf("%q outside quotes", sql[i:i+1])
		case strings.HasPrefix(sql[i:], "--") || strings.HasPrefix(sql[i:], "//") || strings.HasPrefix(sql[i:], "/*"):
			return fmt.Errorf("the comment %q", sql[i:i+2])
		case isWord(c):
			start := i
			for i < len(sql) && isWord(sql[i]) {
				i++
			}
			if strings.EqualFold(sql[start:i], "settings") {
				return errors.New("a SETTINGS clause")
			}
		default:
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth < 0 {
				return errUnopened
			}
			i++
		}
	}
	return nil
}

// endOfQuote returns the index after the quoted text that begins at start, or -1.
func endOfQuote(sql string, start int) int {
	for i := start + 1; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case sql[start]: // a doubled quote counts as two quoted parts, with the same result
			return i + 1
		}
	}
	return -1
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
