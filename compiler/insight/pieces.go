package insight

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Pieces is an insight cut into pieces of time, each of which can be computed without the others.
type Pieces struct {
	// Each is the query for the rows of a piece, without the bounds of its time: if two have equal text, they return equal rows for the
	// same span of the same data.
	Each hogql.Query
	// Created reports whether Each, apart from its filters, reads the table of persons exactly once: to get the creation times of persons
	// that have events with a profile in the span. Creating another person later changes no row, since it has no such events.
	Created bool
	// Pieces are the pieces of the answer, in order of time.
	Pieces []Piece
	// Query returns the query for the rows of some pieces, given by their index in Pieces. The first column of a row is the index of its
	// piece.
	Query func(places []int) hogql.Query
	// Rows turns the rows of all pieces, JSON arrays without their first column, into the rows that Shape reads. It returns false if the
	// pieces do not contain the answer after all, so that the whole query must run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}

// Piece is a span of time that is computed separately.
type Piece struct {
	// From is the start of the span, To its end, which is not part of it.
	From, To time.Time
	// Reach is the time of the earliest events that affect the rows: From, or earlier.
	Reach time.Time
	// Whole reports whether every answer that has the piece has all of it, so that its rows may be kept for other answers.
	Whole bool
}

// mostPieces is the maximum number of pieces of an insight.
const mostPieces = 4000

// Parts are the pieces of ranges: one for each bucket that may have events that count.
type Parts struct {
	Pieces []Piece
	// Cut reports, for each piece, whether it is only part of its bucket.
	Cut []bool
	// Of are the indexes in Pieces of each range's buckets, in order of time.
	Of [][]int

	interval query.Interval
	starts   []time.Time // of the bucket of each piece
}

// Key returns the key of a piece's bucket: see Range.Key.
func (p *Parts) Key(place int) string { return keyOf(p.interval, p.starts[place]) }

// Add appends a piece of the bucket that starts at a time; cut reports whether it is only part of that bucket.
func (p *Parts) Add(piece Piece, start time.Time, cut bool) {
	p.Pieces, p.Cut, p.starts = append(p.Pieces, piece), append(p.Cut, cut), append(p.starts, start)
}

// CutUp cuts ranges of the same interval into pieces. It returns false if that is not possible: where a clock change makes midnight occur
// twice, the start of a day is ambiguous. It also returns false if there would be too many pieces, or none that can be kept.
func (w *World) CutUp(ranges []Range) (*Parts, bool) {
	type part struct {
		Piece
		start time.Time // of its bucket
		cut   bool
		of    int // the index of its range
	}
	var all []part
	out := &Parts{Of: make([][]int, len(ranges))}
	for i := range ranges {
		r := &ranges[i]
		if r.All || r.Lower.Before(r.Floor(r.From)) || r.To.Sub(r.From)/mostPieces > r.longest() { // 4000 months are more than a Duration can hold
			return nil, false
		}
		starts := r.Buckets()
		all = slices.Grow(all, len(starts))
		out.Of[i], out.interval = make([]int, 0, len(starts)), r.Interval
		var before time.Time
		for n, start := range starts {
			next := r.Next(start)
			if !r.Floor(start).Equal(start) || r.Floor(next.Add(-time.Microsecond)).Before(start) || n > 0 && start.Before(before) {
				return nil, false
			}
			before = next
			p := part{Piece: Piece{From: start, To: next}, start: start, of: i}
			if r.Lower.After(p.From) {
				p.From, p.cut = r.Lower, true
			}
			if end := r.To.Add(time.Microsecond); end.Before(p.To) { // To is the last moment that counts
				p.To, p.cut = end, true
			}
			if p.From.Before(p.To) {
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b part) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), a.start.Compare(b.start))
	})
	most := len(all) + 1 // a caller may add one
	out.Pieces, out.Cut, out.starts = make([]Piece, 0, most), make([]bool, 0, most), make([]time.Time, 0, most)
	whole := false
	for _, p := range all {
		last := len(out.Pieces) - 1
		if last < 0 || !out.Pieces[last].From.Equal(p.From) || !out.Pieces[last].To.Equal(p.To) {
			p.Reach, p.Whole = p.From, !p.cut
			last++
			out.Add(p.Piece, p.start, p.cut)
		}
		out.Of[p.of] = append(out.Of[p.of], last)
		whole = whole || out.Pieces[last].Whole
	}
	return out, whole && len(out.Pieces) <= mostPieces
}

