package stickiness

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// result is one item of the answer (contract: stickiness.md, section 6).
type result struct {
	Action       action   `json:"action"`
	Label        string   `json:"label"`
	Count        int64    `json:"count"`
	Data         []int64  `json:"data"`
	Days         []int    `json:"days"`
	Labels       []string `json:"labels"`
	Compare      bool     `json:"compare,omitempty"`
	CompareLabel string   `json:"compare_label,omitempty"`
}

// action describes what was counted.
type action struct {
	Order      int     `json:"order"`
	Type       string  `json:"type"`
	Name       string  `json:"name"`
	ID         any     `json:"id"`
	CustomName *string `json:"custom_name"`
}

// shape turns rows into answers.
type shape struct {
	query    *Query
	dates    insight.Range
	previous *insight.Range // nil without a comparison
	items    []item
	counted  func(*query.Series) insight.Counted
}

// row is the number of an item's actors that were active in a number of intervals.
type row struct{ intervals, actors int64 }

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	counts := make([][]row, len(s.items))
	dates := s.dates
	for raw := range rows {
		var cells [3]int64
		if err := json.Unmarshal(raw, &cells); err != nil {
			return nil, fmt.Errorf("reading a row of a stickiness: %w", err)
		}
		switch at := cells[0]; {
		case at == earliest:
			var err error
			if dates, err = s.dates.Since(time.Unix(cells[1], 0)); err != nil {
				return nil, err
			}
		case at < 0 || at >= int64(len(s.items)):
			return nil, fmt.Errorf("reading a row of a stickiness: there is no item %d", at)
		default:
			counts[at] = append(counts[at], row{cells[1], cells[2]})
		}
	}
	results := make([]result, len(s.items))
	for i, it := range s.items {
		if it.dates.All {
			it.dates = dates
		}
		results[i] = s.result(&it, counts[i])
	}
	out, err := insight.Encode(slices.Values(results))
	if err != nil {
		return nil, fmt.Errorf("encoding a stickiness: %w", err)
	}
	answer := &insight.Answer{Results: out, Range: &dates.Span}
	if s.previous != nil {
		answer.Previous = &s.previous.Span
	}
	return answer, nil
}

// result sets the numbers of one item: the actors that were active in one interval, in two, and so on.
func (s shape) result(it *item, counts []row) result {
	size := len(it.dates.Buckets())
	if together := s.query.IntervalCount; together != nil {
		size = (size + *together - 1) / *together
	}
	counted := s.counted(it.series)
	out := result{
		Action: action{Order: it.order, Type: counted.Type, Name: counted.Name, ID: counted.ID},
		Label:  counted.Name, Data: make([]int64, size), Days: make([]int, size), Labels: make([]string, size),
		Compare: it.label != "", CompareLabel: it.label,
	}
	if custom := it.series.CustomName; custom != "" {
		out.Action.CustomName = &custom
	}
	for i := range size {
		out.Days[i], out.Labels[i] = i+1, s.label(i+1)
	}
	for _, r := range counts {
		if r.intervals >= 1 && r.intervals <= int64(size) {
			out.Data[r.intervals-1] = r.actors
			out.Count += r.actors
		}
	}
	if s.query.Cumulative {
		for i := size - 2; i >= 0; i-- {
			out.Data[i] += out.Data[i+1]
		}
	}
	return out
}

// label returns the label of a number of intervals.
func (s shape) label(n int) string {
	text := strconv.Itoa(n) + " " + string(s.query.Interval)
	if n > 1 {
		text += "s"
	}
	if s.query.Cumulative {
		text += " or more"
	}
	return text
}
