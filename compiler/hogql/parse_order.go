package hogql

// orderBy parses ORDER BY and its keys.
func (p *parser) orderBy() []*Order {
	p.expectWord(wordOrder, "ORDER BY")
	p.expectWord(wordBy, "BY")
	out := make([]*Order, 0, 2)
	for {
		out = append(out, p.order())
		if !p.accept(tokComma) {
			return out
		}
	}
}

// order parses one key of ORDER BY. COLLATE is skipped (contract: hogql.md, section 4).
func (p *parser) order() *Order {
	start := p.start()
	o := &Order{X: p.expr(levelAlias)}
	switch p.cur().word {
	case wordDesc, wordDescending:
		p.next()
		o.Desc = true
	case wordAsc, wordAscending:
		p.next()
	default: // no direction
	}
	if p.acceptWord(wordNulls) {
		o.Nulls = NullsFirst
		if !p.acceptWord(wordFirst) {
			p.expectWord(wordLast, "FIRST or LAST")
			o.Nulls = NullsLast
		}
	}
	if p.acceptWord(wordCollate) {
		p.expect(tokString, "a collation in quotes")
	}
	if p.atWords(wordWith, wordFill) {
		p.next()
		p.next()
		o.Fill = p.fill()
	}
	o.Pos = p.from(start)
	return o
}

// fill parses [FROM a] [TO b] [STEP c], after WITH FILL.
func (p *parser) fill() *Fill {
	f := new(Fill)
	if p.acceptWord(wordFrom) {
		f.From = p.expr(levelTernary)
	}
	if p.acceptWord(wordTo) {
		f.To = p.expr(levelTernary)
	}
	if p.acceptWord(wordStep) {
		f.Step = p.expr(levelTernary)
	}
	return f
}

// interpolate parses INTERPOLATE [(column [AS expression], …)], if present.
func (p *parser) interpolate() *Interpolate {
	start := p.start()
	if !p.acceptWord(wordInterpolate) {
		return nil
	}
	out := new(Interpolate)
	if p.accept(tokLParen) {
		for p.mistake == nil {
			c := &InterpolatedColumn{Name: p.name("a column")}
			if p.acceptWord(wordAs) {
				c.X = p.expr(levelTernary)
			}
			out.Columns = append(out.Columns, c)
			if !p.accept(tokComma) || p.at(tokRParen) {
				break
			}
		}
		p.expect(tokRParen, "',' or ')'")
	}
	out.Pos = p.from(start)
	return out
}

// limits parses LIMIT … BY …, LIMIT … and OFFSET …, each if present.
func (p *parser) limits() (*LimitBy, *Limit) {
	l := p.limit()
	if l == nil || l.Percent || l.WithTies || l.N == nil || !p.acceptWord(wordBy) {
		return nil, l
	}
	by := &LimitBy{N: l.N, Offset: l.Offset, Keys: p.list()}
	by.Pos = p.from(l.Pos.Start)
	return by, p.limit()
}

// limit parses LIMIT n [%] [WITH TIES] [OFFSET m], LIMIT n, m or OFFSET m, if present. In LIMIT n, m the second number is the offset (contract:
// hogql.md, section 4).
func (p *parser) limit() *Limit {
	start := p.start()
	if p.acceptWord(wordOffset) {
		offset := p.expr(levelTernary)
		return &Limit{Pos: p.from(start), Offset: offset}
	}
	if !p.acceptWord(wordLimit) {
		return nil
	}
	l := new(Limit)
	if p.at(tokNumber) && p.ahead(1).kind == tokPercent && endsLimit(p.ahead(2)) {
		l.N = p.number(p.start(), false)
		p.next()
		l.Percent = true
	} else {
		l.N = p.expr(levelTernary)
	}
	p.withTies(l)
	if p.accept(tokComma) || p.acceptWord(wordOffset) {
		l.Offset = p.expr(levelTernary)
	}
	p.withTies(l)
	l.Pos = p.from(start)
	return l
}

// endsLimit reports whether t can follow LIMIT 40 %, so that the % is a percentage and not a modulo.
func endsLimit(t token) bool {
	switch t.kind {
	case tokEnd, tokBad, tokRParen, tokSemicolon, tokComma:
		return true
	case tokName:
	default:
		return false
	}
	switch t.word {
	case wordWith, wordOffset, wordUnion, wordIntersect, wordExcept, wordBy, wordSettings, wordFormat, wordInto:
		return true
	default: // all other words start the second operand
	}
	return false
}

func (p *parser) withTies(l *Limit) {
	if p.atWords(wordWith, wordTies) {
		p.next()
		p.next()
		l.WithTies = true
	}
}
