package cache

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// Column is a column's name and its ClickHouse type.
type Column struct{ Name, Type string }

// ErrTooLarge is returned for a result with more bytes than its limit.
var ErrTooLarge = errors.New("the result is too large")

// Limits limits the size of a result. A zero field means no limit.
type Limits struct {
	// The number of rows to keep. Further rows are dropped and make Result.More true. Query for one
	// row more to learn whether there are more.
	Keep int
	// The maximum number of bytes of all rows; beyond it Row returns ErrTooLarge. Never more than 4 GiB.
	MaxBytes int64
}

// Builder collects a result row by row. It must not be used concurrently. The zero Builder has no limits.
type Builder struct {
	limits  Limits
	columns []Column
	begun   bool
	more    bool
	rows    *rowBuffer
}

// rowBuffer is a buffer for rows, reused between results. The number of rows is not known in advance; the final result is copied
// to memory of its exact size.
type rowBuffer struct {
	data   []byte
	starts []uint32
}

// maxRowBuffer is the capacity in bytes above which a buffer is not reused.
const maxRowBuffer = 8 << 20

var rowBuffers = sync.Pool{New: func() any { return new(rowBuffer) }}

// NewBuilder returns an empty builder with limits.
func NewBuilder(limits Limits) *Builder { return &Builder{limits: limits} }

// Columns sets the columns. Call it once, before the first row.
func (b *Builder) Columns(columns []Column) error {
	if b.begun {
		return errors.New("columns of a result set twice")
	}
	b.begun = true
	b.columns = slices.Clone(columns)
	b.rows = rowBuffers.Get().(*rowBuffer)
	return nil
}

// Row adds a copy of one row, a JSON array. It returns ErrTooLarge if the row exceeds the limits.
func (b *Builder) Row(json []byte) error {
	switch {
	case !b.begun:
		return errors.New("row of a result added before its columns")
	case len(json) < 2 || json[0] != '[' || json[len(json)-1] != ']':
		return errors.New("row of a result is not a JSON array")
	case b.limits.Keep > 0 && len(b.rows.starts) >= b.limits.Keep:
		b.more = true
		return nil
	}
	rows := b.rows
	size := len(rows.data) + len(json)
	if len(rows.starts) > 0 {
		size++ // the comma
	}
	if most := b.maxBytes(); int64(size) > most {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	if size > cap(rows.data) {
		rows.data = slices.Grow(rows.data, max(size, 2*cap(rows.data))-len(rows.data))
	}
	if len(rows.starts) > 0 {
		rows.data = append(rows.data, ',')
	}
	rows.starts = append(rows.starts, uint32(len(rows.data))) //nolint:gosec // maxBytes is below 1<<32
	rows.data = append(rows.data, json...)
	return nil
}

func (b *Builder) maxBytes() int64 {
	const most = math.MaxUint32 - 1 // ends are 32 bits, too
	if b.limits.MaxBytes <= 0 {
		return most
	}
	return min(b.limits.MaxBytes, most)
}

// Reset drops the columns and the rows, so that a result can be collected anew.
func (b *Builder) Reset() {
	if b.rows != nil {
		b.rows.data, b.rows.starts = b.rows.data[:0], b.rows.starts[:0]
		if cap(b.rows.data) <= maxRowBuffer {
			rowBuffers.Put(b.rows)
		}
	}
	*b = Builder{limits: b.limits}
}

// Result returns the collected result. The builder must not be used afterwards.
func (b *Builder) Result() *Result {
	result := &Result{columns: b.columns, more: b.more}
	if rows := b.rows; rows != nil {
		b.rows = nil
		if cap(rows.data) > maxRowBuffer {
			result.data, result.starts = fit(rows.data), fit(rows.starts)
		} else {
			result.data, result.starts = exact(rows.data), exact(rows.starts)
			rows.data, rows.starts = rows.data[:0], rows.starts[:0]
			rowBuffers.Put(rows)
		}
	}
	return result
}

// exact copies s to memory of its exact size.
func exact[E any](s []E) []E { return append(make([]E, 0, len(s)), s...) }

// fit copies s to memory of its exact size if more than an eighth of the capacity is unused.
func fit[E any](s []E) []E {
	if cap(s)-len(s) > cap(s)/8 {
		return exact(s)
	}
	return s
}

// Result has the columns and rows of one query, with the rows as the database encoded them. It is immutable:
// callers must not modify what its methods return.
type Result struct {
	columns []Column
	more    bool
	before  int      // the number of rows that Cut removed before the first one
	data    []byte   // the rows, joined by commas
	starts  []uint32 // where in data each row begins
}

// Columns returns the columns in order.
func (r *Result) Columns() []Column { return r.columns }

// Len returns the number of rows, with those that Cut removed before the first one.
func (r *Result) Len() int { return r.before + len(r.starts) }

// More reports whether the query has rows beyond those kept.
func (r *Result) More() bool { return r.more }

// Row returns row i as a JSON array, for i from First() to Len()-1.
func (r *Result) Row(i int) []byte {
	i -= r.before
	start, end := r.starts[i], r.end(i)
	return r.data[start:end:end]
}

// Rows returns an iterator over the rows, each a JSON array.
func (r *Result) Rows() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range r.starts {
			if !yield(r.Row(r.before + i)) {
				return
			}
		}
	}
}

// AppendRows appends at most limit rows, starting at offset, to dst as a JSON array of row arrays. A
// negative limit means all rows; an offset beyond the end gives an empty array.
func (r *Result) AppendRows(dst []byte, offset, limit int) []byte {
	first, last := r.span(offset, limit)
	if first == last {
		return append(dst, '[', ']')
	}
	rows := r.data[r.starts[first-r.before]:r.end(last-1-r.before)]
	dst = slices.Grow(dst, len(rows)+len(rows)/16+2) // with room for what follows, because growing copies everything
	dst = append(dst, '[')
	dst = append(dst, rows...)
	return append(dst, ']')
}

// PageLen returns the number of rows that AppendRows appends for offset and limit.
func (r *Result) PageLen(offset, limit int) int {
	first, last := r.span(offset, limit)
	return last - first
}

// HasMore reports whether there are rows after the page at offset and limit, kept or not.
func (r *Result) HasMore(offset, limit int) bool {
	_, last := r.span(offset, limit)
	return last < r.Len() || r.more
}

// span returns the rows [first, last) for offset and limit.
func (r *Result) span(offset, limit int) (first, last int) {
	first = min(max(offset, r.before), r.Len())
	if limit < 0 || limit > r.Len()-first {
		return first, r.Len()
	}
	return first, first + limit
}

// end returns the offset in data where the i-th row in it ends.
func (r *Result) end(i int) int {
	if i+1 < len(r.starts) {
		return int(r.starts[i+1]) - 1
	}
	return len(r.data)
}

// Size returns the memory that the result takes, in bytes.
func (r *Result) Size() int64 {
	size := int64(unsafe.Sizeof(*r)) + int64(cap(r.data)) + int64(cap(r.starts))*int64(unsafe.Sizeof(uint32(0)))
	for _, column := range r.columns {
		size += int64(unsafe.Sizeof(column)) + int64(len(column.Name)+len(column.Type))
	}
	return size
}
