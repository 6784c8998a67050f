package insight

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// The names of the values that stand for missing ones and for the rest, where people choose among values.
const (
	NullName  = "None (i.e. no value)"
	OtherName = "Other (i.e. all remaining values)"
)

// Choice is a value that a field of a drill-down can have, with its name for people.
type Choice struct {
	Label string `json:"label"`
	Value any    `json:"value"`
}

// Choices are the values that the fields of a drill-down into an insight can have (contract: api.md, section 1.6). A field without a choice is
// nil.
type Choices struct {
	Day       []Choice `json:"day"`
	Status    []Choice `json:"status"`
	Interval  []Choice `json:"interval"`
	Breakdown []Choice `json:"breakdown"`
	// Breakdowns are the values of each of several breakdowns.
	Breakdowns []ChoicesOfBreakdown `json:"breakdowns"`
	Series     []Choice             `json:"series"`
	Compare    []Choice             `json:"compare"`
}

// ChoicesOfBreakdown are the values of one of several breakdowns.
type ChoicesOfBreakdown struct {
	Values []Choice `json:"values"`
}

// Answer returns the answer that has the choices as members.
func (c Choices) Answer() (*Answer, error) {
	more, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the choices of a drill-down: %w", err)
	}
	return &Answer{Results: []byte("[]"), More: more}, nil
}

// The queries for choices that depend on no events, and for those that depend on the earliest one alone.
const (
	nothing    = `SELECT 1`
	firstEvent = `SELECT toUnixTimestamp(min(timestamp)) FROM events WHERE timestamp >= {first}`
)

// NoChoices is a drill-down whose fields have no choices.
func NoChoices() *Built {
	return &Built{Query: Template(nothing, nil), Shape: func(iter.Seq[[]byte]) (*Answer, error) { return Choices{}.Answer() }}
}

// ChoicesOf returns what asks for the choices of an insight over a range, given how they follow from the range.
func ChoicesOf(dates Range, of func(*Range) Choices) *Built {
	if !dates.All {
		return &Built{Query: Template(nothing, nil), Shape: func(iter.Seq[[]byte]) (*Answer, error) { return of(&dates).Answer() }}
	}
	return &Built{
		Query: Template(firstEvent, map[string]any{"first": FirstTime}),
		Shape: func(rows iter.Seq[[]byte]) (*Answer, error) {
			since := dates
			for row := range rows {
				var cells [1]int64
				if err := json.Unmarshal(row, &cells); err != nil {
					return nil, fmt.Errorf("reading the time of the earliest event: %w", err)
				}
				var err error
				if since, err = dates.Since(time.Unix(cells[0], 0)); err != nil {
					return nil, err
				}
			}
			return of(&since).Answer()
		},
	}
}

// DayChoices returns the buckets of a range, from the one that starts at a time or later; all of them for the zero time.
func DayChoices(dates *Range, from time.Time) []Choice {
	out := []Choice{}
	for _, start := range dates.Buckets() {
		if !start.Before(from) {
			out = append(out, Choice{dates.Label(start), start})
		}
	}
	return out
}
