package hogql

// The levels of precedence, loosest first (contract: hogql.md, section 5). Outside of parentheses, an expression of a level only contains operators
// of that level or tighter.
const (
	levelAlias = iota
	levelTernary
	levelOr
	levelAnd
	levelNot
	levelBetween
	levelCoalesce
	levelNull
	levelCompare
	levelSum
	levelProduct
	levelUnary
	levelPostfix
	levelPrimary
)

// expr parses an expression whose operators outside of parentheses are of the given level or tighter.
func (p *parser) expr(level int) Expr {
	if !p.enter() {
		return badExpr()
	}
	defer p.leave()
	c := chain{parser: p, start: p.start(), level: level}
	c.x = p.prefix()
	for p.mistake == nil && c.operator() {
		p.spend.Nodes(1)
		p.links++
	}
	if p.mistake != nil {
		return badExpr()
	}
	return c.x
}

// chain is an expression that is built up operator by operator, from left to right.
type chain struct {
	*parser
	start int
	level int
	x     Expr
	// logic and concat are x while it is an AND, OR or || of this chain, which the next operand of the same kind is added to.
	logic  *Logic
	concat *Call
}

// operator parses the next operator and its right operand, and applies them to x; false if none of this level follows.
func (c *chain) operator() bool {
	t := c.cur()
	switch t.kind {
	case tokStar:
		return c.binary(levelProduct, Multiply)
	case tokSlash:
		return c.binary(levelProduct, Divide)
	case tokPercent:
		return c.binary(levelProduct, Modulo)
	case tokPlus:
		return c.binary(levelSum, Plus)
	case tokMinus:
		return c.binary(levelSum, Minus)
	case tokConcat:
		return c.concatenation()
	case tokEquals:
		return c.compare(1, Equals)
	case tokNotEquals:
		return c.compare(1, NotEquals)
	case tokLess:
		return c.compare(1, Less)
	case tokLessOrEquals:
		return c.compare(1, LessOrEquals)
	case tokGreater:
		return c.compare(1, Greater)
	case tokGreaterOrEquals:
		return c.compare(1, GreaterOrEquals)
	case tokMatch:
		return c.compare(1, Match)
	case tokNotMatch:
		return c.compare(1, NotMatch)
	case tokIMatch:
		return c.compare(1, IMatch)
	case tokNotIMatch:
		return c.compare(1, NotIMatch)
	case tokCoalesce:
		return c.coalesce()
	case tokQuestion:
		return c.ternary()
	case tokName:
		return c.wordOperator(t.word)
	default: // all other tokens end the expression
	}
	return false
}

func (c *chain) wordOperator(w word) bool {
	switch w {
	case wordIn:
		return c.in(1, In, InCohort)
	case wordLike:
		return c.compare(1, Like)
	case wordILike:
		return c.compare(1, ILike)
	case wordBetween:
		return c.between(false)
	case wordNot:
		switch c.ahead(1).word {
		case wordIn:
			return c.in(2, NotIn, NotInCohort)
		case wordLike:
			return c.compare(2, NotLike)
		case wordILike:
			return c.compare(2, NotILike)
		case wordBetween:
			return c.between(true)
		default: // NOT itself is not an operator between two operands
		}
	case wordIs:
		return c.is()
	case wordAnd:
		return c.logical(levelAnd, false)
	case wordOr:
		return c.logical(levelOr, true)
	case wordAs:
		if c.level > levelAlias {
			return false
		}
		c.next()
		name := c.alias("a name for the column")
		c.set(&Alias{Pos: c.from(c.start), X: c.x, Name: name})
		return true
	default: // all other words end the expression
	}
	return false
}

// take consumes the n tokens of an operator of a level, if the chain may contain it.
func (c *chain) take(n, level int) bool {
	if level < c.level {
		return false
	}
	for range n {
		c.next()
	}
	return true
}

// set makes e the expression so far.
func (c *chain) set(e Expr) {
	c.x, c.logic, c.concat = e, nil, nil
}

