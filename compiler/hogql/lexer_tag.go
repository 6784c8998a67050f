package hogql

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// nested is a construct around the current place in which other rules for tokens apply.
type nested struct {
	in nest
	// braces counts the open braces of the expression at the current place; 0 outside of expressions.
	braces int
	// at is where the construct starts.
	at int
}

// nest is a kind of nested.
type nest uint8

const (
	inTemplate nest = iota // f'…'
	inTag                  // <name … up to the > or />
	inChildren             // after <name …>, up to </
	inClosing              // </name up to the >
)

// special reads the tokens of a tag that differ from those of the text around it. It returns false inside an expression.
func (l *lexer) special(rest string) bool {
	n := len(l.open)
	if n == 0 || l.open[n-1].braces > 0 {
		return false
	}
	switch l.open[n-1].in {
	case inTag, inClosing:
		l.inTag(rest)
	case inChildren:
		l.inChildren(rest)
	case inTemplate: // templateText has read all of it
		return false
	}
	return true
}

// tag reads the < that starts a tag. It returns false for the operator <, which follows an operand or has no name after it.
func (l *lexer) tag(rest string) bool {
	if len(rest) < 2 || !isTagStart(rest[1]) || !l.operandNext() {
		return false
	}
	l.openTag()
	return true
}

func (l *lexer) openTag() {
	l.open = append(l.open, nested{in: inTag, at: l.pos})
	l.emit(tokTag, 1)
}

// operandNext reports whether an operand, rather than an operator, must follow the tokens so far.
func (l *lexer) operandNext() bool {
	if len(l.tokens) == 0 {
		return true
	}
	t := l.tokens[len(l.tokens)-1]
	switch t.kind {
	case tokName:
		if n := len(l.tokens); n > 1 && (l.tokens[n-2].kind == tokDot || l.tokens[n-2].kind == tokNullDot) {
			return false
		}
		s := keywordUses[t.word]
		return t.word == wordBy || t.word == wordDistinct || s != anyName && s != noBareAlias && s != constantWord
	case tokQuoted, tokNumber, tokPathIndex, tokString, tokTemplateEnd, tokRParen, tokRBracket, tokRBrace, tokTagClosed, tokTagEnd:
		return false
	default: // operators and opening brackets
	}
	return true
}

// inTag reads a token between the < and the > of a tag.
func (l *lexer) inTag(rest string) {
	n := 0
	for n < len(rest) && isTagPart(rest[n]) {
		n++
	}
	switch c := rest[0]; {
	case n > 0 && isTagStart(c):
		l.emit(tokName, n)
	case c == '=':
		l.emit(tokEquals, 1)
	case c == '\'':
		l.quoted(tokString, "string")
	case c == '"':
		l.bad(l.pos, l.pos+1, `A text in a tag is written in single quotes`)
	case c == '{':
		l.open[len(l.open)-1].braces = 1
		l.emit(tokLBrace, 1)
	case strings.HasPrefix(rest, "/>") && l.open[len(l.open)-1].in == inTag:
		l.emit(tokTagClosed, 2)
		l.open = l.open[:len(l.open)-1]
	case c == '>':
		l.emit(tokTagEnd, 1)
		if tag := &l.open[len(l.open)-1]; tag.in == inTag {
			tag.in = inChildren
		} else {
			l.open = l.open[:len(l.open)-1]
		}
	default:
		r, size := utf8.DecodeRuneInString(rest)
		if unicode.IsSpace(r) {
			l.pos += size
			return
		}
		l.bad(l.pos, l.pos+size, "Unexpected character %q in a tag: a value is a text in single quotes or an expression in braces", r)
	}
}

// inChildren reads the text between a tag and its closing tag up to the next < or {, or the token that starts there.
func (l *lexer) inChildren(rest string) {
	n := strings.IndexAny(rest, "<{")
	if n < 0 {
		n = len(rest)
	}
	top := len(l.open) - 1
	switch {
	case n > 0:
		l.emit(tokTagText, n)
	case rest[0] == '{':
		l.open[top].braces = 1
		l.emit(tokLBrace, 1)
	case strings.HasPrefix(rest, "</"):
		l.open[top].in = inClosing
		l.emit(tokTagClosing, 2)
	case len(rest) > 1 && isTagStart(rest[1]):
		l.openTag()
	default:
		l.bad(l.pos, l.pos+1, "Unexpected '<' in the text of a tag: write {'<'}")
	}
}

// unclosed reports what is still open at the end of the text.
func (l *lexer) unclosed() {
	top := l.open[len(l.open)-1]
	if top.in == inTemplate {
		l.bad(l.pos, l.pos, "Unterminated template string: expected '}'")
		return
	}
	l.bad(top.at, top.at+1, "Unterminated tag: it has no closing tag, and does not end with '/>'")
}

func isTagStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func isTagPart(c byte) bool { return isTagStart(c) || isDigit(c) || c == '-' }
