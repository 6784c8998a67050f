package trends

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// maxKept is the maximum number of values that a source may have in a piece. With more, the whole query is less work than its pieces.
const maxKept = 5000

// split adds the columns of a source with a breakdown. It allows one row more than the limit, which shows that there are too many.
func (p *pieces) split(out *hogql.Select, i int, src *source) {
	values, seen := &hogql.Array{}, &hogql.Array{}
	for k := range p.b.values {
		value := insight.Field(valueName(k))
		if src.uncut {
			value = insight.CutBreakdown(insight.Field(wholeName(k)))
		}
		values.Items = append(values.Items, value)
	}
	numbers := numberFields(src)
	for index := range numbers {
		events := insight.Const(int64(0))
		if src.seen(index) {
			events = insight.Field(seenName(index))
		}
		seen.Items = append(seen.Items, events)
	}
	out.Columns = append(out.Columns, insight.As(insight.Const(int64(i)), "source"), insight.As(values, "breakdown"),
		insight.As(floats(numbers), "points"), insight.As(seen, "events"))
	out.LimitBy = &hogql.LimitBy{N: insight.Const(int64(maxKept + 1)), Keys: []hogql.Expr{insight.Field("place")}}
}

// seen reports whether the events behind a number are counted.
func (src *source) seen(index int) bool {
	return slices.ContainsFunc(src.lanes, func(c column) bool { return c.index == index && c.seen })
}

// splitNumber is the number of a series for one value in a piece. events is the number of events behind it, if they are counted.
type splitNumber struct{ number, events float64 }

// splitPiece has the numbers of a piece for each series, by the values as JSON.
type splitPiece []map[string]splitNumber

// errNotKept means that the rows do not contain the answer.
var errNotKept = errors.New("the numbers of a piece are not kept")

// maxSplitNumbers is how many numbers of all pieces are read at once: about 200 MB. With more, the whole query takes less memory.
const maxSplitNumbers = 2 << 20

// splitReader reads the pieces of an answer.
type splitReader struct {
	*pieces

	values  map[string]string // by themselves: most are in several pieces
	numbers int
}

// piece reads the rows of a piece. It adds up values that are equal once they are cut.
func (p *splitReader) piece(rows [][]byte) (splitPiece, error) {
	out := make(splitPiece, len(p.b.q.Series))
	for i := range out {
		out[i] = map[string]splitNumber{}
	}
	counts := make([]int, len(p.sources))
	for _, row := range rows {
		var (
			source          int
			values          json.RawMessage
			numbers, events []*float64
		)
		if err := cells(row, &source, &values, &numbers, &events); err != nil {
			return nil, fmt.Errorf("reading a row of a piece of a trend: %w", err)
		}
		if source < 0 || source >= len(p.sources) {
			return nil, fmt.Errorf("reading a row of a piece of a trend: there is no source %d", source)
		}
		if counts[source]++; counts[source] > maxKept {
			return nil, errNotKept
		}
		src := p.sources[source]
		name := p.name(values)
		for _, c := range src.lanes {
			if c.index >= len(numbers) || c.index >= len(events) {
				return nil, fmt.Errorf("reading a row of a piece of a trend: it has %d numbers", len(numbers))
			}
			number, seen := numbers[c.index], events[c.index]
			if number == nil || seen == nil { // not finite, but it affects the rank
				return nil, errNotKept
			}
			of := splitNumber{*number, *seen}
			if len(src.lanes) > 1 && of == (splitNumber{}) {
				continue // the value is in another lane
			}
			if p.numbers++; p.numbers > maxSplitNumbers {
				return nil, errNotKept
			}
			if before, twice := out[c.lane.series][name]; twice {
				if !src.uncut {
					return nil, fmt.Errorf("reading a row of a piece of a trend: %s comes twice", values)
				}
				of.number, of.events = of.number+before.number, of.events+before.events
			}
			out[c.lane.series][name] = of
		}
	}
	return out, nil
}

// name returns the text of values, which all pieces share.
func (p *splitReader) name(values []byte) string {
	name, ok := p.values[string(values)]
	if !ok {
		name = string(values)
		p.values[name] = name
	}
	return name
}

