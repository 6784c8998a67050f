package hogql

// call parses a function with its arguments and the clauses after them.
func (p *parser) call(start int) Expr {
	t := p.next()
	c := &Call{NamePos: t.span(), Name: p.nameOf(t).Text}
	p.arguments(c, t.word)
	if p.at(tokLParen) {
		if c.Distinct || len(c.OrderBy) > 0 {
			p.refuse(p.from(start), "DISTINCT and ORDER BY belong in the second list of %s(…)(…)", clip(c.Name))
		}
		c.Params, c.Args = c.Args, nil
		if c.Params == nil {
			c.Params = []Expr{}
		}
		p.arguments(c, notWord)
	}
	p.ignoreNulls()
	if p.atWords(wordWithin, wordGroup) {
		p.refuse(p.cur().span(), "WITHIN GROUP is not supported: write quantile(0.5)(x)")
	}
	if p.atWord(wordFilter) && p.ahead(1).kind == tokLParen {
		p.next()
		p.next()
		p.expectWord(wordWhere, "WHERE")
		c.Filter = p.expr(levelAlias)
		p.expect(tokRParen, "')'")
	}
	if p.acceptWord(wordOver) {
		c.Over = p.over()
	}
	c.Pos = p.from(start)
	return c
}

// arguments parses ( … ) into c. w is the word of the function's name.
func (p *parser) arguments(c *Call, w word) {
	p.expect(tokLParen, "'('")
	if p.atWord(wordSelect) || p.atWord(wordWith) {
		start := p.start()
		q := p.setQuery()
		c.Args = []Expr{&Subquery{Pos: p.from(start), Query: q}}
		p.expect(tokRParen, "')'")
		return
	}
	c.Distinct = p.acceptWord(wordDistinct)
	for p.mistake == nil && !p.at(tokRParen) && !p.atWords(wordOrder, wordBy) {
		if p.startsSpread() {
			c.Args = append(c.Args, p.spread()...)
		} else {
			c.Args = append(c.Args, p.expr(levelAlias))
		}
		if w == wordSubstring && len(c.Args) == 1 && p.acceptWord(wordFrom) {
			c.Args = append(c.Args, p.expr(levelTernary))
			if p.acceptWord(wordFor) {
				c.Args = append(c.Args, p.expr(levelTernary))
			}
			break
		}
		if !p.accept(tokComma) {
			break
		}
	}
	if p.atWord(wordOrder) && len(c.Args) > 0 {
		c.OrderBy = p.orderBy()
	}
	p.expect(tokRParen, "',' or ')'")
}

// ignoreNulls parses IGNORE NULLS, which has no effect: aggregates ignore NULLs anyway.
func (p *parser) ignoreNulls() bool {
	if p.atWords(wordRespect, wordNulls) {
		p.refuse(p.cur().span().To(p.ahead(1).span()), "RESPECT NULLS is not supported: aggregates leave NULLs out. To keep them, aggregate tuples, as in any(tuple(x)).1")
	}
	if !p.atWords(wordIgnore, wordNulls) {
		return false
	}
	p.next()
	p.next()
	return true
}

// over parses what follows OVER: a name or a window.
func (p *parser) over() *Window {
	start := p.start()
	if !p.at(tokLParen) {
		name := p.name("a window's name or '('")
		return &Window{Pos: p.from(start), Name: name}
	}
	return p.window()
}

// window parses ( [PARTITION BY …] [ORDER BY …] [frame] ).
func (p *parser) window() *Window {
	w, start := new(Window), p.start()
	p.expect(tokLParen, "'('")
	if p.acceptWord(wordPartition) {
		p.expectWord(wordBy, "BY")
		w.PartitionBy = p.list()
	}
	if p.atWord(wordOrder) {
		w.OrderBy = p.orderBy()
	}
	if p.atWord(wordRows) || p.atWord(wordRange) {
		w.Frame = p.frame()
	}
	p.expect(tokRParen, "PARTITION BY, ORDER BY, ROWS, RANGE or ')'")
	w.Pos = p.from(start)
	return w
}

// list parses expressions separated by commas.
func (p *parser) list() []Expr {
	var out []Expr
	for {
		out = append(out, p.expr(levelAlias))
		if !p.accept(tokComma) {
			return out
		}
	}
}

// frame parses ROWS or RANGE with one or two bounds.
func (p *parser) frame() *Frame {
	start := p.start()
	f := &Frame{Range: p.next().word == wordRange}
	if p.acceptWord(wordBetween) {
		f.Start = p.bound()
		p.expectWord(wordAnd, "AND")
		f.End = p.bound()
	} else {
		f.Start = p.bound()
	}
	f.Pos = p.from(start)
	return f
}

// bound parses one end of a frame.
func (p *parser) bound() Bound {
	switch {
	case p.atWords(wordCurrent, wordRow):
		p.next()
		p.next()
		return Bound{Kind: CurrentRow}
	case p.atWords(wordUnbounded, wordPreceding):
		p.next()
		p.next()
		return Bound{Kind: UnboundedPreceding}
	case p.atWords(wordUnbounded, wordFollowing):
		p.next()
		p.next()
		return Bound{Kind: UnboundedFollowing}
	}
	b := Bound{Kind: Preceding, N: p.expr(levelSum)}
	if !p.acceptWord(wordPreceding) {
		p.expectWord(wordFollowing, "PRECEDING or FOLLOWING")
		b.Kind = Following
	}
	return b
}
