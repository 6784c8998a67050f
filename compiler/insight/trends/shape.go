package trends

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// shaper turns rows into results. It is immutable.
type shaper struct {
	q        *Query
	periods  []insight.Range
	lanes    [][]column // by source
	limit    int
	formulas []formula
	total    bool
	several  bool
	scale    float64
	scaled   []bool                 // by series: counts of a sample are scaled up
	cohort   func(id string) string // returns the name of a cohort
	series   func(*query.Series) insight.Counted
	plain    bool // see insight.World.PlainValues
}

// line is one line of the chart, or one number.
type line struct {
	lane   lane
	values []string // of the breakdowns; nil without
	other  bool     // the values past the limit
	points []float64
	count  float64 // the field count of the answer
	number float64 // of a total
}

// axis has the buckets of a period.
type axis struct {
	starts       []time.Time
	days, labels []string
	index        map[string]int // by key
}

func newAxis(r *insight.Range) *axis {
	a := &axis{starts: r.Buckets()}
	a.days, a.labels, a.index = make([]string, len(a.starts)), make([]string, len(a.starts)), make(map[string]int, len(a.starts))
	for i, start := range a.starts {
		a.days[i], a.labels[i], a.index[r.Key(start)] = r.Day(start), r.Label(start), i
	}
	return a
}

// drawing is the lines of a chart in order, and its axes by period.
type drawing struct {
	periods []insight.Range
	axes    []*axis
	lines   []line
	more    bool // values were cut off
}

// draw turns rows into lines.
func (s *shaper) draw(rows iter.Seq[[]byte]) (*drawing, error) {
	found, err := s.read(rows)
	if err != nil {
		return nil, err
	}
	d := &drawing{periods: slices.Clone(s.periods)}
	if d.periods[0].All {
		if d.periods[0], err = d.periods[0].Since(found.earliest); err != nil {
			return nil, err
		}
	}
	d.axes = make([]*axis, len(d.periods))
	for i := range d.periods {
		d.axes[i] = newAxis(&d.periods[i])
	}
	if err := s.checkPoints(found.parts, d.axes); err != nil {
		return nil, err
	}
	d.lines = s.lines(found.parts, d.axes)
	for i := range d.lines {
		s.finish(&d.lines[i])
		d.more = d.more || d.lines[i].other
	}
	s.order(d.lines)
	if b := s.q.Breakdowns; b != nil && b.HideOther {
		d.lines = slices.DeleteFunc(d.lines, func(l line) bool { return l.other })
	}
	return d, nil
}

func (s *shaper) shape(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	d, err := s.draw(rows)
	if err != nil {
		return nil, err
	}
	items := s.items(d.lines, d.axes)
	if len(s.formulas) > 0 {
		computed, err := s.formulaItems(d.lines, d.axes)
		if err != nil {
			return nil, err
		}
		items = slices.Values(computed)
	}
	if s.plain {
		items = plainItems(items)
	}
	results, err := insight.Encode(items)
	if err != nil {
		return nil, fmt.Errorf("encoding the results of a trend: %w", err)
	}
	answer := &insight.Answer{Results: results, HasMore: &d.more, Range: &d.periods[0].Span}
	if len(d.periods) > 1 {
		answer.Previous = &d.periods[1].Span
	}
	return answer, nil
}

// plainItems makes the labels and breakdown values of items plain.
func plainItems(items iter.Seq[item]) iter.Seq[item] {
	return func(yield func(item) bool) {
		for it := range items {
			it.Label, it.Breakdown = insight.PlainLabel(it.Label), insight.PlainValue(it.Breakdown)
			if !yield(it) {
				return
			}
		}
	}
}

// part is the points of a line as the rows have them.
type part struct {
	lane    lane
	values  []string
	other   bool
	buckets []string
	points  []float64
}

// found is the content of the rows.
type found struct {
	parts    []part
	earliest time.Time
}

