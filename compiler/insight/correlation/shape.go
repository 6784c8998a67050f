package correlation

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/elements"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// results are the results of a correlation.
type results struct {
	Events []odds `json:"events"`
	// Skewed reports whether the numbers of the two kinds of actors differ too much to compare them.
	Skewed bool `json:"skewed"`
}

// odds says how much more likely actors with a sign are to have taken the last step.
type odds struct {
	Event   event   `json:"event"`
	Success int     `json:"success_count"`
	Failure int     `json:"failure_count"`
	Ratio   float64 `json:"odds_ratio"`
	Type    string  `json:"correlation_type"`
}

// event is the name of a sign. For a click it also has the clicked elements.
type event struct {
	Event      string             `json:"event"`
	Properties map[string]string  `json:"properties"`
	Elements   []elements.Element `json:"elements"`
}

// maxSkew is the maximum ratio of the numbers of the two kinds of actors.
const maxSkew = 10

// shape turns rows into answers.
type shape struct{}

// row is a sign with its numbers of actors: those that took the last step, and the others.
type row struct {
	isSign                bool
	event, property, text string
	success, failure      int
}

func (shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var signs []row
	var all row
	for raw := range rows {
		r, err := readRow(raw)
		if err != nil {
			return nil, fmt.Errorf("reading a row of a correlation: %w", err)
		}
		if r.isSign {
			signs = append(signs, r)
		} else {
			all = r
		}
	}
	out := results{Events: []odds{}, Skewed: true}
	if all.success > 0 && all.failure > 0 {
		more := math.Max(float64(all.success)/float64(all.failure), float64(all.failure)/float64(all.success))
		out.Skewed = more > maxSkew
		for i := range signs {
			out.Events = append(out.Events, signs[i].odds(&all))
		}
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding a correlation: %w", err)
	}
	return &insight.Answer{Results: encoded}, nil
}

func readRow(raw []byte) (row, error) {
	cells, err := insight.List(raw, 7)
	if err != nil {
		return row{}, err // the caller adds what was read
	}
	var r row
	var isSign int
	for i, into := range []any{&isSign, &r.event, &r.property, &r.text, &r.success, &r.failure} {
		if err := json.Unmarshal(cells[i], into); err != nil {
			return row{}, err // the caller adds what was read
		}
	}
	r.isSign = isSign != 0
	return r, nil
}

// odds compares the actors that have a sign with those that do not. It adds one actor to each of the four numbers, so that all of them are
// above zero.
func (r *row) odds(all *row) odds {
	likely := (r.success + 1) * (all.failure - r.failure + 1)
	unlikely := (all.success - r.success + 1) * (r.failure + 1)
	out := odds{Event: r.called(), Success: r.success, Failure: r.failure, Ratio: float64(likely) / float64(unlikely), Type: "failure"}
	if likely > unlikely {
		out.Type = "success"
	}
	return out
}

func (r *row) called() event {
	var parts []string
	if r.event != "" || r.property == "" {
		parts = append(parts, r.event)
	}
	if r.property != "" {
		parts = append(parts, r.property, r.text)
	}
	out := event{Event: strings.Join(parts, "::"), Properties: map[string]string{}, Elements: []elements.Element{}}
	if r.event == autocapture && r.property == elementsChain {
		if kind, chain, ok := strings.Cut(r.text, divider); ok {
			out.Properties[eventType], out.Elements = kind, elements.Of(chain)
		}
	}
	return out
}

// Table formats the results as a table.
func Table(raw []byte) ([][]string, error) {
	var r results
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err // the caller wraps it
	}
	out := [][]string{{"event", "correlation", "odds_ratio", "success_count", "failure_count"}}
	for _, o := range r.Events {
		out = append(out, []string{o.Event.Event, o.Type, strconv.FormatFloat(o.Ratio, 'g', 4, 64), strconv.Itoa(o.Success), strconv.Itoa(o.Failure)})
	}
	return out, nil
}
