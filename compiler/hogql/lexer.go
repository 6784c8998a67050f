package hogql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// lexer splits a text into tokens (contract: hogql.md, section 3).
type lexer struct {
	text    string
	base    int // where text starts in the whole query
	pos     int
	tokens  []token
	open    []nested // the template strings and tags around the place, innermost last
	mistake *diag.Error
}

const byteOrderMark = '\ufeff'

// lex returns the tokens of text, ending with tokEnd. Text that is not a token becomes a tokBad, followed only by tokEnd, and a mistake says
// what is wrong with it.
func lex(text string) ([]token, *diag.Error) { return lexAt(text, 0) }

// lexAt is lex for a text that starts at offset base of a longer one. The places of its tokens are in that one.
func lexAt(text string, base int) ([]token, *diag.Error) {
	l := lexer{text: text, base: base, tokens: make([]token, 0, len(text)/4+8)}
	for l.mistake == nil && l.pos < len(text) {
		l.next()
	}
	if l.mistake == nil && len(l.open) > 0 {
		l.unclosed()
	}
	l.pos = len(text)
	l.emit(tokEnd, 0)
	return l.tokens, l.mistake
}

// emit adds a token for the next n bytes and moves past it.
func (l *lexer) emit(k kind, n int) {
	l.tokens = append(l.tokens, token{kind: k, start: offset(l.base + l.pos), end: offset(l.base + l.pos + n)})
	l.pos += n
}

// offset converts a place in the text to the form used in tokens; texts are shorter than maxText.
func offset(n int) int32 {
	return int32(n) //nolint:gosec // Parse takes no text that is longer than maxText.
}

// bad ends the tokens with a mistake.
func (l *lexer) bad(start, end int, format string, args ...any) {
	start, end = l.base+start, l.base+end
	l.mistake = diag.New(diag.SyntaxError, Span{Start: start, End: end}, format, args...)
	l.tokens = append(l.tokens, token{kind: tokBad, start: offset(start), end: offset(end)})
}

// next reads one token, or the whitespace and comments before one.
func (l *lexer) next() {
	rest := l.text[l.pos:]
	if l.special(rest) {
		return
	}
	switch c := rest[0]; {
	case c == ' ' || '\t' <= c && c <= '\r':
		l.pos++
	case isNameStart(c):
		l.name(rest)
	case isDigit(c):
		l.number(rest)
	case c == '\'':
		l.quoted(tokString, "string")
	case c == '"' || c == '`':
		l.quoted(tokQuoted, "quoted identifier")
	case strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "//"):
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		l.pos += n
	case strings.HasPrefix(rest, "/*"):
		n := strings.Index(rest[2:], "*/")
		if n < 0 {
			l.bad(l.pos, l.pos+2, "Unterminated comment: expected '*/'")
			return
		}
		l.pos += 2 + n + 2
	case c == '.' && len(rest) > 1 && isDigit(rest[1]) && !l.dotIsPath():
		l.number(rest)
	case c == '{':
		if n := len(l.open); n > 0 {
			l.open[n-1].braces++
		}
		l.emit(tokLBrace, 1)
	case c == '}':
		l.emit(tokRBrace, 1)
		if n := len(l.open); n > 0 {
			if l.open[n-1].braces--; l.open[n-1].braces == 0 && l.open[n-1].in == inTemplate {
				l.templateText()
			}
		}
	case c == '<' && l.tag(rest):
	default:
		l.operator(rest)
	}
}

// operators are the punctuation tokens: the longest match wins.
var operators = [...]struct {
	text string
	kind kind
}{
	{"=~*", tokIMatch},
	{"!~*", tokNotIMatch},
	{"~*", tokIMatch},
	{"=~", tokMatch},
	{"!~", tokNotMatch},
	{"->", tokArrow},
	{"::", tokCast},
	{"??", tokCoalesce},
	{"?.", tokNullDot},
	{"||", tokConcat},
	{"==", tokEquals},
	{"!=", tokNotEquals},
	{"<>", tokNotEquals},
	{"<=", tokLessOrEquals},
	{">=", tokGreaterOrEquals},
	{"(", tokLParen},
	{")", tokRParen},
	{",", tokComma},
	{".", tokDot},
	{"=", tokEquals},
	{"*", tokStar},
	{"[", tokLBracket},
	{"]", tokRBracket},
	{"<", tokLess},
	{">", tokGreater},
	{"+", tokPlus},
	{"-", tokMinus},
	{"/", tokSlash},
	{"%", tokPercent},
	{"?", tokQuestion},
	{":", tokColon},
	{"~", tokMatch},
	{";", tokSemicolon},
}

