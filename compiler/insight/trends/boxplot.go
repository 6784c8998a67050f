package trends

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// BoxPlot is the display that shows the distribution of a property's values in each bucket.
const BoxPlot Display = "BoxPlot"

// The queries for the boxes of a series: of the values of events, or of sessions, each of which counts once in a bucket.
const (
	boxesOfEvents = `SELECT {series} AS series, {bucket} AS bucket, {numbers} AS numbers, toUnixTimestamp(min(timestamp)) AS earliest
		FROM {events} WHERE {condition} GROUP BY bucket`
	boxesOfSessions = `SELECT {series} AS series, bucket, {numbers} AS numbers, min(first) AS earliest FROM (
		SELECT {bucket} AS bucket, any({of}) AS number, toUnixTimestamp(min(timestamp)) AS first FROM {events} WHERE {condition} GROUP BY bucket, $session_id
	) GROUP BY bucket`
)

// statistics are the numbers of a box, in order.
var statistics = []measure{
	{function: "min"},
	{function: "_quantileInclusive", level: 0.25},
	{function: "_quantileInclusive", level: 0.5},
	{function: "_quantileInclusive", level: 0.75},
	{function: "max"},
	{function: "avg"},
}

// maxBoxes is the maximum number of boxes in an answer, over all series.
const maxBoxes = 50_000

// noProperty is the error in the answer if a series has no property, as in PostHog.
const noProperty = "A numeric property must be selected for box plot."

// boxPlot builds a box plot. It ignores breakdowns, comparisons, formulas and the math of a series. The error is a *diag.Error.
func boxPlot(q *Query, w *insight.World) (*insight.Built, error) {
	plain := *q
	plain.Breakdowns, plain.Compare, plain.Formulas, plain.Smoothing = nil, nil, nil, 0
	b := &builder{q: &plain, w: w}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	s := boxes{q: q, dates: b.periods[0]}
	if !s.dates.All {
		if err := s.check(&s.dates); err != nil {
			return nil, err
		}
	}
	var members []hogql.Query
	for i := range q.Series {
		series := &q.Series[i]
		if series.Math.Property == "" {
			return nothing(&s.dates, noProperty), nil
		}
		member, err := b.boxes(i, series)
		if err != nil {
			return nil, err
		}
		members = append(members, member)
		name := w.Label(series)
		if series.CustomName != "" {
			name = series.CustomName
		}
		s.labels = append(s.labels, name+" - "+series.Math.Property)
	}
	if len(members) == 0 {
		return nothing(&s.dates, ""), nil
	}
	return &insight.Built{Query: insight.Union(members...), Shape: s.answer}, nil
}

// nothing returns a query without rows, whose answer has no boxes and says why.
func nothing(dates *insight.Range, why string) *insight.Built {
	return &insight.Built{
		Query: insight.Template("SELECT 0 AS series WHERE 1 = 0", nil),
		Shape: func(iter.Seq[[]byte]) (*insight.Answer, error) {
			answer := &insight.Answer{Results: []byte("[]"), More: boxMember([]byte("[]")), Error: why}
			if !dates.All {
				answer.Range = &dates.Span
			}
			return answer, nil
		},
	}
}

// boxes returns the query for the boxes of one series.
func (b *builder) boxes(number int, s *query.Series) (hogql.Query, error) {
	m, err := b.propertyMath(s, "avg") // a box has all statistics, whatever the math is
	if err != nil {
		return nil, err
	}
	condition, err := b.w.Series(s)
	if err != nil {
		return nil, err
	}
	dates := &b.periods[0]
	v := map[string]any{
		"series": int64(number), "bucket": dates.Bucket(insight.Field("timestamp")), "of": m.of, "events": insight.Events(&b.q.Common),
		"condition": insight.And(condition, b.common, dates.Bounds()), "numbers": numbersOf(m.of),
	}
	if m.way != perSession {
		return insight.Template(boxesOfEvents, v), nil
	}
	v["numbers"] = numbersOf(insight.Field("number"))
	return insight.Template(boxesOfSessions, v), nil
}