// binary and the functions below parse their operator with its right operand, if the chain may contain its level.
func (c *chain) binary(level int, op BinaryOp) bool {
	if !c.take(1, level) {
		return false
	}
	right := c.expr(level + 1)
	c.set(&Binary{Pos: c.from(c.start), Op: op, Left: c.x, Right: right})
	return true
}

func (c *chain) concatenation() bool {
	at := c.cur().span()
	if !c.take(1, levelSum) {
		return false
	}
	right := c.expr(levelSum + 1)
	if c.concat != nil {
		c.concat.Args = append(c.concat.Args, right)
		c.concat.Pos = c.from(c.start)
		return true
	}
	call := &Call{Pos: c.from(c.start), Name: "concat", NamePos: at, Args: []Expr{c.x, right}}
	c.set(call)
	c.concat = call
	return true
}

func (c *chain) compare(tokens int, op CompareOp) bool {
	if !c.take(tokens, levelCompare) {
		return false
	}
	right := c.expr(levelCompare + 1)
	c.set(&Compare{Pos: c.from(c.start), Op: op, Left: c.x, Right: right})
	return true
}

func (c *chain) in(tokens int, op, cohortOp CompareOp) bool {
	if cohort := c.ahead(tokens); cohort.word == wordCohort && startsExpr(c.ahead(tokens+1)) {
		return c.compare(tokens+1, cohortOp)
	}
	return c.compare(tokens, op)
}

func (c *chain) is() bool {
	if !c.take(1, levelNull) {
		return false
	}
	same := !c.acceptWord(wordNot)
	var right Expr
	switch {
	case c.atWord(wordNull):
		right = &Const{Pos: c.next().span()}
	case c.acceptWord(wordDistinct):
		c.expectWord(wordFrom, "FROM")
		right = c.expr(levelNull + 1)
		same = !same
	default:
		c.unexpected("NULL or DISTINCT FROM")
	}
	op := NotEquals
	if same {
		op = Equals
	}
	c.set(&Compare{Pos: c.from(c.start), Op: op, Left: c.x, Right: right})
	return true
}

func (c *chain) coalesce() bool {
	at := c.cur().span()
	if !c.take(1, levelCoalesce) {
		return false
	}
	right := c.expr(levelCoalesce + 1)
	c.set(&Call{Pos: c.from(c.start), Name: "ifNull", NamePos: at, Args: []Expr{c.x, right}})
	return true
}

func (c *chain) logical(level int, or bool) bool {
	if !c.take(1, level) {
		return false
	}
	right := c.expr(level + 1)
	if c.logic != nil && c.logic.Or == or {
		c.logic.Args = append(c.logic.Args, right)
		c.logic.Pos = c.from(c.start)
		return true
	}
	logic := &Logic{Pos: c.from(c.start), Or: or, Args: []Expr{c.x, right}}
	c.set(logic)
	c.logic = logic
	return true
}

// between parses [NOT] BETWEEN low AND high. It binds tighter than NOT, AND and OR, as usual in SQL: an AND after the upper bound joins
// conditions.
func (c *chain) between(not bool) bool {
	tokens := 1
	if not {
		tokens = 2
	}
	if !c.take(tokens, levelBetween) {
		return false
	}
	low := c.expr(levelBetween + 1)
	c.expectWord(wordAnd, "AND and the upper bound of BETWEEN")
	high := c.expr(levelBetween + 1)
	c.set(&Between{Pos: c.from(c.start), X: c.x, Low: low, High: high, Not: not})
	return true
}

func (c *chain) ternary() bool {
	at := c.cur().span()
	if !c.take(1, levelTernary) {
		return false
	}
	then := c.expr(levelTernary)
	c.expect(tokColon, "':' of the ternary operator")
	otherwise := c.expr(levelTernary)
	c.set(&Call{Pos: c.from(c.start), Name: "if", NamePos: at, Args: []Expr{c.x, then, otherwise}})
	return true
}

