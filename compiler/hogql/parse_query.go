package hogql

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// setQuery parses one query, or several joined by set operators.
func (p *parser) setQuery() Query {
	if !p.enter() {
		return new(Select)
	}
	defer p.leave()
	start := p.start()
	q, closed := p.member()
	return p.setTail(start, q, closed)
}

// setTail parses what follows the first member of a set query. closed reports whether the member is in parentheses, so that an ORDER BY or LIMIT
// after it applies to the whole.
func (p *parser) setTail(start int, first Query, closed bool) Query {
	s := &SetQuery{Members: []Query{first}}
	for p.mistake == nil {
		op, byName, ok := p.setOperator()
		if !ok {
			break
		}
		var q Query
		q, closed = p.member()
		s.Ops = append(s.Ops, op)
		s.Members = append(s.Members, q)
		if byName && s.ByName == nil {
			s.ByName = make([]bool, len(s.Ops)-1, len(s.Ops))
		}
		if s.ByName != nil {
			s.ByName = append(s.ByName, byName)
		}
	}
	if closed {
		if p.atWord(wordOrder) {
			s.OrderBy = p.orderBy()
		}
		s.Limit = p.limit()
	}
	p.refusedClauses()
	switch {
	case len(s.Ops) > 0:
		s.Pos = p.from(start)
		return s
	case s.OrderBy == nil && s.Limit == nil:
		return first
	}
	outer := p.allOf(first, p.from(start))
	outer.OrderBy, outer.Limit = s.OrderBy, s.Limit
	return outer
}

// allOf returns SELECT * FROM (q), for a clause before or after a query in parentheses.
func (p *parser) allOf(q Query, at Span) *Select {
	p.links += 2
	return &Select{Pos: at, Columns: []Expr{&Star{Pos: q.At()}}, From: &Derived{Pos: q.At(), Query: q}}
}

// setOperator parses UNION, INTERSECT or EXCEPT with its modifiers.
func (p *parser) setOperator() (op SetOp, byName, ok bool) {
	t := p.cur()
	switch t.word {
	case wordUnion:
		p.next()
		op = UnionDistinct
		if p.acceptWord(wordAll) {
			op = UnionAll
		} else {
			p.acceptWord(wordDistinct)
		}
	case wordIntersect:
		p.next()
		op = Intersect
		if p.acceptWord(wordDistinct) {
			op = IntersectDistinct
		}
	case wordExcept:
		p.next()
		op = Except
	default:
		return 0, false, false
	}
	if op != UnionAll && p.atWord(wordAll) {
		p.refuse(t.span().To(p.cur().span()), "%s ALL is not supported", strings.ToUpper(p.textOf(t)))
	}
	if p.atWords(wordBy, wordName) {
		p.next()
		p.next()
		byName = true
	}
	return op, byName, true
}

// member parses one member of a set query, and reports whether it is closed: in parentheses or a placeholder.
func (p *parser) member() (q Query, closed bool) {
	start := p.start()
	switch {
	case p.at(tokLBrace):
		p.next()
		x := p.expr(levelAlias)
		p.expect(tokRBrace, "'}'")
		return &QueryPlaceholder{Pos: p.from(start), X: x}, true
	case p.accept(tokLParen):
		q = p.setQuery()
		p.expect(tokRParen, "')'")
		return q, true
	case p.atWord(wordWith):
		with, recursive := p.with()
		if !p.accept(tokLParen) {
			return p.selectQuery(start, with, recursive), false
		}
		q = p.setQuery()
		p.expect(tokRParen, "')'")
		return p.withCTEs(q, with, recursive, p.from(start)), true
	case p.atWord(wordSelect):
		return p.selectQuery(start, nil, false), false
	case p.at(tokTag):
		return p.tagQuery(), true
	case p.atWord(wordValues):
		p.refuse(p.cur().span(), "VALUES is not supported: write SELECT … UNION ALL SELECT …")
	case p.at(tokName) && start == int(p.tokens[0].start):
		p.refuse(p.cur().span(), "Unexpected '%s', expected SELECT: there are no other statements", clip(p.textOf(p.cur())))
	default:
		p.unexpected("SELECT")
	}
	return new(Select), false
}