// numbersOf returns the statistics of a value.
func numbersOf(x hogql.Expr) hogql.Expr {
	out := &hogql.Array{}
	for i := range statistics {
		out.Items = append(out.Items, float(statistics[i].aggregate(x, nil)))
	}
	return out
}

// box is the distribution of a property's values in a bucket; all zeros if there are none.
type box struct {
	Day         string `json:"day"`
	Label       string `json:"label"`
	Min         number `json:"min"`
	P25         number `json:"p25"`
	Median      number `json:"median"`
	P75         number `json:"p75"`
	Max         number `json:"max"`
	Mean        number `json:"mean"`
	Series      int    `json:"series_index"`
	SeriesLabel string `json:"series_label"`
}

// boxes turns rows into the boxes of all series, one for each bucket.
type boxes struct {
	q      *Query
	dates  insight.Range
	labels []string
}

// check refuses an answer with too many boxes.
func (s *boxes) check(dates *insight.Range) error {
	if n := len(dates.Buckets()) * len(s.q.Series); n > maxBoxes {
		return diag.Field(diag.InvalidInput, s.q.Field("interval"), "This box plot has %d boxes; there may be %d. Use a longer interval, a shorter range or fewer series.", n, maxBoxes)
	}
	return nil
}

func (s boxes) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	type place struct {
		series int
		bucket key
	}
	found := map[place][]number{}
	first := int64(0)
	for row := range rows {
		var (
			at       place
			numbers  []number
			earliest int64
		)
		if err := cells(row, &at.series, &at.bucket, &numbers, &earliest); err != nil {
			return nil, fmt.Errorf("reading a row of a box plot: %w", err)
		}
		if at.series < 0 || at.series >= len(s.labels) || len(numbers) != len(statistics) {
			return nil, fmt.Errorf("reading a row of a box plot: series %d has %d numbers", at.series, len(numbers))
		}
		if found[at] = numbers; first == 0 || earliest < first {
			first = earliest
		}
	}
	dates := s.dates
	if dates.All {
		var err error
		if dates, err = dates.Since(time.Unix(first, 0)); err != nil {
			return nil, err
		}
		if err := s.check(&dates); err != nil {
			return nil, err
		}
	}
	all := []box{}
	for series, label := range s.labels {
		for _, start := range dates.Buckets() {
			one := box{Day: dates.Day(start), Label: dates.Label(start), Series: series, SeriesLabel: label}
			if n := found[place{series, key(dates.Key(start))}]; n != nil {
				one.Min, one.P25, one.Median, one.P75, one.Max, one.Mean = n[0], n[1], n[2], n[3], n[4], n[5]
			}
			all = append(all, one)
		}
	}
	out, err := insight.Encode(slices.Values(all))
	if err != nil {
		return nil, fmt.Errorf("encoding a box plot: %w", err)
	}
	return &insight.Answer{Results: out, More: boxMember(out), Range: &dates.Span}, nil
}

// boxMember returns the member of an answer that repeats the boxes: PostHog's clients read it if the results are empty, and older ones read
// nothing else.
func boxMember(boxes []byte) []byte {
	return slices.Concat([]byte(`{"boxplot_data":`), boxes, []byte("}"))
}

// boxForm is the form of the results of a box plot.
func boxForm() form.Form {
	value := form.Number()
	return form.List(form.Object(form.Members{
		"day": form.Text(), "label": form.Text(), "min": value, "p25": value, "median": value, "p75": value, "max": value, "mean": value,
		"series_index": form.Integer(), "series_label": form.Text(),
	}).As("BoxPlotDatum"))
}

// Table formats the results as a table of text. A box plot has a line for each box.
func Table(q *Query, results []byte) ([][]string, error) {
	if q.Display != BoxPlot {
		return insight.SeriesTable(results)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(results, &list); err != nil {
		return nil, err // the caller wraps it
	}
	columns := []string{"series_label", "day", "min", "p25", "median", "p75", "max", "mean"}
	out := [][]string{columns}
	for _, one := range list {
		line := make([]string, len(columns))
		for i, name := range columns {
			line[i] = insight.Cell(one[name])
		}
		out = append(out, line)
	}
	return out, nil
}
