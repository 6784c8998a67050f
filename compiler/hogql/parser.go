package hogql

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

const (
	// maxText is the longest query in bytes.
	maxText = 1 << 20
	// maxDepth bounds the depth of a tree. ClickHouse allows a depth of 1000 (max_ast_depth), and the later stages wrap each node in up to three
	// functions.
	maxDepth = 256
)

// Parse parses one query (contract: hogql.md, sections 3 to 5). It stops at the first mistake, a *diag.Error with its place in the text. For any
// text, it takes time and memory proportional to the length, and the tree is at most 256 nodes deep.
func Parse(text string) (Query, error) { return ParseWithin(text, nil) }

// ParseWithin is Parse, but spends from the budget of a compile.
func ParseWithin(text string, spend *budget.Budget) (parsed Query, err error) {
	defer recoverBug(&err)
	p, err := newParser(text, "query", spend)
	if err != nil {
		return nil, err
	}
	q := p.setQuery()
	p.accept(tokSemicolon)
	p.end()
	if p.mistake == nil && p.tooDeep() {
		var m depthMeter
		m.rewriter().Query(q)
		p.mistake = m.mistake
	}
	if p.mistake != nil {
		return nil, p.mistake
	}
	return q, nil
}

// ParseExpr parses one expression, like Parse.
func ParseExpr(text string) (Expr, error) { return ParseExprWithin(text, nil) }

// ParseExprWithin is ParseExpr, but spends from the budget of a compile.
func ParseExprWithin(text string, spend *budget.Budget) (parsed Expr, err error) {
	defer recoverBug(&err)
	p, err := newParser(text, "expression", spend)
	if err != nil {
		return nil, err
	}
	e := p.expr(levelAlias)
	p.end()
	if p.mistake == nil && p.tooDeep() {
		var m depthMeter
		m.rewriter().Expr(e)
		p.mistake = m.mistake
	}
	if p.mistake != nil {
		return nil, p.mistake
	}
	return e, nil
}

// recoverBug turns a panic of the parser into an error: texts are also parsed where nothing else recovers, such as in the background. The end of a
// budget is passed on.
func recoverBug(err *error) {
	switch r := recover().(type) {
	case nil:
	case budget.Stop:
		panic(r)
	case error:
		*err = fmt.Errorf("BUG: parsing: %w", r)
	default:
		*err = fmt.Errorf("BUG: parsing: %v", r)
	}
}

// parser walks the tokens of a text. After the first mistake it stays at the last token, tokEnd. That ends every list, so all functions return
// soon, with nodes that are not used.
type parser struct {
	text    string
	base    int    // where the text starts in the whole query
	whole   string // what the text is, for messages
	spend   *budget.Budget
	tokens  []token
	pos     int
	lexical *diag.Error // the mistake of the tokBad, if any
	mistake *diag.Error
	// depth counts the calls on the stack and deepest is its maximum. links counts the nodes stacked without a call, as in a + b + c.
	depth, deepest, links int
}

func newParser(text, whole string, spend *budget.Budget) (*parser, error) {
	if err := checkLength(text, whole); err != nil {
		return nil, err
	}
	if at, ok := invalidUTF8(text); ok {
		return nil, diag.New(diag.SyntaxError, Span{Start: at, End: at + 1}, "The %s is not valid UTF-8", whole)
	}
	spend.Bytes(len(text))
	p := &parser{text: text, whole: whole, spend: spend}
	p.tokens, p.lexical = lex(text)
	if p.at(tokEnd) {
		return nil, diag.New(diag.SyntaxError, Span{}, "The %s is empty", whole)
	}
	return p, nil
}

// CheckLength refuses a query that is too long to be parsed, as parsing it would.
func CheckLength(text string) error { return checkLength(text, "query") }

func checkLength(text, whole string) error {
	if len(text) > maxText {
		return diag.New(diag.SyntaxError, Span{}, "The %s is longer than %d bytes", whole, maxText)
	}
	return nil
}

// invalidUTF8 finds the first byte of text that is not part of a character.
func invalidUTF8(text string) (at int, found bool) {
	if utf8.ValidString(text) {
		return 0, false
	}
	for {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at, true
		}
		at += size
	}
}

// cur returns the next token to parse.
func (p *parser) cur() token { return p.tokens[p.pos] }