// longest returns the length of the longest bucket.
func (r *Range) longest() time.Duration {
	if clock := r.Interval.Clock(); clock > 0 {
		return clock
	}
	const day = 24 * time.Hour
	switch r.Interval {
	case query.Week:
		return 7 * day
	case query.Month, query.Quarter, query.Year:
		return time.Duration(r.Interval.Months()) * 31 * day
	case query.Second, query.Minute, query.Hour, query.Day:
	}
	return day
}

// Keep marks pieces as not whole if their earliest events may be too old for the project to keep.
func (w *World) Keep(pieces []Piece) {
	for i := range pieces {
		if pieces[i].Reach.Before(w.Database.EventsFrom) {
			pieces[i].Whole = false
		}
	}
}

// maxSpans is the maximum number of spans in the time condition of a query for pieces.
const maxSpans = 16

// Within returns the condition that a moment is in one of the given pieces, which are in order of time. If there are many gaps between
// them, the condition also holds in the short ones; Place tells those moments apart.
func (p *Parts) Within(moment hogql.Expr, places []int) hogql.Expr {
	var gaps []time.Duration
	gap := func(i int) time.Duration { return p.Pieces[places[i]].From.Sub(p.Pieces[places[i-1]].To) }
	for i := 1; i < len(places); i++ {
		gaps = append(gaps, gap(i))
	}
	slices.SortFunc(gaps, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	longest := time.Duration(0)
	if len(gaps) >= maxSpans {
		longest = gaps[maxSpans-1]
	}
	var spans []hogql.Expr
	for i := 0; i < len(places); {
		from := p.Pieces[places[i]].From
		for i++; i < len(places) && gap(i) <= longest; i++ {
		}
		to := p.Pieces[places[i-1]].To
		spans = append(spans, And(Compare(moment, hogql.GreaterOrEquals, Const(from)), Compare(moment, hogql.Less, Const(to))))
	}
	return Or(spans...)
}

// Place returns the index of the piece whose bucket has a key, among the given pieces, each the only one of its bucket; -1 for any other
// bucket.
func (p *Parts) Place(interval query.Interval, key hogql.Expr, places []int) hogql.Expr {
	if len(places) == 1 {
		first, number := p.Number(interval, key, places, places[0])
		return Call("if", Eq(number, Const(first)), Const(int64(places[0])), Const(int64(-1)))
	}
	keys, each := make([]any, len(places)), make([]any, len(places))
	var number hogql.Expr
	for i, place := range places {
		keys[i], number = p.Number(interval, key, places, place)
		each[i] = int64(place)
	}
	return Call("transform", number, list(keys), list(each), Const(int64(-1)))
}

// Number numbers the buckets of the given pieces: it returns the number of one piece's bucket, and an expression for the number of a key in
// a query.
func (p *Parts) Number(interval query.Interval, key hogql.Expr, places []int, place int) (int64, hogql.Expr) {
	if interval.Clock() > 0 {
		return p.starts[place].Unix(), key
	}
	first := places[0]
	return daysBetween(p.starts[first], p.starts[place]), Call("dateDiff", Const("day"), Call("toDate", Const(p.Key(first))), key)
}

func list(values []any) hogql.Expr {
	out := &hogql.Array{Items: make([]hogql.Expr, len(values))}
	for i, v := range values {
		out.Items[i] = Const(v)
	}
	return out
}

// daysBetween counts the days from the date of one time to the date of another.
func daysBetween(from, to time.Time) int64 {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int64(day(to).Sub(day(from)) / (24 * time.Hour))
}