// withCTEs puts WITH in front of a query in parentheses.
func (p *parser) withCTEs(q Query, with []*CTE, recursive bool, at Span) Query {
	switch q := q.(type) {
	case *Select:
		if q.With == nil {
			c := *q
			c.Pos, c.With, c.Recursive = at, with, recursive
			return &c
		}
	case *SetQuery:
		if q.With == nil {
			c := *q
			c.Pos, c.With, c.Recursive = at, with, recursive
			return &c
		}
	case *QueryPlaceholder:
	}
	outer := p.allOf(q, at)
	outer.With, outer.Recursive = with, recursive
	return outer
}

// with parses WITH and its list.
func (p *parser) with() (ctes []*CTE, recursive bool) {
	p.next()
	if p.atWord(wordRecursive) && p.ahead(1).word != wordAs {
		p.next()
		recursive = true
	}
	for p.mistake == nil {
		ctes = append(ctes, p.cte())
		if !p.accept(tokComma) || p.atWord(wordSelect) {
			break
		}
	}
	if !p.atWord(wordSelect) && !p.at(tokLParen) {
		p.unexpected("',' or SELECT")
	}
	return ctes, recursive
}

// cte parses name [(columns)] AS (query) or expression AS name.
func (p *parser) cte() *CTE {
	start := p.start()
	if !p.startsTableCTE() {
		a := p.requiredAlias("AS and a name")
		return &CTE{Pos: p.from(start), Name: a.Name, X: a.X}
	}
	c := &CTE{Name: p.plainAlias("a name")}
	if p.at(tokLParen) {
		c.Columns = p.columnNames()
	}
	p.expectWord(wordAs, "AS")
	p.acceptWord(wordNot)
	p.acceptWord(wordMaterialized)
	p.expect(tokLParen, "'('")
	c.Query = p.setQuery()
	p.expect(tokRParen, "')'")
	c.Pos = p.from(start)
	return c
}

// startsTableCTE reports whether name [(columns)] AS [[NOT] MATERIALIZED] ( comes next.
func (p *parser) startsTableCTE() bool {
	if !p.atName() {
		return false
	}
	n := 1
	if p.ahead(n).kind == tokLParen {
		for n++; isName(p.ahead(n), reserved); n++ {
			if p.ahead(n+1).kind == tokComma {
				n++
			}
		}
		if p.ahead(n).kind != tokRParen {
			return false
		}
		n++
	}
	if p.ahead(n).word != wordAs {
		return false
	}
	n++
	if p.ahead(n).word == wordNot {
		n++
	}
	if p.ahead(n).word == wordMaterialized {
		n++
	}
	return p.ahead(n).kind == tokLParen
}

// selectQuery parses SELECT and its clauses.
func (p *parser) selectQuery(start int, with []*CTE, recursive bool) *Select {
	s := &Select{With: with, Recursive: recursive}
	p.expectWord(wordSelect, "SELECT")
	if p.atWord(wordDistinct) && !endsColumn(p.ahead(1)) {
		p.next()
		s.Distinct = true
	}
	if p.atWord(wordTop) && p.ahead(1).kind == tokNumber {
		p.refuse(p.cur().span(), "TOP is not supported: write LIMIT at the end of the query")
	}
	s.Columns = p.selectColumns()
	if p.acceptWord(wordFrom) {
		s.From = p.join()
	}
	s.ArrayJoin = p.arrayJoin(s.From)
	if p.acceptWord(wordPrewhere) {
		s.Prewhere = p.expr(levelAlias)
	}
	if p.acceptWord(wordWhere) {
		s.Where = p.expr(levelAlias)
	}
	if p.atWord(wordGroup) {
		s.GroupBy = p.groupBy()
	}
	if p.acceptWord(wordHaving) {
		s.Having = p.expr(levelAlias)
	}
	if p.atWord(wordWindow) && isName(p.ahead(1), reserved) {
		s.Windows = p.windows()
	}
	p.refusedClauses()
	if p.atWord(wordOrder) {
		s.OrderBy = p.orderBy()
		s.Interpolate = p.interpolate()
	}
	s.LimitBy, s.Limit = p.limits()
	p.refusedClauses()
	p.misplacedClause()
	s.Pos = p.from(start)
	return s
}

