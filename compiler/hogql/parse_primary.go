package hogql

import (
	"strconv"
	"strings"
)

// primary parses an expression without operators.
func (p *parser) primary() Expr {
	start := p.start()
	switch t := p.cur(); t.kind {
	case tokNumber:
		return p.number(start, false)
	case tokMinus, tokPlus:
		if p.signed(1) {
			p.next()
			return p.number(start, t.kind == tokMinus)
		}
	case tokString:
		p.next()
		return &Const{Pos: t.span(), Value: p.contentOf(t)}
	case tokTemplate:
		return p.template(start)
	case tokLParen:
		return p.parentheses(start)
	case tokLBracket:
		p.next()
		return p.array(start)
	case tokLBrace:
		return p.braces(start)
	case tokStar:
		if p.startsSpread() {
			p.next()
			p.refuse(t.span().To(p.cur().span()), "*COLUMNS(...) is only valid among the arguments of a function. Use COLUMNS(...) instead.")
			return badExpr()
		}
		p.next()
		return p.star(start, nil)
	case tokTag:
		return p.tagExpr()
	case tokQuoted:
		return p.named(start)
	case tokName:
		return p.worded(start, t)
	default: // no expression starts with the other tokens
	}
	p.unexpected("an expression")
	return badExpr()
}

// worded parses an expression that starts with a name, which may be a keyword.
func (p *parser) worded(start int, t token) Expr {
	follows := p.ahead(1).kind
	switch t.word {
	case wordNull:
		p.next()
		return &Const{Pos: t.span()}
	case wordTrue, wordFalse:
		p.next()
		return &Const{Pos: t.span(), Value: t.word == wordTrue}
	case wordInf, wordNaN:
		return p.number(start, false)
	case wordCase:
		return p.caseWhen(start)
	case wordAnd, wordOr, wordIn, wordLike, wordILike:
		if follows == tokLParen {
			return p.call(start)
		}
	case wordCast:
		if follows == tokLParen {
			return p.cast(start)
		}
	case wordTryCast:
		if follows == tokLParen {
			p.refuse(t.span(), "TRY_CAST is not supported: toInt, toFloat and toDateTime give NULL for what they cannot read")
			return badExpr()
		}
	case wordDate, wordTimestamp:
		if follows == tokString {
			return p.timeLiteral(start)
		}
	case wordInterval:
		if p.startsInterval() {
			return p.interval(start)
		}
	case wordArray:
		if follows == tokLBracket {
			p.next()
			p.next()
			return p.array(start)
		}
	case wordTrim:
		if follows == tokLParen && p.trimFunction() != "" {
			return p.trim(start)
		}
	case wordColumns:
		if follows == tokLParen {
			return p.columns(start)
		}
	case wordLambda:
		if names := p.ahead(2).kind; isName(p.ahead(1), reserved) && (names == tokColon || names == tokComma) {
			return p.wordLambda(start)
		}
	default: // other keywords are names here, or nothing
	}
	return p.named(start)
}

// named parses a chain of names, a call or a lambda with one parameter.
func (p *parser) named(start int) Expr {
	switch p.ahead(1).kind {
	case tokLParen:
		if p.atName() {
			return p.call(start)
		}
	case tokArrow:
		param := p.name("a parameter of a lambda")
		p.expect(tokArrow, "'->'")
		body := p.expr(levelAlias)
		return &Lambda{Pos: p.from(start), Params: []string{param.Text}, Body: body}
	default: // anything else follows a chain
	}
	if p.at(tokName) && keywordUses[p.cur().word] == reserved {
		p.unexpected("an expression")
		return badExpr()
	}
	if p.atWords(wordOrder, wordBy) || p.atWords(wordGroup, wordBy) {
		p.unexpected("an expression")
		return badExpr()
	}
	chain := append(make([]Name, 0, p.chainLength()), p.name("a name"))
	for p.accept(tokDot) {
		if p.accept(tokStar) {
			return p.star(start, chain)
		}
		if p.atFromEnd() {
			return p.fromEnd(start, &Field{Pos: p.from(start), Chain: chain}, false)
		}
		chain = append(chain, p.link())
	}
	return &Field{Pos: p.from(start), Chain: chain}
}

// atFromEnd reports whether the -1 of x.-1 comes next.
func (p *parser) atFromEnd() bool { return p.at(tokMinus) && p.ahead(1).kind == tokPathIndex }