// read parses the rows: see final.
func (s *shaper) read(rows iter.Seq[[]byte]) (found, error) {
	var out found
	if len(s.lanes) == 0 {
		return out, nil
	}
	for row := range rows {
		var err error
		switch {
		case s.q.Breakdowns != nil:
			err = s.readRanked(row, &out)
		case s.several:
			err = s.readFlat(row, &out)
		default:
			err = s.readSingle(row, &out)
		}
		if err != nil {
			return out, fmt.Errorf("reading a row of a trend: %w", err)
		}
	}
	return out, nil
}

// key is a bucket in a row: a date, or a number.
type key string

// UnmarshalJSON strips the quotes.
func (k *key) UnmarshalJSON(raw []byte) error {
	*k = key(strings.Trim(string(raw), `"`))
	return nil
}

// number is a number in a row; NULL is 0.
type number float64

// UnmarshalJSON reads a number; null and numbers that are not finite count as 0.
func (n *number) UnmarshalJSON(raw []byte) error {
	var f *float64
	if err := json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &f); err == nil && f != nil && !math.IsInf(*f, 0) && !math.IsNaN(*f) {
		*n = number(*f)
	}
	return nil
}

// cells reads a row into variables, one for each column.
func cells(row []byte, into ...any) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(row, &raw); err != nil {
		return err // the caller adds what was read
	}
	if len(raw) != len(into) {
		return fmt.Errorf("it has %d columns, not %d", len(raw), len(into))
	}
	for i := range into {
		if err := json.Unmarshal(raw[i], into[i]); err != nil {
			return err // the caller adds what was read
		}
	}
	return nil
}

func (s *shaper) readSingle(row []byte, out *found) error {
	width := 0
	for _, c := range s.lanes[0] {
		width = max(width, c.index+1)
	}
	numbers := make([]number, width)
	var bucket key = "0"
	var into []any
	if !s.total {
		into = append(into, &bucket)
	}
	for i := range numbers {
		into = append(into, &numbers[i])
	}
	if err := cells(row, into...); err != nil {
		return err
	}
	s.add(out, s.lanes[0], bucket, numbers)
	return nil
}

func (s *shaper) readFlat(row []byte, out *found) error {
	var (
		source  int
		bucket  key
		numbers []number
	)
	if err := cells(row, &source, &bucket, &numbers); err != nil {
		return err
	}
	if source < 0 {
		out.earliest = time.Unix(int64(numbers[0]), 0)
		return nil
	}
	s.add(out, s.lanes[source], bucket, numbers)
	return nil
}

func (s *shaper) add(out *found, columns []column, bucket key, numbers []number) {
	for _, c := range columns {
		out.parts = append(out.parts, part{lane: c.lane, buckets: []string{string(bucket)}, points: []float64{float64(numbers[c.index])}})
	}
}

func (s *shaper) readRanked(row []byte, out *found) error {
	var (
		source, lane, place int
		values              []string
		buckets             []key
		numbers             []number
	)
	if err := cells(row, &source, &lane, &place, &values, &buckets, &numbers); err != nil {
		return err
	}
	if source < 0 {
		out.earliest = time.Unix(int64(numbers[0]), 0)
		return nil
	}
	p := part{lane: s.lanes[source][lane].lane, values: values, other: place > s.limit}
	for i, value := range values {
		switch {
		case p.other:
			values[i] = insight.OtherValue
		case value == "":
			values[i] = insight.NullValue
		}
	}
	for i := range buckets {
		p.buckets, p.points = append(p.buckets, string(buckets[i])), append(p.points, float64(numbers[i]))
	}
	out.parts = append(out.parts, p)
	return nil
}

// lines puts parts on their axes. Without a breakdown there is a line for each lane, even if it has no rows.
// maxPoints bounds the points of an answer with a breakdown. One with more would be larger than any answer may be: a point takes 40 bytes or more, with
// its day and its label.
const maxPoints = 2_000_000

// checkPoints refuses an answer with too many points before they are made: a line has one for each interval, however few rows it has.
func (s *shaper) checkPoints(parts []part, axes []*axis) error {
	if s.q.Breakdowns == nil || s.total {
		return nil
	}
	points := 0
	for _, p := range parts {
		points += len(axes[p.lane.period].starts)
	}
	if points > maxPoints {
		return unsupported(s.q.Breakdowns.At, "The answer has %d points; it may have %d. Use a longer interval, a shorter range or fewer breakdown values.", points, maxPoints)
	}
	return nil
}