// ahead returns the token n places after the current one.
func (p *parser) ahead(n int) token { return p.tokens[min(p.pos+n, len(p.tokens)-1)] }

func (p *parser) at(k kind) bool { return p.tokens[p.pos].kind == k }

func (p *parser) atWord(w word) bool { return p.tokens[p.pos].word == w }

// atWords reports whether the next tokens are these two keywords.
func (p *parser) atWords(first, second word) bool {
	return p.atWord(first) && p.ahead(1).word == second
}

// next consumes the current token.
func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) accept(k kind) bool {
	if !p.at(k) {
		return false
	}
	p.next()
	return true
}

func (p *parser) acceptWord(w word) bool {
	if !p.atWord(w) {
		return false
	}
	p.next()
	return true
}

// expect consumes a token of kind k; what describes it in the mistake.
func (p *parser) expect(k kind, what string) {
	if !p.accept(k) {
		p.unexpected(what)
	}
}

func (p *parser) expectWord(w word, what string) {
	if !p.acceptWord(w) {
		p.unexpected(what)
	}
}

// end checks that everything has been parsed.
func (p *parser) end() {
	if p.mistake == nil && !p.at(tokEnd) {
		advice := p.strayAdvice()
		p.unexpected("the end of the " + p.whole)
		if p.mistake != p.lexical {
			p.mistake.Advice = advice
		}
	}
}

// textOf returns the text of a token.
func (p *parser) textOf(t token) string { return p.textAt(t.span()) }

// textAt returns the text at a place.
func (p *parser) textAt(at Span) string { return p.text[at.Start-p.base : at.End-p.base] }

// start returns the place where the next node starts.
func (p *parser) start() int { return int(p.tokens[p.pos].start) }

// from returns the span from start to the end of the last consumed token.
func (p *parser) from(start int) Span {
	if p.pos == 0 {
		return Span{Start: start, End: start}
	}
	return Span{Start: start, End: int(p.tokens[p.pos-1].end)}
}

// fail records the first mistake and moves to the end of the tokens.
func (p *parser) fail(code diag.Code, at Span, format string, args ...any) {
	if p.mistake == nil {
		p.mistake = diag.New(code, at, format, args...)
	}
	p.pos = len(p.tokens) - 1
}

// refuse is fail with a syntax error.
func (p *parser) refuse(at Span, format string, args ...any) {
	p.fail(diag.SyntaxError, at, format, args...)
}

// unexpected fails at the current token.
func (p *parser) unexpected(expected string) {
	t := p.cur()
	switch {
	case t.kind == tokBad && p.mistake == nil:
		p.mistake = p.lexical
		p.pos = len(p.tokens) - 1
	case t.kind == tokEnd:
		p.refuse(t.span(), "Unexpected end of the %s, expected %s", p.whole, expected)
	case t.kind == tokQuoted || t.kind == tokString:
		p.refuse(t.span(), "Unexpected %s, expected %s", clip(p.textOf(t)), expected)
	default:
		p.refuse(t.span(), "Unexpected '%s', expected %s", clip(p.textOf(t)), expected)
	}
}

// badExpr returns the expression used after a mistake.
func badExpr() Expr { return &Const{} }

// enter starts a production that can contain itself; leave ends it. If enter returns false, the text is nested too deep and the production must
// return at once.
func (p *parser) enter() bool {
	p.spend.Nodes(1)
	p.depth++
	p.deepest = max(p.deepest, p.depth)
	if p.depth > maxDepth {
		p.refuse(p.cur().span(), "The query is nested deeper than %d levels", maxDepth)
		return false
	}
	return true
}

func (p *parser) leave() { p.depth-- }

// tooDeep reports whether the tree may be deeper than maxDepth, so that it must be measured.
func (p *parser) tooDeep() bool { return p.deepest+p.links > maxDepth }

// depthMeter finds a node of a tree that is too deep. It never descends deeper itself.
type depthMeter struct {
	depth   int
	mistake *diag.Error
}

func (m *depthMeter) enter(at Span) bool {
	if m.mistake == nil && m.depth >= maxDepth {
		m.mistake = diag.New(diag.SyntaxError, at, "The query is nested deeper than %d levels: long chains of operators count too", maxDepth)
	}
	m.depth++
	return m.mistake == nil
}

