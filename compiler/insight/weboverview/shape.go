package weboverview

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
)

// item is one number of the answer.
type item struct {
	Key string `json:"key"`
	// Kind is the kind of the number: unit, duration_s, percentage or currency.
	Kind          string   `json:"kind"`
	IsIncreaseBad *bool    `json:"isIncreaseBad"`
	Value         *float64 `json:"value"`
	Previous      *float64 `json:"previous"`
	// Change is the growth of the number, in percent.
	Change *float64 `json:"changeFromPreviousPct"`
}

// The kinds of numbers.
const (
	unit       = "unit"
	duration   = "duration_s"
	percentage = "percentage"
	currency   = "currency"
)

// shape turns the row into the answer.
type shape struct {
	query   *Query
	periods web.Periods
}

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var cells []*float64
	for raw := range rows {
		if cells != nil {
			return nil, fmt.Errorf("an overview has more than one row: %s", raw)
		}
		if err := json.Unmarshal(raw, &cells); err != nil {
			return nil, fmt.Errorf("reading the row of an overview: %w", err)
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("the row of an overview has %d cells", len(cells))
	}
	span, err := s.periods.Since(cells[0])
	if err != nil {
		return nil, err
	}
	items, err := s.items(cells[1:])
	if err != nil {
		return nil, err
	}
	out := &insight.Answer{Range: &span, Previous: s.periods.Previous}
	if out.Results, err = json.Marshal(items); err != nil {
		return nil, fmt.Errorf("encoding an overview: %w", err)
	}
	out.More, err = json.Marshal(struct {
		DateFrom     string   `json:"dateFrom"`
		DateTo       string   `json:"dateTo"`
		SamplingRate web.Rate `json:"samplingRate"`
		Prepared     bool     `json:"usedPreAggregatedTables"`
	}{span.From.Format(time.DateTime), span.To.Format(time.DateTime), s.query.Rate, false})
	return out, err
}

// items returns the numbers in the order of the answer. cells are those of the current period, then those of the previous one.
func (s shape) items(cells []*float64) ([]item, error) {
	read, revenue := s.visits, "revenue"
	if s.query.Goal != nil {
		read, revenue = s.conversions, "conversion revenue"
	}
	items, n := read(cells)
	compared := s.periods.Previous != nil
	if want := n * (1 + map[bool]int{true: 1}[compared]); len(cells) != want {
		return nil, fmt.Errorf("the row of an overview has %d numbers, not %d", len(cells), want)
	}
	if compared {
		before, _ := read(cells[n:])
		for i := range items {
			items[i].Previous = before[i].Value
			items[i].Change = change(items[i].Value, before[i].Value)
		}
	}
	if s.query.Revenue { // no project says which events have revenue
		items = append(items, item{Key: revenue, Kind: currency})
	}
	return items, nil
}

// visits reads the numbers of one period, and returns how many cells they take.
func (s shape) visits(cells []*float64) ([]item, int) {
	if len(cells) < 5 {
		return nil, 5
	}
	scale, bad := insight.Scale(&s.query.Common), true
	return []item{
		{Key: "visitors", Kind: unit, Value: scaled(cells[0], scale)},
		{Key: "views", Kind: unit, Value: scaled(orZero(cells[1]), scale)},
		{Key: "sessions", Kind: unit, Value: scaled(cells[2], scale)},
		{Key: "session duration", Kind: duration, Value: cells[3]},
		{Key: "bounce rate", Kind: percentage, IsIncreaseBad: &bad, Value: percent(cells[4])},
	}, 5
}

// conversions is like visits, for a query with a goal.
func (s shape) conversions(cells []*float64) ([]item, int) {
	if len(cells) < 3 {
		return nil, 3
	}
	scale := insight.Scale(&s.query.Common)
	visitors, converted := cells[0], cells[2]
	var rate *float64
	if visitors != nil && converted != nil && *visitors > 0 {
		rate = new(100 * (*converted / *visitors))
	}
	return []item{
		{Key: "visitors", Kind: unit, Value: scaled(visitors, scale)},
		{Key: "total conversions", Kind: unit, Value: scaled(orZero(cells[1]), scale)},
		{Key: "unique conversions", Kind: unit, Value: scaled(converted, scale)},
		{Key: "conversion rate", Kind: percentage, Value: rate},
	}, 3
}

func orZero(n *float64) *float64 {
	if n == nil {
		return new(float64)
	}
	return n
}

func scaled(n *float64, scale float64) *float64 {
	if n == nil {
		return nil
	}
	return new(insight.Scaled(*n, scale))
}

func percent(share *float64) *float64 {
	if share == nil {
		return nil
	}
	return new(*share * 100)
}

// change returns the growth of a number, in percent; nil if there is nothing to grow from.
func change(now, before *float64) *float64 {
	if now == nil || before == nil || *before == 0 {
		return nil
	}
	return new(math.RoundToEven(100 * (*now - *before) / *before))
}
