package insight

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Pieces is an insight in pieces of time, each of which can be computed without the others.
type Pieces struct {
	// Each is the query for the rows of all pieces, whatever their time is: equal texts have equal rows for the same span of the same data.
	Each hogql.Query
	// Created reports whether Each reads the table of persons once for itself: to find out when those were created who have events in the span, sent
	// with a profile. Who is created later has no such events, so that it changes no row.
	Created bool
	// Pieces are those that the answer is made of, in the order of time.
	Pieces []Piece
	// Query is the query for the rows of some of the pieces, by their places in Pieces. The first column of a row is the place of its piece.
	Query func(places []int) hogql.Query
	// Rows makes the rows that Shape reads from those of all pieces, JSON arrays without their first column. It is false where the pieces do not
	// have the answer after all, so that the whole query has to be run.
	Rows func(pieces [][][]byte) (rows iter.Seq[[]byte], ok bool, err error)
}

// Piece is a span of time that is computed alone.
type Piece struct {
	// From is the beginning of the span, To its end, which is not part of it.
	From, To time.Time
	// Reach is the time from which on events decide about the rows: From, or earlier.
	Reach time.Time
	// Whole reports whether every answer that has the piece has all of it, so that its rows may be kept for other answers.
	Whole bool
}

// MostPieces is how many pieces an insight may have.
const MostPieces = 4000

// Parts are pieces of ranges: one for each of their buckets that may have events that count.
type Parts struct {
	Pieces []Piece
	// Cut reports, by piece, whether it is only a part of its bucket.
	Cut []bool
	// Of are the places in Pieces of the buckets of each range, in the order of time.
	Of [][]int

	interval query.Interval
	starts   []time.Time // of the buckets, by piece
}

// Key is the key of the bucket of a piece: see Range.Key.
func (p *Parts) Key(place int) string { return keyOf(p.interval, p.starts[place]) }

// Add adds a piece after the others, of the bucket that starts at a time; cut reports whether it is only a part of that.
func (p *Parts) Add(piece Piece, start time.Time, cut bool) {
	p.Pieces, p.Cut, p.starts = append(p.Pieces, piece), append(p.Cut, cut), append(p.starts, start)
}

// CutUp cuts ranges of the same interval into pieces. It is false when they cannot be: where a change of the clock brings midnight twice, days
// have no beginning that all count alike; and when there would be too many pieces, or none that can be kept.
func (w *World) CutUp(ranges []Range) (*Parts, bool) {
	type part struct {
		Piece
		start time.Time // of its bucket
		cut   bool
		of    int // the range that has it
	}
	var all []part
	out := &Parts{Of: make([][]int, len(ranges))}
	for i := range ranges {
		r := &ranges[i]
		if r.All || r.Lower.Before(r.Floor(r.From)) || r.To.Sub(r.From)/MostPieces > r.longest() { // 4000 months are more than a Duration holds
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
	most := len(all) + 1 // who cuts up may add one
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
	return out, whole && len(out.Pieces) <= MostPieces
}

// longest is the length of the longest bucket.
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

// Keep marks the pieces that are not whole since their first events may be too old for the project to keep them.
func (w *World) Keep(pieces []Piece) {
	for i := range pieces {
		if pieces[i].Reach.Before(w.Database.EventsFrom) {
			pieces[i].Whole = false
		}
	}
}

// mostSpans is how many spans of time a query for pieces tells apart.
const mostSpans = 16

// Within is the condition that a moment lies in one of some pieces, which are in the order of time. It also holds in short gaps between them, where
// there are many: Place tells these apart.
func (p *Parts) Within(moment hogql.Expr, places []int) hogql.Expr {
	var gaps []time.Duration
	gap := func(i int) time.Duration { return p.Pieces[places[i]].From.Sub(p.Pieces[places[i-1]].To) }
	for i := 1; i < len(places); i++ {
		gaps = append(gaps, gap(i))
	}
	slices.SortFunc(gaps, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	longest := time.Duration(0)
	if len(gaps) >= mostSpans {
		longest = gaps[mostSpans-1]
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

// Place gives the place of the piece that a bucket is, by its key, of some that are alone in their buckets; -1 for another bucket.
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

// Number counts a piece by the key of its bucket, among some pieces; and gives the same number of a key in a query.
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

// daysBetween counts the days from the date of one time to that of another.
func daysBetween(from, to time.Time) int64 {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int64(day(to).Sub(day(from)) / (24 * time.Hour))
}
