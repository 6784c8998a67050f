package webstats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
)

// shape turns rows into the answer.
type shape struct {
	query   *Query
	periods web.Periods
	columns []column
	typ     string // of the value; empty for text
	limit   int
}

// context is the prefix of the names of columns in the answer.
const context = "context.columns."

func (s shape) answer(rows iter.Seq[[]byte]) (*insight.Answer, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	var earliest *float64
	count, more := 0, false
	for raw := range rows {
		if count == s.limit {
			more = true
			break
		}
		if count > 0 {
			out.WriteByte(',')
		}
		cells, err := insight.List(raw, 3+2*len(s.columns))
		if err != nil {
			return nil, fmt.Errorf("reading a row of a table: %w", err)
		}
		if err := json.Unmarshal(cells[len(cells)-1], &earliest); err != nil {
			return nil, fmt.Errorf("reading the time of the first event: %w", err)
		}
		if err := s.row(&out, cells); err != nil {
			return nil, err
		}
		count++
	}
	out.WriteByte(']')
	span, err := s.periods.Since(earliest)
	if err != nil {
		return nil, err
	}
	answer := &insight.Answer{Results: out.Bytes(), HasMore: &more, Range: &span, Previous: s.periods.Previous}
	answer.Columns, answer.Types = s.head()
	answer.More, err = json.Marshal(struct {
		Limit        int      `json:"limit"`
		Offset       int      `json:"offset"`
		SamplingRate web.Rate `json:"samplingRate"`
		Prepared     bool     `json:"usedPreAggregatedTables"`
	}{s.limit, s.query.Offset, s.query.Rate, false})
	return answer, err
}

// row writes the value, the pairs of numbers, and the share of the whole. What follows is only for PostHog's own page.
func (s shape) row(out *bytes.Buffer, cells []json.RawMessage) error {
	out.WriteByte('[')
	out.Write(cells[0])
	scale := insight.Scale(&s.query.Common)
	for i, c := range s.columns {
		out.WriteString(",[")
		for k, cell := range cells[1+2*i : 3+2*i] {
			if k > 0 {
				out.WriteByte(',')
			}
			if c.counts && scale != 1 {
				var n *float64
				if err := json.Unmarshal(cell, &n); err != nil {
					return fmt.Errorf("reading a number of a row: %w", err)
				}
				if n != nil {
					cell = strconv.AppendFloat(nil, insight.Scaled(*n, scale), 'f', -1, 64)
				}
			}
			out.Write(cell)
		}
		out.WriteByte(']')
	}
	out.WriteByte(',')
	out.Write(cells[len(cells)-2])
	out.WriteString(`,""]`)
	return nil
}

// head returns the names of the columns, and the types of those that the query computes.
func (s shape) head() (names []string, types [][2]string) {
	typ := s.typ
	if typ == "" {
		typ = "Nullable(String)"
	}
	add := func(name, typ string) {
		names, types = append(names, context+name), append(types, [2]string{context + name, typ})
	}
	add("breakdown_value", typ)
	for _, c := range s.columns {
		if c.counts {
			add(c.name, "Tuple(UInt64, Nullable(UInt64))")
		} else {
			add(c.name, "Tuple(Nullable(Float64), Nullable(Float64))")
		}
	}
	add("ui_fill_fraction", "Nullable(Float64)")
	return append(names, context+"cross_sell"), types
}