// ranked is a value of a lane with its points.
type ranked struct {
	raw     string // the values as JSON
	values  []string
	keys    []string // of buckets
	points  []float64
	size    float64
	missing bool
}

// splitRows builds the rows of a whole trend with a breakdown: it ranks the values of each lane and merges those past the limit, as the
// query for the whole trend does (see cut).
func (p *pieces) splitRows(found [][][]byte) (iter.Seq[[]byte], bool, error) {
	pieces, reader := make([]splitPiece, len(found)), splitReader{pieces: p, values: map[string]string{}}
	for place, rows := range found {
		var err error
		switch pieces[place], err = reader.piece(rows); {
		case errors.Is(err, errNotKept):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
	}
	var out [][]byte
	for i, src := range p.b.sources {
		for lane, c := range src.lanes {
			values, err := p.ranking(src, c, pieces)
			if err != nil {
				return nil, false, err
			}
			limit := min(len(values), p.b.limit)
			for place := range limit {
				out = append(out, appendRanked(nil, i, lane, place+1, &values[place]))
			}
			if limit < len(values) {
				out = append(out, appendRanked(nil, i, lane, limit+1, mergeValues(src.merge, values[limit:])))
			}
		}
	}
	return slices.Values(out), true, nil
}

// ranking returns the values of a lane, ordered by rank.
func (p *pieces) ranking(src *source, c column, pieces []splitPiece) ([]ranked, error) {
	var out []ranked
	at := map[string]int{}
	for _, place := range p.parts.Of[c.lane.period] {
		key := p.parts.Key(place)
		for raw, of := range pieces[place][c.lane.series] {
			if present := of.number > 0 && !c.seen || of.events > 0 && c.seen; !present && len(src.lanes) > 1 {
				continue
			}
			i, known := at[raw]
			if !known {
				i = len(out)
				at[raw] = i
				r := ranked{raw: raw}
				if err := json.Unmarshal([]byte(raw), &r.values); err != nil {
					return nil, fmt.Errorf("reading the values of a piece of a trend: %w", err)
				}
				r.missing = slices.Contains(r.values, "")
				out = append(out, r)
			}
			out[i].keys, out[i].points = append(out[i].keys, key), append(out[i].points, of.number)
		}
	}
	for i := range out {
		out[i].size = sum(out[i].points)
	}
	slices.SortFunc(out, func(a, b ranked) int {
		if a.missing != b.missing {
			if b.missing {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.size, a.size), slices.Compare(a.values, b.values), cmp.Compare(a.raw, b.raw))
	})
	return out, nil
}

// mergeValues merges several values into one, bucket by bucket.
func mergeValues(m merging, values []ranked) *ranked {
	out := ranked{raw: values[0].raw}
	at := map[string]int{}
	var counts []float64
	for i := range values {
		for k, key := range values[i].keys {
			point := values[i].points[k]
			n, known := at[key]
			if !known {
				at[key] = len(out.keys)
				out.keys, out.points, counts = append(out.keys, key), append(out.points, point), append(counts, 1)
				continue
			}
			counts[n]++
			switch m {
			case mergeSum, mergeAvg:
				out.points[n] += point
			case mergeMin:
				out.points[n] = math.Min(out.points[n], point)
			case mergeMax:
				out.points[n] = math.Max(out.points[n], point)
			}
		}
	}
	if m == mergeAvg {
		for n := range counts {
			out.points[n] /= counts[n]
		}
	}
	return &out
}

// appendRanked appends a row of a trend with a breakdown: see final.
func appendRanked(dst []byte, source, lane, place int, r *ranked) []byte {
	dst = append(dst, '[')
	for _, n := range []int{source, lane, place} {
		dst = append(strconv.AppendInt(dst, int64(n), 10), ',')
	}
	dst = append(append(dst, r.raw...), ",["...)
	for i, key := range r.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), '"')
	}
	dst = append(dst, "],["...)
	for i, point := range r.points {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, point, 'g', -1, 64)
	}
	return append(dst, "]]"...)
}
