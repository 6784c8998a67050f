package paths

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// edge is one item of the answer (contract: paths.md, section 7).
type edge struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Value  int64  `json:"value"`
	// Average is in milliseconds.
	Average float64 `json:"average_conversion_time"`
}

// shape turns rows into answers.
type shape struct {
	scale float64 // of values, because of sampling
	dates insight.Range
}

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	all := []edge{}
	span := insight.Span{From: s.dates.Lower, To: s.dates.To}
	for raw := range rows {
		var e edge
		cells := []any{&e.Source, &e.Target, &e.Value, &e.Average}
		err := json.Unmarshal(raw, &cells)
		if err == nil && len(cells) != 4 {
			err = fmt.Errorf("it has %d cells, not 4", len(cells))
		}
		if err != nil {
			return nil, fmt.Errorf("reading a row of paths: %w", err)
		}
		if e.Source == "" && s.dates.All { // the earliest event
			dates, err := s.dates.Since(time.Unix(e.Value, 0))
			if err != nil {
				return nil, err
			}
			span = dates.Span
			continue
		}
		e.Value = int64(insight.Scaled(float64(e.Value), s.scale))
		all = append(all, e)
	}
	out, err := insight.Encode(slices.Values(reachable(all)))
	if err != nil {
		return nil, fmt.Errorf("encoding paths: %w", err)
	}
	return &insight.Answer{Results: out, Range: &span}, nil
}

// reachable keeps the edges that can be reached from a first step.
func reachable(all []edge) []edge {
	from := map[string][]string{}
	for _, e := range all {
		from[e.Source] = append(from[e.Source], e.Target)
	}
	reached := map[string]bool{}
	var next []string
	visit := func(node string) {
		if !reached[node] {
			reached[node] = true
			next = append(next, node)
		}
	}
	for node := range from {
		if strings.HasPrefix(node, "1_") {
			visit(node)
		}
	}
	for len(next) > 0 {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		for _, target := range from[node] {
			visit(target)
		}
	}
	kept := []edge{}
	for _, e := range all {
		if reached[e.Source] {
			kept = append(kept, e)
		}
	}
	return kept
}
