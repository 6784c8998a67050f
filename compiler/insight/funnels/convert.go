package funnels

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The maximum number of ranges of times to convert: if the query has a number, and by default (contract: funnels.md, section 12).
const (
	maxBins     = 90
	maxAutoBins = 60
)

// conversions puts the times of all actors that reached the last of the two steps into ranges of equal width. took is in microseconds,
// everything else in seconds.
const conversions = `
SELECT bins, low, width, average, median, intDiv(took - low * 1000000, width * 1000000) AS bin, count() AS actors
FROM (SELECT bins, low, average, median, if(high > low, intDiv(high - low + bins - 1, bins), 60) AS width, took
	FROM (SELECT {bins} AS bins, intDiv(min(took), 1000000) AS low, intDiv(max(took) + 999999, 1000000) AS high,
			avg(took) / 1000000 AS average, _quantileInclusive(0.5)(took) / 1000000 AS median, groupArray(took) AS all
		FROM (SELECT greatest(times[{last}] - times[{first}], 0) AS took FROM {attempts} WHERE times[{last}] > 0))
	ARRAY JOIN all AS took)
GROUP BY bins, low, width, average, median, bin`

func (b *builder) timeToConvert() (*insight.Built, error) {
	bins := expr("least(greatest(ceil(cbrt(count())), 1), {most})", values{"most": int64(maxAutoBins)})
	if b.q.Bins != nil {
		bins = insight.Const(int64(min(max(*b.q.Bins, 1), maxBins)))
	}
	q, ok := insight.Template(conversions, values{
		"bins": insight.Call("_toInt64", bins), "first": int64(b.q.FromStep() + 1), "last": int64(b.q.ToStep() + 1),
		"attempts": &hogql.Derived{Query: b.attempts().query},
	}).(*hogql.Select)
	if !ok {
		panic("BUG: times to convert are not a SELECT")
	}
	q.Columns = append(q.Columns, b.earliest()...)
	return &insight.Built{Query: q, Shape: b.shapeConversions}, nil
}

// histogram is the answer for times to convert.
type histogram struct {
	// Bins are pairs: the start of a range in seconds, and the number of its actors. The last pair closes the list.
	Bins    [][2]number `json:"bins"`
	Average *number     `json:"average_conversion_time"`
	Median  *number     `json:"median_conversion_time"`
}

func (b *builder) shapeConversions(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	out := histogram{Bins: [][2]number{}}
	dates := b.dates
	for row := range rows {
		c := b.cells(row, 7)
		bins, low, width, average, median, bin, actors := c.number(), c.number(), c.number(), c.number(), c.number(), c.number(), c.number()
		if c.err == nil && (bins < 1 || bins > maxBins || bin < 0 || bin > bins) {
			c.err = fmt.Errorf("it has the range %v of %v", bin, bins)
		}
		var err error
		if dates, err = b.end(c); err != nil {
			return nil, err
		}
		if len(out.Bins) == 0 {
			out.Average, out.Median = &average, &median
			for i := range int(bins) + 1 {
				out.Bins = append(out.Bins, [2]number{low + number(i)*width, 0})
			}
		}
		out.Bins[int(bin)][1] = number(insight.Scaled(float64(actors), insight.Scale(&b.q.Common)))
	}
	results, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the times of a funnel: %w", err)
	}
	return &insight.Answer{Results: results, Range: &dates.Span}, nil
}
