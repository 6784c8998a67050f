package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// cell is a value in a row of an internal query, as JSON.
type cell json.RawMessage

func (c cell) text() string {
	var s string
	if len(c) > 0 && c[0] == '"' {
		if err := json.Unmarshal(c, &s); err != nil {
			panic("BUG: a row passed the scanner, but is no JSON: " + err.Error())
		}
		return s
	}
	return string(c)
}

func (c cell) int() (int64, error) { return strconv.ParseInt(c.text(), 10, 64) }

func (c cell) time() (time.Time, error) { return time.Parse(time.RFC3339Nano, c.text()) }

// collect runs an internal query and calls row for each of its rows. The cells are valid until row returns.
func (c *Client) collect(ctx context.Context, q Query, row func([]cell) error) error {
	_, err := c.Query(ctx, q, &collector{row: row})
	return err
}

type collector struct {
	row     func([]cell) error
	columns int
	cells   []cell
}

func (s *collector) Columns(columns []Column) error {
	s.columns = len(columns)
	return nil
}

func (s *collector) Row(row []byte) error {
	s.cells = s.cells[:0]
	at := 1
	for i := range s.columns {
		if i > 0 {
			at++
		}
		for at < len(row) && row[at] == ' ' {
			at++
		}
		start := at
		if at = valueEnd(row, at); at < 0 {
			return fmt.Errorf("cell %d: %w", i, errMalformedRow)
		}
		s.cells = append(s.cells, cell(slices.Clip(row[start:at])))
	}
	return s.row(s.cells)
}
