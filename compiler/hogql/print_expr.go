package hogql

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// expr writes e, in parentheses if its operator is looser than level.
func (p *printer) expr(e Expr, level int) {
	if p.most > 0 && p.text.Len() >= p.most {
		return
	}
	p.spend.Nodes(1)
	if p.functions && p.functionForm(e) {
		return
	}
	parens := levelOf(e) < level
	if parens {
		p.put("(")
	}
	p.bare(e)
	if parens {
		p.put(")")
	}
}

// levelOf returns the level of the operator that e is written with.
func levelOf(e Expr) int {
	switch n := e.(type) {
	case *Alias, *Lambda:
		return levelAlias
	case *Between:
		return levelBetween
	case *Logic:
		if n.Or {
			return levelOr
		}
		return levelAnd
	case *Compare:
		if isNullTest(n) {
			return levelNull
		}
		return levelCompare
	case *Binary:
		if n.Op == Plus || n.Op == Minus {
			return levelSum
		}
		return levelProduct
	case *Unary:
		if n.Op == Not {
			return levelNot
		}
		return levelUnary
	case *Const, *Field, *Star, *ColumnsMatching, *Call, *Case, *Cast, *Tuple, *Array, *Dict, *Index, *Slice, *Element,
		*Member, *Interval, *Placeholder, *Subquery:
	}
	return levelPostfix
}

// isNullTest reports whether n is written as IS [NOT] NULL.
func isNullTest(n *Compare) bool {
	c, ok := n.Right.(*Const)
	return ok && c.Value == nil && (n.Op == Equals || n.Op == NotEquals)
}

var (
	binaryOps = [...]string{Plus: " + ", Minus: " - ", Multiply: " * ", Divide: " / ", Modulo: " % "}

	compareOps = [...]string{
		Equals: " = ", NotEquals: " != ", Less: " < ", LessOrEquals: " <= ", Greater: " > ", GreaterOrEquals: " >= ",
		In: " IN ", NotIn: " NOT IN ", InCohort: " IN COHORT ", NotInCohort: " NOT IN COHORT ",
		Like: " LIKE ", NotLike: " NOT LIKE ", ILike: " ILIKE ", NotILike: " NOT ILIKE ",
		Match: " =~ ", NotMatch: " !~ ", IMatch: " =~* ", NotIMatch: " !~* ",
	}
)

// bare writes e without parentheses around it.
func (p *printer) bare(e Expr) {
	switch n := e.(type) {
	case *Const:
		p.value(n.Value)
	case *Field:
		p.chain(n.Chain)
	case *Star:
		p.star(n)
	case *ColumnsMatching:
		if n.Spread {
			p.put("*")
		}
		p.put("COLUMNS(")
		p.quote(n.Pattern, '\'')
		p.put(")")
	case *Call:
		p.function(n.Name)
		p.arguments(n.Params, n.Args, n.Distinct, n.OrderBy)
		if n.Filter != nil {
			p.put(" FILTER (WHERE ")
			p.item(n.Filter)
			p.put(")")
		}
		p.over(n.Over)
	case *Unary:
		p.unary(n)
	case *Binary:
		level := levelOf(n)
		p.expr(n.Left, level)
		p.put(binaryOps[n.Op])
		p.expr(n.Right, level+1)
	case *Compare:
		p.compare(n)
	case *Logic:
		p.logic(n)
	case *Between:
		p.expr(n.X, levelBetween+1)
		if n.Not {
			p.put(" NOT")
		}
		p.put(" BETWEEN ")
		p.expr(n.Low, levelBetween+1)
		p.put(" AND ")
		p.expr(n.High, levelBetween+1)
	case *Case:
		p.caseWhen(n)
	case *Cast:
		p.put("CAST(")
		p.expr(n.X, levelTernary)
		p.put(" AS ", n.Type, ")")
	case *Tuple:
		p.put("(")
		commas(p, n.Items, p.item)
		if len(n.Items) == 1 {
			p.put(",")
		}
		p.put(")")
	case *Array:
		p.put("[")
		commas(p, n.Items, p.item)
		p.put("]")
	case *Dict:
		p.dict(n)
	case *Lambda:
		p.lambda(n)
	case *Index:
		p.expr(n.X, levelPostfix)
		if n.NullSafe {
			p.put("?.")
		}
		p.put("[")
		p.item(n.Index)
		p.put("]")
	case *Slice:
		p.slice(n)
	case *Element:
		p.owner(n.X, n.NullSafe)
		p.put(strconv.Itoa(n.N))
	case *Member:
		p.owner(n.X, n.NullSafe)
		p.link(n.Name)
	case *Interval:
		p.interval(n)
	case *Placeholder:
		p.put("{")
		p.item(n.X)
		p.put("}")
	case *Subquery:
		p.put("(")
		p.query(n.Query)
		p.put(")")
	case *Alias:
		p.expr(n.X, levelTernary)
		p.put(" AS ")
		p.name(n.Name)
	}
}

