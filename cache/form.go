package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A result is written as
//
//	version 1 | more 1 | rows before | columns | rows | bytes of rows | lengths of rows… | rows, joined by commas
//
// where numbers are uvarints, and a column is its name and its type, each with its length in front.
const resultForm = 1

// AppendForm encodes the result for ReadResult, in this process or another one. It appends everything but the rows to dst. The rows come last in the
// encoding; they are returned separately and must not be changed.
func (r *Result) AppendForm(dst []byte) (head, rows []byte) {
	more := byte(0)
	if r.more {
		more = 1
	}
	dst = append(dst, resultForm, more)
	dst = binary.AppendUvarint(dst, uint64(r.before)) //nolint:gosec // never negative
	dst = binary.AppendUvarint(dst, uint64(len(r.columns)))
	for _, c := range r.columns {
		for _, text := range [...]string{c.Name, c.Type} {
			dst = binary.AppendUvarint(dst, uint64(len(text)))
			dst = append(dst, text...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.starts)))
	dst = binary.AppendUvarint(dst, uint64(len(r.data)))
	for i := range r.starts {
		dst = binary.AppendUvarint(dst, uint64(r.end(i))-uint64(r.starts[i])) //nolint:gosec // never negative
	}
	return dst, r.data
}

var errResultForm = errors.New("malformed result")

// maxColumns is the maximum number of columns of a result that ReadResult accepts.
const maxColumns = 1 << 16

// ReadResult decodes a result within the limits. It keeps no part of data.
func ReadResult(data []byte, limits Limits) (*Result, error) {
	f := form{data: data}
	if version := f.next(1); version == nil || version[0] != resultForm {
		return nil, errResultForm
	}
	flag := f.next(1)
	if flag == nil || flag[0] > 1 {
		return nil, errResultForm
	}
	r := &Result{more: flag[0] == 1, before: int(f.number(math.MaxInt32))} //nolint:gosec // in range
	columns := f.number(maxColumns)
	for range columns {
		name, typ := f.text(), f.text()
		if f.bad {
			return nil, errResultForm
		}
		r.columns = append(r.columns, Column{name, typ})
	}
	most := int64(math.MaxUint32 - 1)
	if limits.MaxBytes > 0 {
		most = min(most, limits.MaxBytes)
	}
	rows, size := f.number(math.MaxInt32), f.number(math.MaxInt64)
	switch {
	case f.bad:
		return nil, errResultForm
	case limits.Keep > 0 && rows > uint64(limits.Keep), size > uint64(most):
		return nil, fmt.Errorf("%w: %d rows of %d bytes", ErrTooLarge, rows, size)
	case rows > uint64(len(f.data)): // each row takes at least a byte
		return nil, errResultForm
	}
	r.starts = make([]uint32, 0, rows)
	at := uint64(0)
	for i := range rows {
		if i > 0 {
			at++ // the comma
		}
		if at > size {
			return nil, errResultForm
		}
		r.starts = append(r.starts, uint32(at))
		at += f.number(size)
	}
	if f.bad || at != size || size != uint64(len(f.data)) {
		return nil, errResultForm
	}
	r.data = exact(f.data)
	for i := range r.starts {
		row := r.Row(r.before + i)
		if len(row) < 2 || row[0] != '[' || row[len(row)-1] != ']' || i > 0 && r.data[r.starts[i]-1] != ',' {
			return nil, errResultForm
		}
	}
	return r, nil
}

// form reads the parts of an encoded result.
type form struct {
	data []byte
	bad  bool
}

// next returns the next n bytes; nil if there are fewer.
func (f *form) next(n uint64) []byte {
	if f.bad || n > uint64(len(f.data)) {
		f.bad = true
		return nil
	}
	part := f.data[:n]
	f.data = f.data[n:]
	return part
}

// number returns the next number, which must not exceed most.
func (f *form) number(most uint64) uint64 {
	n, size := binary.Uvarint(f.data)
	if f.bad || size <= 0 || n > most {
		f.bad = true
		return 0
	}
	f.data = f.data[size:]
	return n
}

func (f *form) text() string { return string(f.next(f.number(math.MaxInt32))) }

// First returns the index of the first row that the result has: Cut removes those before it. It is Len if there is none.
func (r *Result) First() int { return r.before }

// Cut returns the result with the rows of one page only. They keep their indexes, so HasMore and PageLen of the page stay the same.
func (r *Result) Cut(offset, limit int) *Result {
	first, last := r.span(offset, limit)
	cut := &Result{columns: r.columns, more: last < r.Len() || r.more, before: first}
	if first == last {
		return cut
	}
	from := r.starts[first-r.before]
	cut.data = exact(r.data[from:r.end(last-1-r.before)])
	for _, start := range r.starts[first-r.before : last-r.before] {
		cut.starts = append(cut.starts, start-from)
	}
	return cut
}