// operatorsBy holds, for each first byte, the operators that can start with it.
var operatorsBy = func() (out [utf8.RuneSelf][]int) {
	for i, op := range operators {
		out[op.text[0]] = append(out[op.text[0]], i)
	}
	return out
}()

func (l *lexer) operator(rest string) {
	if c := rest[0]; c < utf8.RuneSelf {
		for _, i := range operatorsBy[c] {
			if op := operators[i]; strings.HasPrefix(rest, op.text) {
				l.emit(op.kind, len(op.text))
				return
			}
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(r) || r == byteOrderMark:
		l.pos += size
	case r == '#':
		l.bad(l.pos, l.pos+1, "Positional references such as #1 are not supported: name the column")
	case unicode.IsLetter(r):
		l.bad(l.pos, l.pos+size, "Unexpected character %q: a name with other letters than A to Z needs backquotes around it", r)
	default:
		l.bad(l.pos, l.pos+size, "Unexpected character %q", r)
	}
}

// name reads an identifier or keyword, or the start of a template string.
func (l *lexer) name(rest string) {
	n := 1
	for n < len(rest) && isNamePart(rest[n]) {
		n++
	}
	if n == 1 && rest[0] == 'f' && len(rest) > 1 && rest[1] == '\'' {
		l.open = append(l.open, nested{in: inTemplate, at: l.pos})
		l.emit(tokTemplate, 2)
		l.templateText()
		return
	}
	l.emit(tokName, n)
	l.tokens[len(l.tokens)-1].word = lookupWord(rest[:n])
}

// afterDot reports whether the previous token is the dot of a path.
func (l *lexer) afterDot() bool {
	n := len(l.tokens)
	return n > 0 && (l.tokens[n-1].kind == tokDot || l.tokens[n-1].kind == tokNullDot)
}

// afterDotMinus reports whether the previous tokens are the dot of a path and a minus.
func (l *lexer) afterDotMinus() bool {
	n := len(l.tokens)
	return n > 1 && l.tokens[n-1].kind == tokMinus && (l.tokens[n-2].kind == tokDot || l.tokens[n-2].kind == tokNullDot)
}

// dotIsPath reports whether a dot belongs to the token directly before it, as in t.1, rather than starting a number, as in .5.
func (l *lexer) dotIsPath() bool {
	n := len(l.tokens)
	if n == 0 || int(l.tokens[n-1].end) != l.base+l.pos {
		return false
	}
	switch l.tokens[n-1].kind {
	case tokName, tokQuoted, tokPathIndex, tokRParen, tokRBracket, tokRBrace:
		return true
	default: // nothing else has elements
	}
	return false
}

// number reads an unsigned number or the index of a path. A name must not follow it directly.
func (l *lexer) number(rest string) {
	k := tokNumber
	n, ok := scanNumber(rest)
	if l.afterDot() || l.afterDotMinus() {
		k = tokPathIndex
		n, ok = digits(rest), true
	}
	if n < len(rest) && isNamePart(rest[n]) {
		ok = false
		for n < len(rest) && isNamePart(rest[n]) {
			n++
		}
	}
	if !ok {
		l.bad(l.pos, l.pos+n, "Malformed number '%s'", clip(rest[:n]))
		return
	}
	l.emit(k, n)
}

// scanNumber returns the length of the number at the start of s, and whether it is complete.
func scanNumber(s string) (n int, ok bool) {
	if len(s) > 1 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			return scanHex(s)
		case 'b', 'B':
			for n = 2; n < len(s) && (s[n] == '0' || s[n] == '1'); n++ {
			}
			return n, n > 2
		}
	}
	n = digits(s)
	if n < len(s) && s[n] == '.' {
		n++
		n += digits(s[n:])
	}
	return scanExponent(s, n, 'e')
}

// scanHex is scanNumber for 0x1F, 0x1.8 and 0x1p-3.
func scanHex(s string) (n int, ok bool) {
	for n = 2; n < len(s) && isHex(s[n]); n++ {
	}
	ok = n > 2
	if n < len(s) && s[n] == '.' {
		for n++; n < len(s) && isHex(s[n]); n++ {
			ok = true
		}
	}
	if !ok {
		return n, false
	}
	return scanExponent(s, n, 'p')
}

// scanExponent reads the exponent at s[n:], if there is one; letter is its first letter in lower case.
func scanExponent(s string, n int, letter byte) (end int, ok bool) {
	if n >= len(s) || s[n]|0x20 != letter {
		return n, true
	}
	n++
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	size := digits(s[n:])
	return n + size, size > 0
}