// refusedClauses fails at a ClickHouse clause that HogQL does not have.
func (p *parser) refusedClauses() {
	t := p.cur()
	switch t.word {
	case wordQualify:
		p.refuse(t.span(), "QUALIFY is not supported: put the window function into a subquery and filter outside")
	case wordSettings:
		p.refuse(t.span(), "SETTINGS is not supported")
	case wordFormat:
		p.refuse(t.span(), "FORMAT is not supported: the answer's format is a matter of the request")
	case wordInto:
		p.refuse(t.span(), "INTO OUTFILE is not supported")
	case wordFinal:
		p.fail(diag.QueryError, t.span(), "The FINAL keyword is not supported in HogQL as it causes slow queries")
	default: // not one of them
	}
}

// misplacedClause fails at a clause that comes too late.
func (p *parser) misplacedClause() {
	t := p.cur()
	switch t.word {
	case wordFrom, wordPrewhere, wordWhere, wordGroup, wordHaving, wordWindow, wordOrder, wordLimit, wordOffset,
		wordJoin, wordInner, wordLeft, wordRight, wordFull, wordCross, wordArray:
		p.refuse(t.span(), "Misplaced '%s': clauses come once each, in the order FROM with its joins, ARRAY JOIN, PREWHERE, "+
			"WHERE, GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT", p.textOf(t))
	default: // neither a clause nor the start of a join
	}
}

// endsColumn reports whether t cannot continue a column.
func endsColumn(t token) bool {
	return t.kind == tokEnd || t.kind == tokRParen || t.kind == tokComma || t.kind == tokSemicolon || t.kind == tokDot ||
		t.word == wordFrom || t.word == wordAs
}

// selectColumns parses the columns of a SELECT.
func (p *parser) selectColumns() []Expr {
	out := make([]Expr, 0, 4)
	for p.mistake == nil {
		if p.startsColumnList() {
			out = append(out, p.columnList()...)
		} else {
			out = append(out, p.selectColumn())
		}
		if !p.accept(tokComma) || p.endsColumns() {
			break
		}
	}
	return out
}

// endsColumns reports whether the comma before was a trailing one.
func (p *parser) endsColumns() bool {
	t := p.cur()
	switch t.kind {
	case tokEnd, tokRParen, tokSemicolon:
		return true
	case tokName:
	default:
		return false
	}
	switch t.word {
	case wordFrom, wordPrewhere, wordWhere, wordHaving, wordLimit, wordUnion, wordIntersect, wordExcept:
		return true
	case wordGroup, wordOrder:
		return p.ahead(1).word == wordBy
	case wordArray, wordLeft, wordInner:
		return p.startsArrayJoin()
	default: // all other words are columns, or mistakes
	}
	return false
}

// selectColumn parses an expression with its alias in any of its forms: e AS a, e a, a: e.
func (p *parser) selectColumn() Expr {
	start := p.start()
	if p.atName() && p.ahead(1).kind == tokColon {
		name := p.alias("a name for the column")
		p.next()
		x := p.expr(levelTernary)
		return &Alias{Pos: p.from(start), X: x, Name: name}
	}
	x := p.expr(levelAlias)
	if _, named := x.(*Alias); !named && p.atBareAlias() {
		name := p.alias("a name for the column")
		return &Alias{Pos: p.from(start), X: x, Name: name}
	}
	return x
}

// startsArrayJoin reports whether [LEFT|INNER] ARRAY JOIN comes next.
func (p *parser) startsArrayJoin() bool {
	if p.atWord(wordLeft) || p.atWord(wordInner) {
		return p.ahead(1).word == wordArray && p.ahead(2).word == wordJoin
	}
	return p.atWords(wordArray, wordJoin)
}