// fromEnd parses the -1 of x.-1, which is x[-1].
func (p *parser) fromEnd(start int, x Expr, nullSafe bool) Expr {
	at := p.start()
	p.next()
	n := p.index(p.next())
	return &Index{Pos: p.from(start), X: x, Index: &Const{Pos: p.from(at), Value: -int64(n)}, NullSafe: nullSafe}
}

// chainLength returns the minimum number of names in the chain that starts here.
func (p *parser) chainLength() int {
	n := 1
	for p.ahead(2*n-1).kind == tokDot {
		n++
	}
	return n
}

// link parses a name or index of a chain, after its dot.
func (p *parser) link() Name {
	if t := p.cur(); t.kind == tokPathIndex {
		p.next()
		return Name{Pos: t.span(), Text: strconv.Itoa(p.index(t)), Index: true}
	}
	return p.memberName()
}

// index returns the number in a tokPathIndex.
func (p *parser) index(t token) int {
	n, err := strconv.ParseInt(p.textOf(t), 10, 32)
	if err != nil {
		p.refuse(t.span(), "The index %s is too large", clip(p.textOf(t)))
	}
	return int(n)
}

// star parses what may follow * or t.*.
func (p *parser) star(start int, table []Name) *Star {
	s := &Star{Table: table}
	if p.atWord(wordExclude) && p.ahead(1).kind == tokLParen {
		p.next()
		s.Exclude = p.excluded()
	}
	if p.atWord(wordReplace) && p.ahead(1).kind == tokLParen {
		p.next()
		p.next()
		for p.mistake == nil {
			s.Replace = append(s.Replace, p.requiredAlias("AS and the column to replace"))
			if !p.accept(tokComma) || p.at(tokRParen) {
				break
			}
		}
		p.expect(tokRParen, "',' or ')'")
	}
	s.Pos, s.Columns = p.from(start), s.Exclude != nil || s.Replace != nil
	return s
}

// excluded parses (a, t.b, …).
func (p *parser) excluded() [][]Name {
	p.expect(tokLParen, "'('")
	var out [][]Name
	for p.mistake == nil {
		chain := []Name{p.name("a column to leave out")}
		for p.accept(tokDot) {
			chain = append(chain, p.memberName())
		}
		out = append(out, chain)
		if !p.accept(tokComma) || p.at(tokRParen) {
			break
		}
	}
	p.expect(tokRParen, "',' or ')'")
	return out
}

// requiredAlias parses an expression with its alias.
func (p *parser) requiredAlias(what string) *Alias {
	start := p.start()
	x := p.expr(levelTernary)
	p.expectWord(wordAs, what)
	name := p.alias("a name")
	return &Alias{Pos: p.from(start), X: x, Name: name}
}

// parentheses parses a lambda, a subquery, a tuple, or an expression in parentheses.
func (p *parser) parentheses(start int) Expr {
	if params, ok := p.lambdaParams(); ok {
		return p.lambda(start, params)
	}
	p.next()
	if p.atWord(wordSelect) || p.atWord(wordWith) {
		q := p.setQuery()
		p.expect(tokRParen, "')'")
		return &Subquery{Pos: p.from(start), Query: q}
	}
	inner := p.start()
	x := p.expr(levelAlias)
	if p.accept(tokComma) {
		items := append([]Expr{x}, p.exprs(tokRParen, "',' or ')'")...)
		return &Tuple{Pos: p.from(start), Items: items}
	}
	if member, ok := asMember(x); ok && p.followsSetMember() {
		q := p.setTail(inner, member, true)
		p.expect(tokRParen, "')'")
		return &Subquery{Pos: p.from(start), Query: q}
	}
	p.expect(tokRParen, "',' or ')'")
	return x
}

// asMember returns x as a query if it turns out to be a member of a set operation in parentheses.
func asMember(x Expr) (Query, bool) {
	if sub, ok := x.(*Subquery); ok {
		return sub.Query, true
	}
	if hole, ok := x.(*Placeholder); ok {
		return &QueryPlaceholder{Pos: hole.Pos, X: hole.X}, true
	}
	return nil, false
}

// followsSetMember reports whether the next token can only follow a member of a set operation.
func (p *parser) followsSetMember() bool {
	switch p.cur().word {
	case wordUnion, wordIntersect, wordExcept, wordLimit, wordOffset:
		return true
	case wordOrder:
		return p.ahead(1).word == wordBy
	default: // all other words continue an expression
	}
	return false
}

// lambdaParams looks ahead for (x, y) -> and returns the number of parameters.
func (p *parser) lambdaParams() (count int, ok bool) {
	n := 1
	for isName(p.ahead(n), reserved) {
		count++
		n++
		if p.ahead(n).kind != tokComma {
			break
		}
		n++
	}
	return count, p.ahead(n).kind == tokRParen && p.ahead(n+1).kind == tokArrow
}

