package hogql

import (
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
)

// Room that texts get at first, in bytes: few are longer.
const (
	roomForQuery = 256
	roomForExpr  = 32
)

// Print gives the text of q, on one line. Parse makes the same tree of it, but for the places and for quotes around names
// that may go without.
func Print(q Query) string { return PrintWithin(q, nil) }

// PrintWithin is Print that spends from the budget of a compile: a tree whose parts are shared is longer as text.
func PrintWithin(q Query, spend *budget.Budget) string {
	p := printer{spend: spend}
	p.text.Grow(roomForQuery)
	p.query(q)
	return p.text.String()
}

// PrintExpr gives the text of e, in the way of Print.
func PrintExpr(e Expr) string {
	var p printer
	p.text.Grow(roomForExpr)
	p.expr(e, levelAlias)
	return p.text.String()
}

// FunctionForm gives the text of e with functions for operators, as plus(1, 2): the name of a column that has neither an
// alias nor a name (contract: hogql.md, section 1).
func FunctionForm(e Expr) string { return FunctionFormWithin(e, nil) }

// FunctionFormWithin is FunctionForm that spends from the budget of a compile.
func FunctionFormWithin(e Expr, spend *budget.Budget) string {
	p := printer{functions: true, spend: spend}
	p.text.Grow(roomForExpr)
	p.expr(e, levelAlias)
	return p.text.String()
}

// longestExcerpt bounds an excerpt in bytes: what a message has room for.
const longestExcerpt = 200

// Excerpt gives the text of e for a message, in the way of Print. One that is long is cut, and whole is false.
func Excerpt(e Expr) (text string, whole bool) {
	p := printer{most: longestExcerpt + 1}
	p.expr(e, levelAlias)
	text = p.text.String()
	if len(text) <= longestExcerpt {
		return text, true
	}
	return strings.ToValidUTF8(text[:longestExcerpt], "") + "…", false
}

// ShortForm gives at least the first most bytes of FunctionForm, as far as there are so many, with the word value in place of
// each text: the values of clients have no place in what is logged.
func ShortForm(e Expr, most int) string {
	p := printer{functions: true, quiet: true, most: most}
	p.text.Grow(roomForExpr)
	p.expr(e, levelAlias)
	return p.text.String()
}

// printer writes trees as text.
type printer struct {
	text      strings.Builder
	functions bool // operators are written as functions
	quiet     bool // texts are not shown
	most      int  // bytes after which nothing more is wanted; 0 for no end
	spend     *budget.Budget
}

func (p *printer) put(texts ...string) {
	for _, s := range texts {
		p.spend.Bytes(len(s))
		p.text.WriteString(s)
	}
}

// commas writes a list.
func commas[T any](p *printer, list []T, write func(T)) {
	for i, x := range list {
		if i > 0 {
			p.put(", ")
		}
		write(x)
	}
}

// item writes an element of a list.
func (p *printer) item(e Expr) { p.expr(e, levelAlias) }

// ident writes a name that comes first in a chain, or alone.
func (p *printer) ident(s string) {
	if isPlain(s) && standings[lookupWord(s)] == standsFree {
		p.put(s)
		return
	}
	p.quote(s, '`')
}

// link writes a name that follows a dot.
func (p *printer) link(n Name) {
	if n.Index || isPlain(n.Text) {
		p.put(n.Text)
		return
	}
	p.quote(n.Text, '`')
}

func (p *printer) chain(names []Name) {
	for i, n := range names {
		if i == 0 {
			p.ident(n.Text)
			continue
		}
		p.put(".")
		p.link(n)
	}
}

func (p *printer) name(n Name) { p.ident(n.Text) }

// names writes (a, b).
func (p *printer) names(list []Name) {
	p.put("(")
	commas(p, list, p.name)
	p.put(")")
}

// function writes the name of a function.
func (p *printer) function(name string) {
	w := lookupWord(name)
	switch w {
	case wordAnd, wordOr, wordIn, wordLike, wordILike:
		p.put(name)
		return
	case wordCast, wordTryCast, wordColumns, wordInterval, wordDistinct, wordCube, wordRollup, wordGrouping, wordValues:
		p.quote(name, '`')
		return
	default: // all other keywords follow their standing
	}
	if isPlain(name) && standings[w] < standsClose {
		p.put(name)
		return
	}
	p.quote(name, '`')
}

// quote writes s between quotes, with the escapes that the lexer reads.
func (p *printer) quote(s string, quote byte) {
	const hexDigits = "0123456789abcdef"
	p.spend.Bytes(len(s) + 2)
	b := &p.text
	b.WriteByte(quote)
	for i := 0; i < len(s); {
		c := s[i]
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteByte(quote)
}

// Identifier writes a name, in backquotes where it needs them.
func Identifier(name string) string { return PrintExpr(&Field{Chain: []Name{{Text: name}}}) }
