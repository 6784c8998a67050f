package compiler

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// bucketed is a SELECT from events, each row of which belongs to one time bucket. Its rows are ordered by bucket.
type bucketed struct {
	sel     *hogql.Select
	moments moments
	key     hogql.Expr // the bucket, as in GROUP BY
	start   start
	desc    bool
	// rest is the part of WHERE that is not about time; nil for none.
	rest hogql.Expr
	// from and to are the span that is read; to is exclusive, and zero if the span has no end.
	from, to time.Time
	parts    *insight.Parts
	// open is the index of the piece with all buckets from the current one on; -1 for none.
	open          int
	offset, limit int
}

// farFuture is the end used for a span without one.
var farFuture = time.Date(lastYear, time.January, 1, 0, 0, 0, 0, time.UTC)

const (
	// placeName is the column with the index of the piece.
	placeName = "_place_of_piece"
	// maxPieceRows is the most rows that a piece of HogQL may have.
	maxPieceRows = 5000
)

// bucketedPieces returns the pieces of a query: bound has its placeholders filled in, limited also has its limit. It is nil for a query that
// is not made of independent time buckets.
func bucketedPieces(bound, limited hogql.Query, w *insight.World) *insight.Pieces {
	s, isSelect := bound.(*hogql.Select)
	cut, isCut := limited.(*hogql.Select)
	if !isSelect || !isCut {
		return nil
	}
	b := &bucketed{sel: s, moments: moments{w}, open: -1}
	if !b.plain() || !b.limits(s.Limit, cut.Limit) || !b.grouped() || !b.ordered() || !b.bounded() || !b.cutUp() {
		return nil
	}
	return &insight.Pieces{Each: b.each(nil, insight.Const(int64(0))), Pieces: b.parts.Pieces, Query: b.query, Rows: b.rows}
}

// plain reports whether the SELECT has no clause that could make a row depend on other buckets.
func (b *bucketed) plain() bool {
	s := b.sel
	if s.With != nil || s.Distinct || s.ArrayJoin != nil || s.Prewhere != nil || s.Windows != nil || s.Interpolate != nil || s.LimitBy != nil {
		return false
	}
	from, ok := s.From.(*hogql.TableName)
	if !ok || schema.Root(chainText(from.Chain)) != "events" || from.Columns != nil {
		return false
	}
	simple := true
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			simple = simple && !is[*hogql.Star](e) && !is[*hogql.ColumnsMatching](e) && !is[*hogql.Subquery](e) && !is[*hogql.Placeholder](e)
			if a, named := e.(*hogql.Alias); named {
				simple = simple && a.Name.Text != placeName
			}
			if c, called := e.(*hogql.Call); called {
				simple = simple && !strings.EqualFold(c.Name, "arrayJoin")
			}
			return simple
		},
	}
	v.WalkQuery(s)
	return simple
}

// limits reads the limit of the query as it runs, cut. own is the limit that its author wrote; nil for none.
func (b *bucketed) limits(own, cut *hogql.Limit) bool {
	if cut == nil || own != nil && (own.WithTies || own.Percent) {
		return false
	}
	limit, ok := integer(cut.N)
	if !ok || limit < 1 || limit > 1<<40 {
		return false
	}
	b.limit = int(limit)
	if cut.Offset != nil {
		offset, ok := integer(cut.Offset)
		if !ok || offset > 1<<40 {
			return false
		}
		b.offset = int(offset)
	}
	return true
}

// meant returns the expression that a key of GROUP BY or ORDER BY refers to: a column, by number or name, or the key itself.
func (b *bucketed) meant(e hogql.Expr) hogql.Expr {
	if n, ok := integer(e); ok && n >= 1 && n <= int64(len(b.sel.Columns)) {
		return unnamed(b.sel.Columns[n-1])
	}
	return b.named(e)
}

// named returns the expression that e refers to if it is the name of a column. A number is only itself.
func (b *bucketed) named(e hogql.Expr) hogql.Expr {
	f, ok := e.(*hogql.Field)
	if !ok || len(f.Chain) != 1 {
		return unnamed(e)
	}
	for _, column := range b.sel.Columns {
		if a, named := column.(*hogql.Alias); named && a.Name.Text == f.Chain[0].Text {
			return unnamed(a.X)
		}
	}
	return e
}

func is[E hogql.Expr](e hogql.Expr) bool {
	_, ok := e.(E)
	return ok
}

func unnamed(e hogql.Expr) hogql.Expr {
	for {
		a, ok := e.(*hogql.Alias)
		if !ok {
			return e
		}
		e = a.X
	}
}

