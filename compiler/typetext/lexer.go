package typetext

import (
	"fmt"
	"strings"
)

type kind uint8

const (
	end    kind = iota
	word        // a name without quotes
	quoted      // a name in backquotes or double quotes
	text        // '…'
	number      // digits, perhaps after a minus
	sign        // one of ( ) , =
)

// token is a piece of the text; value is its meaning, without quotes and escapes.
type token struct {
	kind       kind
	start, end int
	value      string
}

// next reads the next token.
func (p *parser) next() {
	at := p.token.end
	for at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[at]) >= 0 {
		at++
	}
	p.token = token{start: at, end: at}
	if at == len(p.text) {
		return
	}
	switch c := p.text[at]; {
	case letter(c):
		p.run(word, func(c byte) bool { return letter(c) || digit(c) })
	case digit(c), c == '-':
		p.run(number, digit)
	case strings.IndexByte("(),=", c) >= 0:
		p.run(sign, func(byte) bool { return false })
	case c == '\'':
		p.quote(text, c)
	case c == '`', c == '"':
		p.quote(quoted, c)
	default:
		p.token.end++
		p.fail(p.token, "Unexpected %q in a type", c)
	}
}

// run reads a token: the current byte, and all following bytes for which in returns true.
func (p *parser) run(k kind, in func(byte) bool) {
	at := p.token.start + 1
	for at < len(p.text) && in(p.text[at]) {
		at++
	}
	p.token.kind, p.token.end, p.token.value = k, at, p.text[p.token.start:at]
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// escapes maps the letter after a backslash to the character that it means.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '0': 0, '\\': '\\', '\'': '\'', '"': '"', '`': '`'}

// quote reads quoted text, in which a doubled quote means one.
func (p *parser) quote(k kind, mark byte) {
	var value strings.Builder
	for at := p.token.start + 1; at < len(p.text); at++ {
		c := p.text[at]
		follows := at+1 < len(p.text)
		switch {
		case c == '\\' && follows:
			at++
			meant, ok := escapes[p.text[at]]
			if !ok {
				p.fail(token{start: at - 1, end: at + 1}, "Unknown escape in a type: %q", p.text[at-1:at+1])
				return
			}
			value.WriteByte(meant)
		case c == mark && follows && p.text[at+1] == mark:
			at++
			value.WriteByte(mark)
		case c == mark:
			p.token.kind, p.token.end, p.token.value = k, at+1, value.String()
			return
		default:
			value.WriteByte(c)
		}
	}
	p.token.end = len(p.text)
	p.fail(p.token, "A quote in a type is not closed")
}

// write writes a text or a name in quotes.
func (p *parser) write(mark byte, value string) {
	p.out.WriteByte(mark)
	for i := range len(value) {
		c := value[i]
		if at := strings.IndexByte(unwritten, c); at >= 0 {
			p.out.WriteByte('\\')
			c = "ntrbf0"[at]
		} else if c == '\\' || c == mark {
			p.out.WriteByte('\\')
		}
		p.out.WriteByte(c)
	}
	p.out.WriteByte(mark)
}

// unwritten are the characters written as escapes, in the same order as the letters of those.
const unwritten = "\n\t\r\b\f\x00"

// shown returns a token for messages.
func (p *parser) shown(t token) string {
	if t.kind == end {
		return "end"
	}
	return fmt.Sprintf("%q", p.text[t.start:t.end])
}