// value writes a constant.
func (p *printer) value(v any) {
	if p.most > 0 && p.text.Len() >= p.most {
		return
	}
	switch v := v.(type) {
	case nil:
		p.put("NULL")
	case bool:
		p.put(strconv.FormatBool(v))
	case int64:
		p.put(strconv.FormatInt(v, 10))
	case uint64:
		p.put(strconv.FormatUint(v, 10))
	case float64:
		p.float(v)
	case string:
		if p.quiet {
			v = "value"
		}
		p.quote(v, '\'')
	case time.Time:
		if p.quiet {
			p.value("")
			return
		}
		p.put("toDateTime64('", v.UTC().Format("2006-01-02 15:04:05.000000"), "', 6, 'UTC')")
	case []any:
		if p.quiet {
			p.value("")
			return
		}
		p.spend.Nodes(len(v))
		p.put("[")
		commas(p, v, p.value)
		p.put("]")
	default:
		panic(fmt.Sprintf("BUG: a constant of type %T", v))
	}
}

func (p *printer) float(f float64) {
	switch {
	case math.IsNaN(f):
		p.put("nan")
		return
	case math.IsInf(f, 1):
		p.put("inf")
		return
	case math.IsInf(f, -1):
		p.put("-inf")
		return
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	p.put(s)
	if !strings.ContainsAny(s, ".e") {
		p.put(".0")
	}
}

func (p *printer) star(n *Star) {
	columns := n.Replace != nil || n.Spread || n.Columns && n.Exclude == nil
	if n.Spread {
		p.put("*")
	}
	if columns {
		p.put("COLUMNS(")
	}
	if n.Table != nil {
		p.chain(n.Table)
		p.put(".")
	}
	p.put("*")
	if n.Exclude != nil {
		p.put(" EXCLUDE (")
		commas(p, n.Exclude, p.chain)
		p.put(")")
	}
	if n.Replace != nil {
		p.put(" REPLACE (")
		commas(p, n.Replace, func(a *Alias) { p.item(a) })
		p.put(")")
	}
	if columns {
		p.put(")")
	}
}

// arguments writes the lists of a call; params is nil if there is only one.
func (p *printer) arguments(params, args []Expr, distinct bool, orderBy []*Order) {
	if params != nil {
		p.call("", params)
	}
	p.put("(")
	if distinct {
		p.put("DISTINCT")
		if len(args) > 0 {
			p.put(" ")
		}
	}
	commas(p, args, p.item)
	p.orderBy(" ", orderBy)
	p.put(")")
}

func (p *printer) over(w *Window) {
	if w != nil {
		p.put(" OVER ")
		p.window(w)
	}
}

func (p *printer) unary(n *Unary) {
	if n.Op == Not {
		p.put("NOT ")
		p.expr(n.X, levelNot)
		return
	}
	p.put("-")
	if startsWithNumber(n.X) {
		p.put("(")
		p.item(n.X)
		p.put(")")
		return
	}
	p.expr(n.X, levelUnary)
}

// startsWithNumber reports whether the text of e starts with a number or a minus, whose meaning a minus before it would change.
func startsWithNumber(e Expr) bool {
	switch n := e.(type) {
	case *Const:
		return true
	case *Unary:
		return n.Op == Negate
	case *Index:
		return startsWithNumber(n.X)
	case *Slice:
		return startsWithNumber(n.X)
	case *Element:
		return startsWithNumber(n.X)
	case *Member:
		return startsWithNumber(n.X)
	case *Field, *Star, *ColumnsMatching, *Call, *Binary, *Compare, *Logic, *Between, *Case, *Cast, *Tuple, *Array, *Dict,
		*Lambda, *Interval, *Placeholder, *Subquery, *Alias:
	}
	return false
}

func (p *printer) compare(n *Compare) {
	if isNullTest(n) {
		p.expr(n.Left, levelNull)
		if n.Op == Equals {
			p.put(" IS NULL")
		} else {
			p.put(" IS NOT NULL")
		}
		return
	}
	level := levelCompare + 1
	if n.Op == InCohort || n.Op == NotInCohort {
		switch n.Right.(type) { //nolint:gochecksumtype // Everything else could be misread, as x IN cohort AND (y).
		case *Const, *Field, *Placeholder, *Subquery:
		default:
			level = levelPrimary
		}
	}
	p.expr(n.Left, levelCompare)
	p.put(compareOps[n.Op])
	p.expr(n.Right, level)
}

func (p *printer) logic(n *Logic) {
	level, word := levelAnd, " AND "
	if n.Or {
		level, word = levelOr, " OR "
	}
	for i, arg := range n.Args {
		if i > 0 {
			p.put(word)
		}
		p.expr(arg, level+1)
	}
}

func (p *printer) caseWhen(n *Case) {
	p.put("CASE")
	if n.X != nil {
		p.put(" ")
		p.item(n.X)
	}
	for _, w := range n.Whens {
		p.put(" WHEN ")
		p.item(w.If)
		p.put(" THEN ")
		p.item(w.Then)
	}
	if n.Else != nil {
		p.put(" ELSE ")
		p.item(n.Else)
	}
	p.put(" END")
}

func (p *printer) dict(n *Dict) {
	p.put("{")
	for i, key := range n.Keys {
		if i > 0 {
			p.put(", ")
		}
		p.item(key)
		p.put(": ")
		p.item(n.Values[i])
	}
	p.put("}")
}

func (p *printer) lambda(n *Lambda) {
	if len(n.Params) == 1 {
		p.ident(n.Params[0])
	} else {
		p.put("(")
		commas(p, n.Params, p.ident)
		p.put(")")
	}
	p.put(" -> ")
	p.item(n.Body)
}

func (p *printer) slice(n *Slice) {
	p.expr(n.X, levelPostfix)
	p.put("[")
	if n.From != nil {
		p.item(n.From)
	}
	p.put(":")
	if n.To != nil {
		p.item(n.To)
	}
	p.put("]")
}

// owner writes the operand before the dot of an element or member, and the dot. A field needs parentheses, since the dot would continue its
// chain; so do a number and an asterisk, after which the dot would start a number.
func (p *printer) owner(x Expr, nullSafe bool) {
	dot, level := ".", levelPostfix
	if nullSafe {
		dot = "?."
	}
	switch x.(type) { //nolint:gochecksumtype // Everything else takes a dot as it is.
	case *Const, *Star:
		level = levelPrimary
	case *Field:
		if !nullSafe {
			level = levelPrimary
		}
	}
	p.expr(x, level)
	p.put(dot)
}

func (p *printer) interval(n *Interval) {
	level := levelPrimary        // in parentheses, but for what starts an interval wherever the word is
	switch count := n.N.(type) { //nolint:gochecksumtype // Everything else could be misread.
	case *Const:
		switch count.Value.(type) {
		case int64, uint64, string:
			level = levelPostfix
		}
	case *Field, *Placeholder:
		level = levelPostfix
	}
	p.put("INTERVAL ")
	p.expr(n.N, level)
	p.put(" ", n.Unit)
}
