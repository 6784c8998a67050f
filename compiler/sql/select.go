package sql

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

func (p *printer) query(q resolved.Query) {
	p.checkSize(q.At())
	switch q := q.(type) {
	case *resolved.Select:
		p.selection(q)
	case *resolved.SetQuery:
		p.setQuery(q)
	}
}

func (p *printer) selection(s *resolved.Select) {
	outer := len(p.ctes)
	p.with(s.With, s.Recursive)
	p.open(s)
	p.str("SELECT ")
	if s.Distinct {
		p.str("DISTINCT ")
	}
	if len(s.Columns) == 0 {
		p.bug("a SELECT without columns")
	}
	for i, column := range s.Columns {
		if i > 0 {
			p.str(", ")
		}
		p.expr(column)
	}
	if s.From != nil {
		p.str(" FROM ")
		p.table(s.From, false)
	} else if p.scope.outer == nil {
		p.str(" FROM (SELECT 1)") // ClickHouse does not enforce limits on rows, bytes or time for a result that reads no table
	}
	p.arrayJoin(s.ArrayJoin)
	var guard resolved.Expr
	if scan, ok := s.From.(*resolved.Scan); ok {
		guard = scan.Guard
	}
	p.condition(" WHERE ", guard, s.Where)
	p.groupBy(s.GroupBy)
	p.condition(" HAVING ", nil, s.Having)
	for i, w := range s.Windows {
		if i == 0 {
			p.str(" WINDOW ")
		} else {
			p.str(", ")
		}
		p.ident(w.Name)
		p.str(" AS ")
		p.over(w.Window)
	}
	p.orderBy(s.OrderBy)
	p.interpolate(s.Interpolate)
	if by := s.LimitBy; by != nil {
		p.str(" LIMIT ")
		p.expr(by.N)
		if by.Offset != nil {
			p.str(" OFFSET ")
			p.expr(by.Offset)
		}
		p.str(" BY ")
		p.exprs(by.Keys)
	}
	p.limit(s.Limit)
	p.close()
	p.ctes = p.ctes[:outer]
}

// setQuery writes queries joined by set operators. ClickHouse applies WITH to the first member, and ORDER BY and LIMIT to the last, so a set with
// any of them becomes a subquery.
func (p *printer) setQuery(s *resolved.SetQuery) {
	if len(s.Members) < 2 || len(s.Ops) != len(s.Members)-1 {
		p.bug("a set operation over %d queries with %d operators", len(s.Members), len(s.Ops))
	}
	wrapped := len(s.With) > 0 || len(s.OrderBy) > 0 || s.Limit != nil
	outer := len(p.ctes)
	if wrapped {
		p.with(s.With, s.Recursive)
		p.str("SELECT * FROM (")
	}
	for i, member := range s.Members {
		if i > 0 {
			p.operator(s.Ops[i-1])
		}
		if needsParentheses(member) {
			p.byte('(')
			p.query(member)
			p.byte(')')
		} else {
			p.query(member)
		}
	}
	if wrapped {
		p.byte(')')
		p.scope = &scope{outer: p.scope, tables: []source{{}}, first: len(p.names)}
		p.orderBy(s.OrderBy)
		p.limit(s.Limit)
		p.close()
	}
	p.ctes = p.ctes[:outer]
}

// needsParentheses reports whether a member of a set operation needs parentheses: another set, or a SELECT whose WITH would apply to the members
// after it.
func needsParentheses(member resolved.Query) bool {
	s, ok := member.(*resolved.Select)
	return !ok || len(s.With) > 0
}

func (p *printer) operator(op hogql.SetOp) {
	switch op {
	case hogql.UnionAll:
		p.str(" UNION ALL ")
	case hogql.UnionDistinct:
		p.str(" UNION DISTINCT ")
	case hogql.Intersect:
		p.str(" INTERSECT ")
	case hogql.IntersectDistinct:
		p.str(" INTERSECT DISTINCT ")
	case hogql.Except:
		p.str(" EXCEPT ")
	default:
		p.bug("set operator %d", op)
	}
}

// with writes common table expressions and puts them in scope. Their printed names are never those of physical tables: where ClickHouse's scope
// rules differ from ours, the name must find nothing rather than the table.
func (p *printer) with(ctes []*resolved.CTE, recursive bool) {
	for i, c := range ctes {
		switch {
		case i > 0:
			p.str(", ")
		case recursive:
			p.str("WITH RECURSIVE ")
		default:
			p.str("WITH ")
		}
		name := c.Name
		printed := name
		for isPhysical(printed) || slices.ContainsFunc(p.ctes, func(other cte) bool { return other.printed == printed }) {
			printed += "_"
		}
		if recursive {
			p.ctes = append(p.ctes, cte{name, printed})
		}
		p.ident(printed)
		p.str(" AS (")
		p.query(c.Query)
		p.byte(')')
		if !recursive {
			p.ctes = append(p.ctes, cte{name, printed})
		}
	}
	if len(ctes) > 0 {
		p.byte(' ')
	}
}

func isPhysical(name string) bool {
	_, known := schema.PhysicalTable(name)
	return known || physical.HoldsEndpoint(name)
}

func (p *printer) arrayJoin(a *resolved.ArrayJoin) {
	if a == nil {
		return
	}
	if a.Left {
		p.str(" LEFT ARRAY JOIN ")
	} else {
		p.str(" ARRAY JOIN ")
	}
	for i, array := range a.Arrays {
		if i > 0 {
			p.str(", ")
		}
		p.alias(array)
	}
}

