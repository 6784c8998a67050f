package hogql

// join parses the tables of FROM.
func (p *parser) join() Table {
	start := p.start()
	return p.joinAfter(start, p.table())
}

// joinAfter parses what is joined to the table left, which begins at start.
func (p *parser) joinAfter(start int, left Table) Table {
	for p.mistake == nil {
		j := p.joinOperator()
		if j == nil {
			return left
		}
		p.links++
		j.Left, j.Right = left, p.table()
		if j.Kind != CrossJoin {
			p.joinCondition(j)
		}
		j.Pos = p.from(start)
		left = j
	}
	return left
}

// joinOperator parses a comma or the words up to JOIN; nil if there is neither.
func (p *parser) joinOperator() *Join {
	if p.accept(tokComma) {
		return &Join{Kind: CrossJoin}
	}
	if p.startsArrayJoin() {
		return nil
	}
	j := new(Join)
	first := p.cur()
	kinds, strict := 0, 0
	for p.mistake == nil {
		t := p.cur()
		switch t.word {
		case wordJoin:
			if half := j.Strictness == JoinSemi || j.Strictness == JoinAnti; half && kinds == 0 {
				j.Kind = LeftJoin
			} else if half && j.Kind != LeftJoin && j.Kind != RightJoin {
				p.refuse(t.span(), "SEMI and ANTI JOIN are LEFT or RIGHT")
			}
			p.next()
			return j
		case wordInner:
			kinds++
		case wordLeft:
			j.Kind = LeftJoin
			kinds++
		case wordRight:
			j.Kind = RightJoin
			kinds++
		case wordFull:
			j.Kind = FullJoin
			kinds++
		case wordCross:
			j.Kind = CrossJoin
			kinds++
		case wordOuter:
			if j.Kind == InnerJoin || j.Kind == CrossJoin {
				p.unexpected("JOIN")
			}
		case wordAll:
			j.Strictness = JoinAll
			strict++
		case wordAny:
			j.Strictness = JoinAny
			strict++
		case wordAsof:
			j.Strictness = JoinAsof
			strict++
		case wordSemi:
			j.Strictness = JoinSemi
			strict++
		case wordAnti:
			j.Strictness = JoinAnti
			strict++
		case wordNatural:
			if p.naturalJoin() {
				p.refuseNatural()
			}
			if kinds+strict > 0 {
				p.unexpected("JOIN")
			}
			return nil
		case wordPositional:
			p.refuse(t.span(), "POSITIONAL JOIN is not supported")
		default:
			if kinds+strict > 0 {
				p.unexpected("JOIN")
			}
			return nil
		}
		if kinds > 1 || strict > 1 || j.Kind == CrossJoin && strict > 0 {
			p.unexpected("JOIN after '" + p.textAt(first.span().To(p.tokens[p.pos-1].span())) + "'")
		}
		p.next()
	}
	return nil
}

// joinCondition parses ON e, USING (a, b) or USING a.
func (p *parser) joinCondition(j *Join) {
	switch {
	case p.acceptWord(wordOn):
		j.On = p.expr(levelAlias)
	case p.acceptWord(wordUsing):
		if p.at(tokLParen) {
			j.Using = p.names("the name of a column")
			return
		}
		j.Using = []Name{p.name("the name of a column")}
	default:
		p.unexpected("ON or USING")
	}
}

// table parses one table with its alias, or tables in parentheses.
func (p *parser) table() Table {
	start := p.start()
	var t Table
	switch {
	case p.at(tokTag):
		t = p.derived(start, p.tagQuery())
	case p.accept(tokLParen):
		var q Query
		if q, t = p.inParens(); q != nil {
			t = p.derived(start, q)
		} else if p.atWord(wordAs) || p.atBareAlias() {
			p.refuse(p.cur().span(), "Tables in parentheses cannot be given a name together: put the name after a table, inside the parentheses")
		}
	case p.accept(tokLBrace):
		x := p.expr(levelAlias)
		p.expect(tokRBrace, "'}'")
		alias := p.tableAlias()
		t = &TablePlaceholder{Pos: p.from(start), X: x, Alias: alias}
	default:
		t = p.namedTable(start)
	}
	p.refusedClauses()
	if p.mistake == nil && p.at(tokLParen) {
		p.refuse(p.cur().span(), "Only a table or subquery with an alias can be given names for its columns")
	}
	return t
}

// derived parses the alias of a query in FROM.
func (p *parser) derived(start int, q Query) Table {
	d := &Derived{Query: q}
	d.Alias, d.Columns = p.tableNames()
	d.Pos = p.from(start)
	return d
}

