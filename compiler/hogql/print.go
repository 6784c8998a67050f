package hogql

import (
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// The initial sizes of texts, in bytes, which few exceed.
const (
	roomForQuery = 256
	roomForExpr  = 32
)

// Print returns the text of q, on one line. Parse turns it back into the same tree, except for places and unnecessary quotes around names.
func Print(q Query) string { return PrintWithin(q, nil) }

// PrintWithin is Print, but spends from the budget of a compile: a tree that shares nodes is longer as text.
func PrintWithin(q Query, spend *budget.Budget) string {
	p := printer{spend: spend}
	p.text.Grow(roomForQuery)
	p.query(q)
	return p.text.String()
}

// PrintExpr returns the text of e, like Print.
func PrintExpr(e Expr) string {
	var p printer
	p.text.Grow(roomForExpr)
	p.expr(e, levelAlias)
	return p.text.String()
}

// FunctionForm returns the text of e with operators written as functions, such as plus(1, 2): the name of a column that has neither an alias nor a
// name (contract: hogql.md, section 1).
func FunctionForm(e Expr) string { return FunctionFormWithin(e, nil) }

// FunctionFormWithin is FunctionForm, but spends from the budget of a compile.
func FunctionFormWithin(e Expr, spend *budget.Budget) string {
	p := printer{functions: true, spend: spend}
	p.text.Grow(roomForExpr)
	p.expr(e, levelAlias)
	return p.text.String()
}

// longestExcerpt is the longest excerpt, in bytes, that fits into a message.
const longestExcerpt = 200

// Excerpt returns the text of e for a message, like Print. A long text is cut, and whole is then false.
func Excerpt(e Expr) (text string, whole bool) {
	p := printer{most: longestExcerpt + 1}
	p.expr(e, levelAlias)
	text = p.text.String()
	return shorten.Text(text, longestExcerpt), len(text) <= longestExcerpt
}

// ShortText returns the text of e for a message, cut where it is long.
func ShortText(e Expr) string {
	text, _ := Excerpt(e)
	return text
}

// ShortForm returns FunctionForm up to at least its first most bytes, with the word value in place of each string: clients' values do not belong
// in logs.
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
	quiet     bool // strings are hidden
	most      int  // bytes after which no more text is needed; 0 for no limit
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

// ident writes a name that stands alone or starts a chain. In the function form, which names columns and is not read again, keywords are names as others.
func (p *printer) ident(s string) {
	if isPlain(s) && (p.functions || keywordUses[lookupWord(s)] == anyName) {
		p.put(s)
		return
	}
	p.quote(s, '`')
}

// link writes a name after a dot.
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
	default: // for other keywords, their use decides
	}
	if isPlain(name) && keywordUses[w] < reserved {
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

// Identifier returns a name as text, in backquotes if necessary.
func Identifier(name string) string { return PrintExpr(&Field{Chain: []Name{{Text: name}}}) }