// lambda parses (x, y) -> body.
func (p *parser) lambda(start, count int) Expr {
	p.next()
	var params []string
	for range count {
		params = append(params, p.name("a parameter of a lambda").Text)
		p.accept(tokComma)
	}
	p.expect(tokRParen, "')'")
	p.expect(tokArrow, "'->'")
	body := p.expr(levelAlias)
	return &Lambda{Pos: p.from(start), Params: params, Body: body}
}

// wordLambda parses lambda x, y: body.
func (p *parser) wordLambda(start int) Expr {
	p.next()
	var params []string
	for p.mistake == nil {
		params = append(params, p.name("a parameter of a lambda").Text)
		if !p.accept(tokComma) {
			break
		}
	}
	p.expect(tokColon, "',' or ':'")
	body := p.expr(levelAlias)
	return &Lambda{Pos: p.from(start), Params: params, Body: body}
}

// array parses the elements of an array, after its opening bracket.
func (p *parser) array(start int) Expr {
	items := p.exprs(tokRBracket, "',' or ']'")
	return &Array{Pos: p.from(start), Items: items}
}

// braces parses a placeholder or a dict.
func (p *parser) braces(start int) Expr {
	p.next()
	if p.accept(tokRBrace) {
		return &Dict{Pos: p.from(start)}
	}
	x := p.expr(levelAlias)
	if !p.at(tokColon) {
		p.expect(tokRBrace, "'}' or ':'")
		return &Placeholder{Pos: p.from(start), X: x}
	}
	d := new(Dict)
	for p.accept(tokColon) {
		d.Keys = append(d.Keys, x)
		d.Values = append(d.Values, p.expr(levelAlias))
		if !p.accept(tokComma) || p.at(tokRBrace) {
			break
		}
		x = p.expr(levelAlias)
		if !p.at(tokColon) {
			p.unexpected("':'")
		}
	}
	p.expect(tokRBrace, "',' or '}'")
	d.Pos = p.from(start)
	return d
}

// caseWhen parses CASE [x] WHEN … THEN … [ELSE …] END.
func (p *parser) caseWhen(start int) Expr {
	p.next()
	c := new(Case)
	if !p.atWord(wordWhen) {
		c.X = p.expr(levelAlias)
	}
	if !p.atWord(wordWhen) {
		p.unexpected("WHEN")
	}
	for p.acceptWord(wordWhen) {
		when := When{If: p.expr(levelAlias)}
		p.expectWord(wordThen, "THEN")
		when.Then = p.expr(levelAlias)
		c.Whens = append(c.Whens, when)
	}
	if p.acceptWord(wordElse) {
		c.Else = p.expr(levelAlias)
	}
	p.expectWord(wordEnd, "WHEN, ELSE or END")
	c.Pos = p.from(start)
	return c
}

// cast parses CAST(x AS type).
func (p *parser) cast(start int) Expr {
	p.next()
	p.next()
	x := p.expr(levelTernary)
	p.expectWord(wordAs, "AS and a type")
	at := p.start()
	t := p.typeName()
	typeAt := p.from(at)
	p.expect(tokRParen, "')'")
	return &Cast{Pos: p.from(start), X: x, Type: t, TypePos: typeAt}
}

// typeName parses the name of a type, with its arguments if any. It returns it in lower case, with whitespace between words reduced to one blank.
func (p *parser) typeName() string {
	if p.at(tokQuoted) {
		return strings.ToLower(p.nameOf(p.next()).Text)
	}
	if !p.at(tokName) {
		p.unexpected("the name of a type")
		return ""
	}
	name := strings.ToLower(p.textOf(p.next()))
	if name == "double" && p.acceptWord(wordPrecision) {
		return "double precision"
	}
	if !p.at(tokLParen) {
		return name
	}
	var b strings.Builder
	b.WriteString(name)
	open, before := 0, tokLParen
	for p.mistake == nil {
		t := p.cur()
		switch t.kind {
		case tokLParen:
			open++
		case tokRParen:
			open--
		case tokName, tokNumber, tokString:
			if before != tokLParen {
				b.WriteByte(' ')
			}
		case tokComma:
		default:
			p.unexpected("')' of the type")
			return ""
		}
		p.next()
		b.WriteString(strings.ToLower(p.textOf(t)))
		if open == 0 {
			break
		}
		before = t.kind
	}
	return b.String()
}
