package trends

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// pieces is a trend cut into pieces of time. A piece does not know periods: its rows have the numbers of each series in its span. Every
// query for pieces has the same sources, those of a trend with one period. Its rows are
//
//	place, number…                   of the only source
//	place, source, [number…]         of several sources
//
// and with a breakdown
//
//	place, source, [value…], [number…], [events…]
//
// with all values in a piece. [events…] has, for each number, the count of the events behind it, if these are counted.
type pieces struct {
	b       *builder // of the whole trend
	parts   *insight.Parts
	sources []*source // of a query for pieces
}

// inPieces returns the trend in pieces; nil if the numbers of a piece depend on others: on first events and running totals of people, on
// whole sessions, on the ends of a histogram, or on the start of all time.
func (b *builder) inPieces() *insight.Pieces {
	if b.total() || b.bins() || len(b.sources) == 0 {
		return nil
	}
	b = b.unbounded()
	days := 1 // the days ending with a bucket that affect its number
	for i := range b.q.Series {
		m := must(b.measureOf(&b.q.Series[i]))
		switch {
		case m.way == window && b.q.Interval == query.Day:
			days = max(days, m.days)
		case m.way != direct && m.way != alone && m.way != perActor:
			return nil
		}
	}
	parts, ok := b.w.CutUp(b.periods)
	if !ok {
		return nil
	}
	for i := range parts.Pieces {
		if of := &parts.Pieces[i]; days > 1 {
			of.Reach = b.periods[0].Floor(of.From).AddDate(0, 0, 1-days)
		}
	}
	b.w.Keep(parts.Pieces)
	p := &pieces{b: b, parts: parts}
	p.sources = p.within(b.periods[0].Weekdays(insight.Field("timestamp")), insight.FirstTime, insight.FirstTime)
	return &insight.Pieces{
		Each:   p.union(p.sources, func(hogql.Expr) hogql.Expr { return insight.Const(int64(0)) }),
		Pieces: parts.Pieces, Query: p.query, Rows: p.rows,
	}
}

// must returns v, which could be built before; an error is a bug.
func must[T any](v T, err error) T {
	if err != nil {
		panic("BUG: what was read of a trend cannot be read again: " + err.Error())
	}
	return v
}

// unbounded returns a builder without a budget: what it builds is about as large as the trend itself, which was within the budget.
func (b *builder) unbounded() *builder {
	out, world := *b, *b.w
	world.Spend = nil
	out.w = &world
	return &out
}

// within returns the sources of a query for pieces from a time up to another, for events that satisfy bounds. Windows have their own
// bounds, so for them only the times count.
func (p *pieces) within(bounds hogql.Expr, from, to time.Time) []*source {
	b := *p.b
	r := b.periods[0]
	r.From, r.To = r.Floor(from.In(b.w.Zone())), to.In(b.w.Zone())
	b.sources, b.periods, b.part = nil, []insight.Range{r}, &scope{bounds, []int{0}}
	if err := b.series(); err != nil {
		panic("BUG: what was read of a trend cannot be read again: " + err.Error())
	}
	return b.sources
}

// query returns the query for the rows of some pieces. Whole buckets share one scan of the events and are told apart by their keys; each
// part of a bucket has a scan of its own.
func (p *pieces) query(places []int) hogql.Query {
	places = slices.Sorted(slices.Values(places))
	var whole []int
	var members []hogql.Query
	for _, place := range places {
		if !p.parts.Cut[place] {
			whole = append(whole, place)
			continue
		}
		sources := p.of([]int{place})
		members = append(members, p.union(sources, func(hogql.Expr) hogql.Expr { return insight.Const(int64(place)) }))
	}
	if len(whole) > 0 {
		sources := p.of(whole)
		members = append(members, p.union(sources, func(key hogql.Expr) hogql.Expr {
			if len(whole) == 1 {
				return insight.Const(int64(whole[0]))
			}
			return p.parts.Place(p.b.periods[0].Interval, key, whole)
		}))
	}
	return insight.Union(members...)
}

// of returns the sources of a query for some pieces.
func (p *pieces) of(places []int) []*source {
	timestamp := insight.Field("timestamp")
	from, to := p.parts.Pieces[places[0]].From, p.parts.Pieces[places[len(places)-1]].To
	return p.within(insight.And(p.parts.Within(timestamp, places), p.b.periods[0].Weekdays(timestamp)), from, to.Add(-time.Microsecond))
}