// arrayJoin parses [LEFT|INNER] ARRAY JOIN with its arrays, if it comes.
func (p *parser) arrayJoin(from Table) *ArrayJoin {
	if !p.startsArrayJoin() {
		return nil
	}
	start := p.start()
	a := &ArrayJoin{Left: p.atWord(wordLeft)}
	for !p.acceptWord(wordJoin) {
		p.next()
	}
	if from == nil && p.mistake == nil {
		p.refuse(p.from(start), "Using ARRAY JOIN without a FROM clause is not permitted")
	}
	for p.mistake == nil {
		itemStart := p.start()
		x := p.expr(levelAlias)
		alias, ok := x.(*Alias)
		switch {
		case ok:
		case p.atBareAlias():
			name := p.alias("a name")
			alias = &Alias{Pos: p.from(itemStart), X: x, Name: name}
		default:
			p.refuse(p.from(itemStart), "ARRAY JOIN arrays must have an alias")
		}
		a.Arrays = append(a.Arrays, alias)
		if !p.accept(tokComma) {
			break
		}
	}
	a.Pos = p.from(start)
	return a
}

// groupBy parses GROUP BY and the words after its keys.
func (p *parser) groupBy() *GroupBy {
	start := p.start()
	p.next()
	p.expectWord(wordBy, "BY")
	g := new(GroupBy)
	switch follows := p.ahead(1); {
	case p.atWord(wordAll) && follows.kind != tokLParen && follows.kind != tokDot && follows.kind != tokComma:
		p.next()
		g.Mode = GroupAll
	case p.atWord(wordCube) && follows.kind == tokLParen:
		g.Mode = GroupCube
		g.Keys = p.groupSet()
	case p.atWord(wordRollup) && follows.kind == tokLParen:
		g.Mode = GroupRollup
		g.Keys = p.groupSet()
	case p.atWords(wordGrouping, wordSets):
		p.next()
		g.Mode = GroupSets
		g.Sets = p.groupSets()
	default:
		for p.mistake == nil {
			g.Keys = append(g.Keys, p.expr(levelAlias))
			if !p.accept(tokComma) || p.endsKeys() {
				break
			}
		}
	}
	if p.atWord(wordWith) && (p.ahead(1).word == wordCube || p.ahead(1).word == wordRollup) {
		p.next()
		t := p.next()
		switch {
		case g.Mode != GroupKeys:
			p.refuse(t.span(), "WITH %s needs plain keys before it", p.textOf(t))
		case t.word == wordCube:
			g.Mode = GroupCube
		default:
			g.Mode = GroupRollup
		}
	}
	if p.atWords(wordWith, wordTotals) {
		p.next()
		p.next()
		g.Totals = true
	}
	g.Pos = p.from(start)
	return g
}

// endsKeys reports whether the comma before was a trailing one in GROUP BY.
func (p *parser) endsKeys() bool {
	return p.endsColumns() || p.atWord(wordWith) || p.atWord(wordWindow) && isName(p.ahead(1), reserved)
}

// groupSet parses the word before a list, and the list.
func (p *parser) groupSet() []Expr {
	p.next()
	p.expect(tokLParen, "'('")
	return p.exprs(tokRParen, "',' or ')'")
}

// groupSets parses SETS ((a, b), (a), ()).
func (p *parser) groupSets() [][]Expr {
	p.next()
	p.expect(tokLParen, "'('")
	var sets [][]Expr
	for p.mistake == nil && !p.at(tokRParen) {
		if p.accept(tokLParen) {
			sets = append(sets, p.exprs(tokRParen, "',' or ')'"))
		} else {
			sets = append(sets, []Expr{p.expr(levelAlias)})
		}
		if !p.accept(tokComma) {
			break
		}
	}
	p.expect(tokRParen, "',' or ')'")
	return slices.Clip(sets)
}

// windows parses WINDOW name AS (…), ….
func (p *parser) windows() []*NamedWindow {
	p.next()
	var out []*NamedWindow
	for {
		start := p.start()
		w := &NamedWindow{Name: p.name("a window's name")}
		p.expectWord(wordAs, "AS")
		w.Window = p.window()
		w.Pos = p.from(start)
		out = append(out, w)
		if !p.accept(tokComma) {
			return out
		}
	}
}
