package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var errOpenQuote = errors.New("a quote is not closed")

// checkText refuses SQL that could take off the settings sent with it. Even with readonly=1 the engine takes a
// SETTINGS clause in a subquery, and with it another additional_table_filters. The compiler writes no such clause,
// no comment, no heredoc, and names only in quotes; so anything outside quotes that could be the word, or could
// hide it from us, is refused.
func checkText(sql string) error {
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == '\'' || c == '`' || c == '"':
			end := endOfQuote(sql, i)
			if end < 0 {
				return errOpenQuote
			}
			i = end
		case c >= utf8.RuneSelf || c == '$' || c == '#' || c == ';':
			return fmt.Errorf("%q stands outside quotes", sql[i:i+1])
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
			i++
		}
	}
	return nil
}

// endOfQuote gives the index behind the quote that opens at start, or -1.
func endOfQuote(sql string, start int) int {
	for i := start + 1; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case sql[start]: // a doubled quote is read as two quoted parts, which comes to the same
			return i + 1
		}
	}
	return -1
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
