package bind

import (
	"cmp"
	"math"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Mode says what the rows of the outermost SELECT are for, and so how it is limited.
type Mode uint8

// The modes.
const (
	// QueryRoute limits a query without LIMIT to the default, and fetches one more row to tell whether there are more.
	QueryRoute Mode = iota
	// Pages fetches the snapshot that an endpoint serves in pages: as many rows as the query's own LIMIT, but at most one more than the maximum. That
	// row shows that there are rows that no page reaches.
	Pages
	// Whole fetches every row of the query: the limit added to a query without LIMIT is out of reach.
	Whole
)

// The default limits (contract: hogql.md, section 12).
const (
	DefaultRows = 100
	MaxRows     = 50_000
)

// everyRow exceeds the rows of any query, and is small enough to be added up over the members of a set.
const everyRow = 1 << 53

// Limits are the row limits of contract hogql.md, section 12.
type Limits struct {
	Default int // for a query without LIMIT. Default: DefaultRows
	Max     int // for any query. Default: MaxRows
	Mode    Mode
}

// Cut reports how a query was limited.
type Cut struct {
	Limit   int  // the most rows to return
	Probe   bool // the query asks for one more row than Limit
	Default bool // the query had no LIMIT of its own
	Set     bool // its outermost level is a set operation
}

// Limit returns q with a limit on its outermost SELECT. Subqueries and LIMIT BY are unchanged.
//
// ClickHouse reads a negative LIMIT as rows from the end and a fraction as a share of all rows. Both are refused; an expression that is not
// constant is clamped to the valid range at run time.
func Limit(q hogql.Query, l Limits) (hogql.Query, Cut, error) {
	l.Default, l.Max = cmp.Or(l.Default, DefaultRows), cmp.Or(l.Max, MaxRows)
	if l.Mode == Whole {
		l.Default, l.Max = everyRow, everyRow
	}
	c := cutter{Limits: l}
	var out hogql.Query
	switch q := q.(type) {
	case *hogql.Select:
		out = c.outermost(q)
	case *hogql.SetQuery:
		c.cut.Set = true
		var total int
		out, total = c.member(q)
		if set, ok := out.(*hogql.SetQuery); ok && total > l.Max {
			capped := *set
			capped.Limit = &hogql.Limit{N: integer(l.Max)}
			if set.Limit != nil {
				capped.Limit.Offset = set.Limit.Offset
			}
			out = &capped
		}
		c.cut.Limit = min(total, l.Max)
	case *hogql.QueryPlaceholder:
		out = q
	}
	if err := c.mistakes.Err(); err != nil {
		return nil, Cut{}, err
	}
	return out, c.cut, nil
}

type cutter struct {
	Limits
	cut      Cut
	mistakes diag.List
}

func integer(n int) *hogql.Const { return &hogql.Const{Value: int64(n)} }

// outermost limits a query that is a single SELECT.
func (c *cutter) outermost(s *hogql.Select) hogql.Query {
	if s.Limit == nil || absent(s.Limit) {
		c.cut.Default, c.cut.Probe = true, true
		c.cut.Limit = c.Default
		if c.Mode == Pages {
			c.cut.Limit = c.Max
		}
		limit := &hogql.Limit{N: integer(c.cut.Limit + 1)}
		if s.Limit != nil {
			limit.Pos, limit.Offset = s.Limit.Pos, c.offset(s.Limit.Offset)
		}
		return withLimit(s, limit)
	}
	most := c.Max
	if c.Mode == Pages {
		c.Max++
	}
	out, rows := c.own(s.Limit, func(l *hogql.Limit) hogql.Query { return withLimit(s, l) })
	c.cut.Limit, c.cut.Probe = min(rows, most), rows > most
	return out
}

// member limits a member of a set operation, which may be a set operation itself, and returns the most rows that it can give.
func (c *cutter) member(q hogql.Query) (hogql.Query, int) {
	switch q := q.(type) {
	case *hogql.Select:
		if q.Limit == nil || absent(q.Limit) {
			limit := &hogql.Limit{N: integer(c.Default)}
			if q.Limit != nil {
				limit.Pos, limit.Offset = q.Limit.Pos, c.offset(q.Limit.Offset)
			}
			return withLimit(q, limit), c.Default
		}
		return c.own(q.Limit, func(l *hogql.Limit) hogql.Query { return withLimit(q, l) })
	case *hogql.SetQuery:
		return c.set(q)
	case *hogql.QueryPlaceholder:
	}
	return q, 0
}

func (c *cutter) set(q *hogql.SetQuery) (hogql.Query, int) {
	limited := func(l *hogql.Limit) hogql.Query {
		out := *q
		out.Limit = l
		return &out
	}
	if q.Limit != nil && !absent(q.Limit) {
		return c.own(q.Limit, limited)
	}
	for _, op := range q.Ops {
		if op != hogql.UnionAll && op != hogql.UnionDistinct { // limiting the members would change the result
			limit := &hogql.Limit{N: integer(c.Default)}
			if q.Limit != nil {
				limit.Pos, limit.Offset = q.Limit.Pos, c.offset(q.Limit.Offset)
			}
			return limited(limit), c.Default
		}
	}
	out := *q
	out.Members = make([]hogql.Query, len(q.Members))
	total := 0
	for i, m := range q.Members {
		var rows int
		out.Members[i], rows = c.member(m)
		total += rows
	}
	if q.Limit != nil {
		out.Limit = &hogql.Limit{Pos: q.Limit.Pos, Offset: c.offset(q.Limit.Offset)}
	}
	return &out, total
}

func withLimit(s *hogql.Select, l *hogql.Limit) *hogql.Select {
	out := *s
	out.Limit = l
	return &out
}

// absent reports whether a LIMIT clause sets no limit: OFFSET alone, or LIMIT NULL.
func absent(l *hogql.Limit) bool {
	if l.N == nil {
		return true
	}
	n, ok := l.N.(*hogql.Const)
	return ok && n.Value == nil
}

// own keeps the query's own LIMIT, lowered to the maximum. limited returns the query with another limit.
func (c *cutter) own(l *hogql.Limit, limited func(*hogql.Limit) hogql.Query) (hogql.Query, int) {
	kept := &hogql.Limit{Pos: l.Pos, Offset: c.offset(l.Offset), WithTies: l.WithTies, Percent: l.Percent}
	if l.Percent {
		kept.N = c.percent(l.N)
		return c.wrapped(limited(kept)), c.Max
	}
	n, rows := c.count(l.N, "LIMIT", c.Max)
	kept.N = n
	if l.WithTies {
		return c.wrapped(limited(kept)), c.Max
	}
	return limited(kept), rows
}

// wrapped puts a query whose own LIMIT does not bound its rows into a SELECT with one that does.
func (c *cutter) wrapped(q hogql.Query) hogql.Query {
	return &hogql.Select{
		Pos:     q.At(),
		Columns: []hogql.Expr{&hogql.Star{}},
		From:    &hogql.Derived{Query: q},
		Limit:   &hogql.Limit{N: integer(c.Max)},
	}
}

func (c *cutter) offset(e hogql.Expr) hogql.Expr {
	if e == nil {
		return nil
	}
	if n, ok := e.(*hogql.Const); ok && n.Value == nil {
		return nil
	}
	n, _ := c.count(e, "OFFSET", math.MaxInt64)
	return n
}

// percent checks the number in LIMIT n %.
func (c *cutter) percent(e hogql.Expr) hogql.Expr {
	if n, ok := fold(e); ok {
		if share, isNumber := hogql.FloatOf(n); isNumber && share >= 0 && share <= 100 {
			return &hogql.Const{Pos: e.At(), Value: n}
		}
	}
	c.mistakes.Addf(diag.QueryError, e.At(), "LIMIT %% takes a number from 0 to 100")
	return e
}

// count returns the expression for a number of rows, limited to most, and the largest value that it can have.
func (c *cutter) count(e hogql.Expr, clause string, most int) (hogql.Expr, int) {
	v, constant := fold(e)
	if !constant {
		return clamped(e, most), most
	}
	n := int64(-1)
	switch v := v.(type) {
	case int64:
		n = v
	case uint64:
		n = math.MaxInt64
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			n = int64(v)
		}
	}
	if n < 0 {
		c.mistakes.Addf(diag.QueryError, e.At(), "%s takes a whole number that is not negative", clause)
		return e, 0
	}
	n = min(n, int64(most))
	return &hogql.Const{Pos: e.At(), Value: n}, int(n)
}

// clamped clamps a computed number of rows to its range: NULL and fractions become 0.
func clamped(e hogql.Expr, most int) hogql.Expr {
	call := func(name string, args ...hogql.Expr) hogql.Expr {
		return &hogql.Call{Pos: e.At(), Name: name, Args: args}
	}
	n := call("ifNull", call("toInt", e), integer(0))
	if most < math.MaxInt64 {
		n = call("min2", integer(most), n)
	}
	return call("max2", integer(0), n)
}

// fold evaluates a number made of constants and operators.
func fold(e hogql.Expr) (any, bool) {
	if c, ok := e.(*hogql.Const); ok {
		return c.Value, true
	}
	if u, ok := e.(*hogql.Unary); ok && u.Op == hogql.Negate {
		if v, ok := fold(u.X); ok {
			return arithmetic(hogql.Minus, int64(0), v)
		}
	}
	if b, ok := e.(*hogql.Binary); ok {
		left, constant := fold(b.Left)
		right, both := fold(b.Right)
		if constant && both {
			return arithmetic(b.Op, left, right)
		}
	}
	return nil, false
}
