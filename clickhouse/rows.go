package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Cell is a value of a row, as JSON.
type Cell json.RawMessage

// Text returns a string without its quotes, and anything else as it stands.
func (c Cell) Text() string {
	var s string
	if len(c) > 0 && c[0] == '"' {
		if err := json.Unmarshal(c, &s); err != nil {
			panic("BUG: a row passed the scanner, but is not JSON: " + err.Error())
		}
		return s
	}
	return string(c)
}

// Int returns an integer, quoted or not.
func (c Cell) Int() (int64, error) { return strconv.ParseInt(c.Text(), 10, 64) }

// Time returns a time.
func (c Cell) Time() (time.Time, error) { return time.Parse(time.RFC3339Nano, c.Text()) }

// Collect runs a query and calls row for each of its rows. The cells are valid until row returns.
func (c *Client) Collect(ctx context.Context, q Query, row func([]Cell) error) error {
	_, err := c.Query(ctx, q, &collector{row: row})
	return err
}

// CollectOf is like Collect, but the query sees the rows of several projects. It is for internal queries about all of them at once, not for those of
// users.
func (c *Client) CollectOf(ctx context.Context, projects []int64, q Query, row func([]Cell) error) error {
	for _, project := range projects {
		if project <= 0 {
			return fmt.Errorf("BUG: a query of the project %d", project)
		}
	}
	q.Project, q.projects = projects[0], projects
	return c.Collect(ctx, q, row)
}

type collector struct {
	row     func([]Cell) error
	columns int
	cells   []Cell
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
		s.cells = append(s.cells, Cell(slices.Clip(row[start:at])))
	}
	return s.row(s.cells)
}
