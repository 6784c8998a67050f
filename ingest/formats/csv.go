package formats

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// csvRows reads the rows of CSV after its header.
type csvRows struct {
	r       *Reader
	in      *csv.Reader
	bounded *boundedRow
	table   *table
	values  []record.Value
	line    int // of the last row
}

// boundedRow fails when one row takes too much: a quote that is never closed would pull the rest of the file into memory.
type boundedRow struct {
	in   io.Reader
	left int
}

var errLongRow = fmt.Errorf("the row is longer than %d MiB: is there a quote that is not closed?", maxLine>>20)

func (b *boundedRow) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRow
	}
	n, err := b.in.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err // io.Reader: callers compare the error
}

func (r *Reader) openCSV(text *textReader) (source, error) {
	start, _ := text.Peek(sniffed)
	bounded := &boundedRow{in: text, left: maxLine}
	in := csv.NewReader(bounded)
	in.FieldsPerRecord, in.ReuseRecord, in.TrimLeadingSpace = -1, true, false
	if comma := separator(firstLine(bytes.TrimSpace(start))); comma != 0 {
		in.Comma = comma
	}
	header, err := in.Read()
	if err != nil {
		return nil, wrapped(err, "the header")
	}
	t, err := r.newTable(append([]string(nil), header...))
	if err != nil {
		return nil, err
	}
	return &csvRows{r: r, in: in, bounded: bounded, table: t, values: make([]record.Value, len(t.columns)), line: 1}, nil
}

func (c *csvRows) next() (record.Record, error) {
	c.bounded.left = maxLine
	row, err := c.in.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return record.Record{}, io.EOF
	case errors.As(err, &bad):
		c.line = bad.Line
		return record.Record{}, &record.Error{Line: bad.StartLine, Reason: bad.Err}
	case err != nil:
		return record.Record{}, fmt.Errorf("reading the import after line %d: %w", c.line, err)
	}
	c.line, _ = c.in.FieldPos(0)
	if len(row) != len(c.table.columns) {
		return record.Record{}, &record.Error{Line: c.line, Reason: fmt.Errorf("it has %d columns, and the header %d", len(row), len(c.table.columns))}
	}
	size := 0
	for _, cell := range row {
		size += len(cell) + len(`"",`)
	}
	out := make([]byte, 0, size)
	for i, cell := range row {
		start := len(out)
		out = c.append(out, i, cell)
		if c.values[i] = nil; len(out) > start {
			c.values[i] = out[start:len(out):len(out)]
		}
		out = append(out, ',')
	}
	return c.table.row(c.r, c.values, c.line, out)
}

// append appends a cell as JSON: numbers, true and false as such, cells of known fields as strings, and nothing for an empty cell.
func (c *csvRows) append(out []byte, i int, cell string) []byte {
	field := c.table.columns[i].field
	switch {
	case cell == "":
		return out
	case len(field) > 0 && !bytes.ContainsRune([]byte(field), '.'):
	case cell == "true" || cell == "True" || cell == "TRUE":
		return append(out, "true"...)
	case cell == "false" || cell == "False" || cell == "FALSE":
		return append(out, "false"...)
	case isNumber(cell):
		return append(out, cell...)
	}
	return chjson.AppendString(out, cell)
}

// isNumber reports whether a text is a number as JSON writes it, with so few digits that none are lost.
func isNumber(text string) bool {
	const digits = 15
	digit := func(i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }
	i := 0
	if i < len(text) && text[i] == '-' {
		i++
	}
	if !digit(i) || text[i] == '0' && digit(i+1) || len(text)-i > digits+1 {
		return false
	}
	start := i
	for digit(i) {
		i++
	}
	if i-start > digits {
		return false
	}
	if i < len(text) && text[i] == '.' {
		if i++; !digit(i) {
			return false
		}
		for digit(i) {
			i++
		}
	}
	return i == len(text)
}
