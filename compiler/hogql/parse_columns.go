package hogql

// columns parses COLUMNS('regex') or COLUMNS(* EXCLUDE (a) REPLACE (e AS b)).
func (p *parser) columns(start int) Expr {
	word := p.next()
	p.expect(tokLParen, "'('")
	if p.at(tokString) {
		pattern := p.contentOf(p.next())
		p.expect(tokRParen, "')'")
		return &ColumnsMatching{Pos: p.from(start), Pattern: pattern}
	}
	var table []Name
	if !p.at(tokStar) {
		p.checkColumns(word)
		table = append(table, p.name("'*' or a regular expression in quotes"))
		for p.expect(tokDot, "'.'"); !p.at(tokStar) && p.mistake == nil; p.expect(tokDot, "'.'") {
			table = append(table, p.link())
		}
	}
	p.expect(tokStar, "'*' or a regular expression in quotes")
	s := p.star(start, table)
	p.expect(tokRParen, "EXCLUDE, REPLACE or ')'")
	s.Pos, s.Columns = p.from(start), true
	return s
}

// checkColumns refuses a list of columns where a single value is needed.
func (p *parser) checkColumns(at token) {
	if !p.starAhead(0) {
		p.refuse(at.span(), "COLUMNS(a, b) can only be in the list of SELECT, and *COLUMNS(a, b) among the arguments of a function")
	}
}

// starAhead reports whether * or t.* is n tokens ahead.
func (p *parser) starAhead(n int) bool {
	for isName(p.ahead(n), reserved) && p.ahead(n+1).kind == tokDot {
		n += 2
	}
	return p.ahead(n).kind == tokStar
}

// startsColumnList reports whether COLUMNS(a, b) comes next.
func (p *parser) startsColumnList() bool { return p.columnListAhead(0) }

func (p *parser) columnListAhead(n int) bool {
	if p.ahead(n).word != wordColumns || p.ahead(n+1).kind != tokLParen || p.starAhead(n+2) {
		return false
	}
	return p.ahead(n+2).kind != tokString || p.ahead(n+3).kind != tokRParen
}

// columnList parses COLUMNS(a, b), which means the columns in it.
func (p *parser) columnList() []Expr {
	start := p.start()
	p.next()
	p.next()
	out := p.exprs(tokRParen, "',' or ')'")
	if len(out) == 0 {
		p.refuse(p.from(start), "COLUMNS() needs columns: write COLUMNS(a, b), COLUMNS('regex') or COLUMNS(* EXCLUDE (a))")
	}
	return out
}

// startsSpread reports whether *COLUMNS( comes next.
func (p *parser) startsSpread() bool {
	return p.at(tokStar) && p.ahead(1).word == wordColumns && p.ahead(2).kind == tokLParen
}

// spread parses *COLUMNS(…), which gives several arguments of a function.
func (p *parser) spread() []Expr {
	start := p.start()
	p.next()
	if p.startsColumnList() {
		return p.columnList()
	}
	e := p.columns(p.start())
	if s, ok := e.(*Star); ok {
		s.Pos, s.Spread = p.from(start), true
	}
	if m, ok := e.(*ColumnsMatching); ok {
		m.Pos, m.Spread = p.from(start), true
	}
	return []Expr{e}
}
