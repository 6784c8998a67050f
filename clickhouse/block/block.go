// Package block encodes rows in ClickHouse's Native format. JSON columns are sent as one column per path, so that the engine has no text
// to parse.
package block

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Column is a column of a table.
type Column struct{ Name, Type string }

// Rows are rows to insert. Those whose JSON values this package understands form one block. The others form a second one, in which JSON values are
// sent as text for the engine to parse.
type Rows struct {
	columns []Column
	limits  []int // how many paths a column may have; 0 for a column that is not JSON
	plain   part
	other   part
}

// part is the rows of a block.
type part struct {
	rows    int
	columns []encoder
}

// encoder holds the values of a column.
type encoder interface {
	// read looks at the next value. It reports whether the column can take it.
	read(value any) bool
	// add adds the value that was read.
	add()
	// sentAs is the type in which the column is sent. The engine converts it to the type of the table's column.
	sentAs() string
	// bytes estimates how many bytes write appends.
	bytes(rows int) int
	// write appends the column, which has rows rows.
	write(out []byte, rows int) []byte
}

// New returns Rows that are still empty. It reports whether this package knows the types of all columns.
func New(columns []Column) (*Rows, bool) {
	r := &Rows{columns: columns, limits: make([]int, len(columns))}
	for i, c := range columns {
		if limit, ok := jsonPaths(c.Type); ok {
			r.limits[i] = limit
			r.plain.columns = append(r.plain.columns, newPathsColumn(c.Type, limit))
			r.other.columns = append(r.other.columns, &jsonTexts{typ: c.Type})
			continue
		}
		plain, other := newEncoder(c.Type), newEncoder(c.Type)
		if plain == nil {
			return nil, false
		}
		r.plain.columns, r.other.columns = append(r.plain.columns, plain), append(r.other.columns, other)
	}
	return r, true
}

// Append adds a row. It adds nothing and returns false if a value does not have the Go type of its column.
func (r *Rows) Append(values []any) bool {
	return len(values) == len(r.columns) && (r.plain.append(values) || r.other.append(values))
}

func (p *part) append(values []any) bool {
	for i, c := range p.columns {
		if !c.read(values[i]) {
			return false
		}
	}
	for _, c := range p.columns {
		c.add()
	}
	p.rows++
	return true
}

// Texts returns how many rows have JSON values that are sent as texts.
func (r *Rows) Texts() int { return r.other.rows }

// Encode appends the blocks to out.
func (r *Rows) Encode(out []byte) []byte {
	for _, p := range []*part{&r.plain, &r.other} {
		if p.rows == 0 {
			continue
		}
		size := 0
		for _, c := range p.columns {
			size += 100 + c.bytes(p.rows)
		}
		out = slices.Grow(out, size)
		out = binary.AppendUvarint(out, uint64(len(r.columns)))
		out = binary.AppendUvarint(out, uint64(p.rows)) //nolint:gosec // never negative
		for i, c := range p.columns {
			out = appendText(out, r.columns[i].Name)
			out = appendText(out, c.sentAs())
			out = c.write(out, p.rows)
		}
	}
	return out
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// newEncoder returns the encoder of a type that is not JSON, or nil if it is unknown.
func newEncoder(typ string) encoder {
	switch {
	case typ == "String", typ == "LowCardinality(String)", strings.HasPrefix(typ, "Enum8("):
		return &texts{}
	case typ == "UUID":
		return &uuids{}
	case typ == "DateTime64(6)", strings.HasPrefix(typ, "DateTime64(6, "):
		return &times{fixed: fixed{typ: typ}}
	case typ == "Int64", typ == "UInt64", typ == "Int8", typ == "UInt8":
		return &numbers{fixed: fixed{typ: typ}}
	}
	return nil
}