func (m *depthMeter) rewriter() *Rewriter {
	r := new(Rewriter)
	r.Expr = func(e Expr) Expr {
		if m.enter(e.At()) {
			r.ExprChildren(e)
		}
		m.depth--
		return e
	}
	r.Query = func(q Query) Query {
		if m.enter(q.At()) {
			r.QueryChildren(q)
		}
		m.depth--
		return q
	}
	r.Table = func(t Table) Table {
		if m.enter(t.At()) {
			r.TableChildren(t)
		}
		m.depth--
		return t
	}
	return r
}

// Names.

// isName reports whether a token can be a name; without is the first class of keywords that cannot.
func isName(t token, without keywordUse) bool {
	return t.kind == tokQuoted || t.kind == tokName && keywordUses[t.word] < without
}

// atName reports whether the next token is an identifier that is not part of the grammar.
func (p *parser) atName() bool { return isName(p.cur(), reserved) }

// atBareAlias reports whether the next token is an alias without AS.
func (p *parser) atBareAlias() bool { return isName(p.cur(), noBareAlias) }

// nameOf returns the Name for a token that is one.
func (p *parser) nameOf(t token) Name {
	n := Name{Pos: t.span(), Text: p.textOf(t)}
	if t.kind == tokQuoted || t.kind == tokString {
		n.Quoted, n.Double = true, p.textOf(t)[0] == '"'
		n.Text = p.contentOf(t)
	}
	return n
}

// contentOf returns the value of a quoted token.
func (p *parser) contentOf(t token) string {
	s := p.textOf(t)
	if inner := s[1 : len(s)-1]; !t.escaped {
		return inner
	}
	return unescape(s[1:len(s)-1], s[0])
}

// name parses an identifier; what describes it in the mistake.
func (p *parser) name(what string) Name {
	if t := p.cur(); t.kind == tokName && keywordUses[t.word] >= constantWord {
		p.refuse(t.span(), "'%s' is a reserved word: put it in backquotes to use it as %s", p.textOf(t), what)
		return Name{}
	}
	if !p.atName() {
		p.unexpected(what)
		return Name{}
	}
	return p.nameOf(p.next())
}

// memberName parses a name after a dot, where keywords are not special.
func (p *parser) memberName() Name {
	if !p.at(tokName) && !p.at(tokQuoted) {
		p.unexpected("a name")
		return Name{}
	}
	return p.nameOf(p.next())
}

// names parses (a, b, …).
func (p *parser) names(what string) []Name {
	p.expect(tokLParen, "'('")
	var out []Name
	for {
		out = append(out, p.name(what))
		if !p.accept(tokComma) || p.at(tokRParen) {
			break
		}
	}
	p.expect(tokRParen, "',' or ')'")
	return out
}

// alias parses the name of a column, with or without AS before it.
func (p *parser) alias(what string) Name {
	if !p.at(tokString) {
		return p.plainAlias(what)
	}
	n := p.nameOf(p.next())
	switch {
	case n.Text == "":
		p.refuse(n.Pos, "An identifier must not be empty")
	case strings.Contains(n.Text, "%"):
		p.refuse(n.Pos, `The HogQL identifier "%s" is not permitted as it contains the "%%" character`, clip(n.Text))
	}
	p.checkAlias(n)
	return n
}

// plainAlias parses the name of a table or column that is not in single quotes.
func (p *parser) plainAlias(what string) Name {
	var n Name
	if p.atWord(wordNull) || p.atWord(wordTrue) || p.atWord(wordFalse) {
		n = p.nameOf(p.next())
	} else {
		n = p.name(what)
	}
	p.checkAlias(n)
	return n
}

// checkAlias refuses names that are not allowed as an alias (contract: hogql.md, section 6). In quotes, a constant is an ordinary name; the name of
// the project's column is not.
func (p *parser) checkAlias(n Name) {
	for _, reserved := range [...]string{"team_id", "true", "false", "null"} {
		if strings.EqualFold(n.Text, reserved) && (!n.Quoted || reserved == "team_id") {
			p.refuse(n.Pos, `"%s" cannot be an alias or identifier, as it's a reserved keyword`, n.Text)
		}
	}
}

// isPlain reports whether a name needs no quotes where keywords are not special.
func isPlain(s string) bool {
	for i := range len(s) {
		if !isNamePart(s[i]) {
			return false
		}
	}
	return s != "" && isNameStart(s[0])
}