func (s *shaper) lines(parts []part, axes []*axis) []line {
	var lines []line
	at := map[lane]int{}
	if s.q.Breakdowns == nil {
		for series := range s.q.Series {
			for period := range s.periods {
				l := lane{series, period}
				at[l] = len(lines)
				lines = append(lines, s.newLine(l, axes))
			}
		}
	}
	for _, p := range parts {
		i, known := at[p.lane]
		if s.q.Breakdowns != nil || !known {
			i = len(lines)
			l := s.newLine(p.lane, axes)
			l.values, l.other = p.values, p.other
			lines = append(lines, l)
		}
		l := &lines[i]
		for k, bucket := range p.buckets {
			if s.total {
				l.number = p.points[k]
			} else if place, ok := axes[p.lane.period].index[bucket]; ok {
				l.points[place] = p.points[k]
			}
		}
	}
	return lines
}

func (s *shaper) newLine(l lane, axes []*axis) line {
	out := line{lane: l}
	if !s.total {
		out.points = make([]float64, len(axes[l.period].starts))
	}
	return out
}

// finish computes the final points of a line: running sums and means, and of a sample what they stand for, each rounded by itself.
func (s *shaper) finish(l *line) {
	if s.q.Display == CumulativeLine {
		for i := 1; i < len(l.points); i++ {
			l.points[i] += l.points[i-1]
		}
	}
	if n := s.q.Smoothing; n > 1 {
		l.points = smoothed(l.points, n)
	}
	l.count = s.countOf(l.points)
	if s.scaled[l.lane.series] {
		l.count, l.number = insight.Scaled(l.count, s.scale), insight.Scaled(l.number, s.scale)
		for i := range l.points {
			l.points[i] = insight.Scaled(l.points[i], s.scale)
		}
	}
}

// countOf returns the sum of points; of running sums, the last one.
func (s *shaper) countOf(points []float64) float64 {
	if s.q.Display == CumulativeLine {
		if len(points) == 0 {
			return 0
		}
		return points[len(points)-1]
	}
	return sum(points)
}

func sum(points []float64) float64 {
	total := 0.0
	for _, p := range points {
		total += p
	}
	return total
}

// smoothed replaces each point by the mean of the n points that end with it, rounded down.
func smoothed(points []float64, n int) []float64 {
	out := make([]float64, len(points))
	for i := range points {
		window := points[max(0, i-n+1) : i+1]
		out[i] = math.Floor(sum(window) / float64(len(window)))
	}
	return out
}

// size returns the number by which lines are ranked.
func (l *line) size() float64 {
	if l.points == nil {
		return l.number
	}
	return sum(l.points)
}

// rank puts lines with a missing value after those without, and the rest after all of them.
func (l *line) rank() int {
	switch {
	case l.other:
		return 2
	case slices.Contains(l.values, insight.NullValue):
		return 1
	}
	return 0
}

// order sorts lines for the answer: by period, by cohort if the cohorts have an order of their own, by series, and by the rank and size of
// their values.
func (s *shaper) order(lines []line) {
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(
			cmp.Compare(a.lane.period, b.lane.period), cmp.Compare(s.place(&a), s.place(&b)), cmp.Compare(a.lane.series, b.lane.series), cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(b.size(), a.size()), slices.Compare(a.values, b.values),
		)
	})
}

// place returns the position of a line's cohort in the query's list, if everybody is in that list; otherwise 0.
func (s *shaper) place(l *line) int {
	if !s.placed() {
		return 0
	}
	return slices.IndexFunc(s.q.Breakdowns.Fields[0].Cohorts, func(c query.Cohort) bool { return strconv.FormatInt(c.ID, 10) == l.values[0] })
}

// placed reports whether the query lists everybody among its cohorts; the lines are then in the order of that list.
func (s *shaper) placed() bool {
	b := s.q.Breakdowns
	return b != nil && !b.Multiple && slices.ContainsFunc(b.Fields[0].Cohorts, func(c query.Cohort) bool { return c.ID == schema.Everybody })
}