// condition writes a clause with a condition, preceded by the guard.
func (p *printer) condition(clause string, guard, e resolved.Expr) {
	switch {
	case guard != nil && e != nil:
		p.str(clause)
		p.operand(guard, schema.LevelAnd-1)
		p.str(" AND ")
		p.operand(e, schema.LevelAnd-1)
	case guard != nil:
		p.str(clause)
		p.expr(guard)
	case e != nil:
		p.str(clause)
		p.expr(e)
	}
}

func (p *printer) groupBy(g *resolved.GroupBy) {
	if g == nil {
		return
	}
	p.str(" GROUP BY ")
	switch g.Mode {
	case hogql.GroupKeys:
		p.exprs(g.Keys)
	case hogql.GroupCube:
		p.str("CUBE")
		p.args(g.Keys)
	case hogql.GroupRollup:
		p.str("ROLLUP")
		p.args(g.Keys)
	case hogql.GroupSets:
		p.str("GROUPING SETS (")
		for i, set := range g.Sets {
			if i > 0 {
				p.str(", ")
			}
			p.args(set)
		}
		p.byte(')')
	case hogql.GroupAll:
		p.str("ALL")
	default:
		p.bug("GROUP BY mode %d", g.Mode)
	}
	if g.Totals {
		p.str(" WITH TOTALS")
	}
}

func (p *printer) interpolate(n *resolved.Interpolate) {
	if n == nil {
		return
	}
	p.str(" INTERPOLATE")
	for i, c := range n.Columns {
		if i == 0 {
			p.str(" (")
		} else {
			p.str(", ")
		}
		p.ident(c.Name)
		if c.X != nil {
			p.str(" AS ")
			p.operand(c.X, schema.LevelWhole)
		}
	}
	if len(n.Columns) > 0 {
		p.byte(')')
	}
}

func (p *printer) orderBy(keys []*resolved.Order) {
	for i, key := range keys {
		if i == 0 {
			p.str(" ORDER BY ")
		} else {
			p.str(", ")
		}
		p.operand(key.X, schema.LevelWhole)
		if key.Desc {
			p.str(" DESC")
		} else {
			p.str(" ASC")
		}
		switch key.Nulls {
		case hogql.NullsDefault:
		case hogql.NullsFirst:
			p.str(" NULLS FIRST")
		case hogql.NullsLast:
			p.str(" NULLS LAST")
		default:
			p.bug("order of NULLs %d", key.Nulls)
		}
		if fill := key.Fill; fill != nil {
			p.str(" WITH FILL")
			p.optional(" FROM ", fill.From)
			p.optional(" TO ", fill.To)
			p.optional(" STEP ", fill.Step)
		}
	}
}

func (p *printer) optional(word string, e resolved.Expr) {
	if e != nil {
		p.str(word)
		p.operand(e, schema.LevelWhole)
	}
}

// limit writes LIMIT. A percentage is written as a fraction, as in ClickHouse.
func (p *printer) limit(l *resolved.Limit) {
	if l == nil {
		return
	}
	limited := true
	switch {
	case l.N == nil:
	case l.Percent:
		limited = p.percent(l.N)
	default:
		p.str(" LIMIT ")
		p.operand(l.N, schema.LevelWhole)
	}
	p.optional(" OFFSET ", l.Offset)
	if l.WithTies && limited {
		p.str(" WITH TIES")
	}
}

// percent writes LIMIT n % as a fraction of one. All rows is the same as no limit; then it writes nothing, and reports false.
func (p *printer) percent(e resolved.Expr) bool {
	c, ok := e.(*resolved.Const)
	if !ok {
		p.bug("a percentage that is not a constant")
	}
	var share float64
	switch v := c.Value.(type) {
	case int64:
		share = float64(v)
	case float64:
		share = v
	default:
		p.bug("a percentage of type %T", c.Value)
	}
	if !(share >= 0 && share <= 100) {
		p.bug("a percentage of %v", share)
	}
	if share == 100 {
		return false
	}
	p.str(" LIMIT ")
	p.buf = appendFloat(p.buf, share/100)
	return true
}

// over writes a window definition, or the name of one.
func (p *printer) over(w *resolved.Window) {
	if w.Name != "" && len(w.PartitionBy) == 0 && len(w.OrderBy) == 0 && w.Frame == nil {
		p.ident(w.Name)
		return
	}
	p.byte('(')
	start := len(p.buf)
	if w.Name != "" {
		p.byte(' ')
		p.ident(w.Name)
	}
	if len(w.PartitionBy) > 0 {
		p.str(" PARTITION BY ")
		p.exprs(w.PartitionBy)
	}
	p.orderBy(w.OrderBy)
	if f := w.Frame; f != nil {
		if f.Range {
			p.str(" RANGE ")
		} else {
			p.str(" ROWS ")
		}
		if f.End.Kind == hogql.FrameNone {
			p.bound(f.Start)
		} else {
			p.str("BETWEEN ")
			p.bound(f.Start)
			p.str(" AND ")
			p.bound(f.End)
		}
	}
	if len(p.buf) > start { // every part begins with a blank
		p.buf = slices.Delete(p.buf, start, start+1)
	}
	p.byte(')')
}

func (p *printer) bound(b resolved.Bound) {
	switch b.Kind {
	case hogql.CurrentRow:
		p.str("CURRENT ROW")
	case hogql.UnboundedPreceding:
		p.str("UNBOUNDED PRECEDING")
	case hogql.UnboundedFollowing:
		p.str("UNBOUNDED FOLLOWING")
	case hogql.Preceding:
		p.expr(b.N)
		p.str(" PRECEDING")
	case hogql.Following:
		p.expr(b.N)
		p.str(" FOLLOWING")
	default:
		p.bug("frame bound %d", b.Kind)
	}
}
