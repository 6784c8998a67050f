package lifecycle

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

// item is one status of the answer (contract: lifecycle.md, section 6).
type item struct {
	Action action    `json:"action"`
	Data   []float64 `json:"data"`
	Count  float64   `json:"count"`
	Labels []string  `json:"labels"`
	Days   []string  `json:"days"`
	Label  string    `json:"label"`
	Status string    `json:"status"`
}

// action describes what was counted.
type action struct {
	ID         *string `json:"id"`
	Name       string  `json:"name"`
	Type       string  `json:"type"`
	Order      int     `json:"order"`
	Math       string  `json:"math"`
	CustomName string  `json:"custom_name,omitempty"`
}

// shape turns rows into answers.
type shape struct {
	query   *Query
	dates   insight.Range
	counted insight.Counted
}

// row is the number of actors that have a status in a bucket, which is given by its number.
type row struct{ status, bucket, actors int64 }

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var counts []row
	dates := s.dates
	for raw := range rows {
		var cells [3]int64
		if err := json.Unmarshal(raw, &cells); err != nil {
			return nil, fmt.Errorf("reading a row of a lifecycle: %w", err)
		}
		r := row{cells[0], cells[1], cells[2]}
		switch {
		case r.status == earliest:
			var err error
			if dates, err = s.dates.Since(time.Unix(r.bucket, 0)); err != nil {
				return nil, err
			}
		case r.status < 0 || r.status >= statuses:
			return nil, fmt.Errorf("reading a row of a lifecycle: there is no status %d", r.status)
		default:
			counts = append(counts, r)
		}
	}
	results, err := insight.Encode(slices.Values(s.items(dates, counts)))
	if err != nil {
		return nil, fmt.Errorf("encoding a lifecycle: %w", err)
	}
	span := dates.Span
	return &insight.Answer{Results: results, Range: &span, Until: dates.Next(dates.Floor(dates.To)).Add(-time.Microsecond)}, nil
}

// items returns the four statuses, with a number for every bucket.
func (s shape) items(dates insight.Range, counts []row) []item {
	days, labels, places := []string{}, []string{}, map[int64]int{}
	for _, start := range dates.Buckets() {
		if s.query.DateRange.Explicit && start.Before(dates.From) {
			continue
		}
		places[numberOf(dates.Interval, start)] = len(days)
		days, labels = append(days, dates.Day(start)), append(labels, dates.Label(start))
	}
	series := &s.query.Series[0]
	id := series.Event
	if number, ok := series.ActionID(); ok {
		text := strconv.FormatInt(number, 10)
		id = &text
	}
	items := make([]item, statuses)
	for i := range items {
		items[i] = item{
			Action: action{ID: id, Name: s.counted.Name, Type: s.counted.Type, Math: "total", CustomName: series.CustomName},
			Data:   make([]float64, len(days)), Labels: labels, Days: days,
			Label: s.counted.Name + " - " + query.Statuses[i], Status: query.Statuses[i],
		}
	}
	scale := insight.Scale(&s.query.Common)
	for _, r := range counts {
		place, shown := places[r.bucket]
		if !shown {
			continue
		}
		n := insight.Scaled(float64(r.actors), scale)
		if r.status == isDormant {
			n = -n
		}
		items[r.status].Data[place] = n
		items[r.status].Count += n
	}
	return items
}
