package embedded

import (
	"fmt"
	"slices"
	"strings"
)

// statement has what the server needs to know about a query's text. The engine itself parses it.
type statement struct {
	first string // the first word, in upper case
	// The FORMAT clause at the end of the text: its name, and where the clause begins and ends.
	// For an INSERT that ends with VALUES, the name is Values.
	format                 string
	formatStart, formatEnd int
	tokens                 []token
}

type token struct {
	kind       tokenKind
	start, end int
	depth      int // open parentheses around it
}

type tokenKind uint8

const (
	tokenWord   tokenKind = iota // a name, a keyword, or a number
	tokenString                  // 'text' or a heredoc
	tokenQuoted                  // "name" or `name`
	tokenOther                   // any other character
)

// readStatement scans a query. It accepts any text, and leaves errors to the engine.
func readStatement(text string) statement {
	s := statement{tokens: tokenize(text)}
	words := make([]string, len(s.tokens))
	for i, t := range s.tokens {
		if t.kind == tokenWord {
			words[i] = strings.ToUpper(text[t.start:t.end])
		}
	}
	for i, t := range s.tokens {
		if t.kind == tokenOther && text[t.start] == '(' {
			continue
		}
		s.first = words[i]
		break
	}
	for i, t := range slices.Backward(s.tokens) {
		if t.depth != 0 || t.kind != tokenWord {
			continue
		}
		if words[i] == "FORMAT" && i+1 < len(s.tokens) && s.tokens[i+1].kind == tokenWord && s.endsAfter(words, text, i+2) {
			s.format = text[s.tokens[i+1].start:s.tokens[i+1].end]
			s.formatStart, s.formatEnd = t.start, s.tokens[i+1].end
			break
		}
		if words[i] == "VALUES" && s.first == "INSERT" && s.endsAfter(words, text, i+1) {
			s.format, s.formatStart, s.formatEnd = "Values", t.start, t.end
			break
		}
	}
	return s
}

// endsAfter reports whether only a SETTINGS clause or semicolons follow from token i on.
func (s *statement) endsAfter(words []string, text string, i int) bool {
	for ; i < len(s.tokens); i++ {
		if words[i] == "SETTINGS" {
			return true
		}
		if s.tokens[i].kind != tokenOther || text[s.tokens[i].start] != ';' {
			return false
		}
	}
	return true
}

// hasWord reports whether the statement has the word outside all parentheses.
func (s *statement) hasWord(text, word string) bool {
	for _, t := range s.tokens {
		if t.depth == 0 && t.kind == tokenWord && strings.EqualFold(text[t.start:t.end], word) {
			return true
		}
	}
	return false
}

// into returns the text with a clause that writes the result to an open descriptor, replacing the FORMAT clause if there is
// one. With APPEND, the engine opens an existing file.
func (s *statement) into(text string, fd uintptr, format string) string {
	from, to := s.formatStart, s.formatEnd
	if s.format == "" {
		for _, t := range s.tokens {
			if text[t.start:t.end] != ";" {
				from, to = t.end, t.end
			}
		}
	}
	return fmt.Sprintf("%s INTO OUTFILE '/dev/fd/%d' APPEND FORMAT %s %s", text[:from], fd, format, text[to:])
}

// killedQuery parses KILL QUERY WHERE query_id = '…' [SYNC|ASYNC]: the id, and whether to wait for the end.
// Any other condition is left to the engine.
func (s *statement) killedQuery(text string) (id string, wait, ok bool) {
	at := func(i int) string {
		if i >= len(s.tokens) {
			return ""
		}
		return text[s.tokens[i].start:s.tokens[i].end]
	}
	for i, want := range []string{"KILL", "QUERY", "WHERE", "query_id", "="} {
		if !strings.EqualFold(at(i), want) {
			return "", false, false
		}
	}
	literal := at(5)
	if len(literal) < 2 || literal[0] != '\'' || literal[len(literal)-1] != '\'' || strings.ContainsAny(literal[1:len(literal)-1], `\'`) {
		return "", false, false
	}
	rest := 6
	switch {
	case strings.EqualFold(at(rest), "SYNC"):
		wait, rest = true, rest+1
	case strings.EqualFold(at(rest), "ASYNC"):
		rest++
	}
	for at(rest) == ";" {
		rest++
	}
	if rest != len(s.tokens) && (s.format == "" || s.tokens[rest].start != s.formatStart) {
		return "", false, false
	}
	return literal[1 : len(literal)-1], wait, true
}

// tokenize splits a text like ClickHouse's lexer, without comments and whitespace.
func tokenize(text string) []token {
	var tokens []token
	depth := 0
	for i := 0; i < len(text); {
		start, kind := i, tokenOther
		switch c := text[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			i++
			continue
		case strings.HasPrefix(text[i:], "--"), strings.HasPrefix(text[i:], "# "), strings.HasPrefix(text[i:], "#!"):
			i = after(text, i, "\n")
			continue
		case strings.HasPrefix(text[i:], "/*"):
			i = after(text, i+2, "*/")
			continue
		case c == '\'':
			i, kind = afterQuote(text, i), tokenString
		case c == '"' || c == '`':
			i, kind = afterQuote(text, i), tokenQuoted
		case c == '$' && heredocTag(text[i:]) != "":
			tag := heredocTag(text[i:])
			i, kind = after(text, i+len(tag), tag), tokenString
		case isWord(c):
			for i < len(text) && (isWord(text[i]) || text[i] == '$') {
				i++
			}
			kind = tokenWord
		default:
			i++
			if c == ')' {
				depth = max(depth-1, 0)
			}
		}
		tokens = append(tokens, token{kind, start, i, depth})
		if text[start] == '(' && kind == tokenOther {
			depth++
		}
	}
	return tokens
}

// after returns the position after the next mark at or after i, or the end of the text.
func after(text string, i int, mark string) int {
	if i > len(text) {
		return len(text)
	}
	if n := strings.Index(text[i:], mark); n >= 0 {
		return i + n + len(mark)
	}
	return len(text)
}

// afterQuote returns the position after the quoted text that begins at i. A quote after a backslash and a doubled quote
// do not end it.
func afterQuote(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == quote && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}

// heredocTag returns the $tag$ at the beginning of text, if there is one.
func heredocTag(text string) string {
	for i := 1; i < len(text); i++ {
		if text[i] == '$' {
			return text[:i+1]
		}
		if !isWord(text[i]) {
			break
		}
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