// inParens parses what follows an opening parenthesis in FROM, up to the closing one: a query, or tables. A query in parentheses, a placeholder or a tag at
// the beginning can be the start of both.
func (p *parser) inParens() (Query, Table) {
	if !p.enter() {
		return new(Select), nil
	}
	defer p.leave()
	start := p.start()
	bare := p.at(tokLBrace)
	var q Query
	var t Table
	switch {
	case p.accept(tokLParen):
		q, t = p.inParens()
	case bare, p.at(tokTag):
		q, _ = p.member()
	case p.at(tokQuoted), p.at(tokName) && !p.atWord(wordSelect) && !p.atWord(wordWith) && !p.atWord(wordValues):
		t = p.table()
	default:
		q = p.setQuery()
		p.expect(tokRParen, "')'")
		return q, nil
	}
	placeholder, _ := q.(*QueryPlaceholder)
	switch {
	case q == nil:
	case p.continuesQuery():
		q = p.setTail(start, q, true)
		p.expect(tokRParen, "')'")
		return q, nil
	case bare:
		alias := p.tableAlias()
		t = &TablePlaceholder{Pos: p.from(start), X: placeholder.X, Alias: alias}
	default:
		t = p.derived(start, q)
	}
	t = p.joinAfter(start, t)
	p.expect(tokRParen, "JOIN or ')'")
	return nil, t
}

// continuesQuery reports whether what comes next ends a query in parentheses, or continues it.
func (p *parser) continuesQuery() bool {
	switch p.cur().word {
	case wordUnion, wordIntersect, wordExcept, wordOrder, wordLimit, wordOffset:
		return true
	default: // an alias, or the words of a join
	}
	return p.at(tokRParen)
}

// namedTable parses a table by its name, or a table function.
func (p *parser) namedTable(start int) Table {
	if p.atWord(wordValues) && p.ahead(1).kind == tokLParen {
		p.refuse(p.cur().span(), "VALUES is not supported: write (SELECT … UNION ALL SELECT …)")
	}
	first := p.name("a table")
	if p.accept(tokLParen) {
		f := &TableFunc{Name: first, Args: p.exprs(tokRParen, "',' or ')'")}
		f.Alias, f.Columns = p.tableNames()
		f.Pos = p.from(start)
		return f
	}
	t := &TableName{Chain: []Name{first}}
	for p.accept(tokDot) {
		t.Chain = append(t.Chain, p.memberName())
	}
	if p.at(tokLParen) {
		p.refuse(p.from(start), "Only a plain name can be called as a table function")
	}
	t.Alias, t.Columns = p.tableNames()
	if p.atWord(wordSample) {
		t.Sample = p.sample()
	}
	t.Pos = p.from(start)
	return t
}

// tableNames parses [[AS] alias [(column, …)]].
func (p *parser) tableNames() (alias Name, columns []Name) {
	alias = p.tableAlias()
	if p.at(tokLParen) && alias.Text != "" {
		columns = p.columnNames()
	}
	return alias, columns
}

// columnNames parses the names given to columns, each of which must be a valid alias.
func (p *parser) columnNames() []Name {
	list := p.names("the name of a column")
	for _, n := range list {
		p.checkAlias(n)
	}
	return list
}

// tableAlias parses [AS] alias, if present.
func (p *parser) tableAlias() Name {
	if p.atWord(wordNatural) && p.naturalJoin() {
		p.refuseNatural()
		return Name{}
	}
	switch {
	case p.acceptWord(wordAs):
	case !p.atBareAlias():
		if p.atWord(wordPivot) || p.atWord(wordUnpivot) {
			p.refuse(p.cur().span(), "PIVOT and UNPIVOT are not supported")
		}
		return Name{}
	}
	return p.plainAlias("a name for the table")
}

// naturalJoin reports whether the words of a join follow the next token.
func (p *parser) naturalJoin() bool {
	switch p.ahead(1).word {
	case wordJoin:
		return true
	case wordInner, wordLeft, wordRight, wordFull:
		return p.ahead(2).word == wordJoin || p.ahead(2).word == wordOuter
	default: // natural is a name
	}
	return false
}

func (p *parser) refuseNatural() {
	p.refuse(p.cur().span(), "NATURAL JOIN is not supported: name the columns, as in JOIN … USING (a, b)")
}

// sample parses SAMPLE ratio [OFFSET ratio].
func (p *parser) sample() *Sample {
	start := p.start()
	p.next()
	s := &Sample{Ratio: p.ratio()}
	if p.acceptWord(wordOffset) {
		s.Offset = p.ratio()
	}
	s.Pos = p.from(start)
	return s
}

// ratio parses a number, a fraction or a placeholder.
func (p *parser) ratio() Expr {
	start := p.start()
	switch {
	case p.accept(tokLBrace):
		x := p.expr(levelAlias)
		p.expect(tokRBrace, "'}'")
		return &Placeholder{Pos: p.from(start), X: x}
	case !p.at(tokNumber):
		p.unexpected("a number")
		return badExpr()
	}
	x := p.number(start, false)
	if !p.accept(tokSlash) {
		return x
	}
	if !p.at(tokNumber) {
		p.unexpected("a number")
		return badExpr()
	}
	y := p.number(p.start(), false)
	return &Binary{Pos: p.from(start), Op: Divide, Left: x, Right: y}
}