// quoted reads a string or a quoted identifier.
func (l *lexer) quoted(k kind, what string) {
	start, quote := l.pos, l.text[l.pos]
	end, escaped, ok := l.content(l.pos+1, quote, what)
	if !ok {
		return
	}
	if end == len(l.text) {
		l.bad(start, start+1, "Unterminated %s: expected %c", what, quote)
		return
	}
	if inner := l.text[start+1 : end]; k == tokQuoted {
		if inner == "" {
			l.bad(start, end+1, "An identifier must not be empty")
			return
		}
		if strings.Contains(inner, "%") || escaped && strings.Contains(unescape(inner, quote), "%") {
			l.bad(start, end+1, `The HogQL identifier "%s" is not permitted as it contains the "%%" character`, clip(inner))
			if quote == '"' {
				l.mistake.Hint, l.mistake.Fix = inSingleQuotes(inner)
			}
			return
		}
	}
	l.emit(k, end+1-start)
	l.tokens[len(l.tokens)-1].escaped = escaped
}

// content finds the end of the quoted text that starts at pos: the closing quote, or the end of the text. In a template string (what is "template
// string") it also ends at an opening brace.
func (l *lexer) content(pos int, quote byte, what string) (end int, escaped, ok bool) {
	template := what == templateWhat
	for pos < len(l.text) {
		switch c := l.text[pos]; {
		case c == quote:
			if pos+1 >= len(l.text) || l.text[pos+1] != quote {
				return pos, escaped, true
			}
			escaped = true
			pos += 2
		case template && c == '{':
			return pos, escaped, true
		case c == '\\':
			n := escapeLen(l.text[pos:], quote, template)
			if n == 0 {
				l.badEscape(pos, what)
				return 0, false, false
			}
			escaped = true
			pos += n
		default:
			pos++
		}
	}
	return pos, escaped, true
}

func (l *lexer) badEscape(pos int, what string) {
	if pos+1 >= len(l.text) {
		l.bad(pos, pos+1, "Unterminated %s: it ends with a backslash", what)
		return
	}
	_, size := utf8.DecodeRuneInString(l.text[pos+1:])
	l.bad(pos, pos+1+size, "Unknown escape '%s' in a %s: write \\\\ for a backslash", l.text[pos:pos+1+size], what)
}

const templateWhat = "template string"

// templateText reads a template string up to and including its next opening brace or its closing quote.
func (l *lexer) templateText() {
	start := l.pos
	end, escaped, ok := l.content(start, '\'', templateWhat)
	if !ok {
		return
	}
	if end > start {
		l.emit(tokTemplateText, end-start)
		l.tokens[len(l.tokens)-1].escaped = escaped
	}
	switch {
	case end == len(l.text):
		l.bad(end, end, "Unterminated template string: expected '")
	case l.text[end] == '{':
		l.open[len(l.open)-1].braces = 1
		l.emit(tokLBrace, 1)
	default:
		l.open = l.open[:len(l.open)-1]
		l.emit(tokTemplateEnd, 1)
	}
}

// escapes maps the letter after a backslash to what the escape means, which is empty for \0.
var escapes = map[byte]string{
	'b': "\b", 'f': "\f", 'r': "\r", 'n': "\n", 't': "\t", '0': "", 'a': "\a", 'v': "\v", '\\': "\\",
}

// escapeLen returns the length of the escape at the start of s, 0 if there is none.
func escapeLen(s string, quote byte, template bool) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] == 'x' && len(s) > 3 && isHex(s[2]) && isHex(s[3]) {
		return 4
	}
	if _, ok := escapes[s[1]]; ok || s[1] == quote || template && s[1] == '{' {
		return 2
	}
	return 0
}

// unescape returns the value of the text between quotes, whose escapes the lexer has checked.
func unescape(s string, quote byte) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			i++ // a doubled quote
			b.WriteByte(c)
		case c != '\\':
			b.WriteByte(c)
		case s[i+1] == 'x':
			b.WriteByte(unhex(s[i+2])<<4 | unhex(s[i+3]))
			i += 3
		default:
			i++
			if e, ok := escapes[s[i]]; ok {
				b.WriteString(e)
			} else {
				b.WriteByte(s[i])
			}
		}
	}
	return b.String()
}

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isNameStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '$' }

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) }

// clip shortens a text for a message. It may be unescaped, so it need not be UTF-8.
func clip(s string) string {
	const longest = 40
	if len(s) <= longest {
		return s
	}
	end := longest
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