// union combines the rows of sources; place returns the index of a piece by the key of its bucket.
func (p *pieces) union(sources []*source, place func(key hogql.Expr) hogql.Expr) hogql.Query {
	members := make([]hogql.Query, len(sources))
	at := place(insight.Field(bucketName))
	for i, src := range sources {
		out := &hogql.Select{From: insight.From(src.stage), Columns: []hogql.Expr{insight.As(at, "place")}}
		if _, fixed := at.(*hogql.Const); !fixed {
			out.Where = insight.Compare(insight.Field("place"), hogql.GreaterOrEquals, insight.Const(int64(0)))
		}
		switch numbers := numberFields(src); {
		case p.b.split():
			p.split(out, i, src)
		case len(sources) == 1:
			out.Columns = append(out.Columns, numbers...)
		default:
			out.Columns = append(out.Columns, insight.As(insight.Const(int64(i)), "source"), insight.As(floats(numbers), "points"))
		}
		members[i] = out
	}
	return insight.Union(members...)
}

// numberFields returns the fields of a source's numbers.
func numberFields(src *source) []hogql.Expr {
	var out []hogql.Expr
	for _, c := range src.lanes {
		if c.index == len(out) {
			out = append(out, insight.Field(numberName(c.index)))
		}
	}
	return out
}

func floats(numbers []hogql.Expr) hogql.Expr {
	out := &hogql.Array{}
	for _, number := range numbers {
		out.Items = append(out.Items, float(number))
	}
	return out
}

// rows builds the rows of the whole trend from those of its pieces.
func (p *pieces) rows(found [][][]byte) (iter.Seq[[]byte], bool, error) {
	if p.b.split() {
		return p.splitRows(found)
	}
	numbers := make([][]json.RawMessage, len(found)) // by piece and series
	for place, rows := range found {
		numbers[place] = make([]json.RawMessage, len(p.b.q.Series))
		for _, row := range rows {
			if err := p.read(row, numbers[place]); err != nil {
				return nil, false, fmt.Errorf("reading a row of a piece of a trend: %w", err)
			}
		}
	}
	var out [][]byte
	for i, src := range p.b.sources {
		out = p.whole(out, i, src, numbers)
	}
	return slices.Values(out), true, nil
}

// read stores the numbers of a row in those of its piece.
func (p *pieces) read(row []byte, into []json.RawMessage) error {
	var cells []json.RawMessage
	if err := json.Unmarshal(row, &cells); err != nil {
		return err // the caller wraps it
	}
	source := 0
	if len(p.sources) > 1 {
		if len(cells) != 2 {
			return fmt.Errorf("it has %d columns, not 2", len(cells))
		}
		if err := json.Unmarshal(cells[0], &source); err != nil {
			return err // the caller wraps it
		}
		if source < 0 || source >= len(p.sources) {
			return fmt.Errorf("there is no source %d", source)
		}
		if err := json.Unmarshal(cells[1], &cells); err != nil {
			return err // the caller wraps it
		}
	}
	for _, c := range p.sources[source].lanes {
		if c.index >= len(cells) {
			return fmt.Errorf("it has %d numbers", len(cells))
		}
		into[c.lane.series] = cells[c.index]
	}
	return nil
}

// whole appends the rows of a source of the whole trend: see final.
func (p *pieces) whole(out [][]byte, i int, src *source, numbers [][]json.RawMessage) [][]byte {
	width := len(numberFields(src))
	var keys []string
	rows := map[string][]json.RawMessage{}
	for _, c := range src.lanes {
		for _, place := range p.parts.Of[c.lane.period] {
			number := numbers[place][c.lane.series]
			if number == nil {
				continue // no event
			}
			key := p.parts.Key(place)
			row, known := rows[key]
			if !known {
				row = make([]json.RawMessage, width)
				keys, rows[key] = append(keys, key), row
			}
			row[c.index] = number
		}
	}
	for _, key := range keys {
		row := []byte{'['}
		if p.b.several() {
			row = append(strconv.AppendInt(row, int64(i), 10), ',')
		}
		row = append(append(append(row, '"'), key...), '"', ',')
		if p.b.several() {
			row = append(row, '[')
		}
		for k, number := range rows[key] {
			if k > 0 {
				row = append(row, ',')
			}
			if number == nil {
				number = json.RawMessage("0")
			}
			row = append(row, number...)
		}
		if p.b.several() {
			row = append(row, ']')
		}
		out = append(out, append(row, ']'))
	}
	return out
}