// timestamp reports whether an expression is the timestamp of the event itself.
func (b *bucketed) timestamp(e hogql.Expr) bool {
	f, ok := e.(*hogql.Field)
	if !ok || len(f.Chain) == 0 || len(f.Chain) > 2 || f.Chain[len(f.Chain)-1].Text != "timestamp" {
		return false
	}
	alias := b.sel.From.(*hogql.TableName).Alias.Text
	if alias == "" {
		alias = "events"
	}
	return len(f.Chain) == 1 || f.Chain[0].Text == alias
}

// grouped finds the bucket among the keys of GROUP BY.
func (b *bucketed) grouped() bool {
	g := b.sel.GroupBy
	if g == nil || g.Mode != hogql.GroupKeys || g.Sets != nil || g.Totals {
		return false
	}
	for _, key := range g.Keys {
		of := b.meant(key)
		if found, ok := startOf(of, b.timestamp); ok {
			b.key, b.start = of, found
			return true
		}
	}
	return false
}

// ordered reports whether the rows come in the order of their buckets.
func (b *bucketed) ordered() bool {
	for _, o := range b.sel.OrderBy {
		if o.Fill != nil {
			return false
		}
	}
	if len(b.sel.OrderBy) == 0 {
		return false
	}
	first := b.sel.OrderBy[0]
	b.desc = first.Desc
	by := b.meant(first.X)
	return by == b.key || hogql.PrintExpr(by) == hogql.PrintExpr(b.key)
}

// bounded reads the span from WHERE, and keeps the other conditions.
func (b *bucketed) bounded() bool {
	var rest []hogql.Expr
	for _, condition := range hogql.Conjuncts(b.sel.Where) {
		if !b.bound(condition) {
			rest = append(rest, condition)
		}
	}
	b.rest = insight.And(rest...)
	return !b.from.IsZero()
}

// bound reports whether a condition bounds the time, and applies it if so.
func (b *bucketed) bound(condition hogql.Expr) bool {
	if c, ok := condition.(*hogql.Between); ok {
		days, ok := b.side(c.X)
		low, known := b.moments.of(c.Low)
		high, both := b.moments.of(c.High)
		if !ok || !known || !both || c.Not {
			return false
		}
		return b.take(days, hogql.GreaterOrEquals, low) && b.take(days, hogql.LessOrEquals, high)
	}
	if c, ok := condition.(*hogql.Compare); ok {
		left, op, right := c.Left, c.Op, c.Right
		days, ok := b.side(left)
		if !ok {
			turned := map[hogql.CompareOp]hogql.CompareOp{
				hogql.Less: hogql.Greater, hogql.LessOrEquals: hogql.GreaterOrEquals, hogql.Greater: hogql.Less, hogql.GreaterOrEquals: hogql.LessOrEquals,
			}
			if op, ok = turned[op]; !ok {
				return false
			}
			right = left
			if days, ok = b.side(c.Right); !ok {
				return false
			}
		}
		at, known := b.moments.of(right)
		return known && b.take(days, op, at)
	}
	return false
}

// side reports whether one side of a comparison is the timestamp of the event, or its day.
func (b *bucketed) side(e hogql.Expr) (days, ok bool) {
	e = b.named(e)
	if b.timestamp(e) {
		return false, true
	}
	found, ok := startOf(e, b.timestamp)
	return true, ok && found.interval == query.Day
}

// take narrows the span by a comparison of the timestamp or, with days, of the midnight at the start of its day.
func (b *bucketed) take(days bool, op hogql.CompareOp, at moment) bool {
	next := at.Add(time.Microsecond) // the first moment after it
	t := at.Time
	if days {
		start := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
		tomorrow := start.AddDate(0, 0, 1)
		if start.Hour() != 0 || tomorrow.Hour() != 0 {
			return false
		}
		if next = tomorrow; !start.Equal(t) {
			t = tomorrow
		}
	}
	switch op {
	case hogql.GreaterOrEquals:
	case hogql.Greater:
		t = next
	case hogql.LessOrEquals:
		b.before(next)
		return true
	case hogql.Less:
		b.before(t)
		return true
	default:
		return false
	}
	if t.After(b.from) {
		b.from = t
	}
	return true
}

func (b *bucketed) before(end time.Time) {
	if b.to.IsZero() || end.Before(b.to) {
		b.to = end
	}
}