// prefix parses everything before the first operator: a prefix operator with its operand, or a primary with its postfix operators.
func (p *parser) prefix() Expr {
	start := p.start()
	switch {
	case p.atWord(wordNot):
		p.next()
		x := p.expr(levelNot)
		return &Unary{Pos: p.from(start), Op: Not, X: x}
	case p.at(tokMinus) && !p.signed(1):
		p.next()
		x := p.expr(levelUnary)
		return &Unary{Pos: p.from(start), Op: Negate, X: x}
	}
	x := p.primary()
	for p.mistake == nil {
		more, ok := p.postfix(start, x)
		if !ok {
			return x
		}
		p.spend.Nodes(1)
		p.links++
		x = more
	}
	return badExpr()
}

// signed reports whether the token n places ahead is a number that the sign before it belongs to.
func (p *parser) signed(n int) bool {
	t := p.ahead(n)
	return t.kind == tokNumber || t.word == wordInf || t.word == wordNaN
}

// postfix applies the next postfix operator to x; false if none follows.
func (p *parser) postfix(start int, x Expr) (Expr, bool) {
	switch p.cur().kind {
	case tokLBracket:
		p.next()
		return p.brackets(start, x), true
	case tokDot:
		p.next()
		return p.element(start, x, false), true
	case tokNullDot:
		p.next()
		if p.accept(tokLBracket) {
			i := p.expr(levelAlias)
			p.expect(tokRBracket, "']'")
			return &Index{Pos: p.from(start), X: x, Index: i, NullSafe: true}, true
		}
		return p.element(start, x, true), true
	case tokCast:
		p.next()
		at := p.start()
		t := p.typeName()
		return &Cast{Pos: p.from(start), X: x, Type: t, TypePos: p.from(at)}, true
	case tokLParen:
		p.refuse(p.from(start), "You can only call simple functions in HogQL, not expressions")
		return x, true
	case tokName:
		if p.ignoreNulls() {
			return x, true
		}
	default: // all other tokens end the operand
	}
	return x, false
}

// brackets parses what follows x[.
func (p *parser) brackets(start int, x Expr) Expr {
	var from, to Expr
	if !p.at(tokColon) {
		from = p.expr(levelAlias)
	}
	if !p.accept(tokColon) {
		p.expect(tokRBracket, "']' or ':'")
		return &Index{Pos: p.from(start), X: x, Index: from}
	}
	if !p.at(tokRBracket) {
		to = p.expr(levelAlias)
	}
	p.expect(tokRBracket, "']'")
	return &Slice{Pos: p.from(start), X: x, From: from, To: to}
}

// element parses what follows x. or x?. unless x is a plain chain of names.
func (p *parser) element(start int, x Expr, nullSafe bool) Expr {
	if t := p.cur(); t.kind == tokPathIndex {
		p.next()
		n := p.index(t)
		return &Element{Pos: p.from(start), X: x, N: n, NullSafe: nullSafe}
	}
	if p.atFromEnd() {
		return p.fromEnd(start, x, nullSafe)
	}
	name := p.memberName()
	return &Member{Pos: p.from(start), X: x, Name: name, NullSafe: nullSafe}
}

// exprs parses expressions up to the closing token. A trailing comma is allowed.
func (p *parser) exprs(closing kind, what string) []Expr {
	var out []Expr
	for p.mistake == nil && !p.at(closing) {
		out = append(out, p.expr(levelAlias))
		if !p.accept(tokComma) {
			break
		}
	}
	p.expect(closing, what)
	return out
}

// startsExpr reports whether an expression can start with t.
func startsExpr(t token) bool {
	switch t.kind {
	case tokName:
		return keywordUses[t.word] < reserved || keywordUses[t.word] == constantWord || t.word == wordCase || t.word == wordNot
	case tokQuoted, tokNumber, tokString, tokTemplate, tokTag, tokLParen, tokLBracket, tokLBrace, tokMinus, tokPlus:
		return true
	default: // all other tokens continue an expression, or end it
	}
	return false
}