// cutUp cuts the span into pieces. If the span extends beyond the current bucket, the buckets from that one on are a single piece: their number is
// unknown.
func (b *bucketed) cutUp() bool {
	w := b.moments.world
	now := w.Now.In(w.Zone())
	r := insight.SpanOf(w, b.start.interval, b.moments.weekStart(b.start), b.from, now)
	present := r.Floor(now)
	end := b.to
	open := end.IsZero() || end.After(r.Next(present))
	if open {
		end = present
	}
	r.To = end.Add(-time.Microsecond)
	var ok bool
	if b.parts, ok = w.CutUp([]insight.Range{r}); !ok {
		return false
	}
	if open {
		to := b.to
		if to.IsZero() {
			to = farFuture
		}
		b.open = len(b.parts.Pieces)
		b.parts.Add(Piece{From: present, To: to, Reach: present}, present, true)
	}
	w.Keep(b.parts.Pieces)
	return true
}

// each returns the query for rows of pieces: within is the condition on their time, nil for all, and place is the index of the piece. That
// column is put first, so the numbers of the query's own columns go up by one.
func (b *bucketed) each(within, place hogql.Expr) hogql.Query {
	out := *b.sel
	out.Columns = append([]hogql.Expr{insight.As(place, placeName)}, b.sel.Columns...)
	out.Where = insight.And(within, b.rest)
	group := *b.sel.GroupBy
	group.Keys = make([]hogql.Expr, len(b.sel.GroupBy.Keys))
	for i, key := range b.sel.GroupBy.Keys {
		group.Keys[i] = b.behind(key)
	}
	out.GroupBy = &group
	out.OrderBy = make([]*hogql.Order, len(b.sel.OrderBy))
	for i, o := range b.sel.OrderBy {
		next := *o
		next.X = b.behind(o.X)
		out.OrderBy[i] = &next
	}
	out.Limit = nil
	most := insight.Const(int64(min(b.offset+b.limit, maxPieceRows+1)))
	if _, single := place.(*hogql.Const); single {
		out.Limit = &hogql.Limit{N: most}
	} else {
		out.Having = insight.And(insight.Compare(insight.Field(placeName), hogql.GreaterOrEquals, insight.Const(int64(0))), out.Having)
		out.LimitBy = &hogql.LimitBy{N: most, Keys: []hogql.Expr{insight.Field(placeName)}}
	}
	return &out
}

// behind returns a key of GROUP BY or ORDER BY for a query with one more column in front.
func (b *bucketed) behind(e hogql.Expr) hogql.Expr {
	if n, ok := integer(e); ok {
		return insight.Const(n + 1)
	}
	return e
}

// query returns the query for the rows of some pieces.
func (b *bucketed) query(places []int) hogql.Query {
	places = slices.Sorted(slices.Values(places))
	timestamp := insight.Field("timestamp")
	closed := places
	var within []hogql.Expr
	var since hogql.Expr // condition of the open piece
	if last := len(places) - 1; places[last] == b.open {
		closed = places[:last]
		piece := b.parts.Pieces[b.open]
		since = insight.Compare(timestamp, hogql.GreaterOrEquals, insight.Const(piece.From))
		if !b.to.IsZero() {
			since = insight.And(since, insight.Compare(timestamp, hogql.Less, insight.Const(piece.To)))
		}
		within = append(within, since)
	}
	if len(closed) > 0 {
		within = append(within, b.parts.Within(timestamp, closed))
	}
	return b.each(insight.Or(within...), b.place(places, closed))
}

// place returns the index of the piece that a row belongs to, computed from its bucket.
func (b *bucketed) place(places, closed []int) hogql.Expr {
	if len(places) == 1 {
		return insight.Const(int64(places[0]))
	}
	number := insight.Call("toDate", b.key)
	if b.start.interval.Clock() > 0 {
		number = insight.Call("toUnixTimestamp", b.key)
	}
	if len(closed) == len(places) {
		return b.parts.Place(b.start.interval, number, closed)
	}
	since, key := b.parts.Number(b.start.interval, number, places, b.open)
	return insight.Call("if", insight.Compare(key, hogql.GreaterOrEquals, insight.Const(since)), insight.Const(int64(b.open)),
		b.parts.Place(b.start.interval, number, closed))
}

// rows concatenates the rows of the pieces, and applies the limit of the query.
func (b *bucketed) rows(pieces [][][]byte) (iter.Seq[[]byte], bool, error) {
	most := min(b.offset+b.limit, maxPieceRows+1)
	var all [][]byte
	for i := range pieces {
		rows := pieces[i]
		if b.desc {
			rows = pieces[len(pieces)-1-i]
		}
		if len(rows) > maxPieceRows && most > maxPieceRows {
			return nil, false, nil
		}
		all = append(all, rows...)
	}
	all = all[min(b.offset, len(all)):]
	return slices.Values(all[:min(b.limit, len(all))]), true, nil
}
